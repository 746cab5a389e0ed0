"""What holds a leg without effort: elastic moments of ligaments and slack muscles at hip, knee and ankle.

R. Riener, T. Edrich, J. Biomechanics 32 (1999) 539-544, means of ten people. Muscles that pass two joints couple them: the
calf's holds an ankle that is bent upwards the more, the straighter the knee is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

JOINTS = ("hip_flexion", "knee_flexion", "ankle_dorsiflexion")
TINY = 1e-30  # rad; of a complex step


def moments(hip: Any, knee: Any, ankle: Any) -> tuple[Any, Any, Any]:
    """Angles [rad], flexion and dorsiflexion positive, arrays, complex ones too -> moments in these directions [N m]."""
    h, k, a = (np.degrees(1.0) * angle for angle in (hip, knee, ankle))
    return (np.exp(1.4655 - 0.0034 * k - 0.0750 * h) - np.exp(1.3403 - 0.0226 * k + 0.0305 * h) + 8.072,
            np.exp(1.800 + 0.0460 * a - 0.0352 * k + 0.0217 * h) - np.exp(-3.971 + 0.0004 * a + 0.0495 * k - 0.0128 * h)
            - 4.820 + np.exp(2.220 - 0.150 * k),
            np.exp(-7.9763 - 0.1949 * a + 0.0008 * k) - np.exp(2.1016 + 0.0843 * a - 0.0176 * k) + 1.792)


def elastic(q: np.ndarray, legs: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Moments (samples, n) and their slopes (samples, n, n) at coordinates q (samples, n); legs: columns of JOINTS."""
    tau, slope = np.zeros_like(q), np.zeros((*q.shape, q.shape[1]))
    for leg in legs:
        angles = q[:, leg].T
        tau[:, leg] = np.stack(moments(*angles), axis=1)
        for column, way in zip(leg, 1j * TINY * np.eye(3)):
            slope[:, leg, column] = np.stack(moments(*(angles + way[:, None])), axis=1).imag / TINY
    return tau, slope

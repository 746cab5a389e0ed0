"""Where a motion is at one instant, and how fast, from its path, its law and the rate at which the law is played."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .law import TimeLaw
from .path import Path
from .time_scaling import TimeScaling


class Reference(NamedTuple):
    """Where to be: time since the start, joints (n,), path, the rate of the time scaling, and whether the motion has ended."""

    t: float
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    s: float
    sd: float
    sdd: float
    sddd: float
    rate: float
    done: bool


def reference(path: Path, law: TimeLaw, scaling: TimeScaling, t: float, done: bool) -> Reference:
    """sd = v k, sdd = a k^2 + v kappa, sddd = u k^3 + 3 a k kappa + v w; qd, qdd, qddd as in terms.py."""
    s, v, a, u = law.at(scaling.sigma)
    k, kappa = scaling.k, scaling.kappa
    sd, sdd, sddd = v * k, a * k * k + v * kappa, (u * k * k + 3.0 * a * kappa) * k + v * scaling.w
    q, q1, q2, q3 = path.at(s)
    qdd = q2 * (sd * sd) + q1 * sdd
    qddd = q3 * sd**3 + q2 * (3.0 * sd * sdd) + q1 * sddd
    return Reference(t, q, q1 * sd, qdd, qddd, s, sd, sdd, sddd, k, done)

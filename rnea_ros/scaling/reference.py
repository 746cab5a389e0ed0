"""Where a motion is at one instant, and how fast, from its path, its law and the rate at which the law is played."""

from __future__ import annotations

from typing import Any, NamedTuple

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


def along(rows: Any, sd: Any, sdd: Any, sddd: Any) -> tuple[Any, Any, Any, Any]:
    """q, qd, qdd, qddd from q, q', q'', q''' and the motion along the path; see terms.py."""
    q, q1, q2, q3 = rows
    return q, q1 * sd, q2 * (sd * sd) + q1 * sdd, q3 * sd**3 + q2 * (3.0 * sd * sdd) + q1 * sddd


def played(motion: Any, k: Any, kappa: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    """s, sd, sdd, sddd of a law that is at s, v, a, u and played at a rate k."""
    s, v, a, u = motion
    return s, v * k, a * k * k + v * kappa, (u * k * k + 3.0 * a * kappa) * k + v * w


def reference(path: Path, law: TimeLaw, scaling: TimeScaling, t: float, done: bool) -> Reference:
    """Where to be now."""
    s, sd, sdd, sddd = played(law.at(scaling.sigma), scaling.k, scaling.kappa, scaling.w)
    return Reference(t, *along(path.at(s), sd, sdd, sddd), s, sd, sdd, sddd, scaling.k, done)

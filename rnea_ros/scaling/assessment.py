"""What other limits or another payload mean for a law that is being played: the largest constant rate inside them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .feasibility import check_rest
from .plan import ScaledPlan
from .profile import PASS, largest
from .terms import Constraints, utilization
from .time_scaling import CoefficientTable

ROOM = 0.98  # share of the limits that a law may use from which another one is to be solved for
RATES = (0.25, 0.5, 0.75, 1.0)  # rates at which the excess over new limits is looked at


class Assessment(NamedTuple):
    """A law under new constraints, in `table`; where factor < 1, `slow` is the law slowed until inside, with its table."""

    constraints: Constraints
    table: CoefficientTable
    factor: float
    slow: ScaledPlan
    slow_table: CoefficientTable


def assessed(constraints: Constraints, current: ScaledPlan, sigma: float) -> Assessment:
    """What new constraints mean for a motion from its time sigma on. InputError where gravity alone exceeds a limit."""
    check_rest(constraints, PASS, float(current.law.at(sigma)[0]))
    table = CoefficientTable(constraints, current.law)
    rest = current.law.between(sigma, current.law.duration)
    (s, v, a, u), _ = rest.densely(constraints.path.breaks)
    rows = constraints(s)
    factor = largest(rows / ROOM, v, a, u)
    if factor >= 1.0:
        return Assessment(constraints, table, 1.0, current, table)
    factor *= 1.0 - 1e-12
    excess = np.max([np.abs(utilization(rows, v * k, a * k**2, u * k**3)).max(axis=0) for k in RATES], axis=0) / PASS
    slow = current.slower(factor)
    return Assessment(constraints, table.widened(np.maximum(excess, 1.0)), factor, slow,
                      CoefficientTable(constraints, slow.law))

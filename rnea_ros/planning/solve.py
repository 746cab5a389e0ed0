"""Which solver finds a plan: our interior point method where start and goal are known, IPOPT else, and where that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import interior_point, ipopt
from .condensed import Condensed, condensable
from .interior_point import Start
from .ipopt import NlpSolution
from .settings import Settings
from .transcription import Transcription

LOOSE, TIGHT = 1e-6, 1e-7
MOST = 100  # iterations before IPOPT has a try
ALWAYS = {"tol": 1e-6}  # options of IPOPT; a smaller one doubles the work for the fifth digit


class Nearness(NamedTuple):
    """How near to the solution a search begins, and how near it ends: start and tolerance of ours, options of IPOPT.

    known : multipliers are, too
    """

    start: Start
    tolerance: float
    options: Mapping[str, Any]
    known: bool = False


COLD = Nearness(Start(1e-2, 1e-2), LOOSE, {})  # from a guess,
WARM = Nearness(Start(1e-5, 1e-2), LOOSE, {"mu_init": 1e-5})  # from a curve that is nearly right,
HOT = Nearness(Start(1e-8, 1e-6), TIGHT, {  # and from its multipliers as well
    "mu_init": 1e-7, "constr_viol_tol": 1e-8, "warm_start_init_point": "yes",
    **{f"warm_start_{what}": 1e-9 for what in ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac",
                                               "mult_bound_push")}}, known=True)


def solved(program: Transcription, x: np.ndarray, near: Nearness, settings: Settings,
           watch: Callable[[int, np.ndarray, float], None], multipliers: np.ndarray | None = None) -> NlpSolution:
    """A local minimum near x. watch: as in ipopt.minimise."""
    before = 0
    if not settings.solver and not settings.gauss_newton and condensable(program):
        small = Condensed(program)
        start = near.start if multipliers is None else near.start._replace(multipliers=np.append(multipliers[small.kept], 0.0))
        found = interior_point.minimise(small, x, start, near.tolerance, min(MOST, settings.iterations), watch)
        if found.status == interior_point.SOLVED:
            all_rows = np.zeros(len(program.rows.lower))
            all_rows[small.kept] = found.multipliers[:-1]
            return NlpSolution(found.x, all_rows, True, found.status, found.iterations)
        before = found.iterations + 1
    options = {**ALWAYS, "max_iter": settings.iterations, **near.options, **settings.solver}
    solution = ipopt.minimise(program, x, options, lambda k, *now: watch(k + before, *now), multipliers)
    return solution._replace(iterations=solution.iterations + before)

"""Which solver finds a plan: our interior point method where start and goal are known, IPOPT else, and where that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from . import interior_point, ipopt
from .condensed import Condensed, condensable
from .interior_point import Start, Watch
from .ipopt import NlpSolution
from .settings import Settings
from .transcription import Transcription

LOOSE, TIGHT = 1e-6, 1e-7
MOST = 100  # iterations of ours before IPOPT has a try, and of that
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


def ours(program: Transcription, settings: Settings) -> bool:
    """Whether our method is for it."""
    return not settings.solver and not settings.gauss_newton and condensable(program)


def solved(program: Transcription, x: np.ndarray, near: Nearness, settings: Settings, watch: Watch,
           multipliers: np.ndarray | None = None, others: bool = True) -> NlpSolution:
    """A local minimum near x. watch: as in ipopt.minimise. others: whether IPOPT has a try where ours fails."""
    if not ours(program, settings):
        return _by_ipopt(program, x, near, settings, settings.iterations, watch, multipliers)
    small = Condensed(program)
    start = near.start if multipliers is None else near.start._replace(multipliers=np.append(multipliers[small.kept], 0.0))
    found = interior_point.minimise(small, x, start, near.tolerance, min(MOST, settings.iterations), watch)
    whole = np.zeros(len(program.rows.lower))
    whole[small.kept] = found.multipliers[:-1]
    if found.status == interior_point.SOLVED or not others:
        return NlpSolution(found.x, whole, found.status == interior_point.SOLVED, found.status, found.iterations)
    before = found.iterations + 1
    solution = _by_ipopt(program, x, near, settings, min(MOST, settings.iterations), lambda k, *now: watch(k + before, *now),
                         multipliers)
    return solution._replace(iterations=solution.iterations + before)


def _by_ipopt(program: Transcription, x: np.ndarray, near: Nearness, settings: Settings, most: int, watch: Watch,
              multipliers: np.ndarray | None) -> NlpSolution:
    options = {**ALWAYS, "max_iter": most, **near.options, **settings.solver}
    return ipopt.minimise(program, x, options, watch, multipliers)

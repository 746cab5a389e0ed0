"""Which solver finds a plan: ours where start and goal or the duration are known, IPOPT else, and where that fails."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from . import interior_point, ipopt
from .approach import approach
from .condensed import Condensed, condensable
from .interior_point import Start, Watch
from .ipopt import NlpSolution
from .settings import Settings
from .tied import Tied, tieable
from .transcription import Transcription

LOOSE, TIGHT = 1e-6, 1e-7
IPOPT = 1e-6  # its tolerance; a smaller one doubles the work for the fifth digit
MOST = 100  # iterations of ours before IPOPT has a try, and of that


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
SMOOTHING = Nearness(Start(1e-3, 1e-2), LOOSE, {"mu_init": 1e-3})  # from a curve that is right under another cost,
TIED = Start(1e-5, 0.3), Start(1e-5, 1e-3)  # far fewer variables: from where limits are nearly kept, and from multipliers


class Try(Enum):
    """Which method looks: FIRST ours, or IPOPT where ours is not for the program; SECOND IPOPT, where ours found nothing; or
    BOTH, one after the other."""

    FIRST = 1
    SECOND = 2
    BOTH = 3


def ours(program: Transcription, settings: Settings) -> type[Condensed] | None:
    """As what our method sees the program, if it is for it."""
    if settings.solver:
        return None
    return Condensed if condensable(program) else Tied if tieable(program) else None


def solved(program: Transcription, x: np.ndarray, near: Nearness, settings: Settings, watch: Watch,
           multipliers: np.ndarray | None = None, turn: Try = Try.BOTH) -> NlpSolution:
    """A local minimum near x. watch: as in ipopt.minimise."""
    before = 0
    if turn is not Try.SECOND:
        kind = ours(program, settings)
        if kind is None:
            return _by_ipopt(program, x, near, settings, settings.iterations, watch, multipliers)
        found = _by_ours(kind(program), x, near, settings, watch, multipliers)
        before = found.iterations + 1
        if found.converged or turn is Try.FIRST:
            return found
    solution = _by_ipopt(program, x, near, settings, min(MOST, settings.iterations), lambda k, *now: watch(k + before, *now),
                         multipliers)
    return solution._replace(iterations=solution.iterations + before)


def _by_ours(small: Condensed, x: np.ndarray, near: Nearness, settings: Settings, watch: Watch,
             multipliers: np.ndarray | None) -> NlpSolution:
    start, before, most = near.start, 0, min(MOST, settings.iterations)
    if isinstance(small, Tied):
        start, most = TIED[near.known], settings.iterations
        if near is COLD:
            x, before = approach(small, x, most, watch)
    if multipliers is not None:
        start = start._replace(multipliers=np.append(multipliers[small.kept], 0.0))
    found = interior_point.minimise(small, x, start, settings.optimality or near.tolerance, most,
                                    lambda k, *now: watch(k + before, *now))
    whole = np.zeros(len(small.program.rows.lower))
    whole[small.kept] = found.multipliers[:-1]
    return NlpSolution(found.x, whole, found.status == interior_point.SOLVED, found.status, found.iterations + before)


def _by_ipopt(program: Transcription, x: np.ndarray, near: Nearness, settings: Settings, most: int, watch: Watch,
              multipliers: np.ndarray | None) -> NlpSolution:
    options = {"tol": settings.optimality or IPOPT, "max_iter": most, **near.options, **settings.solver}
    return ipopt.minimise(program, x, options, watch, multipliers)

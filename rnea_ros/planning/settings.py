"""How a plan is made, and how its making is watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import InputError
from .problem import Cost


@dataclass(frozen=True)
class Settings:
    """How a plan is made.

    degree      : of the splines: with 3 the torque is continuous, with 4 its rate too
    spans       : polynomial pieces to begin with
    refinements : how often spans are halved where the plan asks for it; ends when the objective gains less than `gain`
    gain        : relative
    tolerance   : excess over a limit that is let pass between the nodes, relative
    best_of     : plans from different starting guesses, of which the best is kept
    tries       : starting guesses before giving up
    iterations  : of the solver, for each of its calls
    gauss_newton: the solver's Hessian from first derivatives alone; for costs that are sums of squares
    damping     : added to the diagonal of the solver's Hessian (Levenberg, Marquardt): shorter steps where it is too flat
    optimality  : of the solver: what may be left of slopes at the optimum; None: its own, which is small
    solver      : options of IPOPT, by its names for them; they overrule the planner's own
    instants    : shares of the duration, 0 and 1 among them, at which limits are kept and the cost is summed (trapezoids);
                  knots stay as they are, and limits are kept where they are found exceeded, too. None: where the plan itself
                  asks for it. One that is there twice ends what came before and begins what comes after
    """

    degree: int = 3
    spans: int = 12
    refinements: int = 8
    gain: float = 3e-4
    tolerance: float = 1e-6
    best_of: int = 1
    tries: int = 4
    iterations: int = 500
    gauss_newton: bool = False
    damping: float = 0.0
    optimality: float | None = None
    solver: Mapping[str, Any] = field(default_factory=dict)
    instants: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        allowed = {"degree": (3, 7), "spans": (3, 1000), "refinements": (0, 20), "gain": (0.0, 1.0), "tolerance": (1e-7, 1.0),
                   "best_of": (1, 1000), "tries": (1, 1000), "iterations": (1, 100_000), "damping": (0.0, 1e6)}
        for name, (low, high) in allowed.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name} is {getattr(self, name)}; {low} to {high} is allowed")
        if self.optimality is not None and not 1e-9 <= self.optimality <= 1.0:
            raise InputError(f"optimality is {self.optimality}; 1e-9 to 1 is allowed, or None")
        if self.instants is not None and not _rise_from_0_to_1(self.instants):
            raise InputError(f"instants are {self.instants!r:.60}; shares of the duration are needed that rise from 0 to 1")


def _rise_from_0_to_1(values: Sequence[float]) -> bool:
    return len(values) > 1 and values[0] == 0.0 and values[-1] == 1.0 and all(a <= b for a, b in pairwise(values))


class Smoothing(NamedTuple):
    """Search for the smoothest motion that takes little longer than the best one.

    tolerance : share of the best motion's duration by which the smoothest one may be longer
    cost      : what is least in the smoothest motion; time has no weight in it
    """

    tolerance: float
    cost: Cost


class SolverProgress(NamedTuple):
    """After each iteration of the solver. violation: of the worst constraint, relative to its limit."""

    stage: str
    iteration: int
    duration: float
    control_points: int
    violation: float


Report = Callable[[SolverProgress], None]

"""From far away to near all limits: what is beyond them, squared, is a price (Levenberg and Marquardt's method).

    minimise f(x) + price / 2 |v(x)|^2,   v: values beyond their limits, zero inside

Slacks that start inside limits while the motion is far outside block one another: an interior point method then creeps. Here
limits that are kept do not count, and f's second derivatives are those of squares: no step is led astray by curvature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .condensed import Condensed, Point
from .interior_point import Watch

PRICE = 0.1  # of one row beyond its limit by its scale, as a share of the objective at the beginning
SHIFT, LEAST, LARGEST = 1e-2, 1e-8, 1e8  # on the diagonal: at first, and in between
POOR, GOOD = 0.3, 0.7  # shares of what was foreseen
ENOUGH = 0.05  # the last step brought less, relative
MOST = 40


class Approached(NamedTuple):
    x: np.ndarray
    iterations: int


def approach(program: Condensed, x: np.ndarray, most: int, watch: Watch) -> Approached:
    """As near as some cheap steps lead; not a solution. watch: as in interior_point."""
    at, shift = program.at(x), SHIFT
    price = PRICE * (program.objective(at) or 1.0)
    v, merit = _priced(program, at, price)
    for iteration in range(min(most, MOST)):
        watch(iteration, at.x, float(np.abs(v).max(initial=0.0)))
        program.linearised(at)
        slope = program.gradient(price * v)
        matrix = program.newton(program.squares(), price * v, price * (v != 0.0))
        before = merit
        while True:
            if shift > LARGEST:
                return Approached(at.x, iteration)
            step = matrix.solve(-slope) if matrix.factorise(shift) else None
            there = at if step is None else program.at(at.x + step)
            v_there, merit_there = _priced(program, there, price)
            if step is not None and merit_there < merit:
                break
            shift *= 4.0
        gained = (merit - merit_there) / (-0.5 * slope @ step)
        shift = max(shift / 4.0, LEAST) if gained > GOOD else 2.0 * shift if gained < POOR else shift
        at, v, merit = there, v_there, merit_there
        if before - merit < ENOUGH * before:
            return Approached(at.x, iteration + 1)
    return Approached(at.x, min(most, MOST))


def _priced(program: Condensed, at: Point, price: float) -> tuple[np.ndarray, float]:
    """v (rows,), and the price of all."""
    c = program.values(at)
    v = np.maximum(c - program.upper, 0.0) - np.maximum(program.lower - c, 0.0)
    merit = program.objective(at) + price / 2.0 * float(v @ v)
    return v, merit if np.isfinite(merit) else np.inf

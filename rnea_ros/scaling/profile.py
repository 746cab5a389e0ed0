"""The fastest time law on a known path, inside limits of torque, torque rate, velocity, acceleration and jerk.

An initial law S(sigma) that is feasible, for instance a slow quintic from rest to rest, is played at a rate that varies,
s(t) = S(sigma(t)). The unknown is the square of that rate,

    y(sigma) = k^2,   k = d sigma / dt,   kappa = dk/dt = y'/2,   w = d kappa/dt = k y''/2          (' = d / d sigma)

and every constraint (terms.py) is a sum of (1, sqrt y, y, y'/2, y sqrt y, sqrt y y'/2, sqrt y y''/2) with known coefficients.
Torque and acceleration are linear in y without friction, torque rate is sqrt y times linear, and the time, the integral of
1 / sqrt y, is convex. Since an initial law that ends at rest has the t^3 of a jerk-limited start in it, y is smooth and
positive up to both ends, where sd^2 over s would have a branch point.

y is a cubic spline, so w is continuous, and so is the torque rate. An interior point method (barrier.py) starts from a
constant y, which is feasible where it is small enough, and every iterate is feasible at the points of its grid. The law found
on coarse grids becomes the initial law of the last one: y is then about 1 everywhere, and the grid uniform in the time of the
motion, fine where it is fast. Between the points a limit may still be exceeded a little. Hence the law is checked densely and
the worst places become points of the grid; last, the whole law is slowed by the factor of the closed form (closed_form.py).
What is returned has passed that check, at its own speed and at every constant fraction of it, if that is asked for: a motion
that falls as gravity lets it takes no braking power, but at half its speed it takes some.
"""

from __future__ import annotations

import numpy as np

from . import law as laws
from .closed_form import least_met
from .dense_look import DenseLook, dense_look
from .feasibility import check_bounded, check_rest
from .grid import CLOSE, LEVEL, PASS, Curve, Grid, NoLaw, Objectives, Progress
from .law import TimeLaw, divided
from .spline import Spline
from .terms import Constraints, played_at, shares

COARSE = 48  # intervals of the first grid
RESOLUTION = 0.04  # s of motion for each interval of the last grid, at most,
FINE = 10_000  # if these make no more intervals
MOST = 1536  # intervals of a grid on the given initial law
OUTLINE = 4.0  # times as coarse may that grid be
START, COARSE_GAP, AGAIN, GAP = 0.3, 0.1, 0.1, 2e-3  # mu times the number of inequalities, as a share of the time
GAP_ON_SCHEDULE = 3e-4
ROUNDS = 4  # of tightening
ENOUGH = 0.9995  # of what may be used: a law that is slowed by so little is not worth another round
RATES = (1.0, 0.9995, 0.999, 0.998, 0.995, 0.98, 0.95, 0.9)  # of a law that may break limits where it is played slower
TAKEN_BACK = (1.0, 0.99, 0.95, 0.8, 0.5, 0.2, 0.0)


def fastest(constraints: Constraints, initial: TimeLaw | None = None, moving: bool = False, ceiling: Curve | None = None,
            due: Curve | None = None, planned: TimeLaw | None = None, resolution: float = RESOLUTION,
            progress: Progress | None = None, slower_too: bool = True, joined: bool = False) -> TimeLaw:
    """The fastest law from rest to rest over the whole path, or over the way of `initial`, a law that ends at rest.

    initial  : a law to begin with; default quintic over the path; cubic if nothing bounds sddd
    moving   : the law starts with sd and sdd of the initial one, which must be inside the limits
    ceiling  : s -> the largest sd there
    due      : s -> the earliest time there: the law is never ahead of that, and as little behind as can be
    planned  : with due: a law that is never ahead; another one to begin with, the better one counts
    progress : called with what is being done and the duration so far
    joined   : with moving: it ends with sd and sdd of the initial one, which does not come to rest
    slower_too : whether every slower playing of the law must be inside the limits, as one needs that is to be paused
    Raises InputError where gravity alone exceeds a limit or nothing bounds acceleration, NoLaw.
    """
    if initial is None:
        check_rest(constraints, LEVEL)
        initial = laws.rest_to_rest(0.0, constraints.path.length, 1.0, 3 if constraints.third_order else 2)
    check_bounded(constraints, initial.start, initial.end)
    objectives = Objectives(moving, ceiling, due, progress, joined)
    gap, knots = GAP if due is None else GAP_ON_SCHEDULE, initial.corners
    if not moving:
        starts = (initial,) if planned is None else (initial, planned)
        outlines = [_outlined(constraints, start, resolution, objectives, planned) for start in starts]
        initial, knots = min(outlines, key=lambda outline: outline[0].duration)
    if due is not None and not moving:  # the shape of a schedule, unlike that of limits, may be far from the initial one's
        grid = _grid_on(constraints, initial, _subdivided(knots, OUTLINE * resolution), objectives)
        initial, knots = grid.law(grid.solve(grid.inside(np.ones(grid.intervals + 3)), START, gap))
    grid = _grid_on(constraints, initial, _subdivided(knots, (2.0 if moving else 1.0) * resolution), objectives)
    near = np.ones(grid.intervals + 3)
    if moving or due is not None:
        c = grid.solve(grid.inside(near), START, gap)
    else:
        c = grid.solve(grid.inside(near), AGAIN, gap, near)
    return _tightened(constraints, grid, c, gap, slower_too)


def _tightened(constraints: Constraints, grid: Grid, c: np.ndarray, gap: float, slower_too: bool) -> TimeLaw:
    """The best law of some rounds, each with limits kept also where the one before exceeded them."""
    moving, most, best = grid.objectives.moving, grid.most, None
    for number in range(ROUNDS + 1):
        law = grid.law(c)[0]
        look = dense_look(constraints, law, most)
        slow = slowed(constraints, law, slower_too, look, most)
        if (not moving or slow is law) and (best is None or slow.duration < best.duration):
            best = slow
        if look.used.max() <= (most if moving else most / ENOUGH) or number == ROUNDS:
            break
        grid.tighten(law, look)
        c = grid.solve(grid.inside(c), AGAIN, gap, c)
    return _passed(constraints, grid, c) if best is None else best


def _outlined(constraints: Constraints, initial: TimeLaw, resolution: float, objectives: Objectives,
              planned: TimeLaw | None = None) -> tuple[TimeLaw, np.ndarray]:
    """A law that is about right, and its knots: by grids on the initial one, each twice as fine as the one before."""
    spline = Spline(np.linspace(0.0, initial.duration, COARSE + 1))
    slow = _slow_start(constraints, initial, objectives)
    c = np.full(COARSE + 3, slow * slow)
    if planned is not None:  # what is nowhere faster than a schedule is never ahead of it
        under = objectives._replace(due=None, ceiling=lambda s: planned(planned.time_at(s))[1])
        grid = Grid(constraints, initial, spline, slow, under)
        c = grid.solve(grid.inside(c), START, COARSE_GAP)
    grid = Grid(constraints, initial, spline, slow, objectives)
    c = grid.solve(grid.inside(c), START, COARSE_GAP)
    while spline.intervals == COARSE or spline.intervals < min(MOST, grid.time(c) / (OUTLINE * resolution)):
        spline, c = spline.halved(c)
        grid = Grid(constraints, initial, spline, slow, objectives)
        c = grid.solve(grid.inside(c), AGAIN, COARSE_GAP, c)
    return grid.law(c)


def _grid_on(constraints: Constraints, initial: TimeLaw, knots: np.ndarray, objectives: Objectives) -> Grid:
    return Grid(constraints, initial, Spline(knots), _slow_start(constraints, initial, objectives), objectives)


def _slow_start(constraints: Constraints, initial: TimeLaw, objectives: Objectives) -> float:
    """A constant rate of the initial law to start from that is inside the limits."""
    return 1.0 if objectives.moving else 0.95 * steady(constraints, initial, LEVEL)


def slowed(constraints: Constraints, law: TimeLaw, slower_too: bool = True, look: DenseLook | None = None,
           share: float = PASS) -> TimeLaw:
    """The law at the largest constant factor up to 1 at which it, and every slower one, is inside a share of the limits.

    Not slower_too: at one of RATES, if it is inside at that one and this is faster.
    look: at the law, if there was one
    """
    look = look or dense_look(constraints, law, share)
    polynomials, offset = look.polynomials, constraints.offset[look.of]
    factor = largest(polynomials, share, offset)
    if not slower_too:
        for rate in (rate for rate in RATES if rate > factor):
            if shares(played_at(polynomials.T, rate), offset).max(initial=0.0) <= share:
                return law.slower(rate)
    return law if factor >= 1.0 else law.slower(factor * (1.0 - 1e-12))


def _passed(constraints: Constraints, grid: Grid, c: np.ndarray) -> TimeLaw:
    """The same for a law that starts in motion: it can only be taken back towards the one that it was made from."""
    for share in TAKEN_BACK:
        law, _ = grid.law(share * c + (1.0 - share))
        if steady_factor(constraints, law, grid.most) >= 1.0:
            return law
    raise NoLaw("the law to start from is not inside the limits")


def steady_factor(constraints: Constraints, law: TimeLaw, share: float) -> float:
    """The largest constant rate up to 1 at which a law, and every slower one, keeps to a share of the limits everywhere."""
    look = dense_look(constraints, law, share, lambda polynomials, of: largest(polynomials, share, constraints.offset[of]))
    return largest(look.polynomials, share, constraints.offset[look.of], look.rate)


def steady(constraints: Constraints, law: TimeLaw, share: float, most: float = 1e4) -> float:
    """The largest constant rate of a law inside a share of the limits, as seen on a coarse grid."""
    motion = law(np.linspace(0.0, law.duration, 2 * COARSE + 1))
    polynomials = constraints.polynomials(motion)
    return largest(polynomials.reshape(-1, 4), share, np.tile(constraints.offset, len(polynomials)), most)


def largest(polynomials: np.ndarray, share: float, offset: np.ndarray, most: float = 1.0) -> float:
    """The largest constant rate up to `most` of a motion that keeps to a share of the limits, by its polynomials (count, 4) of
    terms.py and the offsets (count,) of their constraints: those of closed_form.py."""
    scaled = polynomials / share
    scaled[:, 0] += offset * (1.0 - 1.0 / share)
    return least_met(scaled, most)


def _subdivided(knots: np.ndarray, longest: float) -> np.ndarray:
    """With so many equal parts of each interval that none is longer, and without those next to others. FINE parts will do."""
    longest = max(longest, float(knots[-1] - knots[0]) / FINE)
    first, inner, last = np.split(knots, (1, len(knots) - 1))
    apart = np.minimum(np.diff(knots[:-1]), last - inner) > CLOSE * longest
    knots = np.concatenate((first, inner[apart], last))
    start, _, _ = divided(knots[:-1], knots[1:], np.ceil(np.diff(knots) / longest).astype(int))
    return np.append(start, knots[-1])

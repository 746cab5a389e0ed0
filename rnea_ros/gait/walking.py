"""Walking predicted: the step of least effort (5.1) that keeps everything that step.py asks for.

    J = integral of sum_j (tau_j / strength_j)^2 dt + SMOOTHING / T integral of sum_j qdd_j^2 dt

The first term is (5.1). The second is ours: light joints would otherwise quiver at no cost. The step continues as its mirror
image (5.8).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import InputError
from ..planning.bspline import Curve, averages
from ..planning.planner import plan
from ..planning.problem import SAME, Cost, EndState, Problem, both, of_motion, tied
from ..planning.settings import Report, Settings
from .step import STAIRS, Conditions, Step
from .walk import Walk, mirrored
from .walker import Walker

SMOOTHING = 1e-6  # [s^3/rad^2]
TOLERANCE = 5e-4  # of limits between the instants, relative
DENSITY = 2.2  # instants for each control point
OPTIMALITY = 1e-3  # as in the thesis
DAMPING = 1e-2  # where first derivatives see no curvature
REMEDY = "Another speed, a step of another length or more control points"


def walk(walker: Walker, step: Step = Step(), control_points: int = 6, report: Report = lambda progress: None,
         guess: Curve | None = None, most: int = 400) -> Walk:
    """The predicted step. PlanningError, where there is none, says what stands in the way.

    By first derivatives alone, whose steps are cheap and robust, until limits are kept between the instants too. What goes
    beyond the thesis is asked for once there is a step without it.

    control_points : of each coordinate, 6 as in the thesis or more
    guess          : a curve to start from; default all joints at zero, see `gliding`
    most           : iterations of each of the solver's calls
    """
    curve, iterations = guess or gliding(walker, step, control_points), 0
    near = Settings(gauss_newton=True, damping=DAMPING, optimality=OPTIMALITY, tolerance=TOLERANCE, iterations=most,
                    instants=instants(step, control_points))
    plain = replace(step, smooth=False, transfer=False, upright=False)
    for asked, settings in [(plain, replace(near, tolerance=1.0)), (step, near)][step == plain:]:
        found = plan(problem(walker, asked), settings, report, curve, REMEDY)
        curve, iterations = found.curve, iterations + found.iterations
    return Walk(walker, step, replace(found, iterations=iterations))


def problem(walker: Walker, step: Step) -> Problem:
    quantities, n = Conditions(walker, step).all(), walker.n
    mirror, ahead = mirrored(walker.joint_names), np.zeros(n)
    ahead[walker.joint_names.index("forward")] = step.length
    ties = [tied(order, mirror, ahead * (order == 0)) for order in range(3 if step.smooth else 2)]
    torques = [quantity for quantity in quantities if quantity.name.startswith("torque")]
    free = np.full(n, np.inf)
    terms = [(np.isfinite(quantity.upper).astype(float), quantity) for quantity in torques]
    terms.append((np.full(n, SMOOTHING / step.duration), of_motion(2, walker.joint_names, -free, free)))
    return Problem(EndState.free(n), EndState.free(n), quantities, Cost(time=0.0, more=terms), (step.duration,) * 2,
                   both(*ties))


def gliding(walker: Walker, step: Step, control_points: int) -> Curve:
    """All joints at zero, where the thesis starts from, upright and carried along at the speed of the step; on even knots."""
    if not 6 <= control_points <= 40:
        raise InputError(f"{control_points} control points; 6 to 40 are allowed")
    points = np.zeros((control_points, walker.n))
    points[:, walker.joint_names.index("up")] = walker.human.standing_height
    points[:, walker.joint_names.index("forward")] = step.length * averages(breaks(control_points), 3)
    return Curve(3, breaks(control_points), points, step.duration)


def breaks(control_points: int) -> np.ndarray:
    """Even knots of cubic splines."""
    return np.linspace(0.0, 1.0, control_points - 2)


def instants(step: Step, control_points: int) -> tuple[float, ...]:
    """Where limits are kept: about DENSITY for each control point, evenly in every phase; where phases meet, for both; where
    the curve's pieces meet, since accelerations have a kink there."""
    ends = np.array([0.0, step.toe_off, step.heel_off, 1.0])
    steps = np.maximum(np.round(np.diff(ends) * DENSITY * control_points), 2).astype(int)
    inside = [np.linspace(a, b, count + 1) for a, b, count in zip(ends, ends[1:], steps)]
    found = np.concatenate(inside)
    asked = [step.mid_swing, *breaks(control_points), *(np.linspace(0.0, step.toe_off, STAIRS + 1) if step.transfer else [])]
    missing = [u for u in asked if np.abs(found - u).min() > SAME]
    return tuple(np.sort(np.append(found, missing)).tolist())

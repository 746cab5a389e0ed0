"""Walking predicted: the step of least effort (5.1) that keeps everything that step.py asks for.

    J = integral of sum_j (tau_j / strength_j)^2 dt + SMOOTHING / T integral of sum_j qdd_j^2 dt

The first term is (5.1). The second is ours: light joints would otherwise quiver at no cost. The step continues as its mirror
image (5.8).
"""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..planning.bspline import Curve
from ..planning.planner import plan
from ..planning.problem import SAME, Cost, Problem, State, both, of_motion, tied
from ..planning.settings import Report, Settings
from .step import STAIRS, Conditions, Step
from .walk import Walk, mirrored
from .walker import Walker

SMOOTHING = 1e-6  # [s^3/rad^2]
TOLERANCE = 1e-3  # of limits between the nodes, relative
ROUGH = {"acceptable_tol": 1e-2, "acceptable_iter": 10, "acceptable_constr_viol_tol": 1e-3, "acceptable_obj_change_tol": 1e-3}
DAMPING = 1e-2  # of the Hessian, beyond the thesis
DENSITY = 2.2  # instants for each control point
SOLVER = {"tol": 1e-3, "nlp_scaling_method": "none", "mu_strategy": "adaptive"}  # scaling by gradients stops far too early


def walk(walker: Walker, step: Step = Step(), control_points: int = 6, report: Report = lambda progress: None,
         guess: Curve | None = None, iterations: int = 400) -> Walk:
    """The predicted step. PlanningError, where there is none, says what stands in the way.

    control_points : of each coordinate, 6 as in the thesis or more
    guess          : a curve to start from; default all joints at zero, hips at standing height
    """
    beyond = step.smooth or step.transfer  # there the last digits take long
    settings = Settings(gauss_newton=True, damping=DAMPING if beyond else 0.0, tolerance=TOLERANCE, iterations=iterations,
                        solver=SOLVER | (ROUGH if beyond else {}), instants=instants(step, control_points))
    start = standing(walker, step, control_points) if guess is None else guess
    if beyond:  # from far away, limits that are drawn in are hard to meet
        start = plan(problem(walker, step, in_hand=False), settings, report, start).curve
    return Walk(walker, step, plan(problem(walker, step), settings, report, start))


def problem(walker: Walker, step: Step, in_hand: bool = True) -> Problem:
    quantities, n = Conditions(walker, step, in_hand=in_hand).all(), walker.n
    mirror, ahead = mirrored(walker.joint_names), np.zeros(n)
    ahead[walker.joint_names.index("forward")] = step.length
    ties = [tied(order, mirror, ahead * (order == 0)) for order in range(3 if step.smooth else 2)]
    torques = [quantity for quantity in quantities if quantity.name.startswith("torque")]
    free = np.full(n, np.inf)
    terms = [(np.isfinite(quantity.upper).astype(float), quantity) for quantity in torques]
    terms.append((np.full(n, SMOOTHING / step.duration), of_motion(2, walker.joint_names, -free, free)))
    return Problem(State.free(n), State.free(n), quantities, Cost(time=0.0, more=terms), (step.duration,) * 2, both(*ties))


def standing(walker: Walker, step: Step, control_points: int) -> Curve:
    """All joints at zero, standing still, on even knots: where the thesis starts from."""
    if not 6 <= control_points <= 40:
        raise InputError(f"{control_points} control points; 6 to 40 are allowed")
    points = np.zeros((control_points, walker.n))
    points[:, walker.joint_names.index("up")] = walker.human.standing_height
    return Curve(3, np.linspace(0.0, 1.0, control_points - 2), points, step.duration)


def instants(step: Step, control_points: int) -> tuple[float, ...]:
    """Where limits are kept: about DENSITY for each control point, evenly in every phase; where phases meet, for both."""
    ends = np.array([0.0, step.toe_off, step.heel_off, 1.0])
    steps = np.maximum(np.round(np.diff(ends) * DENSITY * control_points), 2).astype(int)
    inside = [np.linspace(a, b, count + 1) for a, b, count in zip(ends, ends[1:], steps)]
    found = np.concatenate(inside)
    asked = [step.mid_swing, *(np.linspace(0.0, step.toe_off, STAIRS + 1) if step.transfer else [])]
    missing = [u for u in asked if np.abs(found - u).min() > SAME]
    return tuple(np.sort(np.append(found, missing)).tolist())

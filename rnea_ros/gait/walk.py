"""Predicted walking: the step of least effort (5.1) under the conditions of step.py, the stride it makes, and its assessment.

    J = integral of sum_j (tau_j / strength_j)^2 dt + ACCELERATION_WEIGHT / T integral of sum_j qdd_j^2 dt

The first term is (5.1). The second one is ours: light joints would otherwise oscillate at no cost. The step continues as its
mirror image (5.8).

Measured walking for comparison: M. Schwartz, A. Rozumalski, J. Trost, J. Biomechanics 41 (2008) 1639-1650. Free speed,
typically developing children; angles in degrees at 0, 10, .. 100 % of a stride that begins with the foot's strike. The
clinical pelvis leans forward by about 12 degrees more than ours, so the mean hip angle is not comparable, only its course.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from ..planning.bspline import Curve, PlannedMotion, greville_abscissae
from ..planning.planner import plan
from ..planning.problem import (
    SAME_INSTANT,
    Cost,
    EndState,
    PlanningProblem,
    PlanSettings,
    Report,
    coupled_ends,
    join_conditions,
    motion_quantity,
)
from ..robots.inputs.conditions import Loads
from .skeleton import SIDES
from .step import TRANSFER_INSTANTS, StepConditions, WalkingStep
from .walker import BETWEEN_POINTS, DOUBLE, SINGLE, Walker, foot_wrenches, zero_moment_point

MEASURED_SHARES = np.linspace(0.0, 1.0, 11)
MEASURED_ANGLES = {
    "hip_flexion": (35.8, 32.8, 22.5, 11.4, 1.6, -5.3, -0.9, 17.9, 32.0, 36.7, 35.5),
    "knee_flexion": (5.6, 18.6, 16.5, 10.1, 6.2, 11.6, 33.9, 58.2, 49.8, 18.7, 5.4),
    "ankle_dorsiflexion": (-2.1, -2.1, 5.2, 8.6, 11.1, 10.4, -13.8, -11.2, 1.1, 1.0, -2.3),
}
ANGLE_STD = {"hip_flexion": 6.0, "knee_flexion": 6.0, "ankle_dorsiflexion": 5.0}  # standard deviation, about [deg]
PELVIS_LEAN = 12.0  # forward lean of the clinical pelvis [deg]


def compare_with_measured(joint: str, share: np.ndarray, angle: np.ndarray) -> tuple[float, float]:
    """Return correlation and root mean square difference [deg] of an angle [deg] over the stride; the hip's without its mean.
    """
    measured, found = np.array(MEASURED_ANGLES[joint]), np.interp(MEASURED_SHARES, share, angle)
    difference = found - measured
    if joint == "hip_flexion":
        difference = difference - difference.mean()
    return float(np.corrcoef(found, measured)[0, 1]), float(np.sqrt((difference**2).mean()))


MIRROR = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # of a force and a moment, left and right
LEG_JOINTS = {"hip": "hip_flexion", "knee": "knee_flexion", "ankle": "ankle_dorsiflexion"}
CHECKED_SAMPLES = 300  # samples of the step in checks: more than ten times the instants of the plan


@dataclass(frozen=True, eq=False)
class Stride:
    """Two steps, from one strike of the right heel to the next; samples first.

    share     : of the stride, 0 to 1; t [s]
    q, qd, qdd, tau : (samples, n); the torques of the global coordinates are residuals
    floor     : F and M (samples, 2, 6) on the right and on the left foot, about the world's origin [N, N m]
    toes      : (samples, 2) part of it that the toes bear, a moment about y [N m]
    pressure  : zero-moment point (samples, 2), x and y [m]
    transmitted : {hip, knee, ankle: (samples,)} norm of the force through the right leg's joint [N]
    """

    share: np.ndarray
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    floor: np.ndarray
    toes: np.ndarray
    pressure: np.ndarray
    transmitted: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Walk:
    """Predicted step of a walker: the step's parameters and the planned motion."""

    walker: Walker
    step: WalkingStep
    plan: PlannedMotion

    def stride(self, samples: int = 201) -> Stride:
        """Return the stride at evenly spread instants of each step; twice where the steps meet, for discontinuities."""
        walker, u = self.walker, np.linspace(0.0, 1.0, samples // 2 + 1)
        motion = self.plan(u * self.plan.duration)[:3]
        tau, floor, toes, right, left = self._loaded(u, motion)
        mirror, ahead = mirror_matrix(walker.joint_names), np.zeros(walker.n)
        ahead[walker.joint_names.index("forward")] = self.step.length
        total = floor.sum(axis=1)
        pressure = np.array([zero_moment_point(wrench[:3], wrench[3:]) for wrench in total])
        second = floor[:, ::-1] * MIRROR
        second[..., 3:] += np.cross([self.step.length, 0.0, 0.0], second[..., :3])
        q, qd, qdd = (np.concatenate((x, x @ mirror.T)) for x in motion)
        q[len(u):] += ahead
        return Stride(np.append(u / 2, 0.5 + u / 2), np.append(u, 1.0 + u) * self.plan.duration, q, qd, qdd,
                      np.concatenate((tau, tau @ mirror.T)), np.concatenate((floor, second)),
                      np.concatenate((toes, toes[:, ::-1])),
                      np.concatenate((pressure, pressure * (1.0, -1.0) + (self.step.length, 0.0))),
                      {name: np.append(right[name], left[name]) for name in LEG_JOINTS})

    def _loaded(self, u, motion):
        """Return torques, loads of both feet and of their toes, and joint forces of both legs along the step."""
        tau, floor, toes = np.zeros_like(motion[0]), np.zeros((len(u), 2, 6)), np.zeros((len(u), 2))
        norms = [{name: np.zeros(len(u)) for name in LEG_JOINTS} for _ in SIDES]
        double = u <= self.step.toe_off
        for bearing, at in ((DOUBLE, np.flatnonzero(double)), (SINGLE, np.flatnonzero(~double))):
            q, qd, qdd = part = [x[at] for x in motion]
            tau[at] = self.walker.torque(bearing, part)
            loads = self.walker.loads(bearing, part)
            found = self.walker.robot.joint_wrenches(q, qd, qdd, loads=Loads(world_wrenches=loads))
            toes[at] = np.column_stack([loads[f"{side}_toes"][:, 4] for side in SIDES])
            for side, table in zip(SIDES, norms):
                for name, joint in LEG_JOINTS.items():
                    wrench = found.wrench[:, found.joints.index(f"{side}_{joint}")]
                    table[name][at] = np.linalg.norm(wrench[:, :3], axis=1)
            if bearing is SINGLE:
                floor[at, 0] = self.walker.floor_wrench(part).value
            else:
                floor[at] = self.walker.evaluate_ground(foot_wrenches, BETWEEN_POINTS, part).value.reshape(-1, 2, 6)
        return tau, floor, toes, *norms

    # ------------------------------------------------------------------ assessment

    def excess(self, at: Sequence[float] | None = None) -> dict[str, float]:
        """Return the largest excess of each quantity over its limits in its own unit: rad, m, m^2, share of strength or load.

        Negative: margin. at: shares of the step; None: many, and where phases meet.
        """
        events = self.step.toe_off, self.step.heel_off, self.step.mid_swing
        u = np.unique(np.append(np.linspace(0.0, 1.0, CHECKED_SAMPLES + 1), events)) if at is None else np.asarray(at)
        motion = np.stack(self.plan(u * self.plan.duration), axis=1)
        worst: dict[str, float] = {}
        for quantity in StepConditions(self.walker, self.step).all():
            beyond = quantity.excess(motion, u) * quantity.scale
            worst[quantity.name] = max(float(beyond.max()), worst.get(quantity.name, -np.inf))
        return worst

    def report(self) -> dict[str, float]:
        """Return the figures for the assessment of the walk."""
        stride, names = self.stride(), self.walker.joint_names
        found: dict[str, float] = {"effort": self.effort()}
        for joint in MEASURED_ANGLES:
            angle = np.degrees(stride.q[:, names.index(f"right_{joint}")])
            correlation, difference = compare_with_measured(joint, stride.share, angle)
            found[f"{joint} correlation"], found[f"{joint} difference [deg]"] = correlation, difference
            found[f"{joint} min [deg]"], found[f"{joint} max [deg]"] = float(angle.min()), float(angle.max())
        force = stride.floor[:, 0, :3] / self.walker.weight
        stance = np.flatnonzero(force[:, 2] > 0.0)
        vertical = force[stance, 2]
        first, last = np.array_split(vertical, 2)
        low = int(first.argmax()), len(first) + int(last.argmax())
        found |= {"first peak [weight]": float(first.max()), "valley [weight]": float(vertical[low[0]:low[1] + 1].min()),
                  "second peak [weight]": float(last.max()), "braking [weight]": float(-force[:, 0].min()),
                  "pushing [weight]": float(force[:, 0].max()), "sideways [weight]": float(np.abs(force[:, 1]).max()),
                  "residual at the root [N, N m]": float(np.abs(stride.tau[:, :6]).max()),
                  "excess": max(self.excess().values())}
        return found

    def effort(self) -> float:
        """Return (5.1) alone, by Simpson's rule."""
        u = np.linspace(0.0, 1.0, 401)
        motion = np.stack(self.plan(u * self.plan.duration), axis=1)
        double, single = (quantity.values(motion) for quantity in StepConditions(self.walker, self.step).torques()
                          if quantity.name.startswith("torque"))
        shares = np.where(u[:, None] <= self.step.toe_off, double, single)
        weights = np.tile([2.0, 4.0], 201)[:401]
        weights[[0, -1]] = 1.0
        return float(weights @ (shares**2).sum(axis=1) * self.plan.duration / 1200.0)


def mirror_matrix(joint_names: tuple[str, ...]) -> np.ndarray:
    """Return the matrix (n, n) of the mirrored posture: right and left are exchanged, lateral coordinates change sign."""
    matrix = np.zeros((len(joint_names),) * 2)
    for k, name in enumerate(joint_names):
        if name.startswith(("right_", "left_")):
            side, rest = name.split("_", 1)
            matrix[k, joint_names.index(("left_" if side == "right" else "right_") + rest)] = 1.0
        else:
            aside = name in ("sideways", "pelvis_rotation", "pelvis_list") or name.endswith(("_bending", "_rotation"))
            matrix[k, k] = -1.0 if aside else 1.0
    return matrix


ACCELERATION_WEIGHT = 1e-6  # [s^3/rad^2]
LIMIT_TOL = 5e-4  # relative tolerance of limits between the instants
INSTANTS_PER_CONTROL_POINT = 2.2
OPTIMALITY_TOL = 1e-3  # as in the thesis
HESSIAN_DAMPING = 1e-2  # where first derivatives contain no curvature
REMEDY = "Another speed, a step of another length or more control points"


def predict_walk(walker: Walker, step: WalkingStep = WalkingStep(), control_points: int = 6,
                 report: Report = lambda progress: None, guess: Curve | None = None, most: int = 400) -> Walk:
    """Return the predicted step. Raises PlanningError with the reason if there is none.

    By first derivatives only (Gauss-Newton), whose steps are cheap and robust, until limits hold between the instants too.
    Conditions beyond the thesis are added once there is a step without them.

    control_points : of each coordinate, 6 as in the thesis or more
    guess          : initial curve; None: see initial_guess
    most           : iterations of each solver call
    """
    curve, iterations = guess or initial_guess(walker, step, control_points), 0
    near = PlanSettings(gauss_newton=True, damping=HESSIAN_DAMPING, optimality=OPTIMALITY_TOL, tolerance=LIMIT_TOL,
                    iterations=most, instants=instants(step, control_points))
    plain = replace(step, smooth=False, transfer=False, upright=False)
    for asked, settings in [(plain, replace(near, tolerance=1.0)), (step, near)][step == plain:]:
        found = plan(walking_problem(walker, asked), settings, report, curve, REMEDY)
        curve, iterations = found.curve, iterations + found.iterations
    return Walk(walker, step, replace(found, iterations=iterations))


def walking_problem(walker: Walker, step: WalkingStep) -> PlanningProblem:
    """Return the planning problem of a step."""
    quantities, n = StepConditions(walker, step).all(), walker.n
    mirror, ahead = mirror_matrix(walker.joint_names), np.zeros(n)
    ahead[walker.joint_names.index("forward")] = step.length
    ties = [coupled_ends(order, mirror, ahead * (order == 0)) for order in range(3 if step.smooth else 2)]
    torques = [quantity for quantity in quantities if quantity.name.startswith("torque")]
    free = np.full(n, np.inf)
    terms = [(np.isfinite(quantity.upper).astype(float), quantity) for quantity in torques]
    terms.append((np.full(n, ACCELERATION_WEIGHT / step.duration), motion_quantity(2, walker.joint_names, -free, free)))
    return PlanningProblem(EndState.free(n), EndState.free(n), quantities, Cost(time=0.0, more=terms), (step.duration,) * 2,
                   join_conditions(*ties))


def initial_guess(walker: Walker, step: WalkingStep, control_points: int) -> Curve:
    """Return the initial guess of the thesis on even knots: all joints at zero, upright, translated at the speed of the step.
    """
    if not 6 <= control_points <= 40:
        raise InputError(f"{control_points} control points; 6 to 40 are allowed")
    points = np.zeros((control_points, walker.n))
    points[:, walker.joint_names.index("up")] = walker.human.standing_height
    points[:, walker.joint_names.index("forward")] = step.length * greville_abscissae(breaks(control_points), 3)
    return Curve(3, breaks(control_points), points, step.duration)


def breaks(control_points: int) -> np.ndarray:
    """Return even breaks of cubic splines."""
    return np.linspace(0.0, 1.0, control_points - 2)


def instants(step: WalkingStep, control_points: int) -> tuple[float, ...]:
    """Return the instants at which limits are enforced.

    About INSTANTS_PER_CONTROL_POINT for each control point, evenly in every phase; twice where phases meet; at breaks, where
    accelerations have a kink.
    """
    ends = np.array([0.0, step.toe_off, step.heel_off, 1.0])
    steps = np.maximum(np.round(np.diff(ends) * INSTANTS_PER_CONTROL_POINT * control_points), 2).astype(int)
    inside = [np.linspace(a, b, count + 1) for a, b, count in zip(ends, ends[1:], steps)]
    found = np.concatenate(inside)
    asked = [step.mid_swing, *breaks(control_points)]
    if step.transfer:
        asked += [*np.linspace(0.0, step.toe_off, TRANSFER_INSTANTS + 1)]
    missing = [u for u in asked if np.abs(found - u).min() > SAME_INSTANT]
    return tuple(np.sort(np.append(found, missing)).tolist())

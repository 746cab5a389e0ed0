"""Predicted walking: the step of least effort (5.1), the stride it makes, and its assessment.

    J = integral of sum_j (tau_j / strength_j)^2 dt + ACCELERATION_WEIGHT / T integral of sum_j qdd_j^2 dt

The first term is (5.1). The second one is ours: light joints would otherwise oscillate at no cost. The step continues as its
mirror image (5.8).

Measured walking for comparison: M. Schwartz, A. Rozumalski, J. Trost, J. Biomechanics 41 (2008) 1639-1650. Free speed,
typically developing children; angles in degrees at 0, 10, .. 100 % of a stride that begins with the foot's strike. The
clinical pelvis leans forward by about 12 degrees more than ours, so the mean hip angle is not comparable, only its course.

One step of walking and its conditions in the thesis, (5.2)-(5.10), as limited quantities.

The step begins when the right heel strikes and ends when the left one does; the right leg is the stance leg. Shares u of its
duration T = length / speed at which the phase changes:

    0         right heel strikes; the left foot stands on its toes
    toe_off   left toes leave the ground; the right foot is flat
    heel_off  right heel leaves the ground; the ball and the toes stay
    1         left heel strikes

Where two phases meet, the conditions of both hold. Contacts are held within a tolerance instead of y = 0 and zero velocity
(5.4): with six control points, equality at many instants leaves no freedom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError, some
from ..planning.bspline import Curve, PlannedMotion, greville_abscissae
from ..planning.planner import plan
from ..planning.problem import (
    SAME_INSTANT,
    Cost,
    EndState,
    PlanningProblem,
    PlanSettings,
    Quantity,
    Report,
    coupled_ends,
    join_conditions,
    motion_quantity,
)
from ..robots.conditions import Loads
from .skeleton import PASSIVE_JOINTS, SIDES, passive_moments
from .walker import (
    BETWEEN_POINTS,
    DOUBLE,
    SINGLE,
    Walker,
    ball_contact,
    between_feet,
    distance_squared,
    foot_wrenches,
    front_share,
    pendulum_product,
    point_heights,
    position,
    zero_moment_point,
)

# ------------------------------------------------------------------ one step


XYZ = ("x", "y", "z")
HALF_FOOT = 0.045  # half the width of a foot [m]
BEHIND_BALL = 0.03  # largest distance of the centre of pressure behind the ball's joint with the heel off [m]
MAX_LATERAL_OFFSET = 0.04  # of the zero-moment point from the line between the feet in double support [m]
PENDULUM_TOL = 1e-3  # tolerance of (5.6), whose derivative vanishes where both pendulums hang straight [m^2]
WRIST_HIP_DISTANCE = 0.17  # radii of the spheres at wrist and hip, (5.7) [m]
TRANSFER_INSTANTS = 4  # instants after the first at which the transfer of load is limited
TRANSFER_LAG, TRANSFER_LEAD = 0.25, 0.10  # largest deviation of the front foot's share from a linear transfer, to both sides
MAX_TILT = np.radians(5.0)  # of the pelvis; measured tilts stay within about 3 degrees of their mean
KNEE_ANGLE = (np.radians(60.0), np.radians(5.0))  # at mid-swing and its tolerance, (5.9)


@dataclass(frozen=True)
class WalkingStep:
    """Parameters of a step: speed [m/s], length [m], width between the heels [m], phases, and tolerance of contacts [m].

    toe_off, heel_off: shares of the duration, see the module. Beyond the thesis; the first three make the floor's force
    human-like, the fourth the angles of hip and ankle:
    smooth   : accelerations also continue as their mirror image in the next step, so that forces are continuous
    transfer : in double support the load moves from the rear to the front foot steadily, from nothing to all
    upright  : the pelvis stays almost upright; no other condition prevents nodding of the trunk at each step
    elastic  : ligaments and relaxed muscles bear their passive moments; effort and strength refer to the rest
    """

    speed: float = 1.2
    length: float = 0.6
    width: float = 0.1
    toe_off: float = 0.2
    heel_off: float = 0.6
    tolerance: float = 2e-3
    smooth: bool = False
    transfer: bool = False
    upright: bool = False
    elastic: bool = False

    def __post_init__(self) -> None:
        allowed = {"speed": (0.3, 2.5), "length": (0.2, 1.2), "width": (0.0, 0.4), "tolerance": (1e-5, 0.02)}
        for name, (low, high) in allowed.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name} of the step is {getattr(self, name):g}; {low:g} to {high:g} is allowed "
                                 f"[{'m/s' if name == 'speed' else 'm'}]")
        if not 0.0 < self.toe_off < self.heel_off < 1.0:
            raise InputError(f"toe_off and heel_off are {self.toe_off:g} and {self.heel_off:g} of the step; both must lie "
                             "inside it, in that order")

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.length / self.speed

    @property
    def mid_swing(self) -> float:
        """Middle of the swing, as a share of the step."""
        return (self.toe_off + 1.0) / 2.0

    @property
    def double_support(self) -> tuple[float, float]:
        """Interval of double support."""
        return 0.0, self.toe_off

    @property
    def single_support(self) -> tuple[float, float]:
        """Interval of single support."""
        return self.toe_off, 1.0


class StepConditions:
    """Limited quantities of a step of one walker, equation by equation. The right heel strikes at x = 0."""

    def __init__(self, walker: Walker, step: WalkingStep):
        self.walker, self.step = walker, step
        heel, ball, tip = walker.human.sole
        self.ball, self.tip, self.side = ball - heel, tip - heel, step.width / 2.0

    def all(self) -> list[Quantity]:
        """Return all quantities."""
        extra = self.transfer() if self.step.transfer else []
        pendulums = any(joint.startswith("right_shoulder") for joint in self.walker.joint_names)
        return [self.angles(), *self.torques(), *self.contacts(), *self.clearances(), *self.balance(), self.knee(),
                self.landing(), *extra, *([*self.arms_and_legs(), *self.wrist_clearance()] if pendulums else [])]

    # ------------------------------------------------------------------ throughout

    def angles(self) -> Quantity:
        """Return limits of the joint angles, (5.2)."""
        names, limits = self.walker.joint_names, self.walker.robot.limits
        tilt = np.where(np.array(names) == "pelvis_tilt", MAX_TILT, np.inf) if self.step.upright else np.inf
        return motion_quantity(0, names, np.maximum(limits.lower, -tilt), np.minimum(limits.upper, tilt))

    def torques(self) -> list[Quantity]:
        """Return limits of the torques as shares of the strength in double and in single support, (5.3)."""
        return [quantity for support, window in ((DOUBLE, self.step.double_support), (SINGLE, self.step.single_support))
                for quantity in self.walker.torque_quantities(support, window, self._passive_torque)]

    def contacts(self) -> list[Quantity]:
        """Return positions of points in contact with the floor, (5.4), first line."""
        s = self.step
        ball, rear_tip = ["right_inner_ball", "right_outer_ball", "right_toe_tip"], (self.tip - s.length, self.side, 0.0)
        return [
            self._at("right heel", XYZ, position, ["right_heel"], (0.0, -self.side, 0.0), (0.0, s.heel_off)),
            self._at("right ball", (*XYZ, "tilt", "toe tip"), ball_contact, ball,
                     (self.ball, -self.side, 0.0, 0.0, 0.0), s.single_support),
            self._at("left toe tip", XYZ, position, ["left_toe_tip"], rear_tip, s.double_support)]

    def clearances(self) -> list[Quantity]:
        """Return heights of points above the floor, (5.4), second line."""
        s, toes = self.step, ["inner_ball", "outer_ball", "toe_tip"]
        windows = [(["left_heel", "left_inner_ball", "left_outer_ball"], (0.0, 1.0)), (["left_toe_tip"], s.single_support),
                   ([f"right_{name}" for name in toes], s.double_support), (["right_heel"], (s.heel_off, 1.0))]
        return [self.walker.point_quantity(f"height of {some(names)}", names, point_heights, names, np.zeros(len(names)),
                                np.full(len(names), np.inf), window) for names, window in windows]

    def balance(self) -> list[Quantity]:
        """Return the zero-moment point in the foot's polygon, or between the feet, over weight [m], (5.5)."""
        s = self.step
        flat, raised = (0.0, self.tip), (self.ball - BEHIND_BALL, self.tip)
        lower, upper = np.array([0.0, -MAX_LATERAL_OFFSET]), np.array([1.0, MAX_LATERAL_OFFSET])
        between = self.walker.ground_quantity("zero-moment point between the feet", ("share", "aside"), between_feet,
                                  BETWEEN_POINTS, lower, upper, s.double_support)
        return [between, *(self._in_foot(ends, window)
                           for ends, window in ((flat, (s.toe_off, s.heel_off)), (raised, (s.heel_off, 1.0))))]

    def arms_and_legs(self) -> list[Quantity]:
        """Return (5.6) with the walking direction, not the vertical: an arm swings with the other side's leg."""
        least = np.array([-PENDULUM_TOL])
        return [self.walker.point_quantity(f"{arm} arm with {leg} leg", ["product"], pendulum_product,
                                [f"{arm}_shoulder", f"{arm}_wrist", f"{leg}_hip", f"{leg}_ankle"], least, np.array([np.inf]))
                for arm, leg in (SIDES, SIDES[::-1])]

    def wrist_clearance(self) -> list[Quantity]:
        """Return the squared distance of wrists from hips, (5.7)."""
        least, most = np.array([WRIST_HIP_DISTANCE**2]), np.array([np.inf])
        return [self.walker.point_quantity(f"{side} wrist from hip", ["distance squared"], distance_squared,
                                [f"{side}_wrist", f"{side}_hip"], least, most) for side in SIDES]

    # ------------------------------------------------------------------ at one instant

    def knee(self) -> Quantity:
        """Return the knee angle in the middle of the swing, (5.9)."""
        middle, within = KNEE_ANGLE
        name = "left_knee_flexion"
        k = self.walker.joint_names.index(name)
        unit = np.eye(self.walker.n)[k:k + 1]
        return Quantity("knee at mid-swing", [name], 0, lambda q: q[:, k:k + 1],
                        lambda q: [np.broadcast_to(unit, (len(q), *unit.shape))], np.array([middle - within]),
                        np.array([middle + within]), linear=True, windows=[(self.step.mid_swing,) * 2])

    def landing(self) -> Quantity:
        """Return the position of the left heel one step ahead, (5.10). That of the right heel is its contact."""
        goal = self.step.length, self.side, 0.0
        return self._at("left heel at its strike", XYZ, position, ["left_heel"], goal, (1.0, 1.0))

    # ------------------------------------------------------------------ beyond the thesis

    def transfer(self) -> list[Quantity]:
        """Return limits of the front foot's share, which grows linearly within bounds at some instants."""
        passed = np.linspace(0.0, 1.0, TRANSFER_INSTANTS + 1)
        return [self.walker.ground_quantity("load on the front foot", ["share"], front_share, BETWEEN_POINTS,
                                np.array([max(share - TRANSFER_LAG, 0.0)]), np.array([min(share + TRANSFER_LEAD, 1.0)]),
                                (share * self.step.toe_off,) * 2) for share in passed]

    # ------------------------------------------------------------------ tools

    def _at(self, name: str, labels: Sequence[str], function: Callable, names: Sequence[str], goal: Sequence[float],
            window: tuple[float, float]) -> Quantity:
        return self.walker.contact_quantity(name, labels, function, names, goal, self.step.tolerance, window)

    def _passive_torque(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the passive torque (samples, n) and its derivative by q."""
        names, sides = self.walker.joint_names, SIDES if self.step.elastic else ()
        legs = [[names.index(f"{side}_{joint}") for joint in PASSIVE_JOINTS] for side in sides]
        return passive_moments(q, legs)

    def _in_foot(self, ends: tuple[float, float], window: tuple[float, float]) -> Quantity:
        """Return the distances from the four sides of the right foot, times the vertical force over weight."""
        left, right, weight = HALF_FOOT - self.side, -HALF_FOOT - self.side, self.walker.weight

        def distances(F, M):
            return [(-M[1] - F[2] * ends[0]) / weight, (M[1] + F[2] * ends[1]) / weight, (M[0] - F[2] * right) / weight,
                    (F[2] * left - M[0]) / weight]

        name = f"zero-moment point in the foot from {100 * ends[0]:.0f} cm"
        return self.walker.ground_quantity(name, ("behind", "ahead", "right", "left"), distances, [], np.zeros(4),
                                           np.full(4, np.inf), window)


# ------------------------------------------------------------------ walking


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

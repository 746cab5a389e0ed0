"""Predicted lifting of a box: the motion of least effort between two positions of the box, both feet on the floor.

Barman's thesis proposes it as future work (section 6.2), after Y. Xiang et al., Multibody System Dynamics 23 (2010) 431-451
and 46 (2019) 63-76. The objective is that of the walk,

    J = integral of sum_j (tau_j / strength_j)^2 dt + ACCELERATION_WEIGHT / T integral of sum_j qdd_j^2 dt

The lift is symmetric: q = E z, where one coordinate z moves both sides. The box stays level and is held at both sides at half
its height, so each hand carries half of its mass as a point at the grip; this is exact for a box that does not turn. The hands
hold the box from the first instant to the last, at rest at both: forces continue those of holding it still.

Lumbar load. M is the moment at L5/S1 about the lateral axis, and A the force that the spine transmits along itself, which is
the force of a slide that does not move (`skeleton.SPINE_SLIDE`). One equivalent extensor muscle at the lever arm EXTENSOR_ARM
balances M and presses the disc:

    compression = M / EXTENSOR_ARM + A

D. B. Chaffin, J. Biomechanics 2 (1969) 429-441 and the NIOSH guides since 1981 use this model with 5 cm; NIOSH names 3400 N as
the compression above which the risk grows (T. R. Waters et al., Ergonomics 36 (1993) 749-776). It has no abdominal pressure,
no ligaments and no antagonists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from ..planning.bspline import Curve, PlannedMotion, greville_abscissae
from ..planning.planner import PlanningError, plan
from ..planning.problem import Cost, EndState, PlanningProblem, PlanSettings, Quantity, Report, motion_quantity
from .muscles import RATES, MuscleStrength, RepeatedWork, fatigue_region
from .skeleton import SAGITTAL, SPINE_SLIDE, Human
from .walk import ACCELERATION_WEIGHT, HESSIAN_DAMPING, LIMIT_TOL, OPTIMALITY_TOL, XYZ, breaks, mirror_matrix
from .walker import (
    BOTH,
    Walker,
    ball_contact,
    foot_wrenches_of_both,
    point_heights,
    position,
    sagittal_distance_squared,
    zero_moment_point,
)

EXTENSOR_ARM = 0.05  # of the equivalent extensor muscle at L5/S1 [m]
NIOSH_COMPRESSION = 3400.0  # [N]
BODY_RADII = {"right_ankle": 0.05, "right_shank_middle": 0.06, "right_knee": 0.06, "right_thigh_middle": 0.08,
              "right_hip": 0.10, "t12_joint": 0.12}  # of spheres that the box, a cylinder of its depth, does not enter [m]
FRICTION = 0.5  # coefficient that keeps the feet from sliding
FOOT_MARGIN = 0.01  # least distance of the centre of pressure from heel and toe tip [m]
MAX_LEAN, MAX_EXTENSION = np.radians(90.0), np.radians(15.0)  # of the thorax from upright
# Share of the lumbar spine in the lean of the thorax: 36 of 90 degrees. Measured ranges of the lumbar curve in lifting:
# 36 +- 10 degrees stooping, 24 +- 7 in a free style, 25 +- 8 squatting (M. von Arx et al., Front. Bioeng. Biotechnol. 9, 2021)
LUMBAR_SHARE = 0.4
TRUNK = "trunk_extension"
ROOT = ("forward", "up", "pelvis_tilt")
STYLES = {"stoop": (0.3, 0.0, 1.5), "semi-squat": (1.3, 0.2, 1.5)}  # knee, ankle, lean of the deepest posture [rad]
GUESS_STEPS, ARM_REACH = 100, 0.98  # tried postures; largest distance of shoulder and hand over the length of the arm
INSTANTS_PER_SPAN = 6
CHECKED_SAMPLES = 200
MIN_STRENGTH = 1e-6  # where the muscles shorten so fast that they have none [N m]
REMEDY = "A lighter or nearer box, a longer duration, a higher lumbar limit or more control points"
LUMBAR_JOINTS = ("l5s1_extension", "l4l3_extension", "t12l1_extension")
LUMBAR = LUMBAR_JOINTS[0]
SLIDE = SPINE_SLIDE.name


@dataclass(frozen=True)
class LiftTask:
    """Parameters of a lift.

    box_mass        : [kg]
    box_size        : width between the hands, depth forwards, height [m]
    start, goal     : position of the hands, ahead of the ankles and above the floor [m]
    duration        : [s]
    stance          : distance between the ankles [m]; None: the distance of the hips
    max_moment      : of the moment at L5/S1 [N m]
    max_compression : of the disc L5/S1, in the module's model [N]
    tolerance       : of contacts and of the hands' positions [m]
    """

    box_mass: float = 10.0
    box_size: tuple[float, float, float] = (0.40, 0.30, 0.25)
    start: tuple[float, float] = (0.40, 0.25)
    goal: tuple[float, float] = (0.35, 1.00)
    duration: float = 1.5
    stance: float | None = None
    max_moment: float = np.inf
    max_compression: float = np.inf
    tolerance: float = 2e-3

    def __post_init__(self) -> None:
        width, depth, height = self.box_size
        allowed = {"mass of the box": (self.box_mass, 0.0, 100.0, "kg"), "width of the box": (width, 0.1, 1.0, "m"),
                   "depth of the box": (depth, 0.0, 1.0, "m"), "height of the box": (height, 0.0, 1.0, "m"),
                   "duration": (self.duration, 0.3, 20.0, "s"), "tolerance": (self.tolerance, 1e-5, 0.02, "m"),
                   "stance": (0.2 if self.stance is None else self.stance, 0.05, 0.8, "m"),
                   "maximum moment": (self.max_moment, 1.0, np.inf, "N m"),
                   "maximum compression": (self.max_compression, 1.0, np.inf, "N")}
        for name, (ahead, above) in (("start", self.start), ("goal", self.goal)):
            allowed |= {f"distance of the {name}": (ahead, 0.1, 1.0, "m"),
                        f"height of the {name}": (above, height / 2, 2.2, "m")}
        for name, (value, low, high, unit) in allowed.items():
            if not low <= value <= high:
                raise InputError(f"{name} is {value:g}; {low:g} to {high:g} is allowed [{unit}]"
                                 + (", half the height of the box at least" if name.startswith("height of the ") else ""))


class Lifter:
    """Walker that holds a box, restricted to symmetric postures q = E z (n, m); `names` are those of z.

    TRUNK, the extension of the thorax from upright, is shared by the pelvis and, in equal parts, the lumbar joints.
    """

    def __init__(self, person: Human, task: LiftTask, muscles: MuscleStrength | None = None, backend: str = "llvm"):
        self.person, self.task = person, task
        frozen = tuple(dict.fromkeys((*person.frozen, *SAGITTAL)))
        self.walker = Walker(replace(person, frozen=frozen, hand_load=task.box_mass / 2.0, spine_force=True), backend, muscles)
        names = self.walker.joint_names
        lumbar = [k for k, name in enumerate(names) if name in LUMBAR_JOINTS]
        single = [k for k, name in enumerate(names) if not (name.startswith("left_") or name == SLIDE or k in lumbar)]
        self.names = tuple(TRUNK if names[k] == "pelvis_tilt" else names[k] for k in single)
        self.E = np.maximum(np.eye(len(names)), mirror_matrix(names))[:, single]
        trunk = self.names.index(TRUNK)
        self.E[lumbar, trunk], self.E[names.index("pelvis_tilt"), trunk] = LUMBAR_SHARE / len(lumbar), 1.0 - LUMBAR_SHARE
        self.joints = [k for k in sorted((*single, *lumbar)) if names[k] not in ROOT]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints of the right side and of the spine, in the order of `joints`, their columns in q."""
        return tuple(self.walker.joint_names[k] for k in self.joints)

    def reduce(self, quantity: Quantity) -> Quantity:
        """Return a quantity of q, qd, .. as one of z, zd, ..."""
        E = self.E
        return replace(quantity, value=lambda *z: quantity.value(*(x @ E.T for x in z)),
                       slope=lambda *z: [table @ E for table in quantity.slope(*(x @ E.T for x in z))])

    def quantities(self) -> list[Quantity]:
        """Return all limited quantities, as functions of z."""
        return [self.angles(), *self.torques(), *(self.reduce(quantity) for quantity in
                                                  (self.lumbar(), *self.feet(), self.balance(), *self.box()))]

    def angles(self) -> Quantity:
        """Return limits of the joint angles, and of the extension of the thorax from upright [rad]."""
        limits, thorax = self.walker.robot.limits, np.eye(len(self.names))[self.names.index(TRUNK)]
        rows = np.vstack((self.E[self.joints], thorax))
        lower, upper = (np.append(limit[self.joints], end)
                        for limit, end in ((limits.lower, -MAX_LEAN), (limits.upper, MAX_EXTENSION)))
        return Quantity("position", (*self.joint_names, "thorax"), 0, lambda z: z @ rows.T,
                        lambda z: [np.broadcast_to(rows, (len(z), *rows.shape))], lower, upper, linear=True)

    def torques(self) -> list[Quantity]:
        """Return the torques as shares of the strength, and beyond the muscles', limited on the right side and in the middle.
        """
        found = []
        for quantity in self.walker.torque_quantities(BOTH):
            left = np.array([label.startswith("left_") for label in quantity.labels])
            found.append(self.reduce(replace(quantity, lower=np.where(left, -np.inf, quantity.lower),
                                             upper=np.where(left, np.inf, quantity.upper))))
        return found

    def lumbar(self) -> Quantity:
        """Return the moment at L5/S1 [N m] and the compression of its disc [N]."""
        names = self.walker.joint_names
        rows = np.zeros((2, len(names)))
        rows[:, names.index(LUMBAR)] = 1.0, 1.0 / EXTENSOR_ARM
        rows[1, names.index(SLIDE)] = 1.0
        return Quantity("lumbar load", ("moment", "compression"), 2, lambda *motion: self.walker.torque(BOTH, motion) @ rows.T,
                        lambda *motion: [rows @ table for table in self.walker.torque_slopes(BOTH, motion)],
                        np.full(2, -np.inf), np.array([self.task.max_moment, self.task.max_compression]))

    def feet(self) -> list[Quantity]:
        """Return the contacts of the right foot, flat on the floor all the time."""
        heel, ball, _ = self.walker.human.sole
        side, near = self.stance / 2.0, self.task.tolerance
        points = ["right_inner_ball", "right_outer_ball", "right_toe_tip"]
        return [self.walker.contact_quantity("right heel", XYZ, position, ["right_heel"], (heel, -side, 0.0), near),
                self.walker.contact_quantity("right ball", (*XYZ, "tilt", "toe tip"), ball_contact, points,
                                             (ball, -side, 0.0, 0.0, 0.0), near)]

    @property
    def stance(self) -> float:
        """Distance between the ankles [m]."""
        hips = -2.0 * next(joint.offset[1] for joint in self.walker.human.joints if joint.child == "right_thigh")
        return hips if self.task.stance is None else self.task.stance

    def balance(self) -> Quantity:
        """Return the centre of pressure's distances from heel and toe tip, and the friction left, over weight; at least 0."""
        (heel, _, tip), weight = self.walker.human.sole, self.walker.weight

        def distances(F, M):
            return [(-M[1] - F[2] * (heel + FOOT_MARGIN)) / weight, (M[1] + F[2] * (tip - FOOT_MARGIN)) / weight,
                    (F[2] * FRICTION - F[0]) / weight, (F[2] * FRICTION + F[0]) / weight]

        labels = "behind", "ahead", "friction forwards", "friction backwards"
        return self.walker.ground_quantity("support", labels, distances, [], np.zeros(4), np.full(4, np.inf))

    def box(self) -> list[Quantity]:
        """Return the positions of the right hand at the ends, its distance to the side, and what the box must not enter."""
        task, walker, grip = self.task, self.walker, ["right_grip"]
        (width, depth, height), near = task.box_size, task.tolerance
        least = depth / 2.0
        ends = [walker.contact_quantity(f"hand at the {name}", XYZ, position, grip, (ahead, -width / 2.0, above), near, (u, u))
                for name, (ahead, above), u in (("start", task.start, 0.0), ("goal", task.goal, 1.0))]
        free, middle = np.array([np.inf, near, np.inf]), np.array([0.0, -width / 2.0, 0.0])
        aside = walker.point_quantity("hand on the box", XYZ, position, grip, middle - free, middle + free)
        floor = walker.point_quantity("box above the floor", ["height"], point_heights, grip,
                                      np.array([height / 2.0 - near]), np.array([np.inf]))
        body = [walker.point_quantity(f"box from {point}", ["distance squared"], sagittal_distance_squared,
                                      ["right_grip", point], np.array([(least + radius) ** 2]), np.array([np.inf]))
                for point, radius in BODY_RADII.items()]
        return [*ends, aside, floor, *body]

    # ------------------------------------------------------------------ problem and initial guess

    def problem(self) -> PlanningProblem:
        """Return the planning problem in z: at rest at both ends, in a given duration."""
        m, duration = len(self.names), self.task.duration
        quantities = self.quantities()
        torque = next(quantity for quantity in quantities if quantity.name.startswith("torque"))
        free = np.full(m, np.inf)
        terms = [(np.isfinite(self.walker.strength).astype(float), torque),
                 (np.full(m, ACCELERATION_WEIGHT / duration), motion_quantity(2, self.names, -free, free))]
        rest = EndState(np.full(m, np.nan), np.zeros(m), np.zeros(m))
        return PlanningProblem(rest, rest, quantities, Cost(time=0.0, more=terms), (duration,) * 2)

    def guess(self, style: str, control_points: int) -> Curve:
        """Return the initial guess, from posture to posture; the feet stand, the hands are at the box. style: see STYLES."""
        u = greville_abscissae(breaks(control_points), 3)[:, None]
        start, goal = (self._reaching(style, target) for target in (self.task.start, self.task.goal))
        return Curve(3, breaks(control_points), start + u**2 * (3.0 - 2.0 * u) * (goal - start), self.task.duration)

    def _reaching(self, style: str, target: tuple[float, float]) -> np.ndarray:
        """Return z bent as little as the arms need to reach the target."""
        human, z = self.walker.human, np.zeros(len(self.names))
        offsets = {joint.child: joint.offset[2] for joint in human.joints}
        shank, thigh, arm = -offsets["right_foot"], -offsets["right_shank"], -offsets["right_forearm"]
        shares = 1.0 - LUMBAR_SHARE * np.array([1.0, 2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0])  # of the lean, below each joint
        trunk = np.array([offsets[link] for link in ("l5", "l3", "t12", "thorax", "right_clavicle")])
        hand = -offsets["right_hand"] - human.grip[2]
        for share in np.linspace(0.0, 1.0, GUESS_STEPS):
            knee, ankle, lean = share * np.array(STYLES[style])
            back = knee - ankle
            hips = np.array([shank * np.sin(ankle) - thigh * np.sin(back),
                             human.ankle_height + shank * np.cos(ankle) + thigh * np.cos(back)])
            ahead, up = np.array(target) - hips - np.array([trunk @ np.sin(shares * lean), trunk @ np.cos(shares * lean)])
            away = np.hypot(ahead, up)
            if away < ARM_REACH * (arm + hand):
                break
        away = np.clip(away, abs(arm - hand) + 0.01, ARM_REACH * (arm + hand))
        elbow, upper = (np.arccos((arm**2 + sign * (away**2 - hand**2)) / (2.0 * arm * side))
                        for sign, side in ((-1.0, -hand), (1.0, away)))
        given = {"right_knee_flexion": knee, "right_ankle_dorsiflexion": ankle,
                 "right_hip_flexion": (1.0 - LUMBAR_SHARE) * lean + back, TRUNK: -lean,
                 "right_shoulder_flexion": lean + np.arctan2(ahead, -up) - upper,
                 "right_elbow_flexion": elbow, "forward": hips[0], "up": hips[1]}
        for name, value in given.items():
            if name in self.names:
                z[self.names.index(name)] = value
        return z


@dataclass(frozen=True, eq=False)
class LiftMotion:
    """Samples of a lift.

    t [s]; q, qd, qdd, tau, tau_rate (samples, n); floor (samples, 2, 6): F and M on the right and the left foot about the
    world's origin [N, N m]; toes (samples, 2): part of it that the toes bear, a moment about y [N m]; pressure (samples, 2):
    centre of pressure [m]; box (samples, 3): centre of the box [m]; moment [N m], compression [N] at L5/S1 (samples,)
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray
    floor: np.ndarray
    toes: np.ndarray
    pressure: np.ndarray
    box: np.ndarray
    moment: np.ndarray
    compression: np.ndarray


@dataclass(frozen=True, eq=False)
class Lift:
    """Predicted lift: the lifter and the planned motion of z."""

    lifter: Lifter
    plan: PlannedMotion

    def motion(self, samples: int = 201) -> LiftMotion:
        """Return the motion at evenly spread instants."""
        walker, t = self.lifter.walker, np.linspace(0.0, self.plan.duration, samples)
        q, qd, qdd, qddd = (x @ self.lifter.E.T for x in self.plan(t))
        now = q, qd, qdd
        tau, slopes = walker.torque(BOTH, now), walker.torque_slopes(BOTH, now)
        rate = sum(np.einsum("kij,kj->ki", table, x) for table, x in zip(slopes, (qd, qdd, qddd)))
        loads = walker.loads(BOTH, now)
        wrench = walker.floor_wrench(now).value
        floor = walker.evaluate_ground(foot_wrenches_of_both, ("right_ankle", "left_ankle"), now).value.reshape(-1, 2, 6)
        pressure = np.array([zero_moment_point(one[:3], one[3:]) for one in wrench])
        hand = walker.evaluate_points(position, ["right_grip"], q).value
        lumbar = self.lifter.lumbar().value(*now)
        return LiftMotion(t, q, qd, qdd, tau, rate, floor, np.column_stack([loads[f"{side}_toes"][:, 4]
                                                                            for side in ("right", "left")]),
                          pressure, hand * (1.0, 0.0, 1.0), *lumbar.T)

    def excess(self, at: Sequence[float] | None = None) -> dict[str, float]:
        """Return the largest excess of each quantity over its limits; negative: margin. Positions in rad, m and m^2, torques
        as shares of strength, the support as shares of weight, the lumbar load as shares of its limits.

        at: shares of the duration; None: many
        """
        u = np.linspace(0.0, 1.0, CHECKED_SAMPLES + 1) if at is None else np.asarray(at)
        motion = np.stack(self.plan(u * self.plan.duration), axis=1)
        return {quantity.name: float((quantity.excess(motion, u) * (1.0 if quantity.order else quantity.scale)).max())
                for quantity in self.lifter.quantities() if len(quantity.enforced)}

    def effort(self, samples: int = 401) -> float:
        """Return the first term of the objective, by Simpson's rule; samples: an odd number."""
        u = np.linspace(0.0, 1.0, samples)
        motion = np.stack(self.plan(u * self.plan.duration), axis=1)
        weights = np.tile([2.0, 4.0], samples)[:samples]
        weights[[0, -1]] = 1.0
        shares = self.lifter.torques()[0].values(motion)
        return float(weights @ (shares**2).sum(axis=1) * self.plan.duration / (3.0 * (samples - 1)))

    def load_shares(self, motion: LiftMotion) -> np.ndarray:
        """Return torques over the strength of the lifter's joints: the strength by angle and velocity where it is known."""
        walker = self.lifter.walker
        available = np.tile(walker.strength, (len(motion.t), 1))
        if walker.muscles:
            available = walker.muscles.available(walker.joint_names, motion.q, motion.qd, motion.tau, walker.strength)
        return (motion.tau / np.maximum(available, MIN_STRENGTH))[:, self.lifter.joints]

    def repeated(self, period: float) -> RepeatedWork:
        """Return the lift repeated every `period` [s], with rest between."""
        motion = self.motion()
        rates = [RATES[fatigue_region(name)] for name in self.lifter.joint_names]
        return RepeatedWork(motion.t, self.load_shares(motion), period, rates)

    def report(self) -> dict[str, float]:
        """Return the figures for the assessment of the lift."""
        motion, names, mass = self.motion(), self.lifter.walker.joint_names, self.lifter.person.mass
        found: dict[str, float] = {"effort": self.effort()}
        for title, joint in {"hip": "right_hip_flexion", "knee": "right_knee_flexion", "ankle": "right_ankle_dorsiflexion",
                             "shoulder": "right_shoulder_flexion", "elbow": "right_elbow_flexion"}.items():
            k = names.index(joint)
            peak = motion.tau[np.abs(motion.tau[:, k]).argmax(), k]
            found |= {f"{title} at the start [deg]": float(np.degrees(motion.q[0, k])),
                      f"{title} peak torque [N m]": float(peak), f"{title} peak torque [N m/kg]": float(peak / mass)}
        lumbar = -np.degrees(motion.q[:, [k for k, name in enumerate(names) if name in LUMBAR_JOINTS]].sum(axis=1))
        lean = lumbar - np.degrees(motion.q[:, names.index("pelvis_tilt")])
        force = motion.floor[:, :, 2].sum(axis=1) / self.lifter.walker.weight
        most = int(motion.compression.argmax())
        found |= {"trunk lean at the start [deg]": float(lean[0]), "lumbar flexion at the start [deg]": float(lumbar[0]),
                  "L5/S1 peak moment [N m]": float(motion.moment.max()),
                  "L5/S1 peak moment [N m/kg]": float(motion.moment.max() / mass),
                  "L5/S1 peak compression [N]": float(motion.compression.max()),
                  "L5/S1 peak at [s]": float(motion.t[most]), "floor peak [weight with box]": float(force.max()),
                  "floor least [weight with box]": float(force.min()),
                  "hands farthest ahead [m]": float(motion.box[:, 0].max()),
                  "residual at the root [N, N m]": float(np.abs(motion.tau[:, [names.index(name) for name in ROOT]]).max()),
                  "NIOSH recommended weight [kg]": recommended_weight(self.lifter.task),
                  "excess": max(self.excess().values())}
        return found


def recommended_weight(task: LiftTask) -> float:
    """Return the recommended weight limit at the start of a single symmetric lift with good handles [kg].

    Revised NIOSH equation (Waters et al. 1993): 23 kg times the multipliers of distance, height and travel.
    """
    ahead, above = 100.0 * task.start[0], 100.0 * task.start[1]
    travel = max(100.0 * abs(task.goal[1] - task.start[1]), 25.0)
    distance = 0.0 if ahead > 63.0 else 25.0 / max(ahead, 25.0)
    height = 0.0 if above > 175.0 else 1.0 - 0.003 * abs(above - 75.0)
    return 23.0 * distance * height * (0.82 + 4.5 / travel)


def predict_lift(lifter: Lifter, control_points: int = 8, report: Report = lambda progress: None, guess: Curve | None = None,
                 most: int = 250) -> Lift:
    """Return the predicted lift. Raises PlanningError with the reason if there is none.

    From the initial guess of the first of STYLES from which there is one.
    """
    if not 6 <= control_points <= 40:
        raise InputError(f"{control_points} control points; 6 to 40 are allowed")
    settings = PlanSettings(gauss_newton=True, damping=HESSIAN_DAMPING, optimality=OPTIMALITY_TOL, tolerance=LIMIT_TOL,
                            iterations=most, instants=lift_instants(control_points))
    guesses = [guess] if guess else [lifter.guess(style, control_points) for style in STYLES]
    first: PlanningError | None = None
    for curve in guesses:
        try:
            return Lift(lifter, plan(lifter.problem(), settings, report, curve, REMEDY))
        except PlanningError as error:
            first = first or error
    assert first is not None
    raise first


def lift_instants(control_points: int) -> tuple[float, ...]:
    """Return the instants at which limits are enforced: INSTANTS_PER_SPAN for each polynomial piece."""
    return tuple(np.linspace(0.0, 1.0, (control_points - 3) * INSTANTS_PER_SPAN + 1).tolist())

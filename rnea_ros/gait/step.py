"""One step of walking and its conditions in the thesis, (5.2)-(5.10), as limited quantities.

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
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, some
from ..planning.problem import Quantity, motion_quantity
from .skeleton import PASSIVE_JOINTS, SIDES, passive_moments
from .walker import (
    BETWEEN_POINTS,
    DOUBLE,
    SINGLE,
    Walker,
    ball_contact,
    between_feet,
    distance_squared,
    front_share,
    pendulum_product,
    point_heights,
    position,
)

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

"""Where platform and legs of a parallel robot are and how they move; ParallelRobot adds the dynamics."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..errors import InputError, near, shown, some, summary
from ..model import drive_limits
from ..model.drive_limits import DriveLimit
from ..model.robot_file.robot_file import Source
from ..model.tree import Limits
from .closure import loops
from .closure.leg_closure import LegClosure
from .closure.leg_equations import POSE, LegMotion
from .closure.loops import Loops
from .closure.platform_closure import PlatformClosure
from .closure.tracking import PlatformTracker
from .inputs import validation
from .inputs.platform_motion import PlatformMotion
from .inputs.validation import Wrenches
from .platform_body import PlatformBody, PlatformForces
from .robot import GRAVITY, Robot

State = tuple[PlatformMotion, LegMotion]
Machine = TypeVar("Machine", bound="ParallelKinematics")


class ParallelKinematics:
    """Motion of a platform and its legs.

    legs     : the Robot whose branches are the legs, without the platform; friction, rotor inertias and payloads count. Its
               gravity is that of the machine
    platform : the Robot of the platform: one rigid body, its URDF's root frame is the platform frame
    joints   : the cut joints between legs and platform and the active joints, as in closure/loops.py; 'start' is for the legs
    home     : position (3,) [m] and rotation (3, 3) of the platform frame in the legs' root frame, where they meet at 'start'
    """

    __repr__ = summary

    order = 3  # derivatives of q that the torque rate needs

    def __init__(self, legs: Robot, platform: Robot, joints: Source, home: tuple[Any, Any]):
        validation.held_base(legs.model)
        validation.only_plain_joints(legs.model, "parallel robot")
        if len(platform.model.links) != 1:
            names = some(platform.joint_names)
            raise InputError(f"platform '{platform.name}' has joints ({names}); it must be one rigid body")
        if platform.gravity_vector.tolist() not in (list(GRAVITY), legs.gravity_vector.tolist()):
            raise InputError(f"platform '{platform.name}' has gravity {platform.gravity_vector.tolist()}, the legs "
                             f"{legs.gravity_vector.tolist()}; the machine's is that of the legs: leave the platform's out")
        shared = sorted(set(legs.model.frames) & set(platform.model.frames))
        if shared:
            raise InputError(f"legs and platform both have links {some(shared)}; names must differ")
        declared = loops.read(joints, "ParallelRobot", legs.model, platform.model)
        self.legs, self.platform = legs, platform
        self._closure = LegClosure(legs.model, platform.model, declared, home, legs.backend, legs.gravity_vector)
        self._actuated = PlatformClosure(self._closure)
        self.body = PlatformBody(platform, self._closure, legs.gravity_vector)

    # ------------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        """Of the robot, as the URDF has it."""
        return self.legs.name

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the active joints, the order of every array; `legs.joint_names` are those of all."""
        return self._closure.active_joints

    @property
    def joint_types(self) -> tuple[str, ...]:
        """revolute, continuous or prismatic, in the order of joint_names."""
        return tuple(self.legs.joint_types[k] for k in self._closure.active)

    @property
    def n(self) -> int:
        """Number of active joints, N."""
        return len(self._closure.active)

    @property
    def limits(self) -> Limits:
        """Of the active joints, NaN where unknown."""
        return self.legs.limits.of(self._closure.active)

    @property
    def drive_limits(self) -> tuple[DriveLimit, ...]:
        """Of the active joints' drives and supplies, as the robot file says."""
        return drive_limits.of(self.legs.drive_limits, self._closure.active)

    @property
    def loops(self) -> Loops:
        """The cut and active joints, in numbers of the legs."""
        return self._closure.loops

    @property
    def home(self) -> tuple[Array, Array]:
        """Position (3,) and rotation (3, 3) of the platform from which every walk begins."""
        R, P = self._closure.home
        return P, R

    @property
    def start(self) -> Array:
        """Positions of the legs' joints at the home pose."""
        return self._closure.start

    def with_payload(self: Machine, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> Machine:
        """The same machine carrying a rigid body on a link of the platform or of a leg, as Robot.with_payload."""
        if self.on_legs(link):
            return self.with_legs(self.legs.with_payload(link, mass, com, inertia))
        robot = copy.copy(self)
        robot.platform = self.platform.with_payload(link, mass, com, inertia)
        robot.body = PlatformBody(robot.platform, self._closure, self.legs.gravity_vector)
        return robot

    def with_legs(self: Machine, legs: Robot) -> Machine:
        """The same machine on legs of the same joints and frames: with another payload, with other joint dynamics."""
        robot = copy.copy(self)
        robot.legs = legs
        return robot

    # ------------------------------------------------------------------ how it moves

    def leg_motion(self, motion: PlatformMotion, *, guess: ArrayLike | None = None, orders: int = 3) -> LegMotion:
        """Inverse kinematics: motion of all joints of the legs (samples, n), and the maps of (60), (61) with their rates.

        guess  : positions (n,) of the legs' joints near the first pose, if it shall not be reached from the home pose
        orders : how many of velocity, acceleration and jerk count; with 2, the jerk need not be one that the legs allow
        Raises InputError at poses out of reach, singular poses, and motions that the legs do not allow.
        """
        return self._legs(motion.checked().rows(), guess, orders)

    def _legs(self, rows: Array, guess: Any, orders: int) -> LegMotion:
        """The same of rows (30,) or (samples, 30)."""
        q = validation.guess(guess, self.legs.n)
        if rows.ndim == 1:
            return self._closure.motion(rows, q, None, orders)
        pose, samples = None, []
        for k, row in enumerate(rows):
            with validation.at_sample(k):
                sample = self._closure.motion(row, q, pose, orders)
            q, pose = sample.q, row
            samples.append(sample)
        return validation.stacked(LegMotion, samples, lambda: self._closure.motion(
            PlatformMotion(*self.home).checked().rows(), None, None, orders))

    def platform_motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                        guess: PlatformMotion | None = None) -> PlatformMotion:
        """Direct kinematics: motion of the platform from that of the active joints (N,), or (samples, N).

        guess: a pose near the first one, if it shall not be reached from the home pose. Raises InputError at poses out of
        reach and at singular poses.
        """
        return self._state(q, qd, qdd, qddd, motion=None, guess=guess)[0]

    def tracker(self) -> PlatformTracker:
        """What follows platform and legs along one stream of samples, each from the last."""
        return PlatformTracker(self._closure, self._actuated)

    def _state(self, *of_joints: ArrayLike | None, motion: PlatformMotion | None, guess: Any, orders: int = 3) -> State:
        """Motion of platform and legs from either of the two that are allowed."""
        if motion is not None:
            if any(part is not None for part in of_joints):
                raise InputError("the motion is given twice, by the active joints and by motion=; give one of them")
            checked = motion.checked()
            return checked, self._legs(checked.rows(), guess, orders)
        names = ("q", "qd", "qdd", "qddd")
        parts = [self._of_joints(name, part) for name, part in zip(names, of_joints, strict=False)]
        count, begin = validation.samples(parts), self._near(guess)
        if count is None:
            platform, legs = self._actuated.motion(*self._actuated.reach(parts[0], *begin), *parts[1:])
            return PlatformMotion.from_rows(platform), legs
        moving, samples = [], []
        for k, (qa, *rates) in enumerate(zip(*(np.broadcast_to(part, (count, self.n)) for part in parts), strict=True)):
            with validation.at_sample(k):
                begin = self._actuated.reach(qa, *begin)
                platform, legs = self._actuated.motion(*begin, *rates)
            moving.append(platform)
            samples.append(legs)
        return (PlatformMotion.from_rows(np.reshape(moving, (count, 30))),
                validation.stacked(LegMotion, samples, lambda: self._actuated.motion(*begin, *np.zeros((3, self.n)))[1]))

    def _moving(self, q: ArrayLike | None, qd: ArrayLike | None, motion: PlatformMotion | None, guess: Any) -> State:
        """With accelerations of the active joints at zero; jerks do not count."""
        if motion is None:
            return self._state(q, qd, _rest(q), _rest(q), motion=None, guess=guess)
        checked = motion.checked()
        legs = self._legs(checked.rows(), guess, 1)
        drift = (legs.maps_rate @ legs.qd[..., self._closure.active, None])[..., 0]
        return checked._replace(acceleration=drift[..., :6]), legs._replace(qdd=drift[..., 6:])

    def _still(self, q: ArrayLike | None, motion: PlatformMotion | None, guess: Any) -> State:
        return self._moving(q, _rest(q), None if motion is None else motion.at_rest(), guess)

    def _of_joints(self, name: str, value: ArrayLike | None) -> Array:
        if value is None:
            raise InputError(f"{name} is missing: give the motion of the active joints ({some(self.joint_names)}), or that of "
                             "the platform, motion=PlatformMotion(position, rotation, velocity, ...)")
        return validation.coordinates(name, value, self.joint_names)

    def _near(self, guess: PlatformMotion | None) -> tuple[Array, Array]:
        """Joints of the legs and pose of the platform from which a walk of the actuators begins."""
        if guess is None:
            return self.start, PlatformMotion(*self.home).checked().rows()[:POSE]
        if not isinstance(guess, PlatformMotion):
            raise InputError(f"guess is {shown(guess)}; where the motion is that of the active joints, a PlatformMotion near "
                             "its first pose is needed")
        row = guess.at_rest().checked().rows()
        if row.ndim != 1:
            raise InputError(f"guess is one pose, position (3,) and rotation (3, 3); got {len(row)}")
        return self._closure.motion(row, None, None, 0).q, row[:POSE]

    # ------------------------------------------------------------------ links and loads

    def on_legs(self, link: str) -> bool:
        """Whether a leg has the link, or else the platform; InputError names the links that exist."""
        legs, platform = self.legs.model.frames, self.platform.model.frames
        if link not in legs and link not in platform:
            names = [*platform, *legs]
            raise InputError(f"link '{link}' is neither of the platform nor of a leg; the links are {some(names)}"
                             f"{near(link, names)}")
        return link in legs

    def platform_force(self, motion: PlatformMotion, *, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> PlatformForces:
        """Fp of (9) and its rate: what the legs together exert on the platform. Loads: on links of the platform."""
        return self.body.force(motion.checked(), wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches)

    def _sorted(self, **loads: Wrenches | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those on legs and those on the platform."""
        if not any(loads.values()):
            return {}, {}
        on_legs = {kind: {link: value for link, value in (given or {}).items() if self.on_legs(link)}
                   for kind, given in loads.items()}
        return on_legs, {kind: {link: value for link, value in (given or {}).items() if link not in on_legs[kind]}
                         for kind, given in loads.items()}


def _rest(q: ArrayLike | None) -> Array | None:
    return None if q is None else validation.zeros_like("q", q)


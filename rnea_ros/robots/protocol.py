"""AnyRobot: what every robot of the package answers, by the same calls, whatever kind of robot it is."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms.kinematics import Pose
from ..model.tree import Limits
from .derivatives import JointWrenches
from .energy import CenterOfMass, Energy
from .inputs.validation import Wrenches
from .robot import Dynamics

Kind = TypeVar("Kind", bound="AnyRobot")


@runtime_checkable
class AnyRobot(Protocol):
    """The face of Robot and GeneralRobot.

    q and its derivatives are those of `joint_names`, the joints with motors: n columns, one sample (n,) or many (samples, n).
    With closed loops and with a platform the other joints follow. `order` derivatives of q decide the torque rate, one less
    the torque: robots with elastic joints take those above qddd and qdd as further arguments. So for every robot

        tau = robot.inverse_dynamics(*motion[:robot.order])               # motion: q, qd, qdd, qddd ...
        tau, tau_rate = robot.torque_and_rate(*motion[:robot.order + 1])
        qdd = robot.forward_dynamics(q, qd, tau)                          # undoes inverse_dynamics

    Loads act BY the environment ON a link, by name of the URDF link: wrenches (6,) seen in the link's frame, wrench_rates the
    rates of their numbers, world_wrenches seen in the root link's frame, in the world where the base floats.

    What a kind of robot adds comes by keyword: base=BaseState(...) where the base floats; q_motor=, qd_motor= for the state of
    elastic joints; guess= for the branch of closed loops; motion=PlatformMotion(...) instead of the actuators' q .. qddd.
    A free base has the first six rows and columns of mass_matrix, bias, gravity and jacobian, motors of elastic joints the
    last ones of the first three.

    InputError says what is missing, or why a robot cannot give an answer.
    """

    @property
    def name(self) -> str:
        """Of the robot, as the URDF has it."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The order of every array."""

    @property
    def joint_types(self) -> tuple[str, ...]:
        """"revolute", "continuous" or "prismatic"."""

    @property
    def n(self) -> int:
        """Number of joints in `joint_names`."""

    @property
    def limits(self) -> Limits:
        """NaN where unknown."""

    @property
    def order(self) -> int:
        """How many derivatives of q the torque rate needs: 3 for rigid robots, 5 or more for elastic ones."""

    def with_payload(self: Kind, link: str, mass: float, com: ArrayLike = ..., inertia: ArrayLike | None = None) -> Kind:
        """The same robot carrying a rigid body on a link: mass [kg], com (3,) in the link's frame [m], inertia about it."""

    # ------------------------------------------------------------------ torques

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Torques (n,) of a motion."""

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[Array, Array]:
        """Torques (n,) and their exact time derivatives along the motion."""

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, wrenches: Wrenches | None = None,
                 wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Dynamics:
        """The same, and the torques that hold the robot still against gravity, with their rates."""

    # ------------------------------------------------------------------ equations of motion

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M in M a + bias = forces, a the accelerations of all that moves."""

    def bias(self, q: ArrayLike, qd: ArrayLike, *, wrenches: Wrenches | None = None,
             world_wrenches: Wrenches | None = None) -> Array:
        """Forces without any acceleration: velocity terms, gravity, friction, loads."""

    def gravity(self, q: ArrayLike) -> Array:
        """The share of gravity in bias."""

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Accelerations (n,) under given torques."""

    # ------------------------------------------------------------------ where links are

    def link_pose(self, link: str, q: ArrayLike, point: ArrayLike | None = None) -> Pose:
        """Rotation and place of a link's frame, or of a point (3,) in it; link_kinematics.py has the convention."""

    def link_velocity(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None) -> Array:
        """(6,): velocity of the point, angular velocity."""

    def jacobian(self, link: str, q: ArrayLike, point: ArrayLike | None = None) -> Array:
        """(6, n) with link_velocity = jacobian @ qd."""

    def jacobian_rate(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None) -> Array:
        """(6, n): time derivative of `jacobian`."""

    # ------------------------------------------------------------------ what motion there is

    def energy(self, q: ArrayLike, qd: ArrayLike) -> Energy:
        """Kinetic, rotors included, and potential energy: of gravity, zero with all mass at the origin, and of springs."""

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it, without the spin of rotors."""

    # ------------------------------------------------------------------ what follows from torques

    def sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> tuple[Array, ...]:
        """Partial derivatives (n, n) of the torques by each of the first `order` arrays of the motion: d tau / d q, ..."""

    def rate_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                           wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                           world_wrenches: Wrenches | None = None) -> tuple[Array, ...]:
        """The same of the torques' rates, by each of the first `order` + 1 arrays."""

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike | None = None, *,
                       wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> JointWrenches:
        """Internal force and moment of every joint that moves a link, and their rates where `order` derivatives are given.

        InputError where loops hold their links in more ways than the motion needs: then elasticity decides.
        """

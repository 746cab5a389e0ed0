"""Robot: one formulation for any combination of moving base, loops, springs, elastic joints, contacts and wheels.

Every coordinate has a role (roles.py), structural analysis says how often each equation is differentiated (structure.py), and
one matrix gives accelerations, efforts and multipliers, then their rates (solution.py). docs/systems/one_robot.md derives the
equations.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import Array
from ..algorithms.kinematics import Pose, base_poses
from ..errors import InputError, some, summary
from ..model import drives, robot_file
from ..model.drives import DriveLimit
from ..model.robot_file import Source
from ..model.tree import CoupledMotor, JointDynamics, Limits, Model
from . import validation
from .base_state import BaseState, given
from .closure import TOLERANCE, LoopClosure, LoopMotion, LoopTracker
from .conditions import Conditions, Loads, MotorState, Payload
from .loops import Loops, Platform
from .motion_solver import INVERSE, MotionSolver, MotorMotion
from .platform_closure import PlatformClosure, TreeMotion
from .platform_motion import MISSING, PlatformMotion, Platforms, by_platform
from .program import RobotProgram
from .results import (
    CenterOfMass,
    Dynamics,
    Energy,
    JointWrenches,
)
from .role_derivatives import RobotDerivatives
from .roles import DeclaredRoles, declared
from .solution import ConstraintWrench, Solution, constraint_wrenches, zero_moment_point
from .state_functions import StateFunctions
from .structure import Structure
from .tree import GRAVITY as STANDARD_GRAVITY
from .tree import TreeDynamics, TreeFacts

Guess = Any  # positions (tree.n,) of all joints, or a PlatformMotion, near the first pose; None
MOVING_BASES = ("floating", "prescribed")
COMPILED = ("_solver", "_solvers", "_derivatives", "_functions")  # attributes that contain machine code
# sections of a robot file that affect computed values
ROLES = ("loops", "platform", "platforms", "springs", "passive", "flexible_links", "actuation_weights", "ground_contacts",
         "wheels", "fluid")
DECIDING = ("base", "drives", *ROLES, "elastic_joints", "motors")
# Functions for which a fixed tree has its own kernels (tree.py), without the general equations.
OF_TREES = ("torque_and_rate", "dynamics", "inverse_dynamics", "forward_dynamics", "bias", "gravity", "gravity_and_rate",
            "mass_matrix", "energy", "center_of_mass", "link_pose", "link_velocity", "jacobian", "jacobian_rate", "coriolis",
            "sensitivities", "rate_sensitivities", "joint_wrenches")


def _plain(value: Any) -> Any:
    """Return a value as nested lists of numbers and strings in a fixed order, to be hashed."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return [(key, _plain(entry)) for key, entry in sorted(value.items())]
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


Options = ParamSpec("Options")
Result = TypeVar("Result")


def of_fixed_tree(method: Callable[Concatenate[TreeDynamics, Options], Result]) -> Callable[
        Concatenate[Robot, Options], Result]:
    """Return a method of TreeDynamics as a method of Robot, which raises InputError unless it is a tree on a fixed base."""
    @wraps(method)
    def call(self: Robot, *args: Options.args, **options: Options.kwargs) -> Result:
        return method(self._fixed_tree(method.__name__), *args, **options)

    call.__doc__ = f"{method.__doc__ or ''}\n\n        Fixed trees only; InputError for other robots."
    return cast("Callable[Concatenate[Robot, Options], Result]", call)


def _free(base: BaseState | None) -> BaseState | None:
    """Return pose and velocity of a base, without its acceleration, which forward dynamics computes."""
    return base.free if isinstance(base, BaseState) and base.is_given else base


class Robot(TreeFacts):
    """Exact dynamics of a tree with any combination of moving base, loops, springs, elastic joints, contacts and wheels.

    tree       : spanning tree, loaded with base="floating" for a moving base; or a Robot, whose tree is used
    parameters : path of a robot file, or its content

    Raises ModelError, which lists all errors of the robot file.

    q, qd, qdd, ... have a column for each of `joint_names`, (n,) or (samples, n), and as many derivatives as `order`. The
    motion of joints with motors is given. Only positions and velocities of `state_joints` (springs, passive joints) are used;
    their accelerations are computed, and so is the motion of joints of loops without a motor. The acceleration of a floating
    base is computed; a prescribed base has acceleration and jerk in base=BaseState(...). Torques (n,) are those of motors; for
    joints with springs, those of the springs; for passive joints, zero. Loads are exerted by the environment on a link, as in
    TreeDynamics.torque_and_rate; world_wrenches are expressed in the world frame.
    """

    __repr__ = summary

    def __init__(self, tree: TreeDynamics | Robot, parameters: Source | None = None):
        self.tree: TreeDynamics = tree.tree if isinstance(tree, Robot) else tree
        self._file = robot_file.draft({} if parameters is None else parameters)
        self.carried = self._file.content.get("base") == "prescribed"
        self._prepare()
        if not self.is_fixed_tree:
            self._solver.structure(self._solver.use)  # raises for motions that are not determined

    def _prepare(self) -> None:
        """Reset compiled functions. A fixed tree uses its own kernels instead of the general equations."""
        self._solvers: dict[tuple[str, ...], MotionSolver] = {}  # keyed by the links with payloads
        self.is_fixed_tree: bool = self.tree.model.base == "fixed" and not self.sections
        # only a moving base is declared: kernels of the tree are used
        self.is_bare = self.has_moving_base and not self.sections and not self.tree.model.coupled_motors
        if self.is_fixed_tree:
            self.__dict__.update({name: getattr(self.tree, name) for name in OF_TREES})

    @cached_property
    def roles(self) -> DeclaredRoles:
        """Role of each joint, and the elements that the robot file declares in addition to the tree."""
        validation.no_load_friction(self.tree.model)
        return declared(self.tree.model, self._file, self.tree.backend)

    @cached_property
    def _closure(self) -> LoopClosure | None:
        if self.is_fixed_tree or self.roles.loops is None:
            return None
        return LoopClosure(self.tree.model, self.roles.loops, self.tree.backend, at_once=False)

    @cached_property
    def _solver(self) -> MotionSolver:
        links = tuple(sorted(self.payloads))
        if links not in self._solvers:
            self._solvers[links] = MotionSolver(self.tree, self.roles, self._closure, self.carried, self.is_bare)
        return self._solvers[links].carrying(self.tree)

    @cached_property
    def _derivatives(self) -> RobotDerivatives:
        return RobotDerivatives(self._solver)

    @cached_property
    def _functions(self) -> StateFunctions:
        return StateFunctions(self._solver, self._derivatives)

    # ------------------------------------------------------------------ description

    @property
    def model(self) -> Model:  # type: ignore[override]
        """Links and joints of the tree, without payloads."""
        return self.tree.model

    @property
    def gravity_vector(self) -> Array:
        """Acceleration of free fall (3,) [m/s^2] in the frame of the root link; with a moving base, in the world frame."""
        return self.tree.gravity_vector

    @property
    def backend(self) -> str:
        """Backend that evaluates the kernels: "llvm", "c", "python" or "reference"."""
        return self.tree.backend

    @property
    def payloads(self) -> Mapping[str, Payload]:  # type: ignore[override]
        """Payloads, keyed by URDF link."""
        return self.tree.payloads

    def mdh_table(self) -> list[tuple[Any, ...]]:
        """Return (name, parent, sigma, gamma, b, alpha, d, theta, r) of every frame [rad, m]; parent 0 is the root.

        Parent k is row k, from 1. The seven frames that describe the pose of a platform are not joints of the URDF; their
        names are "LINK: x" to "LINK: rz".
        """
        names = {} if self.loops is None else {self.tree.joint_names[k]: f"{platform.link}: {part}" for platform in
                                               self.loops.platforms for k, part in platform.coordinate_names.items()}
        return [(names.get(name, name), *numbers) for name, *numbers in self.tree.mdh_table()]

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Joints with a motor and joints whose state is an input, in the order of the tree: the columns of every array."""
        return self.tree.joint_names if self.is_fixed_tree else self._solver.joint_names

    @property
    def state_joints(self) -> tuple[str, ...]:
        """Joints with springs and passive joints, whose accelerations are computed from positions and velocities."""
        return self.roles.state

    @property
    def passive_joints(self) -> tuple[str, ...]:
        """Joints without a motor."""
        return tuple(name for name in self.tree_joints if name not in self.roles.actuated)

    @property
    def elastic_joints(self) -> tuple[str, ...]:
        """Joints with a spring between motor and link, in the order of motor motions."""
        return () if self.is_fixed_tree else self._solver.equations().elastic_joints

    @property
    def stiffness(self) -> Array:
        """Stiffness of the springs of elastic joints (Ne,) [N m/rad, N/m]."""
        motors = () if self.is_fixed_tree else self._solver.equations().motors
        return np.array([motor.stiffness for motor in motors if motor.stiffness < np.inf])

    @property
    def joint_types(self) -> tuple[str, ...]:
        """"revolute", "continuous" or "prismatic", in the order of `joint_names`."""
        return tuple(self.tree.joint_types[k] for k in self._columns)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of all URDF links."""
        hidden = self.loops.hidden(self.model) if self.loops else set()
        hidden |= {name for beam in self.model.flexible_links for name in beam.hidden(self.model.frames)}
        return tuple(link for link in self.model.frames if link not in hidden)

    @property
    def kind(self) -> str:
        """Description for messages: "tree on a fixed base", "robot on a floating base with loops, springs", ..."""
        base = "fixed" if not self.has_moving_base else "prescribed" if self.carried else "floating"
        declared = ", ".join(name.replace("_", " ") for name in self.sections)
        return f"robot on a {base} base with {declared}" if declared else f"tree on a {base} base"

    @property
    def model_id(self) -> str:
        """Fingerprint of everything that affects computed values: 16 hexadecimal digits."""
        if self.is_fixed_tree:
            return self.tree.model_id
        return hashlib.sha256(repr((self.tree.model_id, _plain(self.declaration))).encode()).hexdigest()[:16]

    @property
    def home_motion(self) -> Array:
        """q, qd, ... (order + 1, n) of the robot at rest with all joints at zero; for robots with loops, in a closed pose."""
        motion = np.zeros((self.order + 1, self.n))
        motion[0] = self.start[self._columns]
        return motion

    @property
    def description(self) -> list[str]:
        """Elements that the robot file adds to links and joints, one line each, the kind first."""
        lines: list[tuple[str, Any]] = [("coupled motors", self.coupled_motor_speeds)]
        if not self.is_fixed_tree:
            roles = self.roles
            platforms = [f"{link}, {self.model.links[self.model.frame(link).link].m:.6g} kg" for link in self.platforms]
            lines += [("platform", platforms), ("motion given", roles.given), ("state", roles.state),
                      ("follows", [name for name in roles.follows if name in self.tree_joints]),
                      ("elastic joints", self.elastic_joints),
                      ("motors", [f"{self.tree.joint_names[motor.coordinate]} on {self.model.links[motor.link].name}"
                                  for motor in roles.motors]), ("contacts", [cut.name for cut in roles.contacts]),
                      ("wheels", [wheel.name for wheel in roles.wheels])]
        lines.append(("payloads", [f"{payload.mass:g} kg on {link}" for link, payload in self.payloads.items()]))
        return [self.kind, *(f"{what}: {some(values)}" for what, values in lines if values)]

    @property
    def coupled_motor_speeds(self) -> list[str]:
        """Velocities of the motors of coupled transmissions as text: "wrist.motor_6 = 32 joint_5 + 32 joint_6"."""
        names = self.tree.joint_names
        return [f"{motor.name} = " + " + ".join(f"{ratio:g} {names[k]}" for k, ratio in zip(
            motor.coordinates, motor.ratios, strict=True)) for motor in self.model.coupled_motors]

    @property
    def n(self) -> int:
        """Number of joints in `joint_names`."""
        return len(self.joint_names)

    def by_joint(self, values: ArrayLike) -> dict[str, Array]:
        """Return values (n,) or (samples, n) as a mapping from joint names to numbers, or (samples,) each; NaN is kept."""
        columns = validation.numbers("values", values)
        if columns.ndim not in (1, 2) or columns.shape[-1] != self.n:
            raise InputError(f"values have shape {columns.shape}; robot '{self.name}' needs a column for each of its joints: "
                             f"({self.n},) or (samples, {self.n})")
        return dict(zip(self.joint_names, columns.T, strict=True))

    @property
    def limits(self) -> Limits:
        """Limits in the order of `joint_names`; NaN: unknown."""
        return self.tree.limits.of(self._columns)

    @property
    def drive_limits(self) -> tuple[DriveLimit, ...]:
        """Limits of drives and supplies; joints are indices into `joint_names`."""
        return drives.limits_of(self.tree.drive_limits, self._columns)

    @property
    def order(self) -> int:
        """Number of derivatives of q on which the torque rate depends; the torque depends on one fewer."""
        return 3 if self.is_fixed_tree else max(3, self._solver.structure(self._solver.use).order)

    @property
    def has_moving_base(self) -> bool:
        """True if functions require base=BaseState(...)."""
        return self.model.base == "floating"

    @property
    def declaration(self) -> dict[str, Any]:
        """Sections of the robot file that affect computed values."""
        return {name: self._file.content[name] for name in DECIDING if name in self._file.content}

    @property
    def start(self) -> Array:
        """Positions (tree.n,) of all joints of the tree in a pose with closed loops [rad, m]."""
        return self._closure.start if self._closure else np.zeros(self.tree.n)

    @property
    def tree_joints(self) -> tuple[str, ...]:
        """Names of all joints of the robot, in the order of the tree."""
        virtual = self.loops.virtual if self.loops else ()
        return tuple(name for k, name in enumerate(self.tree.joint_names) if k not in virtual)

    @cached_property
    def _columns(self) -> list[int]:
        return [self.tree.joint_names.index(name) for name in self.joint_names]

    @property
    def sections(self) -> tuple[str, ...]:
        """Sections of the robot file that add elements other than base and drives, for instance ("loops",)."""
        return tuple(name for name in self.declaration if name not in ("base", "drives"))

    @property
    def is_mechanism(self) -> bool:
        """True if the robot file adds only loops and platforms to the tree and its base."""
        return "loops" in self.sections and {"loops", "platform", "platforms"}.issuperset(self.sections)

    @property
    def loops(self) -> Loops | None:
        """Cut joints, and independent joints as active joints, by index in the tree; None without loops."""
        return None if self.is_fixed_tree else self.roles.loops

    @property
    def closure(self) -> LoopClosure:
        """Solver of the loop equations. Raises InputError without loops."""
        if self._closure is None:
            raise InputError(f"robot '{self.name}' has no closed loops")
        return self._closure

    def held(self, gravity: ArrayLike) -> Robot:
        """Return the robot on a fixed base. gravity: (3,) acceleration of free fall in the frame of the root link [m/s^2]."""
        return self.with_tree(self.tree.held(gravity))

    def with_tree(self, tree: TreeDynamics) -> Robot:
        """Return the robot with another tree of the same joints and frames (payloads, gravity, fixed base).

        Kernels are shared if only payloads differ, else compiled again.
        """
        state = {**self.__getstate__(), "tree": tree}
        if tree.model.base == "fixed":
            state |= {"carried": False, "_file": self._file.over({"base": "fixed"})}
        robot = object.__new__(Robot)
        robot.__setstate__(state)
        if tree.model is self.model and tree.gravity_vector is self.gravity_vector and tree.backend == self.backend:
            robot._solvers = self._solvers
        return robot

    def __copy__(self) -> Robot:
        return self.with_tree(copy(self.tree))

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike[str], base: str = "fixed", backend: str = "llvm",
                  gravity: ArrayLike = STANDARD_GRAVITY, friction: bool = False,
                  joint_dynamics: Mapping[str, JointDynamics] | None = None, allow_xacro: bool = False) -> Robot:
        """Return the robot of a URDF without a robot file; `rnea_ros.load` reads both.

        source         : path of a URDF, or its text
        base           : "fixed"; "floating": its acceleration is computed; "prescribed": its motion is given
        backend        : "llvm", "python" or "reference": equal results at different speeds
        gravity        : (3,) acceleration of free fall in the frame of the root link; in the world frame for a moving base
                         [m/s^2]
        friction       : whether to use <dynamics damping= friction=> of the URDF
        joint_dynamics : rotor inertia, friction and offset, keyed by joint name
        allow_xacro    : whether to run a .xacro file, which is a program, without a warning

        Raises ModelError, which lists all errors of the URDF.
        """
        tree = TreeDynamics.from_urdf(source, "fixed" if base == "fixed" else "floating" if base in MOVING_BASES else base,
                                      backend, gravity, friction, joint_dynamics, allow_xacro)
        return cls(tree, {"base": base} if base in MOVING_BASES else None)

    @classmethod
    def from_model(cls, model: Model, backend: str = "llvm", gravity: ArrayLike = STANDARD_GRAVITY) -> Robot:
        """Return the robot of a model; for the arguments see `from_urdf`."""
        return cls(TreeDynamics(model, backend, gravity))

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> Robot:
        """Return the robot with a rigid body attached to a link; for the arguments see TreeDynamics.with_payload."""
        return self.with_tree(self.tree.with_payload(link, mass, com, inertia))

    @property
    def solved_joints(self) -> tuple[str, ...]:
        """Joints without a motor whose motion is computed from constraints, in the order of the tree."""
        return tuple(name for name in self.tree_joints if name not in self.joint_names)

    @property
    def constraints(self) -> tuple[str, ...]:
        """Names of the multipliers of cut joints, contacts and wheels."""
        return self._solver.equations().constraints

    @property
    def motor_joints(self) -> Mapping[str, str]:
        """Names of the motors of elastic joints in joint states, keyed by joint; from the robot file."""
        return self.roles.motor_names

    # ------------------------------------------------------------------ platform

    @property
    def platforms(self) -> tuple[str, ...]:
        """Links that are platforms of parallel robots."""
        return tuple(platform.link for platform in self.loops.platforms) if self.loops else ()

    @property
    def home(self) -> tuple[Array, Array]:
        """Position (3,) [m] and rotation (3, 3) of the platform at `start`, in the frame of the root link."""
        rotation, position = self._platform.pose(self.start)
        return position, rotation

    def tree_motion(self, motion: Platforms, *, guess: ArrayLike | None = None, orders: int = 3) -> TreeMotion:
        """Return the motion of all joints of the tree for a motion of the platforms (inverse kinematics of the legs).

        guess  : (tree.n,) positions near the first pose; None: the platform is moved there from `start`
        orders : number of derivatives (velocity, acceleration, jerk) of the platform that the legs must permit

        Raises PoseError for unreachable poses, singular poses of legs, and motions that the legs do not permit.
        """
        every = self.platform_closure.motion(self._motions(motion), validation.guess(guess, self.tree.n), orders)[1]
        return TreeMotion(*(every[..., k, :] for k in range(4)))

    @by_platform
    def platform_motion(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING,
                        qddd: ArrayLike = MISSING, *, guess: Guess = None, motion: Platforms | None = None) -> PlatformMotion:
        """Return the motion of the platform for a motion of the actuators, (n,) or (samples, n) (direct kinematics)."""
        platform = self._platform
        if self.order > 3:
            moved = self.motion(q, qd, qdd, qddd, guess=guess)
            return platform.motion(*moved[:4])
        base: dict[str, Any] = {"base": BaseState()} if self.has_moving_base else {}
        return self.platform_of(self.solve(q, qd, qdd, qddd, guess=guess, multipliers=False, **base))

    def platform_of(self, found: Solution) -> PlatformMotion:
        """Return the motion of the platform in a solution; derivatives that the solution lacks are zero."""
        return self._platform.motion(*self._tree_rates(found))

    def platforms_of(self, found: Solution) -> dict[str, PlatformMotion]:
        """Return the motion of each platform in a solution, keyed by link; derivatives that the solution lacks are zero."""
        rates = self._tree_rates(found)
        return {platform.link: platform.motion(*rates) for platform in (self.loops.platforms if self.loops else ())}

    def _tree_rates(self, found: Solution) -> Array:
        """Return positions and derivatives (orders, ..., tree.n) of all joints of the tree in a solution."""
        columns = [found.positions[name] for name in self.tree.joint_names]
        orders = min(4, *(column.shape[-1] for column in columns))
        return np.moveaxis(np.array([column[..., :orders] for column in columns]), (0, -1), (-1, 0))

    def _motions(self, motion: Platforms) -> list[PlatformMotion]:
        """Return the motion of each platform. Raises InputError unless exactly one motion is given for each."""
        if isinstance(motion, PlatformMotion):
            self._platform  # noqa: B018  # refuses robots with none or several
            return [motion]
        if not self.platforms or set(motion) != {*self.platforms}:
            raise InputError(f"motion is given for {some(motion)}; robot '{self.name}' has the platforms "
                             f"{some(self.platforms) or 'none'}: give that of each")
        return [motion[link] for link in self.platforms]

    def actuator_motion(self, motion: Platforms, guess: ArrayLike | None, orders: int) -> tuple[list[Array], Array]:
        """Return q, qd, qdd, qddd, (n,) or (samples, n), for a motion of the platforms, and the first closed pose (tree.n,).
        """
        found, every = self.platform_closure.motion(self._motions(motion), validation.guess(guess, self.tree.n), orders)
        return found, every[0] if every.ndim == 2 else every[0, 0] if len(every) else self.start

    def pose_of(self, guess: Platforms) -> Array:
        """Return the closed pose (tree.n,) at a pose of the platforms, reached by a continuous motion from `start`."""
        still = {link: motion.at_rest() for link, motion in zip(self.platforms, self._motions(guess), strict=True)}
        every = self.tree_motion(guess.at_rest() if isinstance(guess, PlatformMotion) else still, orders=0).q
        if every.ndim != 1:
            raise InputError(f"guess is one pose, position (3,) and rotation (3, 3); got {len(every)}")
        return every

    @property
    def _platform(self) -> Platform:
        platforms = self.loops.platforms if self.loops else ()
        if len(platforms) != 1:
            found = (f"has the platforms {some(self.platforms)}: give {{link: motion}} with that of each, or that of the "
                     "actuators" if platforms else "has no platform: give the motion of the actuators")
            raise InputError(f"robot '{self.name}' {found}, q, qd, ...")
        return platforms[0]

    @cached_property
    def platform_closure(self) -> PlatformClosure:
        """Inverse kinematics of the platforms.

        Raises InputError without a platform, or if platforms do not determine the other joints.
        """
        if not self.platforms or self.loops is None:
            self._platform  # noqa: B018  # refuses robots without one
        assert self.loops is not None
        found = PlatformClosure(self.tree.model, self.loops, self.start, self._columns, self.tree.backend)
        found.check_decided(self.closure.trials)
        return found

    def tracker(self, tolerance: float = TOLERANCE) -> LoopTracker | None:
        """Return a tracker that solves each closed pose from the previous one; None without loops. tolerance: see LoopTracker.
        """
        return LoopTracker(self._closure, tolerance) if self._closure else None

    def structure(self, use: str = INVERSE) -> Structure:
        """Return offsets and unknowns of the equations for a use, with payloads included in the links.

        use: "inverse", "carried" (prescribed base), "forward"; with given motion of the motors of elastic joints: "measured
             motors", "carried, measured motors"
        """
        return self._solver.loaded_structure(use)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without compiled functions: machine code contains addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if name not in (*COMPILED, *OF_TREES)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    # ------------------------------------------------------------------ inverse dynamics

    @by_platform
    def inverse_dynamics(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING, *higher: ArrayLike,
                         base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                         loads: Loads | None = None, motors: MotorState | None = None) -> Array:
        """Return the torques (n,) or (samples, n) of a motion [N m, N]; for the options see `solve`."""
        return self._solver.efforts(1, (q, qd, qdd, *higher), guess, Conditions(base, loads, motors))[0]

    @by_platform
    def torque_and_rate(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING,
                        qddd: ArrayLike = MISSING, *higher: ArrayLike, base: BaseState | None = None, guess: Guess = None,
                        motion: Platforms | None = None, loads: Loads | None = None,
                        motors: MotorState | None = None) -> tuple[Array, Array]:
        """Return torques and their exact time derivatives along a motion, (n,) or (samples, n) each [N m, N; N m/s, N/s].

        The motion has `order` derivatives of q. For the options see `solve`.
        """
        return self._solver.efforts(2, (q, qd, qdd, qddd, *higher), guess, Conditions(base, loads, motors))

    @by_platform
    def dynamics(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING, qddd: ArrayLike = MISSING,
                 *higher: ArrayLike, base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                 loads: Loads | None = None, motors: MotorState | None = None) -> Dynamics:
        """Return torques, torque rates, gravity torques and gravity torque rates; gravity torques hold the joints at rest."""
        found = self.torque_and_rate(q, qd, qdd, qddd, *higher, base=base, guess=guess, loads=loads, motors=motors)
        return Dynamics(*found, *self.gravity_and_rate(q, qd, base=base, guess=guess))

    @by_platform
    def motor_motion(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING, *higher: ArrayLike,
                     base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                     loads: Loads | None = None, motors: MotorState | None = None) -> MotorMotion:
        """Return torques and motion of the motors for a motion of the joints, and the loads of joints and springs.

        Rates are None if the motion has one derivative of q fewer than torque_and_rate requires. For the options see `solve`.
        """
        derivatives = (q, qd, qdd, *higher)
        given = self._solver.valid(Conditions(base, loads, motors))
        stages = 2 if len(derivatives) > self.structure(self._solver.use_of(given)).order_for(2) else 1
        return self._solver.motor_loads.motion(self._solver.solve(derivatives, stages, guess, False, given))

    @by_platform
    def solve(self, *derivatives: ArrayLike, stages: int = 2, base: BaseState | None = None, guess: Guess = None,
              motion: Platforms | None = None, loads: Loads | None = None, motors: MotorState | None = None,
              multipliers: bool = True) -> Solution:
        """Return the solution of a motion: positions, base, efforts, multipliers and their derivatives.

        derivatives : q, qd, qdd, ..., (n,) or (samples, n) each, up to derivative `order` + stages - 2 [rad, m, s]; or motion=
        stages      : 1: efforts; 2: also their rates; 3: also their second derivatives
        base        : BaseState of a moving base; for a prescribed base with acceleration and jerk, or rates
        loads       : wrenches that the environment exerts on links
        motors      : MotorState of the motors of elastic joints. Position and velocity, if q does not determine them (rotors
                      on links of a floating base). Also acceleration and jerk, if every motor is measured: then three
                      derivatives of q and of the base position suffice, and `efforts` also contains, for each elastic joint,
                      the effort at its link that model and spring do not explain
        guess       : (tree.n,) positions of all joints of the tree near the closed pose; default: `start`
        multipliers : False: omit the multipliers (an empty mapping) of over-constrained loops, which takes a tenth of the time
        """
        return self._solver.solve(derivatives, stages, guess, multipliers, Conditions(base, loads, motors))

    def close(self, q: ArrayLike, *, guess: ArrayLike | None = None) -> Array:
        """Return the positions of all joints of the tree, (tree.n,) or (samples, tree.n), with closed loops.

        guess: (tree.n,) positions near the closed pose; default: `start`

        Raises PoseError for singular and unreachable poses.
        """
        return self._solver.close(q, guess)

    def motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
               guess: ArrayLike | None = None) -> LoopMotion:
        """Return position to jerk of all joints of the tree with closed loops, and G with its rate.

        G is the Jacobian of the velocities of all joints by those of the independent joints, Khalil (56). Accelerations and
        jerks of joints with springs and of passive joints are the given (measured) ones. Raises InputError without loops.
        """
        closure = self.closure
        names = ("q", "qd", "qdd", "qddd")
        arrays = [validation.coordinates(name, value, self.joint_names)
                  for name, value in zip(names, (q, qd, qdd, qddd), strict=True)]
        count = validation.samples(arrays)
        columns = [self.joint_names.index(name) for name in closure.active_joints]
        poses, rates = self.close(q, guess=guess), [array[..., columns] for array in arrays[1:]]
        if count is None:
            return closure.motion(poses, *rates)
        rows = zip(*(np.broadcast_to(part, (count, part.shape[-1])) for part in (poses, *rates)), strict=True)
        samples = []
        for k, row in enumerate(rows):
            with validation.at_sample(k):
                samples.append(closure.motion(*row))
        return validation.stacked(LoopMotion, samples,
                                  lambda: closure.motion(self.start, *np.zeros((3, len(closure.active)))))

    def tree_state(self, q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None,
                   guess: ArrayLike | None = None) -> tuple[Array, Array]:
        """Return positions and velocities (tree.n,) of all joints of the tree, including dependent joints, at one sample."""
        if not self.solved_joints and not self.roles.follows:
            return np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
        x, v, _ = self._functions.state(q, qd, base, guess)
        joints = self._solver.equations().joints
        return x[joints], v[joints]

    def program(self, use: str | None = None) -> RobotProgram | None:
        """Return the compiled program without loads for a use of `structure`, or "gravity"; default: that of torque_and_rate.

        None if elimination is not possible, or a joint moves no mass.
        """
        return self._solver.plain_program(use or self._solver.use)

    def joint_loads(self, found: Solution) -> Array:
        """Return the loads of the joints and their rates in a solution, (stages, n) or (samples, stages, n); see motor_motion.
        """
        return self._solver.motor_loads.loads(found)

    def constraint_wrenches(self, found: Solution, base: BaseState | None = None) -> dict[str, ConstraintWrench]:
        """Return the wrench of each cut joint, contact and wheel in a solution, keyed by name.

        base: pose of a moving base, which determines the contact points of wheels on the plane z = 0
        """
        poses = base_poses(self.model, np.array([found.positions[name][0] for name in self.tree.joint_names]))
        rotation = given(base).rotation if self.roles.wheels else np.eye(3)
        return constraint_wrenches(self._solver.equations(), found, self.tree.model.frames, rotation, poses)

    def ground_reaction(self, base_wrench: ArrayLike, *, base: BaseState) -> Array:
        """Return a base wrench (6,) of a Solution in the world frame, with the moment about the world origin."""
        f, n = np.split(given(base).into_world(base_wrench), 2, axis=-1)
        return np.concatenate((f, n + np.cross(given(base).position, f)), axis=-1)

    def zero_moment_point(self, base_wrench: ArrayLike, *, base: BaseState, ground: ArrayLike = (0.0, 0.0, 0.0),
                          normal: ArrayLike = (0.0, 0.0, 1.0)) -> Array:
        """Return the zero moment point (3,) in the world frame [m]: the ground reaction has no tilting moment about it.

        base_wrench : base wrench of a Solution
        ground      : (3,) a point of the ground plane
        normal      : (3,) normal of the ground, upwards

        NaN if the robot does not press on the ground.
        """
        weight = self.tree.total_mass * float(np.linalg.norm(self.tree.gravity_vector))
        return zero_moment_point(self.ground_reaction(base_wrench, base=base), weight,
                                             validation.vector("ground", ground, 3),
                                             validation.vector("normal", normal, 3))

    # ------------------------------------------------------------------ forward dynamics

    @by_platform
    def forward_dynamics(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, tau: ArrayLike = MISSING, *,
                         base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                         loads: Loads | None = None, motors: MotorState | None = None) -> Array:
        """Return the accelerations (n,) or (samples, n) for motor torques tau (n,); torques of other joints are ignored."""
        if self.is_bare and motors is None:
            return self.tree.free_response(q, qd, tau, given(base), loads)[1]
        conditions = Conditions(_free(base), loads, motors, tau)
        self._solver.check_motors(conditions)
        return self._solver.efforts(1, (q, qd), guess, conditions)[0]

    @by_platform
    def response(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, tau: ArrayLike = MISSING, *, guess: Guess = None,
                 motion: Platforms | None = None, base: BaseState | None = None, loads: Loads | None = None,
                 motors: MotorState | None = None) -> Solution:
        """Return the Solution of every coordinate for motor torques tau, (n,) or (samples, n).

        Ground contacts determine the motion of the base: `Solution.base` contains its acceleration, `multipliers` the contact
        forces. Elastic joints require motors=MotorState(q, qd), which determines the torques of their springs.
        """
        return self._solver.response(q, qd, guess, Conditions(_free(base), loads, motors, tau))

    # ------------------------------------------------------------------ equations of independent coordinates

    @property
    def independent(self) -> tuple[str, ...]:
        """Independent coordinates, the rows of mass_matrix: base, joints without constraints, motors of elastic joints."""
        return self._functions.reduced.independent

    @by_platform
    def mass_matrix(self, q: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
                    motion: Platforms | None = None) -> Array:
        """Return the mass matrix M of the `independent` coordinates, (N, N) or (samples, N, N): M a + bias = efforts.

        base: required only for robots with wheels, which roll on the plane z = 0 of the world
        """
        if base is None and self.has_moving_base and not self.roles.wheels:
            base = BaseState()
        if self.is_bare:
            return self.tree.free_mass_matrix(q)
        return self._functions.mass_matrix(q, base=base, guess=guess)

    @by_platform
    def bias(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
             motion: Platforms | None = None, loads: Loads | None = None, motors: MotorState | None = None) -> Array:
        """Return the efforts (N,) of the `independent` coordinates at zero acceleration.

        They include velocity terms, gravity, friction, springs and loads. Loads are those of one sample, and apply to all
        samples.
        """
        if self.is_bare and motors is None:
            return self.tree.free_bias(q, qd, given(base), loads)
        return self._functions.bias(q, qd, base=base, guess=guess, motors=motors, loads=loads)

    @by_platform
    def gravity(self, q: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
                motion: Platforms | None = None) -> Array:
        """Return the efforts (N,) of the `independent` coordinates that hold the robot at rest against gravity."""
        if self.is_bare:
            return self.tree.free_gravity(q, given(base))
        return self._functions.gravity(q, base=base, guess=guess)

    @by_platform
    def gravity_and_rate(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None,
                         guess: Guess = None, motion: Platforms | None = None) -> tuple[Array, Array]:
        """Return the torques (n,) that hold the joints at rest against gravity, and their rates along the motion."""
        return self._solver.gravity_and_rate(q, qd, base, guess, self._functions.gravity_and_rate)

    @by_platform
    def energy(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
               motion: Platforms | None = None, motors: MotorState | None = None) -> Energy:
        """Return kinetic energy, including rotors, and potential energy of gravity and springs [J].

        Without motors=, the springs of elastic joints are assumed relaxed, with motors that move with their joints.
        """
        if self.is_bare and motors is None:
            return self.tree.free_energy(q, qd, given(base))
        return self._functions.energy(q, qd, base=base, guess=guess, motors=motors)

    @by_platform
    def center_of_mass(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None,
                       guess: Guess = None, motion: Platforms | None = None) -> CenterOfMass:
        """Return position and velocity of the centre of mass, and the momentum about it: (3,), (3,), (6,) or (samples, ...).
        """
        if self.is_bare:
            return self.tree.free_center_of_mass(q, qd, given(base))
        return self._functions.center_of_mass(q, qd, base=base, guess=guess)

    # ------------------------------------------------------------------ where links are

    @by_platform
    def link_pose(self, link: str, q: ArrayLike = MISSING, point: ArrayLike | None = None, *, base: BaseState | None = None,
                  guess: Guess = None, motion: Platforms | None = None) -> Pose:
        """Return R (3, 3) and p (3,) [m] of the frame of a link, or of a point (3,) in it.

        They are expressed in the frame of the root link; with a moving base, in the world frame.
        """
        return self.tree.link_pose(link, self.close(q, guess=guess), point,
                                   base=given(base) if self.has_moving_base else None)

    @by_platform
    def link_velocity(self, link: str, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, point: ArrayLike | None = None, *,
                      base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None) -> Array:
        """Return (6,) or (samples, 6): velocity of the point [m/s], angular velocity [rad/s], in the frame of `link_pose`."""
        if self.is_bare:
            return self.tree.link_velocity(link, q, qd, point, base=given(base))
        return self._functions.link_velocity(link, q, qd, point, base=base, guess=guess)

    def link_velocities(self, links: Sequence[str], q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None) -> Array:
        """Return (len(links), 6) or (samples, len(links), 6): velocities of links, each expressed in the frame of the link.

        Raises InputError for robots with loops.
        """
        if self.solved_joints:
            raise InputError(f"link_velocities of robot '{self.name}', whose joints follow from loops: "
                             "call link_velocity for each link")
        velocity = given(base).velocity if self.has_moving_base else np.zeros(6)
        return self.tree.link_velocities(links, q, qd, velocity)

    @by_platform
    def jacobian(self, link: str, q: ArrayLike = MISSING, point: ArrayLike | None = None, *, base: BaseState | None = None,
                 guess: Guess = None, motion: Platforms | None = None) -> Array:
        """Return (6, N) or (samples, 6, N): derivative of link_velocity by the velocities of the `independent` coordinates.

        Motors of elastic joints are omitted; the velocities of a base are BaseState.velocity.
        """
        if self.is_bare:
            return self.tree.jacobian(link, q, point, base=given(base))
        return self._functions.jacobian(link, q, point, base=base, guess=guess)

    @by_platform
    def jacobian_rate(self, link: str, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, point: ArrayLike | None = None, *,
                      base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None) -> Array:
        """Return (6, N) or (samples, 6, N), the time derivative of `jacobian` along the motion."""
        if self.is_bare:
            return self.tree.jacobian_rate(link, q, qd, point, base=given(base))
        return self._functions.jacobian_rate(link, q, qd, point, base=base, guess=guess)

    # ------------------------------------------------------------------ derivatives and internal forces

    @by_platform
    def coriolis(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
                 motion: Platforms | None = None, motors: MotorState | None = None) -> Array:
        """Return the Coriolis matrix C of the `independent` coordinates, (N, N) or (samples, N, N).

        M' - 2 C is skew-symmetric, and C v are the velocity terms of the efforts. v: velocities of the `independent`
        coordinates, those of a base in its frame.
        """
        return self._functions.coriolis(q, qd, base=base, guess=guess, motors=motors)

    @by_platform
    def sensitivities(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING, *higher: ArrayLike,
                      base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                      loads: Loads | None = None, motors: MotorState | None = None) -> tuple[Array, ...]:
        """Return the partial derivatives of inverse_dynamics by q, qd, qdd, ..., (n, n) or (samples, n, n) each.

        Rows are torques. There are `order` derivatives, that by q included. The state of the base is constant, loops remain
        closed, and computed accelerations change. Columns of unused inputs (for instance the acceleration of a spring joint)
        are zero. For the options see `solve`.
        """
        return self._derivatives.tables(1, self.order, (q, qd, qdd, *higher), guess, Conditions(base, loads, motors))

    @by_platform
    def rate_sensitivities(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING,
                           qddd: ArrayLike = MISSING, *higher: ArrayLike, base: BaseState | None = None, guess: Guess = None,
                           motion: Platforms | None = None, loads: Loads | None = None,
                           motors: MotorState | None = None) -> tuple[Array, ...]:
        """Return the partial derivatives of torque rates by q, ..., one more than `sensitivities`; see there."""
        return self._derivatives.tables(2, self.order, (q, qd, qdd, qddd, *higher), guess, Conditions(base, loads, motors))

    @by_platform
    def joint_wrenches(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING,
                       qddd: ArrayLike | None = None, *higher: ArrayLike, base: BaseState | None = None, guess: Guess = None,
                       motion: Platforms | None = None, loads: Loads | None = None,
                       motors: MotorState | None = None) -> JointWrenches:
        """Return the internal wrench of every joint that moves a link, see JointWrenches.

        Rates are included if `order` derivatives of q are given. Forces of cut joints, contacts, wheels and rotors are
        included.

        Raises InputError for over-constrained robots, whose internal forces depend on elasticity.
        """
        derivatives = (q, qd, qdd) if qddd is None else (q, qd, qdd, qddd, *higher)
        stages = 2 if len(derivatives) > self.order else 1
        if self.is_bare and motors is None and given(base).rates is None:
            moved = self.solve(*derivatives, stages=stages, base=base, loads=loads)
            return self.tree.free_joint_wrenches(derivatives[:stages + 2], given(base), moved.base_acceleration,
                                              moved.base_jerk if stages == 2 else None, loads)
        return self._derivatives.joint_wrenches(stages, derivatives, guess, Conditions(base, loads, motors))

    # ------------------------------------------------------------------ other parameters, and what fixed trees alone have

    def with_masses(self, factors: ArrayLike) -> Robot:
        """Return the robot with mass and inertia of each moving link multiplied by factors (len(moving_joints),)."""
        return self.with_tree(self.tree.with_masses(factors))

    def with_joint_dynamics(self, terms: Mapping[str, JointDynamics]) -> Robot:
        """Return the robot with new joint dynamics, keyed by joint name (mimic joints included)."""
        return self.with_tree(self.tree.with_joint_dynamics(terms))

    def with_coupled_motors(self, motors: Sequence[CoupledMotor]) -> Robot:
        """Return the robot with these motors of coupled transmissions, which replace the previous ones."""
        return self.with_tree(self.tree.with_coupled_motors(motors))

    def coupled_motor_torques(self, tau: ArrayLike) -> dict[str, Array]:
        """Return the torques of the motors of coupled transmissions [N m, on the motor side], keyed by name.

        They are numbers or (samples,).

        tau: joint torques (n,) or (samples, n), including rotors and friction

        Raises InputError if joint torques do not determine them.
        """
        given = validation.coordinates("tau", tau, self.joint_names)
        whole = np.zeros((*given.shape[:-1], self.tree.n))
        whole[..., self._columns] = given
        return self.tree.coupled_motor_torques(whole)

    def power(self, qd: ArrayLike, tau: ArrayLike) -> Array:
        """Return the power of the joint torques [W], a number or (samples,)."""
        moving, driven = (validation.coordinates(name, x, self.joint_names) for name, x in (("qd", qd), ("tau", tau)))
        return np.asarray((moving * driven).sum(axis=-1))

    friction = of_fixed_tree(TreeDynamics.friction)
    load_friction = of_fixed_tree(TreeDynamics.load_friction)
    measured_torque = of_fixed_tree(TreeDynamics.measured_torque)
    generalized_momentum = of_fixed_tree(TreeDynamics.generalized_momentum)
    mass_matrix_rate = of_fixed_tree(TreeDynamics.mass_matrix_rate)
    link_torques = of_fixed_tree(TreeDynamics.link_torques)
    link_torques_and_rates = of_fixed_tree(TreeDynamics.link_torques_and_rates)
    torque_deviations = of_fixed_tree(TreeDynamics.torque_deviations)
    joint_wrench_sensitivities = of_fixed_tree(TreeDynamics.joint_wrench_sensitivities)
    recursion = of_fixed_tree(TreeDynamics.recursion)
    kernel = of_fixed_tree(TreeDynamics.kernel)
    c_source = of_fixed_tree(TreeDynamics.c_source)

    def _fixed_tree(self, function: str) -> TreeDynamics:
        """Return the tree. Raises InputError if `function` is not defined for this robot."""
        if not self.is_fixed_tree:
            declared = some(self.sections) or f"base: {'prescribed' if self.carried else 'floating'}"
            raise InputError(f"{function} is defined for a tree of rigid links on a fixed base; robot '{self.name}' has "
                             f"{declared}")
        return self.tree

    # ------------------------------------------------------------------ solvers and kernels

"""Robot: one formulation for any combination of moving base, loops, springs, elastic joints, contacts and wheels.

Every coordinate has a role (roles.py), structural analysis says how often each equation is differentiated (structure.py), and
one matrix gives accelerations, efforts and multipliers, then their rates (solution.py). docs/one_robot.md derives the
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
COMPILED = ("_solver", "_solvers", "_derivatives", "_functions")  # what holds machine code
# Sections of a robot file that decide the numbers.
ROLES = ("loops", "platform", "platforms", "springs", "passive", "flexible_links", "actuation_weights", "ground_contacts",
         "wheels", "fluid")
DECIDING = ("base", "drives", *ROLES, "elastic_joints", "motors")
# Functions for which a fixed tree has its own kernels (tree.py), without the general equations.
OF_TREES = ("torque_and_rate", "dynamics", "inverse_dynamics", "forward_dynamics", "bias", "gravity", "gravity_and_rate",
            "mass_matrix", "energy", "center_of_mass", "link_pose", "link_velocity", "jacobian", "jacobian_rate", "coriolis",
            "sensitivities", "rate_sensitivities", "joint_wrenches")


def _plain(value: Any) -> Any:
    """Return lists of numbers and words in a fixed order, to be hashed."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return [(key, _plain(entry)) for key, entry in sorted(value.items())]
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


Options = ParamSpec("Options")
Result = TypeVar("Result")


def of_fixed_tree(method: Callable[Concatenate[TreeDynamics, Options], Result]) -> Callable[
        Concatenate[Robot, Options], Result]:
    """Return a method of fixed trees as one of robots; InputError for robots that are more than a tree on a fixed base."""
    @wraps(method)
    def call(self: Robot, *args: Options.args, **options: Options.kwargs) -> Result:
        return method(self._fixed_tree(method.__name__), *args, **options)

    call.__doc__ = f"{method.__doc__ or ''}\n\n        Fixed trees only; InputError for other robots."
    return cast("Callable[Concatenate[Robot, Options], Result]", call)


def _free(base: BaseState | None) -> BaseState | None:
    """Return the state of a base alone: forward dynamics finds its motion."""
    return base.free if isinstance(base, BaseState) and base.is_given else base


class Robot(TreeFacts):
    """Exact dynamics of a tree with any combination of base, loops, springs, elastic joints, motors on links, contacts and
    wheels.

    tree       : spanning tree, loaded with base="floating" where the base moves; of a Robot, its tree
    parameters : path of a robot file, or its content; ModelError lists everything that is wrong

    q, qd, qdd, ... have a column for each of `joint_names`, (n,) or (samples, n), and as many derivatives as `order` says.
    Motion of joints with motors is given. Of `state_joints` (springs, passive joints) position and velocity are read, their
    accelerations follow. Joints of loops without a motor follow. A free base follows from base=BaseState(...); one whose
    motion is given has its acceleration and jerk in it. Torques are (n,): of motors; of spring joints, their
    springs'; of passive joints, zero. Loads act BY the environment ON a link, as in TreeDynamics.torque_and_rate;
    world_wrenches along the world's axes.
    """

    __repr__ = summary

    def __init__(self, tree: TreeDynamics | Robot, parameters: Source | None = None):
        self.tree: TreeDynamics = tree.tree if isinstance(tree, Robot) else tree
        self._file = robot_file.draft({} if parameters is None else parameters)
        self.carried = self._file.content.get("base") == "prescribed"
        self._prepare()
        if not self.is_fixed_tree:
            self._solver.structure(self._solver.use)  # refuses what no motion decides

    def _prepare(self) -> None:
        """Begin without compiled functions. A fixed tree answers by its own kernels, not by the general equations."""
        self._solvers: dict[tuple[str, ...], MotionSolver] = {}  # by the links that carry payloads
        self.is_fixed_tree: bool = self.tree.model.base == "fixed" and not self.sections
        # Nothing but a moving base is declared: kernels of the tree serve it.
        self.is_bare = self.has_moving_base and not self.sections and not self.tree.model.coupled_motors
        if self.is_fixed_tree:
            self.__dict__.update({name: getattr(self.tree, name) for name in OF_TREES})

    @cached_property
    def roles(self) -> DeclaredRoles:
        """Role of each joint, and what the robot file declares beside the tree."""
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
        """Acceleration of gravity (3,) [m/s^2], along the axes of the root link, or of the world where the base moves."""
        return self.tree.gravity_vector

    @property
    def backend(self) -> str:
        """Name of what runs the kernels: "llvm", "c", "python" or "reference"."""
        return self.tree.backend

    @property
    def payloads(self) -> Mapping[str, Payload]:  # type: ignore[override]
        """Payloads by URDF link."""
        return self.tree.payloads

    def mdh_table(self) -> list[tuple[Any, ...]]:
        """Return (name, parent, sigma, gamma, b, alpha, d, theta, r) of every frame; parent 0 is the root, k row k from 1.

        Seven frames that describe the pose of a platform, and are no joints of the URDF, are named "LINK: x" to "LINK: rz".
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
        """Joints with springs and passive joints: their accelerations follow from their state."""
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
        """Fingerprint of everything that decides the numbers: 16 hexadecimal digits."""
        if self.is_fixed_tree:
            return self.tree.model_id
        return hashlib.sha256(repr((self.tree.model_id, _plain(self.declaration))).encode()).hexdigest()[:16]

    @property
    def home_motion(self) -> Array:
        """q, qd, ... (order + 1, n) of the robot at rest: all joints at zero, or where its loops are closed."""
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
        """Motors of coupled transmissions with their speeds: "wrist.motor_6 = 32 joint_5 + 32 joint_6"."""
        names = self.tree.joint_names
        return [f"{motor.name} = " + " + ".join(f"{ratio:g} {names[k]}" for k, ratio in zip(
            motor.coordinates, motor.ratios, strict=True)) for motor in self.model.coupled_motors]

    @property
    def n(self) -> int:
        """Number of joints in `joint_names`."""
        return len(self.joint_names)

    def by_joint(self, values: ArrayLike) -> dict[str, Array]:
        """Return values (n,) or (samples, n) by joint name: numbers, or (samples,) each. NaN stays."""
        columns = validation.numbers("values", values)
        if columns.ndim not in (1, 2) or columns.shape[-1] != self.n:
            raise InputError(f"values are {columns.shape}; robot '{self.name}' needs a column for each of its joints: "
                             f"({self.n},) or (samples, {self.n})")
        return dict(zip(self.joint_names, columns.T, strict=True))

    @property
    def limits(self) -> Limits:
        """Limits in the order of `joint_names`; NaN where unknown."""
        return self.tree.limits.of(self._columns)

    @property
    def drive_limits(self) -> tuple[DriveLimit, ...]:
        """Limits of drives and supplies, by numbers in `joint_names`."""
        return drives.limits_of(self.tree.drive_limits, self._columns)

    @property
    def order(self) -> int:
        """Number of derivatives of q that decide the torque rate; one less decides the torque."""
        return 3 if self.is_fixed_tree else max(3, self._solver.structure(self._solver.use).order)

    @property
    def has_moving_base(self) -> bool:
        """True if calls take base=BaseState(...)."""
        return self.model.base == "floating"

    @property
    def declaration(self) -> dict[str, Any]:
        """Return the sections of the robot file that decide the numbers."""
        return {name: self._file.content[name] for name in DECIDING if name in self._file.content}

    @property
    def start(self) -> Array:
        """Positions of all joints of the tree in a pose in which the loops are closed."""
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
        """Sections of the robot file that declare more than a base and its drives, as ("loops",)."""
        return tuple(name for name in self.declaration if name not in ("base", "drives"))

    @property
    def is_mechanism(self) -> bool:
        """True if the robot file adds only loops and platforms to the tree and its base."""
        return "loops" in self.sections and {"loops", "platform", "platforms"}.issuperset(self.sections)

    @property
    def loops(self) -> Loops | None:
        """Cut joints, and the independent joints as the active ones, in numbers of the tree; None without loops."""
        return None if self.is_fixed_tree else self.roles.loops

    @property
    def closure(self) -> LoopClosure:
        """Equations of the loops, solved for closed poses. InputError without loops."""
        if self._closure is None:
            raise InputError(f"robot '{self.name}' has no closed loops")
        return self._closure

    def held(self, gravity: ArrayLike) -> Robot:
        """Return the same robot on a base that does not move. gravity: (3,) [m/s^2] in the frame of the root link."""
        return self.with_tree(self.tree.held(gravity))

    def with_tree(self, tree: TreeDynamics) -> Robot:
        """Return the same robot with a tree of the same joints and frames: other payloads, joint dynamics or gravity, or the
        base held. Kernels are shared where payloads alone differ, else compiled anew.
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
        base           : "fixed"; "floating", whose acceleration follows; "prescribed", whose motion is given
        backend        : "llvm", "python" or "reference"; the same numbers at different speeds
        gravity        : acceleration of gravity [m/s^2] in the root link's frame, in the world where the base moves
        friction       : use the URDF's <dynamics damping= friction=>
        joint_dynamics : rotor inertia, friction, offset by joint name
        allow_xacro    : run a .xacro file, which is a program, without a warning
        Raises ModelError, which lists everything that is wrong with the URDF.
        """
        tree = TreeDynamics.from_urdf(source, "fixed" if base == "fixed" else "floating" if base in MOVING_BASES else base,
                                      backend, gravity, friction, joint_dynamics, allow_xacro)
        return cls(tree, {"base": base} if base in MOVING_BASES else None)

    @classmethod
    def from_model(cls, model: Model, backend: str = "llvm", gravity: ArrayLike = STANDARD_GRAVITY) -> Robot:
        """Return the robot of a model; arguments as in `from_urdf`."""
        return cls(TreeDynamics(model, backend, gravity))

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> Robot:
        """Return the robot with a rigid body on a link; arguments as in TreeDynamics.with_payload."""
        return self.with_tree(self.tree.with_payload(link, mass, com, inertia))

    @property
    def solved_joints(self) -> tuple[str, ...]:
        """Joints without a motor whose motion follows from constraints, in the order of the tree."""
        return tuple(name for name in self.tree_joints if name not in self.joint_names)

    @property
    def constraints(self) -> tuple[str, ...]:
        """Names of the multipliers of cut joints, contacts and wheels."""
        return self._solver.equations().constraints

    @property
    def motor_joints(self) -> Mapping[str, str]:
        """Names of the motors in joint states by elastic joint, as the robot file says them."""
        return self.roles.motor_names

    # ------------------------------------------------------------------ platform

    @property
    def platforms(self) -> tuple[str, ...]:
        """Links that are platforms of parallel robots."""
        return tuple(platform.link for platform in self.loops.platforms) if self.loops else ()

    @property
    def home(self) -> tuple[Array, Array]:
        """Position (3,) [m] and rotation (3, 3) of the platform in the root link's frame at `start`."""
        rotation, position = self._platform.pose(self.start)
        return position, rotation

    def tree_motion(self, motion: Platforms, *, guess: ArrayLike | None = None, orders: int = 3) -> TreeMotion:
        """Return the motion of all joints of the tree from that of the platforms: inverse kinematics of the legs.

        guess  : (tree.n,) near the first pose; else the platform is led there from `start`
        orders : how many of velocity, acceleration and jerk the legs must allow
        Raises PoseError at poses out of reach, singular poses of legs, and motions that the legs do not allow.
        """
        every = self.platform_closure.motion(self._motions(motion), validation.guess(guess, self.tree.n), orders)[1]
        return TreeMotion(*(every[..., k, :] for k in range(4)))

    @by_platform
    def platform_motion(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING,
                        qddd: ArrayLike = MISSING, *, guess: Guess = None, motion: Platforms | None = None) -> PlatformMotion:
        """Return the motion of the platform from that of the actuators, (n,) or (samples, n): direct kinematics."""
        platform = self._platform
        if self.order > 3:
            moved = self.motion(q, qd, qdd, qddd, guess=guess)
            return platform.motion(*moved[:4])
        base: dict[str, Any] = {"base": BaseState()} if self.has_moving_base else {}
        return self.platform_of(self.solve(q, qd, qdd, qddd, guess=guess, multipliers=False, **base))

    def platform_of(self, found: Solution) -> PlatformMotion:
        """Return the motion of the platform in a solution; derivatives that it does not have are zero."""
        return self._platform.motion(*self._tree_rates(found))

    def platforms_of(self, found: Solution) -> dict[str, PlatformMotion]:
        """Return the motion of each platform in a solution, by its link; derivatives that it does not have are zero."""
        rates = self._tree_rates(found)
        return {platform.link: platform.motion(*rates) for platform in (self.loops.platforms if self.loops else ())}

    def _tree_rates(self, found: Solution) -> Array:
        """Return positions and derivatives (orders, ..., tree.n) of all joints of the tree in a solution."""
        columns = [found.positions[name] for name in self.tree.joint_names]
        orders = min(4, *(column.shape[-1] for column in columns))
        return np.moveaxis(np.array([column[..., :orders] for column in columns]), (0, -1), (-1, 0))

    def _motions(self, motion: Platforms) -> list[PlatformMotion]:
        """Return the motion of each platform. InputError unless there is one for each."""
        if isinstance(motion, PlatformMotion):
            self._platform  # noqa: B018  # refuses robots with none or several
            return [motion]
        if not self.platforms or set(motion) != {*self.platforms}:
            raise InputError(f"motion is given for {some(motion)}; robot '{self.name}' has the platforms "
                             f"{some(self.platforms) or 'none'}: give that of each")
        return [motion[link] for link in self.platforms]

    def actuator_motion(self, motion: Platforms, guess: ArrayLike | None, orders: int) -> tuple[list[Array], Array]:
        """Return q, qd, qdd, qddd, (n,) or (samples, n), from the motion of the platforms, and the first closed pose
        (tree.n,).
        """
        found, every = self.platform_closure.motion(self._motions(motion), validation.guess(guess, self.tree.n), orders)
        return found, every[0] if every.ndim == 2 else every[0, 0] if len(every) else self.start

    def pose_of(self, guess: Platforms) -> Array:
        """Return the closed pose (tree.n,) at a pose of the platforms that the legs are led to from `start`."""
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
        """Inverse kinematics of the platforms. InputError without one, and where they do not decide the other joints."""
        if not self.platforms or self.loops is None:
            self._platform  # noqa: B018  # refuses robots without one
        assert self.loops is not None
        found = PlatformClosure(self.tree.model, self.loops, self.start, self._columns, self.tree.backend)
        found.check_decided(self.closure.trials)
        return found

    def tracker(self, tolerance: float = TOLERANCE) -> LoopTracker | None:
        """Return a tracker that finds each closed pose from the last one; None without loops. tolerance: see LoopTracker."""
        return LoopTracker(self._closure, tolerance) if self._closure else None

    def structure(self, use: str = INVERSE) -> Structure:
        """Return offsets and unknowns for a use, with the payloads in the links of its equations: "inverse", "carried" (the
        base's motion is given), "forward"; with the motion of motors behind springs given, "measured motors" and "carried,
        measured motors".
        """
        return self._solver.loaded_structure(use)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is compiled: machine code holds addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if name not in (*COMPILED, *OF_TREES)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    # ------------------------------------------------------------------ inverse dynamics

    @by_platform
    def inverse_dynamics(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING, *higher: ArrayLike,
                         base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                         loads: Loads | None = None, motors: MotorState | None = None) -> Array:
        """Return the torques (n,) or (samples, n) of a motion [N m, N]; options as of `solve`."""
        return self._solver.efforts(1, (q, qd, qdd, *higher), guess, Conditions(base, loads, motors))[0]

    @by_platform
    def torque_and_rate(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING,
                        qddd: ArrayLike = MISSING, *higher: ArrayLike, base: BaseState | None = None, guess: Guess = None,
                        motion: Platforms | None = None, loads: Loads | None = None,
                        motors: MotorState | None = None) -> tuple[Array, Array]:
        """Return torques and their exact time derivatives along the motion, (n,) or (samples, n) [N m, N; N m/s, N/s].

        Takes `order` derivatives of q; options as of `solve`.
        """
        return self._solver.efforts(2, (q, qd, qdd, qddd, *higher), guess, Conditions(base, loads, motors))

    @by_platform
    def dynamics(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING, qddd: ArrayLike = MISSING,
                 *higher: ArrayLike, base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                 loads: Loads | None = None, motors: MotorState | None = None) -> Dynamics:
        """Return torques, rates, and of both the share that holds the joints still against gravity on a held base."""
        found = self.torque_and_rate(q, qd, qdd, qddd, *higher, base=base, guess=guess, loads=loads, motors=motors)
        return Dynamics(*found, *self.gravity_and_rate(q, qd, base=base, guess=guess))

    @by_platform
    def motor_motion(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING, *higher: ArrayLike,
                     base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                     loads: Loads | None = None, motors: MotorState | None = None) -> MotorMotion:
        """Return torques and motion of the motors for a motion of the joints, and the loads of joints and springs.

        With one derivative of q fewer than torque_and_rate takes the rates are None; options as of `solve`.
        """
        derivatives = (q, qd, qdd, *higher)
        given = self._solver.valid(Conditions(base, loads, motors))
        stages = 2 if len(derivatives) > self.structure(self._solver.use_of(given)).order_for(2) else 1
        return self._solver.motor_loads.motion(self._solver.solve(derivatives, stages, guess, False, given))

    @by_platform
    def solve(self, *derivatives: ArrayLike, stages: int = 2, base: BaseState | None = None, guess: Guess = None,
              motion: Platforms | None = None, loads: Loads | None = None, motors: MotorState | None = None,
              multipliers: bool = True) -> Solution:
        """Return everything that follows from a motion: positions, base, efforts, multipliers and their derivatives.

        derivatives : q, qd, qdd, ..., (n,) or (samples, n) each, up to derivative `order` + stages - 2 [rad, m and
            seconds]; or motion=
        stages : 1 for efforts, 2 for their rates as well, 3 for second rates
        base   : BaseState of a moving base, with acceleration and jerk, or rates, where its motion is given
        loads  : wrenches that the environment exerts on links
        motors : MotorState of the motors behind springs. Position and velocity where q does not decide them: rotors on links
            of a free base. Acceleration and jerk too where every motor is measured: three derivatives of q and of the base's
            position are enough then, and `efforts` has an entry for each elastic joint too: the effort at its link that
            model and spring do not explain
        guess  : (tree.n,) positions of all joints of the tree near the closed pose that is meant; default `start`
        multipliers : False leaves the multipliers out (an empty mapping) where loops hold more than the motion needs: the
            result then takes a tenth of the time
        """
        return self._solver.solve(derivatives, stages, guess, multipliers, Conditions(base, loads, motors))

    def close(self, q: ArrayLike, *, guess: ArrayLike | None = None) -> Array:
        """Return the positions of all joints of the tree, (tree.n,) or (samples, tree.n), on closed loops.

        guess: (tree.n,) near the closed pose that is meant; default `start`. Raises PoseError at singular poses and out of
               reach.
        """
        return self._solver.close(q, guess)

    def motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
               guess: ArrayLike | None = None) -> LoopMotion:
        """Return positions, velocities, accelerations and jerks of all joints of the tree on closed loops, and G with its
        rate: velocities of all joints by those of the independent ones, Khalil (56). InputError without loops.

        Accelerations and jerks of joints with springs and of passive joints are those given, as measured.
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
        """Return positions and velocities (tree.n,) of all joints of the tree, those that follow included, of one sample."""
        if not self.solved_joints and not self.roles.follows:
            return np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
        x, v, _ = self._functions.state(q, qd, base, guess)
        joints = self._solver.equations().joints
        return x[joints], v[joints]

    def program(self, use: str | None = None) -> RobotProgram | None:
        """Return the compiled program without loads for a use of `structure`, "gravity", or by default of torque_and_rate.

        None where elimination does not fit, or a joint moves no mass.
        """
        return self._solver.plain_program(use or self._solver.use)

    def joint_loads(self, found: Solution) -> Array:
        """Return loads of the joints and their rates in a solution of `solve`, as motor_motion gives them: (stages, n) or
        (samples, stages, n).
        """
        return self._solver.motor_loads.loads(found)

    def constraint_wrenches(self, found: Solution, base: BaseState | None = None) -> dict[str, ConstraintWrench]:
        """Return the wrench of each cut joint, contact and wheel of a solution, by its name.

        base: pose of a moving base, which decides where wheels touch the plane z = 0
        """
        poses = base_poses(self.model, np.array([found.positions[name][0] for name in self.tree.joint_names]))
        rotation = given(base).rotation if self.roles.wheels else np.eye(3)
        return constraint_wrenches(self._solver.equations(), found, self.tree.model.frames, rotation, poses)

    def ground_reaction(self, base_wrench: ArrayLike, *, base: BaseState) -> Array:
        """Return a base wrench (6,) of a Solution along the world's axes, its moment about the world's origin."""
        f, n = np.split(given(base).into_world(base_wrench), 2, axis=-1)
        return np.concatenate((f, n + np.cross(given(base).position, f)), axis=-1)

    def zero_moment_point(self, base_wrench: ArrayLike, *, base: BaseState, ground: ArrayLike = (0.0, 0.0, 0.0),
                          normal: ArrayLike = (0.0, 0.0, 1.0)) -> Array:
        """Return where the ground reaction acts (3,) in the world: the point of the ground about which it has no tilting
        moment [m].

        base_wrench: of a Solution; ground: a point of the plane; normal: out of the ground. NaN while nothing presses on it
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
        """Return the accelerations (n,) or (samples, n) under motor torques tau (n,); those of other joints are not read."""
        if self.is_bare and motors is None:
            return self.tree.free_response(q, qd, tau, given(base), loads)[1]
        conditions = Conditions(_free(base), loads, motors, tau)
        self._solver.check_motors(conditions)
        return self._solver.efforts(1, (q, qd), guess, conditions)[0]

    @by_platform
    def response(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, tau: ArrayLike = MISSING, *, guess: Guess = None,
                 motion: Platforms | None = None, base: BaseState | None = None, loads: Loads | None = None,
                 motors: MotorState | None = None) -> Solution:
        """Return the Solution of every coordinate under motor torques tau, (n,) or (samples, n).

        Holding contacts decide the base's motion: `Solution.base` has its acceleration, `multipliers` the contact forces.
        Elastic joints need motors=MotorState(q, qd): their springs pull by where the motors are.
        """
        return self._solver.response(q, qd, guess, Conditions(_free(base), loads, motors, tau))

    # ------------------------------------------------------------------ equations of independent coordinates

    @property
    def independent(self) -> tuple[str, ...]:
        """Coordinates that are free: the base, joints that no constraint decides, motors behind springs; rows of
        mass_matrix.
        """
        return self._functions.reduced.independent

    @by_platform
    def mass_matrix(self, q: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
                    motion: Platforms | None = None) -> Array:
        """Return M of the `independent` coordinates: M a + bias = efforts. Shape (N, N) or (samples, N, N).

        base: needed with wheels alone, which roll on the plane z = 0 of the world
        """
        if base is None and self.has_moving_base and not self.roles.wheels:
            base = BaseState()
        if self.is_bare:
            return self.tree.free_mass_matrix(q)
        return self._functions.mass_matrix(q, base=base, guess=guess)

    @by_platform
    def bias(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
             motion: Platforms | None = None, loads: Loads | None = None, motors: MotorState | None = None) -> Array:
        """Return the efforts (N,) without acceleration of the `independent` coordinates: velocities, gravity, friction,
        springs, loads.

        Loads are those of one sample, for all samples.
        """
        if self.is_bare and motors is None:
            return self.tree.free_bias(q, qd, given(base), loads)
        return self._functions.bias(q, qd, base=base, guess=guess, motors=motors, loads=loads)

    @by_platform
    def gravity(self, q: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
                motion: Platforms | None = None) -> Array:
        """Return the efforts (N,) of the `independent` coordinates that hold the robot still against gravity alone."""
        if self.is_bare:
            return self.tree.free_gravity(q, given(base))
        return self._functions.gravity(q, base=base, guess=guess)

    @by_platform
    def gravity_and_rate(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None,
                         guess: Guess = None, motion: Platforms | None = None) -> tuple[Array, Array]:
        """Return the torques (n,) that hold the joints still against gravity, and their rates as base and joints move."""
        return self._solver.gravity_and_rate(q, qd, base, guess, self._functions.gravity_and_rate)

    @by_platform
    def energy(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None, guess: Guess = None,
               motion: Platforms | None = None, motors: MotorState | None = None) -> Energy:
        """Return kinetic energy, rotors included, and potential energy of gravity and springs [J].

        Without motors the springs of elastic joints are relaxed and their motors turn with the joints.
        """
        if self.is_bare and motors is None:
            return self.tree.free_energy(q, qd, given(base))
        return self._functions.energy(q, qd, base=base, guess=guess, motors=motors)

    @by_platform
    def center_of_mass(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, *, base: BaseState | None = None,
                       guess: Guess = None, motion: Platforms | None = None) -> CenterOfMass:
        """Return position and velocity of the mass centre and the momentum about it: (3,), (3,), (6,) or (samples, ...).
        """
        if self.is_bare:
            return self.tree.free_center_of_mass(q, qd, given(base))
        return self._functions.center_of_mass(q, qd, base=base, guess=guess)

    # ------------------------------------------------------------------ where links are

    @by_platform
    def link_pose(self, link: str, q: ArrayLike = MISSING, point: ArrayLike | None = None, *, base: BaseState | None = None,
                  guess: Guess = None, motion: Platforms | None = None) -> Pose:
        """Return R (3, 3) and p (3,) [m] of a link's frame, or of a point (3,) in it, in the root link's frame or the
        world.
        """
        return self.tree.link_pose(link, self.close(q, guess=guess), point,
                                   base=given(base) if self.has_moving_base else None)

    @by_platform
    def link_velocity(self, link: str, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, point: ArrayLike | None = None, *,
                      base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None) -> Array:
        """Return (6,) or (samples, 6): velocity of the point [m/s], angular velocity [rad/s], along the axes of
        `link_pose`.
        """
        if self.is_bare:
            return self.tree.link_velocity(link, q, qd, point, base=given(base))
        return self._functions.link_velocity(link, q, qd, point, base=base, guess=guess)

    def link_velocities(self, links: Sequence[str], q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None) -> Array:
        """Return (len(links), 6) or (samples, len(links), 6): velocities of links, each along the axes of the link's frame.
        InputError for robots whose joints follow from loops.
        """
        if self.solved_joints:
            raise InputError(f"link_velocities of robot '{self.name}', whose joints follow from loops: "
                             "call link_velocity for each link")
        velocity = given(base).velocity if self.has_moving_base else np.zeros(6)
        return self.tree.link_velocities(links, q, qd, velocity)

    @by_platform
    def jacobian(self, link: str, q: ArrayLike = MISSING, point: ArrayLike | None = None, *, base: BaseState | None = None,
                 guess: Guess = None, motion: Platforms | None = None) -> Array:
        """Return (6, N) or (samples, 6, N): link_velocity by the velocities of the `independent` coordinates, motors left
        out; those of a base are BaseState.velocity.
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
        """Return C of the `independent` coordinates, (N, N) or (samples, N, N): C v are their velocity efforts, M' - 2 C is
        skew. v: velocities of the `independent` coordinates, of a base along its axes.
        """
        return self._functions.coriolis(q, qd, base=base, guess=guess, motors=motors)

    @by_platform
    def sensitivities(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING, *higher: ArrayLike,
                      base: BaseState | None = None, guess: Guess = None, motion: Platforms | None = None,
                      loads: Loads | None = None, motors: MotorState | None = None) -> tuple[Array, ...]:
        """Return the partial derivatives of inverse_dynamics by q, qd, qdd and as many more as `order` - 1 names.

        (n, n) or (samples, n, n) each, a row for each torque; options as of `solve`. The state of a base stays, loops remain
        closed, accelerations that follow change. Columns of what is not read, as a spring joint's acceleration, are zero.
        """
        return self._derivatives.tables(1, self.order, (q, qd, qdd, *higher), guess, Conditions(base, loads, motors))

    @by_platform
    def rate_sensitivities(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING,
                           qddd: ArrayLike = MISSING, *higher: ArrayLike, base: BaseState | None = None, guess: Guess = None,
                           motion: Platforms | None = None, loads: Loads | None = None,
                           motors: MotorState | None = None) -> tuple[Array, ...]:
        """Return the partial derivatives of the rates of torque_and_rate by q, ..., and as many derivatives as `order` names,
        as `sensitivities` does.
        """
        return self._derivatives.tables(2, self.order, (q, qd, qdd, qddd, *higher), guess, Conditions(base, loads, motors))

    @by_platform
    def joint_wrenches(self, q: ArrayLike = MISSING, qd: ArrayLike = MISSING, qdd: ArrayLike = MISSING,
                       qddd: ArrayLike | None = None, *higher: ArrayLike, base: BaseState | None = None, guess: Guess = None,
                       motion: Platforms | None = None, loads: Loads | None = None,
                       motors: MotorState | None = None) -> JointWrenches:
        """Return the internal force and moment of every joint that moves a link, see JointWrenches, and their rates where
        `order` derivatives of q are given. Forces of cut joints, contacts, wheels and rotors count.

        InputError where loops or contacts hold more than the motion needs: then elasticity decides.
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
        """Return the robot with the mass of each moving link, and its moments, times a factor: (len(moving_joints),)."""
        return self.with_tree(self.tree.with_masses(factors))

    def with_joint_dynamics(self, terms: Mapping[str, JointDynamics]) -> Robot:
        """Return the robot with other joint dynamics, by joint name (mimic joints included)."""
        return self.with_tree(self.tree.with_joint_dynamics(terms))

    def with_coupled_motors(self, motors: Sequence[CoupledMotor]) -> Robot:
        """Return the robot with these motors of coupled transmissions instead of those it has."""
        return self.with_tree(self.tree.with_coupled_motors(motors))

    def coupled_motor_torques(self, tau: ArrayLike) -> dict[str, Array]:
        """Return the torque of every motor of coupled transmissions by name: a number or (samples,) each [N m, at the motor].

        tau: joint torques (n,) or (samples, n), of rotors and friction included. InputError where they do not decide it.
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
        """Return the tree; InputError where it does not decide what the function returns."""
        if not self.is_fixed_tree:
            declared = some(self.sections) or f"base: {'prescribed' if self.carried else 'floating'}"
            raise InputError(f"{function} is defined for a tree of rigid links on a fixed base; robot '{self.name}' has "
                             f"{declared}")
        return self.tree

    # ------------------------------------------------------------------ solvers and kernels

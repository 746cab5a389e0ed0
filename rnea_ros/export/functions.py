"""Functions that `rnea export` writes in C for each kind of robot, on flat arrays of any scalar type, with descriptions.

The functions are those from which the kernels of the robot are traced; if a robot calls several kernels in sequence, the
exported function makes the same calls on symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algorithms import closed_loops
from ..algorithms.equations import BASE, EquationsOfMotion, Rates
from ..algorithms.joint_dynamics import from_links, joint_dynamics, to_links, with_motors
from ..errors import InputError, some
from ..model.tree import Model
from ..robots import kernel_functions
from ..robots.base_state import base_acceleration, base_jerk
from ..robots.conditions import Payload
from ..robots.kernel_functions import KERNEL_FUNCTIONS
from ..robots.kernel_store import KernelFunction, KernelStore
from ..robots.program import FORWARD, GRAVITY, GUESS, INDICATOR, PAYLOADS, RobotProgram
from ..robots.robot import Robot

MASSLESS = 1e12  # condition number of the mass matrix above which a joint counts as massless


class ExportedFunction(NamedTuple):
    """Function to be written in C.

    name     : name in C, after the prefix of the robot
    text     : description for the header
    evaluate : function of the inputs as keyword arguments, arrays of any scalar type; it returns at least `results`
    inputs   : size of each input, keyed by name
    results  : names of the outputs
    """

    name: str
    text: str
    evaluate: Callable[..., Sequence[Any]]
    inputs: Mapping[str, int]
    results: tuple[str, ...]

    def __call__(self, **blocks: Any) -> list[Any]:
        return list(self.evaluate(**blocks))[:len(self.results)]


def exported(robot: Robot, links: Iterable[str] = ()) -> list[ExportedFunction]:
    """Return all functions of a robot. links: links whose poses and Jacobians are exported.

    Raises InputError if functions of this kind of robot cannot be exported.
    """
    return [*_functions(robot), *_link_functions(robot, links)]


def _not_exported(robot: Robot) -> InputError:
    return InputError(f"robot '{robot.name}' ({robot.kind}) cannot be exported, because its equations of motion are singular "
                      "at "
                      "the start pose: a joint moves no mass, or the robot file does not determine a motion. Add the missing "
                      "inertia or declaration")


def payload_parameters(model: Model, link: str) -> ExportedFunction:
    """Return the function that computes the ten parameters of a payload from mass, centre of mass and inertia."""
    frame = model.frame(link)

    def evaluate(mass: Any, com: Any, inertia: Any) -> list[Any]:
        xx, xy, xz, yy, yz, zz = inertia
        return [Payload.parameters_of(frame, mass[0], com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))]

    return ExportedFunction("payload", f"A payload on link {link}: mass [kg], com in the link's frame [m], inertia about the "
                            "com along the link's axes: xx xy xz yy yz zz [kg m^2].", evaluate,
                            {"mass": 1, "com": 3, "inertia": 6}, ("parameters",))


def _kernel(store: KernelStore, name: str, results: str, text: str, of: KernelFunction | str | None = None,
            at_zero: Sequence[str] = ()) -> ExportedFunction:
    """Return the exported function of a kernel.

    results : names of the outputs, separated by spaces
    of      : kernel function, or its name; default: `name`
    at_zero : inputs that are constant zero and not arguments
    """
    function = of if isinstance(of, KernelFunction) else KERNEL_FUNCTIONS[of or name]
    traced, sizes = store.traced(function, by_paper=False)
    zeros = {block: np.zeros(sizes[block]) for block in at_zero}
    given = {block: size for block, size in sizes.items() if block not in zeros}
    return ExportedFunction(name, text, lambda **blocks: traced(**blocks, **zeros), given, tuple(results.split()))


# ---------------------------------------------------------------------- kinds of robots


def _tree_functions(robot: Robot) -> list[ExportedFunction]:
    store = robot.tree.store
    return [
        _kernel(store, "torque_and_rate", "tau tau_rate", "Joint torques of a motion and their exact time derivatives."),
        _kernel(store, "inverse_dynamics", "tau", "Joint torques of a motion."),
        _kernel(store, "gravity", "tau", "Torques that hold the robot at rest against gravity."),
        _gravity_and_rate(store),
        _friction(robot.tree.model),
        _kernel(store, "bias", "tau", "Torques at zero acceleration: velocity terms, gravity, friction.", "inverse_dynamics",
                ("qdd",)),
        _kernel(store, "mass_matrix", "M", "Mass matrix, row by row."),
        _kernel(store, "forward_dynamics", "qdd", "Joint accelerations for given torques; NaN or infinite if a joint moves no "
                                                  "mass."),
        _kernel(store, "sensitivities", "dtau_dq dtau_dqd dtau_dqdd", "Partial derivatives of the torques, row by row: a row "
                "for each torque."),
        _kernel(store, "rate_sensitivities", "drate_dq drate_dqd drate_dqdd drate_dqddd", "Partial derivatives of the torque "
                "rates, row by row: a row for each rate."),
    ]


def _gravity_and_rate(store: KernelStore) -> ExportedFunction:
    traced, sizes = store.traced(KERNEL_FUNCTIONS["dynamics"], by_paper=False)
    still = {block: np.zeros(sizes.pop(block)) for block in ("qdd", "qddd")}
    return ExportedFunction("gravity_and_rate", "Torques that hold the robot at rest against gravity, and their rates for "
                            "moving joints.", lambda **blocks: traced(**blocks, **still)[2:], sizes, ("tau", "tau_rate"))


def _friction(model: Model) -> ExportedFunction:
    motors = [replace(motor, term=replace(motor.term, rotor_inertia=0.0)) for motor in model.coupled_motors]
    terms = [replace(link.term, rotor_inertia=0.0) for link in model.links]

    def evaluate(qd: Any, qdd: Any) -> Any:
        motion = zip(terms, to_links(model, qd), to_links(model, qdd), strict=True)
        pairs = [joint_dynamics(term, v, a, 0.0) for term, v, a in motion]
        tau, rate = (from_links(model, column) for column in zip(*pairs, strict=True))
        return with_motors(motors, tau, rate, qd, qdd, qd * 0.0)

    return ExportedFunction("friction", "Torques of friction and offsets, and their rates; without load-dependent "
                            "friction.", evaluate, {"qd": model.n, "qdd": model.n}, ("tau", "tau_rate"))


def _moving_tree_functions(robot: Robot) -> list[ExportedFunction]:
    store = robot.tree.store
    moved = _kernel(store, "torque_and_rate", "tau tau_rate base_wrench base_wrench_rate", "Prescribed base: joint "
                    "torques, the wrench exerted by the world on the base, and the rates of both.", "prescribed_base")
    if np.linalg.cond(robot.mass_matrix(np.zeros(robot.n))) > MASSLESS:
        return [moved]
    return [
        moved,
        _kernel(store, "free_torque_and_rate", "base_acceleration base_jerk tau tau_rate", "Floating base: its "
                "acceleration and jerk, joint torques and their rates.", "free_rates"),
        _kernel(store, "forward_dynamics", "base_acceleration qdd", "Floating base: accelerations for given joint "
                "torques.", "free_response"),
        _kernel(store, "mass_matrix", "M", "Mass matrix of base and joints, row by row.", "free_mass_matrix"),
    ]


def _functions(robot: Robot) -> list[ExportedFunction]:
    """Return the functions of a robot, except those of links."""
    if robot.is_fixed_tree:
        return _tree_functions(robot)
    if robot.is_bare:
        return _moving_tree_functions(robot)
    if robot.is_mechanism and not robot.has_moving_base:
        return [*_loop_functions(robot), *(_platform_functions(robot) if len(robot.platforms) == 1 else ())]
    return _program_functions(robot)


class _Call:
    """Program of a robot as a function of the inputs that determine its result.

    inputs: size of each input, keyed by name; for robots with loops, "q" contains all joints of the tree in a closed pose
    """

    def __init__(self, robot: Robot, program: RobotProgram):
        self._program, self._has_loops = program, GUESS in program.sizes
        follows = set(BASE).issubset(robot.roles.posed)
        unread = {INDICATOR, *(() if robot.roles.contacts else ("base_position",)), *(("base_velocity",) if follows else ())}
        self._zeros = {name: np.zeros(size) for name, size in program.sizes.items()
                       if name in unread or (name == "q" and self._has_loops)}
        self.inputs = {"q" if name == GUESS else name: size for name, size in program.sizes.items() if name not in self._zeros}

    def __call__(self, **blocks: Any) -> list[Any]:
        if self._has_loops:
            blocks[GUESS] = blocks.pop("q")
        return self._program.evaluate(**self._zeros, **blocks)


def _program_functions(robot: Robot) -> list[ExportedFunction]:
    """Return the functions of a robot with any combination of moving base, loops, springs, elastic joints and so on.

    They evaluate the programs of the robot.
    """
    motion, response, static = robot.program(), robot.program(FORWARD), robot.program(GRAVITY)
    if motion is None:
        raise _not_exported(robot)
    move, equations = _Call(robot, motion), motion.equations
    results = {"tau": "torques of the joints", "tau_rate": "their exact time derivatives", **CHECKED}
    parts = _further_results(robot, motion)

    def torque_and_rate(**blocks: Any) -> list[Any]:
        tau, rate, indicator, Y = move(**blocks)[:4]
        return [tau, rate, indicator, *(part(tau, rate, Y) for _, part in parts.values())]

    names = (*results, *parts)
    text = _sentence({**results, **{name: words for name, (words, _) in parts.items()}})
    found = [ExportedFunction("torque_and_rate", text, torque_and_rate, move.inputs, names)]
    if response is not None:
        found.append(_forward_dynamics(robot, response))
    if static is not None:
        hold = _Call(robot, static)
        found.append(ExportedFunction("gravity_and_rate", "Torques that hold the joints at rest against gravity, and their "
                                      "rates for moving base and joints. " + _sentence(CHECKED), hold, hold.inputs,
                                      ("tau", "tau_rate", *CHECKED)))
    if not equations.constraints:
        def mass_matrix(q: Any, payloads: Any = ()) -> list[Any]:
            still = np.zeros(equations.base), q, np.zeros(len(equations.elastic_joints))
            return [equations.carrying(payloads).mass_matrix(np.concatenate(still))]

        sizes = {name: size for name, size in move.inputs.items() if name in (PAYLOADS, "q")}
        found.append(ExportedFunction("mass_matrix", "Mass matrix of base, joints, then motors of elastic joints, row by row.",
                                      mass_matrix, sizes, ("M",)))
    if robot.loops is not None:
        found.append(_close_step(robot, motion))
        if len(robot.platforms) == 1 and robot.order == 3:
            found += [_by_platform(robot, torque_and_rate, move.inputs, names), _platform_close_step(robot)]
    return found


CHECKED = {"indicator": "above 1 the result is invalid: the loops are not closed at q, or the pose is singular"}
Result = tuple[str, Callable[[Any, Any, Any], Any]]  # description; function of torques, torque rates, all derivatives Y


def _sentence(words: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in words.items()) + "."


def _derivative(order: int, first: Any) -> Callable[[Any, Any, Any], Any]:
    return lambda _tau, _rate, Y: Y[order, first]


def _further_results(robot: Robot, program: RobotProgram) -> dict[str, Result]:
    """Return the further results that the robot has for a motion, in addition to torques and torque rates."""
    equations, structure = program.equations, program.structure
    tau, joints = equations.parts["tau"].start, equations.joints
    orders = (("", "positions"), ("d", "velocities"), ("dd", "accelerations"), ("ddd", "jerks"))
    found: dict[str, Result] = {}
    if structure.roles.state or structure.roles.closed:
        for k, (d, words) in enumerate(orders[1:], start=1):
            found[f"q{d}_all"] = f"{words} of all joints of the tree", _derivative(k, joints)
    if equations.elastic_joints:
        for k, (d, words) in enumerate(orders[:3]):
            motors = slice(joints.stop, len(equations.coordinates))
            found[f"q{d}_motor"] = f"{words} of the motors of elastic joints", _derivative(k, motors)
    if equations.motors:
        found["tau_link"] = ("torques on the links, after rotors and springs",
                             lambda tau, _rate, Y: _link_side(robot, equations, tau, Y, 0))
        found["tau_link_rate"] = "their rates", lambda _tau, rate, Y: _link_side(robot, equations, rate, Y, 1)
    if set(BASE) & {*robot.roles.posed}:
        found["base_velocity"] = "velocity of the base, determined by the wheels", _derivative(1, slice(6))
    if equations.base and BASE[0] in equations.actuated:
        first = tau + equations.actuated.index(BASE[0])
        found["base_wrench"] = "wrench exerted by the world on the base, in its frame", _derivative(0, slice(first, first + 6))
        found["base_wrench_rate"] = "time derivatives of its components", _derivative(1, slice(first, first + 6))
    elif equations.base and BASE[0] not in structure.roles.given:
        found["base_acceleration"] = "acceleration of the base", lambda _tau, _rate, Y: base_acceleration(Y[1:3, :6])
        found["base_jerk"] = "its jerk", lambda _tau, _rate, Y: base_jerk(Y[1:4, :6])
    if equations.constraints and not structure.spare:
        held = equations.parts["lambda"]
        found["multipliers"] = f"multipliers of {some(equations.constraints)}", _derivative(0, held)
        found["multiplier_rates"] = "their rates", _derivative(1, held)
    return found


def _link_side(robot: Robot, equations: EquationsOfMotion, torque: Any, Y: Any, order: int) -> Any:
    """Return the torques on the links (order 0; see MotorLoads.loads), or their rates (order 1)."""
    x = [np.array(row[:len(equations.coordinates)], dtype=object) for row in Y[:4]]
    shares = derivative(equations.motor_shares(Rates(*(jets(*pair) for pair in pairwise(x)))), order)
    names = robot.tree.joint_names
    load = np.array(torque, dtype=object) - shares[[names.index(name) for name in robot.joint_names]]
    for k, (name, stiffness) in enumerate(zip(equations.elastic_joints, robot.stiffness.tolist(), strict=True)):
        motor, joint = equations.joints.stop + k, equations.base + names.index(name)
        load[robot.joint_names.index(name)] = (x[order][motor] - x[order][joint]) * stiffness
    return load


def _forward_dynamics(robot: Robot, program: RobotProgram) -> ExportedFunction:
    call, equations = _Call(robot, program), program.equations
    joints, motors = equations.joints, len(equations.elastic_joints)
    words = {"qdd": "accelerations for given motor torques tau", **CHECKED}
    if robot.solved_joints:
        words["qdd_all"] = "accelerations of all joints of the tree"
    if motors:
        words["qdd_motor"] = "accelerations of the motors of elastic joints"
    if equations.base:
        words["base_acceleration"] = "acceleration of the base"

    def forward_dynamics(**blocks: Any) -> list[Any]:
        qdd, _, indicator, Y = call(**blocks)[:4]
        every = {"qdd": qdd, "indicator": indicator, "qdd_all": Y[2, joints],
                 "qdd_motor": Y[2, joints.stop:joints.stop + motors],
                 "base_acceleration": base_acceleration(Y[1:3, :6]) if equations.base else ()}
        return [every[name] for name in words]

    return ExportedFunction("forward_dynamics", _sentence(words), forward_dynamics, call.inputs, tuple(words))


def _close_step(robot: Robot, program: RobotProgram) -> ExportedFunction:
    n, given = robot.tree.n, [robot.tree.joint_names.index(name) for name in robot.joint_names]

    def close(q: Any) -> list[Any]:
        (*pose, indicator), gap = program.closing_step(q, (0.0,), q[given])
        return [pose, gap, [indicator]]

    return ExportedFunction(
        "close_step", "One step of Newton's method that moves the dependent joints of q towards closed loops. gap: error of "
        "the loops before the step, relative to the characteristic length, or in rad. indicator: above 1 the step is too long "
        "to "
        f"stay on the branch. Set {some(robot.joint_names)} in the pose of the last cycle, and repeat until the gap is at "
        "rounding level, usually twice.", close,
        {"q": n}, ("q_closed", "gap", "indicator"))


def _by_platform(robot: Robot, torque_and_rate: Callable[..., Any], inputs: Mapping[str, int],
                 names: tuple[str, ...]) -> ExportedFunction:
    legs = robot.platform_closure
    active = [robot.tree.joint_names.index(name) for name in robot.joint_names]

    def by_platform(q: Any, velocity: Any, acceleration: Any, jerk: Any, **others: Any) -> list[Any]:
        motion, condition = legs.motion_of_legs(q, velocity, acceleration, jerk)
        rates = dict(zip(("qd", "qdd", "qddd"), (part[active] for part in motion), strict=True))
        return [*torque_and_rate(q=q, **rates, **others), [condition]]

    sizes = {name: size for name, size in inputs.items() if name not in ("qd", "qdd", "qddd")}
    return ExportedFunction("platform_torque_and_rate", f"{BY_PLATFORM} leg_condition: condition number of the "
                                                        "legs.", by_platform,
                            {**sizes, **dict.fromkeys(("velocity", "acceleration", "jerk"), 6)}, (*names, "leg_condition"))


BY_PLATFORM = ("torque_and_rate as a function of the motion of the platform in the frame of the root link: velocity, "
               "acceleration and jerk, linear before angular. q: all joints of the tree, closed at the pose of the platform.")


def _loop_functions(robot: Robot) -> list[ExportedFunction]:
    closure, n, active = robot.closure, robot.tree.n, robot.n
    torque, sizes = robot.tree.store.traced(KERNEL_FUNCTIONS["torque_and_rate"], by_paper=False)
    payloads = {name: size for name, size in sizes.items() if name == "payloads"}

    def torque_and_rate(q: Any, qd: Any, qdd: Any, qddd: Any, **carried: Any) -> list[Any]:
        *motion, G, Gd, condition = closure.motion_of(q, qd, qdd, qddd)
        tau, rate = torque(q=q, qd=motion[0], qdd=motion[1], qddd=motion[2], **carried)
        return [*closed_loops.active_torque(G, Gd, np.array(tau, dtype=object), np.array(rate, dtype=object)), *motion,
                condition]

    def close(q: Any) -> list[Any]:
        correction, _slope, sizes = closure.step_of(q, np.zeros(active))
        return [q + correction, sizes[:1], sizes[2:3]]

    dynamics, _ = robot.tree.store.traced(KERNEL_FUNCTIONS["dynamics"], by_paper=False)

    def gravity_and_rate(q: Any, qd: Any, **carried: Any) -> list[Any]:
        still = np.zeros(active)
        *motion, G, Gd, condition = closure.motion_of(q, qd, still, still)
        _, _, tau, rate = dynamics(q=q, qd=motion[0], qdd=motion[1], qddd=motion[2], **carried)
        return [*closed_loops.active_torque(G, Gd, np.array(tau, dtype=object), np.array(rate, dtype=object)), condition]

    rates = dict.fromkeys(("qd", "qdd", "qddd"), active)
    results = ("tau", "tau_rate", "qd_all", "qdd_all", "qddd_all", "condition")
    return [
        ExportedFunction("torque_and_rate", "Torques of the active joints and their exact time derivatives, and the motion of "
                         "all joints. q: all joints of the tree in a closed pose; qd, qdd, qddd: active joints. Above a "
                         "condition "
                         "number of 1e7 the loops are singular.", torque_and_rate, {**payloads, "q": n, **rates}, results),
        ExportedFunction("gravity_and_rate", "Torques of the active joints that hold the robot at rest against gravity, and "
                         "their rates for moving joints.", gravity_and_rate, {**payloads, "q": n, "qd": active},
                         ("tau", "tau_rate", "condition")),
        ExportedFunction("close_step", "One step of Newton's method that moves the passive joints of q towards closed loops. "
                         "gap: error of the loops before the step [m or rad]. Set the active joints in the pose of the last "
                         "cycle, and repeat until the gap is at rounding level, usually twice.",
                         close, {"q": n}, ("q_closed", "gap", "condition")),
    ]


def _platform_functions(robot: Robot) -> list[ExportedFunction]:
    """Return the functions whose input is the motion of the platform."""
    closure, legs, n = robot.closure, robot.platform_closure, robot.tree.n
    torque, sizes = robot.tree.store.traced(KERNEL_FUNCTIONS["torque_and_rate"], by_paper=False)
    payloads = {name: size for name, size in sizes.items() if name == "payloads"}
    active = [robot.tree.joint_names.index(name) for name in robot.joint_names]

    def torque_and_rate(q: Any, velocity: Any, acceleration: Any, jerk: Any, **carried: Any) -> list[Any]:
        motion, condition = legs.motion_of_legs(q, velocity, acceleration, jerk)
        *_, G, Gd, actuation = closure.motion_of(q, *(part[active] for part in motion))
        tau, rate = torque(q=q, qd=motion[0], qdd=motion[1], qddd=motion[2], **carried)
        forces = closed_loops.active_torque(G, Gd, np.array(tau, dtype=object), np.array(rate, dtype=object))
        return [*forces, *motion, [condition], actuation]

    return [
        ExportedFunction("platform_torque_and_rate", f"{BY_PLATFORM} actuation, leg_condition: condition numbers of loops and "
                         "legs.", torque_and_rate,
                         {**payloads, "q": n, **dict.fromkeys(("velocity", "acceleration", "jerk"), 6)},
                         ("tau", "tau_rate", "qd_all", "qdd_all", "qddd_all", "leg_condition", "actuation")),
        _platform_close_step(robot)]


def _platform_close_step(robot: Robot) -> ExportedFunction:
    legs = robot.platform_closure

    def close(q: Any) -> list[Any]:
        correction, _slope, sizes = legs.step_of(q, np.zeros(6))
        return [q + correction, sizes[:1], sizes[2:3]]

    return ExportedFunction("platform_close_step", "close_step for a given pose of the platform: moves the joints of the "
                                                   "legs. "
                            f"{some(robot.tree.joint_names[k] for k in legs.platforms[0].joints)} of q contain the pose: "
                            "origin, and angles about the moving axes x, y, z.", close, {"q": robot.tree.n},
                            ("q_closed", "gap", "condition"))


def _link_functions(robot: Robot, links: Iterable[str]) -> list[ExportedFunction]:
    if not links:
        return []
    found, origin, store = [], ("point",), robot.tree.store
    for link in links:
        of = {function: kernel_functions.of_link(function, store.model, link)
              for function in (kernel_functions.link_pose, kernel_functions.jacobian, kernel_functions.jacobian_rate)}
        word = link_word(link)
        found += [_kernel(store, f"pose_{word}", "rotation position", f"Pose of link {link} in the root link's frame; "
                          "rotation row by row.", of[kernel_functions.link_pose], origin),
                  _kernel(store, f"jacobian_{word}", "J", f"Jacobian of link {link}, 6 rows, linear before angular, "
                          "expressed in the frame of the root link; row by row.", of[kernel_functions.jacobian], origin),
                  _kernel(store, f"jacobian_rate_{word}", "J_rate", f"Time derivative of the Jacobian of link {link}, row by "
                          "row.", of[kernel_functions.jacobian_rate], origin)]
    return found


def link_word(link: str) -> str:
    """Return the name of a link with all characters replaced that C identifiers do not permit."""
    return "".join(x if x.isascii() and x.isalnum() else "_" for x in link)

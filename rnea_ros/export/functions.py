"""Functions that `rnea export` writes in C for each kind of robot: of flat blocks, for any scalar, with their descriptions.

Nothing is computed here: each is the function that the robot's own kernel is traced from, or, where a robot calls several
kernels one after the other, the same calls on symbols.
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

MASSLESS = 1e12  # condition number of the mass matrix beyond which something has none: nothing moves freely then


class ExportedFunction(NamedTuple):
    """A function to be written in C.

    name     : in C, after the robot's
    text     : what it computes, a sentence for the header
    evaluate : takes blocks by name, arrays of any scalar; returns at least as many arrays as there are results
    inputs   : sizes of the blocks by name
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
    """All of a robot; links: those whose poses and Jacobians are wanted. InputError where a kind has none."""
    return [*_functions(robot), *_of_links(robot, links)]


def _not_exported(robot: Robot) -> InputError:
    return InputError(f"robot '{robot.name}' is a {robot.kind} whose equations are not solved by elimination, so nothing is "
                      "exported: a joint moves no mass, or what its robot file declares leaves a motion open at the start")


def payload_parameters(model: Model, link: str) -> ExportedFunction:
    """Return the ten numbers by which functions know a payload, from mass, centre and inertia as a data sheet gives them."""
    frame = model.frame(link)

    def evaluate(mass: Any, com: Any, inertia: Any) -> list[Any]:
        xx, xy, xz, yy, yz, zz = inertia
        return [Payload.parameters_of(frame, mass[0], com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))]

    return ExportedFunction("payload", f"A payload on link {link}: mass [kg], com in the link's frame [m], inertia about the "
                            "com along the link's axes: xx xy xz yy yz zz [kg m^2].", evaluate,
                            {"mass": 1, "com": 3, "inertia": 6}, ("parameters",))


def _kernel(store: KernelStore, name: str, results: str, text: str, of: KernelFunction | str | None = None,
            at_zero: Sequence[str] = ()) -> ExportedFunction:
    """Return a kernel of a store; at_zero: blocks that are no arguments."""
    function = of if isinstance(of, KernelFunction) else KERNEL_FUNCTIONS[of or name]
    traced, sizes = store.traced(function, by_paper=False)
    zeros = {block: np.zeros(sizes[block]) for block in at_zero}
    given = {block: size for block, size in sizes.items() if block not in zeros}
    return ExportedFunction(name, text, lambda **blocks: traced(**blocks, **zeros), given, tuple(results.split()))


# ---------------------------------------------------------------------- kinds of robots


def _of_tree(robot: Robot) -> list[ExportedFunction]:
    store = robot.tree.store
    return [
        _kernel(store, "torque_and_rate", "tau tau_rate", "Joint torques of a motion and their exact time derivatives."),
        _kernel(store, "inverse_dynamics", "tau", "Joint torques of a motion."),
        _kernel(store, "gravity", "tau", "Torques that hold the robot still against gravity."),
        _gravity_and_rate(store),
        _friction(robot.tree.model),
        _kernel(store, "bias", "tau", "Torques at zero acceleration: velocity terms, gravity, friction.", "inverse_dynamics",
                ("qdd",)),
        _kernel(store, "mass_matrix", "M", "Mass matrix, row by row."),
        _kernel(store, "forward_dynamics", "qdd", "Accelerations under torques; not finite where a joint moves no mass."),
        _kernel(store, "sensitivities", "dtau_dq dtau_dqd dtau_dqdd", "Partial derivatives of the torques, row by row: a row "
                "for each torque."),
        _kernel(store, "rate_sensitivities", "drate_dq drate_dqd drate_dqdd drate_dqddd", "Partial derivatives of the torque "
                "rates, row by row: a row for each rate."),
    ]


def _gravity_and_rate(store: KernelStore) -> ExportedFunction:
    traced, sizes = store.traced(KERNEL_FUNCTIONS["dynamics"], by_paper=False)
    still = {block: np.zeros(sizes.pop(block)) for block in ("qdd", "qddd")}
    return ExportedFunction("gravity_and_rate", "Torques that hold the robot still against gravity, and their rates as the "
                            "joints move.", lambda **blocks: traced(**blocks, **still)[2:], sizes, ("tau", "tau_rate"))


def _friction(model: Model) -> ExportedFunction:
    motors = [replace(motor, term=replace(motor.term, rotor_inertia=0.0)) for motor in model.coupled_motors]
    terms = [replace(link.term, rotor_inertia=0.0) for link in model.links]

    def evaluate(qd: Any, qdd: Any) -> Any:
        motion = zip(terms, to_links(model, qd), to_links(model, qdd), strict=True)
        pairs = [joint_dynamics(term, v, a, 0.0) for term, v, a in motion]
        tau, rate = (from_links(model, column) for column in zip(*pairs, strict=True))
        return with_motors(motors, tau, rate, qd, qdd, qd * 0.0)

    return ExportedFunction("friction", "Torques of friction and offsets, and their rates; without the friction that grows "
                            "with the load.", evaluate, {"qd": model.n, "qdd": model.n}, ("tau", "tau_rate"))


def _of_moving_tree(robot: Robot) -> list[ExportedFunction]:
    store = robot.tree.store
    moved = _kernel(store, "torque_and_rate", "tau tau_rate base_wrench base_wrench_rate", "On a base that moves as it must: "
                    "joint torques, the wrench BY the world ON the base, and the rates of both.", "prescribed_base")
    if np.linalg.cond(robot.mass_matrix(np.zeros(robot.n))) > MASSLESS:
        return [moved]
    return [
        moved,
        _kernel(store, "free_torque_and_rate", "base_acceleration base_jerk tau tau_rate", "While nothing holds the base: "
                "how it moves, joint torques and rates.", "free_rates"),
        _kernel(store, "forward_dynamics", "base_acceleration qdd", "Accelerations under torques while nothing holds the "
                "base.", "free_response"),
        _kernel(store, "mass_matrix", "M", "Mass matrix of base and joints, row by row.", "free_mass_matrix"),
    ]


def _functions(robot: Robot) -> list[ExportedFunction]:
    """Functions of a robot, without those of links."""
    if robot.is_fixed_tree:
        return _of_tree(robot)
    if robot.is_bare:
        return _of_moving_tree(robot)
    if robot.is_mechanism and not robot.has_moving_base:
        return [*_of_loops(robot), *(_of_platform(robot) if len(robot.platforms) == 1 else ())]
    return _of_programs(robot)


class _Call:
    """A program of a robot as a function of the blocks that decide its result.

    inputs: their sizes by name; "q" are all joints of the tree, on closed loops, where the robot has loops
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


def _of_programs(robot: Robot) -> list[ExportedFunction]:
    """Functions of robots with any combination of base, loops, springs, elastic joints, motors on links, contacts and wheels,
    from the programs that serve Robot.
    """
    motion, response, static = robot.program(), robot.program(FORWARD), robot.program(GRAVITY)
    if motion is None:
        raise _not_exported(robot)
    move, equations = _Call(robot, motion), motion.equations
    results = {"tau": "torques of the joints", "tau_rate": "their exact time derivatives", **CHECKED}
    parts = _parts(robot, motion)

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
        found.append(ExportedFunction("gravity_and_rate", "Torques that hold the joints still against gravity, and their "
                                      "rates as base and joints move. " + _sentence(CHECKED), hold, hold.inputs,
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


CHECKED = {"indicator": "above 1 the result is not reliable: the loops of q are open, or the pose is singular"}
Part = tuple[str, Callable[[Any, Any, Any], Any]]  # words, and function of torques, rates, and all derivatives Y


def _sentence(words: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in words.items()) + "."


def _derivative(order: int, first: Any) -> Callable[[Any, Any, Any], Any]:
    return lambda _tau, _rate, Y: Y[order, first]


def _parts(robot: Robot, program: RobotProgram) -> dict[str, Part]:
    """Results of a motion beside torques and rates, as far as the robot has them."""
    equations, structure = program.equations, program.structure
    tau, joints = equations.parts["tau"].start, equations.joints
    orders = (("", "positions"), ("d", "velocities"), ("dd", "accelerations"), ("ddd", "jerks"))
    found: dict[str, Part] = {}
    if structure.roles.state or structure.roles.closed:
        for k, (d, words) in enumerate(orders[1:], start=1):
            found[f"q{d}_all"] = f"{words} of all joints of the tree", _derivative(k, joints)
    if equations.elastic_joints:
        for k, (d, words) in enumerate(orders[:3]):
            motors = slice(joints.stop, len(equations.coordinates))
            found[f"q{d}_motor"] = f"{words} of the motors of elastic joints", _derivative(k, motors)
    if equations.motors:
        found["tau_link"] = ("torques on the links, behind rotors and springs",
                             lambda tau, _rate, Y: _link_side(robot, equations, tau, Y, 0))
        found["tau_link_rate"] = "their rates", lambda _tau, rate, Y: _link_side(robot, equations, rate, Y, 1)
    if set(BASE) & {*robot.roles.posed}:
        found["base_velocity"] = "velocity of the base, as the wheels roll", _derivative(1, slice(6))
    if equations.base and BASE[0] in equations.actuated:
        first = tau + equations.actuated.index(BASE[0])
        found["base_wrench"] = "wrench BY the world ON the base, along its axes", _derivative(0, slice(first, first + 6))
        found["base_wrench_rate"] = "rates of its six numbers", _derivative(1, slice(first, first + 6))
    elif equations.base and BASE[0] not in structure.roles.given:
        found["base_acceleration"] = "acceleration of the base", lambda _tau, _rate, Y: base_acceleration(Y[1:3, :6])
        found["base_jerk"] = "its jerk", lambda _tau, _rate, Y: base_jerk(Y[1:4, :6])
    if equations.constraints and not structure.spare:
        held = equations.parts["lambda"]
        found["multipliers"] = f"multipliers of {some(equations.constraints)}", _derivative(0, held)
        found["multiplier_rates"] = "their rates", _derivative(1, held)
    return found


def _link_side(robot: Robot, equations: EquationsOfMotion, torque: Any, Y: Any, order: int) -> Any:
    """Torques on the links beyond the joints, as MotorLoads.loads has them, or their rates."""
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
    words = {"qdd": "accelerations under motor torques tau", **CHECKED}
    if robot.solved_joints:
        words["qdd_all"] = "those of all joints of the tree"
    if motors:
        words["qdd_motor"] = "those of the motors of elastic joints"
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
        "close_step", "Newton's method: moves the joints of q that follow so that the loops close. gap: how far they were "
        "open, in units of the machine's length or rad; above an indicator of 1 the step was too long to stay on the branch. "
        f"Set {some(robot.joint_names)} of the last cycle's pose and step until the gap is rounding, as a rule twice.", close,
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
    return ExportedFunction("platform_torque_and_rate", f"{BY_PLATFORM} leg_condition: that of the legs.", by_platform,
                            {**sizes, **dict.fromkeys(("velocity", "acceleration", "jerk"), 6)}, (*names, "leg_condition"))


BY_PLATFORM = ("As torque_and_rate, from the motion of the platform in the root link's frame: velocity, acceleration and "
               "jerk, linear before angular. q: all joints of the tree, closed at the pose of the platform.")


def _of_loops(robot: Robot) -> list[ExportedFunction]:
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
                         "all joints. q: all joints of the tree, closed; the others: active joints. Beyond a condition of 1e7 "
                         "the loops are singular.", torque_and_rate, {**payloads, "q": n, **rates}, results),
        ExportedFunction("gravity_and_rate", "Torques of the active joints that hold the robot still against gravity, and "
                         "their rates as the joints move.", gravity_and_rate, {**payloads, "q": n, "qd": active},
                         ("tau", "tau_rate", "condition")),
        ExportedFunction("close_step", "One step of Newton's method: moves the passive joints of q so that the loops close. "
                         "gap: how far they were open [m or rad]. Set the active joints of the last cycle's pose and step "
                         "until the gap is rounding, as a rule twice.", close, {"q": n}, ("q_closed", "gap", "condition")),
    ]


def _of_platform(robot: Robot) -> list[ExportedFunction]:
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
        ExportedFunction("platform_torque_and_rate", f"{BY_PLATFORM} actuation: condition of the loops, leg_condition that of "
                         "the legs.", torque_and_rate,
                         {**payloads, "q": n, **dict.fromkeys(("velocity", "acceleration", "jerk"), 6)},
                         ("tau", "tau_rate", "qd_all", "qdd_all", "qddd_all", "leg_condition", "actuation")),
        _platform_close_step(robot)]


def _platform_close_step(robot: Robot) -> ExportedFunction:
    legs = robot.platform_closure

    def close(q: Any) -> list[Any]:
        correction, _slope, sizes = legs.step_of(q, np.zeros(6))
        return [q + correction, sizes[:1], sizes[2:3]]

    return ExportedFunction("platform_close_step", "As close_step, but the joints of the legs move to where the platform is: "
                            f"{some(robot.tree.joint_names[k] for k in legs.platforms[0].joints)} of q hold its pose, of "
                            "origin and angles about the moving axes x, y, z.", close, {"q": robot.tree.n},
                            ("q_closed", "gap", "condition"))


def _of_links(robot: Robot, links: Iterable[str]) -> list[ExportedFunction]:
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
                          "along the root link's axes; row by row.", of[kernel_functions.jacobian], origin),
                  _kernel(store, f"jacobian_rate_{word}", "J_rate", f"Time derivative of the Jacobian of link {link}, row by "
                          "row.", of[kernel_functions.jacobian_rate], origin)]
    return found


def link_word(link: str) -> str:
    """Return the name of a link as a part of names in C."""
    return "".join(x if x.isascii() and x.isalnum() else "_" for x in link)

"""Functions that `rnea export` writes in C for each kind of robot: of flat blocks, for any scalar, with their descriptions.

Nothing is computed here: each is the function that the robot's own kernel is traced from, or, where a robot calls several
kernels one after the other, the same calls on symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..algebra.linalg import solve_positive
from ..algebra.taylor import derivative, jets
from ..algorithms import closed_loops
from ..algorithms.equations import Rates
from ..errors import InputError, some
from ..model.tree import Model
from ..robots.inputs.payload import Payload
from ..robots.kernels import link_functions
from ..robots.kernels.functions import KERNEL_FUNCTIONS
from ..robots.kernels.kernel_function import KernelFunction
from ..robots.kernels.store import KernelStore
from ..robots.program import FORWARD
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
    return InputError(f"robot '{robot.name}' is a {robot.kind}, for which nothing is exported. With base: fixed in "
                      "the robot file loops alone are exported, without the other sections its tree")


def payload_parameters(model: Model, link: str) -> ExportedFunction:
    """Return the ten numbers by which functions know a payload, from mass, centre and inertia as a data sheet gives them."""
    frame = model.frame(link)

    def evaluate(mass: Any, com: Any, inertia: Any) -> list[Any]:
        xx, xy, xz, yy, yz, zz = inertia
        return [Payload.seen(frame, mass[0], com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))]

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
        _kernel(store, "bias", "tau", "Torques at zero acceleration: velocity terms, gravity, friction.", "inverse_dynamics",
                ("qdd",)),
        _kernel(store, "mass_matrix", "M", "Mass matrix, row by row."),
        _kernel(store, "forward_dynamics", "qdd", "Accelerations under torques; not finite where a joint moves no mass."),
        _kernel(store, "sensitivities", "dtau_dq dtau_dqd dtau_dqdd", "Partial derivatives of the torques, row by row: a row "
                "for each torque."),
    ]


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
    """Functions of trees, on a base that is fixed or moves; on a fixed one also of loops, springs and motors on links."""
    if robot.is_fixed_tree:
        return _of_tree(robot)
    if robot.is_bare:
        return _of_moving_tree(robot)
    equations, n = robot.structure().equations, robot.n
    if robot.is_mechanism and not robot.has_moving_base:
        return [*_of_loops(robot), *(_of_platform(robot) if len(robot.platforms) == 1 else ())]
    if equations.base or equations.constraints or (equations.elastic_joints and robot.state_joints):
        raise _not_exported(robot)
    if equations.elastic_joints:
        return _of_elastic(robot)
    free = [robot.joint_names.index(name) for name in robot.state_joints]
    springs = {spring.coordinate: spring for spring in equations.springs}

    def mass_matrix(q: Any) -> Any:
        return np.array(equations.mass_matrix(q), dtype=object)

    def torque_and_rate(q: Any, qd: Any, qdd: Any, qddd: Any) -> list[Any]:
        M, found, rows = mass_matrix(q), [], np.zeros(n, dtype=object)
        motion = [q, qd, np.array(qdd, dtype=object), np.array(qddd, dtype=object)]
        for order, given in enumerate(motion[2:]):  # accelerations and torques, then jerks and torque rates
            given[free] = 0.0
            rates = [jets(*motion[k:k + 1 + order]) for k in range(3)]
            rows = derivative(equations.dynamics(np.eye(3), Rates(*rates)), order)
            given[free] = solve_positive(M[np.ix_(free, free)], -rows[free])
            efforts = rows + M[:, free] @ given[free]
            for k in free:
                efforts[k] = 0.0
                if spring := springs.get(k):
                    deflection = motion[order][k] - (spring.rest if order == 0 else 0.0)
                    efforts[k] = deflection * -spring.stiffness - motion[order + 1][k] * spring.damping
            found.append(efforts)
        return [*found, *motion[2:]]

    sizes = dict.fromkeys(("q", "qd", "qdd", "qddd"), n)
    return [
        ExportedFunction("torque_and_rate", "Torques, and accelerations and jerks of all joints: those of "
                         f"{some(robot.state_joints) or 'joints without a motor'} follow, what is asked of them is not read.",
                         torque_and_rate, sizes, ("tau", "tau_rate", "qdd_found", "qddd_found")),
        ExportedFunction("mass_matrix", "Mass matrix, row by row.", lambda q: [mass_matrix(q)], {"q": n}, ("M",)),
    ]


def _of_elastic(robot: Robot) -> list[ExportedFunction]:
    """Trees on a base that is held with motors behind springs, from the programs that serve them."""
    motion, response = robot.program(), robot.program(FORWARD)
    if motion is None or response is None:
        raise _not_exported(robot)
    equations, N = motion.equations, len(motion.equations.coordinates)
    joints, motors = equations.joints, slice(equations.joints.stop, N)
    columns = [robot.joint_names.index(name) for name in equations.elastic_joints]

    def torque_and_rate(**blocks: Any) -> list[Any]:
        tau, rate, _, Y = motion.evaluate(**blocks)
        x = [np.array(part, dtype=object) for part in Y[:4, :N]]
        shares = equations.motor_shares(Rates(*(jets(*pair) for pair in pairwise(x))))
        loads = [np.array(part, dtype=object) - derivative(shares, k) for k, part in enumerate((tau, rate))]
        for k, load in enumerate(loads):
            load[columns] = (x[k][motors] - x[k][joints][columns]) * robot.stiffness
        return [tau, loads[0], *(part[motors] for part in x[:3]), loads[1], rate]

    def forward_dynamics(**blocks: Any) -> list[Any]:
        return [response.evaluate(**blocks)[3][2, :N]]

    return [
        ExportedFunction("torque_and_rate", "Torques of the motors, seen from the joints' side of the gears, torques on the "
                         "links, motion of the motors of elastic joints, and the torques' exact time derivatives.",
                         torque_and_rate, motion.sizes,
                         ("tau", "tau_link", "q_motor", "qd_motor", "qdd_motor", "tau_link_rate", "tau_rate")),
        ExportedFunction("forward_dynamics", "Accelerations of the joints, then of the motors of elastic joints.",
                         forward_dynamics, response.sizes, ("acceleration",)),
        ExportedFunction("mass_matrix", "Mass matrix of joints, then motors of elastic joints, row by row.",
                         lambda q: [equations.mass_matrix(np.concatenate((q, np.zeros(N - robot.n))))], {"q": robot.n},
                         ("M",)),
    ]


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

    rates = dict.fromkeys(("qd", "qdd", "qddd"), active)
    results = ("tau", "tau_rate", "qd_all", "qdd_all", "qddd_all", "condition")
    return [
        ExportedFunction("torque_and_rate", "Torques of the active joints and their exact time derivatives, and the motion of "
                         "all joints. q: all joints of the tree, closed; the others: active joints. Beyond a condition of 1e7 "
                         "the loops are singular.", torque_and_rate, {**payloads, "q": n, **rates}, results),
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

    def close(q: Any) -> list[Any]:
        correction, _slope, sizes = legs.step_of(q, np.zeros(6))
        return [q + correction, sizes[:1], sizes[2:3]]

    return [
        ExportedFunction("platform_torque_and_rate", "As torque_and_rate, from the motion of the platform in the root link's "
                         "frame: velocity, acceleration and jerk, linear before angular. q: all joints of the tree, closed at "
                         "the pose of the platform. actuation: condition of the loops, leg_condition that of the legs.",
                         torque_and_rate, {**payloads, "q": n, **dict.fromkeys(("velocity", "acceleration", "jerk"), 6)},
                         ("tau", "tau_rate", "qd_all", "qdd_all", "qddd_all", "leg_condition", "actuation")),
        ExportedFunction("platform_close_step", "As close_step, but the joints of the legs move to where the platform is: "
                         f"{some(robot.tree.joint_names[k] for k in legs.platform.joints)} of q hold its pose, of origin and "
                         "angles about the moving axes x, y, z.", close, {"q": n}, ("q_closed", "gap", "condition")),
    ]


def _of_links(robot: Robot, links: Iterable[str]) -> list[ExportedFunction]:
    if not links:
        return []
    found, origin, store = [], ("point",), robot.tree.store
    for link in links:
        of = {function: link_functions.of_link(function, store.model, link)
              for function in (link_functions.link_pose, link_functions.jacobian)}
        word = "".join(x if x.isascii() and x.isalnum() else "_" for x in link)
        found += [_kernel(store, f"pose_{word}", "rotation position", f"Pose of link {link} in the root link's frame; "
                          "rotation row by row.", of[link_functions.link_pose], origin),
                  _kernel(store, f"jacobian_{word}", "J", f"Jacobian of link {link}, 6 rows, linear before angular, "
                          "along the root link's axes; row by row.", of[link_functions.jacobian], origin)]
    return found

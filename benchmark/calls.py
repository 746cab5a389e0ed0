"""One call from Python: ours beside Pinocchio, MuJoCo, CasADi, plain numpy and finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from cases import Case
from timing import Loop, python_loop
from toolchain import Missing

from rnea_ros import Robot
from rnea_ros.algorithms import component_rate


def sides(case: Case) -> tuple[dict[str, Loop], list[str]]:
    """Loops by name, and what is missing."""
    robot, (q, qd, qdd, qddd) = case.robot, np.ascontiguousarray(case.motion[:, 0])
    found: dict[str, Loop] = {
        "ours: tau and tau_rate": python_loop(robot.torque_and_rate, q, qd, qdd, qddd),
        "ours: tau": python_loop(robot.inverse_dynamics, q, qd, qdd),
        "ours: tau, tau_rate and gravity torques with rates": python_loop(robot.dynamics, q, qd, qdd, qddd),
        **pinocchio(case),
    }
    missing = []
    for name, make in (("MuJoCo: mj_inverse (tau)", mujoco), ("CasADi: tau and tau_rate, our recursion", casadi),
                       ("numpy: tau and tau_rate, the equations of the paper", numpy_text)):
        try:
            found[name] = make(case)
        except Missing as reason:
            missing.append(f"{name}: {reason}")
    return found, missing


def pinocchio(case: Case) -> dict[str, Loop]:
    model, data = case.model, case.data
    q, v, a, j = np.split(case.pinocchio[0], np.cumsum([model.nq, model.nv, model.nv]))

    def exact() -> np.ndarray:
        dq, dv, M = pin.computeRNEADerivatives(model, data, q, v, a)
        return dq @ v + dv @ a + M @ j

    def central(h: float = 1e-4) -> np.ndarray:
        def tau(t: float) -> np.ndarray:
            moved = pin.integrate(model, q, t * v + t**2 / 2 * a + t**3 / 6 * j)
            return pin.rnea(model, data, moved, v + t * a + t**2 / 2 * j, a + t * j).copy()

        return (tau(h) - tau(-h)) / (2 * h)

    return {"Pinocchio: rnea (tau)": python_loop(pin.rnea, model, data, q, v, a),
            "Pinocchio: tau_rate from derivatives": python_loop(exact),
            "Pinocchio: tau_rate by central difference": python_loop(central)}


def mujoco(case: Case) -> Loop:
    """Return the model without meshes, which URDFs have in files."""
    try:
        import mujoco as mj
    except ImportError as error:
        raise Missing(str(error)) from None
    text = case.source if isinstance(case.source, str) else case.source.read_text()
    tree = ElementTree.fromstring(text.encode())
    for link in tree.iter("link"):
        for part in [part for part in link if part.tag in ("visual", "collision")]:
            link.remove(part)
    tree.append(ElementTree.fromstring('<mujoco><compiler strippath="true" balanceinertia="true"/></mujoco>'))
    try:
        model = mj.MjModel.from_xml_string(ElementTree.tostring(tree, "unicode"))
    except ValueError as error:
        raise Missing(f"does not load {case.name}: {str(error).splitlines()[0]}") from None
    data = mj.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = (np.resize(case.motion[k, 0], size) for k, size in
                                                enumerate((model.nq, model.nv, model.nv)))
    return python_loop(mj.mj_inverse, model, data)


def casadi(case: Case) -> Loop:
    """Return the same recursion, traced by CasADi and run by its virtual machine."""
    try:
        import casadi as ca
    except ImportError as error:
        raise Missing(str(error)) from None
    warnings.filterwarnings("ignore", category=FutureWarning, module="casadi")  # it speaks of changes to come
    symbols = [ca.SX.sym(name, case.n) for name in ("q", "qd", "qdd", "qddd")]
    blocks = [np.array([block[k] for k in range(case.n)], dtype=object) for block in symbols]
    tau, rate = component_rate.torque_and_rate(case.robot.model, *blocks, case.robot.gravity_vector)
    function: Callable = ca.Function("f", symbols, [ca.vertcat(*tau), ca.vertcat(*rate)])
    motion = [ca.DM(row) for row in case.motion[:, 0]]
    found = np.array([np.array(part).ravel() for part in function(*motion)])
    assert np.allclose(found, case.robot.torque_and_rate(*case.motion[:, 0]), rtol=1e-9, atol=1e-9)
    return python_loop(function, *motion)


def numpy_text(case: Case) -> Loop:
    return python_loop(Robot.from_model(case.robot.model, "reference").torque_and_rate, *case.motion[:, 0])

"""interop.torch and interop.jax: values, first and second gradients against complex steps, and rejected requests.

Libraries that are not installed are replaced by small stand-ins from test/support/ with the same calls.
"""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnea_ros import InputError, Robot, load
from rnea_ros.algorithms import sensitivities as closed_form
from rnea_ros.algorithms import torque_rate as newton_euler
from rnea_ros.errors import MissingPackage
from rnea_ros.interop import batch_function
from support import jax_stand_in, torch_stand_in
from support.complex_steps import complex_step
from support.robots import random_tree

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = {"torch": torch_stand_in, "jax": jax_stand_in}
RUBBING = {"version": 1, "friction": {"joint1": {"coulomb": 2.0, "viscous": 1.5, "smoothing": 0.2, "load_dependent": 0.1,
                                                "load_smoothing": 5.0}}}


class Library:
    """Uniform access to one differentiation library."""

    def __init__(self, name: str):
        self.name = name
        self.module: Any = importlib.import_module(name)
        self.differentiable: Callable[..., Any] = importlib.import_module(f"rnea_ros.interop.{name}").differentiable
        if name == "jax":
            self.module.config.update("jax_enable_x64", True)

    def array(self, x: Any) -> Any:
        if self.name == "torch":
            return self.module.tensor(x, dtype=self.module.float64)
        return self.module.numpy.asarray(np.asarray(x, dtype=float))

    def gradient(self, function: Callable[..., Any], number: int, given: list[Any]) -> Any:
        """Return the gradient of a scalar by one argument; it can be differentiated again."""
        if self.name == "jax":
            return self.module.grad(function, argnums=number)(*given)
        (chosen,) = [one for k, one in enumerate(given) if k == number]
        leaf = chosen if chosen.requires_grad else self.module.tensor(np.asarray(chosen.detach()), dtype=self.module.float64,
                                                                      requires_grad=True)
        (found,) = self.module.autograd.grad(function(*given[:number], leaf, *given[number + 1:]), leaf, create_graph=True)
        return found


def numbers(x: Any) -> np.ndarray:
    return np.array(x.detach() if hasattr(x, "detach") else x, dtype=float)


@pytest.fixture(params=["torch", "jax"])
def library(request, monkeypatch):
    if importlib.util.find_spec(request.param):
        yield Library(request.param)
        return
    with STAND_INS[request.param].installed(monkeypatch):
        yield Library(request.param)


@cache
def robot(name: str) -> Robot:
    if name == "random":
        return Robot.from_urdf(random_tree(4).text(), friction=True)
    return load(ROOT / "urdf" / f"{name}.urdf", RUBBING if name == "stanford" else None)


ROBOTS = ("stanford", "panda", "random")


def paper_torques(arm: Robot, x: np.ndarray) -> np.ndarray:
    """Return torques and rates of complex motions (4, n) by the recursion of the papers."""
    return np.array([*map(np.array, newton_euler.torque_and_rate(arm.model, *x, arm.gravity_vector))], dtype=complex)


def assert_close(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(numbers(found), wanted, rtol=0.0, atol=tolerance * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("name", ROBOTS)
def test_batch_values_and_gradients_match_the_robot(library, name):
    arm, rng = robot(name), np.random.default_rng(1)
    function = library.differentiable(arm)
    assert function.inputs == dict.fromkeys(("q", "qd", "qdd", "qddd"), arm.n)
    x, weights = rng.normal(size=(4, 3, arm.n)), rng.normal(size=(2, 3, arm.n))
    given, (first, second) = [library.array(part) for part in x], map(library.array, weights)
    for found, wanted in zip(function(*given), arm.torque_and_rate(*x), strict=True):
        assert_close(found, wanted)

    def weighted(*motion: Any) -> Any:
        tau, rate = function(*motion)
        return (tau * first).sum() + (rate * second).sum()

    wanted = np.stack([complex_step(lambda moved, k=k: (paper_torques(arm, moved) * weights[:, k]).sum(), x[:, k])
                       for k in range(3)], axis=1)
    for number in range(4):
        assert_close(library.gradient(weighted, number, given), wanted[number])


@pytest.mark.parametrize("name", ROBOTS)
def test_second_gradients_match_derivatives_of_the_closed_form(library, name):
    """The closed form of first derivatives is differentiated along a direction."""
    arm, rng = robot(name), np.random.default_rng(2)
    function = library.differentiable(arm)
    x, direction, weights = rng.normal(size=(4, arm.n)), rng.normal(size=arm.n), rng.normal(size=arm.n)
    given, along, weight = [library.array(part) for part in x], library.array(direction), library.array(weights)

    def slope(*motion: Any) -> Any:
        by_q = library.gradient(lambda *moved: (function(*moved)[1] * weight).sum(), 0, list(motion))
        return (by_q * along).sum()

    def slope_by_tables(moved: np.ndarray) -> Any:
        return weights @ closed_form.rate_sensitivities(arm.model, *moved, arm.gravity_vector)[0] @ direction

    wanted = complex_step(slope_by_tables, x)
    for number in range(4):
        found = library.gradient(slope, number, given)
        assert_close(0.0 if found is None else found, wanted[number])


def test_single_row_is_broadcast_to_all_samples_with_summed_gradient(library):
    arm, rng = robot("panda"), np.random.default_rng(3)
    function = library.differentiable(arm, "inverse_dynamics")
    q, qd, qdd = rng.normal(size=(2, 5, arm.n)), rng.normal(size=arm.n), rng.normal(size=(5, arm.n))
    given = [library.array(part) for part in (q, qd, qdd)]
    assert_close(function(*given).sum(),
                 sum(arm.inverse_dynamics(q[k], np.broadcast_to(qd, (5, arm.n)), qdd).sum() for k in (0, 1)))
    tables = [arm.sensitivities(q[k], np.broadcast_to(qd, (5, arm.n)), qdd) for k in (0, 1)]
    for number, wanted in enumerate((np.stack([table.dtau_dq.sum(axis=1) for table in tables]),
                                     sum(table.dtau_dqd.sum(axis=(0, 1)) for table in tables),
                                     sum(table.dtau_dqdd.sum(axis=1) for table in tables))):
        assert_close(library.gradient(lambda *motion: function(*motion).sum(), number, given), wanted)


def test_gradient_by_payload_parameters_matches_the_torque_difference(library):
    """Torques are linear in the ten parameters of a payload."""
    arm, rng = robot("panda"), np.random.default_rng(4)
    loaded = arm.with_payload("panda_hand", 1.5, (0.02, -0.01, 0.05), 0.01 * np.eye(3))
    parameters = loaded.payloads["panda_hand"].parameters
    function = library.differentiable(arm, "inverse_dynamics", payload_link="panda_hand")
    motion, weights = rng.normal(size=(3, arm.n)), rng.normal(size=arm.n)
    given = [library.array(part) for part in (np.zeros(10), *motion)]
    assert_close(function(library.array(parameters), *given[1:]), loaded.inverse_dynamics(*motion))
    by_payload = library.gradient(lambda *x: (function(*x) * library.array(weights)).sum(), 0, given)
    assert_close(numbers(by_payload) @ parameters,
                 weights @ (loaded.inverse_dynamics(*motion) - arm.inverse_dynamics(*motion)))


def test_forward_dynamics_inverts_inverse_dynamics_with_inverse_mass_gradient(library):
    """The gradient d qdd / d tau is the inverse of the mass matrix."""
    arm, rng = robot("panda"), np.random.default_rng(5)
    function = library.differentiable(arm, "forward_dynamics")
    q, qd, qdd = rng.normal(size=(3, arm.n))
    given = [library.array(part) for part in (q, qd, arm.inverse_dynamics(q, qd, qdd))]
    assert_close(function(*given), qdd)
    weights = rng.normal(size=arm.n)
    by_tau = library.gradient(lambda *x: (function(*x) * library.array(weights)).sum(), 2, given)
    assert_close(arm.mass_matrix(q) @ numbers(by_tau), weights)


def test_third_derivatives_are_rejected(library):
    arm = robot("panda")
    function, given = library.differentiable(arm, "gravity"), [library.array(np.full(arm.n, 0.3))]

    def gradient(of: Callable[..., Any]) -> Callable[..., Any]:
        return lambda q: library.gradient(of, 0, [q]).sum()

    once = gradient(gradient(lambda q: function(q).sum()))
    assert np.isfinite(float(numbers(once(*given))))
    with pytest.raises(InputError, match="gravity: derivatives of order 3 are not available"):
        gradient(once)(*given)


def test_invalid_arguments_of_a_differentiable_function_are_rejected(library):
    arm = robot("panda")
    function, x = library.differentiable(arm), library.array(np.zeros(arm.n))
    with pytest.raises(InputError, match=r"takes 4 arrays, q \(\.\.\., 7\), qd .*; got 3"):
        function(x, x, x)
    with pytest.raises(InputError, match=r"qd has shape \(3,\); needed is \(\.\.\., 7\)"):
        function(x, library.array(np.zeros(3)), x, x)
    half = library.module.tensor(np.zeros(arm.n), dtype=library.module.float32) if library.name == "torch" else None
    if half is not None:
        with pytest.raises(InputError, match=r"q is .*float32 on cpu; needed is torch.float64 on the cpu"):
            function(half, x, x, x)
        with pytest.raises(InputError, match=r"q is a ndarray; needed is a torch.Tensor"):
            function(np.zeros(arm.n), x, x, x)
    else:
        library.module.config.update("jax_enable_x64", False)
        with pytest.raises(InputError, match="JAX computes in float32"):
            function(x, x, x, x)
    with pytest.raises(InputError, match=r"has no function 'inverse_dynamic'.*did you mean 'inverse_dynamics'"):
        library.differentiable(arm, "inverse_dynamic")
    with pytest.raises(InputError, match="pose_panda_hand of robot 'panda' does not depend on a payload"):
        library.differentiable(arm, "pose_panda_hand", payload_link="panda_hand", links=["panda_hand"])


def test_gradients_of_elastic_robots_match_rate_sensitivities(library):
    """The function takes q and five derivatives."""
    arm, rng = load(ROOT / "urdf" / "hua_arm.urdf", ROOT / "urdf" / "hua_arm.robot.yaml"), np.random.default_rng(7)
    function = library.differentiable(arm)
    motion, weights = 0.3 * rng.normal(size=(arm.order + 1, arm.n)), rng.normal(size=arm.n)
    given = [library.array(part) for part in motion]
    assert len(given) == len(function.inputs) == 6
    for number, table in enumerate(arm.rate_sensitivities(*motion)):
        assert_close(library.gradient(lambda *x: (function(*x)[1] * library.array(weights)).sum(), number, given),
                     weights @ table)


def test_gradients_along_closed_loop_motion_match_rate_sensitivities(library):
    """The input q has all joints of the tree; the gradient along the motion of the loops is compared."""
    arm, rng = load(ROOT / "urdf" / "five_bar.urdf", ROOT / "urdf" / "five_bar.robot.yaml"), np.random.default_rng(8)
    function = library.differentiable(arm)
    q, qd, qdd, qddd = arm.home_motion[0] + 0.1 * rng.normal(size=arm.n), *rng.normal(size=(3, arm.n))
    moved, weights = arm.motion(q, qd, qdd, qddd), rng.normal(size=arm.n)
    given = [library.array(part) for part in (moved.q, qd, qdd, qddd)]
    by_tree = numbers(library.gradient(lambda *x: (function(*x)[1] * library.array(weights)).sum(), 0, given))
    assert_close(by_tree @ moved.G, weights @ arm.rate_sensitivities(q, qd, qdd, qddd)[0], 1e-9)


def test_robots_with_pivoting_linear_systems_are_rejected():
    arm = load(ROOT / "urdf" / "ankles.urdf", ROOT / "urdf" / "ankles.robot.yaml")
    with pytest.raises(InputError, match=f"torque_and_rate of robot '{arm.name}', .*cannot be differentiated here"):
        batch_function.batch_function(arm, "torque_and_rate")


def test_casadi_function_is_compiled_once_and_differentiable(monkeypatch, tmp_path):
    ca = pytest.importorskip("casadi")
    interop = importlib.import_module("rnea_ros.interop.casadi")
    monkeypatch.setenv("RNEA_ROS_CACHE", str(tmp_path))
    arm, rng = robot("rr"), np.random.default_rng(9)
    for _ in range(2):
        function = interop.external(arm)
    assert len(list(tmp_path.glob("*.o"))) == 1
    motion = rng.normal(size=(4, arm.n))
    symbols = [ca.MX.sym(name, arm.n) for name in ("q", "qd", "qdd", "qddd")]
    by_qd = ca.Function("by_qd", symbols, [ca.jacobian(function(*symbols)[1], symbols[1])])
    assert_close(np.array(by_qd(*motion)), arm.rate_sensitivities(*motion)[1])
    with pytest.raises(InputError, match=r"has no function 'torques'; there are torque_and_rate"):
        interop.external(arm, "torques")


@pytest.mark.campaign  # the functions that it uses are compared with complex steps and differences here
def test_optimal_control_example_reaches_but_keeps_its_limits(tmp_path):
    """Utilizations are those of Robot.torque_and_rate; the fastest motion reaches some limit."""
    pytest.importorskip("casadi")
    pytest.importorskip("matplotlib")
    found = runpy.run_path(str(ROOT / "examples" / "optimal_control.py"))["main"](tmp_path, small=True)
    assert 0.4 < found["duration"] < 0.6
    assert 0.999 < max(found["torque"], found["rate"]) < 1.0001
    assert (tmp_path / "optimal_control.png").is_file()


def test_missing_casadi_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(MissingPackage, match=r"interop.casadi needs CasADi: pip install '\.\[planning\]'"):
        importlib.import_module("rnea_ros.interop.casadi").external(robot("rr"))


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_missing_torch_or_jax_error_names_the_extra(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackage, match=rf"pip install '\.\[{name}\]'"):
        importlib.import_module(f"rnea_ros.interop.{name}").differentiable(robot("panda"))


def test_gradients_of_moving_bases_match_complex_steps(library):
    """Complex steps are taken through the exported function."""
    arm, rng = load(ROOT / "urdf" / "branched.urdf", base="floating"), np.random.default_rng(6)
    function = library.differentiable(arm)
    given = [rng.normal(size=size) for size in function.inputs.values()]
    weights = rng.normal(size=function.outputs["base_wrench"])
    text = batch_function.exported(arm)[0]
    number = list(function.inputs).index("base_velocity")

    def weighted(moved: np.ndarray) -> Any:
        blocks = dict(zip(function.inputs, [*given[:number], moved, *given[number + 1:]], strict=True))
        return np.array(text(**blocks)[2], dtype=complex) @ weights

    found = library.gradient(lambda *x: (function(*x)[2] * library.array(weights)).sum(), number,
                             [library.array(part) for part in given])
    assert_close(found, complex_step(weighted, given[number]))

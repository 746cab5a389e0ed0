"""Tracing, code generation and compilation: folding, sharing and signs do not change values."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import numpy as np
import pytest

import rnea_ros
from rnea_ros import InputError, Robot, load
from rnea_ros.algebra.vectors import cross
from rnea_ros.algorithms import component_rate, torque_rate
from rnea_ros.codegen import kernel, llvm_text, python
from rnea_ros.codegen.program import Expression, Graph, larger, trace
from support.golden_models import from_table
from support.oracles import GOLDEN
from support.robots import arm

URDF = Path(__file__).resolve().parents[2] / "urdf"
BACKENDS = ("llvm", "python", "reference")
UNARY = (np.sin, np.cos, np.tanh, lambda x: -x, lambda x: np.sqrt(1.0 + x * x), lambda x: np.exp(-(x * x)),
         lambda x: np.tan(0.3 * np.tanh(x)), lambda x: +1.0 * x, lambda x: 0.0 - (-x), abs)
BINARY = (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (1.5 + np.tanh(b)), lambda a, b: b - a,
          larger)
CONSTANTS = (0.0, 1.0, -1.0, 2, -3, 0, 0.1, -0.7, 1e-9)


def random_text(seed):
    """Return a random function of four scalars with every operation, reused, negated and multiplied values."""
    rng = np.random.default_rng(seed)
    steps = [(rng.random(), rng.integers(0, 1 << 30, 4)) for _ in range(40)]

    def text(x):
        values = list(x)
        for kind, (a, b, c, d) in steps:
            first = values[a % len(values)]
            if kind < 0.3:
                result = UNARY[c % len(UNARY)](first)
            else:
                other = CONSTANTS[d % len(CONSTANTS)] if kind > 0.75 else values[b % len(values)]
                first, other = (other, first) if kind > 0.88 else (first, other)
                result = BINARY[c % len(BINARY)](first, other)
            values.append(np.tanh(result) if len(values) % 7 == 0 else result)  # keeps values of the order of one
        return [values[-12:]]

    return text


@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_kernels_of_random_graphs_equal_the_python_function(backend):
    for seed in range(150):
        text = random_text(seed)
        compiled = kernel.build(text, {"x": 4}, backend)
        for x in np.random.default_rng(seed).normal(size=(5, 4)):
            plain = np.array(text([float(v) for v in x])[0], dtype=float)
            np.testing.assert_allclose(compiled(x)[0], plain, rtol=1e-10, atol=1e-12, err_msg=f"seed {seed}")


@pytest.mark.parametrize("name", ["five_bar", "stanford"])
def test_kernels_are_bitwise_equal_at_every_level_of_optimization(monkeypatch, tmp_path, name):
    """Kernels of a loop solve linear systems. 300 samples are evaluated by code for batches."""
    monkeypatch.setenv("RNEA_ROS_CACHE", str(tmp_path))
    found, files = [], [0]
    for level in "012":
        monkeypatch.setenv("RNEA_ROS_OPTIMIZATION", level)
        robot = load(URDF / f"{name}.urdf", URDF / f"{name}.robot.yaml")
        motion = np.random.default_rng(0).uniform(-0.2, 0.2, (4, 300, robot.n))
        motion[0] += robot.home_motion[0]
        found.append([*robot.torque_and_rate(*motion), *robot.torque_and_rate(*motion[:, 0])])
        files.append(len(list(tmp_path.iterdir())))
    assert files[3] > files[1] > files[0]  # each level has separate files
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_unknown_level_of_optimization_is_rejected(monkeypatch):
    monkeypatch.setenv("RNEA_ROS_OPTIMIZATION", "3")
    with pytest.raises(InputError, match="RNEA_ROS_OPTIMIZATION is '3'; allowed are 0, 1 and 2"):
        kernel.build(lambda x: [x], {"x": 1}, "llvm")


def test_llvm_and_python_kernels_agree_up_to_rounding():
    """Machine code fuses products and sums, and has another sine."""
    for seed in range(150):
        x = np.random.default_rng(seed).normal(size=(5, 4))
        a, b = (kernel.build(random_text(seed), {"x": 4}, backend)(x)[0] for backend in ("llvm", "python"))
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14, err_msg=f"seed {seed}")


def linear_text(x):
    """Return sums without products that could be fused."""
    total = [x[0] + x[1], x[1] - x[2]]
    for k in range(60):
        total.append(total[-1] * 0.5 if k % 7 == 0 else total[-1] - total[-2] if k % 3 else total[k // 2] + x[k % 4])
    return [[value * 1.5 for value in total], [np.tanh(value) for value in total[::5]]]


def test_llvm_and_python_kernels_without_products_are_bitwise_equal():
    x = np.random.default_rng(3).normal(size=(20, 4))
    for a, b in zip(*(kernel.build(linear_text, {"x": 4}, backend)(x) for backend in ("llvm", "python")), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("length", [1, 2, 7, 19])
def test_programs_split_into_functions_give_the_same_results(monkeypatch, length):
    """Values are passed between the functions of a long program; inputs and constants are among the results."""
    pytest.importorskip("llvmlite")
    for seed in range(40):
        def text(x, inner=random_text(seed)):
            return [inner(x)[0], [x[2], 0.5, x[2] * 1.0, x[0] - x[0]], inner(x)[0][:3]]

        x, found = np.random.default_rng(seed).normal(size=(3, 4)), {}
        for part in (length, 1_000_000):
            monkeypatch.setattr(llvm_text, "PART", part)
            found[part] = kernel.build(text, {"x": 4}, "llvm")(x)
        for a, b in zip(*found.values(), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}")


@pytest.mark.parametrize("backend", BACKENDS)
def test_kernels_do_not_reassociate_floating_point_operations(backend):
    def text(x):
        return [[(x[0] + 1e16) - 1e16, x[1] * x[1] - x[2], (x[0] + x[1]) + x[2], x[0] + (x[1] + x[2]), x[3] / 3.0 * 3.0]]

    a = 1.0 + 2.0**-30
    x = np.array([0.3, a, a * a, 0.7])
    expected = [(0.3 + 1e16) - 1e16, 0.0, (0.3 + a) + a * a, 0.3 + (a + a * a), 0.7 * (1.0 / 3.0) * 3.0]
    found = kernel.build(text, {"x": 4}, backend)(x)[0]
    assert found[[0, 2, 3]].tolist() == [expected[k] for k in (0, 2, 3)]
    assert found[1] in ((0.0, 2.0**-60) if backend == "llvm" else (0.0,)), "one rounding, or two"
    assert found[4] == pytest.approx(0.7, rel=1e-15)


# ---------------------------------------------------------------------- expressions

def symbols(count=3):
    return Graph().inputs(count)


def same(a, b):
    return isinstance(a, Expression) and isinstance(b, Expression) and a.number == b.number


def test_constants_and_signs_are_folded():
    x, y, _ = symbols()
    for zero in (x * 0.0, 0.0 * x, x * 0, 0 / x, x - x, 0.0 * (x * y)):
        assert isinstance(zero, float) and zero == 0.0
    for kept in (x + 0.0, 0.0 + x, x * 1.0, 1 * x, x - 0.0, x / 1.0, (-x).__neg__(), x * -1.0 * -1.0, 0.0 - (-x), (-x) * -1.0):
        assert same(kept, x)
    assert same(-(x - y), y - x)
    assert same(x + (-y), x - y) and same((-x) + y, y - x) and same(x - (-y), x + y) and same((-x) - y, -(x + y))
    assert same((-x) * y, -(x * y)) and same(x * -2.0, -(x * 2.0)) and same((-x) * (-y), x * y)
    assert same((-x).sin(), -(x.sin())) and same((-x).cos(), x.cos())


def test_common_subexpressions_are_shared():
    x, y, _ = symbols()
    assert same(x + y, y + x) and same(x * y, y * x) and same(x * 2.0, 2.0 * x)
    assert same(x.sin(), x.sin()) and same((x + y) * x, x * (y + x))
    assert not same(x - y, y - x) and not same(x / y, y / x)
    program = trace(lambda v: [[v[0] * v[1] + v[1] * v[0], np.sin(v[0]) * np.sin(v[0])]], {"v": 2})
    assert dict(program.operation_counts) == {"mul": 2, "add": 1, "sin": 1}


def test_operations_without_an_output_are_dropped():
    def text(v):
        np.tan(v[0])
        return [[v[1] * 2.0]]

    assert dict(trace(text, {"v": 2}).operation_counts) == {"mul": 1}


def test_products_of_arrays_and_symbols_work_in_both_orders():
    x, y, z = symbols()
    vector, matrix = np.array([0.0, 1.0, 2.0]), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for product in (vector * x, x * vector):
        assert product.shape == (3,) and product[0] == 0.0 and same(product[1], x) and same(product[2], x * 2.0)
    for total in (vector + x, x + vector, x - vector, vector - x, vector / x, x / np.array([1.0, 2.0, 4.0])):
        assert total.shape == (3,) and all(isinstance(e, Expression) for e in total[1:])
    for one in (np.float64(2.0) * x, x * np.float64(2.0), np.float64(2.0) + x, np.int64(2) * x, np.float64(2.0) / x):
        assert isinstance(one, Expression)
    turned = matrix @ np.array([x, y, z])
    assert same(turned[0], y) and same(turned[1], x) and same(turned[2], z)
    assert same(cross(np.array([0.0, 0.0, 1.0]), np.array([x, y, z]))[1], x)


@pytest.mark.parametrize("branch", [
    lambda x: x > 0.0, lambda x: x <= x, lambda x: x == 1.0, lambda x: x != 1.0, bool, float, int,
    lambda x: max(x, 0.0), lambda x: 1.0 if x else 2.0, lambda x: x in [1.0, x], lambda x: {x: 1}, lambda x: math_sin(x),
    lambda x: np.array([x, 1.0]).max(), lambda x: np.where(np.array([x]) > 0, 1, 2), lambda x: np.zeros(1) + [float(x)]])
def test_conversion_of_a_symbol_to_a_value_is_rejected(branch):
    with pytest.raises(TypeError):
        branch(symbols()[0])


def math_sin(x):
    import math

    return math.sin(x)


@pytest.mark.parametrize("wrong", [lambda x: x + "1", lambda x: x * None, lambda x: x**2, lambda x: x // 2, lambda x: x % 2,
                                   lambda x: np.arctan2(x, 1.0), lambda x: x + 1j])
def test_operations_without_kernel_support_are_rejected(wrong):
    with pytest.raises((TypeError, AttributeError)):
        wrong(symbols()[0])


# ---------------------------------------------------------------------- programs and kernels

def planar(q, qd):
    return [np.array([q[0] * qd[0], 1.0]), np.array([[q[1], 0.0], [np.sin(q[0]), -2.5]]), q[0] - q[0], []]


@pytest.mark.parametrize("backend", BACKENDS)
def test_kernel_results_have_shapes_constants_and_scalars(backend):
    compiled = kernel.build(planar, {"q": 2, "qd": 1}, backend)
    vector, matrix, scalar, nothing = compiled(np.array([0.5, 3.0, 4.0]))
    assert vector.tolist() == [2.0, 1.0]
    assert matrix.tolist() == [[3.0, 0.0], [np.sin(0.5), -2.5]]
    assert scalar.shape == () and scalar == 0.0 and nothing.shape == (0,)
    batch = compiled(np.zeros((5, 3)))
    assert [part.shape for part in batch] == [(5, 2), (5, 2, 2), (5,), (5, 0)]
    assert [part.shape for part in compiled(np.zeros((0, 3)))] == [(0, 2), (0, 2, 2), (0,), (0, 0)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_kernels_without_inputs_or_outputs(backend):
    assert kernel.build(lambda q: [[1.5, -0.0]], {"q": 0}, backend)(np.zeros(0))[0].tolist() == [1.5, 0.0]
    assert kernel.build(lambda q: [[1.5]], {"q": 0}, backend)(np.zeros((3, 0)))[0].tolist() == [[1.5]] * 3
    assert kernel.build(lambda q: [[]], {"q": 2}, backend)(np.zeros(2))[0].shape == (0,)


@pytest.mark.parametrize("backend", BACKENDS)
def test_constants_keep_every_bit(backend):
    numbers = [0.1, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e-310, 123456789.123456789]
    found = kernel.build(lambda q: [list(numbers), [q[0] * c for c in numbers]], {"q": 1}, backend)(np.ones(1))
    assert found[0].tolist() == numbers and found[1].tolist() == numbers


@pytest.mark.parametrize("backend", BACKENDS)
def test_vectorized_kernel_equals_a_loop_with_new_results(backend):
    text, x = random_text(7), np.random.default_rng(7).normal(size=(9, 4))
    compiled = kernel.build(text, {"x": 4}, backend)
    batch = compiled(x)[0]
    np.testing.assert_array_equal(batch, [compiled(row)[0] for row in x])
    kept = batch.copy()
    again = compiled(x + 1.0)[0]
    assert not np.shares_memory(batch, again) and np.array_equal(batch, kept)
    np.testing.assert_array_equal(compiled(x[:, ::-1][:, ::-1])[0], batch)
    np.testing.assert_array_equal(compiled(np.asfortranarray(x))[0], batch)
    np.testing.assert_array_equal(compiled(np.repeat(x, 2, axis=0)[::2])[0], batch)


@pytest.mark.parametrize("text", [torque_rate.torque_and_rate, component_rate.torque_and_rate])
def test_operation_counts_are_below_the_published_ones(text):
    """The published counts are 1692 products and 1470 sums for six revolute joints."""
    full = arm(*[{"xyz": (0.1 * k, 0.2, 0.3), "rpy": (k, 1, 2), "axis": (1, k, 3)} for k in range(1, 7)])
    stanford = from_table("stanford", GOLDEN["stanford_arm"]["links"])

    def counts(model):
        def call(q, qd, qdd, qddd):
            return text(model, q, qd, qdd, qddd, np.array([0.0, 0.0, -9.81]))

        return trace(call, dict.fromkeys(("q", "qd", "qdd", "qddd"), model.n)).operation_counts

    general, special = counts(Robot.from_urdf(full).model), counts(stanford)
    assert 500 < general["mul"] <= 1380 and 400 < general["add"] + general["sub"] <= 1102  # 262 N - 192, 213 N - 176
    assert general["sin"] == general["cos"] == 6
    assert special["sin"] == special["cos"] == 4, "one joint slides, and gravity along its axis leaves joint 1 without effect"
    assert special["mul"] < 0.7 * general["mul"], "the zeros of the Stanford arm are not used"
    assert general["neg"] + special["neg"] < 5


def test_generated_python_contains_numbers_only():
    evil = arm({}, {"axis": (1, 2, 3)}).replace('"j1"', '"__import__(chr(111))"').replace('"l1"', '"x];import os"')
    model = Robot.from_urdf(evil).model
    program = trace(lambda q: torque_rate.torque_and_rate(model, q, q, q, q, np.array([1.0, 2.0, 3.0])), {"q": 2})
    names = set()
    for token in tokenize.generate_tokens(io.StringIO(python.source(program)).readline):
        if token.type == tokenize.NAME and not (token.string[0] == "v" and token.string[1:].isdigit()):
            names.add(token.string)
        assert token.type != tokenize.STRING and "." not in (token.string if token.type == tokenize.OP else "")
    assert names == {"def", "kernel", "x", "return", "sin", "cos"}


def test_unknown_backend_is_rejected():
    with pytest.raises(InputError, match="'cuda'; allowed are llvm, c, python, reference"):
        kernel.available("cuda")


WITHOUT_LLVM = """
import json, sys, types
sys.modules["llvmlite"] = None
from rnea_ros import Robot
text, state = json.load(sys.stdin)
first, second = Robot.from_urdf(text), Robot.from_urdf(text)
assert first.backend == second.backend == "python"
assert Robot.from_urdf(text, backend="python").backend == "python"
print(json.dumps([x.tolist() for x in first.torque_and_rate(*state)]))
"""


def test_missing_llvmlite_causes_one_warning_and_equal_results():
    without_llvm("None")


TOO_OLD = """types.ModuleType('llvmlite')
old, binding = sys.modules['llvmlite'], types.ModuleType('llvmlite.binding')
old.__version__, old.binding, old.__path__ = '0.44.0', binding, []
sys.modules['llvmlite.binding'] = binding
binding.llvm_version_info = (15, 0, 7)
"""


def test_old_llvmlite_is_treated_as_missing():
    assert "llvmlite 0.44.0 is too old, 0.45 or newer" in without_llvm(TOO_OLD)


def without_llvm(instead):
    """Return the warnings if llvmlite is unusable and there is no C compiler."""
    import json

    text, state = arm({}, {"axis": (1, 2, 3)}), np.random.default_rng(0).normal(size=(4, 2)).tolist()
    script = WITHOUT_LLVM.replace("= None", f"= {instead}", 1)
    run = subprocess.run([sys.executable, "-c", script], input=json.dumps([text, state]), capture_output=True, text=True,
                         timeout=120, check=True, cwd=Path(rnea_ros.__file__).parents[1],
                         env={**os.environ, "PATH": "", "RNEA_ROS_CACHE": ""})
    assert run.stderr.count("RuntimeWarning") == 1 and "pip install 'llvmlite>=0.45'" in run.stderr
    np.testing.assert_allclose(json.loads(run.stdout), Robot.from_urdf(text).torque_and_rate(*state), rtol=1e-12)
    return run.stderr


@pytest.mark.parametrize("name", ["branched", "palletiser", "seven_r", "stanford"])
def test_torques_are_bitwise_equal_in_every_kernel(name):
    robot = Robot.from_urdf(URDF / f"{name}.urdf")
    motion = np.random.default_rng(0).uniform(-2, 2, (4, 20, robot.n))
    tau, tau_rate = robot.torque_and_rate(*motion)
    parts = robot.dynamics(*motion)
    np.testing.assert_array_equal(parts.tau, tau)
    np.testing.assert_array_equal(parts.tau_rate, tau_rate)
    np.testing.assert_array_equal(robot.inverse_dynamics(*motion[:3]), tau)
    np.testing.assert_array_equal(parts.gravity, robot.gravity(motion[0]))

"""Built-in function of a kernel: same results as the checked call, which handles unusual arguments."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest

from rnea_ros import InputError, Loads, Robot
from rnea_ros.codegen import kernel, python_call
from support.robots import arm

TEXT = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}, {"kind": "prismatic", "axis": (1, 0, 0)})
SOUND = np.array([0.1, 0.2, 0.3])
UNUSUAL = {
    "a list": [0.1, 0.2, 0.3], "none": None, "a number": 1.0, "too short": SOUND[:2].copy(), "too long": np.zeros(4),
    "empty": np.zeros(0), "a cube": np.zeros((1, 1, 3)), "no dimension": np.array(1.0), "strided": np.zeros(6)[::2],
    "backwards": SOUND[::-1], "a column": np.zeros((3, 2))[:, 0], "single precision": SOUND.astype(np.float32),
    "integers": np.arange(3), "other byte order": SOUND.astype(">f8"), "objects": SOUND.astype(object),
    "complex": SOUND.astype(complex), "masked": np.ma.array(SOUND),
    "not aligned": np.frombuffer(b"\0" + SOUND.tobytes(), dtype=np.uint8)[1:].view(float),
    "NaN": np.array([0.1, np.nan, 0.3]), "infinite": np.array([0.1, 0.2, -np.inf]),
    "negative NaN": np.array([-np.nan, 0.2, 0.3]), "a type": np.ndarray, "text": "abc", "bytes": SOUND.tobytes(),
}
UNDERSTOOD = ("a list", "strided", "backwards", "a column", "single precision", "integers", "other byte order", "objects",
              "not aligned", "masked")


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(TEXT)


@pytest.fixture(scope="module", params=["built in", "sequential"])
def call(request, robot):
    found = robot.kernel()
    built_in = type(found.call).__name__ == "builtin_function_or_method"
    assert built_in, "this interpreter and numpy are no strange ones"
    return found.call if request.param == "built in" else python_call.sequential(found, tuple(found.inputs.values()))


def state(seed=0, n=3):
    return [*np.random.default_rng(seed).normal(size=(4, n))]


def test_quick_call_equals_the_checked_call(robot, call):
    slow = robot.kernel()
    for seed in range(20):
        for a, b in zip(call(*state(seed)), slow(np.concatenate(state(seed))), strict=True):
            assert type(a) is np.ndarray and a.dtype == float and a.flags.writeable and a.flags.c_contiguous
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", UNUSUAL)
@pytest.mark.parametrize("index", range(4))
def test_unusual_arguments_are_passed_to_the_checked_call(robot, call, case, index):
    blocks = state()
    blocks[index] = UNUSUAL[case]
    found = call(*blocks)
    assert found is None or "sequential" in repr(call), "numpy joins some of them to a sound array"
    if case in UNDERSTOOD:
        expected = robot.kernel()(np.concatenate([np.asarray(b, dtype=float).reshape(3) for b in blocks]))
        np.testing.assert_array_equal(robot.torque_and_rate(*blocks), expected)
        assert found is None or np.array_equal(found, expected)
    else:
        assert found is None
        with pytest.raises(InputError):
            robot.torque_and_rate(*blocks)


def test_largest_and_smallest_numbers_are_finite(call):
    for value in (1e300, -1e300, 5e-324, -0.0):
        blocks = state()
        blocks[3] = np.array([value, 0.0, 0.0])
        assert call(*blocks) is not None


def test_overflowing_results_are_passed_to_the_checked_call(robot, call):
    """Regression: such results were returned as infinity or NaN without an error."""
    for index, value in ((1, 1e200), (1, -1.7976931348623157e308), (2, 1.7e308)):
        blocks = state()
        blocks[index] = np.array([0.0, value, 1.0])
        assert call(*blocks) is None
        with pytest.raises(InputError, match="torque_and_rate comes out too large for a number"):
            robot.torque_and_rate(*blocks)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_quick_call_rejects_a_wrong_number_of_arguments(call, count):
    assert call(*(state() + state())[:count]) is None


def test_results_are_new_arrays_and_arguments_are_unchanged(call):
    blocks = state()
    kept = [b.copy() for b in blocks]
    first, second = call(*blocks), call(*blocks)
    first[0][:] = 7.0
    assert not np.shares_memory(first[0], second[0]) and (second[0] != 7.0).all()
    np.testing.assert_array_equal(blocks, kept)


def test_quick_call_leaks_no_references(call):
    blocks, wrong = state(), [*state()[:3], np.zeros(5)]
    call(*blocks), call(*wrong)
    gc.collect()
    before = [sys.getrefcount(x) for x in (None, np.ndarray, *blocks, *wrong)]
    allocated = sys.getallocatedblocks()
    for _ in range(2000):
        call(*blocks), call(*wrong)
    after = [sys.getrefcount(x) for x in (None, np.ndarray, *blocks, *wrong)]
    assert np.abs(np.subtract(after, before)).max() < 100 and abs(sys.getallocatedblocks() - allocated) < 500
    found, own = call(*blocks), (object(), object())  # what the interpreter itself holds differs by version
    assert sys.getrefcount(found) == sys.getrefcount(own)
    assert [sys.getrefcount(found[k]) for k in (0, 1)] == [sys.getrefcount(own[k]) for k in (0, 1)]


def test_quick_call_returns_results_of_all_shapes(robot):
    def text(q, v):
        return [[[q[0], v[0]], [v[0] * q[1], 2.0]], q[0] * v[0], [], [[v[0]]]]

    for call in (kernel.build(text, {"q": 2, "v": 1}, backend).call for backend in ("llvm", "python", "reference")):
        matrix, scalar, nothing, one = call(np.array([2.0, 3.0]), np.array([5.0]))
        assert matrix.tolist() == [[2.0, 5.0], [15.0, 2.0]] and scalar.shape == () and scalar == 10.0
        assert nothing.shape == (0,) and one.tolist() == [[5.0]]


def test_kernels_without_inputs_or_with_many_are_called():
    """Cases: no inputs, and more values than fit on the stack."""
    large = python_call.LARGEST
    for size in (0, large):
        found = kernel.build(lambda q: [[1.5], q * 2.0], {"q": size}, "llvm")
        x = np.linspace(0.0, 1.0, size)
        assert type(found.call).__name__ == "function"
        if size:
            np.testing.assert_array_equal(found.call(x)[1], 2.0 * x)
        np.testing.assert_array_equal(found(x)[1], 2.0 * x)


def test_quick_call_remains_valid_after_its_kernel_is_deleted():
    call = kernel.build(lambda q: [q * 2.0], {"q": 2}, "llvm").call
    gc.collect()
    assert call(np.array([1.0, 2.0]))[0].tolist() == [2.0, 4.0]


@pytest.mark.parametrize("change", [("ABI", (7,)), ("_FIELDS", python_call._FIELDS | {"data": 48})])
def test_unknown_numpy_abi_is_called_through_ctypes(monkeypatch, change):
    monkeypatch.setattr(python_call, *change)
    python_call.usable.cache_clear()
    try:
        assert not python_call.usable()
        robot = Robot.from_urdf(TEXT)
        found = robot.torque_and_rate(*state())
        assert type(robot.kernel().call).__name__ == "function" and robot.backend == "llvm"
        np.testing.assert_array_equal(robot.torque_and_rate(*state()), found)
    finally:
        monkeypatch.undo()
        python_call.usable.cache_clear()
    assert python_call.usable()
    np.testing.assert_array_equal(Robot.from_urdf(TEXT).torque_and_rate(*state()), found)


def test_kernel_address_is_a_plain_c_function(robot):
    found, blocks = robot.kernel(), state()
    y = np.full(found.width, np.nan)
    x = np.concatenate(blocks)
    assert found.inputs == {"q": 3, "qd": 3, "qdd": 3, "qddd": 3} and found.size == 12 and found.width == 6
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(found.address)(x.ctypes.data, y.ctypes.data)
    np.testing.assert_array_equal(y, np.concatenate(robot.torque_and_rate(*blocks)))
    assert Robot.from_urdf(TEXT, backend="python").kernel().address == 0


def test_payloads_and_wrenches_work_after_quick_calls(robot):
    blocks = state()
    light = robot.torque_and_rate(*blocks)
    loads = [(1.0, (0.1, 0, 0)), (2.0, (0, 0.1, 0))]
    for _ in range(2):  # all kernels exist in the second pass
        for mass, com in loads:
            loaded = robot.with_payload("l3", mass, com)
            reference = Robot.from_model(robot.model, "reference").with_payload("l3", mass, com)
            for _ in range(2):
                np.testing.assert_allclose(loaded.torque_and_rate(*blocks), reference.torque_and_rate(*blocks), rtol=1e-11)
            np.testing.assert_array_equal(loaded.with_payload("l3", 0.0).torque_and_rate(*blocks), light)
        pushed = robot.torque_and_rate(*blocks, loads=Loads({"l3": np.ones(6)}))
        assert np.abs(pushed[0] - light[0]).max() > 0.1
        np.testing.assert_array_equal(robot.torque_and_rate(*blocks), light)
        with pytest.raises(InputError, match=r"qd\[1\] is nan"):
            robot.torque_and_rate(blocks[0], np.array([0.1, np.nan, 0.3]), *blocks[2:])


def test_threads_can_use_quick_calls_concurrently():
    """Several threads use two robots, including the first calls."""
    robots = [Robot.from_urdf(TEXT), Robot.from_urdf(TEXT.replace('"l3"', '"tip"'))]
    cases = [(k % 2, state(k), np.repeat(np.array(state(k))[:, None], 50, axis=1)) for k in range(8)]
    reference = Robot.from_urdf(TEXT, backend="python")
    expected = [np.array(reference.torque_and_rate(*blocks)) for _, blocks, _ in cases]
    wrong: list[object] = []

    def work(k):
        which, blocks, rows = cases[k]
        for _ in range(300):
            for found in (robots[which].torque_and_rate(*blocks), [part[-1] for part in robots[which].torque_and_rate(*rows)]):
                if np.abs(np.array(found) - expected[k]).max() > 1e-12:
                    wrong.append((k, found))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(cases))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong

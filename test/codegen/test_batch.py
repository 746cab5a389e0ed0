"""Vectorized kernels: bit-for-bit equal to single calls, for any memory layout and number of threads."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from test_codegen import random_text

from rnea_ros import InputError, Loads, Robot
from rnea_ros.codegen import kernel, llvm_engine
from support.robots import arm, seeds

pytest.importorskip("llvmlite")
ROOT = Path(__file__).resolve().parents[2]
COUNTS = (1, 2, 7, 8, 9, 16, 31, 100)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(kernel, "MANY", 1)


@pytest.mark.parametrize("seed", seeds(5))
def test_vectorized_random_graphs_equal_single_calls(seed):
    compiled = kernel.build(random_text(seed), {"x": 4}, "llvm")
    for count in COUNTS:
        x = np.random.default_rng(count).normal(size=(count, 4))
        expected = np.array([compiled.call(row)[0] for row in x])
        np.testing.assert_array_equal(compiled(x)[0], expected)
        np.testing.assert_array_equal(compiled.samples([x], count)[0], expected)


def products(a, b, c):
    return [[x * b[0] + c[-1] for x in a], [[b[0] * a[-1]], [np.tanh(c[0])]], c[0] * 2.0, []]


@pytest.mark.parametrize("backend", ["llvm", "python"])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_first_outputs_can_be_computed_alone(outputs, backend):
    compiled = kernel.build(products, {"a": 3, "b": 1, "c": 2}, backend)
    blocks = [np.random.default_rng(0).normal(size=(31, size)) for size in (3, 1, 2)]
    alone, whole = compiled.first_of_samples(blocks, 31, outputs), compiled.of_samples(blocks, 31)
    assert len(alone) == outputs
    for found, expected in zip(alone, whole, strict=False):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 9, 15, 17, 24])
def test_vectorized_calls_with_any_block_size_equal_single_calls(size):
    compiled = kernel.build(products, {"a": size, "b": 1, "c": 2}, "llvm")
    rng = np.random.default_rng(size)
    for count in COUNTS:
        a, b, c = rng.normal(size=(count, size)), rng.normal(size=(count, 1)), rng.normal(size=(count, 2))
        found = compiled.samples([a, b, c], count)
        np.testing.assert_allclose(found[0], a * b + c[:, 1:], rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(found[1][:, 0, 0], b[:, 0] * a[:, -1])
        np.testing.assert_array_equal(found[2], 2.0 * c[:, 0])
        assert [part.shape for part in found] == [(count, size), (count, 2, 1), (count,), (count, 0)]
    none = compiled.samples([np.zeros((0, size)), np.zeros((0, 1)), np.zeros((0, 2))], 0)
    assert [part.shape for part in none] == [(0, size), (0, 2, 1), (0,), (0, 0)]


def test_results_do_not_overlap_in_memory():
    compiled = kernel.build(products, {"a": 3, "b": 1, "c": 2}, "llvm")
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(40, 3)), rng.normal(size=(40, 1)), rng.normal(size=(40, 2))
    found = compiled.samples([a, b, c], 40)
    kept = [part.copy() for part in found]
    for k, part in enumerate(found):
        part[...] = np.nan
        for other, expected in zip(found[k + 1:], kept[k + 1:], strict=True):
            np.testing.assert_array_equal(other, expected)
    again = compiled.samples([a, b, c], 40)
    for part, expected in zip(again, kept, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_results_do_not_depend_on_the_layout_of_the_arguments():
    compiled = kernel.build(products, {"a": 3, "b": 1, "c": 2}, "llvm")
    rng = np.random.default_rng(0)
    plain = [rng.normal(size=(50, 3)), rng.normal(size=(50, 1)), rng.normal(size=(50, 2))]
    expected = compiled.samples(plain, 50)
    wide = np.concatenate(plain, axis=1)
    odd = np.zeros(50 * 3 * 8 + 1, dtype=np.uint8)[1:].view(float).reshape(50, 3)
    odd[:] = plain[0]
    for a in (np.asfortranarray(plain[0]), plain[0][::-1][::-1], wide[:, :3], np.repeat(plain[0], 2, axis=1)[:, ::2],
              np.repeat(plain[0], 3, axis=0)[::3], odd, plain[0][:, ::-1][:, ::-1]):
        for b in (plain[1], wide[:, 3:4], np.asfortranarray(plain[1])):
            for x, y in zip(compiled.samples([a, b, plain[2]], 50), expected, strict=True):
                np.testing.assert_array_equal(x, y)
    for x, y in zip(compiled(wide), expected, strict=True):
        np.testing.assert_array_equal(x, y)
    single = compiled.samples([plain[0], plain[1][7], plain[2][3]], 50)
    repeated = compiled.samples([plain[0], np.repeat(plain[1][7:8], 50, axis=0), np.repeat(plain[2][3:4], 50, axis=0)], 50)
    for x, y in zip(single, repeated, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_inputs_are_detected_anywhere(value):
    compiled = kernel.build(lambda a, b, c: [[x * 1e-9 for x in [*a, *b, *c]]], {"a": 9, "b": 1, "c": 2}, "llvm")
    for count in (1, 8, 21):
        blocks = [np.ones((count, 9)), np.ones((count, 1)), np.ones((count, 2))]
        assert compiled.samples(blocks, count)
        for block in blocks:
            for index in np.ndindex(block.shape):
                block[index] = value
                assert compiled.samples(blocks, count) is None
                block[index] = 1.7976931348623157e308
        assert compiled.samples([np.full_like(block, -1.7976931348623157e308) for block in blocks], count)


def test_non_finite_results_are_detected_anywhere():
    """The product of the inputs overflows."""
    compiled = kernel.build(products, {"a": 5, "b": 1, "c": 2}, "llvm")
    for count in (1, 8, 21):
        blocks = [np.ones((count, 5)), np.ones((count, 1)), np.ones((count, 2))]
        for row in range(count):
            for block, column in ((0, 2), (0, 4), (2, 0)):
                blocks[block][row, column] = blocks[1][row] = 1e200
                if block == 2:
                    blocks[2][row, 0] = 1e308
                assert compiled.samples(blocks, count) is None
                blocks[block][row, column] = blocks[1][row] = 1.0
        assert compiled.samples(blocks, count)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_results_do_not_depend_on_the_number_of_threads(monkeypatch, threads):
    monkeypatch.setenv(llvm_engine.THREADS, str(threads))
    monkeypatch.setattr(llvm_engine, "PIECE", 2000)
    compiled = kernel.build(random_text(3), {"x": 4}, "llvm")
    x = np.random.default_rng(0).normal(size=(3001, 4))
    np.testing.assert_array_equal(compiled(x)[0], np.concatenate([compiled(row[None])[0] for row in x]))
    x[2222, 2] = np.nan
    assert compiled.samples([x], len(x)) is None and compiled._batch


def test_concurrent_callers_share_the_threads(monkeypatch):
    monkeypatch.setenv(llvm_engine.THREADS, "3")
    monkeypatch.setattr(llvm_engine, "PIECE", 2000)
    compiled = kernel.build(random_text(3), {"x": 4}, "llvm")
    x = np.random.default_rng(0).normal(size=(8, 2001, 4))
    expected = [compiled(part)[0] for part in x]
    with ThreadPoolExecutor(8) as callers:
        for _ in range(5):
            for found, wanted in zip(callers.map(compiled, x), expected, strict=True):
                np.testing.assert_array_equal(found[0], wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_vectorized_calls_work_after_a_fork():
    script = """
import os, signal, sys
import numpy as np
from rnea_ros import Robot
robot = Robot.from_urdf(sys.argv[1])
motion = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 20_000, robot.n))
before = robot.torque_and_rate(*motion)
child = os.fork()
signal.alarm(200)  # ends one that waits for ever
after = robot.torque_and_rate(*motion)
assert np.array_equal(before, after)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    run_with_threads(script)


def run_with_threads(script):
    command = [sys.executable, "-W", "ignore", "-c", script, str(ROOT / "urdf" / "seven_r.urdf")]
    subprocess.run(command, check=True, timeout=240, env={**os.environ, llvm_engine.THREADS: "3", "PYTHONPATH": str(ROOT)})


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list the threads of a process")
def test_no_thread_writes_into_results_after_an_interrupted_call():
    """Arrays of an interrupted call are freed and reused: no thread may write into them after any number of
    interruptions.
    """
    run_with_threads("""
import os, signal, sys, time
import numpy as np
from rnea_ros import Robot
from rnea_ros.robots.tree import TreeDynamics

class Interrupt(BaseException):
    pass

def interrupt(_, frame):
    while frame:
        if frame.f_code is TreeDynamics.torque_and_rate.__code__:
            raise Interrupt
        frame = frame.f_back

def threads():
    return len(os.listdir("/proc/self/task"))

robot = Robot.from_urdf(sys.argv[1])
rng = np.random.default_rng(0)
whole = rng.normal(size=(60_000, robot.n))
robot.torque_and_rate(*[whole] * 4)
before, cut = threads(), 0
signal.signal(signal.SIGALRM, interrupt)
for again in range(400):
    motion = whole[:rng.integers(1_000, len(whole))].copy()
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 3e-3), (0.0, 3e-4)[again % 2])
    try:
        robot.torque_and_rate(*[motion] * 4)
    except Interrupt:
        cut += 1
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    end = time.monotonic() + 120.0
    while threads() > before:  # one that has ended is still listed for a moment
        assert time.monotonic() < end, f"{threads()} threads, {before} before"
    del motion
    others = [np.ones(rng.integers(10, 400_000)) for _ in range(3)]
    assert all((other == 1.0).all() for other in others)
assert cut > 20, cut
""")


@pytest.mark.parametrize("given", [0, 1])
def test_calls_work_when_no_thread_can_be_created(monkeypatch, given):
    """The function that creates threads is missing or fails."""
    refuse = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(lambda *_: 11)
    functions = (ctypes.cast(refuse, ctypes.c_void_p).value,) * 2 if given else (None, None)
    monkeypatch.setattr(llvm_engine, "_thread_functions", lambda: functions)
    monkeypatch.setenv(llvm_engine.THREADS, "3")
    monkeypatch.setattr(llvm_engine, "PIECE", 2000)
    compiled = kernel.build(random_text(3), {"x": 4}, "llvm")
    x = np.random.default_rng(0).normal(size=(3001, 4))
    np.testing.assert_array_equal(compiled(x)[0], np.concatenate([compiled(row[None])[0] for row in x]))


def test_batch_kernel_is_compiled_after_many_calls(monkeypatch):
    monkeypatch.setenv(llvm_engine.THREADS, "3")
    monkeypatch.setattr(llvm_engine, "PIECE", 2000)
    monkeypatch.setattr(llvm_engine, "PIECES", 1)
    compiled = kernel.build(random_text(3), {"x": 4}, "llvm")
    x = np.random.default_rng(0).normal(size=(3001, 4))
    np.testing.assert_array_equal(compiled(x)[0], np.concatenate([compiled(row[None])[0] for row in x]))
    for row in (3, 3000):
        y = x.copy()
        y[row, 1] = np.inf
        assert compiled.samples([y], len(y)) is None and compiled._batch


def test_number_of_threads_is_read_from_the_environment(monkeypatch):
    for given, expected in (("3", 3), ("1", 1)):
        monkeypatch.setenv(llvm_engine.THREADS, given)
        assert llvm_engine.threads() == expected
    for given in ("", "0", "many", "-2", "1.5"):
        monkeypatch.setenv(llvm_engine.THREADS, given)
        assert llvm_engine.threads() >= 1
    monkeypatch.delenv(llvm_engine.THREADS)
    assert llvm_engine.threads() >= 1


def test_batch_kernel_writes_only_into_the_results():
    compiled = kernel.build(products, {"a": 5, "b": 1, "c": 2}, "llvm")
    compiled(np.zeros((9, 8)))
    for count in COUNTS:
        stores = [np.full(count * size + 32, 7.0) for size in (5, 2, 1, 0)]
        outs = [store[16:16 + count * size].reshape(count, size) for store, size in zip(stores, (5, 2, 1, 0), strict=True)]
        assert compiled._batch([np.ones((count, 5)), np.ones(1), np.ones((count, 2))], outs, count)
        for store, out in zip(stores, outs, strict=True):
            assert (store[:16] == 7.0).all() and (store[16 + out.size:] == 7.0).all() and (out != 7.0).all()


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_invalid_samples_are_reported_with_their_index(backend):
    text = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}, {"kind": "prismatic", "axis": (1, 0, 0)})
    robot = Robot.from_urdf(text, backend=backend).with_payload("l3", 1.5, (0.1, 0.2, 0.3))
    motion = np.random.default_rng(0).normal(size=(4, 37, 3))
    wrenches = {"l2": np.random.default_rng(1).normal(size=(37, 6)), "l3": np.ones(6)}
    found = robot.torque_and_rate(*motion, loads=Loads(wrenches))
    for k in range(37):
        one = robot.torque_and_rate(*motion[:, k], loads=Loads({"l2": wrenches["l2"][k], "l3": wrenches["l3"]}))
        np.testing.assert_array_equal([part[k] for part in found], one)
    assert [part.shape for part in robot.torque_and_rate(*motion[:, :0])] == [(0, 3), (0, 3)]
    motion[2, 30, 1] = np.inf
    with pytest.raises(InputError, match=r"qdd\[30, 1\] is inf \(joint 'j2'\)"):
        robot.torque_and_rate(*motion)
    with pytest.raises(InputError, match=r"qd\[1\] is nan"):
        robot.torque_and_rate(motion[0], np.array([0.0, np.nan, 0.0]), motion[0], motion[0])


def test_batch_kernel_is_not_compiled_for_few_samples(monkeypatch):
    monkeypatch.setattr(kernel, "MANY", 100)
    compiled = kernel.build(random_text(5), {"x": 4}, "llvm")
    x = np.random.default_rng(0).normal(size=(60, 4))
    first = compiled(x)[0]
    assert compiled._batch is None
    np.testing.assert_array_equal(compiled(x)[0], first)
    assert compiled._batch is not None


def test_memory_for_many_samples_is_bounded():
    """Besides the results only a workspace for each thread is allocated; inputs are not copied."""
    robot = Robot.from_urdf(arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}))
    motion = np.random.default_rng(0).normal(size=(4, 200_000, 2))
    robot.torque_and_rate(*motion[:, :300])
    tracemalloc.start()
    try:
        found = robot.torque_and_rate(*motion)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < sum(part.nbytes for part in found) + 1_000_000
    np.testing.assert_array_equal([part[-1] for part in found], robot.torque_and_rate(*motion[:, -1]))


@pytest.mark.parametrize("backend", ["llvm", "python"])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 31])
def test_tiles_go_from_kernel_to_kernel(backend, count):
    """Blocks in tiles give the numbers that rows give, and so do results in tiles, some columns of which are passed on."""
    rng = np.random.default_rng(count)
    compiled = kernel.build(products, {"a": 3, "b": 1, "c": 2}, backend)
    plain = [rng.normal(size=(count, 3)), rng.normal(size=(count, 1)), rng.normal(size=2)]
    wide = kernel.Tiles.of([rng.normal(size=(count, 2)), rng.normal(size=(count, 3))], compiled.lanes)
    wide.data[:, 1:4] = kernel.Tiles.of(plain[:1], compiled.lanes).data
    columns = kernel.Tiles(wide.data[:, 1:4], count)
    np.testing.assert_array_equal(columns.samples, plain[0])
    expected = compiled.of_samples(plain, count)
    for a in (plain[0], kernel.Tiles.of(plain[:1], compiled.lanes), kernel.Tiles.of(plain[:1], 5), columns):
        kept, *rest = compiled.tiled([a, *plain[1:]], count, [0])
        assert isinstance(kept, kernel.Tiles) and kept.count == count
        for found, wanted in zip([kept.samples, *rest], expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    again = compiled.tiled([kept, *plain[1:]], count, [])
    for found, wanted in zip(again, compiled.of_samples([expected[0], *plain[1:]], count), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_tiles_that_repeat_a_number_for_all_lanes_are_read_as_such():
    """Regression: the numbers behind them in memory were read instead."""
    compiled = kernel.build(products, {"a": 3, "b": 1, "c": 2}, "llvm")
    numbers, tiles = np.arange(1000.0), 4
    same = np.broadcast_to(numbers[:tiles, None], (tiles, compiled.lanes)).reshape(tiles, 1, compiled.lanes)
    assert not same.flags.c_contiguous
    count = tiles * compiled.lanes
    others = [np.random.default_rng(1).normal(size=(count, 3)), np.ones(2)]
    found = compiled.tiled([others[0], kernel.Tiles(same, count), others[1]], count, [])
    expected = compiled.of_samples([others[0], np.repeat(numbers[:tiles], compiled.lanes)[:, None], others[1]], count)
    for ours, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, wanted)

"""Kernels touch nothing but their arguments and results, and give the same numbers for every memory layout and length.

The tests of layouts run once more in a process in which each array lies beside an inaccessible page.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import BaseState, Loads, Robot, load
from rnea_ros.codegen import kernel
from rnea_ros.codegen.c_compiler import compiler
from rnea_ros.trajectory.path import polynomial_derivatives
from support.guarded_memory import SIDE
from support.robot_kinds import FIVE_BAR
from support.robots import arm

pytest.importorskip("llvmlite")
ROOT = Path(__file__).resolve().parents[2]
COUNTS = (*range(10), 15, 16, 17)  # around tiles of 4 and 8 samples
SIZES = {"a": 3, "b": 1, "c": 2, "none": 0, "wide": 9}
ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}, {"kind": "prismatic", "axis": (1, 0, 0)})


@pytest.fixture(autouse=True)
def vectorized(monkeypatch):
    """Compile code for many samples at the first call."""
    monkeypatch.setattr(kernel, "MANY", 1)


def products(a, b, c, none, wide):
    return [[x * b[0] + c[-1] for x in a], [[b[0] * a[-1]], [wide[0] + wide[8] * a[0]]], c[0] * 2.0, []]


def compiled(backend):
    return kernel.build(products, SIZES, backend)


def unaligned(x):
    store = np.zeros(x.nbytes + 1, np.uint8)[1:].view(float).reshape(x.shape)
    store[...] = x
    return store


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def inside(x):
    """View whose rows, columns and further axes are surrounded by NaN."""
    whole = np.full(tuple(size + 2 for size in x.shape), np.nan)
    view = whole[tuple(slice(1, -1) for _ in x.shape)]
    view[...] = x
    return view


def along(axis, step):
    """Return a function that stores an array along an axis backwards, or with gaps of NaN."""
    def stored(x):
        shape = list(x.shape)
        shape[axis] *= abs(step)
        whole = np.full(shape, np.nan)
        view = np.moveaxis(np.moveaxis(whole, axis, 0)[::step], 0, axis)
        view[...] = x
        return view

    return stored


LAYOUTS = {
    "in order": np.ascontiguousarray, "Fortran": np.asfortranarray, "read only": read_only, "unaligned": unaligned,
    "inside": inside, "reversed rows": along(0, -1), "reversed columns": along(1, -1), "every second row": along(0, 2),
    "every third column": along(1, 3), "last axis backwards": along(-1, -1), "big endian": lambda x: x.astype(">f8"),
    "float32": lambda x: x.astype(np.float32), "int64": lambda x: x.astype(np.int64)}


def numbers(*shape):
    """Return small integers, the same in every type."""
    return np.random.default_rng(shape[0]).integers(-9, 9, shape).astype(float)


def blocks_of(count):
    return [numbers(count, size) for size in SIZES.values()]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and (one == other).all(), (one, other)


@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_rows_of_every_layout_give_the_same_numbers(backend):
    code = compiled(backend)
    for count in COUNTS:
        plain = blocks_of(count)
        a, b, c, _, wide = plain
        expected = [a * b + c[:, 1:], np.stack([b * a[:, -1:], wide[:, :1] + wide[:, 8:] * a[:, :1]], axis=1), 2.0 * c[:, 0],
                    np.zeros((count, 0))]
        for layout in LAYOUTS.values():
            given = [layout(x) for x in plain]
            assert_same(code.samples(given, count), expected)
            assert_same(code.first_of_samples(given, count, 2), expected[:2])
        assert_same(code(LAYOUTS["reversed rows"](np.concatenate(plain, axis=1))), expected)


@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_one_row_for_all_samples_in_every_layout(backend):
    code = compiled(backend)
    for count in (1, 7, 8, 9, 17):
        plain = blocks_of(count)
        for k, single in enumerate(plain):
            row = single[:1].copy()
            repeated = [*plain[:k], np.repeat(row, count, axis=0), *plain[k + 1:]]
            expected = code.samples(repeated, count)
            for view in (row[0], row, np.broadcast_to(row[0], (count, row.size)), np.broadcast_to(row, (count, row.size)),
                         np.broadcast_to(row[0], (1, row.size)), row[::-1], along(0, 3)(row), row[0].astype(np.float32)):
                assert_same(code.samples([*plain[:k], view, *plain[k + 1:]], count), expected)


def test_blocks_of_other_lengths_are_rejected():
    code = compiled("llvm")
    plain = blocks_of(9)
    code.samples(plain, 9)
    for k, block in enumerate(plain):
        for wrong in (block[:8], block[:0], np.zeros((9, block.shape[1] + 1)), np.zeros(block.shape[1] + 1), np.zeros(()),
                      np.zeros((1, block.shape[1], code.lanes))):
            with pytest.raises(ValueError, match="a block has shape"):
                code.samples([*plain[:k], wrong, *plain[k + 1:]], 9)


@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_tiles_of_every_layout_give_the_same_numbers(backend):
    code = compiled(backend)
    for count in COUNTS[1:]:
        plain = blocks_of(count)
        expected = code.of_samples(plain, count)
        for k, block in enumerate(plain):
            data = kernel.Tiles.of([block], code.lanes).data
            for layout in LAYOUTS.values():
                given = [*plain[:k], kernel.Tiles(layout(data), count), *plain[k + 1:]]
                found = code.tiled(given, count, [0])
                assert_same([found[0].samples, *found[1:]], expected)


def test_one_tile_for_all_samples():
    """Views that repeat one tile, of a single tile too: the limits of a short motion."""
    code = compiled("llvm")
    for count in (1, code.lanes, 17):
        plain, tiles = blocks_of(count), -(-count // code.lanes)
        for k, size in enumerate(SIZES.values()):
            values = numbers(size)
            repeated = [*plain[:k], np.broadcast_to(values, (count, size)), *plain[k + 1:]]
            whole = np.broadcast_to(values[:, None], (tiles, size, code.lanes))
            one = np.broadcast_to(np.repeat(values[:, None], code.lanes, axis=1), (tiles, size, code.lanes))
            for view in (whole, one):
                given = [*plain[:k], kernel.Tiles(view, count), *plain[k + 1:]]
                assert_same(code.tiled(given, count, ()), code.of_samples(repeated, count))


@pytest.mark.parametrize("backend", ["llvm", "c", "python"])
def test_recurrences_of_every_layout_give_the_same_numbers(backend):
    code = kernel.build(lambda s, u: [[s[0] + u[0], s[1] * 2.0 - u[1]]], {"s": 2, "u": 2}, backend)
    for count in COUNTS:
        rows = numbers(count, 4)
        state, expected = rows[:1, :2].copy(), np.zeros((count, 2))
        for k in range(count):
            state = np.array([[state[0, 0] + rows[k, 2], state[0, 1] * 2.0 - rows[k, 3]]])
            expected[k] = state[0]
        for layout in LAYOUTS.values():
            np.testing.assert_array_equal(code.sweep(layout(rows), 2), expected)
        with pytest.raises(ValueError, match="rows of a kernel have shape"):
            code.sweep(numbers(count, 3), 2)


@pytest.mark.parametrize("backend", ["llvm", "c", "python"])
def test_one_sample_of_every_layout(backend):
    code = compiled(backend)
    plain = [numbers(size + 1)[1:] for size in SIZES.values()]
    expected = code(np.concatenate(plain))
    for layout in (np.copy, unaligned, read_only, inside, along(0, -1), along(0, 2), LAYOUTS["big endian"],
                   LAYOUTS["float32"], LAYOUTS["int64"]):
        given = [layout(x) for x in plain]
        assert_same(code(layout(np.concatenate(plain))), expected)
        if (found := code.call(*given)) is not None:
            assert_same(found, expected)


@cache
def robot_of(kind):
    """Return a robot with one of the ways into kernels, and joint positions that it can have."""
    springs = {"version": 1, "elastic_joints": {"j2": {"stiffness": 90.0}},
               "motors": {"j2": {"link": "l1", "axis": [0, 0, 1]}},
               "drives": {"j2": {"gear_ratio": 20.0, "rotor_inertia": 1e-4}}}
    if kind == "tree":
        return Robot.from_urdf(ARM).with_payload("l3", 1.5), 0.0
    if kind == "elastic":
        return load(ARM, springs), 0.0
    return (load(ARM, base="floating"), 0.0) if kind == "floating" else (load(*FIVE_BAR), np.array([1.9, 1.0]))


@pytest.mark.parametrize("kind", ["tree", "elastic", "floating", "loops"])
def test_motions_of_every_layout_give_the_same_torques(kind):
    robot, at = robot_of(kind)
    link = "left_forearm" if kind == "loops" else "l3"

    def numbers_of(motion, wrench):
        base = {"base": BaseState()} if kind == "floating" else {}
        found = robot.torque_and_rate(*motion, loads=Loads({link: wrench}), **base)
        return [*found, robot.mass_matrix(motion[0]), *robot.energy(*motion[:2])] if kind == "tree" else found

    def assert_same_up_to_rounding(found, expected):
        for one, other in zip(found, expected, strict=True):  # loops are closed from the pose before
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)

    for count in (1, 8, 17):
        rng = np.random.default_rng(count)
        plain = [0.1 * rng.normal(size=(count, robot.n)) + (0.0 if k else at) for k in range(robot.order + 1)]
        *plain, wrench = [x.astype(np.float32).astype(float) for x in (*plain, rng.normal(size=(count, 6)))]
        expected = numbers_of(plain, wrench)
        for name, layout in LAYOUTS.items():
            if name != "int64":
                assert_same_up_to_rounding(numbers_of([layout(x) for x in plain], layout(wrench)), expected)
        one = [np.broadcast_to(x[0], x.shape) for x in plain]
        assert_same_up_to_rounding(numbers_of(one, wrench), numbers_of([x.copy() for x in one], wrench))


def test_polynomials_of_paths_of_every_layout_give_the_same_numbers():
    function = polynomial_derivatives(4, 3)
    for count in COUNTS[1:]:
        x, coefficients = numbers(count, 1), numbers(count, 12)
        expected = function([x, coefficients], count)
        for layout in LAYOUTS.values():
            assert_same(function([layout(x), layout(coefficients)], count), expected)
        assert_same(function([x, coefficients[0]], count), function([x, np.repeat(coefficients[:1], count, axis=0)], count))


# ------------------------------------------------------------------ beside inaccessible pages


def run_guarded(side, *arguments):
    """Run Python in a process whose arrays are guarded on one side."""
    env = {**os.environ, SIDE: side, "PYTHONPATH": f"{ROOT}:{ROOT / 'test'}"}
    return subprocess.run([sys.executable, "-X", "faulthandler", *arguments], cwd=ROOT, capture_output=True, text=True,
                          timeout=500, check=False, env=env)


@pytest.mark.slow
@pytest.mark.skipif(SIDE in os.environ or not compiler(), reason="runs once, where there is a C compiler")
def test_no_kernel_touches_the_memory_beside_an_array():
    done = run_guarded("mixed", "-m", "pytest", "-q", "-p", "support.guarded_memory", "-p", "no:cacheprovider", __file__)
    assert done.returncode == 0 and "passed" in done.stdout, (done.stdout + done.stderr)[-6000:]


@pytest.mark.skipif(SIDE in os.environ or not compiler(), reason="runs once, where there is a C compiler")
@pytest.mark.parametrize("side", ["after", "before"])
@pytest.mark.parametrize("access", ["read", "write"])
def test_an_access_beside_an_array_ends_the_process(side, access):
    script = f"""
import ctypes
from support import guarded_memory
assert guarded_memory.install()
import numpy as np
array = np.zeros(5)
beside = ctypes.c_double.from_address(array.ctypes.data + {40 if side == "after" else -8})
print("at once", flush=True)
{"beside.value" if access == "read" else "beside.value = 1.0"}
print("survived")
"""
    done = run_guarded(side, "-c", script)
    assert "at once" in done.stdout and "survived" not in done.stdout and "Segmentation fault" in done.stderr

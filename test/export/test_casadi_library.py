"""`rnea export --casadi`: values, Jacobians and Hessians of the library are compared with the robot and complex steps.

Tests without CasADi call the same functions by ctypes.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnea_ros import InputError, Robot, load
from rnea_ros.algorithms import sensitivities as closed_form
from rnea_ros.algorithms import torque_rate as newton_euler
from rnea_ros.cli.main import main
from rnea_ros.export import c_library, casadi_library
from support.complex_steps import complex_step

ROOT = Path(__file__).resolve().parents[2]
INT = ctypes.c_longlong
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


@cache
def robot(name: str = "rr") -> Robot:
    file = ROOT / "urdf" / f"{name}.robot.yaml"
    return load(ROOT / "urdf" / f"{name}.urdf", file if name == "five_bar" else None)


class Loaded:
    """Function of a library, called by ctypes as CasADi does: inputs, outputs and sparsity are read from the library."""

    def __init__(self, code: ctypes.CDLL, name: str):
        self.name, self._evaluate = name, getattr(code, name)
        self.inputs, self.outputs = (self._described(code, end) for end in ("in", "out"))
        sizes = [INT() for _ in range(4)]
        assert getattr(code, f"{name}_work")(*map(ctypes.byref, sizes)) == 0
        self.work = [size.value for size in sizes]

    def _described(self, code: ctypes.CDLL, end: str) -> dict[str, tuple[tuple[int, int], list[tuple[int, int]]]]:
        """Return shape and nonzeros (row, column) of each input or output by its name."""
        count = getattr(code, f"{self.name}_n_{end}")
        label, sparsity = getattr(code, f"{self.name}_name_{end}"), getattr(code, f"{self.name}_sparsity_{end}")
        count.restype, label.restype, sparsity.restype = INT, ctypes.c_char_p, ctypes.POINTER(INT)
        label.argtypes = sparsity.argtypes = [INT]
        found = {}
        for k in range(count()):
            numbers = sparsity(k)
            rows, columns = numbers[0], numbers[1]
            if numbers[2] == 1:
                entries = [(i, j) for j in range(columns) for i in range(rows)]
            else:
                starts = [numbers[2 + j] for j in range(columns + 1)]
                entries = [(numbers[3 + columns + at], j) for j in range(columns) for at in range(starts[j], starts[j + 1])]
                assert starts[0] == 0 and entries == sorted(set(entries), key=lambda entry: entry[::-1])
            found[label(k).decode()] = (rows, columns), entries
        assert not label(-1) and not label(count()) and not sparsity(count())
        return found

    def __call__(self, wanted: list[str] | None = None, **given: Any) -> dict[str, np.ndarray]:
        """Evaluate the wanted outputs; inputs that are not given are null pointers: zeros."""
        arg, res = (ctypes.c_void_p * self.work[0])(), (ctypes.c_void_p * self.work[1])()
        w = np.full(max(1, self.work[3]), np.nan)
        arrays = {name: np.array(x, dtype=float).ravel(order="F") for name, x in given.items()}
        for k, (name, (_shape, entries)) in enumerate(self.inputs.items()):
            if name in arrays:
                assert arrays[name].size == len(entries), name
                arg[k] = arrays[name].ctypes.data
        found = {name: np.full(len(self.outputs[name][1]), np.nan) for name in (wanted or self.outputs)}
        for k, name in enumerate(self.outputs):
            if name in found and found[name].size:
                res[k] = found[name].ctypes.data
        assert self._evaluate(arg, res, None, w.ctypes.data_as(ctypes.c_void_p), ctypes.c_int(0)) == 0
        matrices = {}
        for name, numbers in found.items():
            shape, entries = self.outputs[name]
            matrices[name] = np.zeros(shape)
            for entry, number in zip(entries, numbers, strict=True):
                matrices[name][entry] = number
        return matrices


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    @cache
    def made(name: str, payload: str | None = None, links: tuple[str, ...] = ()) -> tuple[Path, ctypes.CDLL]:
        folder = tmp_path_factory.mktemp(name)
        (folder / "src").mkdir()
        library = c_library.library(robot(name), name, payload, links, lambda one: one != "forward_dynamics" or name == "rr")
        source, target = casadi_library.write(casadi_library.library(library), folder)
        assert source.is_file()
        return target, ctypes.CDLL(str(target))

    return made


def assert_close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-10 * max(1.0, np.abs(wanted).max(initial=0.0)))


NAMES = ("q", "qd", "qdd", "qddd")


@pytest.mark.parametrize("name", ["rr", "stanford"])
def test_values_jacobians_and_hessians_match_the_paper_recursion(exported, name):
    arm, (_, code), rng = robot(name), exported(name), np.random.default_rng(1)
    n, x, seeds = arm.n, rng.normal(size=(4, arm.n)), rng.normal(size=2 * arm.n)
    value, jacobian, adjoint, hessian = (Loaded(code, f"{word}{name}_torque_and_rate")
                                         for word in ("", "jac_", "adj1_", "jac_adj1_"))
    motion = dict(zip(NAMES, x, strict=True))
    found = value(**motion)
    assert_close(np.ravel([found["tau"], found["tau_rate"]]), np.ravel(arm.torque_and_rate(*x)))

    def paper_torques(moved: np.ndarray) -> Any:
        tau, rate = newton_euler.torque_and_rate(arm.model, *moved, arm.gravity_vector)
        return [*tau, *rate]

    wanted = complex_step(paper_torques, x).reshape(2 * n, 4 * n)
    found = jacobian(**motion)
    assert list(found) == [f"jac_{row}_{column}" for row in ("tau", "tau_rate") for column in NAMES]
    table = np.block([[found[f"jac_{row}_{column}"] for column in NAMES] for row in ("tau", "tau_rate")])
    assert_close(table, wanted)
    assert not any(entries for (_shape, entries) in [jacobian.inputs["out_tau"], jacobian.outputs["jac_tau_qddd"]])

    given = {**motion, "adj_tau": seeds[:n], "adj_tau_rate": seeds[n:]}
    assert_close(np.ravel(list(adjoint(**given).values())), wanted.T @ seeds)

    def gradient_by_tables(moved: np.ndarray) -> Any:
        first = [*closed_form.sensitivities(arm.model, *moved[:3], arm.gravity_vector), np.zeros((n, n))]
        second = closed_form.rate_sensitivities(arm.model, *moved, arm.gravity_vector)
        return np.concatenate([seeds[:n] @ a + seeds[n:] @ b for a, b in zip(first, second, strict=True)])

    found = hessian(**given)
    assert_close(np.block([[found[f"jac_adj_{row}_{column}"] for column in NAMES] for row in NAMES]),
                 complex_step(gradient_by_tables, x).reshape(4 * n, 4 * n))
    assert_close(np.block([[found[f"jac_adj_{row}_adj_{column}"] for column in ("tau", "tau_rate")] for row in NAMES]),
                 wanted.T)


def test_sparsity_pattern_omits_entries_that_are_zero_in_every_pose(exported):
    """A first axis along gravity has no influence on the torques."""
    arm, (_, code), rng = robot("stanford"), exported("stanford"), np.random.default_rng(2)
    jacobian = Loaded(code, "jac_stanford_torque_and_rate")
    samples = [jacobian(**dict(zip(NAMES, rng.normal(size=(4, arm.n)), strict=True))) for _ in range(3)]
    for name, ((_rows, _columns), entries) in jacobian.outputs.items():
        largest = np.max([np.abs(sample[name]) for sample in samples], axis=0)
        assert set(entries) == {*zip(*np.nonzero(largest), strict=True)}, name
    assert not [entry for entry in jacobian.outputs["jac_tau_q"][1] if entry[1] == 0]


def test_null_pointers_skip_outputs_and_stand_for_zero_inputs(exported):
    arm, (_, code), rng = robot("stanford"), exported("stanford"), np.random.default_rng(3)
    q = rng.normal(size=arm.n)
    alone = Loaded(code, "jac_stanford_torque_and_rate")(["jac_tau_q"], q=q)
    assert list(alone) == ["jac_tau_q"]
    assert_close(alone["jac_tau_q"], arm.sensitivities(q, np.zeros(arm.n), np.zeros(arm.n)).dtau_dq)
    assert_close(Loaded(code, "stanford_inverse_dynamics")(q=q)["tau"].ravel(), arm.gravity(q))


def test_payload_is_an_input_with_derivatives(exported):
    arm, rng = robot(), np.random.default_rng(4)
    _, code = exported("rr", "tool", ("tool",))
    loaded = arm.with_payload("tool", 2.0, (0.1, 0.0, 0.05), 0.02 * np.eye(3))
    parameters, x = loaded.payloads["tool"].parameters, rng.normal(size=(4, arm.n))
    motion = dict(zip(NAMES, x, strict=True))
    found = Loaded(code, "rr_torque_and_rate")(payloads=parameters, **motion)
    assert_close(np.ravel([found["tau"], found["tau_rate"]]), np.ravel(loaded.torque_and_rate(*x)))
    found = Loaded(code, "jac_rr_torque_and_rate")(**motion)  # linear in the payload
    assert_close(found["jac_tau_rate_payloads"] @ parameters, loaded.torque_and_rate(*x)[1] - arm.torque_and_rate(*x)[1])


def test_matrix_outputs_are_stored_by_columns(exported):
    arm, rng = robot(), np.random.default_rng(5)
    _, code = exported("rr", "tool", ("tool",))
    q, step = rng.normal(size=arm.n), 1e-6
    R, p = arm.link_pose("tool", q)
    found = Loaded(code, "rr_pose_tool")(q=q)
    assert_close(found["rotation"], R)
    assert_close(found["position"].ravel(), p)
    jacobian = Loaded(code, "jac_rr_pose_tool")(q=q)
    assert_close(jacobian["jac_position_q"], arm.jacobian("tool", q)[:3])
    by_differences = [(arm.link_pose("tool", q + move)[0] - arm.link_pose("tool", q - move)[0]).ravel(order="F") / (2.0 * step)
                      for move in step * np.eye(arm.n)]
    np.testing.assert_allclose(jacobian["jac_rotation_q"], np.transpose(by_differences), atol=1e-8)


@pytest.mark.campaign  # half a minute of a compiler; test_interop.py differentiates the same program
def test_jacobians_of_closed_loops_match_the_robot(exported):
    """The input q has all joints of the tree; derivatives along the motion of the loops are compared."""
    arm, (_, code), rng = robot("five_bar"), exported("five_bar"), np.random.default_rng(6)
    q, qd, qdd, qddd = arm.home_motion[0] + 0.1 * rng.normal(size=arm.n), *rng.normal(size=(3, arm.n))
    moved = arm.motion(q, qd, qdd, qddd)
    found = Loaded(code, "jac_five_bar_torque_and_rate")(q=moved.q, qd=qd, qdd=qdd, qddd=qddd)
    for name, wanted in zip(NAMES, arm.rate_sensitivities(q, qd, qdd, qddd), strict=True):
        assert_close(found[f"jac_tau_rate_{name}"] @ (moved.G if name == "q" else np.eye(arm.n)), wanted)


def test_ipopt_minimizes_the_torque_rate_with_the_hessian_of_the_library(exported):
    """The unknowns are a pose and its derivatives; CasADi loads the library with external()."""
    ca = pytest.importorskip("casadi")
    target, _ = exported("rr")
    arm, function = robot("rr"), ca.external("rr_torque_and_rate", str(target))
    assert [function.name_in(k) for k in range(4)] == list(NAMES) and function.size1_out(0) == arm.n
    x, seeds = ca.MX.sym("x", 4 * arm.n), ca.MX.sym("seeds", 2 * arm.n)
    tau, rate = function(*ca.vertsplit(x, arm.n))
    both = ca.vertcat(tau, rate)
    results = ca.Function("results", [x, seeds], [ca.jacobian(both, x), ca.hessian(ca.dot(seeds, both), x)[0]])
    rng = np.random.default_rng(7)
    point, weights = rng.normal(size=4 * arm.n), rng.normal(size=2 * arm.n)
    J, H = map(np.array, results(point, weights))
    motion = point.reshape(4, arm.n)
    assert_close(J,
                 np.block([[*arm.sensitivities(*motion[:3]), np.zeros((arm.n, arm.n))], [*arm.rate_sensitivities(*motion)]]))
    steps = 1e-6 * np.eye(point.size)
    slopes = [(np.array(results(point + step, 0.0)[0]) - np.array(results(point - step, 0.0)[0])).T @ weights / 2e-6
              for step in steps]
    np.testing.assert_allclose(H, slopes, atol=1e-6 * np.abs(H).max())
    wanted = np.array([20.0, -5.0])  # tau_rate
    solver = ca.nlpsol("solver", "ipopt", {"x": x, "f": ca.sumsqr(x), "g": rate},
                       {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}})
    found = solver(x0=np.full(4 * arm.n, 0.1), lbg=wanted, ubg=wanted)
    assert solver.stats()["success"] and solver.stats()["iter_count"] < 50
    assert_close(arm.torque_and_rate(*np.array(found["x"]).reshape(4, arm.n))[1], wanted)


def test_export_command_writes_shared_and_casadi_libraries(tmp_path, capsys):
    folder = tmp_path / "made"
    assert main(["export", str(ROOT / "urdf" / "rr.urdf"), "-o", str(folder), "--casadi", "--shared", "--portable"]) == 0
    said = capsys.readouterr().out
    assert f"casadi.external('rr_torque_and_rate', '{folder / 'librr_casadi.so'}')" in said and "robot_library" in said
    assert (folder / "librr.so").is_file()
    symbols = subprocess.run(["nm", "--dynamic", "--defined-only", folder / "librr_casadi.so"], capture_output=True, text=True,
                             check=True).stdout
    names = {line.split()[-1] for line in symbols.splitlines()}
    assert {"rr_torque_and_rate", "jac_rr_torque_and_rate", "adj1_rr_inverse_dynamics", "jac_adj1_rr_torque_and_rate"} <= names
    assert not [name for name in names if name.startswith(("part", "rnea"))]


def test_exported_casadi_source_compiles_without_warnings(exported):
    target, _ = exported("rr", "tool", ("tool",))
    compiler = shutil.which("cc") or shutil.which("gcc") or ""
    subprocess.run([compiler, "-std=c99", "-O0", *WARNINGS, "-fsyntax-only", target.parent / "src" / "rr_casadi.c"],
                   check=True)


def test_export_names_functions_that_casadi_export_leaves_out(tmp_path, capsys):
    wheels = str(ROOT / "urdf" / "wheeled_arm.urdf")
    assert main(["export", wheels, "--robot-file", wheels.replace(".urdf", ".robot.yaml"), "-o", str(tmp_path / "a"),
                 "--casadi"]) == 2
    assert "that leaves out torque_and_rate" in capsys.readouterr().err
    library = c_library.library(robot(), "rr", wanted=lambda name: name == "sensitivities")
    with pytest.raises(InputError, match="leaves out all that were chosen"):
        casadi_library.library(library, chosen=True)
    assert main(["export", str(ROOT / "urdf" / "rr.urdf"), "-o", str(tmp_path / "b"), "--portable"]) == 2
    assert "give --shared or --casadi as well" in capsys.readouterr().err


def test_code_generated_by_casadi_calls_the_library(exported, tmp_path):
    """The generated C uses 32-bit integers, as acados requires."""
    ca = pytest.importorskip("casadi")
    target, _ = exported("rr")
    arm, function = robot("rr"), ca.external("rr_inverse_dynamics", str(target))
    x, tau = ca.MX.sym("x", 3 * arm.n), ca.MX.sym("tau", arm.n)
    residual = tau - function(*ca.vertsplit(x, arm.n))
    made = ca.Function("implicit", [x, tau], [residual, ca.jacobian(residual, x)])
    generator = ca.CodeGenerator("implicit", {"casadi_int": "int", "casadi_real": "double"})
    generator.add(made)
    (tmp_path / "implicit.c").write_text(generator.dump())
    subprocess.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-O1", "-o", "implicit.so", "implicit.c", str(target),
                    f"-Wl,-rpath,{target.parent}", "-lm"], cwd=tmp_path, check=True)
    code = ctypes.CDLL(str(tmp_path / "implicit.so"))
    sizes = [ctypes.c_int() for _ in range(4)]
    assert code.implicit_work(*map(ctypes.byref, sizes)) == 0
    rng, n = np.random.default_rng(8), arm.n
    motion, torque = rng.normal(size=(3, n)), rng.normal(size=n)
    results, work = [np.empty(n), np.empty(3 * n * n)], np.empty(max(1, sizes[3].value))
    arg, res = ((ctypes.c_void_p * max(2, size.value))() for size in sizes[:2])
    arg[0], arg[1], res[0], res[1] = (array.ctypes.data for array in (np.ravel(motion), torque, *results))
    integers = (ctypes.c_int * max(1, sizes[2].value))()
    assert code.implicit(arg, res, integers, work.ctypes.data_as(ctypes.c_void_p), 0) == 0
    assert_close(results[0], torque - arm.inverse_dynamics(*motion))
    shape = made.sparsity_out(1)
    by_x = np.array(ca.DM(shape, results[1][:shape.nnz()]))
    assert_close(by_x, -np.concatenate(arm.sensitivities(*motion), axis=1))

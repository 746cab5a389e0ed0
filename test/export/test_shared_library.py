"""`rnea export --shared`: the C ABI of exported robots, loaded with ctypes, is compared with the Python library."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnea_ros import load
from rnea_ros.cli.main import main
from rnea_ros.export import c_library, shared_library

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "rnea_ros" / "export" / "templates"
COMPILER = shutil.which("cc") or shutil.which("gcc") or ""
LINK, INERTIA = "link6", np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.025]])
FUSED = "fma" in Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else False
TEXT, INT, DOUBLES = ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_double)
INTS, TEXTS = ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_char_p)


def function_type(count: int) -> Any:
    return ctypes.CFUNCTYPE(None, *[DOUBLES] * count)


class Effort(ctypes.Structure):
    """rnea_effort of rnea_robot_api.h."""

    _fields_ = [("contains", INT), ("quantity", INT), ("per_unit", DOUBLES)]


class Link(ctypes.Structure):
    """rnea_link of rnea_robot_api.h."""

    _fields_ = [("name", TEXT), ("pose", function_type(3)), ("jacobian", function_type(2)),
                ("jacobian_rate", function_type(3))]


ARGUMENTS = {"torque_and_rate": 8, "inverse_dynamics": 5, "gravity": 3, "gravity_and_rate": 5, "bias": 4, "friction": 4,
             "mass_matrix": 3, "forward_dynamics": 5, "sensitivities": 7, "rate_sensitivities": 9, "close_step": 4,
             "tree_motion": 7}


class RobotApi(ctypes.Structure):
    """rnea_robot_api, version 1, of rnea_robot_api.h."""

    _fields_ = [
        ("abi", ctypes.c_uint32), ("size", ctypes.c_uint32), ("robot_name", TEXT), ("model_id", TEXT), ("exporter", TEXT),
        ("payload_link", TEXT), ("root_link", TEXT), ("n", INT), ("n_q", INT), ("link_count", INT), ("has_loops", INT),
        ("joint_names", TEXTS), ("tree_joint_names", TEXTS), ("joint_types", INTS), ("active", INTS), ("start_pose", DOUBLES),
        ("gravity_vector", DOUBLES), ("links", ctypes.POINTER(Link)),
        *((name, DOUBLES) for name in ("lower", "upper", "velocity", "acceleration", "jerk", "effort", "effort_rate",
                                       "commanded_effort_rate")),
        ("commanded", Effort), ("measured", Effort),
        ("payload_parameters", ctypes.CFUNCTYPE(None, ctypes.c_double, DOUBLES, DOUBLES, DOUBLES)),
        *((name, function_type(count)) for name, count in ARGUMENTS.items())]


class LoadedRobot:
    """Exported robot, loaded into this process."""

    def __init__(self, path: Path):
        self._library = ctypes.CDLL(str(path))
        self._library.rnea_robot.restype = ctypes.POINTER(RobotApi)
        self.api: RobotApi = self._library.rnea_robot().contents

    def call(self, function: str | Any, given: Sequence[Any], *sizes: int) -> list[np.ndarray]:
        """Return the outputs, of given sizes, of a function of the ABI; None stands for no payload."""
        arrays = [None if x is None else np.ascontiguousarray(x, dtype=float) for x in given]
        found = [np.full(size, np.nan) for size in sizes]
        code = getattr(self.api, function) if isinstance(function, str) else function
        code(*(None if x is None else x.ctypes.data_as(DOUBLES) for x in (*arrays, *found)))
        return found

    def payload(self, mass: float, com: Sequence[float], inertia: np.ndarray) -> np.ndarray:
        """Return the ten parameters of a payload."""
        found = np.zeros(10)
        given = [np.ascontiguousarray(x, dtype=float) for x in (com, inertia[np.triu_indices(3)])]
        self.api.payload_parameters(mass, *(x.ctypes.data_as(DOUBLES) for x in (*given, found)))
        return found


@pytest.fixture(scope="module", autouse=True)
def compiler():
    if not COMPILER:
        pytest.skip("no C compiler: the C ABI of exported robots is NOT tested here; install cc")


def exported(folder, *words) -> LoadedRobot:
    assert main(["export", *map(str, words), "-o", str(folder), "--shared"]) == 0
    (library,) = folder.glob("lib*.so")
    return LoadedRobot(library)


@pytest.fixture(scope="module")
def stanford(tmp_path_factory):
    urdf, file = (ROOT / "urdf" / f"stanford.{kind}" for kind in ("urdf", "robot.yaml"))
    return exported(tmp_path_factory.mktemp("stanford"), urdf, "--robot-file", file, "--payload", LINK, "--link", LINK,
                    "--link", "link3"), load(urdf, file)


def assert_same_bits(found, wanted) -> None:
    """Check that results are bit-identical where fused multiply-add is available, as in the Python kernels, otherwise up to
    rounding.
    """
    if FUSED:
        np.testing.assert_array_equal(found, np.ravel(wanted))
    else:
        np.testing.assert_allclose(found, np.ravel(wanted), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("carries", [False, True])
def test_functions_of_a_tree_match_the_python_library_bit_for_bit(stanford, carries, tmp_path):
    library, robot = stanford
    if carries:
        held = 1.5, (0.1, 0.0, 0.2), INERTIA
        robot, payload = robot.with_payload(LINK, *held), library.payload(*held)
    else:
        urdf, file = (ROOT / "urdf" / f"stanford.{kind}" for kind in ("urdf", "robot.yaml"))
        library, payload = exported(tmp_path, urdf, "--robot-file", file), None
    n = library.api.n
    for seed in range(5):
        q, qd, qdd, qddd = np.random.default_rng(seed).normal(size=(4, n))
        tau, rate, indicator = library.call("torque_and_rate", [q, qd, qdd, qddd, payload], n, n, 1)
        for found, wanted in zip((tau, rate), robot.torque_and_rate(q, qd, qdd, qddd), strict=True):
            assert_same_bits(found, wanted)
        assert indicator == [0.0]
        assert_same_bits(library.call("inverse_dynamics", [q, qd, qdd, payload], n)[0], robot.inverse_dynamics(q, qd, qdd))
        assert_same_bits(library.call("gravity", [q, payload], n)[0], robot.gravity(q))
        assert_same_bits(library.call("mass_matrix", [q, payload], n * n)[0], robot.mass_matrix(q))
        assert_same_bits(library.call("forward_dynamics", [q, qd, qdd, payload], n)[0], robot.forward_dynamics(q, qd, qdd))
        for found, wanted in zip(library.call("sensitivities", [q, qd, qdd, payload], *[n * n] * 3),
                                 robot.sensitivities(q, qd, qdd), strict=True):
            assert_same_bits(found, wanted)
        for found, wanted in zip(library.call("rate_sensitivities", [q, qd, qdd, qddd, payload], *[n * n] * 4),
                                 robot.rate_sensitivities(q, qd, qdd, qddd), strict=True):
            assert_same_bits(found, wanted)
        at = robot.dynamics(q, qd, qdd, qddd)
        for found, wanted in zip(library.call("gravity_and_rate", [q, qd, payload], n, n), (at.gravity, at.gravity_rate),
                                 strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-12)
        np.testing.assert_allclose(library.call("bias", [q, qd, payload], n)[0], robot.bias(q, qd), rtol=1e-13, atol=1e-12)


def test_null_payload_equals_a_payload_of_zeros(stanford):
    library, robot = stanford
    n = robot.n
    motion = np.random.default_rng(0).normal(size=(4, n))
    bare, zeros, carried = (library.call("torque_and_rate", [*motion, payload], n, n, 1)
                            for payload in (None, np.zeros(10), library.payload(2.0, (0.0, 0.1, 0.2), INERTIA)))
    np.testing.assert_array_equal(bare[:2], zeros[:2])
    np.testing.assert_allclose(bare[:2], robot.torque_and_rate(*motion), rtol=1e-12, atol=1e-12)
    assert np.abs(carried[0] - bare[0]).max() > 1.0


def test_link_poses_jacobians_and_jacobian_rates_match_the_library(stanford):
    library, robot = stanford
    q, qd = np.random.default_rng(1).normal(size=(2, library.api.n))
    links = library.api.links[:library.api.link_count]
    assert [link.name.decode() for link in links] == [LINK, "link3"]
    for link in links:
        name = link.name.decode()
        rotation, position = robot.link_pose(name, q)
        for found, wanted in ((*library.call(link.pose, [q], 9, 3),), (rotation, position)), (
                library.call(link.jacobian, [q], 36), [robot.jacobian(name, q)]), (
                library.call(link.jacobian_rate, [q, qd], 36), [robot.jacobian_rate(name, q, qd)]):
            for part, expected in zip(found, wanted, strict=True):
                np.testing.assert_allclose(part, np.ravel(expected), rtol=1e-13, atol=1e-14)


def test_api_struct_holds_names_limits_and_identity_of_the_robot(stanford):
    library, robot = stanford
    api, n = library.api, robot.n
    assert (api.abi, api.size, api.n, api.n_q, api.has_loops) == (1, ctypes.sizeof(RobotApi), n, n, 0)
    assert (api.robot_name.decode(), api.model_id.decode()) == (robot.name, robot.model_id)
    assert (api.payload_link.decode(), api.root_link.decode()) == (LINK, robot.links[0])
    assert api.exporter.decode().startswith("rnea_ros ")
    assert [name.decode() for name in api.joint_names[:n]] == list(robot.joint_names)
    assert [("revolute", "continuous", "prismatic")[kind] for kind in api.joint_types[:n]] == list(robot.joint_types)
    np.testing.assert_array_equal(api.gravity_vector[:3], robot.gravity_vector)
    assert np.isfinite(robot.limits.effort_rate).any()
    for name in shared_library.LIMITS:
        np.testing.assert_array_equal(getattr(api, name)[:n], getattr(robot.limits, name))
    assert not api.close_step and not api.tree_motion


def test_friction_and_effort_conventions_are_exported(tmp_path):
    urdf = ROOT / "urdf" / "rr.urdf"
    joints = load(urdf).joint_names
    file = tmp_path / "rr.robot.yaml"
    file.write_text("version: 1\ncommanded_effort: {contains: without_gravity, quantity: motor_torque}\n"
                    "measured_effort: {quantity: unknown}\n"
                    f"drives: {{{joints[0]}: {{gear_ratio: 50.0, rotor_inertia: 1.0e-4, efficiency: 1.0}}, "
                    f"{joints[1]}: {{gear_ratio: -20.0, rotor_inertia: 1.0e-4}}}}\n"
                    f"friction: {{{joints[0]}: {{coulomb: 1.5, viscous: 0.3, stribeck: 0.4, asymmetry: 0.1, offset: 0.2}}}}\n")
    library, robot = exported(tmp_path / "c", urdf, "--robot-file", file), load(urdf, file)
    convention = robot.tree.model.efforts.commanded
    assert (library.api.commanded.contains, library.api.commanded.quantity, library.api.measured.quantity) == (1, 1, 3)
    assert library.api.commanded.per_unit[:2] == list(convention.per_unit) and abs(convention.per_unit[0]) == 50.0
    assert not library.api.payload_link and not library.api.payload_parameters
    qd, qdd = np.random.default_rng(2).normal(size=(2, 2))
    assert np.abs(robot.friction(qd, qdd)[0]).max() > 0.1
    for found, wanted in zip(library.call("friction", [qd, qdd], 2, 2), robot.friction(qd, qdd), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)
    q = np.ones(2)
    for found, wanted in zip(library.call("torque_and_rate", [q, qd, qdd, qd, None], 2, 2, 1),
                             robot.torque_and_rate(q, qd, qdd, qd), strict=False):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("name", ["five_bar", "palletiser"])
def test_shared_library_closes_loops_step_by_step(tmp_path, name):
    urdf, file = (ROOT / "urdf" / f"{name}.{kind}" for kind in ("urdf", "robot.yaml"))
    library, robot = exported(tmp_path, urdf, "--robot-file", file), load(urdf, file)
    n, n_q = library.api.n, library.api.n_q
    assert (n, n_q, library.api.has_loops) == (robot.n, robot.tree.n, 1) and n < n_q
    assert [name.decode() for name in library.api.tree_joint_names[:n_q]] == list(robot.tree.joint_names)
    active = library.api.active[:n]
    assert [robot.tree.joint_names[k] for k in active] == list(robot.joint_names)
    pose = np.array(library.api.start_pose[:n_q])
    q = pose[active] + 0.1 * np.random.default_rng(0).normal(size=n)
    qd, qdd, qddd = np.random.default_rng(1).normal(size=(3, n))
    for step in range(8):
        pose[active] += (q - pose[active]) * min(1.0, (step + 1) / 4)
        pose, gap, indicator = library.call("close_step", [pose], n_q, 1, 1)
    assert gap < 1e-9 and indicator <= 1.0
    close = {"rtol": 1e-9, "atol": 1e-9}
    tau, rate, indicator = library.call("torque_and_rate", [pose, qd, qdd, qddd, None], n, n, 1)
    for found, wanted in zip((tau, rate), robot.torque_and_rate(q, qd, qdd, qddd), strict=True):
        np.testing.assert_allclose(found, wanted, **close)
    assert 0.0 < indicator <= 1.0
    np.testing.assert_allclose(library.call("inverse_dynamics", [pose, qd, qdd, None], n)[0],
                               robot.inverse_dynamics(q, qd, qdd), **close)
    np.testing.assert_allclose(library.call("gravity", [pose, None], n)[0], robot.gravity(q), **close)
    for found, wanted in zip(library.call("gravity_and_rate", [pose, qd, None], n, n), robot.gravity_and_rate(q, qd),
                             strict=True):
        np.testing.assert_allclose(found, wanted, **close)
    for found, wanted in zip(library.call("tree_motion", [pose, qd, qdd, qddd], *[n_q] * 3),
                             robot.motion(q, qd, qdd, qddd)[1:4], strict=True):
        np.testing.assert_allclose(found, wanted, **close)
    assert not library.api.mass_matrix and not library.api.friction


def test_robots_with_springs_are_exported_with_the_same_abi(tmp_path):
    urdf, file = ROOT / "urdf" / "stanford.urdf", tmp_path / "spring.robot.yaml"
    file.write_text("version: 1\nsprings: {joint2: {stiffness: 30.0, rest: 0.1}}\n")
    library, robot = exported(tmp_path / "c", urdf, "--robot-file", file), load(urdf, file)
    assert library.api.n == library.api.n_q == robot.n
    motion = np.random.default_rng(0).normal(size=(4, robot.n))
    for found, wanted in zip(library.call("torque_and_rate", [*motion, None], robot.n, robot.n, 1),
                             robot.torque_and_rate(*motion), strict=False):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_shared_library_exports_one_symbol(stanford):
    symbols = subprocess.run(["nm", "-D", "--defined-only", stanford[0]._library._name], check=True, capture_output=True,
                             text=True).stdout.split()
    assert [word for word in symbols if "robot" in word or "stanford" in word] == ["rnea_robot"]


def test_struct_layout_matches_the_python_binding(tmp_path):
    """Fields may only be appended: the binding in this file holds order and offsets of version 1."""
    structs = {"rnea_effort": Effort, "rnea_link": Link, "rnea_robot_api": RobotApi}
    lines = [f'printf("%s %zu\\n", "{struct}.{field[0]}", offsetof({struct}, {field[0]}));'
             for struct, kind in structs.items() for field in kind._fields_]
    lines += [f'printf("{struct} %zu\\n", sizeof({struct}));' for struct in structs]
    program = ["#include <stdio.h>", "#include <stddef.h>", '#include "rnea_robot_api.h"', "int main(void)", "{", *lines,
               "return 0;", "}", ""]
    (tmp_path / "layout.c").write_text("\n".join(program))
    subprocess.run([COMPILER, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{TEMPLATES}", "-o", "layout",
                    "layout.c"], cwd=tmp_path, check=True)
    printed = dict(line.rsplit(" ", 1) for line in subprocess.run([tmp_path / "layout"], check=True, capture_output=True,
                                                                  text=True).stdout.splitlines())
    wanted = {f"{struct}.{field[0]}": getattr(kind, field[0]).offset for struct, kind in structs.items()
              for field in kind._fields_}
    wanted |= {struct: ctypes.sizeof(kind) for struct, kind in structs.items()}
    assert {key: int(value) for key, value in printed.items()} == wanted
    assert set(ARGUMENTS) == set(shared_library.SLOTS)


def test_controllers_use_the_same_abi_header():
    copy = ROOT / "rnea_controllers" / "include" / "rnea_controllers" / shared_library.HEADER
    assert copy.read_bytes() == (TEMPLATES / shared_library.HEADER).read_bytes()


def test_shared_library_source_compiles_without_warnings(stanford):
    folder = Path(stanford[0]._library._name).parent
    subprocess.run([COMPILER, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", "-Iinclude", "-fsyntax-only",
                    "src/stanford_api.c"], cwd=folder, check=True)


def test_robot_names_that_equal_identifiers_of_the_source_are_allowed(tmp_path):
    for name in ("api", "abi", "rnea_robot", "links"):
        library = exported(tmp_path / name, ROOT / "urdf" / "pr.urdf", "--name", name)
        assert library.api.n == 2


def test_unsupported_robots_are_rejected_before_files_are_written(tmp_path, capsys):
    for urdf, more, reason in (("hua_arm.urdf", ["--robot-file", str(ROOT / "urdf" / "hua_arm.robot.yaml")], "qdddd"),
                               ("stanford.urdf", ["--base", "floating"], "base")):
        folder = tmp_path / urdf
        assert main(["export", str(ROOT / "urdf" / urdf), *more, "-o", str(folder), "--shared"]) == 2
        printed = capsys.readouterr().err
        assert "shared libraries are for trees and loops on a held base" in printed and reason in printed
        assert not list(folder.glob("*"))
    assert main(["export", str(ROOT / "urdf" / "pr.urdf"), "-o", str(tmp_path / "x"), "--portable"]) == 2
    assert "give --shared or --casadi as well" in capsys.readouterr().err


def test_missing_compiler_error_names_the_remedy(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(shared_library.c_compiler, "compiler", lambda: "")
    assert main(["export", str(ROOT / "urdf" / "pr.urdf"), "-o", str(tmp_path / "x"), "--shared"]) == 2
    assert "install cc, gcc or clang" in capsys.readouterr().err


def test_functions_that_are_not_exported_are_null_pointers(tmp_path):
    library = exported(tmp_path, ROOT / "urdf" / "pr.urdf", "--only", "gravity")
    assert library.api.gravity and not library.api.torque_and_rate and not library.api.bias
    assert c_library.identifier("A robot") == "a_robot"

"""Kernels by the system's C compiler: equal results, and fallbacks without llvmlite or compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import InputError, Robot
from rnea_ros.cli.main import main
from rnea_ros.codegen import c_compiler
from support.robot_kinds import MAKERS, motion_of

ROOT = Path(__file__).resolve().parents[2]
URDF, LINK = ROOT / "urdf" / "rr.urdf", "link2"
FUSED = "fma" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
ASK = """
import sys, warnings
sys.modules["llvmlite"] = None
warnings.simplefilter("error")
import numpy as np
from rnea_ros import load
from rnea_ros.codegen import cache
from rnea_ros.trajectory.path_dynamics import PathDynamics
robot = load(*sys.argv[1:])
x = np.array([0.1, 0.2, 0.3, 0.4])[:, None] + np.linspace(0.0, 0.2, robot.n)
x[0] += robot.home_motion[0]
print(robot.tree.backend, *np.concatenate(robot.torque_and_rate(*x)).tolist())
robot.dynamics(*x), robot.forward_dynamics(*x[:3]), robot.sensitivities(*x[:3]), robot.mass_matrix(x[0])
if hasattr(robot, "with_payload") and len(sys.argv) == 2:
    PathDynamics(robot).compile()
    robot.with_payload("link2", 0.5).dynamics(*x)
print(cache.counts["compiled"], "compiled")
"""


def run_without_llvmlite(folder: Path | str, tools: str, *robot: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run a program in a process without llvmlite; tools: folder of executables."""
    given = {**os.environ, "PATH": tools, "RNEA_ROS_CACHE": str(folder), "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, "-c", ASK, *map(str, robot)], capture_output=True, text=True, timeout=240,
                          env=given, check=False)


def compile_ahead(*arguments: Path | str) -> str:
    """Return the output of `rnea compile`."""
    done = subprocess.run([sys.executable, "-m", "rnea_ros.cli.main", "compile", *map(str, arguments)], capture_output=True,
                          text=True, timeout=240, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["Robot", "moving base", "springs", "elastic joints", "loops", "platform"])
def test_c_kernels_equal_llvm_kernels(kind):
    pytest.importorskip("llvmlite")
    found = []
    for backend in ("c", "llvm"):
        case = MAKERS[kind](backend)
        motion = motion_of(case)
        found.append((case.robot.torque_and_rate(*motion, **case.state), case.robot.mass_matrix(motion[0], **case.state)))
    slack = 0.0 if FUSED and kind == "Robot" else 1e-11
    for a, b in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_allclose(a, b, rtol=slack, atol=slack)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-11, atol=1e-12)


def test_c_kernels_support_many_samples_and_reject_nan():
    robot, same = (Robot.from_urdf(URDF, backend=backend) for backend in ("c", "python"))
    x = np.random.default_rng(0).normal(size=(4, 300, 2))
    np.testing.assert_allclose(robot.torque_and_rate(*x), same.torque_and_rate(*x), rtol=1e-9, atol=1e-9)
    assert robot.kernel().address
    with pytest.raises(InputError, match="must be a finite number"):
        robot.torque_and_rate(np.full(2, np.nan), *x[1:, 0])


@pytest.mark.parametrize("portable", [False, True])
def test_precompiled_kernels_are_used_without_compiler_and_llvm(tmp_path, portable):
    kernels, nothing = tmp_path / "kernels", tmp_path / "bin"
    nothing.mkdir()
    said = compile_ahead(URDF, "-o", kernels, "--payload", LINK, *(["--portable"] if portable else []))
    assert f"compiled for {'any' if portable else 'this'} processor" in said
    done = run_without_llvmlite(kernels, str(nothing), URDF)
    assert done.returncode == 0, done.stderr
    (backend, *numbers), last = (line.split() for line in done.stdout.splitlines())
    assert backend == "c" and last == ["0", "compiled"]
    x = np.linspace(0.1, 0.4, 4)[:, None] + np.linspace(0.0, 0.2, 2)
    wanted = np.concatenate(Robot.from_urdf(URDF, backend="python").torque_and_rate(*x))
    np.testing.assert_allclose([float(number) for number in numbers], wanted, rtol=1e-9, atol=1e-9)


def test_precompiled_loops_are_used_without_a_compiler(tmp_path):
    loops = ROOT / "urdf" / "five_bar.urdf", ROOT / "urdf" / "five_bar.robot.yaml"
    (nothing := tmp_path / "bin").mkdir()
    compile_ahead(loops[0], "--robot-file", loops[1], "-o", tmp_path / "kernels")
    done = run_without_llvmlite(tmp_path / "kernels", str(nothing), *loops)
    assert done.returncode == 0 and "0 compiled" in done.stdout, done.stdout + done.stderr


def test_python_is_used_and_reported_without_llvm_and_compiler(tmp_path):
    (nothing := tmp_path / "bin").mkdir()
    for folder in ("", tmp_path / "empty"):
        done = run_without_llvmlite(folder, str(nothing), URDF)
        assert done.returncode != 0 and "kernels run as Python" in done.stderr  # warnings are errors there
        assert "rnea compile" in done.stderr


def test_python_backend_is_used_when_the_compiler_fails(tmp_path, monkeypatch):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho no licence >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    monkeypatch.setenv("RNEA_ROS_CACHE", "")
    robot = Robot.from_urdf(URDF, backend="c")
    with pytest.warns(RuntimeWarning, match="no licence"):
        tau, _ = robot.torque_and_rate(*np.zeros((4, 2)))
    np.testing.assert_allclose(tau, Robot.from_urdf(URDF, backend="python").gravity(np.zeros(2)), atol=1e-12)


def test_compile_command_fails_without_cache_folder_or_compiler(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RNEA_ROS_CACHE", "")
    assert main(["compile", str(URDF)]) == 2
    assert "RNEA_ROS_CACHE is empty" in capsys.readouterr().err
    monkeypatch.setattr(c_compiler, "compiler", lambda: "")
    monkeypatch.setenv("RNEA_ROS_CACHE", str(tmp_path))
    assert main(["compile", str(URDF)]) == 2
    assert "no C compiler found" in capsys.readouterr().err

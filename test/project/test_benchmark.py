"""Benchmark suite: alternating measurements, goals, and committed results."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pinocchio")
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmark"))

import cases
import goals
import pinocchio as pin
import timing
import toolchain

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmark"
RESULTS = BENCHMARK / "results.md"


@pytest.mark.parametrize("name", ["controllers", "gait", "instants", "planning", "recordings", "saturation", "scaling",
                                  "ticks", "wakeups"])
def test_benchmarks_measure_the_source_tree(tmp_path, name):
    """Benchmarks run from any folder, with the source beside them."""
    (tmp_path / "rnea_ros.py").write_text("raise ImportError('not the source')")
    program = f"import sys; sys.path.insert(0, {str(BENCHMARK)!r}); import {name}, rnea_ros; print(rnea_ros.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True,
                          timeout=240)
    if "No module named" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert Path(done.stdout.strip()) == BENCHMARK.parent / "rnea_ros" / "__init__.py", done.stderr


def test_compared_functions_alternate_and_their_ratio_is_measured():
    order = []

    def side(name, seconds):
        def loop(count):
            order.append(name)
            time.sleep(count * seconds)
            return count * seconds

        return loop

    found = timing.interleaved({"quick": side("quick", 1e-4), "slow": side("slow", 3e-4)}, rounds=5, turn=1e-3)
    assert order[-10:] == ["quick", "slow"] * 5
    assert found["slow"].over(found["quick"]) == pytest.approx(3.0)
    assert found["slow"].per(3.0).middle == pytest.approx(1e-4)


def test_goal_is_met_only_by_a_measured_value():
    assert goals.Goal("x", 0.3, 0.3).met and not goals.Goal("x", 0.3, 0.31).met
    assert goals.Goal("x", 1.8, 1.9, at_least=True).met and not goals.Goal("x", 1.8, 1.7, at_least=True).met
    for missing in (None, float("nan")):
        assert not goals.Goal("x", 1.0, missing).met and "**not met**" in goals.Goal("x", 1.0, missing).row()


def test_missing_compiler_is_reported(monkeypatch):
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    with pytest.raises(toolchain.Missing, match=r"no g\+\+"):
        toolchain.library("loops")


def test_rnea_ros_and_pinocchio_are_compared_at_the_same_motion():
    """Robots are a benchmark chain, and one with a mimic joint and a different joint order."""
    for case in (cases.Case("chain", cases.chain(7)), cases.Case("panda", cases.path("panda"))):
        q, v, a, _ = np.split(case.pinocchio[3], np.cumsum([case.model.nq, case.model.nv, case.model.nv]))
        theirs = pin.rnea(case.model, case.data, q, v, a) @ case.fold
        np.testing.assert_allclose(case.robot.inverse_dynamics(*case.motion[:3, 3]), theirs, rtol=1e-9, atol=1e-9)


def test_benchmark_results_contain_every_goal_and_picture():
    text = RESULTS.read_text()
    for number in range(1, 7):
        assert re.search(rf"^\| {number}\. ", text, flags=re.MULTILINE), f"goal {number}"
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (RESULTS.parent / picture).stat().st_size > 10_000
    assert "not measured" not in text and "/work" not in text and "with changes" not in text

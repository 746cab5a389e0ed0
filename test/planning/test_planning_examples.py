"""Short runs of the planning examples reproduce the numbers of the thesis."""

from __future__ import annotations

import sys

import pytest

from support.planning_cases import ROOT, RR_OPTIMUM

pytest.importorskip("matplotlib")
sys.path.insert(0, str(ROOT / "examples"))


def run(tmp_path, name: str) -> dict[str, float]:
    found = __import__(name).main(tmp_path, small=True)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return found


def test_minimum_time_example_reproduces_the_optimal_switching_times(tmp_path):
    found = run(tmp_path, "minimum_time_rr")
    assert 0.0 < found["T / optimum - 1"] < 1e-3
    switches = {name: value for name, value in found.items() if "switches" in name}
    assert list(switches.values()) == pytest.approx([0.19593, 0.04571, 0.23530], abs=1e-3)
    assert (found["sign of torque 1 at the start"], found["sign of torque 2 at the start"]) == (1.0, -1.0)


def test_time_effort_example_reproduces_the_durations_of_the_thesis(tmp_path):
    found = run(tmp_path, "time_effort_pr")
    assert found["T"] == pytest.approx(0.58579, abs=1e-4) and found["cost"] == pytest.approx(0.77324, abs=1e-4)
    example = __import__("time_effort_pr")
    robot = example.Robot.from_urdf(example.URDF)
    assert example.without_ends(robot, 6, 12).duration == pytest.approx(0.5590, abs=1e-4)
    assert example.planned(robot, found_u(example, robot)).duration == pytest.approx(example.THESIS, abs=1e-4)


def found_u(example, robot) -> float:
    """Return the effort weight that gives the thesis's duration, by the secant method."""
    a, b = 0.008, 0.0084
    for _ in range(2):
        at_a, at_b = (example.planned(robot, u).duration for u in (a, b))
        a, b = b, b + (example.THESIS - at_b) * (b - a) / (at_b - at_a)
    assert b == pytest.approx(0.0082, abs=1e-4)
    return b


def test_torque_rate_example_shows_longer_durations_with_tighter_limits(tmp_path):
    found = run(tmp_path, "torque_rate_price")
    assert found["T at 200 N m/s"] > found["T at 500 N m/s"] > RR_OPTIMUM
    assert 0.999 < found["largest rate / limit"] < 1.0 + 1e-6 and found["largest torque / limit"] < 1.0 + 1e-6

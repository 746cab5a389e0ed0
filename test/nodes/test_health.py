"""Diagnostics and log lines of dynamics_node over time, with a simulated clock."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus

from rnea_ros import Robot
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.diagnostics import REPEAT_PERIOD_S, NodeState
from rnea_ros.nodes.dynamics.health import Health, Watchdog
from support.node_bench import ARM

TICK = 0.1  # s


class SimulatedHealth:
    """Health monitor on a simulated clock, updated every 0.1 s, with its log lines: (s, severity, text)."""

    def __init__(self, monkeypatch):
        self.now, self.log, self.reports = 100.0, [], []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "monotonic_ns", lambda: round(self.now * 1e9))
        self.health = Health("/dynamics_node")
        self.health.is_active = True
        logger = SimpleNamespace(**{severity: lambda text, severity=severity: self.log.append((self.now, severity, text))
                                    for severity in ("info", "warning")})
        clock = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=round(self.now * 1e9), to_msg=Time))
        node = SimpleNamespace(get_logger=lambda: logger, get_clock=lambda: clock)
        publisher = SimpleNamespace(publish=self.reports.append)
        self.watchdog = Watchdog(node, publisher, self.health, lambda state: [f"hint for {state.name}"])

    def run(self, seconds, meanwhile=lambda: None):
        """Advance the clock; return the log lines of this time span, with times from its start [s]."""
        began, logged = self.now, len(self.log)
        while self.now < began + seconds:
            meanwhile()
            self.watchdog.check(timeout=0.5, period=1.0)
            self.now += TICK
        return [(when - began, severity, text) for when, severity, text in self.log[logged:]]


@pytest.fixture
def bench(monkeypatch):
    return SimulatedHealth(monkeypatch)


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(ARM, backend="python")


def test_reason_for_missing_results_is_logged_within_two_seconds(bench, robot):
    bench.health.set_model(robot)
    missing = Rejected("joint_missing", "no message names slide", passing=True)
    log = bench.run(9.0, lambda: bench.health.states.drop(missing))
    sentence = "waiting for joint states; last one dropped: joint_missing: no message names slide"
    assert [(severity, text) for _, severity, text in log] == [
        ("info", f"WAITING_MODEL -> WAITING_STATE: {sentence}"), ("warning", f"{sentence}; hint for WAITING_STATE")]
    assert log[1][0] < 2.0
    log = bench.run(3.0, lambda: bench.health.states.drop(Rejected("other_joints", "none of this robot's", passing=True)))
    assert log[0][0] < 2.0 and "none of this robot's" in log[0][2]  # a different reason is logged without delay


def test_fault_is_logged_immediately_and_then_periodically(bench, robot):
    bench.health.set_model(robot)
    bench.run(1.0)
    log = bench.run(3.5 * REPEAT_PERIOD_S, lambda: bench.health.states.drop(Rejected("wrong_size", "position has 2 entries")))
    faults = [when for when, _, text in log if text == "joint_states rejected, wrong_size: position has 2 entries"]
    assert faults == pytest.approx(REPEAT_PERIOD_S * np.arange(4), abs=5 * TICK)


def test_waiting_for_a_description_causes_a_warning_and_model_preparation_does_not(bench):
    bench.health.preparing = True
    assert {severity for _, severity, _ in bench.run(5.0)} == {"info"}
    bench.health.preparing = False
    log = bench.run(3.05)
    assert [text for _, severity, text in log if severity == "warning"][-1].endswith("hint for WAITING_MODEL")


def test_state_is_stale_without_results_and_active_after_the_next_one(bench, robot):
    bench.health.set_model(robot)

    def done():
        bench.health.done(round(bench.now * 1e9))

    bench.run(1.0, done)
    assert bench.run(1.0)[0][2].startswith("ACTIVE -> STALE: nothing computed for 0.")
    assert bench.reports[-1].status[0].level == bench.reports[-1].status[0].ERROR
    assert bench.run(1.0, done)[0][2] == "STALE -> ACTIVE: computing"
    assert bench.health.state(0.5)[0] is NodeState.ACTIVE


def test_massless_model_is_reported_with_a_warning(bench):
    massless = Robot.from_urdf(re.sub(r"<inertial>.*?</inertial>", "", ARM, flags=re.DOTALL), backend="python")
    bench.health.set_model(massless)
    bench.run(2.0, lambda: bench.health.done(time.monotonic_ns()))
    (status,) = bench.reports[-1].status
    assert status.level == DiagnosticStatus.WARN and "no moving link has a mass" in status.message

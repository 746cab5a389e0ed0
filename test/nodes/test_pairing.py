"""Pairing of inputs with joint states by stamp, without a node: interpolation, tolerance, and the bounded wait."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time

from rnea_msgs.msg import JointMotion
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common import pairing
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.pairing import InputPairing, PairedInput, extrapolated, interpolated
from rnea_ros.nodes.dynamics.motion_source import DesiredReader

MS = 1_000_000


def rows_of(polynomial, t, count):
    return np.array([polynomial.deriv(k)(t) if k else polynomial(t) for k in range(count)])[:, None] * [1.0, -2.0]


@pytest.mark.parametrize("count", [1, 2, 4, 6])
def test_polynomial_between_two_messages_is_interpolated_exactly(count):
    """Each row has the highest degree that two messages determine."""
    rng = np.random.default_rng(count)
    p = np.polynomial.Polynomial(rng.normal(size=4 if count > 1 else 2))
    if count == 2:
        p = np.polynomial.Polynomial(rng.normal(size=4))
    first, second = (rows_of(p, t, count) for t in (0.3, 0.35))
    np.testing.assert_allclose(interpolated(first, second, 0.05, 0.02), rows_of(p, 0.32, count), rtol=1e-9, atol=1e-9)
    if count > 3:
        np.testing.assert_allclose(extrapolated(first, 0.02), rows_of(p, 0.32, count), rtol=1e-12, atol=1e-12)


def desired(t, w=(7.0, 5.0)):
    """Acceleration and jerk of sines."""
    w = np.array(w)
    return -np.sin(w * t) * w**2, -np.cos(w * t) * w**3


def read(reader, t):
    acceleration, jerk = desired(t)
    nanoseconds = round((100.0 + t) * 1e9)
    reader.read(JointMotion(header=_header(nanoseconds), joint_names=["a", "b"], acceleration=acceleration, jerk=jerk))
    return nanoseconds


def _header(nanoseconds):
    from std_msgs.msg import Header

    return Header(stamp=Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9))


def test_desired_motion_is_evaluated_at_the_stamp_of_the_state():
    reader = DesiredReader(["a", "b"])
    stamps = [read(reader, t) for t in np.arange(0.0, 0.1, 0.01)]
    for t in (0.03, 0.034, 0.0871):
        found, (acceleration, jerk) = reader.at(round((100.0 + t) * 1e9), 0.001, 0.1), desired(t)
        np.testing.assert_allclose(found[0], acceleration, rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(found[1], jerk, rtol=1e-3, atol=5e-2)
    late = reader.at(stamps[-1] + 5 * MS, 0.02)
    np.testing.assert_allclose(late[0], desired(0.095)[0], rtol=1e-2)
    with pytest.raises(Rejected, match=r"is 0.080 s older than the joint state; input_tolerance is 0.02 s") as refused:
        reader.at(stamps[-1] + 80 * MS, 0.02)
    assert refused.value.reason == "desired_motion_late" and "input_wait, of about 0.16 s" in refused.value.detail
    assert reader.at(stamps[-1] + 80 * MS, 0.1, 1.0) is not None
    for seconds, reason in ((0.08, "desired_motion_missing"), (80.0, "desired_motion_apart")):
        with pytest.raises(Rejected) as refused:
            reader.at(stamps[0] - round(seconds * 1e9), 0.02)
        assert refused.value.reason == reason
    with pytest.raises(Rejected, match=r"is 0\.004 s older"):  # neighbours too far apart to interpolate
        reader.at(stamps[3] + 4 * MS, 0.001, 0.005)


class PairingHarness:
    """Pairing with a clock and messages set by the test; a joint state is represented by its stamp."""

    def __init__(self, monkeypatch, wait_s=0.05):
        self.now, self.evaluated, self.stream = 1_000 * MS, [], Stream("base_state")
        monkeypatch.setattr(pairing.time, "monotonic_ns", lambda: self.now)
        timer = SimpleNamespace(cancel=lambda: None, reset=lambda: None)
        node = SimpleNamespace(create_timer=lambda *args, **options: timer)
        self.pairing = InputPairing(node, lambda data, info, arrival: self.evaluated.append(self.stamp_of(data)))
        self.pairing.inputs, self.pairing.wait_s = [PairedInput("~/base_state", self.stream, lambda: 0.1)], wait_s

    @staticmethod
    def stamp_of(data):
        seconds, nanoseconds = struct.unpack_from("<4xiI", data)
        return seconds * 1000 + nanoseconds // MS

    def state(self, stamp_ms):
        self.pairing.on_state(struct.pack("<4xiI", stamp_ms // 1000, stamp_ms % 1000 * MS), {})

    def base(self, stamp_ms):
        self.stream.accept(self.now, stamp_ms * MS)
        self.pairing.release()

    def after(self, milliseconds):
        """Advance the clock while the process runs: the timer checks every millisecond."""
        for _ in range(milliseconds):
            self.now += MS
            self.pairing.release()


def test_states_wait_for_a_late_input_and_are_evaluated_in_order(monkeypatch):
    harness = PairingHarness(monkeypatch)
    harness.base(100)
    harness.state(100)
    for stamp in (110, 120, 130):
        harness.state(stamp)
    assert harness.evaluated == [100]
    harness.base(120)
    assert harness.evaluated == [100, 110, 120]
    harness.base(130)
    assert harness.evaluated == [100, 110, 120, 130] and (harness.pairing.waited, harness.pairing.expired) == (3, 0)


def test_wait_for_a_late_input_is_bounded_and_counted(monkeypatch):
    harness = PairingHarness(monkeypatch)
    harness.base(100)
    harness.state(110)
    harness.after(49)
    assert not harness.evaluated
    harness.after(1)
    assert harness.evaluated == [110] and harness.pairing.expired == 1
    assert harness.pairing.ages(110 * MS) == [pytest.approx(0.01)]


@pytest.mark.parametrize("why", ["silent", "far behind", "not used", "no wait"])
def test_states_do_not_wait_for_an_input_that_cannot_arrive_in_time(monkeypatch, why):
    harness = PairingHarness(monkeypatch, 0.0 if why == "no wait" else 0.05)
    harness.base(100)
    if why == "silent":
        harness.after(101)
    if why == "not used":
        harness.pairing.inputs = [harness.pairing.inputs[0]._replace(used=lambda: False)]
    harness.state(200 if why == "far behind" else 110)
    assert len(harness.evaluated) == 1 and not harness.pairing.waited


def test_wait_excludes_time_in_which_the_process_was_suspended(monkeypatch):
    """Inputs that arrived during the suspension are still in the queues."""
    harness = PairingHarness(monkeypatch)
    harness.base(100)
    harness.state(110)
    harness.after(40)
    harness.now += 500 * MS
    harness.pairing.release()
    harness.state(120)
    assert not harness.evaluated
    harness.base(105)
    harness.base(110)
    assert harness.evaluated == [110] and harness.pairing.expired == 0
    harness.after(49)
    assert harness.evaluated == [110]
    harness.after(1)
    assert harness.evaluated == [110, 120] and harness.pairing.expired == 1


@pytest.mark.parametrize("period", [5, 20, 30])
def test_every_state_waits_for_inputs_that_are_late_by_less_than_input_wait(monkeypatch, period):
    """Inputs 80 ms after their stamps: when a state is evaluated, one is within 10 ms before its stamp, or after it."""
    harness = PairingHarness(monkeypatch, 0.1)
    missing = []
    harness.pairing._evaluate = lambda data, info, arrival: missing.append(
        max(harness.stamp_of(data) - harness.stream.stamp // MS, 0))
    for stamp in range(1000, 2000):
        if stamp % period == 0 and stamp >= 1080:
            harness.base(stamp - 80)
        if stamp % 5 == 0:
            harness.state(stamp)
        harness.after(1)
    begin = 80 // 5 + 1  # states before the first input
    assert len(missing) > 170 and max(missing[begin:]) <= 10


def test_states_do_not_wait_for_a_slow_input_whose_next_message_is_due_too_late(monkeypatch):
    harness = PairingHarness(monkeypatch)
    harness.base(100)
    harness.after(90)
    harness.base(190)
    harness.state(220)
    assert harness.evaluated == [220] and not harness.pairing.waited
    harness.after(50)
    harness.state(240)
    assert harness.evaluated == [220]
    harness.after(40)
    harness.base(280)
    assert harness.evaluated == [220, 240] and harness.pairing.expired == 0


def test_number_of_held_states_is_bounded(monkeypatch):
    harness = PairingHarness(monkeypatch)
    harness.base(100)
    for _ in range(pairing.MAX_HELD + 5):
        harness.state(101)
    assert len(harness.evaluated) == 5
    harness.pairing.clear()
    harness.after(1000)
    assert len(harness.evaluated) == 5

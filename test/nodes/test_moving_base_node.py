"""dynamics_node with a moving base, as a separate process over DDS: Pinocchio's free-flyer, and invalid base states."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from geometry_msgs.msg import WrenchStamped

from support.oracles import worst
from support.ros_helpers import ros_domain, stamp
from support.ship_bench import Ship, ShipBench, base_at, numbers, of_stamp

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES = 40


@pytest.fixture(scope="module")
def ship():
    return Ship()


def test_torques_and_base_wrench_on_a_moving_ship_match_pinocchio(ship, tmp_path):
    with ros_domain(tmp_path) as ros:
        bench = ShipBench(ros, ship, tmp_path)
        wrenches = ros.listen(WrenchStamped, f"{bench.node}/base_wrench")
        bench.prepared()
        bench.refused("base_state_missing")
        ros.until(bench.base.get_subscription_count)
        ros.until(lambda: bench.met() and wrenches, of=bench.process)
        errors = []
        for t in np.linspace(0.0, 3.0, SAMPLES):
            found, forces, rates = bench.at(t), ship.forces(t), ship.rates(t)
            whole, wrench = (of_stamp(ros, received, found.header.stamp) for received in (bench.reported, wrenches))
            assert whole.header.frame_id == wrench.header.frame_id == ship.robot.tree.root_link
            assert whole.wrench == wrench.wrench
            errors.append([worst(found.effort, forces[6:]), worst(found.effort_rate, rates[6:]),
                           worst(numbers(whole.wrench), forces[:6]), worst(numbers(whole.wrench_rate), rates[:6])])
            held = ship.robot.gravity(ship.joints(t)[0], base=base_at(t)[0])[6:]
            assert worst(found.gravity_effort, held) < 1e-10  # which follows the tilt
        print(f"largest errors of torque, rate, base wrench and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        info, values = bench.info[-1], bench.diagnostics.next()
        assert info.base == "floating" and values["kind"] == info.kind and info.kind.startswith("tree on a ")
        assert int(values["base_state.received"]) >= SAMPLES


def test_invalid_base_states_are_counted_and_late_ones_reject_the_joint_state(ship, tmp_path):
    with ros_domain(tmp_path) as ros:
        bench = ShipBench(ros, ship, tmp_path, **{"base.timeout": 0.5})
        bench.prepared()
        ros.until(bench.met, of=bench.process)
        assert bench.at(0.1)
        for reason, spoil in (("base_state_unusable", lambda m: setattr(m.state.jerk.angular, "y", math.nan)),
                              ("base_state_unusable", lambda m: setattr(m.state.pose.orientation, "w", 7.0)),
                              ("stamp_went_back", lambda m: setattr(m.header, "stamp", stamp(3.0)))):
            before = int(bench.diagnostics.values.get(f"dropped.base_state.{reason}", 0))
            bad = bench.message(0.1, bench.clock)
            spoil(bad)

            def dropped(reason=reason, before=before, bad=bad):
                bench.base.publish(bad)
                return bench.diagnostics.dropped("base_state", reason) > before

            ros.until(dropped, of=bench.process)
            assert bench.process.alive
        assert bench.at(0.15)
        bench.refused("base_state_timeout")
        assert bench.at(0.2)
        assert not ros.set(bench.node, input_wait=0.5, input_tolerance=0.0)  # what comes later yet is no answer
        for t in (0.25, 0.26, 0.27):  # each base state comes after the joint state that needs it, which waits for it

            def answered(t=t):
                bench.base.publish(ship.state(t, bench.tick()))  # base states arrive: the next one is waited for
                ros.spin(0.02)
                when = bench.publish(ship.joints(t))
                ros.spin(0.05)
                bench.base.publish(ship.state(t, when.sec + when.nanosec * 1e-9))
                return bench.answer(when, timeout=2.0)  # None where the machine took longer than the wait, or lost a message

            found = ros.until(answered, of=bench.process)
            ages = dict(zip(found.input_names, found.input_age))
            assert worst(found.effort, ship.forces(t)[6:]) < 1e-8 and ages["~/base_state"] == 0.0
            assert worst(found.effort_rate, ship.rates(t)[6:]) < 1e-8
        assert int(bench.diagnostics.next()["inputs.states_waited"]) >= 3

"""Closed loops on a moving base in dynamics_node, as a separate process over DDS, against Pinocchio's free-flyer."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("nav_msgs")
pytest.importorskip("pinocchio")

from support.oracles import worst
from support.ros_helpers import ros_domain
from support.ship_bench import FiveBarOnShip, ShipBench, numbers

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES = 30


def test_torques_of_a_five_bar_on_a_ship_match_pinocchio(tmp_path):
    ship = FiveBarOnShip()
    ship.bar.content = ship.file_content()
    with ros_domain(tmp_path) as ros:
        bench = ShipBench(ros, ship, tmp_path, robot_description=ship.bar.urdf, robot_file=ship.bar.file(tmp_path))
        bench.prepared()
        ros.until(bench.base.get_subscription_count)
        ros.until(bench.met, of=bench.process)
        errors = []
        for t in np.linspace(0.0, 2.0, SAMPLES):
            found, whole = bench.reported_at(t, lambda reported, sent: reported == sent)
            forces, rates = ship.forces(t), ship.rates(t)
            errors.append([worst(found.effort, forces[6:]), worst(found.effort_rate, rates[6:]),
                           worst(numbers(whole.wrench), forces[:6]), worst(numbers(whole.wrench_rate), rates[:6])])
        print(f"largest errors of torque, rate, base wrench and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        info, values = bench.info[-1], bench.diagnostics.next()
        assert info.base == "floating" and "loops" in info.kind
        assert set(info.solved_joints) == {"left_elbow", "right_elbow"} and int(values["loops.followed"]) >= SAMPLES

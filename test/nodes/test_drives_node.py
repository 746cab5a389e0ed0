"""Drive utilization in dynamics_node, as a separate process over DDS, against the formulas of the data sheet."""

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from support.node_bench import ARM, NAMES, Bench
from support.ros_helpers import ros_domain

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

FILE = """
version: 1
drives:
  turn: {gear_ratio: 100.0, torque_constant: 0.1, resistance: 0.5, inductance: 2.5e-3, supply_voltage: 48.0, max_current: 20.0,
         continuous_current: 0.1, thermal_time_constant: 30.0}
  slide: {speed_torque_curve: [[0.0, 60.0], [2.0, 50.0], [3.0, 0.0]]}
supplies:
  rail: {max_power: 5.0, max_braking_power: 1.0}
"""


def test_published_drive_utilization_matches_the_data_sheet_formulas(tmp_path):
    (tmp_path / "arm.robot.yaml").write_text(FILE)
    rng = np.random.default_rng(7)
    with ros_domain(tmp_path) as ros:
        bench = Bench(ros, robot_description=ARM, robot_file=str(tmp_path / "arm.robot.yaml")).ready()
        info = bench.info[-1]
        assert [drive.joint for drive in info.drives] == ["turn", "slide"] and info.velocity_limit[0] == 3.0
        turn, slide = info.drives
        assert (turn.gear_ratio, turn.back_emf_constant, turn.supply_voltage) == (100.0, 0.1, 48.0)
        assert np.isnan(turn.max_power)
        assert sorted(zip(slide.speed_torque_velocity, slide.speed_torque_effort))[0] == (-3.0, 0.0)
        assert [(supply.name, list(supply.joints)) for supply in info.supplies] == [("rail", NAMES)]
        for _ in range(10):
            found = bench.send(rng.uniform(-1.0, 1.0, (4, 3)) * [[1.0], [2.0], [5.0], [50.0]])
            tau, rate, qd = (np.array(getattr(found, name)) for name in ("effort", "effort_rate", "velocity"))
            current = tau[0] / 10.0
            voltage = 0.5 * current + 2.5e-4 * rate[0] + 10.0 * qd[0]
            np.testing.assert_allclose((found.current[0], found.voltage[0], found.motor_velocity[0]),
                                       (current, voltage, 100.0 * qd[0]), rtol=1e-12)
            assert found.voltage_utilization[0] == pytest.approx(abs(voltage) / 48.0)
            assert found.speed_torque_utilization[2] == pytest.approx(
                max((abs(tau[2]) + 5.0 * abs(qd[2])) / 60.0, abs(qd[2]) / 3.0 + abs(tau[2]) / 150.0))
            assert found.velocity_utilization[0] == pytest.approx(abs(qd[0]) / 3.0) and np.isnan(found.current[1])
            power = tau @ qd
            assert found.supply_power[0] == pytest.approx(power)
            assert found.supply_utilization[0] == pytest.approx(max(power / 5.0, -power))
            assert found.thermal_load[0] > 0.0 and np.isnan(found.thermal_load[2])
        values = ros.until(lambda: bench.send(np.full((4, 3), 1.0)) and "nearest_limit" in bench.diagnostics.values
                           and bench.diagnostics.values)
        assert float(values["turn.voltage_utilization"]) > 0.0 and "rail.supply_utilization" in values
        assert "spin.voltage_utilization" not in values

"""Drive utilization of single samples: formulas of data sheets, and exponential warming of windings."""

import numpy as np
import pytest

from rnea_ros import ModelError, load
from rnea_ros.model.drives import utilizations
from rnea_ros.trajectory.drive_utilization import DRIVE_ROWS, LONGEST, RECENT, SUPPLY_ROWS, DriveUtilization, WindingLoads
from support.robots import seeds
from support.scaling_cases import urdf

SHEETS = {
    "joint1": {"gear_ratio": 100.0, "torque_constant": 0.1, "resistance": 0.5, "inductance": 2.5e-3, "efficiency": 0.8,
               "back_emf_constant": 0.11, "supply_voltage": 48.0, "max_current": 20.0, "max_power": 400.0},
    "joint2": {"gear_ratio": -50.0, "max_motor_velocity": 300.0, "transmission_stiffness": 2e3, "max_braking_power": 30.0},
    "joint4": {"speed_torque_curve": [[0.0, 60.0], [2.0, 50.0], [3.0, 0.0]]},
    "joint5": {"gear_ratio": 80.0, "torque_constant": 0.05, "current_convention": "rms", "resistance": 1.0},
    "joint6": {"speed_torque_curve": [[-1.0, 0.0], [3.0, 5.0], [3.0, -20.0], [0.0, -20.0]]}}
SUPPLIES = {"rail": {"max_power": 200.0, "max_braking_power": 50.0},
            "wrist": {"joints": ["joint5", "joint6"], "max_power": 9.0}}


def arm(drives=SHEETS, supplies=SUPPLIES):
    return load(urdf("seven_r"), {"version": 1, "drives": drives, "supplies": supplies})


def filled(robot, tau, tau_rate, qd, **given):
    use = DriveUtilization(robot.model, robot.joint_names, **given)
    use.fill(0, tau, tau_rate, qd)
    return {name: dict(zip(robot.joint_names, row)) for name, row in zip(DRIVE_ROWS, use.drives)}, use


@pytest.mark.parametrize("seed", seeds(2))
def test_drive_utilization_matches_the_formulas_of_data_sheets(seed):
    robot = arm()
    rng = np.random.default_rng(seed)
    tau, tau_rate, qd = rng.normal(size=(3, 7)) * [[30.0], [500.0], [2.0]]
    found, use = filled(robot, tau, tau_rate, qd)
    i = tau[0] / (0.1 * 100.0 * 0.8)
    V = 0.5 * i + 2.5e-3 * tau_rate[0] / (0.1 * 100.0 * 0.8) + 0.11 * 100.0 * qd[0]
    assert (found["current"]["joint1"], found["voltage"]["joint1"]) == pytest.approx((i, V))
    assert (found["current_utilization"]["joint1"], found["voltage_utilization"]["joint1"]) == pytest.approx(
        (abs(i) / 20.0, abs(V) / 48.0))
    P = tau * qd
    assert list(found["power"].values()) == pytest.approx(P)
    assert found["power_utilization"]["joint1"] == pytest.approx(max(P[0] / 400.0, 0.0))
    assert found["power_utilization"]["joint2"] == pytest.approx(max(-P[1] / 30.0, 0.0))
    rotor = -50.0 * (qd[1] + tau_rate[1] / 2e3)
    assert found["motor_velocity"]["joint2"] == pytest.approx(rotor)
    assert found["motor_velocity_utilization"]["joint2"] == pytest.approx(abs(rotor) / 300.0)
    v, t = abs(qd[3]), abs(tau[3])
    assert found["speed_torque_utilization"]["joint4"] == pytest.approx(max((t + 5.0 * v) / 60.0, v / 3.0 + t / 150.0))
    assert found["current"]["joint5"] == pytest.approx(tau[4] / 4.0) and np.isnan(found["voltage"]["joint5"])
    for name in ("joint3", "joint7"):  # nothing is known but the power, which needs no data sheet
        assert all(np.isnan(row[name]) for quantity, row in found.items() if quantity != "power")
    assert use.supplies[SUPPLY_ROWS.index("supply_power")] == pytest.approx([P.sum(), P[4] + P[5]])
    assert use.supplies[SUPPLY_ROWS.index("supply_utilization")] == pytest.approx(
        [max(P.sum() / 200.0, -P.sum() / 50.0), max((P[4] + P[5]) / 9.0, 0.0)])


@pytest.mark.parametrize("seed", seeds(2))
def test_drive_utilization_equals_that_of_the_retiming_limits(seed):
    robot = arm()
    tau, tau_rate, qd = np.random.default_rng(seed).normal(size=(3, 7)) * [[30.0], [500.0], [2.0]]
    found, use = filled(robot, tau, tau_rate, qd)
    wanted: dict[tuple[str, str], float] = {}
    for limit, share in zip(robot.drive_limits, utilizations(robot.drive_limits, tau, tau_rate, qd)):
        key = limit.owner, limit.quantity
        # a missing braking limit has a substitute in the retiming limits
        if limit.quantity != "power" or (tau * qd)[list(limit.joints)].sum() > 0.0:
            wanted[key] = max(wanted.get(key, 0.0), share)
    supplies = dict(zip(use.names, use.supplies[1]))
    for (owner, quantity), share in wanted.items():
        mine = supplies[owner] if owner in supplies else found[f"{quantity}_utilization"][owner]
        if owner != "joint2" or quantity != "power":
            assert mine == pytest.approx(share), (owner, quantity)


def test_motor_speed_behind_a_spring_is_an_input():
    robot = arm({"joint2": SHEETS["joint2"]}, {})
    ones = np.ones(7)
    assert filled(robot, ones, 1e3 * ones, ones, springs=["joint2"])[0]["motor_velocity"]["joint2"] == -50.0


def test_drive_utilization_is_empty_without_drives():
    use = filled(arm({}, {}), *np.ones((3, 7)))[1]
    assert use.drives.shape == (len(DRIVE_ROWS), 0) and use.supplies.shape == (len(SUPPLY_ROWS), 0)


WARM = {"joint1": {"gear_ratio": 50.0, "torque_constant": 0.2, "continuous_current": 3.0, "thermal_time_constant": 20.0},
        "joint3": {"continuous_torque": 7.0, "thermal_time_constant": 5.0}}


def test_thermal_load_of_windings_follows_exponentials():
    use = DriveUtilization((robot := arm(WARM, {})).model, robot.joint_names)
    load_row, left_row = (DRIVE_ROWS.index(name) for name in ("thermal_load", "thermal_time_left"))
    tau, zero, stamp = np.full(7, 45.0), np.zeros(7), 10**18
    use.fill(stamp, tau, zero, zero)
    assert use.drives[load_row][0] == 0.0  # unknown before the first sample
    stamp += 10**11
    use.fill(stamp, tau, zero, zero)
    cold = use.drives[load_row].copy()
    assert cold[0] == pytest.approx(1.5**2 * (1.0 - np.exp(-LONGEST / 20.0)))  # at most this long without samples
    for _ in range(400):
        stamp += 10_000_000
        use.fill(stamp, tau, zero, zero)
    hot = use.drives[load_row]
    assert hot[0] == pytest.approx(2.25 - (2.25 - cold[0]) * np.exp(-4.0 / 20.0))
    assert hot[2] == pytest.approx((45.0 / 7.0) ** 2 * (1.0 - np.exp(-5.0 / 5.0)), rel=1e-9)
    assert np.isnan(hot[[1, 3, 4, 5, 6]]).all()
    left = use.drives[left_row]
    recent = 2.25 * (1.0 - np.exp(-5.0 / (20.0 * RECENT)))
    assert left[0] == pytest.approx(20.0 * np.log((recent - hot[0]) / (recent - 1.0)), rel=0.02) and left[2] == 0.0
    before, again = hot.copy(), DriveUtilization(robot.model, robot.joint_names, before=use)
    again.fill(stamp, zero, zero, zero)
    np.testing.assert_array_equal(again.drives[load_row], before)  # another payload: the motors stay warm
    for _ in range(100):
        stamp += 10**9
        again.fill(stamp, zero, zero, zero)
    assert again.drives[load_row][0] == pytest.approx(before[0] * np.exp(-100.0 / 20.0))
    assert again.drives[left_row][0] == np.inf


def test_thermal_time_left_predicts_when_the_load_reaches_one():
    rng = np.random.default_rng(3)
    warmth = WindingLoads(rng.uniform(1.0, 2.0, 5), rng.uniform(5.0, 20.0, 5))
    tau = 3.0 * np.ones(5)
    for _ in range(5000):  # until the recent load equals the present one
        warmth.push(0.01, np.array([0.9, 0.9, 0.9, 0.9, 0.9]))
    for _ in range(500):
        warmth.push(1e-3, tau)
    for joint, (left, recent) in enumerate(zip(warmth.time_left(), warmth.recent)):
        if 0.0 < left < np.inf:
            constant = warmth._constant[joint]
            assert recent + (warmth.load[joint] - recent) * np.exp(-left / constant) == pytest.approx(1.0)


@pytest.mark.parametrize("sheet, said", [
    ({"continuous_current": 3.0}, "torque_constant"),
    ({"torque_constant": 0.1, "continuous_current": 3.0, "continuous_torque": 3.0}, "give one of"),
    ({"thermal_time_constant": 3.0}, "continuous_current [A] or continuous_torque")])
def test_incomplete_data_sheets_are_rejected(sheet, said):
    with pytest.raises(ModelError) as caught:
        arm({"joint1": sheet})
    assert said in str(caught.value)

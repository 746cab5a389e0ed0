"""`rnea demo --plant`: saturating drives, a plant that differs from its model, and one path with three timings.
More arms, motions and seeds: benchmark/saturation.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

from rnea_ros import RneaError, load
from rnea_ros.cli import main
from rnea_ros.demo import timing_trials as trials
from rnea_ros.demo.arms import ARM_SOURCES, MAX_MASS_ERROR, Arm, ArmSource
from rnea_ros.sim.plant import Plant, SaturatingDrives
from rnea_ros.sim.scene import UnmodelledDynamics, scene
from support.robots import arm as chain

ROOT = Path(__file__).resolve().parents[2]
DT = 2.5e-4


@pytest.fixture(scope="module")
def seven():
    return Arm(ARM_SOURCES["seven_r"])


@pytest.fixture(scope="module")
def tried(seven):
    pytest.importorskip("toppra")
    rng = np.random.default_rng(0)
    task = trials.random_task(seven, rng)
    return task, list(trials.track_all(task, rng, trials.SIDE_BY_SIDE))


def test_saturating_drives_respect_torque_rate_and_voltage_limits(seven):
    """Each step equals the command, or is at a limit."""
    robot, rng = seven.robot, np.random.default_rng(1)
    drives, limits = SaturatingDrives(robot, np.zeros(7)), robot.limits
    voltage = [limit for limit in robot.drive_limits if limit.quantity == "voltage"]
    assert [limit.joints for limit in voltage] == [(k,) for k in range(7)]
    reached = np.zeros(4)
    for k in range(4000):
        if k % 80 == 0:
            wanted, qd = 1.5 * limits.effort * rng.uniform(-1.0, 1.0, 7), 1.2 * limits.velocity * rng.uniform(-1.0, 1.0, 7)
        before = drives.tau
        tau = drives.step(wanted, qd, DT)
        rate = (tau - before) / DT
        volts = np.array([(one.effort * tau + one.effort_rate * rate + one.velocity * qd)[one.joints[0]] / one.upper
                          for one in voltage])
        uses = np.abs([tau / limits.effort, volts])
        slewed = np.abs(rate) / limits.effort_rate
        free = np.abs(tau - wanted) < 1e-9
        held = np.maximum(uses.max(axis=0), slewed) > 1.0 - 1e-9
        assert (uses[0] < 1.0 + 1e-9).all() and (free | held).all()
        assert ((volts < 1.0 + 1e-9) | (uses[0] > 1.0 - 1e-9)).all()
        reached += [free.any(), (uses[0] > 1.0 - 1e-9).any(), (uses[1] > 1.0 - 1e-9).any(), (slewed > 1.0 - 1e-9).any()]
    assert (reached > 50).all()


def test_plant_with_scaled_masses_and_friction_matches_its_model():
    """The motor torques are those of the model with the same mass factors, plus friction."""
    urdf = chain({"axis": (0, 0, 1)}, {"axis": (0, 1, 0)}, {"xyz": (0.1, 0.2, 0.3)})
    factors, coulomb, viscous = np.array([1.2, 0.9, 1.1]), [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]
    plant = Plant(scene(urdf, unmodelled=UnmodelledDynamics(factors, coulomb, viscous)))
    true, rng = load(urdf).with_masses(factors), np.random.default_rng(2)
    plant.set_state(rng.normal(size=3))
    seen = 0
    for _ in range(200):
        instant = plant.exert([20.0, -20.0, 20.0])
        if (np.abs(instant.qd) > np.maximum(0.3, 0.02 * np.abs(instant.qdd))).all():  # friction: velocity 10 ms ahead
            rubs = coulomb * np.sign(instant.qd) + viscous * instant.qd
            found = true.inverse_dynamics(instant.q, instant.qd, instant.qdd) + rubs
            np.testing.assert_allclose(found, instant.tau, atol=1e-6)
            seen += 1
        plant.advance()
    assert seen > 20


def test_scaled_timing_stays_on_the_path_where_the_other_timings_do_not(tried, seven, tmp_path):
    task, outcomes = tried
    planned, toppra, ours = outcomes
    assert [planned.lost, toppra.lost, ours.lost] == [True, True, False]
    assert planned.longer == pytest.approx(1.0 / trials.OVERSPEED) and toppra.longer < 1.0 < ours.longer < 1.05
    assert ours.off < trials.MAX_DEVIATION_MM < 2.0 < min(planned.off, toppra.off)
    assert ours.beyond <= trials.MAX_OVER_LIMIT_MS < toppra.beyond
    assert all(verdict.passed for verdict in trials.check_results(outcomes))
    assert not any(verdict.passed for verdict in trials.check_results([toppra._replace(timing=trials.OURS)]))
    for outcome in outcomes:  # the same path, and what the drives exerted is inside their limits
        end = outcome.motion(np.array([outcome.motion.duration]))[0][0]
        np.testing.assert_allclose(end, task.points[-1], atol=1e-9)
        assert (np.abs(outcome.tracked.applied) <= seven.robot.limits.effort * (1.0 + 1e-9)).all()
    rate = np.diff(ours.tracked.applied, axis=0) / 1e-3  # of the others voltage may take torque away faster
    assert (np.abs(rate) <= seven.robot.limits.effort_rate * (1.0 + 1e-6)).all()
    assert np.abs(ours.tracked.applied - ours.tracked.commanded).max() < 1.0
    text = trials.result_table(outcomes)
    assert [line.split()[-3:] for line in text.splitlines()[1:]] == [list(f"{n} of 1".split()) for n in (1, 1, 0)]
    pytest.importorskip("matplotlib")
    trials.draw_trials(task, outcomes, outcomes, tmp_path / "plant.png")
    trials.draw_trials(task, [planned, ours], [planned, ours], tmp_path / "two.png")  # without toppra
    assert (tmp_path / "plant.png").read_bytes().startswith(b"\x89PNG")


def test_toppra_timing_keeps_torques_and_speeds_at_its_grid_points(tried, seven):
    _task, (_, toppra, _) = tried
    t = np.linspace(0.0, toppra.motion.duration, 3001)
    q, qd, qdd, _ = toppra.motion(t)
    used = np.abs(seven.robot.inverse_dynamics(q, qd, qdd)) / seven.robot.limits.effort
    assert used.max() == pytest.approx(trials.PLANNING_SHARE, abs=0.03)
    assert (np.abs(qd) / seven.robot.limits.velocity).max() < 1.001


def test_distances_from_a_polyline_match_hand_computed_values():
    square = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    points = np.array([[0.5, 0.25, 0.0], [-3.0, 4.0, 0.0], [1.0, 0.5, 2.0], [2.0, 2.0, 0.0]])
    np.testing.assert_allclose(trials.polyline_distances(points, square), [0.25, 5.0, 2.0, np.sqrt(2.0)])


def test_random_plants_are_reproducible_by_seed(seven):
    first, again, other = (seven.plant(seven.masses(np.random.default_rng(seed)))._model.body_mass
                           for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert 0.0 < np.abs(first - other).max() < 2.0 * MAX_MASS_ERROR * first.max()


def test_missing_packages_are_reported(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "toppra", None)
    with pytest.raises(RneaError, match=r"TOPP-RA's timing needs toppra .*\.\[sim\]"):
        trials.toppra()
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert main.main(["demo", "--plant", "--arm", "seven_r"]) == 2 and "needs MuJoCo" in capsys.readouterr().err
    free = tmp_path / "free.urdf"
    free.write_text(chain({"kind": "continuous", "limit": None}))
    with pytest.raises(RneaError, match="not an arm with a torque limit"):
        Arm(ArmSource(free))


def test_command_compares_two_timings_and_rejects_invalid_options(tmp_path, monkeypatch, capsys):
    """The comparison runs with two timings, without toppra."""
    monkeypatch.setitem(sys.modules, "toppra", None)
    monkeypatch.chdir(tmp_path)
    assert main.main(["demo", "--plant", "--arm", "seven_r", "--motions", "1", "--plot", ""]) == 0
    out, err = capsys.readouterr()
    assert "Its timing is omitted" in err and "0 of 1 motions lost" in out and "TOPP-RA" not in out
    assert main.main(["demo", "--plant", "--motions", "0"]) == 2 and "at least 1" in capsys.readouterr().err
    assert main.main(["demo", "--plant", "--robot", "stewart"]) == 2


DRAW = """
import numpy as np
from rnea_ros.sim.scene import Polyline, Renderer, select_offscreen_renderer
select_offscreen_renderer()
from rnea_ros.demo.arms import ARM_SOURCES, Arm
arm = Arm(ARM_SOURCES["seven_r"])
q = np.array([0.0, 0.5, 0.0, -1.8, 0.0, 1.8, 0.0])
draw = Renderer(arm.shapes, arm.robot.joint_names, arm.meshes, (120, 100), (140.0, -20.0, 2.0), (0.2, 0.0, 0.4))
line = Polyline(np.array([[0.5, 0.0, 0.2], [0.5, 0.3, 0.8]]), (0.0, 0.0, 1.0), 0.02)
still, moved, stopped, lined = (draw(*what).astype(float) for what in ((q,), (q + 0.3,), (q, (), True), (q, [line])))
drawn = (still < 250.0).any(axis=2)
print(still.shape, 0.02 < drawn.mean() < 0.5, np.abs(still - moved).max() > 50.0,
      stopped[drawn][:, 0].mean() > 1.3 * stopped[drawn][:, 2].mean(), ((lined - still)[..., 2] < -1.0).any())
"""


def test_pictures_are_rendered_by_mujoco():
    """The test uses a separate process, because the rendering library is selected when MuJoCo is imported."""
    done = subprocess.run([sys.executable, "-c", DRAW], cwd=ROOT, capture_output=True, text=True, timeout=300)
    if "cannot render off screen" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.stdout.split(") ")[-1].split() == ["True"] * 4, done

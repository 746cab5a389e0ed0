"""A predicted lift, by a small model: dynamics by Pinocchio, with the box as a force on the hands; conditions; command."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import InputError
from rnea_ros.cli import gait
from rnea_ros.cli.main import main
from rnea_ros.gait import lift
from rnea_ros.gait.lift import EXTENSOR_ARM, Lifter, LiftTask, lift_instants, predict_lift, recommended_weight
from rnea_ros.gait.skeleton import SAGITTAL, Human
from rnea_ros.gait.walker import BOTH
from rnea_ros.planning.planner import PlanningError

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.timeout(600)
FIXED = [f"{side}_{joint}" for side in ("right", "left") for joint in (
    "hip_adduction", "hip_rotation", "subtalar_inversion", "toe_extension", "shoulder_adduction", "shoulder_rotation")]
SMALL = Human(frozen=(*SAGITTAL, *FIXED))
TASK = LiftTask(box_mass=12.0, box_size=(0.36, 0.30, 0.25), start=(0.40, 0.45), goal=(0.35, 0.95), duration=1.2,
                max_compression=5190.0)  # 5266 N without the limit
CENTRAL = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60.0  # first derivative, of order six


@cache
def lifter():
    return Lifter(SMALL, TASK)


@cache
def lifted():
    return predict_lift(lifter(), 8, guess=lifter().guess("stoop", 8))


class Oracle:
    """Pinocchio's model of the skeleton without the box, which is a force at the grips instead."""

    def __init__(self):
        walker = lifter().walker
        self.model = pin.buildModelFromXML(replace(walker.human, hand_load=0.0).urdf)
        self.data, self.names = self.model.createData(), list(self.model.names[1:])
        self.order = [walker.joint_names.index(name) for name in self.names]

    def grips(self, q, qd, qdd):
        """Return position and acceleration of the grips, right and left."""
        pin.forwardKinematics(self.model, self.data, q, qd, qdd)
        pin.updateFramePlacements(self.model, self.data)
        frames = [self.model.getFrameId(f"{side}_grip") for side in ("right", "left")]
        return [(self.data.oMf[k].translation.copy(), pin.getFrameClassicalAcceleration(
            self.model, self.data, k, pin.LOCAL_WORLD_ALIGNED).linear.copy()) for k in frames]

    def torque(self, q, qd, qdd, mass, floor, toes):
        """Return the torques under the weight and inertia of the box, and the forces of the floor (2, 6)."""
        loads = pin.StdVec_Force()
        loads.extend([pin.Force.Zero()] * self.model.njoints)

        def add(link, wrench):
            joint = self.model.frames[self.model.getBodyId(link)].parentJoint
            loads[joint] = loads[joint] + self.data.oMi[joint].actInv(wrench)

        for side, (point, acceleration) in zip(("right", "left"), self.grips(q, qd, qdd)):
            force = -mass / 2.0 * (acceleration - self.model.gravity.linear)
            add(f"{side}_hand", pin.Force(force, np.cross(point, force)))
        for side, wrench, moment in zip(("right", "left"), floor, toes):
            couple = np.array([0.0, moment, 0.0])
            add(f"{side}_foot", pin.Force(wrench[:3], wrench[3:] - couple))
            add(f"{side}_toes", pin.Force(np.zeros(3), couple))
        return pin.rnea(self.model, self.data, q, qd, qdd, loads)


@cache
def oracle():
    return Oracle()


def test_torques_equal_pinocchio_with_the_box_as_a_force():
    """The floor's force of the motion that was found, and the reaction to a box that the hands accelerate."""
    motion, pinocchio = lifted().motion(9), oracle()
    for k in range(len(motion.t)):
        q, qd, qdd, tau = (x[k, pinocchio.order] for x in (motion.q, motion.qd, motion.qdd, motion.tau))
        found = pinocchio.torque(q, qd, qdd, TASK.box_mass, motion.floor[k], motion.toes[k])
        assert np.abs(found - tau).max() < 1e-9 * np.abs(tau).max()
        grips = pinocchio.grips(q, qd, qdd)
        assert np.allclose(motion.box[k], sum(point for point, _ in grips) / 2.0, atol=1e-12)
        assert abs(grips[0][0][1] + TASK.box_size[0] / 2.0) < TASK.tolerance + 1e-6


def test_torque_rates_equal_differences_of_pinocchio():
    """Inside the polynomial pieces, with the floor's force changing as the motion does."""
    pinocchio, walker, E, planned = oracle(), lifter().walker, lifter().E, lifted().plan
    motion, h = lifted().motion(12), 2e-4
    inner = [k for k, t in enumerate(motion.t) if np.abs(planned.curve.breaks * TASK.duration - t).min() > 4 * h]
    assert len(inner) >= 8
    for k in inner:
        torques = []
        for shift in (-3, -2, -1, 1, 2, 3):
            now = [x[None] @ E.T for x in planned(motion.t[k] + shift * h)[:3]]
            F = walker.evaluate_ground(lift.foot_wrenches_of_both, ("right_ankle", "left_ankle"), now).value.reshape(2, 6)
            loads = walker.loads(BOTH, now)
            toes = [loads[f"{side}_toes"][0, 4] for side in ("right", "left")]
            torques.append(pinocchio.torque(*(x[0, pinocchio.order] for x in now), TASK.box_mass, F, toes))
        numeric = CENTRAL @ np.array(torques) / h
        assert np.abs(numeric - motion.tau_rate[k, pinocchio.order]).max() < 1e-7 * max(1.0, np.abs(numeric).max())


def test_floor_bears_body_and_box_and_nothing_is_left_at_the_root():
    motion, walker = lifted().motion(), lifter().walker
    assert np.isclose(walker.weight, (73.0 + TASK.box_mass) * 9.81, rtol=1e-3)
    assert np.abs(motion.tau[:, :3]).max() < 1e-9 * np.abs(motion.tau).max()
    mirrored = motion.floor[:, 1] * (1.0, -1.0, 1.0, -1.0, 1.0, -1.0)
    assert np.allclose(motion.floor[:, 0], mirrored, atol=1e-8)
    impulse = np.trapezoid(motion.floor[:, :, 2].sum(axis=1) - walker.weight, motion.t)
    assert abs(impulse) < 1e-3 * walker.weight * TASK.duration  # at rest before and after


def test_lumbar_load_is_the_force_that_pinocchio_transmits_at_the_spine():
    motion, pinocchio = lifted().motion(9), oracle()
    joint = pinocchio.model.getJointId("l5s1_compression")
    for k in range(len(motion.t)):
        q, qd, qdd = (x[k, pinocchio.order] for x in (motion.q, motion.qd, motion.qdd))
        pinocchio.torque(q, qd, qdd, TASK.box_mass, motion.floor[k], motion.toes[k])
        transmitted = pinocchio.data.f[joint]
        muscle = motion.compression[k] - transmitted.linear[2]
        assert np.isclose(muscle, motion.moment[k] / EXTENSOR_ARM, rtol=1e-9)
        assert np.isclose(-transmitted.angular[1], motion.moment[k], rtol=1e-9, atol=1e-9)


def test_conditions_of_the_lift():
    found, near = lifted(), TASK.tolerance + 1e-4
    assert max(found.excess().values()) < 1e-3, found.excess()
    assert not found.plan.notes
    motion, (heel, _, tip) = found.motion(), lifter().walker.human.sole
    for k, (ahead, above) in ((0, TASK.start), (-1, TASK.goal)):
        assert np.abs(motion.box[k] - (ahead, 0.0, above)).max() < near
        assert np.abs(motion.qd[k]).max() < 1e-9
    points = lifter().walker.points(motion.q)[0][:, [list(lifter().walker.human.points).index(name) for name in (
        "right_heel", "right_toe_tip")]]
    assert np.abs(points[:, :, 2]).max() < near  # on the floor, and not sliding
    assert np.ptp(points[:, :, 0], axis=0).max() < 2 * near
    assert (motion.pressure[:, 0] > heel).all() and (motion.pressure[:, 0] < tip).all()
    assert np.abs(motion.floor[:, :, 0] / motion.floor[:, :, 2]).max() < 0.5


def test_lumbar_limit_is_active_and_kept():
    assert 0.99 * TASK.max_compression < lifted().motion().compression.max() < 1.001 * TASK.max_compression
    assert Lifter(SMALL, LiftTask(), backend="python").lumbar().enforced.size == 0  # unlimited unless asked for


def test_gradients_of_every_condition():
    rng = np.random.default_rng(3)
    z = rng.uniform(-0.3, 0.3, (2, 4, len(lifter().names)))
    z[:, 0, lifter().names.index("up")] = 0.8
    way = rng.normal(size=z.shape)
    for quantity in Lifter(SMALL, replace(TASK, max_moment=150.0, max_compression=3000.0)).quantities():
        numeric = (quantity.values(z + 1e-5 * way) - quantity.values(z - 1e-5 * way)) / 2e-5
        found = np.einsum("kcrj,krj->kc", quantity.slopes(z), way)
        known = quantity.enforced
        assert np.abs(found - numeric)[:, known].max() < 1e-7 * (1.0 + np.abs(numeric[:, known]).max()), quantity.name


def test_recommended_weight_is_that_of_the_published_equation():
    """Best position: 23 kg. The multipliers of 50 cm, 0 cm and 100 cm of travel are 0.5, 0.775 and 0.865."""
    assert np.isclose(recommended_weight(LiftTask(start=(0.25, 0.75), goal=(0.25, 0.80))), 23.0)
    assert np.isclose(recommended_weight(LiftTask(box_size=(0.4, 0.3, 0.0), start=(0.50, 0.0), goal=(0.3, 1.0))),
                      23.0 * 0.5 * 0.775 * 0.865)
    assert recommended_weight(LiftTask(start=(0.64, 0.75), goal=(0.25, 0.80))) == 0.0


@pytest.mark.parametrize("given, words", [
    ({"box_mass": -1.0}, "mass of the box is -1; 0 to 100"), ({"duration": 0.1}, "duration is 0.1; 0.3 to 20"),
    ({"start": (0.4, 0.05)}, r"height of the start is 0.05; 0.125 to 2.2 is allowed \[m\], half the height"),
    ({"goal": (2.0, 1.0)}, "distance of the goal is 2"), ({"max_moment": 0.0}, "maximum moment is 0")])
def test_invalid_tasks_are_rejected(given, words):
    with pytest.raises(InputError, match=words):
        LiftTask(**given)


def test_missing_solution_is_reported():
    with pytest.raises(PlanningError, match="A lighter or nearer box"):
        predict_lift(lifter(), 8, most=2)
    with pytest.raises(InputError, match="5 control points"):
        predict_lift(lifter(), 5)


def test_command_writes_motion_pictures_and_report(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(gait, "Lifter", lambda person, task, muscles: asked.append((person, task, muscles)) or lifter())
    monkeypatch.setattr(gait, "predict_lift", lambda *args, **options: lifted())
    words = ["--box-mass", "12", "--box-size", ".36", ".3", ".25", "--from", ".4", ".45", "--to", ".35", ".95", "--duration",
             "1.2", "--max-compression", "5190", "--period", "6", "--hours", "2"]
    assert main(["gait", "--task", "lift", "-o", str(tmp_path), "--json", *words, "--stature", "1.741"]) == 0
    (person, task, muscles), = asked
    assert task == TASK and person == Human() and muscles is None
    assert {path.name for path in tmp_path.iterdir()} == {"human.urdf", "lift.csv", "lift.png", "skeleton.png", "report.txt"}
    header, *rows = (tmp_path / "lift.csv").read_text().splitlines()
    columns = dict(zip(header.split(","), np.loadtxt(rows, delimiter=",").T, strict=True))
    motion = lifted().motion()
    for name, values in (("tau_rate_right_knee_flexion", motion.tau_rate[:, lifter().walker.joint_names.index(
            "right_knee_flexion")]), ("l5s1_compression_force", motion.compression), ("box_z", motion.box[:, 2])):
        assert np.array_equal(columns[name], values)
    data = json.loads(capsys.readouterr().out)
    assert data["limits_kept"] and data["fatigue"]["l5s1_extension"]["capacity"] < 1.0
    assert "l5s1_extension" in (tmp_path / "report.txt").read_text()


@pytest.mark.parametrize(("words", "said"), [
    (["--task", "lift", "--speed", "1"], "--speed is not an option of --task lift"),
    (["--task", "walk", "--from", "0.4", "0.4"], "--from is not an option of --task walk"),
    (["--task", "lift", "--period", "1"], "a period of at least the duration, 1.5 s"),
    (["--muscles", "old"], "muscles are 'old'; young, middle, senior or an existing CSV file"),
    (["--task", "lift", "--box-mass", "200"], "mass of the box is 200; 0 to 100 is allowed [kg]")])
def test_invalid_options_are_reported(tmp_path, capsys, words, said):
    assert main(["gait", "-o", str(tmp_path / "out"), *words]) == 2
    assert said in capsys.readouterr().err


def test_excess_is_found_where_limits_are_broken():
    planned = lifted().plan
    wrong = replace(lifted(), plan=replace(planned, curve=replace(planned.curve, points=1.1 * planned.curve.points)))
    assert max(wrong.excess(lift_instants(8)).values()) > 0.01

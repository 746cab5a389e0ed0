"""A step predicted with the small model: files of the command are checked with Pinocchio and against measured walking."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import InputError, Robot
from rnea_ros.cli import gait
from rnea_ros.cli.main import main
from rnea_ros.gait import walk
from rnea_ros.gait.skeleton import LOWER_BODY, Human
from rnea_ros.gait.walk import LEG_JOINTS, StepConditions, Walk, WalkingStep, mirror_matrix
from rnea_ros.gait.walker import Walker
from rnea_ros.planning.planner import PlanningError

pytest.importorskip("casadi")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.timeout(600)  # large kernels are compiled if the cache is empty


class Written(NamedTuple):
    folder: object
    walk: Walk
    columns: dict[str, np.ndarray]
    names: tuple[str, ...]
    text: str

    def block(self, name):
        return np.column_stack([self.columns[f"{name}_{joint}"] for joint in self.names])

    def xyz(self, name):
        return np.column_stack([self.columns[f"{name}_{axis}"] for axis in "xyz"])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder, kept = tmp_path_factory.mktemp("gait"), []
    patch = pytest.MonkeyPatch()
    patch.setattr(gait, "predict_walk", lambda *args, **options: kept.append(walk.predict_walk(*args, **options)) or kept[0])
    assert main(["gait", "-o", str(folder), "--legs"]) == 0
    patch.undo()
    header, *rows = (folder / "stride.csv").read_text().splitlines()
    columns = dict(zip(header.split(","), np.loadtxt(rows, delimiter=",").T, strict=True))
    names = Robot.from_urdf(folder / "human.urdf", backend="python").joint_names
    return Written(folder, kept[0], columns, names, (folder / "report.txt").read_text())


def oracle(written):
    model = pin.buildModelFromUrdf(str(written.folder / "human.urdf"))
    order = [written.names.index(name) for name in model.names[1:]]
    return model, model.createData(), [written.block(block)[:, order] for block in ("q", "qd", "qdd", "tau")]


def test_command_writes_robot_motion_pictures_and_report(written):
    assert {path.name for path in written.folder.iterdir()} == {"human.urdf", "stride.csv", "walk.png", "skeleton.png",
                                                                "report.txt"}
    assert "knee_flexion correlation" in written.text and len(written.names) == 18


def loads(written, model, data, k):
    """Return the forces on every joint of Pinocchio's model from the written floor forces and the placements in data."""
    found = pin.StdVec_Force()
    found.extend([pin.Force.Zero()] * model.njoints)
    for side in ("right", "left"):
        couple = np.array([0.0, written.columns[f"{side}_toes_moment_y"][k], 0.0])
        whole = pin.Force(written.xyz(f"{side}_floor_force")[k], written.xyz(f"{side}_floor_moment")[k] - couple)
        for link, wrench in ((f"{side}_foot", whole), (f"{side}_toes", pin.Force(np.zeros(3), couple))):
            joint = model.frames[model.getBodyId(link)].parentJoint
            found[joint] = found[joint] + data.oMi[joint].actInv(wrench)
    return found


def test_written_torques_and_joint_forces_match_pinocchio(written):
    model, data, (q, qd, qdd, tau) = oracle(written)
    transmitted = written.walk.stride().transmitted
    for k in range(len(q)):
        pin.framesForwardKinematics(model, data, q[k])
        found = pin.rnea(model, data, q[k], qd[k], qdd[k], loads(written, model, data, k))
        assert np.abs(found - tau[k]).max() < 1e-8
        for title, joint in LEG_JOINTS.items():
            force = data.f[model.getJointId(f"right_{joint}")].linear
            assert abs(np.linalg.norm(force) - transmitted[title][k]) < 1e-8 * np.linalg.norm(force), (title, k)
    assert 0.7 < transmitted["hip"].max() / written.walk.walker.weight < 1.5  # without muscle forces


def test_floor_supplies_the_rate_of_momentum(written):
    model, data, (q, qd, qdd, _tau) = oracle(written)
    F = written.xyz("right_floor_force") + written.xyz("left_floor_force")
    M = written.xyz("right_floor_moment") + written.xyz("left_floor_moment")
    for k in range(0, len(q), 7):
        rate = pin.computeCentroidalMomentumTimeVariation(model, data, q[k], qd[k], qdd[k])
        assert np.allclose(F[k], rate.linear - pin.computeTotalMass(model) * model.gravity.linear, atol=1e-8)
        assert np.allclose(M[k], rate.angular + np.cross(data.com[0], F[k]), atol=1e-8)


def test_root_torques_are_zero(written):
    assert np.abs(written.block("tau")[:, :6]).max() < 1e-8


def test_second_step_mirrors_the_first(written):
    q, qd = written.block("q"), written.block("qd")
    middle = len(q) // 2
    for x in (q, qd):
        assert np.abs(x[middle - 1] - x[middle]).max() < 1e-6
    ahead = np.zeros(18)
    ahead[written.names.index("forward")] = 1.2  # two steps
    assert np.abs(q[-1] - q[0] - ahead).max() < 1e-6 and np.abs(qd[-1] - qd[0]).max() < 1e-6


def test_walk_satisfies_the_conditions_of_the_thesis(written):
    walk, step = written.walk, written.walk.step
    motion = walk.plan(np.array([0.0, step.mid_swing, 1.0]) * step.duration)
    positions, row = walk.walker.points(motion[0])[0], walk.walker._row
    knee = np.degrees(motion[0][1, written.names.index("left_knee_flexion")])
    assert 55.0 - 1e-3 <= knee <= 65.0 + 1e-3  # (5.9)
    near = step.tolerance + 1e-6
    assert np.abs(positions[0, row["right_heel"]] - (0.0, -0.05, 0.0)).max() < near  # (5.10)
    assert np.abs(positions[2, row["left_heel"]] - (0.6, 0.05, 0.0)).max() < near
    excess = walk.excess()
    assert len(excess) > 12 and sum(name.startswith("torque") for name in excess) == 2
    assert max(excess.values()) < 1e-3, excess  # [rad], [m] or relative, at 300 instants and at phase changes


def test_predicted_walk_resembles_measured_walking(written):
    found = written.walk.report()
    assert found["knee_flexion correlation"] > 0.85 and found["hip_flexion correlation"] > 0.85
    assert 50.0 < found["knee_flexion max [deg]"] < 70.0
    assert 0.95 < found["first peak [weight]"] < 1.4 and 0.6 < found["valley [weight]"] < 1.0
    assert found["braking [weight]"] < 0.35 and found["pushing [weight]"] < 0.35


def test_mirror_is_an_involution():
    matrix = mirror_matrix(tuple(name for name in Human(frozen=()).all_axes))
    assert np.array_equal(matrix @ matrix, np.eye(55))


def test_gradients_of_all_conditions_match_finite_differences(written):
    """The directions are random; test_gait_dynamics.py checks the gradients of torques by complex steps."""
    walker = written.walk.walker
    rng = np.random.default_rng(3)
    y = rng.uniform(-0.3, 0.3, (2, 4, walker.n))
    y[:, 0, walker.joint_names.index("up")] = 0.9
    way = rng.normal(size=y.shape)
    for quantity in StepConditions(walker, WalkingStep(transfer=True, upright=True, elastic=True)).all():
        numeric = (quantity.values(y + 1e-5 * way) - quantity.values(y - 1e-5 * way)) / 2e-5
        found = np.einsum("kcrj,krj->kc", quantity.slopes(y), way)
        known = np.isfinite(quantity.lower) | np.isfinite(quantity.upper)
        scale = 1.0 + np.abs(numeric[:, known]).max()
        assert np.abs(found - numeric)[:, known].max() < 1e-7 * scale, quantity.name


def test_smooth_option_couples_accelerations_of_consecutive_steps():
    walker = Walker(Human(frozen=LOWER_BODY), backend="python")
    rows = [len(walk.walking_problem(walker, WalkingStep(smooth=smooth)).ends.value) for smooth in (False, True)]
    assert rows == [36, 54]


def test_upright_option_limits_the_pelvis_tilt():
    walker = Walker(Human(frozen=LOWER_BODY), backend="python")
    plain, upright = (StepConditions(walker, WalkingStep(upright=asked)).angles() for asked in (False, True))
    tilt = walker.joint_names.index("pelvis_tilt")
    assert np.allclose(np.degrees([upright.lower[tilt], upright.upper[tilt]]), (-5.0, 5.0))
    assert np.array_equal(np.flatnonzero((plain.lower != upright.lower) | (plain.upper != upright.upper)), [tilt])


def test_elastic_tissue_improves_the_correlation_of_the_ankle_angle(written):
    elastic = walk.predict_walk(written.walk.walker, WalkingStep(elastic=True))
    found, plain = elastic.report(), written.walk.report()
    assert found["excess"] < 1e-3 and found["residual at the root [N, N m]"] < 1e-8
    assert found["ankle_dorsiflexion correlation"] > max(0.75, plain["ankle_dorsiflexion correlation"] + 0.1)
    assert found["knee_flexion correlation"] > 0.85 and found["hip_flexion correlation"] > 0.85
    assert found["effort"] < plain["effort"]  # effort of muscles only


def test_missing_solution_is_reported(written):
    walker = written.walk.walker
    with pytest.raises(PlanningError, match=r"no motion found.*Another speed, a step of another length or more control"):
        walk.predict_walk(walker, WalkingStep(), most=2)


def test_suggested_remedies_are_options_of_the_gait_command(capsys):
    with pytest.raises(SystemExit):
        main(["gait", "--help"])
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("--speed", "--step", "--control-points")) and "xacro" not in shown


def test_planner_notes_are_printed(written, tmp_path, monkeypatch, capsys):
    noted = replace(written.walk, plan=replace(written.walk.plan, notes=("beyond a limit", "left out")))
    monkeypatch.setattr(gait, "predict_walk", lambda *args, **options: noted)
    assert main(["gait", "-o", str(tmp_path), "--legs"]) == 0
    assert capsys.readouterr().err == "note: beyond a limit\nnote: left out\n"


def test_violated_limits_set_the_exit_code(written, tmp_path, monkeypatch, capsys):
    plan, count = written.walk.plan, len(walk.instants(written.walk.step, 6))
    found = replace(written.walk, plan=replace(plan, curve=replace(plan.curve, points=1.2 * plan.curve.points)))
    monkeypatch.setattr(gait, "predict_walk", lambda *args, **options: found)
    assert main(["gait", "-o", str(tmp_path), "--legs"]) == 1
    assert f"limits EXCEEDED at the {count} constrained instants" in capsys.readouterr().out
    monkeypatch.setattr(gait, "predict_walk", lambda *args, **options: written.walk)
    assert main(["gait", "-o", str(tmp_path), "--legs"]) == 0
    assert f"limits kept at the {count} constrained instants, within " in capsys.readouterr().out


@pytest.mark.parametrize("given, words", [({"speed": 9.0}, "speed of the step is 9"), ({"length": 3.0}, "length of the step"),
                                          ({"toe_off": 0.7}, "toe_off and heel_off"), ({"tolerance": 1.0}, "tolerance")])
def test_invalid_steps_are_rejected(given, words):
    with pytest.raises(InputError, match=words):
        WalkingStep(**given)


def test_too_few_control_points_are_rejected():
    with pytest.raises(InputError, match="5 control points; 6 to 40"):
        walk.predict_walk(Walker(Human(frozen=LOWER_BODY), backend="python"), WalkingStep(), 5)


@pytest.mark.parametrize(("words", "said"), [
    (["--control-points", "0"], "0 control points; 6 to 40 are allowed"),
    (["--control-points", "-3"], "-3 control points; 6 to 40 are allowed"),
    (["--control-points", "1", "--human"], "1 control points; 6 to 40 are allowed"),
    (["--stature", "174"], "stature is 174; 1.2 to 2.3 is allowed [m]"),
    (["--mass", "nan"], "mass is nan; 25 to 250 is allowed [kg]"),
    (["--speed", "-1"], "speed of the step is -1; 0.3 to 2.5 is allowed [m/s]"),
    (["--step", "60"], "length of the step is 60; 0.2 to 1.2 is allowed [m]"),
])
def test_gait_command_reports_invalid_options(tmp_path, capsys, words, said):
    pytest.importorskip("matplotlib")
    assert main(["gait", "-o", str(tmp_path / "walk"), "--legs", *words]) == 2
    assert said in capsys.readouterr().err

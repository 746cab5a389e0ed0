"""`rnea identify`: predictions, friction models, physical consistency, and recordings of several drivers."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import rnea_ros
from rnea_ros import InputError, JointDynamics, Robot
from rnea_ros.cli import identify as identify_cli
from rnea_ros.cli import inputs
from rnea_ros.cli.output import print_outcome
from rnea_ros.estimation.smoothing import prepare
from rnea_ros.identification import result_files
from rnea_ros.identification.excitation import FourierMotion
from rnea_ros.identification.fitting import fit, suspected_couplings
from rnea_ros.identification.identification import Measurements
from rnea_ros.identification.joint_equations import FrictionModel, candidates
from rnea_ros.identification.weighted_fit import correlation_factor
from rnea_ros.io.recording import ReadingOptions
from rnea_ros.model.tree import CoupledMotor
from support.oracles import difference, impossible_bodies
from support.recorded_robot import NOISE, URDF, motion, recorded, robots, write_csv
from support.robots import arm, seeds


@cache
def fitted():
    return fit(robots()[0], Measurements(*recorded()))


def rms(x):
    return np.sqrt(np.mean(x**2, axis=0))


# ---------------------------------------------------------------------- identified robot

def test_identified_robot_predicts_another_motion():
    q, qd, qdd, _ = motion(5)(np.linspace(0.0, 8.0, 800))
    tau = robots()[1].inverse_dynamics(q, qd, qdd)
    before, after = (rms(robot.inverse_dynamics(q, qd, qdd) - tau) for robot in (robots()[0], fitted().robot))
    assert np.all(after < 0.1 * before) and np.all(after < 0.03 * rms(tau))


def test_fit_errors_equal_the_noise():
    found = fitted()
    assert np.all(found.fit_error < 1.2 * NOISE) and np.all(found.validation_error < 1.2 * NOISE)
    assert found.explained and found.consistency_cost < 0.05 and not impossible_bodies(found.robot.model)
    assert found.recordings[0].data.t[found.recordings[0].split] == pytest.approx(0.7 * 24.0, abs=0.1)


def test_selected_friction_models_match_the_simulated_robot():
    first, second, third = fitted().friction
    assert first.stribeck_velocity == pytest.approx(0.15, rel=0.6) and third.stribeck_velocity == pytest.approx(0.2, rel=0.6)
    assert first.asymmetric and not second.asymmetric and not third.asymmetric
    true = {link.joint: link.term for link in robots()[1].model.links}
    found = {link.joint: link.term for link in fitted().robot.model.links}
    assert found["j3"].armature == pytest.approx(0.2, abs=0.05), "those of the others are not separable from their bodies"
    for joint in ("j2", "j3"):
        for term in ("viscous", "offset"):
            assert getattr(found[joint], term) == pytest.approx(getattr(true[joint], term), abs=0.2), (joint, term)
        assert found[joint].coulomb == pytest.approx(true[joint].coulomb, rel=0.1)


def test_load_dependent_friction_is_identified_and_written():
    t, q, _ = recorded()
    term = next(link.term for link in robots()[1].model.links if link.joint == "j2")
    true = robots()[1].with_joint_dynamics({"j2": replace(term, load_dependent=0.15, load_smoothing=0.5)})
    tau = true.inverse_dynamics(*motion(0)(t)[:3]) + np.random.default_rng(1).normal(size=q.shape) * NOISE
    found = fit(robots()[0], Measurements(t, q, tau))
    assert "load" in found.friction[1].description and np.all(found.validation_error < 1.2 * NOISE)
    written = rnea_ros.load(URDF, result_files.robot_file(found, {}).content)
    loads = [link.term.load_dependent for robot in (found.robot, written) for link in robot.model.links if link.joint == "j2"]
    assert loads == pytest.approx([0.15, 0.15], rel=0.25)


def test_base_parameter_errors_match_their_standard_deviations():
    """Errors of body and rotor parameters are taken in units of the reported standard deviation."""
    found = fitted()
    count = sum(name.endswith(")") and not np.isnan(b) for name, b in zip(found.base.names, found.prior))
    truth = found.base.grouping[:count] @ true_values(found)
    z = (found.estimate[:count] - truth) / found.std[:count]
    assert np.mean(np.abs(z) < 3.0) > 0.9 and 0.2 < np.std(z) < 2.0


def true_values(found):
    from rnea_ros.algorithms.inertial_parameters import values

    listed = [p for p in found.base.parameters if p.kind not in ("coulomb", "breakaway", "viscous", "forwards", "backwards",
                                                                 "offset")]
    return np.concatenate((values(robots()[1].model, listed), np.zeros(len(found.base.parameters) - len(listed))))


def test_undetermined_parameters_are_named_and_keep_urdf_values():
    """A joint at rest does not determine its rotor; unlike plain least squares, the fit succeeds."""
    t, *_ = recorded()
    still = np.array([1.0, 1.0, 0.0])
    qs, qd, qdd, _ = motion(0)(t)
    tau = robots()[1].inverse_dynamics(qs * still, qd * still, qdd * still)
    found = fit(robots()[0], Measurements(t, qs * still, tau, qd * still, qdd * still))
    text = " ".join(result_files.undetermined_directions(found))
    assert "Ia(j3)" in text and "viscous(j3)" in text and "Ia(j2)" not in text
    assert any(row.poorly_determined for row in result_files.base_parameter_rows(found))
    assert np.all(found.validation_error < 0.05 * found.rms)


def test_fitted_friction_is_never_negative():
    t, q, qd, qdd, *_ = t_and_motion()
    driven = Robot.from_model(robots()[0].model.with_joint_dynamics({"j3": JointDynamics(viscous=4.0)}))
    tau = 2.0 * robots()[0].inverse_dynamics(q, qd, qdd) - driven.inverse_dynamics(q, qd, qdd)
    found = fit(robots()[0], Measurements(t, q, tau, qd, qdd))
    assert not found.explained and "viscous(j3)" in found.at_boundary


def t_and_motion():
    t = np.arange(0.0, 16.0, 0.02)
    return t, *motion(0)(t)


def test_permuted_torque_columns_are_reported_as_unexplained():
    t, q, tau = recorded()
    assert not fit(robots()[0], Measurements(t, q, tau[:, ::-1])).explained


def test_joints_with_nan_torques_are_skipped():
    t, q, tau = recorded()
    found = fit(robots()[0], Measurements(t, q, np.where([True, True, False], tau, np.nan)))
    assert found.joints == (0, 1) and len(found.friction) == 2 and np.all(found.validation_error < 1.2 * NOISE[:2])


def test_drive_gains_and_their_signs_are_fitted_from_currents():
    """Ratios and signs of gains are determined by the currents, their common factor by the mass of the URDF."""
    t, q, tau = recorded()
    gains = np.array([80.0, -50.0, 20.0])
    found = fit(robots()[0], Measurements(t, q, tau / gains), currents=True)
    shares = found.gains.values / gains
    assert np.ptp(shares) < 0.12 * shares.mean() and 0.7 < shares.mean() < 1.3
    assert np.all(np.abs(np.log(shares) - np.log(shares).mean()) < 3.0 * found.gains.deviations)
    assert np.all(found.validation_error < 1.3 * NOISE * shares) and found.explained
    file = result_files.robot_file(found, {"version": 1, "drives": {"j2": {"gear_ratio": 1.0, "efficiency": 0.8}}})
    assert file.section("drives")["j2"]["torque_constant"] == pytest.approx(-found.gains.values[1] / 0.8, rel=1e-5)
    again = rnea_ros.load(URDF, file.content)
    for robot in (found.robot, again):
        efforts = robot.model.efforts.measured
        assert efforts.quantity == "current" and efforts.per_unit == pytest.approx(found.gains.values, rel=1e-5)
    next_run = fit(again, Measurements(t, q, tau / gains))
    assert next_run.gains is None and np.all(next_run.validation_error < 1.3 * NOISE * shares)
    with pytest.raises(InputError, match="contains is without_gravity"):
        fit(rnea_ros.load(URDF, {"version": 1, "effort_convention": "without_gravity"}), Measurements(t, q, tau),
            currents=True)
    assert "torque per unit of effort: j1" in identify_cli.summary(found) and result_files.as_json(found)["gains"]["j2"] < 0.0


def test_efforts_follow_the_convention_of_the_robot_file():
    t, q, tau = recorded()
    robot = rnea_ros.load(URDF, {"version": 1, "measured_effort": {"reversed": ["j2"]}})
    found = fit(robot, Measurements(t, q, tau * [1.0, -1.0, 1.0]))
    np.testing.assert_allclose(found.validation_error, fitted().validation_error, rtol=1e-6)
    assert result_files.robot_file(found, {"measured_effort": {"reversed": ["j2"]}}).content["measured_effort"] == {
        "reversed": ["j2"]}


def test_effort_of_an_unmeasured_joint_stays_a_torque():
    """The written robot file can be loaded."""
    t, q, tau = recorded()
    found = fit(robots()[0], Measurements(t, q, tau / [80.0, -50.0, np.nan]), currents=True)
    again = rnea_ros.load(URDF, result_files.robot_file(found, {}).content)
    assert again.model.efforts.measured.per_unit == pytest.approx((*found.gains.values, 1.0), rel=1e-5)


# ---------------------------------------------------------------------- two links: several recordings, units, signs, rotors

PLANAR = arm({"axis": (0, 1, 0), "xyz": (0, 0, 0.3)}, {"axis": (0, 1, 0), "xyz": (0.4, 0, 0)})


@cache
def planar():
    """Return the robot with Coulomb and viscous friction, time, and motion."""
    t = np.arange(0.0, 12.0, 0.02)
    q, qd, qdd, _ = FourierMotion(6.0, np.zeros(2), *(0.6 * np.random.default_rng(1).normal(size=(2, 3, 2))))(t)
    return Robot.from_urdf(PLANAR), t, q, qd, qdd


def planar_recording(rotors=(0.0, 0.0), payload=None, scale=(1.0, 1.0), seed=0):
    """Return exact motion and torques with noise of 0.05 N m, times a scale."""
    robot, t, q, qd, qdd = planar()
    true = robot.with_joint_dynamics({name: JointDynamics(rotor, 1.0, 1.5, 0.8, smoothing=0.02)
                                      for name, rotor in zip(robot.joint_names, rotors)})
    true = true.with_payload(*payload) if payload else true
    tau = true.inverse_dynamics(q, qd, qdd) + 0.05 * np.random.default_rng(seed).normal(size=q.shape)
    return Measurements(t, q, tau * scale, qd, qdd)


@cache
def with_rotors():
    return fit(planar()[0], planar_recording((8.0, 0.5)))


def test_link_masses_do_not_absorb_inseparable_rotor_inertias():
    found = with_rotors()
    links = [(old, new) for old, new in zip(planar()[0].model.links, found.robot.model.links) if old.joint]
    for old, new in links:
        assert new.m == pytest.approx(old.m, rel=0.1)
    assert [new.term.armature for _, new in links] == pytest.approx([8.0, 0.5], abs=0.1)
    assert np.all(found.validation_error < 0.06) and np.all(found.urdf_error > 0.5)
    assert result_files.inseparable_rotors(found) == ("j1",)


def test_absent_friction_terms_are_not_selected():
    assert [model.description for model in with_rotors().friction] == ["Coulomb, viscous"] * 2


@cache
def planar_with_friction(smoothing, seed):
    """Fit a recording in which j1 has a Stribeck term and j2 only Coulomb and viscous friction."""
    robot, t, _, _, _ = planar()
    q, qd, qdd, _ = FourierMotion(6.0, np.zeros(2), *(0.6 * np.random.default_rng(10 + seed).normal(size=(2, 3, 2))))(t)
    terms = {"coulomb": 5.0, "viscous": 3.0, "smoothing": smoothing}
    true = robot.with_joint_dynamics({"j1": JointDynamics(**terms, stribeck=2.5, stribeck_velocity=0.15),
                                      "j2": JointDynamics(**terms)})
    tau = true.inverse_dynamics(q, qd, qdd) + 0.1 * np.random.default_rng(seed).normal(size=q.shape)
    return fit(robot, Measurements(t, q, tau, qd, qdd))


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("smoothing", [0.003, 0.015, 0.03])
def test_stribeck_friction_is_selected_only_where_present(smoothing, seed):
    first, second = planar_with_friction(smoothing, seed).friction
    assert first.stribeck_velocity == pytest.approx(0.15, rel=0.2)
    assert second.description == "Coulomb, viscous" and second.smoothing == pytest.approx(smoothing, rel=0.3)


def test_summary_shows_errors_before_and_after_with_units():
    text = identify_cli.summary(with_rotors())
    lines = [line.split() for line in text.splitlines()]
    head, first = next(pair for pair in pairwise(lines) if pair[0][:1] == ["joint"])
    assert head[:3] == ["joint", "unit", "RMS"] and first[:3] == ["j1", "N", "m"]
    numbers = [float(word) for word in first[3:6]]
    found = with_rotors()
    assert numbers == pytest.approx([found.rms[0], found.urdf_error[0], found.validation_error[0]], rel=1e-2)
    assert "rotor inertia of j1" in text and "total mass" in text


def test_joint_with_torques_in_other_units_is_excluded_from_the_fit():
    scaled = planar_recording(scale=(0.01, 1.0))
    found = fit(planar()[0], scaled)
    assert [one.joint for one in found.excluded] == ["j1"] and found.joints == (1,) and found.validation_error[0] < 0.06
    assert not fit(planar()[0], scaled, exclude=False).excluded
    assert "--no-torque j1" in identify_cli.summary(found)


def test_reversed_efforts_are_detected_and_written():
    found = fit(planar()[0], planar_recording(scale=(-1.0, -1.0)))
    assert found.explained and found.reversed == ("j1", "j2") and np.all(found.validation_error < 0.06)
    again = rnea_ros.load(PLANAR, result_files.robot_file(found, {}).content)
    assert again.model.efforts.measured.per_unit == (-1.0, -1.0)


@pytest.mark.parametrize("rotor, com", [(0.0, 0.01), (0.2, 0.01), (0.2, -0.01)])
def test_friction_determines_the_sign_of_a_joint_without_load(rotor, com):
    """The torque of a rotor resembles the URDF's torque with either sign."""
    end = (f'<link name="l2"><inertial><origin xyz="0 0 {com}"/><mass value="1e-4"/>'
           '<inertia ixx="1e-8" ixy="0" ixz="0" iyy="1e-8" iyz="0" izz="1e-8"/></inertial></link>')
    light = Robot.from_urdf(re.sub('<link name="l2">.*?</link>', end, PLANAR, flags=re.DOTALL))
    _, t, q, qd, qdd = planar()
    true = light.with_joint_dynamics({name: JointDynamics(rotor, 1.0, 1.5, 0.8, smoothing=0.02) for name in light.joint_names})
    noise = 0.05 * np.random.default_rng(1).normal(size=q.shape)
    found = fit(light, Measurements(t, q, noise - true.inverse_dynamics(q, qd, qdd), qd, qdd))
    assert found.explained and found.reversed == light.joint_names


@pytest.mark.parametrize("limit, reported", [(1.0, True), (1e4, False)])
def test_summary_warns_of_torque_beyond_the_effort_limit_of_the_urdf(limit, reported):
    robot = rnea_ros.load(PLANAR, {"version": 1, "limits": {"j1": {"max_effort": limit}}})
    text = identify_cli.summary(replace(with_rotors(), before=robot))
    assert ("warning: measured torque of j1 has an RMS of" in text and "--no-torque j1" in text) == reported


def test_recordings_with_and_without_payload_are_fitted_together():
    payload = ("l2", 2.0, (0.3, 0.0, 0.0))
    loaded = replace(planar_recording(payload=payload, seed=1), payloads={"l2": payload[1:]})
    found = fit(planar()[0], [planar_recording(), loaded])
    assert found.equations > 1.8 * fit(planar()[0], loaded).equations
    assert np.all(found.validation_error < 0.06) and found.robot.total_mass == pytest.approx(planar()[0].total_mass, rel=0.1)
    with pytest.raises(InputError, match="the same joints are needed in all"):
        fit(planar()[0], [loaded, replace(loaded, tau=loaded.tau * [1.0, np.nan])])


def test_coupled_motor_inertia_and_friction_are_identified_and_written():
    t, q, _ = recorded()
    term = JointDynamics(rotor_inertia=2.5e-4, coulomb=0.1, viscous=2.5e-3, smoothing=0.4)
    motor = CoupledMotor("wrist.m3", (1, 2), (20.0, -20.0), term)
    tau = robots()[1].with_coupled_motors([motor]).inverse_dynamics(*motion(0)(t)[:3])
    section = {"wrist": {"joints": ["j2", "j3"], "motors": {"m2": {"ratios": [10.0, 0.0]}, "m3": {"ratios": [20.0, -20.0]}}}}
    robot = rnea_ros.load(URDF, {"version": 1, "couplings": section})
    found = fit(robot, Measurements(t, q, tau + np.random.default_rng(1).normal(size=q.shape) * NOISE))
    assert np.all(found.validation_error < 1.2 * NOISE) and found.explained
    own, coupled = found.robot.model.coupled_motors
    assert own.term.rotor_inertia == own.term.coulomb == 0.0, "joint j2 alone turns it: it is the rotor of j2"
    assert [coupled.term.rotor_inertia, coupled.term.coulomb, coupled.term.viscous] == pytest.approx(
        [term.rotor_inertia, term.coulomb, term.viscous], rel=0.1)
    assert any("load" not in model.description for model in found.friction[1:])
    written = rnea_ros.load(URDF, result_files.robot_file(found, {"couplings": section}).content)
    assert written.model.coupled_motors[1].term.rotor_inertia == pytest.approx(coupled.term.rotor_inertia, rel=1e-5)
    assert "coupled motor wrist.m3: rotor inertia 0.000" in identify_cli.summary(found)
    assert "wrist.m2" not in identify_cli.summary(found)
    with pytest.raises(InputError, match="couplings: unknown gains of motors that turn with several joints"):
        fit(robot, Measurements(t, q, tau), currents=True)


def test_undeclared_joint_coupling_is_reported_as_suspected():
    """The coupling of joints 2 and 3 is found in noise although their friction terms have absorbed part of it; other joints
    are not reported.
    """
    rng, t = np.random.default_rng(2), np.arange(0.0, 30.0, 0.005)
    w, phase = rng.uniform(0.5, 3.0, (2, 3))
    qd, qdd = np.sin(w * t[:, None] + phase), w * np.cos(w * t[:, None] + phase)
    noise = 0.2 * rng.normal(size=qd.shape)
    assert not suspected_couplings(qd, qdd, noise - 0.3 * np.sign(qd), ["a", "b", "c"])
    for sign in (1, -1):
        motor = np.sign(qd[:, 1] + sign * qd[:, 2]) + 0.5 * (qd[:, 1] + sign * qd[:, 2])
        errors = noise + np.column_stack((0.0 * motor, motor - 0.8 * qd[:, 1], sign * motor - qd[:, 2]))
        (found,) = suspected_couplings(qd, qdd, errors, ["a", "b", "c"])
        assert found.joints == ("b", "c") and found.sign == sign and min(found.factors) > 1.5
        assert found.option == ("b,c" if sign > 0 else "b,c=-1")


def test_couple_option_declares_coupled_motors():
    section = identify_cli.coupled_joints(["j2=45,j3=-32", "j1, j2"])
    assert [list(one["motors"]["motor"]["ratios"]) for one in section.values()] == [[45.0, -32.0], [1.0, 1.0]]
    assert [one["joints"] for one in section.values()] == [["j2", "j3"], ["j1", "j2"]]
    with pytest.raises(InputError, match="--couple j2=x,j3: joint names"):
        identify_cli.coupled_joints(["j2=x,j3"])


def test_unmeasured_joint_at_rest_adds_no_base_parameters():
    """The base parameters are those of the robot with that joint fixed."""
    robot, t, q, qd, qdd = planar()
    moving = np.array([0.0, 1.0])
    tau = robot.inverse_dynamics(q * moving, qd * moving, qdd * moving)
    found = fit(robot, Measurements(t, q * moving, tau * [np.nan, 1.0], qd * moving, qdd * moving))
    assert len(found.base) - len(found.friction[0].kinds) == 3, "of one link: its inertia about the axis, two first moments"
    assert found.robot.model.links[1].m == robot.model.links[1].m


def test_joint_without_measured_torque_is_skipped(tmp_path, capsys):
    """Joints are skipped by name or pattern, and without an option if a column is missing or has no numbers."""
    robot, t, q, *_ = planar()
    table, names = np.column_stack((t, q, planar_recording().tau)), ["t", "q_j1", "q_j2", "tau_j1", "tau_j2"]
    np.savetxt(tmp_path / "all.csv", table, delimiter=",", header=",".join(names), comments="")
    np.savetxt(tmp_path / "missing.csv", np.delete(table, 3, 1), delimiter=",", header=",".join(np.delete(names, 3)),
               comments="")
    np.savetxt(tmp_path / "nan.csv", table * [1, 1, 1, np.nan, 1], delimiter=",", header=",".join(names), comments="")
    for name, options in (("all", ["j1"]), ("all", ["*1"]), ("missing", []), ("nan", [])):
        found = inputs.read_measurements(tmp_path / f"{name}.csv", robot, ReadingOptions(), options)
        assert np.isnan(found.tau[:, 0]).all() and found.tau[:, 1] == pytest.approx(table[:, 4])
        assert ("no torque of j1" in capsys.readouterr().err) == (name != "all")
    with pytest.raises(InputError, match="--no-torque j9: no such joint"):
        inputs.read_measurements(tmp_path / "all.csv", robot, ReadingOptions(), ["j9"])
    assert ReadingOptions(held=(("wheel_*", 0.0), ("wheel_2", 0.5))).held_joints(("arm", "wheel_1", "wheel_2")) == {
        "wheel_1": 0.0, "wheel_2": 0.5}


def test_invalid_recordings_and_options_are_rejected():
    t, q, tau = recorded()
    for message, recording, options in (
            ("held_out is 1.0", (t, q, tau), {"held_out": 1.0}), ("rate 0", (t, q, tau), {"rate": 0.0}),
            ("too few for", (t, q, tau), {"rate": 0.5}), ("64 are the fewest", (t[:30], q[:30], tau[:30]), {}),
            ("the torque of j1, j2, j3 never changes", (t, q, 0.0 * tau), {}),
            ("no joint has a finite torque", (t, q, tau * np.nan), {}), ("tau .4800, 2.", (t, q, tau[:, :2]), {})):
        with pytest.raises(InputError, match=message):
            fit(robots()[0], Measurements(*recording), **options)


# ---------------------------------------------------------------------- recordings of drivers

def test_repeated_readings_are_dropped_and_times_are_even():
    """Encoders are read every 34 ms and published every 33.3 ms: stamps are up to a period off, and some readings repeat."""
    read = np.arange(0.0, 24.0, 0.034)
    t = np.arange(0.05, 23.9, 1.0 / 30.0)
    last = np.searchsorted(read, t) - 1
    q, *_ = motion(0)(read)
    found = prepare(t, q[last], q[last] * 2.0)
    assert "repeat the reading before" in found.notes[0] and "even times, 34 ms apart" in found.how.method
    inner = slice(30, -30)
    true = np.array([motion(0)(read[np.flatnonzero((q == row).all(axis=1))])[1][0] for row in found.q[inner]])
    assert np.abs(found.qd[inner] - true).max() < 0.05 * np.abs(true).max()


def test_valid_time_stamps_are_kept_and_decreasing_ones_removed():
    t, q, tau = recorded()
    lost = np.random.default_rng(0).random(len(t)) > 0.02
    found = prepare(t[lost], q[lost], tau[lost])
    assert not found.notes and set(found.t) <= set(t)
    backwards = prepare(np.insert(t, 10, 0.0), np.insert(q, 10, 7.0, axis=0), np.insert(tau, 10, 7.0, axis=0))
    assert "do not increase" in backwards.notes[0] and not (backwards.q == 7.0).any()


def test_correlation_factor_grows_with_the_correlation_of_residuals():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20_000)
    assert correlation_factor(noise) == pytest.approx(1.0, abs=0.1)
    slow = np.convolve(noise, np.ones(10), "valid")
    assert correlation_factor(slow) == pytest.approx(10.0, rel=0.2)


# ---------------------------------------------------------------------- friction

def test_friction_model_columns_match_joint_dynamics_and_their_rate():
    """A friction model and JointDynamics give the same torque; the torque rate is its derivative."""
    qd = np.linspace(-1.0, 1.0, 41)
    rng = np.random.default_rng(0)
    bare = Robot.from_model(robots()[0].model, "reference")
    for model in list(candidates(1.0))[::15]:
        values = rng.uniform(0.1, 1.0, len(model.kinds))
        robot = Robot.from_model(bare.model.with_joint_dynamics({"j1": JointDynamics(**model.terms(values))}), "reference")
        x = np.zeros((41, 3))
        moving = x + qd[:, None] * [1.0, 0.0, 0.0]
        extra = robot.inverse_dynamics(x, moving, x) - bare.inverse_dynamics(x, moving, x)
        assert extra[:, 0] == pytest.approx(model.columns(qd) @ values, abs=1e-12)


def test_friction_torque_rate_matches_finite_differences():
    term = JointDynamics(0.1, 1.0, 2.0, 1.0, 0.3, 0.05, -1.2, 0.2, -0.7)
    robot = Robot.from_model(robots()[0].model.with_joint_dynamics({"j2": term}))
    for now in (0.3, 1.7, 2.9):
        blocks = [block[0] for block in motion(1)(np.array([now]))]
        slope = difference(lambda h, now=now: robot.inverse_dynamics(*(b[0] for b in motion(1)(np.array([now + h]))[:3])))
        assert robot.torque_and_rate(*blocks)[1] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_friction_that_does_not_oppose_motion_is_rejected():
    for wrong in ({"stribeck": -1.0}, {"coulomb": 1.0, "stribeck": -1.5}, {"viscous": 0.1, "asymmetry": 0.2}):
        with pytest.raises(InputError, match="friction must oppose motion"):
            JointDynamics(**wrong)
    with pytest.raises(InputError, match="stribeck_velocity is 0"):
        JointDynamics(stribeck_velocity=0)
    with pytest.raises(rnea_ros.ModelError, match=r"(?s)stribeck is -2.*asymmetry is 1") as error:
        rnea_ros.load(URDF, {"version": 1, "friction": {"j1": {"coulomb": 1.0, "stribeck": -2.0, "asymmetry": 1.0}}})
    assert "-coulomb, -1" in str(error.value)


def test_friction_model_description_lists_its_terms():
    assert FrictionModel(0.1, 0.3, True).description == "Coulomb, viscous, Stribeck, asymmetric"


# ---------------------------------------------------------------------- command line

def arguments(*words):
    parser = argparse.ArgumentParser()
    identify_cli.add_identify_arguments(parser)
    parser.set_defaults(command="identify")
    return parser.parse_args([str(word) for word in words])


def test_identify_command_writes_the_identified_robot(tmp_path, capsys):
    """The written robot is the reported one, with and without a robot file."""
    (tmp_path / "robot.urdf").write_text(URDF)
    file = "version: 1\nlimits: {j1: {max_effort: 90.0}}\ndrives: {j2: {gear_ratio: 100.0}}\n"
    (tmp_path / "robot.yaml").write_text(file)
    write_csv(tmp_path / "motion.csv", *recorded(), words=("position_", "effort_"))
    given = (tmp_path / "robot.urdf", tmp_path / "motion.csv", "--rename", "position_=q_", "effort_=tau_")
    assert print_outcome(identify_cli.run_identify(arguments(*given, "--robot-file", tmp_path / "robot.yaml", "-o", tmp_path /
                                                             "out"))) == 0
    printed = capsys.readouterr()
    assert "columns not used: 'temperature'" in printed.err and "a physical robot explains the recording" in printed.out
    assert "estimated by Kalman smoothing" in printed.out and "Coulomb, viscous" in printed.out
    out = tmp_path / "out"
    robot = rnea_ros.load(out / result_files.URDF, out / result_files.ROBOT_FILE)
    assert robot.limits.effort[0] == 90.0
    q, qd, qdd, _ = motion(5)(np.linspace(0.0, 8.0, 100))
    tau = fitted().robot.inverse_dynamics(q, qd, qdd)
    assert np.abs(robot.inverse_dynamics(q, qd, qdd) - tau).max() < 1e-3 * np.abs(tau).max()
    numbers = json.loads((out / result_files.NUMBERS).read_text())
    assert numbers["explained"] and numbers["joints"]["j1"]["error_validation"] < 1.2 * NOISE[0]
    assert numbers["links"].keys() == {"l1", "l2", "l3"} and len(numbers["base_parameters"]) == len(fitted().base)
    page = (out / result_files.REPORT).read_text()
    for words in ("![Measured torques", "## Bodies", "## Undetermined parameters",
                  "No torque depends on"):
        assert words in page
    assert all((out / name).stat().st_size > 20_000 for name in (result_files.TORQUES, result_files.FRICTION))


def test_identify_command_reports_unexplained_recordings_and_wrong_arguments(tmp_path, capsys):
    (tmp_path / "robot.urdf").write_text(URDF)
    t, q, qd, qdd, *_ = t_and_motion()
    write_csv(tmp_path / "motion.csv", t, q, robots()[0].inverse_dynamics(q, qd, qdd)[:, ::-1])
    given = (tmp_path / "robot.urdf", tmp_path / "motion.csv")
    assert print_outcome(identify_cli.run_identify(arguments(*given, "--keep-all"))) == 1
    assert "NO physical robot explains the recording" in capsys.readouterr().out
    for message, words in ((r"--rename tau: OLD=NEW", ("--rename", "tau")),
                           (r"--hold j9: no such joint; the joints are", ("--hold", "j9")),
                           (r"--hold j1=far: a position", ("--hold", "j1=far")), ("is a file", ("-o", given[1])),
                           ("no column 'tau_j1'", ("--rename", "tau_=effort_"))):
        with pytest.raises(InputError, match=message):
            identify_cli.run_identify(arguments(*given, *words))
    held = inputs.read_measurements(given[1], robots()[0], ReadingOptions(held=(("j3", 0.4),)))
    assert np.all(held.q[:, 2] == 0.4) and np.isnan(held.tau[:, 2]).all() and np.isfinite(held.tau[:, :2]).all()

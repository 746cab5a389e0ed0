"""Limit shares for planning under model uncertainty, against simulated plants. Campaign: benchmark/margins.py."""

import sys
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import InputError, limits_share, retime_motion
from rnea_ros.cli.main import main
from rnea_ros.trajectory.margin import ModelUncertainty
from support.plant import Plant, panda

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmark"))
import margins  # the same cases, all of them


@pytest.fixture(scope="module")
def bare():
    return margins.robot(False)


@pytest.fixture(scope="module")
def motions():
    return margins.motions(1, seed=5)


@pytest.mark.parametrize(("name", "kind"), [("all masses 5 %", margins.Mujoco), ("payload of 1 kg", margins.Plant),
                                            ("encoder 2^-20, velocity 60 Hz", margins.Plant)])
def test_predicted_limit_share_matches_simulated_plants(bare, motions, name, kind):
    if kind is margins.Mujoco:
        pytest.importorskip("mujoco")
    uncertainties = margins.UNCERTAINTIES[name]
    found = limits_share(bare, motions, uncertainties).shares
    needed = np.min([margins.needed(bare, motion, plant, uncertainties) for plant in margins.plants(uncertainties, kind=kind)
                     for motion in motions], axis=0)
    assert np.abs(found - needed).max() < 0.03


def test_limit_share_decreases_with_the_uncertainty(bare, motions):
    shares = [limits_share(bare, motions, ModelUncertainty(masses=0.0, all_masses=x)).shares for x in (0.0, 0.05, 0.1)]
    assert shares[0] == (1.0, 1.0)
    assert shares[1].effort > shares[2].effort and shares[1].effort_rate > shares[2].effort_rate
    both = limits_share(bare, motions, ModelUncertainty(masses=0.05, payload=1.0, link=margins.HAND))
    assert set(both.by_source) == {"masses", "payload"}
    assert both.shares.effort < min(one.effort for one in both.by_source.values())


def test_motion_with_the_limit_share_keeps_the_torque_rate_with_coulomb_friction():
    pytest.importorskip("mujoco")
    arm = margins.PANDA._replace(coulomb=5.0 * margins.PANDA.coulomb)
    points = margins.REST + margins.RANGE * np.random.default_rng(4).uniform(-1.0, 1.0, (2, 7))
    robot = margins.robot(True, arm)
    advised = limits_share(robot, [retime_motion(robot, points)], ModelUncertainty(masses=0.0, friction=0.3)).shares
    plant = margins.Mujoco(arm.urdf, 1.0, 1.3 * arm.coulomb, 1.3 * arm.viscous)
    motion = retime_motion(robot, points, limits=robot.limits.share(*advised))
    used = margins.commanded(robot, motion, plant, ModelUncertainty())
    assert margins.use(robot, used)[1] < 1.03  # 1.10 without the steps of Coulomb friction


def test_with_masses_scales_each_link(bare):
    factors = np.random.default_rng(0).uniform(0.8, 1.2, len(bare.moving_joints))
    other, plant = bare.with_masses(factors), Plant(panda(), factors[:7])
    q, v, tau = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 7))
    after = plant.step(1e-6, q, v, tau)[1]
    assert np.allclose((after - v) / 1e-6, other.forward_dynamics(q, v, tau), rtol=1e-4, atol=1e-4)
    assert other.total_mass != bare.total_mass and bare.with_masses(np.ones(7)).total_mass == pytest.approx(bare.total_mass)


def test_incomplete_requests_for_margins_are_rejected(bare, motions):
    with pytest.raises(InputError, match="the link that may carry 1 kg is needed"):
        limits_share(bare, motions, ModelUncertainty(payload=1.0))
    with pytest.raises(InputError, match="motions are needed"):
        limits_share(bare, [], ModelUncertainty())
    with pytest.raises(InputError, match=r"the share of the effort rate limits is 1\.5"):
        bare.limits.share(0.9, 1.5)


def test_margin_command_reports_the_limit_share(tmp_path, capsys):
    assert main(["margin", "urdf/stanford.urdf", "--masses", "0.1"]) == 0
    said = capsys.readouterr().out
    assert "masses" in said and "plan with --limits-share 0." in said


def test_limits_share_parameters_scale_the_limits_of_scaling_node(bare):
    joints = pytest.importorskip("rnea_ros.nodes.common.model_facts", exc_type=ImportError)
    values = joints.joint_parameters(bare)
    whole = joints.joint_limits(values, bare)
    some = joints.joint_limits(values | {"limits_share.effort": 0.9, "limits_share.effort_rate": 0.8}, bare)
    assert np.allclose(some.effort, 0.9 * whole.effort) and np.allclose(some.effort_rate, 0.8 * whole.effort_rate)
    assert np.array_equal(some.velocity, whole.velocity) and whole.effort[0] == 87.0

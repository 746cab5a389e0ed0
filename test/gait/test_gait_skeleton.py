"""Skeleton with 55 degrees of freedom: joint counts, masses, centres of mass and inertias match the published tables."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import InputError, Robot
from rnea_ros.gait.skeleton import MEAN_STATURE, SEGMENT_TABLE, SIDES, Human
from support.oracles import PinocchioOracle

LIMBS = ("upper_arm", "forearm", "hand", "thigh", "shank")
GROUPS = {"head": ("neck", "head"), "upper trunk": ("thorax", "right_clavicle", "left_clavicle"),
          "middle trunk": ("l3", "t12"), "lower trunk": ("pelvis", "l5"),
          **{name.replace("_", " "): (f"left_{name}",) for name in LIMBS}, "foot": ("right_foot", "right_toes")}
# Proximal end of each segment when standing upright: its frame, and the offset from that frame in segment lengths.
ENDS = {"head": ("neck", 1.0), "upper trunk": ("thorax", 1.0), "middle trunk": ("l3", 1.0), "lower trunk": ("pelvis", 1.0)}


def standing(human):
    model = pin.buildModelFromXML(human.urdf)
    data, q = model.createData(), np.zeros(model.nq)
    pin.forwardKinematics(model, data, q)
    pin.updateFramePlacements(model, data)
    return model, data, q


def test_skeleton_has_the_joints_of_the_spine_and_a_free_root():
    robot = Robot.from_urdf(Human(frozen=()).urdf, backend="python")
    assert robot.n == 55 and not robot.warnings
    sides = {side: [name for name in robot.joint_names if name.startswith(side)] for side in SIDES}
    legs = [name for name in sides["right"] if any(part in name for part in ("hip", "knee", "ankle", "subtalar", "toe"))]
    assert [len(names) for names in sides.values()] == [16, 16] and len(legs) == 7
    assert sum(name.startswith(("c7", "c1")) for name in robot.joint_names) == 5
    assert sum(name.startswith(("l5s1", "l4l3", "t12l1", "t9t8")) for name in robot.joint_names) == 12
    assert robot.joint_types[:6] == ("prismatic",) * 3 + ("revolute",) * 3
    assert np.isnan(robot.limits.effort[:6]).all() and (robot.limits.effort[6:] > 0.0).all()


def test_frozen_joints_can_be_chosen():
    human = Human()
    assert len(human.frozen_axes) == 16  # upper spine 3, neck 5, clavicles 4, wrists 4
    assert Robot.from_urdf(human.urdf, backend="python").n == 39
    assert Robot.from_urdf(Human(frozen=("right_",)).urdf, backend="python").n == 39
    with pytest.raises(InputError, match="'tail'"):
        Human(frozen=("tail",))


@pytest.mark.parametrize("person", [Human(frozen=()), Human(1.62, 58.0, "female"), Human(1.95, 110.0)], ids=str)
def test_segments_have_the_published_mass_center_and_inertia(person):
    """Bodies of each segment are combined again before the comparison."""
    scale, table = person.stature / MEAN_STATURE[person.sex], SEGMENT_TABLE[person.sex]
    model, data, _q = standing(Human(person.stature, person.mass, person.sex, frozen=()))
    assert np.isclose(pin.computeTotalMass(model), person.mass, rtol=1e-12)
    shares = sum(row.mass * (1 + (name.replace(" ", "_") in (*LIMBS, "foot"))) for name, row in table.items())
    assert abs(shares - 1.0) < 2e-4  # as published
    for name, links in GROUPS.items():
        row, length = table[name], table[name].length * scale
        whole = pin.Inertia.Zero()
        for link in links:
            frame = model.frames[model.getBodyId(link)]
            whole += data.oMi[frame.parentJoint].act(frame.placement.act(person_inertia(model, link)))
        assert np.isclose(whole.mass, row.mass / shares * person.mass, rtol=1e-12), name
        sagittal, transverse, longitudinal = (whole.mass * (radius * length) ** 2 for radius in row.radii)
        axes = (longitudinal, transverse, sagittal) if name == "foot" else (sagittal, transverse, longitudinal)
        assert np.allclose(whole.inertia, np.diag(axes), rtol=1e-10, atol=1e-12), name
        first = data.oMf[model.getBodyId(ENDS.get(name, (links[0],))[0])].translation
        if name == "foot":
            assert np.isclose(whole.lever[0] - (first[0] + person.sole[0]), row.centre * length)
        else:
            end = first[2] + (length if name in ENDS else 0.0)
            assert np.isclose(end - whole.lever[2], row.centre * length), name


def person_inertia(model, link):
    """Return the inertia of one link in its own frame; a Pinocchio joint contains all links that move with it."""
    return next(inertia for name, inertia in bodies(model) if name == link)


def bodies(model):
    for joint in range(1, model.njoints):
        names = [frame.name for frame in model.frames if frame.parentJoint == joint and frame.type == pin.FrameType.BODY]
        yield names[0], model.inertias[joint]


@pytest.mark.parametrize("sex", MEAN_STATURE)
def test_inertias_of_all_bodies_are_physical(sex):
    for name, body in Human(sex=sex).bodies.items():
        moments = np.linalg.eigvalsh(body.inertia)
        assert moments[0] > 0.0 and moments[0] + moments[1] > moments[2], name


def test_skeleton_stands_on_the_floor():
    human = Human()
    model, data, q = standing(human)
    centre = pin.centerOfMass(model, data, q)
    assert abs(centre[1]) < 1e-12 and abs(centre[0]) < 0.01
    assert 0.54 < (centre[2] + human.standing_height) / human.stature < 0.60  # women 0.54 to 0.56, men 0.56 to 0.58 lying
    lowest = min(data.oMf[model.getFrameId(name)].translation[2] for name in human.points if "toe" in name or "heel" in name)
    assert np.isclose(lowest, -human.standing_height)


def test_equal_coordinates_of_both_sides_are_mirrored_postures():
    human = Human(frozen=())
    robot = Robot.from_urdf(human.urdf, backend="python")
    q = dict.fromkeys(robot.joint_names, 0.0)
    for k, name in enumerate(n for n in robot.joint_names if n.startswith("right_")):
        q[name] = q[name.replace("right_", "left_")] = 0.1 + 0.02 * k
    model = pin.buildModelFromXML(human.urdf)
    data = model.createData()
    pin.framesForwardKinematics(model, data, np.array([q[name] for name in model.names[1:]]))
    for name in (n for n in human.points if n.startswith("right_")):
        pair = [human.points[n] for n in (name, name.replace("right_", "left_"))]
        right, left = (data.oMf[model.getBodyId(point.link)].act(point.position) for point in pair)
        assert np.allclose(right * (1.0, -1.0, 1.0), left, atol=1e-12), name


def test_positive_joint_angles_flex_the_joints():
    """Hip flexion moves the ankle forward, knee flexion backward."""
    human = Human()
    robot = Robot.from_urdf(human.urdf, backend="python")
    model = pin.buildModelFromXML(human.urdf)
    moved = {"right_hip_flexion": ("right_foot", 0, 1), "left_knee_flexion": ("left_foot", 0, -1),
             "right_ankle_dorsiflexion": ("right_toes", 2, 1), "left_shoulder_flexion": ("left_hand", 0, 1),
             "right_elbow_flexion": ("right_hand", 0, 1), "left_hip_adduction": ("left_foot", 1, -1),
             "right_hip_adduction": ("right_foot", 1, 1), "l5s1_extension": ("head", 0, -1), "pelvis_tilt": ("head", 0, -1)}
    for joint, (link, axis, sign) in moved.items():
        heights = []
        for angle in (0.0, 0.1):
            q = np.zeros(robot.n)
            q[model.joints[model.getJointId(joint)].idx_q] = angle
            data = model.createData()
            pin.framesForwardKinematics(model, data, q)
            heights.append(data.oMf[model.getBodyId(link)].translation[axis])
        assert sign * (heights[1] - heights[0]) > 1e-3, joint


def test_torques_of_the_skeleton_equal_pinocchio():
    human = Human()
    robot = Robot.from_urdf(human.urdf)
    oracle, rng = PinocchioOracle(human.urdf, robot), np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 5, robot.n))
    for k in range(5):
        expected = oracle.torque(q[k], qd[k], qdd[k], {})
        assert np.abs(robot.inverse_dynamics(q, qd, qdd)[k] - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("given, words", [({"stature": 0.5}, "stature is 0.5"), ({"mass": 1e4}, "mass is 10000"),
                                          ({"sex": "?"}, "there are tables for male and female")])
def test_invalid_skeleton_arguments_are_rejected(given, words):
    with pytest.raises(InputError, match=words):
        Human(**given)

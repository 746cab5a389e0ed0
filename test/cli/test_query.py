"""`rnea query`: results equal to the library's, and error messages with examples."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import BaseState, InputError, Loads, Robot, load
from rnea_ros.algorithms.inertial_parameters import base_parameters
from rnea_ros.cli import query as query_cli
from rnea_ros.cli.output import print_outcome
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
RR = str(ROOT / "urdf" / "rr.urdf")
STANFORD = str(ROOT / "urdf" / "stanford.urdf")
MOTION = str(ROOT / "test" / "data" / "stanford_motion.csv")
OTHER_KINDS = {"loops", "platform", "platform-joints", "motors"}  # test_questions.py asks these


@pytest.fixture
def query(capsys, monkeypatch):
    """Return query(file, question, state, options...) -> parsed output."""

    def ask(urdf, question, state=None, *options):
        parser = argparse.ArgumentParser()
        query_cli.add_query_arguments(parser)
        arguments = [urdf, question, *options]
        if state is not None:
            monkeypatch.setattr("sys.stdin", io.StringIO(state if isinstance(state, str) else json.dumps(state)))
            arguments += ["--state", "-"]
        assert print_outcome(query_cli.run_query(parser.parse_args(arguments))) == 0
        return json.loads(capsys.readouterr().out or "null")

    return ask


@pytest.fixture
def body(tmp_path):
    """Return the URDF of a robot whose base has mass."""
    file = tmp_path / "arm.urdf"
    joints = {"axis": (0, 1, 0)}, {"kind": "prismatic", "xyz": (0.1, 0, 0.3)}, {"kind": "continuous", "rpy": (1, 0, 0)}
    file.write_text(arm(*joints))
    return str(file)


@pytest.fixture
def motion():
    return np.random.default_rng(3).uniform(-1.0, 1.0, (5, 4, 3))  # q, qd, qdd, qddd, tau of four samples


def samples(motion, order=slice(None)):
    names = ("position", "velocity", "acceleration", "jerk", "effort")
    return [{name: rows[k][order].tolist() for name, rows in zip(names, motion, strict=True)} for k in range(motion.shape[1])]


def test_every_question_equals_the_library(query, body, motion):
    robot, floating = Robot.from_urdf(body), load(body, base="floating")
    q, qd, qdd, qddd, tau = motion
    state = {"samples": samples(motion), "of_rate": True}
    dynamics, free = robot.dynamics(q, qd, qdd, qddd), floating.solve(q, qd, qdd, qddd, base=BaseState())
    expected = {
        "torque": {"effort_rate": dynamics.tau_rate, "gravity_effort": dynamics.gravity},
        "forward": {"acceleration": robot.forward_dynamics(q, qd, tau)},
        "matrix": {"mass_matrix": robot.mass_matrix(q), "bias": robot.bias(q, qd), "gravity": robot.gravity(q)},
        "sensitivities": {"deffort_dposition": robot.sensitivities(q, qd, qdd).dtau_dq,
                          "drate_dposition": robot.rate_sensitivities(q, qd, qdd, qddd).drate_dq},
        "wrenches": {"wrench_rate": robot.joint_wrenches(q, qd, qdd, qddd).rate, "joints": list(robot.joint_names)},
        "energy": {"kinetic_energy": robot.energy(q, qd).kinetic, "power": (qd * tau).sum(axis=1)},
        "floating": {"base_acceleration": free.base_acceleration, "effort_rate": free.torques[:, 1]},
        "floating-forward": {"acceleration": floating.forward_dynamics(q, qd, tau, base=BaseState())},
    }
    C, Y = robot.coriolis(q, qd), query(body, "regressor", state)
    values = [row["value"] for row in Y["parameters"]]
    np.testing.assert_allclose(np.array(Y["regressor"]) @ values, dynamics.tau, rtol=0, atol=1e-10)
    links = ["l1", "l3"]
    expected |= {
        "coriolis": {"coriolis_matrix": C},
        "wrench-sensitivities": {"dwrench_dvelocity": robot.joint_wrench_sensitivities(q, qd, qdd).dw_dqd},
        "kinematics": {"twist": np.stack([robot.link_velocity(link, q, qd) for link in links], axis=1)},
        "jacobians": {"jacobian_rate": np.stack([robot.jacobian_rate(link, q, qd) for link in links], axis=1)}}
    state["links"] = links
    assert set(expected) | {"regressor"} | OTHER_KINDS == set(query_cli.REQUESTS)
    for question, arrays in expected.items():
        answer = query(body, question, state)
        assert answer["model_id"] == robot.model_id and answer["joint_names"] == list(robot.joint_names)
        for name, values in arrays.items():
            np.testing.assert_array_equal(answer[name], values, err_msg=f"{question} {name}")


def test_query_accepts_joint_names_in_any_order_and_extra_names(query, body, motion):
    robot = Robot.from_urdf(body)
    order = [2, 0, 1]
    names = [robot.joint_names[k] for k in order]
    state = {"joint_names": [*names, "gripper"], "samples": samples(np.pad(motion[..., order], ((0, 0), (0, 0), (0, 1))))}
    answer = query(body, "matrix", state)
    assert answer["joint_names"] == names
    np.testing.assert_array_equal(answer["mass_matrix"], robot.mass_matrix(motion[0])[:, order][:, :, order])
    np.testing.assert_array_equal(answer["gravity"], robot.gravity(motion[0])[:, order])


def test_torque_query_of_one_state_equals_the_library(query):
    robot = Robot.from_urdf(RR, gravity=(0.0, 9.81, 0.0))
    answer = query(RR, "torque", {"position": [0.1, 0.2], "velocity": [1, 2]}, "--gravity", "0", "9.81", "0")
    assert answer["effort_rate"] == [robot.torque_and_rate([0.1, 0.2], [1, 2], [0, 0], [0, 0])[1].tolist()]


def test_query_with_base_motion_and_wrench_rates_equals_the_library(query):
    rng = np.random.default_rng(4)
    acceleration, jerk, velocity = rng.normal(size=(3, 6))
    force, rate = rng.normal(size=(2, 6))
    base = {"position": [0, 0, 1], "orientation": [0, 0, 0.6, 0.8], "velocity": velocity.tolist(),
            "acceleration": acceleration.tolist(), "jerk": jerk.tolist()}
    state = {"position": [0.1, 0.2], "velocity": [1.0, -1.0], "base": [base], "base_motion_given": True,
             "wrenches": [{"link": "tool", "wrench": force.tolist(), "rate": [rate.tolist()]}]}
    still = np.zeros(2)
    solved = load(RR, base="floating").solve([0.1, 0.2], [1.0, -1.0], still, still,
                                             base=BaseState((0, 0, 1), (0, 0, 0.6, 0.8), velocity, acceleration, jerk),
                                             loads=Loads({"tool": force}, {"tool": rate}))
    answer = query(RR, "floating", state)
    expected = *solved.torques, solved.base_wrench, solved.base_wrench_rate
    names = ("effort", "effort_rate", "base_wrench", "base_wrench_rate")
    for name, values in zip(names, expected, strict=True):
        np.testing.assert_allclose(answer[name], [values], rtol=0, atol=1e-12)
    np.testing.assert_allclose(answer["base_jerk"], [jerk], rtol=0, atol=1e-12)


def test_torque_query_of_a_csv_motion_equals_the_library(query, capsys, tmp_path):
    answer = query(STANFORD, "torque", None, "--state", MOTION, "-o", str(tmp_path / "out.json"))
    assert answer is None
    answer = json.loads((tmp_path / "out.json").read_text())
    table = np.genfromtxt(MOTION, delimiter=",", names=True)
    robot = Robot.from_urdf(STANFORD)
    blocks = [np.column_stack([table[f"{kind}_{name}"] for name in robot.joint_names]) for kind in ("q", "qd", "qdd", "qddd")]
    np.testing.assert_array_equal(answer["effort_rate"], robot.torque_and_rate(*blocks)[1])


def test_question_tree_lists_the_base_parameters(query):
    robot = Robot.from_urdf(STANFORD)
    answer = query(STANFORD, "tree")
    assert [link["joint"] for link in answer["links"]] == [link.joint for link in robot.model.links]
    assert sum(link["mass"] for link in answer["links"]) == pytest.approx(robot.total_mass, rel=1e-14)
    assert all(joint["effort_rate"] is None for joint in answer["joints"])  # unknown
    assert [p["relation"] for p in answer["base_parameters"]] == list(base_parameters(robot.model).relations())
    free = query(STANFORD, "tree", None, "--floating-base")
    assert len(free["base_parameters"]) == len(base_parameters(robot.model, free_root=True))


GOOD = {"position": [0.0, 0.0]}


@pytest.mark.parametrize(("question", "state", "words"), [
    ("torque", "{", "standard input: cannot be read as JSON"),
    ("torque", [1], "is [1]; an object with keys joint_names, samples"),
    ("torque", {}, "samples is empty"),
    ("torque", {"position": [0, 0], "velocty": [1, 2]}, "lock, motor_position, motor_velocity; did you mean 'velocity'?"),
    ("torque", {"samples": [{"q": [0, 0]}]}, "samples[0]: key 'q' is not known"),
    ("torque", {"samples": [GOOD], "velocity": [1, 1]}, "'velocity' is given beside samples"),
    ("torque", {"samples": GOOD}, "samples is {'position': [0.0, 0.0]}; a list is needed"),
    ("torque", {**GOOD, "of_rate": 1}, "of_rate is 1; true or false is needed"),
    ("torque", {**GOOD, "joint_names": [1, 2]}, "names are needed"),
    ("torque", {**GOOD, "joint_names": ["joint1", "elbow"]}, "lacks 'joint2'; the robot's joints are 'joint1', 'joint2'"),
    ("torque", {**GOOD, "joint_names": ["joint1", "joint2", "joint1"]}, "'joint1' more than once"),
    ("torque", {"position": [0.0]}, "samples[0].position has shape (1,); (2,) is needed"),
    ("torque", {"position": [[0.0, 0.0]]}, "has shape (1, 2)"),
    ("torque", {"position": ["a", 0.0]}, "samples[0].position is not an array of numbers"),
    ("torque", '{"position": [0.0, NaN]}', "joint 'joint2' is nan"),
    ("torque", {"position": [0.0, None]}, "joint 'joint2' is nan"),
    ("torque", {**GOOD, "wrenches": [{"link": "tool"}]}, "wrenches[0], on link 'tool': wrench is"),
    ("torque", {**GOOD, "wrenches": [{"link": "tool", "wrench": [1, 2, 3]}]}, "rows of six finite numbers"),
    ("torque", {**GOOD, "wrenches": [{"link": "tool", "wrench": [0] * 6, "rate": 3}]}, "rate is [[3.0]]"),
    ("torque", {**GOOD, "wrenches": [{"link": ["tool"], "wrench": [0] * 6}]}, "link '['tool']' is not in robot"),
    ("floating", {**GOOD, "base": [{"velocity": [1, 2, 3]}]}, "base[0].velocity is [1, 2, 3]; 6 finite numbers"),
    ("floating", {**GOOD, "base": [{"orientation": [0, 0, 0, 2]}]}, "has length 2; it must be 1"),
    ("floating-forward", GOOD, "the mass matrix is singular: 'base rz' moves no mass"),  # the file's root has none
    ("forward", {**GOOD, "effort": [1e300, 1e300], "velocity": [1e200, 0]}, "too extreme"),
])
def test_invalid_states_are_rejected_with_an_example(query, question, state, words):
    with pytest.raises(InputError) as error:
        query(RR, question, state)
    assert words in str(error.value)


def test_missing_files_and_columns_are_rejected(query, tmp_path):
    with pytest.raises(InputError, match=r'--state FILE is missing; .*"position": \[0.0, 0.0\]'):
        query(RR, "torque")
    with pytest.raises(InputError, match=r"no\.json: cannot be read as JSON"):
        query(RR, "torque", None, "--state", str(tmp_path / "no.json"))
    with pytest.raises(InputError, match="no column 'tau_joint1'"):
        query(STANFORD, "forward", None, "--state", MOTION)


def test_example_of_the_error_message_is_valid(query):
    with pytest.raises(InputError) as error:
        query(RR, "torque")
    query(RR, "torque", str(error.value).partition("robot: ")[2])


def test_help_lists_every_question(capsys):
    parser = argparse.ArgumentParser()
    query_cli.add_query_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    text = capsys.readouterr().out
    assert all(f"  {question} " in text for question in (*query_cli.REQUESTS, query_cli.TREE))

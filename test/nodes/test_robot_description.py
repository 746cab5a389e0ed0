"""Models from parameters and descriptions, in this process: the node uses the model that it reports, also after failures."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")


from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter

from rnea_ros import InputError, Robot
from rnea_ros.nodes.common import robot_description
from support.intake_bench import OTHER, benches
from support.node_bench import ARM, NAMES
from support.robots import seeds

URDFS = Path(__file__).resolve().parents[2] / "urdf"
SEVEN_R = (URDFS / "seven_r.urdf").read_text(), str(URDFS / "seven_r.robot.yaml")
BAD = '<robot name="x"><link name="a"/><link name="b"/></robot>'
POISON = 13.0  # N m of Coulomb friction: building such a model fails in this test
FAILURES = [InputError("no"), OverflowError("no"), MemoryError(), KeyboardInterrupt()]


@pytest.fixture
def bench():
    with benches() as make:
        yield make


@pytest.fixture
def poison(monkeypatch):
    """Make the construction of models fail if a joint has this Coulomb friction."""
    real, raised = robot_description.tried, SimpleNamespace(error=OverflowError("no"))

    def trying(robot):
        if any(link.term.coulomb == POISON for link in robot.model.links):
            raise raised.error
        return real(robot)

    monkeypatch.setattr(robot_description, "tried", trying)
    return raised


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_parameters_revert_when_the_model_cannot_be_built(bench, poison, error):
    poison.error = error
    setup = bench(robot_description=ARM).settle()
    before = setup.robots[-1]
    assert not setup.set(joint_dynamics__turn__viscous=2.0)
    setup.settle()
    assert not setup.set(joint_dynamics__turn__coulomb=POISON, joint_dynamics__turn__viscous=3.0)
    setup.settle()
    assert (setup.get("joint_dynamics.turn.coulomb"), setup.get("joint_dynamics.turn.viscous")) == (0.0, 2.0)
    assert setup.consistent()
    (reason,) = setup.refusals
    assert "no" in reason if isinstance(error, InputError) else f"internal error, please report it: {error!r}" in reason
    assert reason.endswith("parameters go back to those of the model in use: joint_dynamics.turn.coulomb = 0.0, "
                           "joint_dynamics.turn.viscous = 2.0")
    assert not setup.set(payload__link="tool", payload__mass=2.0)  # what comes later is not lost
    setup.settle()
    assert setup.robots[-1].total_mass == before.total_mass + 2.0 and setup.consistent()


def test_pending_request_replaced_by_an_invalid_one_reverts_too(bench, poison):
    setup = bench(robot_description=ARM).settle()
    assert not setup.set(payload__link="tool", payload__mass=2.0)
    assert not setup.set(joint_dynamics__spin__coulomb=POISON)  # before the model with the payload is ready
    setup.settle()
    assert setup.consistent() and (setup.get("payload.mass"), setup.get("joint_dynamics.spin.coulomb")) == (0.0, 0.0)
    assert "payload.mass = 0.0" in setup.refusals[-1] and "payload.link = ''" in setup.refusals[-1]


def test_descriptions_can_be_swapped_in_both_directions(bench, poison):
    """A parameter value that fails with one robot only does not prevent a later change to that robot."""
    setup = bench()
    setup.receive(ARM)
    setup.settle()
    assert not setup.set(joint_dynamics__turn__viscous=2.0)
    setup.settle()
    setup.receive(OTHER)
    setup.settle()
    assert setup.robots[-1].name == "other" and setup.consistent()
    assert not setup.set(joint_dynamics__turn__viscous=5.0)  # of a joint of the other robot
    assert setup.get("joint_dynamics.turn.viscous") == 5.0
    assert "joint_dynamics.turn.viscous is -1" in setup.set(joint_dynamics__turn__viscous=-1.0)
    setup.receive(ARM)
    setup.settle()
    assert setup.robots[-1].name == "arm" and setup.get("joint_dynamics.turn.viscous") == 5.0 and setup.consistent()
    setup.receive(BAD)
    setup.settle()
    assert setup.refusals and setup.robots[-1].name == "arm" and setup.consistent()
    for down in (1.62, 3.73):  # the refused text does not stand in the way, now or later
        assert not setup.set(gravity=[0.0, 0.0, -down])
        setup.settle()
        assert setup.robots[-1].gravity_vector[2] == -down and setup.consistent()
    assert len(setup.refusals) == 1


def test_values_of_absent_joints_are_kept_and_do_not_block_another_robot_with_its_file(bench):
    setup = bench(robot_description=ARM).settle()
    assert not setup.set(joint_dynamics__turn__coulomb=0.0, joint_dynamics__turn__viscous=2.0)
    setup.settle()
    text, file = SEVEN_R
    assert not setup.set(robot_description=text, robot_file=file)
    setup.settle()
    assert setup.robots[-1].name == "seven_r" and not setup.refusals
    assert not setup.set(robot_description=ARM, robot_file="")
    assert setup.consistent() and setup.get("joint_dynamics.turn.viscous") == 2.0  # the value was kept


def test_rejected_half_of_a_robot_swap_states_the_call_that_sets_both(bench):
    setup = bench(robot_description=SEVEN_R[0], robot_file=SEVEN_R[1]).settle()
    for half in ({"robot_description": ARM}, {"robot_file": str(URDFS / "palletiser.robot.yaml")}):
        assert "in one call of the service ~/set_parameters_atomically" in setup.set(**half)
    assert setup.get("robot_description") == SEVEN_R[0] and setup.get("robot_file") == SEVEN_R[1]
    setup.receive(ARM)  # the parameter robot_description is set: not used
    setup.settle()
    assert setup.robots[-1].name == "seven_r"


def test_one_request_builds_one_model_and_unchanged_values_build_none(bench):
    setup = bench(robot_description=ARM).settle()
    names = sorted(name for name in setup.settings.values if name.startswith(("joint_dynamics.", "joint_limits.")))
    service = next(service for service in setup.node.services if service.srv_type is SetParameters)

    def ask(values):
        asked = [Parameter(name, *given).to_parameter_msg() for name, given in values.items()]
        results = service.callback(SetParameters.Request(parameters=asked), SetParameters.Response()).results
        setup.settle()
        return [result.reason for result in results]

    parameters = {parameter.name: (parameter.type_, parameter.value) for parameter in setup.node.get_parameters(names)}
    before = len(setup.robots)
    assert len(names) > 60 and ask(parameters) == [""] * len(names) and len(setup.robots) == before
    wanted = {name: (kind, 0.25 if name.endswith((".viscous", ".coulomb")) else value)
              for name, (kind, value) in parameters.items()}
    wrong = "joint_dynamics.turn.smoothing"
    reasons = ask(wanted | {wrong: (Parameter.Type.DOUBLE, -1.0)})
    assert [name for name, reason in zip(wanted, reasons) if reason] == [wrong]
    assert setup.consistent() and setup.get("joint_dynamics.slide.viscous") == 0.25
    last = len(setup.robots)
    assert not any(ask({name: (kind, 0.5 if name.endswith(".viscous") else value) for name, (kind, value) in wanted.items()}))
    assert setup.consistent() and len(setup.robots) == last + 1


def test_description_is_used_once_a_parameter_that_blocks_it_is_corrected(bench):
    """The description lacks the link of the payload: the previous model stays until the payload is moved."""
    setup = bench(payload__link="tool", payload__mass=1.0)
    setup.receive(ARM)
    setup.settle()
    handless = OTHER.replace('"tool"', '"flange"')
    setup.receive(handless)
    setup.settle()
    assert "tool" in setup.refusals[-1] and setup.robots[-1].name == "arm" and setup.consistent()
    assert not setup.set(payload__mass=2.0)
    setup.settle()
    assert setup.robots[-1].total_mass == Robot.from_urdf(ARM).total_mass + 2.0
    assert not setup.set(payload__link="flange")
    setup.settle()
    assert setup.robots[-1].name == "other" and "flange" in setup.robots[-1].payloads


def test_invalid_start_values_can_be_corrected_one_by_one(bench, poison):
    setup = bench(robot_description=ARM, payload__link="nose", payload__mass=1.0,
                  joint_dynamics__spin__coulomb=POISON).settle()
    assert not setup.robots and "nose" in setup.refusals[0]
    assert "no <link>" in setup.set(robot_description="<robot/>")  # fails independently of other errors
    assert "coulomb is -1" in setup.set(joint_dynamics__spin__coulomb=-1.0)
    assert not setup.set(payload__link="tool")
    setup.settle()
    assert not setup.robots and "internal error" in setup.refusals[1]
    assert not setup.set(joint_dynamics__spin__coulomb=0.5)
    setup.settle()
    assert setup.consistent() and setup.robots[-1].total_mass == Robot.from_urdf(ARM).total_mass + 1.0


def test_node_that_fails_to_accept_a_model_keeps_the_previous_one(bench):
    setup = bench(robot_description=ARM).settle()
    accept, taken = setup.robots.append, []

    def fussy(robot):
        taken.append(robot.name)
        if robot.name == "other":
            raise RuntimeError("no")
        accept(robot)

    setup.intake._accept = fussy
    assert not setup.set(robot_description=OTHER)
    setup.settle()
    assert taken == ["other", "arm"] and "RuntimeError('no')" in setup.refusals[-1]
    assert setup.get("robot_description") == ARM and setup.node.has_parameter("joint_dynamics.turn.viscous")
    assert setup.consistent()


def test_internal_error_while_a_value_is_applied_rejects_the_value(bench, monkeypatch):
    setup = bench(robot_description=ARM).settle()
    with monkeypatch.context() as patch:
        patch.setattr(setup.intake, "request", lambda: 1 / 0)
        assert "internal error, please report it: ZeroDivisionError" in setup.set(payload__link="tool", payload__mass=1.0)
    assert setup.consistent() and setup.settings.values["payload.mass"] == 0.0
    monkeypatch.setattr(setup.intake._worker, "submit", lambda *job: exec("raise RuntimeError(\"can't start new thread\")"))
    assert "start new thread" in setup.set(payload__link="tool", payload__mass=1.0)
    monkeypatch.undo()
    assert not setup.set(payload__link="tool", payload__mass=1.0)
    assert setup.consistent() and setup.robots[-1].payloads


def test_model_whose_torques_overflow_is_rejected():
    with pytest.raises(InputError, match=r"robot 'arm' at rest, .* too large for a number .*payload are too large"):
        robot_description.tried(Robot.from_urdf(ARM).with_payload("tool", 1.7e308))


def test_huge_limits_of_the_urdf_are_clipped_to_values_that_can_be_set_again(bench):
    """URDF files use values such as 1e16 for 'unlimited'."""
    text = ARM.replace('effort="40"', 'effort="1e16"').replace('lower="-2" upper="2" velocity="3" effort="60"',
                                                               'lower="-1e300" upper="1e300" velocity="1e20" effort="60"')
    setup = bench(robot_description=text).settle()
    reported = {name: setup.get(f"joint_limits.{name}") for name in (
        "turn.max_effort", "slide.min_position", "slide.max_position", "slide.max_velocity", "slide.max_effort")}
    assert list(reported.values()) == [1e9, -1e9, 1e9, 1e9, 60.0]
    for name, value in reported.items():
        assert not setup.set(**{f"joint_limits.{name}": value})


@pytest.mark.parametrize("seed", seeds(3))
def test_random_parameter_and_description_changes_leave_a_consistent_node(bench, poison, seed):
    """Parameters and descriptions are changed in random order, some of them invalid."""
    rng = np.random.default_rng(seed)
    setup = bench()
    setup.receive(ARM)
    setup.settle()
    for _ in range(40):
        joint = rng.choice([*NAMES, "follow", "yaw"])
        value = float(rng.choice([0.0, 0.5, POISON, -1.0, math.inf, 1e300]))
        kind = rng.integers(9)
        if kind < 2:
            setup.receive(str(rng.choice([ARM, OTHER, BAD], p=[0.4, 0.4, 0.2])))
        elif kind < 5 and setup.node.has_parameter(f"joint_dynamics.{joint}.coulomb"):
            setup.set(**{f"joint_dynamics.{joint}.coulomb": value})
        elif kind == 5:
            setup.set(payload__link=str(rng.choice(["tool", "hand", "nose"])),
                      payload__mass=float(rng.choice([1.0, 2.0, -1.0])))
        elif kind == 6:
            setup.set(gravity=[0.0, 0.0, float(rng.choice([-9.81, -1.62, 1e300]))])
        elif kind == 7:
            setup.set(robot_description=str(rng.choice(["", ARM, OTHER, BAD], p=[0.5, 0.2, 0.2, 0.1])))
        for _ in range(rng.integers(4)):
            setup.executor.spin_once(timeout_sec=float(rng.choice([0.0, 0.05])))
    assert setup.consistent()
    for name in [*NAMES, "yaw"]:  # nothing is wedged: every poison can be taken off again
        if setup.node.has_parameter(f"joint_dynamics.{name}.coulomb"):
            assert setup.get(f"joint_dynamics.{name}.coulomb") in (0.0, 0.5) or name not in setup.robots[-1].joint_names
            assert not setup.set(**{f"joint_dynamics.{name}.coulomb": 0.25})
    setup.receive(OTHER)
    assert not setup.set(robot_description="")
    for text in (OTHER, ARM):
        setup.receive(text)
        assert setup.consistent() and setup.robots[-1].name == ("arm" if text == ARM else "other")
    assert not setup.set(payload__link="tool", payload__mass=2.5)
    assert setup.consistent() and setup.robots[-1].payloads["tool"].mass == 2.5

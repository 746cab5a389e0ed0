"""dynamics_node with measured efforts, as a process over DDS: external efforts, contacts, payloads and invalid efforts."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from rnea_msgs.msg import Contact, ExternalEffort
from rnea_msgs.srv import EstimatePayload
from rnea_ros import Loads, Robot
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.external_effort import PAYLOAD_PERIOD_NS, MeasuredEffort, PayloadService
from support.node_bench import ARM, NAMES, NODE, Bench, seconds
from support.ros_helpers import ros_domain

pytestmark = pytest.mark.ros
Q = np.array([0.1, 0.2, 0.3])  # where Bench.state holds the arm
FORCE = np.array([4.0, -3.0, 12.0])  # on the hand, along its axes


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(ARM)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    yield from make_bench(tmp_path_factory)


@pytest.fixture
def new_bench(tmp_path_factory):
    """Return a bench of a robot without earlier contacts."""
    yield from make_bench(tmp_path_factory)


def make_bench(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("external_effort")) as ros:
        found = Bench(ros, robot_description=ARM, publish_external_effort=True, commanded_effort="without_gravity",
                      measured_effort="total", state_timeout=10.0, **{"external_effort.link": "hand"})
        found.external = ros.listen(ExternalEffort, f"{NODE}/external_effort")
        found.wrenches = ros.listen(WrenchStamped, f"{NODE}/external_wrench")
        found.contacts = ros.listen(Contact, f"{NODE}/contact")
        yield found.ready()


def holding(robot, force=None):
    """Return the efforts that hold the arm at rest under a force on the hand."""
    wrenches = {} if force is None else {"hand": [*force, 0.0, 0.0, 0.0]}
    return robot.inverse_dynamics(Q, 0.0 * Q, 0.0 * Q, loads=Loads(wrenches))


def until(bench, condition, effort, what):
    """Publish joint states with an effort until a condition holds."""
    return bench.ros.until(lambda: bench.state(effort=list(effort)) or condition(), what=what, of=bench.process)


def force(message):
    f = message.wrench.force
    return f.x, f.y, f.z


def last(messages):
    return messages[-1] if messages else None


def test_measured_efforts_yield_external_efforts_contacts_and_a_wrench(bench, robot):
    still = holding(robot)
    quiet = until(bench, lambda: (found := last(bench.external)) and np.isfinite(found.threshold).all() and found, still,
                  "no threshold")
    assert quiet.joint_names == NAMES and np.abs(quiet.effort).max() < 1e-6
    assert (np.array(quiet.threshold) > 0.0).all() and np.allclose(quiet.threshold, 3.0 * np.array(quiet.effort_std))
    assert not bench.contacts

    pushed = holding(robot, FORCE)
    began = until(bench, lambda: last(bench.contacts), pushed, "no contact")
    assert began.active and began.joint in NAMES and abs(began.effort) > began.threshold > 0.0
    close = until(bench, lambda: (found := last(bench.external)) and np.allclose(found.effort, still - pushed, rtol=1e-3)
                  and found, pushed, "the external effort is not reached")
    assert close.header.frame_id == robot.root_link
    wrench = until(bench, lambda: (found := last(bench.wrenches)) and np.allclose(force(found), FORCE, rtol=1e-2) and found,
                   pushed, "no such wrench")
    assert wrench.header.frame_id == "hand"

    until(bench, lambda: bench.diagnostics.values["contact"] == "yes", pushed, "no contact in diagnostics")
    until(bench, lambda: open_contacts(bench) == set(), still, "the contact never ends")
    until(bench, lambda: bench.diagnostics.values["contact"] == "no", still, "contact in diagnostics")


def open_contacts(bench):
    """Return the joints in contact according to the messages so far."""
    joints = set()
    for contact in bench.contacts:
        (joints.add if contact.active else joints.remove)(contact.joint)
    return joints


def learn(bench, start):
    return bench.ros.call(SetBool, f"{NODE}/learn_contact_thresholds", SetBool.Request(data=start))


def test_contact_thresholds_are_learnt_from_free_motion(bench, robot):
    nothing = learn(bench, False)
    assert not nothing.success and "call with data: true first" in nothing.message
    assert "no friction of turn, spin, slide is known" in bench.process.log
    assert learn(bench, True).success
    coulomb, viscous, dt = np.array([2.0, 0.5, 3.0]), np.array([1.0, 0.2, 4.0]), bench.dt
    bench.dt = 0.04
    rng, end, w = np.random.default_rng(0), bench.clock + 14.0, np.array([2.0, 3.0, 2.5])
    while bench.clock < end:
        x = w * (bench.clock + bench.dt)
        q, qd, qdd = 0.3 * np.sin(x), 0.3 * w * np.cos(x), -0.3 * w * w * np.sin(x)
        effort = robot.inverse_dynamics(q, qd, qdd) + coulomb * np.tanh(qd / 0.01) + viscous * qd
        effort += 0.02 * rng.standard_normal(3)
        bench.state(position=q.tolist(), velocity=qd.tolist(), effort=effort.tolist())
        bench.ros.spin(0.002)
        bench.paced()
    bench.dt = dt
    bench.ros.until(lambda: seconds(bench.external[-1]) > end - 1.0, what="too few")
    found = learn(bench, False)
    assert found.success, found.message
    calibration = yaml.safe_load(found.message)["contact"]
    for k, name in enumerate(NAMES):
        assert abs(calibration[name]["coulomb"] - coulomb[k]) < 0.3 * coulomb[k], calibration
        assert bench.ros.get(NODE, f"contact.{name}.coulomb") == pytest.approx(calibration[name]["coulomb"], rel=1e-3)


@pytest.mark.parametrize(("effort", "reason"), [([], "effort_missing"), ([1.0, math.nan, 2.0], "effort_not_finite"),
                                                ([1.0, 2.0], "wrong_size")])
def test_invalid_efforts_are_counted_and_torques_are_still_published(bench, effort, reason):
    before, counted = bench.clock, bench.diagnostics.dropped("effort", reason)
    until(bench, lambda: bench.diagnostics.dropped("effort", reason) > counted, effort, f"{reason} not counted")
    until(bench, lambda: seconds(bench.results[-1]) > before + 1e-3, effort, "no torques beside bad efforts")
    assert all(seconds(found) < before + 1e-3 for found in bench.external)
    assert reason in bench.diagnostics.values["effort.last_drop"]


def test_joint_effort_is_the_whole_torque_and_commanded_effort_is_without_gravity(bench, robot):
    commanded, rates = (bench.ros.listen(JointState, f"{NODE}/commanded_effort{rate}") for rate in ("", "_rate"))
    bench.ros.until(lambda: bench.send(np.zeros((4, 3))) and commanded and rates)
    motion = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 3))
    whole = bench.send(motion)

    def reported(messages):
        return bench.ros.until(lambda: next((m for m in messages if m.header.stamp == whole.header.stamp), None))

    found = robot.dynamics(*motion)
    assert np.allclose(reported(bench.efforts).effort, found.tau, rtol=1e-9)
    assert np.allclose(reported(bench.rates).effort, found.tau_rate, rtol=1e-9)
    assert np.allclose(whole.effort, found.tau, rtol=1e-9)
    assert np.allclose(reported(commanded).effort, found.tau - found.gravity, rtol=1e-9)
    assert reported(commanded).effort == whole.commanded_effort
    assert np.allclose(reported(rates).effort, found.tau_rate - found.gravity_rate, rtol=1e-9)
    info = bench.info[-1]
    assert (info.commanded_effort_contains, info.commanded_effort_quantity) == ("without_gravity", "joint_torque")
    assert info.commanded_effort_units == info.effort_units
    assert bench.diagnostics.values["commanded_effort"] == "without_gravity"
    assert ("~/joint_effort is the whole joint torque, ~/commanded_effort is the joint torque without gravity"
            in bench.process.log)


def test_payload_on_the_hand_is_estimated_from_static_poses(bench, robot):
    """The arm is held in many poses, first without a payload: mass and centre of mass are found, no inertia."""
    com = np.array([0.02, -0.03, 0.1])

    def poses(carrying, count=260):
        start = bench.clock
        for k in range(count):
            q = np.array([np.sin(0.05 * k), 2.0 * np.sin(0.031 * k), 0.3 * np.sin(0.02 * k)])
            bench.state(position=q.tolist(), velocity=[0.0] * 3, effort=list(1.02 * robot.gravity(q) + carrying.gravity(q)
                                                                             - robot.gravity(q)))
            bench.ros.spin(0.002)
            bench.paced()
        seen = start + 0.9 * count * bench.dt
        bench.ros.until(lambda: bench.external and seconds(bench.external[-1]) > seen, what="too few")
        return count * bench.dt

    service = f"{NODE}/estimate_payload"
    window = poses(robot)
    tare = bench.ros.call(EstimatePayload, service, EstimatePayload.Request(link="hand", window=window, tare=True))
    assert tare.success and tare.samples > 100, tare.message
    window = poses(robot.with_payload("hand", 1.5, com))
    found = bench.ros.call(EstimatePayload, service, EstimatePayload.Request(link="hand", window=window, apply=True))
    assert found.success and "with a tare" in found.message, found.message
    assert abs(found.mass - 1.5) < 0.1 and np.allclose(found.com, com, atol=2e-2)
    assert "inertia.xx" in found.unknown and "mass" not in found.unknown
    bench.ros.until(lambda: abs(bench.info[-1].total_mass - robot.total_mass - found.mass) < 1e-9, what="payload not applied")
    nothing = bench.ros.call(EstimatePayload, service, EstimatePayload.Request(link="elbow"))
    assert not nothing.success and "link 'elbow' is not in robot" in nothing.message


# --- payloads and efforts of joint states, in this process --------------------------------------------------------------


def test_estimate_under_way_when_the_model_changes_does_not_affect_later_ones(robot):
    """Regression: the estimator that it had compiled for the former model was used for the new one."""
    service = PayloadService(SimpleNamespace(create_service=lambda *args, **options: None,
                                             create_guard_condition=lambda callback: None))
    values = {"payload.link": "", "external_effort.link": "", "external_effort.check_payload": False,
              "external_effort.mass_uncertainty": 0.0}
    service.use(robot, values)
    heavy = robot.with_payload("wrist", 2.0, [0.3, 0.0, 0.0])
    for k in range(100):
        q = np.array([np.sin(0.05 * k), 2.0 * np.sin(0.31 * k), 0.3 * np.sin(0.2 * k)])
        service.push(k * PAYLOAD_PERIOD_NS, q, *np.zeros((2, 3)), heavy.with_payload("hand", 1.5, [0.0, 0.0, 0.1]).gravity(q))

    changes, found = [lambda: service.use(heavy, values), lambda: None, lambda: service.use(Robot.from_urdf(ARM), values)], []
    for change, applied in zip(changes, (False, False, True)):
        async def run(function, *args, change=change):
            change()
            return function(*args)

        service._worker.run = run
        with pytest.raises(StopIteration) as answer:
            service._serve(EstimatePayload.Request(link="hand", apply=applied), EstimatePayload.Response()).send(None)
        found.append(answer.value.value)
    assert found[1].mass == pytest.approx(1.5, abs=0.01)
    assert not found[2].success and "another robot description came meanwhile" in found[2].message
    service.close()


def test_efforts_of_several_senders_are_merged_and_kept_by_stamp():
    efforts = MeasuredEffort(["a", "b"])
    with pytest.raises(Rejected, match="no effort of b"):
        efforts.read(JointState(name=["a"], effort=[1.0]), 1_000_000_000, 0.5)
    efforts.read(JointState(name=["x", "b"], effort=[9.0, 2.0]), 1_100_000_000, 0.5)
    efforts.read(JointState(name=["b", "a"], effort=[4.0, 3.0]), 1_200_000_000, 0.5)
    assert efforts.at(1_100_000_000).tolist() == [1.0, 2.0]
    assert np.allclose(efforts.at(1_150_000_000), [2.0, 3.0])
    assert efforts.at(1_300_000_000).tolist() == [3.0, 4.0]
    with pytest.raises(Rejected, match="no effort is known"):
        efforts.at(1_000_000_000)
    with pytest.raises(Rejected, match=r"no effort of b for 0\.1 s"):
        efforts.read(JointState(name=["a"], effort=[5.0]), 1_900_000_000, 0.1)


def test_wrong_payload_causes_a_warning_with_the_remedy(new_bench, robot):
    bench = new_bench
    loaded, w, dt = robot.with_payload("hand", 2.0, [0.0, 0.05, 0.1]), np.array([0.5, 0.7, 0.4]), bench.dt
    bench.dt = 0.02

    def move():
        x = w * (bench.clock + bench.dt)
        q, qd = np.array([0.9, 1.2, 0.2]) * np.sin(x), np.array([0.9, 1.2, 0.2]) * w * np.cos(x)
        effort = loaded.inverse_dynamics(q, qd, np.zeros(3))  # the node has no acceleration: it is taken as zero
        bench.state(position=q.tolist(), velocity=qd.tolist(), effort=effort.tolist())
        return "payload.excess_kg" in bench.diagnostics.values

    bench.ros.until(move, what="the payload is not noticed", of=bench.process)
    found = bench.diagnostics.values
    error = abs(float(found["payload.excess_kg"]) - 2.0)
    assert error < 0.4 and found["payload.link"] == "hand", found
    assert "set payload.link: hand, payload.mass: " in bench.diagnostics.status.message
    assert bench.ros.set(NODE, external_effort__check_payload=False) == ""
    bench.ros.until(lambda: move() or "payload.excess_kg" not in bench.diagnostics.values, what="the warning stays")
    bench.dt = dt

"""query_node as a separate process over DDS: results equal to the library's, and compared with Pinocchio's."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs.srv")

import rclpy
from geometry_msgs.msg import Point, Wrench
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile

from rnea_msgs.msg import BaseState, JointSample, LinkWrench
from rnea_ros import Loads, Robot, load
from rnea_ros.algorithms.inertial_parameters import base_parameters
from rnea_ros.robots import base_state
from support.node_bench import ARM, NAMES
from support.oracles import difference
from support.query_bench import IN_MODEL, NODE, SERVICES, Batch, QueryBench, numbers
from support.robots import about
from support.ros_helpers import AGAIN, DISCOVERY, ros_domain

pytestmark = pytest.mark.ros
X, Z = np.eye(3)[[0, 2]]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        yield QueryBench(ros, robot_description=ARM).ready()


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(ARM)


@pytest.fixture(scope="module")
def floating():
    return load(ARM, base="floating")


@pytest.fixture(scope="module")
def batch():
    return Batch()


@pytest.fixture(scope="module")
def oracle(robot):
    return pytest.importorskip("support.oracles").PinocchioOracle(ARM, robot)


@pytest.fixture(scope="module")
def free_flyer(floating):
    pytest.importorskip("support.oracles")
    from support.free_flyer import FreeFlyer

    return FreeFlyer(ARM, floating)


def assert_equal(answer, **expected):
    """Check that an answer equals the expected arrays bit for bit."""
    for name, values in expected.items():
        np.testing.assert_array_equal(answer[name], values, err_msg=name)


def assert_close(ours, truth):
    np.testing.assert_allclose(ours, truth, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(truth).max(initial=0.0)))


# --- every service ----------------------------------------------------------------------------------------------------


def test_inverse_dynamics_equals_pinocchio(bench, robot, oracle, batch):
    answer = bench.ask("compute_inverse_dynamics", batch)
    names = ("effort", "effort_rate", "gravity_effort", "gravity_effort_rate")
    assert_equal(answer, **dict(zip(names, robot.dynamics(*batch.motion))))
    for k in range(len(batch)):
        tau, tau_rate = oracle.torque_and_rate(*(row[k] for row in batch.motion))
        gravity, gravity_rate = oracle.gravity_and_rate(batch.q[k], batch.qd[k])
        assert_close(answer["effort"][k], tau)
        assert_close(answer["effort_rate"][k], tau_rate)
        assert_close(answer["gravity_effort"][k], gravity)
        assert_close(answer["gravity_effort_rate"][k], gravity_rate)


def test_inverse_dynamics_with_external_wrenches_matches_pinocchio(bench, robot, oracle, batch):
    answer = bench.ask("compute_inverse_dynamics", batch, wrenches=batch.loads)
    for k in range(len(batch)):
        assert_close(answer["effort"][k], oracle.torque(batch.q[k], batch.qd[k], batch.qdd[k], batch.wrenches_at(k)))
    answer = bench.ask("compute_inverse_dynamics", batch, wrenches=batch.loads + batch.loads_held)
    tau, tau_rate = robot.torque_and_rate(*batch.motion, loads=batch.given)
    assert_equal(answer, effort=tau, effort_rate=tau_rate)
    twice = bench.ask("compute_inverse_dynamics", batch, wrenches=batch.loads_held * 2)  # add up
    assert_equal(twice, effort=robot.torque_and_rate(*batch.motion,
                                                     loads=Loads(world_wrenches={"wrist": 2.0 * batch.held["wrist"]}))[0])


def test_forward_dynamics_inverts_inverse_dynamics(bench, robot, oracle, batch):
    answer = bench.ask("compute_forward_dynamics", batch, wrenches=batch.loads)
    assert_equal(answer, acceleration=robot.forward_dynamics(batch.q, batch.qd, batch.tau, loads=Loads(batch.wrenches)))
    for k in range(len(batch)):
        assert_close(oracle.torque(batch.q[k], batch.qd[k], answer["acceleration"][k], batch.wrenches_at(k)), batch.tau[k])


def test_mass_matrix_bias_and_gravity_match_pinocchio(bench, robot, oracle, batch):
    answer = bench.ask("compute_mass_matrix", batch, wrenches=batch.loads)
    assert_equal(answer, mass_matrix=robot.mass_matrix(batch.q),
                 bias=robot.bias(batch.q, batch.qd, loads=Loads(batch.wrenches)),
                 gravity=robot.gravity(batch.q))
    for k in range(len(batch)):
        assert_close(answer["mass_matrix"][k], oracle.mass_matrix(batch.q[k]))
        assert_close(answer["bias"][k], oracle.torque(batch.q[k], batch.qd[k], np.zeros(3), batch.wrenches_at(k)))


def test_sensitivities_equal_pinocchio(bench, robot, oracle, batch):
    import pinocchio

    answer = bench.ask("compute_sensitivities", batch, wrenches=batch.loads + batch.loads_held, of_rate=True)
    torque = robot.sensitivities(*batch.motion[:3], loads=Loads(batch.wrenches, world_wrenches=batch.held))
    rate = robot.rate_sensitivities(*batch.motion, loads=batch.given)
    assert_equal(answer, deffort_dposition=torque.dtau_dq, deffort_dvelocity=torque.dtau_dqd,
                 deffort_dacceleration=torque.dtau_dqdd,
                 drate_dposition=rate.drate_dq, drate_dvelocity=rate.drate_dqd, drate_dacceleration=rate.drate_dqdd,
                 drate_djerk=rate.drate_dqddd)
    answer = bench.ask("compute_sensitivities", batch)
    assert answer["drate_djerk"].size == 0
    for k in range(len(batch)):
        fold = oracle.fold
        state = (oracle.configuration(batch.q[k]), fold @ batch.qd[k], fold @ batch.qdd[k])
        dq, dqd, M = pinocchio.computeRNEADerivatives(oracle.model, oracle.data, *state)
        assert_close(answer["deffort_dposition"][k], fold.T @ dq @ fold)
        assert_close(answer["deffort_dvelocity"][k], fold.T @ dqd @ fold)
        assert_close(answer["deffort_dacceleration"][k], fold.T @ (np.triu(M) + np.triu(M, 1).T) @ fold)


def test_joint_wrenches_equal_pinocchio(bench, robot, oracle, batch):
    answer = bench.ask("compute_joint_wrenches", batch, wrenches=batch.loads + batch.loads_held)
    expected = robot.joint_wrenches(*batch.motion, loads=batch.given)
    assert_equal(answer, wrench=expected.wrench, wrench_rate=expected.rate)
    assert (answer["joints"], answer["links"]) == ([*NAMES, "follow"], ["upper", "fore", "wrist", "hand"])
    answer = bench.ask("compute_joint_wrenches", batch)
    for k in range(len(batch)):
        for row, link in zip(answer["wrench"][k], answer["links"]):
            f, n = oracle.at(link, np.zeros(3), batch.q[k], batch.qd[k], batch.qdd[k])[-6:].reshape(2, 3)
            R, _ = oracle.placement(link, batch.q[k])
            assert_close(row, np.concatenate((R.T @ f, R.T @ n)))


def test_forward_kinematics_and_jacobians_match_pinocchio(bench, robot, oracle, batch):
    """Links behind an active, a mimic and a fixed joint, each with a point on it."""
    links, point = ["upper", "wrist", "hand", "tool"], np.array([0.1, -0.2, 0.3])
    given = {"links": links, "points": [Point(x=0.1, y=-0.2, z=0.3)] * len(links)}
    kinematics = bench.ask("compute_forward_kinematics", batch, **given)
    slopes = bench.ask("compute_jacobians", batch, **given)
    assert kinematics["links"] == slopes["links"] == links and slopes["coordinates"] == IN_MODEL
    columns = [IN_MODEL.index(name) for name in NAMES]
    for k in range(len(batch)):
        for i, link in enumerate(links):
            R, p, J, Jd = oracle.kinematics(link, point, batch.q[k], batch.qd[k])
            row = k * len(links) + i
            assert_close(kinematics["pose"][row][:3], p)
            assert_close(base_state.BaseState(quaternion=kinematics["pose"][row][3:]).rotation, R)
            assert_close(kinematics["twist"][row], J @ batch.qd[k])
            assert_close(slopes["jacobian"][row][:, columns], J)
            assert_close(slopes["jacobian_rate"][row][:, columns], Jd)
    every = bench.ask("compute_forward_kinematics", batch)
    assert every["links"] == list(robot.model.frames) and len(every["pose"]) == len(batch) * len(every["links"])


def test_coriolis_matrix_equals_differences_of_pinocchio(bench, oracle, batch):
    answer = bench.ask("compute_coriolis_matrix", batch)
    for k in range(len(batch)):
        q, qd, still, C = batch.q[k], batch.qd[k], np.zeros(3), answer["coriolis_matrix"][k]
        assert_close(C @ qd, oracle.torque(q, qd, still, {}) - oracle.torque(q, still, still, {}))
        rate = difference(lambda t, q=q, qd=qd: oracle.mass_matrix(q + t * qd), 1e-3)
        np.testing.assert_allclose(rate - 2.0 * C, -(rate - 2.0 * C).T, rtol=0, atol=1e-8)


def test_joint_wrench_sensitivities_match_differences_of_pinocchio(bench, oracle, batch):
    """The oracle is a difference quotient of Pinocchio's joint wrenches."""
    answer = bench.ask("compute_joint_wrench_sensitivities", batch)
    columns, moving = [IN_MODEL.index(name) for name in NAMES], len(answer["joints"])

    def wrenches(k, link, q, qd, qdd):
        f, n = oracle.at(link, np.zeros(3), q, qd, qdd)[-6:].reshape(2, 3)
        R, _ = oracle.placement(link, q)
        return np.concatenate((R.T @ f, R.T @ n))

    for k in range(len(batch)):
        state = batch.q[k], batch.qd[k], batch.qdd[k]
        for row, link in enumerate(answer["links"]):
            for which, name in enumerate(("position", "velocity", "acceleration")):
                table = answer[f"dwrench_d{name}"][k * moving + row][:, columns]
                for column, unit in enumerate(np.eye(3)):
                    def varied(t, which=which, unit=unit, link=link, k=k, state=state):
                        return wrenches(k, link, *(x + t * unit * (which == i) for i, x in enumerate(state)))

                    np.testing.assert_allclose(table[:, column], difference(varied, 1e-2), rtol=0, atol=1e-7)


def test_regressor_times_parameters_equals_pinocchio(bench, oracle, batch):
    answer = bench.ask("compute_regressor", batch)
    values, rows = [row.value for row in answer["parameters"]], [IN_MODEL.index(name) for name in NAMES]
    assert answer["parameters"][0].unit and answer["parameters"][0].relation
    for k in range(len(batch)):
        for table, truth in zip((answer["regressor"], answer["regressor_rate"]),
                                oracle.torque_and_rate(*(row[k] for row in batch.motion))):
            assert_close(table[k][rows] @ values, truth)


def test_energy_momentum_and_center_of_mass_match_pinocchio(bench, robot, oracle, batch):
    import pinocchio

    answer = bench.ask("compute_energy", batch)
    energy, mass_centre = robot.energy(batch.q, batch.qd), robot.center_of_mass(batch.q, batch.qd)
    linear, angular = np.split(mass_centre.momentum, 2, axis=-1)
    assert_equal(answer, kinetic_energy=energy.kinetic, potential_energy=energy.potential, center_of_mass=mass_centre.position,
                 center_of_mass_velocity=mass_centre.velocity, linear_momentum=linear, angular_momentum=angular,
                 power=robot.power(batch.qd, batch.tau))
    for k in range(len(batch)):
        state = oracle.configuration(batch.q[k]), oracle.fold @ batch.qd[k]
        assert_close(answer["kinetic_energy"][k], pinocchio.computeKineticEnergy(oracle.model, oracle.data, *state))
        momentum = pinocchio.computeCentroidalMomentum(oracle.model, oracle.data, *state)
        assert_close(answer["linear_momentum"][k], momentum.linear)
        assert_close(answer["power"][k], batch.qd[k] @ batch.tau[k])


def test_energy_and_momentum_of_a_floating_base_match_pinocchio(bench, floating, free_flyer, batch):
    answer = bench.ask("compute_energy", batch, base=batch.bases)
    state = {"q": batch.q, "qd": batch.qd, "base": batch.base}
    mass_centre, energy = floating.center_of_mass(**state), floating.energy(**state)
    assert_equal(answer, kinetic_energy=energy.kinetic, center_of_mass=mass_centre.position)
    for k in range(len(batch)):
        state = batch.base_at(k), batch.q[k], batch.qd[k]
        assert_close((answer["kinetic_energy"][k], answer["potential_energy"][k]), free_flyer.energy(*state))
        pose, velocity, momentum = free_flyer.center_of_mass(*state)
        assert_close(answer["center_of_mass"][k], pose)
        assert_close(answer["center_of_mass_velocity"][k], velocity)
        assert_close(np.concatenate((answer["linear_momentum"][k], answer["angular_momentum"][k])), momentum)


def test_floating_inverse_dynamics_leaves_no_force_at_the_base(bench, floating, free_flyer, batch):
    answer = bench.ask("compute_floating_inverse_dynamics", batch, base=batch.bases, wrenches=batch.loads)
    expected = floating.solve(*batch.motion, base=batch.base, loads=Loads(batch.wrenches, batch.rates))
    assert_equal(answer, base_acceleration=expected.base_acceleration, base_jerk=expected.base_jerk,
                 effort=expected.torques[:, 0],
                 effort_rate=expected.torques[:, 1])
    assert_equal(answer, base_wrench=np.zeros((3, 6)), base_wrench_rate=np.zeros((3, 6)))
    for k in range(len(batch)):
        state = batch.base_at(k), batch.q[k], batch.qd[k], batch.qdd[k]
        assert_close(answer["base_acceleration"][k], free_flyer.base_acceleration(*state, batch.wrenches_at(k)))
        forces = free_flyer.forces(state[0], answer["base_acceleration"][k], *state[1:], batch.wrenches_at(k))
        assert_close(forces, np.concatenate((np.zeros(6), answer["effort"][k])))


def test_inverse_dynamics_with_given_base_motion_matches_pinocchio(bench, floating, free_flyer, batch):
    answer = bench.ask("compute_floating_inverse_dynamics", batch, base=batch.bases, wrenches=batch.loads,
                       base_motion_given=True)
    given = batch.base_acceleration, batch.base_jerk
    expected = floating.solve(*batch.motion, base=batch.base.with_motion(*given),
                              loads=Loads(batch.wrenches, batch.rates))
    assert_equal(answer, effort=expected.torques[:, 0], effort_rate=expected.torques[:, 1], base_wrench=expected.base_wrench,
                 base_wrench_rate=expected.base_wrench_rate)
    assert_close(answer["base_acceleration"], given[0])
    assert_close(answer["base_jerk"], given[1])
    for k in range(len(batch)):
        state = batch.base_at(k), batch.base_acceleration[k], batch.q[k], batch.qd[k], batch.qdd[k]
        assert_close(np.concatenate((answer["base_wrench"][k], answer["effort"][k])),
                     free_flyer.forces(*state, batch.wrenches_at(k)))


def test_floating_forward_dynamics_leaves_no_force_at_the_base(bench, floating, free_flyer, batch):
    answer = bench.ask("compute_floating_forward_dynamics", batch, base=batch.bases, wrenches=batch.loads)
    expected = floating.response(batch.q, batch.qd, batch.tau, base=batch.base, loads=Loads(batch.wrenches))
    qdd = floating.forward_dynamics(batch.q, batch.qd, batch.tau, base=batch.base, loads=Loads(batch.wrenches))
    assert_equal(answer, base_acceleration=expected.base_acceleration, acceleration=qdd)
    for k in range(len(batch)):
        motion = answer["base_acceleration"][k], batch.q[k], batch.qd[k], answer["acceleration"][k]
        assert_close(free_flyer.forces(batch.base_at(k), *motion, batch.wrenches_at(k)),
                     np.concatenate((np.zeros(6), batch.tau[k])))


def test_link_poses_of_get_tree_match_pinocchio(bench, robot, oracle, batch):
    response = bench("get_tree")
    assert response.success and response.model_id == robot.model_id
    assert (response.robot_name, response.root_link, response.total_mass) == ("arm", "base", robot.total_mass)
    assert [(joint.name, joint.type) for joint in response.joints] == list(zip(NAMES, robot.joint_types))
    assert [joint.effort for joint in response.joints][::2] == [40.0, 60.0] and np.isnan(response.joints[1].effort)
    q = dict(zip(NAMES, batch.q[0]))
    poses = [(np.eye(3), np.zeros(3))]
    for link in response.links[1:]:
        moved = link.multiplier * q.get(link.coordinate, 0.0) + link.offset
        poses.append(poses[link.antecedent])
        for axis, angle, length in ((Z, link.gamma, link.b), (X, link.alpha, link.d),
                                    (Z, link.theta + moved * (link.sigma == 0), link.r + moved * (link.sigma == 1))):
            R, P = poses[-1]
            R = R @ about(axis, angle)
            poses[-1] = R, P + R @ axis * length
    for frame in response.frames:
        R, P = poses[frame.link]
        turn = frame.pose.orientation
        rotation = base_state.BaseState(quaternion=(turn.x, turn.y, turn.z, turn.w)).rotation
        truth = oracle.placement(frame.name, batch.q[0])
        assert_close(R @ rotation, truth[0])
        assert_close(P + R @ numbers(frame.pose.position), truth[1])
    assert len(response.frames) == 6 and {link.joint for link in response.links} == {"", *NAMES, "follow"}


def test_get_tree_contains_link_inertias_and_base_parameters(bench, robot, oracle):
    response = bench("get_tree")
    assert sum(link.mass for link in response.links) == pytest.approx(robot.total_mass, rel=1e-15)
    for ours, link in zip(response.links, robot.model.links):
        assert (ours.mass, list(ours.first_moment)) == (link.m, link.ms.tolist())
        assert list(ours.inertia) == link.J[np.triu_indices(3)].tolist()
    expected = base_parameters(robot.model)
    assert [p.name for p in response.base_parameters] == list(expected.names)
    assert [p.relation for p in response.base_parameters] == list(expected.relations())
    assert [p.value for p in response.base_parameters] == expected.values_in(robot.model).tolist()
    assert len(bench("get_tree", floating_base=True).base_parameters) > len(expected)


def test_number_of_base_parameters_is_the_rank_of_pinocchios_regressor(bench, oracle):
    import pinocchio

    rng = np.random.default_rng(2)
    rows = []
    for _ in range(60):
        q, *rest = rng.uniform(-2.0, 2.0, (3, 3))
        state = oracle.configuration(q), *(oracle.fold @ x for x in rest)
        rows.append(oracle.fold.T @ pinocchio.computeJointTorqueRegressor(oracle.model, oracle.data, *state))
    rank = np.linalg.matrix_rank(np.vstack(rows), rtol=1e-8)
    assert len(bench("get_tree").base_parameters) == rank


# --- requests ---------------------------------------------------------------------------------------------------------


def test_every_offered_service_is_covered_by_these_tests(bench):
    offered = dict(bench.ros.node.get_service_names_and_types_by_node("query_node", "/"))
    assert {name for name in offered if "/get_tree" in name or "/compute" in name} == {f"{NODE}/{name}" for name in SERVICES}


def test_request_without_joint_names_uses_the_order_of_the_model(bench, robot, batch):
    samples = [JointSample(position=q) for q in batch.q]
    response = bench("compute_mass_matrix", samples=samples)
    assert list(response.joint_names) == NAMES
    assert numbers(response.bias).tolist() == robot.bias(batch.q, np.zeros((3, 3))).tolist()  # omitted velocities are zero


def test_single_base_state_applies_to_all_samples_and_a_missing_one_is_at_rest(bench, floating, batch):
    answer = bench.ask("compute_floating_inverse_dynamics", batch, base=batch.bases[:1])
    assert_equal(answer, effort=floating.solve(*batch.motion, base=batch.base_at(0)).torques[:, 0])
    answer = bench.ask("compute_floating_forward_dynamics", batch)
    assert_equal(answer, acceleration=floating.forward_dynamics(batch.q, batch.qd, batch.tau, base=type(batch.base)()))


GOOD = JointSample(position=[0.1, 0.2, 0.3])
BENT = BaseState()
BENT.pose.orientation.w = 0.5


@pytest.mark.parametrize(("service", "fields", "words"), [
    ("compute_mass_matrix", {}, "samples is empty; at least one is needed, with a position for each of 'turn', "),
    ("compute_mass_matrix", {"joint_names": ["turn", "spni"]}, "lacks 'spin', 'slide'; the robot's joints are 'turn', "),
    ("compute_mass_matrix", {"joint_names": [*NAMES, "turn"]}, "'turn' more than once"),
    ("compute_mass_matrix", {"samples": [JointSample()]}, "samples[0].position has shape (0,); (3,) is needed"),
    ("compute_mass_matrix", {"samples": [GOOD, JointSample(position=[0.0] * 4)]}, "samples[1].position has shape (4,)"),
    ("compute_mass_matrix", {"samples": [JointSample(position=[0.0] * 3, velocity=[1.0])]}, "samples[0].velocity has shape"),
    ("compute_inverse_dynamics", {"samples": [JointSample(position=[0.0, np.nan, 0.0])]},
     "samples[0].position of joint 'spin' is nan"),
    ("compute_forward_dynamics", {"samples": [JointSample(position=[0.0] * 3, effort=[0.0, 0.0, np.inf])]},
     "samples[0].effort of joint 'slide' is inf"),
    ("compute_inverse_dynamics", {"samples": [JointSample(position=[0.0] * 3, velocity=[1e200] * 3)]}, "too extreme"),
    ("compute_inverse_dynamics", {"samples": [GOOD], "wrenches": [LinkWrench(link="nose")]}, "wrenches[0], on link 'nose'"),
    ("compute_inverse_dynamics", {"samples": [GOOD], "wrenches": [LinkWrench(link="nose", wrench=[Wrench()])]},
     "link 'nose' is not in robot 'arm'; its links: base, upper"),
    ("compute_inverse_dynamics", {"samples": [GOOD], "wrenches": [LinkWrench(link="tool", frame="world", wrench=[Wrench()])]},
     "frame is 'world'; allowed are 'link', 'root'"),
    ("compute_inverse_dynamics", {"samples": [GOOD], "wrenches": [LinkWrench(link="tool", frame="root", wrench=[Wrench()],
                                                                             rate=[Wrench()])]}, "constant; leave it empty"),
    ("compute_joint_wrenches", {"samples": [GOOD], "wrenches": [LinkWrench(link="tool", wrench=[Wrench()] * 2)]},
     "has 2 entries; one for all samples, or one for each of the 1 is needed"),
    ("compute_forward_dynamics", {"samples": [GOOD], "wrenches": [LinkWrench(link="tool", frame="root", wrench=[Wrench()])]},
     "only frame 'link' is allowed"),
    ("compute_energy", {"samples": [GOOD] * 3, "base": [BaseState()] * 2}, "base has 2 entries"),
    ("compute_energy", {"samples": [GOOD], "base": [BENT]}, "has length 0.5; it must be 1, in the order x y z w"),
])
def test_invalid_request_is_rejected_with_a_reason_and_the_next_one_is_answered(bench, service, fields, words):
    response = bench(service, **fields)
    assert not response.success and words in response.message, response.message
    assert response.model_id and not response.joint_names
    assert bench("compute_mass_matrix", samples=[GOOD]).success


# --- clients ----------------------------------------------------------------------------------------------------------


class Client(threading.Thread):
    """Client with a separate DDS participant, which requests random states and keeps the answers."""

    def __init__(self, domain: int, number: int, start: threading.Barrier):
        super().__init__(name=f"client_{number}")
        self._domain, self._start = domain, start
        self.batches = [Batch(100 * number + k, 2) for k in range(5)]
        self.answers: list = []

    def run(self):
        context = Context()
        context.init(domain_id=self._domain)
        node = rclpy.create_node(self.name, context=context)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        # Fast DDS hands every answer to every client; one that keeps only ten, the default, may lose its own among others'.
        client = node.create_client(SERVICES["compute_inverse_dynamics"], f"{NODE}/compute_inverse_dynamics",
                                    qos_profile=QoSProfile(depth=1000))
        try:
            found = client.wait_for_service(DISCOVERY)
            self._start.wait(DISCOVERY)
            for batch in self.batches if found else ():
                request = client.srv_type.Request(joint_names=[*reversed(IN_MODEL)], samples=[
                    JointSample(**{name: [getattr(sample, name)[k] for k in (4, 3, 1)] for name in ("position", "velocity")})
                    for sample in batch.samples])
                answer, end = None, time.monotonic() + DISCOVERY
                while answer is None and time.monotonic() < end:  # the node may not have met this client's reader: ask again
                    future = client.call_async(request)
                    executor.spin_until_future_complete(future, AGAIN)
                    answer = future.result() if future.done() else None
                self.answers.append(answer)
        finally:
            executor.shutdown()
            node.destroy_node()
            context.try_shutdown()


def test_ten_concurrent_clients_receive_their_own_answers(bench, robot):
    start = threading.Barrier(10)
    clients = [Client(bench.ros.domain, number, start) for number in range(10)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(5.0 * DISCOVERY)
        assert len(client.answers) == len(client.batches) and all(client.answers)
        for batch, answer in zip(client.batches, client.answers):
            zero = np.zeros((2, 3))
            order = [NAMES.index(name) for name in answer.joint_names]
            assert list(answer.joint_names) == [*reversed(IN_MODEL)]
            expected = robot.dynamics(batch.q, batch.qd, zero, zero).tau_rate[:, order]
            assert numbers(answer.effort_rate).tolist() == expected.tolist()


def test_request_with_a_thousand_samples_is_answered(bench):
    assert bench.ask("compute_inverse_dynamics", Batch(9, 1000))["effort"].shape == (1000, 3)


def test_large_request_does_not_delay_a_small_one(bench):
    """The small request is sent after the large one, which takes thousands of times as long."""
    kind, sample = SERVICES["compute_mass_matrix"], JointSample(position=[0.1, 0.2, 0.3])
    client = bench.ros.node.create_client(kind, f"{NODE}/compute_mass_matrix")
    bench.ros.until(client.service_is_ready)
    small, large = (kind.Request(joint_names=NAMES, samples=[sample] * count) for count in (1, 20_000))
    assert bench.ros.call(kind, f"{NODE}/compute_mass_matrix", small).success  # compiled
    first, second = client.call_async(large), client.call_async(small)
    bench.ros.until(second.done)
    assert not first.done()
    bench.ros.until(first.done)
    assert len(first.result().mass_matrix) == 20_000
    np.testing.assert_array_equal(numbers(first.result().mass_matrix[-1]), numbers(second.result().mass_matrix[0]))
    bench.ros.node.destroy_client(client)

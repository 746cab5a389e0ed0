"""MoveIt response adapter AddTorqueRateParameterization with a fake service and with query_node."""

from __future__ import annotations

import ctypes
from xml.etree import ElementTree

import numpy as np
import pytest

from support.cpp_build import ROOT, build_library

PLUGINS = ROOT / "rnea_plugins"
SERVICE = "/query_node/retime_trajectory"
SUCCESS, INVALID_MOTION_PLAN, TIMED_OUT, INVALID_GROUP_NAME, COMMUNICATION_FAILURE, FAILURE = 1, -2, -6, -15, -25, 99999
DOUBLES = ctypes.POINTER(ctypes.c_double)
CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, DOUBLES, DOUBLES)
OPTIONS = ("tolerance", "rate", "velocity_share", "acceleration_share")
TEXTS = ("initialize", "reason", "log")
PATH = np.array([[0.0, 3.0, 0.1], [0.5, -3.1, 0.4], [1.0, -2.5, 0.2]])  # turn, spin, slide; spin goes on over pi
UNWOUND = PATH + np.array([[0.0, 0.0, 0.0], [0.0, 2.0 * np.pi, 0.0], [0.0, 2.0 * np.pi, 0.0]])


class MoveItBench:
    """Adapter with a robot model (turn, continuous spin, slide, finger; follow mimics turn) and a fake service."""

    def __init__(self, library: ctypes.CDLL):
        self.library = library
        for name in TEXTS:
            getattr(library, f"bench_{name}").restype = ctypes.c_char_p
        self.requests: list[dict] = []
        self("reset")
        for name, continuous in (("turn", 0), ("spin", 1), ("slide", 0), ("finger", 0)):
            self("joint", name, 1, continuous)
        self("joint", "world_joint", 3, 0)  # as SRDF's planar virtual joint
        self("mimic", "follow", "turn")
        self("group", "arm", "turn spin slide")

    def __call__(self, name: str, *given):
        found = getattr(self.library, f"bench_{name}")(*(x.encode() if isinstance(x, str) else x for x in given))
        return found.decode() if name in TEXTS else found

    def initialize(self, parameter_namespace="ompl"):
        return self("initialize", "rnea_plugins::AddTorqueRateParameterization", parameter_namespace)

    def serve(self, answer, name=SERVICE):
        """Answer requests by a function that returns arguments of `answer`, or None for no answer."""
        def call(points, joints, names, positions, options):
            request = dict(zip(OPTIONS, options[:4]))
            request |= {"names": names.decode().split(), "q": np.ctypeslib.as_array(positions, (points, joints)).copy()}
            self.requests.append(request)
            found = answer(request)
            if found is not None:
                self.answer(**found)
            return found is not None

        self._kept = CALL(call)  # reference kept while C++ may call it
        self("serve", name, self._kept)

    def answer(self, names=(), t=(), q=(), qd=(), qdd=(), success=True, message="", model_id="1a2b", note=""):
        """Send a response; t is in whole nanoseconds."""
        seconds = (ctypes.c_int * len(t))(*(int(x) // 10**9 for x in t))
        nanoseconds = (ctypes.c_uint * len(t))(*(int(x) % 10**9 for x in t))
        tables = [np.ascontiguousarray(rows, dtype=float).ctypes.data_as(DOUBLES) for rows in (q, qd, qdd)]
        self("answer", success, message, model_id, note, " ".join(names), len(t), seconds, nanoseconds, *tables)

    def path(self, q, names=("turn", "spin", "slide"), group="arm"):
        table = np.ascontiguousarray(q, dtype=float)
        self("path", group, " ".join(names), len(table), table.ctypes.data_as(DOUBLES))

    def adapt(self, velocity=1.0, acceleration=1.0):
        return self("adapt", ctypes.c_double(velocity), ctypes.c_double(acceleration))

    def read(self, joint):
        """Return rows of time since the previous waypoint, position, velocity, acceleration."""
        rows = np.zeros((self("count"), 4))
        for k, row in enumerate(rows):
            self("read", k, joint, row.ctypes.data_as(DOUBLES))
        return rows


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    target = tmp_path_factory.mktemp("moveit") / "adapter.so"
    return build_library(target, PLUGINS / "src" / "add_torque_rate_parameterization.cpp", "test/plugins/moveit_bench.cpp")


@pytest.fixture
def bench(library):
    return MoveItBench(library)


def timed(request):
    """Return a trajectory of four points in another joint order and without the finger."""
    rng = np.random.default_rng(4)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 4, 3))
    return {"names": ("slide", "turn", "spin"), "t": (0, 250_000_000, 1_100_000_000, 1_100_000_500), "q": q, "qd": qd,
            "qdd": qdd, "note": "no limits known of jerk"}


def test_adapter_writes_times_velocities_and_accelerations_of_the_response(bench):
    assert bench.initialize() == ""
    bench.serve(timed)
    bench.path(np.column_stack((PATH, np.full(3, 0.03))), ("turn", "spin", "slide", "finger"))
    assert bench.adapt(0.5, 0.25) == SUCCESS
    (request,) = bench.requests
    assert request["names"] == ["turn", "spin", "slide", "finger"]  # all joints of one variable
    np.testing.assert_allclose(request["q"], np.column_stack((UNWOUND, np.full(3, 0.03))), rtol=0, atol=1e-12)
    assert [request[name] for name in OPTIONS] == [1e-6, 100.0, 0.5, 0.25]
    wanted = timed(request)
    for column, joint in enumerate(wanted["names"]):
        found = bench.read(joint)
        np.testing.assert_allclose(found[:, 0], [0.0, 0.25, 0.85, 5e-7], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found[:, 1:], np.column_stack([wanted[name][:, column] for name in ("q", "qd", "qdd")]))
    np.testing.assert_array_equal(bench.read("finger")[:, 1:], [[0.03, 0.0, 0.0]] * 4)  # held, the earlier velocity gone
    np.testing.assert_array_equal(bench.read("follow")[:, 1], bench.read("turn")[:, 1])
    assert "INFO move_group.add_torque_rate_parameterization: no limits known of jerk" in bench("log")


def test_adapter_parameters_set_service_timeout_rate_and_tolerance(bench):
    for kind, name, value in (("text", "service", "/other/retime"), ("integer", "timeout", 5),
                              ("number", "rate", ctypes.c_double(50.0)), ("number", "tolerance", ctypes.c_double(1e-3))):
        bench(kind, f"pilz.torque_rate.{name}", value)
    bench("declare", "pilz.torque_rate.timeout")  # as a node that declares its overrides by itself
    assert bench.initialize("pilz") == ""
    bench.serve(timed, "/other/retime")
    bench.path(PATH)
    assert bench.adapt(0.0, 0.0) == SUCCESS
    (request,) = bench.requests
    assert (request["rate"], request["tolerance"]) == (50.0, 1e-3)
    assert (request["velocity_share"], request["acceleration_share"]) == (1.0, 1.0)  # zero: not set, in MoveIt


@pytest.mark.parametrize(("name", "kind", "value", "words"), [
    ("timeout", "number", ctypes.c_double(0.0), "ompl.torque_rate.timeout is 0; 0.001 to 3600 is allowed"),
    ("timeout", "number", ctypes.c_double(np.nan), "ompl.torque_rate.timeout is nan; 0.001 to 3600 is allowed"),
    ("rate", "integer", -100, "ompl.torque_rate.rate is -100; 1 to 10000 is allowed"),
    ("tolerance", "number", ctypes.c_double(2.0), "ompl.torque_rate.tolerance is 2; 0 to 1 is allowed"),
    ("timeout", "text", "long", "another type"),
    ("service", "integer", 1, "another type")])
def test_adapter_rejects_invalid_parameters(bench, name, kind, value, words):
    bench(kind, f"ompl.torque_rate.{name}", value)
    assert words in bench.initialize()


def test_missing_service_error_names_the_remedy(bench):
    bench.initialize()
    bench.path(PATH)
    assert bench.adapt() == COMMUNICATION_FAILURE
    reason = bench("reason")
    assert reason == ("AddTorqueRateParameterization: service '/query_node/retime_trajectory' is not available after 30 s: "
                      "start query_node (ros2 launch rnea_ros dynamics.launch.py query_node:=true), or set "
                      "ompl.torque_rate.service")
    assert reason.split(": ", 1)[1] in bench("log")
    np.testing.assert_array_equal(bench.read("turn")[:, 1], PATH[:, 0])  # the path is as it was
    bench.serve(timed)  # works once the service is available
    assert bench.adapt() == SUCCESS


def test_service_timeout_is_reported_and_the_next_request_succeeds(bench):
    bench.initialize()
    bench.serve(lambda request: None)
    bench.path(PATH)
    assert bench.adapt() == TIMED_OUT
    assert "has not answered after 30 s: set ompl.torque_rate.timeout higher" in bench("reason")
    assert bench("pending") == 0
    bench.serve(timed)
    assert bench.adapt() == SUCCESS


def test_failure_message_of_the_service_is_passed_on(bench):
    bench.initialize()
    bench.serve(lambda request: {"success": False, "message": "gravity alone needs 61 N m of joint turn, which has 40 N m"})
    bench.path(PATH)
    assert bench.adapt() == FAILURE
    assert bench("reason").endswith("retime_trajectory': gravity alone needs 61 N m of joint turn, which has 40 N m")


NO_MODEL = {"success": False, "message": "no model yet; it is being built, ask again", "model_id": ""}


def test_adapter_waits_for_the_model_of_query_node(bench):
    bench.initialize()
    bench.serve(lambda request: timed(request) if len(bench.requests) > 2 else NO_MODEL)
    bench.path(PATH)
    assert bench.adapt() == SUCCESS and len(bench.requests) == 3
    assert bench("log").count("no model yet; it is being built, ask again; asking again for up to 20 s") == 1


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_adapter_without_a_model_fails_after_its_timeout(bench, seconds):
    bench("number", "ompl.torque_rate.model_timeout", ctypes.c_double(seconds))
    bench.initialize()
    bench.serve(lambda request: NO_MODEL)
    bench.path(PATH)
    assert bench.adapt() == FAILURE
    assert (len(bench.requests) > 1) == (seconds > 0.0)
    remedy = "; still so after 0.5 s: set ompl.torque_rate.model_timeout higher, or start query_node earlier"
    assert bench("reason").endswith("no model yet; it is being built, ask again" + (remedy if seconds else ""))


def test_groups_with_joints_that_cannot_be_timed_are_rejected(bench):
    bench("group", "gripper", "finger")
    bench("group", "base", "world_joint turn")
    bench.initialize()
    bench.serve(timed)
    bench.path([[0.0], [0.1]], ("finger",), "gripper")
    assert bench.adapt() == INVALID_GROUP_NAME
    assert "joint 'finger' moves and cannot be timed" in bench("reason")
    for group in ("base", ""):  # of the whole robot
        bench.path(PATH, group=group)
        assert bench.adapt() == INVALID_GROUP_NAME
        assert ("'world_joint'" if group else "'finger'") in bench("reason")


def test_path_without_motion_is_timed_without_a_request(bench):
    bench.initialize()
    bench.serve(timed)
    bench.path(PATH[[0, 0]])
    assert bench.adapt() == SUCCESS and not bench.requests
    np.testing.assert_array_equal(bench.read("spin"), [[0.0, PATH[0, 1], 0.0, 0.0]])


def test_response_without_path_is_rejected(bench):
    bench.initialize()
    assert bench.adapt() == INVALID_MOTION_PLAN and "has no path to time" in bench("reason")
    bench.path(np.empty((0, 3)))
    assert bench.adapt() == INVALID_MOTION_PLAN


def test_plugin_description_names_the_adapter_class(bench):
    (entry,) = ElementTree.parse(PLUGINS / "moveit_response_adapters.xml").getroot().iter("class")
    assert bench("initialize", entry.get("type"), "") == ""
    assert entry.get("base_class_type") == "planning_interface::PlanningResponseAdapter"
    assert entry.get("name") == entry.get("type").replace("::", "/")


@pytest.mark.ros
def test_trajectory_timed_by_query_node_reaches_but_keeps_torque_limits(bench, tmp_path):
    """Pinocchio computes torques and torque rates of the trajectory."""
    pytest.importorskip("rclpy")
    pytest.importorskip("pinocchio")
    srv = pytest.importorskip("rnea_msgs.srv")
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from rnea_ros import Robot
    from support.node_bench import ARM, NAMES
    from support.oracles import PinocchioOracle
    from support.query_bench import QueryBench
    from support.ros_helpers import ros_domain

    known = {"velocity": 2.0, "effort": 150.0, "effort_rate": 1500.0, "acceleration": 20.0}
    limits = {f"joint_limits.{joint}.{key}": value for joint in NAMES for quantity, limit in known.items()
              for key, value in ((f"has_{quantity}_limits", True), (f"max_{quantity}", limit))}
    with ros_domain(tmp_path) as ros:
        query = QueryBench(ros, robot_description=ARM, **limits).ready()

        def ask(request):
            points = [JointTrajectoryPoint(positions=row.tolist()) for row in request["q"]]
            options = {name: request[name] for name in OPTIONS}
            answer = query.ros.call(srv.RetimeTrajectory, SERVICE, srv.RetimeTrajectory.Request(
                trajectory=JointTrajectory(joint_names=request["names"], points=points), **options))
            found = answer.trajectory.points
            tables = {key: [getattr(point, name) for point in found] for key, name in
                      (("q", "positions"), ("qd", "velocities"), ("qdd", "accelerations"))}
            times = [point.time_from_start.sec * 10**9 + point.time_from_start.nanosec for point in found]
            return {"success": answer.success, "message": answer.message, "names": answer.trajectory.joint_names, "t": times,
                    **tables}

        bench("number", "ompl.torque_rate.rate", ctypes.c_double(1000.0))
        bench.initialize()
        bench.serve(ask)
        oracle = PinocchioOracle(ARM, Robot.from_urdf(ARM))
        durations = []
        for share in (1.0, 0.4):
            bench.path(PATH)
            assert bench.adapt(share, share) == SUCCESS, bench("reason")
            rows = np.stack([bench.read(name) for name in NAMES], axis=2)
            t, (q, qd, qdd) = np.cumsum(rows[:, 0, 0]), rows[:, 1:].swapaxes(0, 1)
            np.testing.assert_allclose(q[[0, -1]], UNWOUND[[0, -1]], rtol=0, atol=1e-9)
            for point in UNWOUND:
                assert np.linalg.norm(q - point, axis=1).min() < 5e-3
            # What MoveIt is given is one motion: each quantity is the derivative of the one before.
            step = np.diff(t)[:, None]
            for low, high in ((q, qd), (qd, qdd)):
                middle = np.diff(low, axis=0) / step
                np.testing.assert_allclose(middle, 0.5 * (high[1:] + high[:-1]), rtol=0, atol=2e-3 * np.abs(high).max())
            tau = np.array([oracle.torque_and_rate(*motion, np.zeros(3))[0] for motion in zip(q, qd, qdd)])
            used = [np.abs(tau).max() / known["effort"], np.abs(np.diff(tau, axis=0) / step).max() / known["effort_rate"],
                    np.abs(qd).max() / (share * known["velocity"]), np.abs(qdd).max() / (share * known["acceleration"])]
            assert max(used) < 1.01 and max(used) > 0.98, used
            durations.append(t[-1])
        assert durations[1] > 1.3 * durations[0]
        bench.path(PATH)
        assert bench.adapt(1.5, 1.0) == FAILURE
        assert "the share of the velocity limits is 1.5; a number above zero, at most 1, is needed" in bench("reason")

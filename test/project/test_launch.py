"""Launch files, executed by ROS 2's launch where it is installed, otherwise by the stand-in of launch_stand_in.py."""

import ast
import importlib.util
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from launch_stand_in import REAL, RUN, arguments_of, by_launch, by_stand_in, launched, module_of, prefixes, workspace

from rnea_ros import Robot, load
from rnea_ros.demo.catalogue import DEMOS
from rnea_ros.demo.processes import share_file
from rnea_ros.demo.scaling import limit_parameters, overspeed_task

ROOT = Path(__file__).resolve().parents[2]
LAUNCH, CONFIG, URDF = ROOT / "launch", ROOT / "config", ROOT / "urdf"
FILES = sorted(LAUNCH.glob("*.launch.py"))
NODES = ("dynamics_node", "demo_robot", "query_node", "scaling_node", "demo_follower", "demo_policy", "demo_plant")
OWN_ROBOTS = {LAUNCH / f"{name}_demo.launch.py": name for name in DEMOS}
RSP = "robot_state_publisher"
ALONE = {"rnea_ros": NODES, "rviz2": (), RSP: ()}  # packages hidden if they are installed
ALL = {"rnea_ros": NODES, "rviz2": ("rviz2",), RSP: (RSP,)}
RR, STANFORD = str(URDF / "rr.urdf"), str(URDF / "stanford.urdf")
ros = pytest.mark.skipif(importlib.util.find_spec("rclpy") is None, reason="no ROS here")


@pytest.fixture
def start(tmp_path):
    """Return a function that returns the processes of a launch file: start("demo", ALL, rviz="true")."""
    def run(name, packages=ALONE, **given):
        return launched(LAUNCH / f"{name}.launch.py", given, packages, tmp_path)

    return run


@pytest.fixture
def colons(tmp_path):
    """Return a URDF that is not valid YAML."""
    file = tmp_path / "colons.urdf"
    file.write_text(Path(RR).read_text().replace("<robot", "<!-- a: b: c -->\n<robot", 1))
    return file


def demo_file():
    """launch/demo.launch.py as a module, on the stand-in."""
    return module_of(LAUNCH / "demo.launch.py")


# --- arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_launch_files_declare_the_documented_arguments(path):
    arguments = arguments_of(path)
    names, robot = {argument.name for argument in arguments}, set(demo_file().OF_THE_ROBOT)
    assert {"params_file", "motion_source", "namespace", "start_rsp", "rviz", "rviz_config", "use_sim_time",
            "log_level"} <= names
    assert names & robot == (set() if path in OWN_ROBOTS else robot)
    assert len({argument.name for argument in arguments}) == len(arguments)
    for argument in arguments:
        assert argument.description and argument.default_value is not None
        assert not argument.default_value.startswith("/") or Path(argument.default_value).is_file(), argument.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_docstring_of_a_launch_file_shows_its_command(path):
    assert f"ros2 launch rnea_ros {path.name}" in ast.get_docstring(ast.parse(path.read_text()))


# --- started processes --------------------------------------------------------------------------------------------------

CASES = [  # file, arguments, packages, what is started
    ("demo", {}, ALONE, "demo_robot dynamics_node"),
    ("demo", {"urdf": RR, "query_node": "true", "rate": "100"}, ALONE, "demo_robot dynamics_node query_node"),
    ("demo", {"rviz": "true", "namespace": "left", "start_rsp": "true"}, ALL, f"demo_robot dynamics_node {RSP} rviz2"),
    ("demo", {"urdf_package": "rnea_ros", "urdf_package_path": "no.urdf"}, ALONE, ""),
    ("demo", {"rate": "fast"}, ALONE, ""),
    ("demo", {"motion": "dance"}, ALONE, ""),
    ("dynamics", {}, ALONE, ""),
    ("dynamics", {"urdf": RR}, ALONE, "dynamics_node"),
    ("dynamics", {"urdf": RR, "dynamics": "false", "query_node": "true", "use_sim_time": "true"}, ALONE, "query_node"),
    ("dynamics", {"urdf": RR, "motion_source": "estimated", "log_level": "warn", "namespace": "/a/b"}, ALONE, "dynamics_node"),
    ("dynamics", {"urdf": RR, "start_rsp": "true"}, ALL, f"dynamics_node {RSP}"),
    ("dynamics", {"urdf": RR, "start_rsp": "true"}, ALONE, ""),
    ("dynamics", {"urdf": RR, "start_rsp": "false"}, ALL, "dynamics_node"),
    ("dynamics", {"urdf": RR, "rviz": "true"}, ALONE, ""),
    ("dynamics", {"urdf": RR, "namespace": "a b"}, ALONE, ""),
    ("dynamics", {"urdf": RR}, {**ALONE, "rnea_ros": ()}, ""),
    ("scaling", {"urdf": RR}, ALONE, "scaling_node"),
    ("scaling", {"urdf": RR, "dynamics": "true", "rviz": "true", "start_rsp": "false"}, ALL,
     "dynamics_node rviz2 scaling_node"),
    ("scaling", {"urdf": RR, "controller": "/jtc", "forward_controller": "/forward", "commands": "commanded_effort",
                 "query_node": "true"}, ALONE, "query_node scaling_node"),
    ("scaling", {"urdf": RR, "params_file": str(CONFIG / "stanford.yaml")}, ALONE, "scaling_node"),
    ("scaling", {"urdf": RR, "controller": "/jtc", "controller_interface": "radio"}, ALONE, ""),
    ("scaling_demo", {}, ALONE, "demo_follower dynamics_node scaling_node"),
    ("scaling_demo", {"urdf": RR, "query_node": "true", "namespace": "left"}, ALONE,
     "demo_follower dynamics_node query_node scaling_node"),
    ("scaling_demo", {"urdf": STANFORD, "dynamics": "false", "speed": "1.5"}, ALONE, "demo_follower scaling_node"),
    ("scaling_demo", {"rviz": "true"}, ALONE, ""),
    ("policy_demo", {}, ALONE, "demo_policy dynamics_node scaling_node"),
    ("scaling_demo", {"speed": "fast", "urdf": RR}, ALONE, ""),
    ("palletiser_demo", {"query_node": "true", "namespace": "left"}, ALONE, "demo_robot dynamics_node query_node"),
    ("palletiser_demo", {"rviz": "true", "start_rsp": "true"}, ALL, f"demo_robot dynamics_node {RSP} rviz2"),
    ("palletiser_demo", {"rviz": "true"}, ALONE, ""),
    ("stewart_demo", {}, ALONE, "demo_robot dynamics_node"),
    ("stewart_demo", {"urdf": RR}, ALONE, ""),
]


def named(case):
    return f"{case[0]} {' '.join(':='.join(pair) for pair in case[1].items())}".replace(str(ROOT) + "/", "")


@pytest.mark.parametrize("case", CASES, ids=named)
def test_launch_files_start_the_expected_nodes(start, case):
    file, given, packages, programs = case
    result = start(file, packages, **given)
    assert " ".join(result.programs) == programs
    assert bool(result.error) == (not programs)
    namespace = "/" + given.get("namespace", "").strip("/")
    for one in result.started:
        assert one.namespace == namespace and {"/tf:=tf", "/tf_static:=tf_static"} <= set(one.remappings)
        assert one.parameters["use_sim_time"] is (given.get("use_sim_time") == "true")
        assert one.arguments[-4:] == ["--ros-args", "--log-level", given.get("log_level", "info"), "--ros-args"]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not REAL, reason="launch_ros is not importable: it comes with a ROS 2 installation, not from PyPI")
def test_stand_in_gives_the_same_result_as_launch(tmp_path):
    for file, given, packages, _ in CASES:
        real, stand_in = (by(LAUNCH / f"{file}.launch.py", given, packages, tmp_path) for by in (by_launch, by_stand_in))
        assert stand_in.said == real.said
        assert [unnamed(one) for one in stand_in.started] == [unnamed(one) for one in real.started]
        if "namespace" not in real.error:  # the message of launch has several lines
            assert re.sub("/tmp[a-z0-9_]{8}/", "/", stand_in.error) == re.sub("/tmp[a-z0-9_]{8}/", "/", real.error)


def unnamed(one):
    """Return a file without the folder of a temporary RViz file."""
    return one._replace(arguments=[re.sub(r".*/rnea_[a-z0-9_]{8}\.rviz", "rnea.rviz", word) for word in one.arguments])


@pytest.mark.parametrize("missing", NODES)
@pytest.mark.parametrize("file, given", [
    ("demo", {"query_node": "true"}), ("scaling_demo", {"query_node": "true", "urdf": RR}), ("dynamics", {"urdf": RR}),
    ("scaling", {"urdf": RR})], ids=["demo", "scaling_demo", "dynamics", "scaling"])
def test_missing_executables_are_reported_before_anything_starts(start, file, given, missing):
    result = start(file, {**ALL, "rnea_ros": tuple(set(NODES) - {missing})}, **given, start_rsp="true")
    assert result.error == "" or (f"{missing} is not installed" in result.error and not result.started)
    assert (missing in result.programs) is False and bool(result.error) != bool(result.started)


@pytest.mark.parametrize("file", ["demo", "scaling_demo"])
def test_missing_rviz_is_reported_and_nothing_starts(start, file):
    result = start(file, rviz="true")
    assert result.error.startswith("rviz2 is not installed: install ros-<distro>-rviz2") and not result.started


def test_missing_state_publisher_is_an_error_only_if_requested(start):
    result = start("dynamics", urdf=RR)
    assert result.started and result.said == [f"{RSP} is not installed: no link poses on tf; torques need none"]
    result = start("dynamics", urdf=RR, start_rsp="true")
    assert "install ros-<distro>-robot-state-publisher" in result.error and not result.started


@pytest.mark.parametrize("file", ["demo", "dynamics", "scaling", "scaling_demo"])
@pytest.mark.parametrize("given, words", [
    ({"urdf": "a.urdf", "urdf_package": "b"}, "which robot? Give either urdf:="),
    ({"urdf_package": "b"}, "urdf_package_path:="),
    ({"urdf": "no/such.urdf"}, "no/such.urdf. Give urdf:="),
    ({"urdf_package": "no_such_package", "urdf_package_path": "a.urdf"}, "no_such_package: no such package"),
    ({"urdf": RR, "params_file": "no.yaml"}, "params_file:=no.yaml: no such file"),
    ({"urdf": RR, "rviz": "true", "rviz_config": "no.rviz"}, "rviz_config:=no.rviz: no such file"),
])
def test_invalid_launch_argument_is_rejected_with_the_remedy(start, file, given, words):
    result = start(file, ALL, **given, start_rsp="false")
    assert words in result.error and not result.started


@pytest.mark.parametrize("file", ["demo", "dynamics", "scaling", "scaling_demo"])
@pytest.mark.parametrize("text, words", [
    (b"<robot", "is no URDF: unclosed token"), (b"\xff\xfe", "is no URDF: 'utf-8' codec"),
    (b"", "is no URDF: no element found"), (b"<robot name='r'/>", "is no URDF: it has no link")])
def test_invalid_urdf_file_starts_nothing(start, tmp_path, file, text, words):
    (tmp_path / "bad.urdf").write_bytes(text)
    result = start(file, urdf=str(tmp_path / "bad.urdf"))
    assert f"bad.urdf {words}" in result.error and not result.started


def test_launch_without_a_robot_asks_for_one(start):
    for file in ("dynamics", "scaling"):
        assert "which robot? Give either urdf:=" in start(file).error


# --- parameters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["demo", "dynamics", "scaling", "scaling_demo"])
def test_every_node_receives_the_robot_description(start, colons, file):
    result = start(file, ALL, urdf=str(colons), query_node="true", start_rsp="true")
    assert not result.error and len(result.started) >= 3
    for one in result.started:
        assert one.parameters["robot_description"] == colons.read_text(), one.executable


def test_xacro_is_processed_with_its_arguments(start, tmp_path):
    pytest.importorskip("xacro", reason="xacro is not importable: pip install xacro")
    file = tmp_path / "robot.urdf.xacro"
    file.write_text('<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="prefix" default=""/>'
                    '<link name="$(arg prefix)base"/></robot>')
    text = start("dynamics", urdf=str(file), xacro_args="prefix:=left_").one("dynamics_node").parameters["robot_description"]
    assert '<link name="left_base"/>' in text and "xacro:arg" not in text
    assert "pairs name:=value" in start("dynamics", urdf=str(file), xacro_args="left_").error


def test_launch_arguments_are_passed_to_their_nodes(start, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("{}")
    result = start("dynamics", urdf=RR, params_file=str(mine), motion_source="estimated", query_node="true")
    assert [one.files for one in result.started] == [[str(mine)], [str(mine)]]
    assert result.one("dynamics_node").parameters["motion_source"] == "estimated"
    assert "motion_source" not in start("dynamics", urdf=RR).one("dynamics_node").parameters
    assert set(result.one("query_node").parameters) == {"robot_description", "use_sim_time"}
    robot = start("demo", motion="sweep", rate="100", duration="3").one("demo_robot").parameters
    assert (robot["motion"], robot["rate"], robot["duration"]) == ("sweep", 100.0, 3.0) and type(robot["rate"]) is float


@pytest.mark.parametrize("file, given, nodes", [
    ("dynamics", {"urdf": RR, "query_node": "true"}, "/dynamics_node, /query_node"),
    ("demo", {"query_node": "true", "namespace": "left/arm"}, "/left/arm/dynamics_node, /left/arm/query_node"),
    ("scaling", {"urdf": RR, "dynamics": "true"}, "/dynamics_node, /scaling_node"),
    ("scaling_demo", {"namespace": "/left"}, "/left/dynamics_node, /left/scaling_node")])
def test_parameter_file_with_different_robots_for_two_nodes_is_rejected(start, tmp_path, file, given, nodes):
    mine = tmp_path / "mine.yaml"
    mine.write_text("/**/dynamics_node: {ros__parameters: {payload: {link: hand, mass: 1.0}}}")
    result = start(file, **given, params_file=str(mine))
    assert f"mine.yaml: {nodes} would compute with different robots, since payload.link, payload.mass" in result.error
    assert not result.started
    mine.write_text(mine.read_text().replace("/**/dynamics_node", "/**"))
    assert start(file, **given, params_file=str(mine)).started


def test_stanford_parameters_are_used_for_the_packaged_stanford_arm_only(start, tmp_path):
    theirs = tmp_path / "stanford.urdf"
    theirs.write_text(Path(RR).read_text())
    package = {"urdf_package": "theirs", "urdf_package_path": "stanford.urdf"}
    share_file = {**ALONE, "theirs": ()}
    for given, file in [({}, "dynamics_node"), ({"urdf": STANFORD}, "stanford"), ({"urdf": RR}, "dynamics_node"),
                        ({"urdf": str(theirs)}, "dynamics_node"),
                        ({"params_file": str(CONFIG / "scaling_node.yaml")}, "scaling_node")]:
        result = start("demo", query_node="true", **given)
        assert result.one("dynamics_node").files == result.one("query_node").files == [str(CONFIG / f"{file}.yaml")]
    assert "stanford.urdf" in start("demo", share_file, **package).error  # file missing, and not the packaged Stanford arm


def test_limits_of_the_scaling_demo_are_passed_to_every_node(start):
    robot = Robot.from_urdf(RR)
    limits = limit_parameters(robot, overspeed_task(robot).limits)
    result = start("scaling_demo", urdf=RR, query_node="true", speed="3")
    for name in ("dynamics_node", "query_node", "scaling_node"):
        given = result.one(name).parameters
        assert {key: given[key] for key in given if key.startswith("joint_limits.")} == pytest.approx(limits)
    assert result.one("demo_follower").parameters["speed"] == 3.0


def test_robot_file_is_passed_to_every_node_that_reads_it(start):
    path = str(URDF / "five_bar.robot.yaml")
    given = {"urdf": str(URDF / "five_bar.urdf"), "robot_file": os.path.relpath(path)}
    both = start("dynamics", **given, query_node="true")
    assert [both.one(name).parameters["robot_file"] for name in ("dynamics_node", "query_node")] == [path, path]
    assert "robot_file" not in start("dynamics", urdf=RR).one("dynamics_node").parameters
    assert start("scaling", **given).one("scaling_node").parameters["robot_file"] == path
    result = start("dynamics", **given | {"robot_file": "no.yaml"})
    assert "robot_file:=no.yaml: no such file" in result.error and not result.started


@pytest.mark.parametrize("name", DEMOS)
def test_robot_demo_starts_its_nodes_with_its_files(start, name):
    demo, result = DEMOS[name], start(f"{name}_demo")
    assert not result.error and result.programs == sorted(demo.nodes)
    for one in result.started:
        assert one.parameters["robot_description"] == share_file(demo.urdf).read_text()
        if one.executable == "dynamics_node":
            assert one.parameters["robot_file"] == str(ROOT / demo.robot_file)
        else:
            assert (one.parameters["motion"], one.parameters["rate"]) == (name, demo.rate)
    assert "for another robot use demo.launch.py" in start(f"{name}_demo", urdf=RR).error


def test_effort_commands_are_remapped_to_the_controller(start):
    node = start("dynamics", urdf=RR, effort_commands="gravity", effort_controller="/arm/efforts").one("dynamics_node")
    assert "~/commands:=/arm/efforts/commands" in node.remappings and node.parameters["commands"] == "gravity"
    assert "commands" not in start("dynamics", urdf=RR).one("dynamics_node").parameters


def test_profile_name_is_accepted_as_robot_file(start):
    file = Path(start("dynamics", urdf=RR, robot_file="openarm").one("dynamics_node").parameters["robot_file"])
    assert file.stem == "openarm" and file.is_file()


def test_references_are_remapped_to_the_controllers(start):
    node = start("scaling", urdf=RR, controller="/jtc", controller_interface="action", output="horizon",
                 forward_controller="/forward", commands="commanded_effort").one("scaling_node")
    assert "~/commands:=/forward/commands" in node.remappings
    reported = {"controller.name": "/jtc", "controller.interface": "action", "output": "horizon",
                "commands": "commanded_effort"}
    assert {name: node.parameters[name] for name in reported} == reported
    assert not set(reported) & set(start("scaling", urdf=RR).one("scaling_node").parameters)


def test_rviz_starts_with_the_root_frame_and_markers(start):
    result = start("dynamics", ALL, urdf=str(URDF / "branched.urdf"), rviz="true", start_rsp="true")
    option, file, *root = result.one("rviz2").arguments[:4]
    assert (option, root) == ("-d", ["-f", "base_link"])
    ours = yaml.safe_load((CONFIG / "rnea.rviz").read_text())
    aimed = yaml.safe_load(Path(file).read_text())
    view = aimed["Visualization Manager"]["Views"]["Current"]
    assert 1.0 < view["Distance"] < 10.0 and view["Distance"] != ours["Visualization Manager"]["Views"]["Current"]["Distance"]
    own = start("dynamics", ALL, urdf=str(URDF / "branched.urdf"), rviz="true", rviz_config=file)
    assert own.one("rviz2").arguments[:2] == ["-d", file]  # a given file is unchanged
    assert result.one("dynamics_node").parameters["publish_markers"] is True
    assert result.one(RSP).parameters["publish_frequency"] == 1000.0  # as often as efforts come, not 20 Hz


# --- in a ROS graph ---------------------------------------------------------------------------------------------------


@pytest.fixture
def domain(tmp_path, monkeypatch):
    pytest.importorskip("rclpy")
    from support.ros_helpers import ros_domain

    with ros_domain(tmp_path) as made:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(made.domain))
        yield made


@ros
@pytest.mark.ros
def test_state_publisher_is_not_started_if_one_exists(start, domain):
    from std_msgs.msg import String

    from support.ros_helpers import LATCHED

    def programs(**given):
        result = start("dynamics", ALL, urdf=RR, **given)
        assert not result.said, result
        return result.programs

    assert programs() == ["dynamics_node", RSP]
    publisher = domain.node.create_publisher(String, "robot_description", LATCHED)  # as a driver's does
    tries = (start("dynamics", ALL, urdf=RR) for _ in range(5))  # discovery may take longer on a busy machine
    seen = next(result for result in tries if result.said)
    assert seen.programs == ["dynamics_node"] and len(seen.said) == 1
    assert programs(start_rsp="true") == ["dynamics_node", RSP]
    assert programs(namespace="left") == ["dynamics_node", RSP]
    domain.node.destroy_publisher(publisher)


@ros
@pytest.mark.ros
def test_description_publisher_is_detected_by_name_or_topic(domain):
    import rclpy
    from std_msgs.msg import String

    from rnea_ros.nodes.common.launch_support import GraphObserver

    def seen(*namespaces, patience=60.0):
        observers = [GraphObserver(namespace) for namespace in namespaces]
        with suppress(AssertionError):
            domain.until(lambda: any(observer.robot_description_publisher() for observer in observers), timeout=patience)
        try:
            return [observer.robot_description_publisher() for observer in observers]
        finally:
            for observer in observers:
                observer.end()

    nodes = [rclpy.create_node(name, namespace=space, context=domain.context)
             for name, space in ((RSP, "left"), ("driver", "right"), ("bystander", "alone"))]
    try:
        nodes[1].create_publisher(String, "robot_description", 1)
        nodes[2].create_publisher(String, "something_else", 1)
        assert seen("left") == seen("/left") == [f"/left/{RSP}"]
        assert seen("right")[0].endswith(("/driver", "_UNKNOWN_"))  # a publisher is discovered before its node's name
        assert seen("alone", "", patience=6.0) == ["", ""]
    finally:
        for node in nodes:
            node.destroy_node()


@ros
@pytest.mark.ros
def test_all_nodes_of_the_demo_compute_with_the_same_robot(start, domain, tmp_path):
    pytest.importorskip("rnea_msgs")
    from rnea_msgs.msg import ModelInfo
    from support.ros_helpers import LATCHED

    received = {}
    for one in start("demo", query_node="true").started:
        name = one.executable
        if name != "demo_robot":
            received[name] = domain.listen(ModelInfo, f"{name}/model_info", LATCHED)
            own = tmp_path / f"{name}.yaml"  # comes after the files, as launch has it
            own.write_text(yaml.safe_dump({"/**": {"ros__parameters": one.parameters}}))
            files = [word for file in (*one.files, str(own)) for word in ("--params-file", file)]
            node = domain.start(name, {}, "", *files)
    domain.until(lambda: all(received.values()), of=node)
    models = {name: messages[-1] for name, messages in received.items()}
    assert {model.model_id for model in models.values()} == {load(URDF / "panda.urdf", URDF / "panda.robot.yaml").model_id}
    assert all(list(model.effort_rate_limit) == [1000.0] * 7 for model in models.values())  # limits of the robot file


# --- processes ---------------------------------------------------------------------------------------------------------


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="launch_ros is not importable: it comes with a ROS 2 installation, not from PyPI")
@pytest.mark.parametrize("file, arguments, kind, topic, joints, nodes", [
    ("demo", (), "JointDynamics", "dynamics_node/joint_dynamics", 6, 2),
    ("demo", ("namespace:=left", "urdf:={colons}", "query_node:=true"), "JointDynamics", "left/dynamics_node/joint_dynamics",
     2, 3),
    ("palletiser_demo", (), "JointDynamics", "dynamics_node/joint_dynamics", 4, 2),
    ("stewart_demo", ("namespace:=left",), "JointDynamics", "left/dynamics_node/joint_dynamics", 6, 2),
    ("scaling_demo", (), "ScaledMotion", "scaling_node/scaled_motion", 7, 3),
    ("scaling_demo", ("namespace:=left", "urdf:={colons}", "dynamics:=false"), "ScaledMotion",
     "left/scaling_node/scaled_motion", 2, 2),
])
def test_demo_launch_runs_and_ends_cleanly(domain, tmp_path, colons, file, arguments, kind, topic, joints, nodes):
    import rnea_msgs.msg

    run = (f'#!/bin/sh\nexport PYTHONPATH="{ROOT}:$PYTHONPATH"\n'
           f'exec {sys.executable} -m rnea_ros.node_commands "$(basename "$0")" "$@"\n')
    made = workspace(tmp_path / "workspace", ALONE, run)
    received = domain.listen(getattr(rnea_msgs.msg, kind), topic)
    command = [sys.executable, "-c", RUN, str(LAUNCH / f"{file}.launch.py"),
               *(argument.format(colons=colons) for argument in arguments)]
    process = subprocess.Popen(command, env={**os.environ, "AMENT_PREFIX_PATH": prefixes(made), "TMPDIR": str(tmp_path)},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        domain.until(lambda: received and any(received[-1].effort_rate), timeout=120.0)
    finally:
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=240)[0]
    assert len(received[-1].effort) == joints
    assert output.count("process has finished cleanly") == nodes, output

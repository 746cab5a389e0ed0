"""The launch files: what can be read from their text everywhere, and what they do where ROS 2's launch is importable."""

import ast
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "launch").glob("*.launch.py"))
RUN = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
arguments = [argument.split(":=", maxsplit=1) for argument in sys.argv[2:]]
service = LaunchService(noninteractive=True)
include = IncludeLaunchDescription(PythonLaunchDescriptionSource(sys.argv[1]), launch_arguments=arguments)
service.include_launch_description(LaunchDescription([include]))
sys.exit(service.run())
"""


def calls(path, name):
    """Every call of a function in a file."""
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)
            and name == getattr(node.func, "id", getattr(node.func, "attr", None))]


def keywords(call):
    return {keyword.arg: keyword.value for keyword in call.keywords}


# --- what the text shows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_argument_has_a_description_and_a_default(path):
    arguments = calls(path, "DeclareLaunchArgument")
    assert arguments
    for call in arguments:
        assert {"description", "default_value"} <= set(keywords(call)), ast.unparse(call)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_descriptions_of_robots_are_never_read_as_yaml(path):
    pairs = [pair for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Dict)
             for pair in zip(node.keys, node.values)]
    values = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "robot_description"]
    assert values
    for value in values:
        assert value.func.id == "ParameterValue" and keywords(value)["value_type"].id == "str"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_docstring_shows_how_to_call_it(path):
    assert f"ros2 launch rnea_ros {path.name}" in ast.get_docstring(ast.parse(path.read_text()))


# --- what launch makes of them ----------------------------------------------------------------------------------------


@pytest.fixture
def launch_ros():
    for name in ("launch.actions", "launch_ros.actions"):
        pytest.importorskip(name, reason=f"{name} is not importable: it comes with a ROS 2 installation, not from PyPI")


@pytest.fixture
def dynamics(launch_ros):
    """The module dynamics.launch.py, and its arguments with their defaults except for those given."""
    specification = importlib.util.spec_from_file_location("dynamics_launch", ROOT / "launch" / "dynamics.launch.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)

    def start(**given):
        from launch import LaunchContext

        context = LaunchContext()
        for argument in module.generate_launch_description().get_launch_arguments():
            default = argument.default_value[0].perform(context) if argument.default_value else ""
            context.launch_configurations[argument.name] = given.get(argument.name, default)
        return module.start(context)

    return start


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_arguments_are_those_promised(path, launch_ros):
    from launch import LaunchContext
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    arguments = get_launch_description_from_python_launch_file(str(path)).get_launch_arguments()
    promised = {"urdf", "urdf_package", "urdf_package_path", "xacro_args", "params_file", "motion_source", "namespace",
                "start_rsp", "rviz", "rviz_config", "use_sim_time", "log_level"}
    assert promised <= {argument.name for argument in arguments}
    for argument in arguments:
        default = "".join(part.perform(LaunchContext()) for part in argument.default_value)
        assert argument.description
        assert not default.startswith("/") or Path(default).is_file(), f"{argument.name}: {default}"


@pytest.mark.parametrize("given, words", [
    ({}, "which robot.*urdf:="),
    ({"urdf": "a.urdf", "urdf_package": "b"}, "which robot.*either"),
    ({"urdf_package": "b"}, "which robot.*urdf_package_path"),
    ({"urdf": "no/such.urdf"}, "no robot description at .*no/such.urdf"),
    ({"urdf_package": "no_such_package", "urdf_package_path": "a.urdf"}, "no_such_package: no such package"),
    ({"urdf": str(ROOT / "urdf" / "rr.urdf"), "params_file": "no.yaml"}, "params_file:=no.yaml: no such file"),
])
def test_a_wrong_argument_gets_an_answer_that_teaches(dynamics, monkeypatch, given, words):
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.environ.get("AMENT_PREFIX_PATH", sys.prefix))
    with pytest.raises(RuntimeError, match=f"(?s){words}"):
        dynamics(**given)


def test_references_go_to_the_controllers_that_are_named(launch_ros, monkeypatch):
    from launch import LaunchContext

    monkeypatch.setenv("AMENT_PREFIX_PATH", os.environ.get("AMENT_PREFIX_PATH", sys.prefix))
    specification = importlib.util.spec_from_file_location("scaling_launch", ROOT / "launch" / "scaling.launch.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    context = LaunchContext()
    for argument in module.ARGUMENTS:
        context.launch_configurations[argument.name] = "".join(part.perform(context) for part in argument.default_value)
    context.launch_configurations.update(urdf=str(ROOT / "urdf" / "rr.urdf"), start_rsp="false", controller="/jtc",
                                         forward_controller="/forward", commands="effort", query_node="true")
    _, *others, node = module.start(context)
    assert [node.node_executable for node in (*others, node)] == ["query_node", "scaling_node"]
    pairs = [tuple("".join(part.perform(context) for part in side) for side in pair) for pair in node._Node__remappings]
    assert {("~/reference", "/jtc/joint_trajectory"), ("~/commands", "/forward/commands")} <= set(pairs)


def test_xacro_is_processed_with_its_arguments(launch_ros, dynamics, tmp_path, monkeypatch):
    pytest.importorskip("xacro", reason="xacro is not importable: pip install xacro")
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.environ.get("AMENT_PREFIX_PATH", sys.prefix))
    file = tmp_path / "robot.urdf.xacro"
    file.write_text('<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="prefix" default=""/>'
                    '<link name="$(arg prefix)base"/></robot>')
    actions = dynamics(urdf=str(file), xacro_args="prefix:=left_", start_rsp="false")
    text = "".join(part.text for part in actions[0].value)
    assert '<link name="left_base"/>' in text and "xacro:arg" not in text
    with pytest.raises(RuntimeError, match="pairs name:=value"):
        dynamics(urdf=str(file), xacro_args="left_")


def test_rviz_looks_from_the_robots_root_and_gets_markers(dynamics, monkeypatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.environ.get("AMENT_PREFIX_PATH", sys.prefix))
    actions = dynamics(urdf=str(ROOT / "urdf" / "branched.urdf"), rviz="true", start_rsp="false")
    assert [action.node_executable for action in actions[1:]] == ["dynamics_node", "rviz2"]
    command = ["".join(part.describe() for part in word) for word in actions[-1].cmd]
    assert "'base_link'" in command[command.index("'-f'") + 1]


# --- for real ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(launch_ros):
    """Skips unless launch would find the nodes, in lib/rnea_ros of a workspace."""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        executables = Path(get_package_prefix("rnea_ros"), "lib", "rnea_ros")
    except (PackageNotFoundError, OSError):
        pytest.skip("rnea_ros is in no sourced workspace")
    if not (executables / "demo_robot").exists():
        pytest.skip(f"{executables} has no executables: pip puts them elsewhere, colcon puts them there")


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize("file, arguments, kind, topic, joints, nodes", [
    ("demo", (), "JointDynamics", "/dynamics_node/joint_dynamics", 6, 2),
    ("demo", ("namespace:=left", "urdf:={tmp}/named.urdf"), "JointDynamics", "/left/dynamics_node/joint_dynamics", 2, 2),
    ("scaling_demo", (), "ScaledMotion", "/scaling_node/scaled_motion", 7, 3),
    ("scaling_demo", ("namespace:=left", "urdf:={tmp}/named.urdf", "dynamics:=false"), "ScaledMotion",
     "/left/scaling_node/scaled_motion", 2, 2),
])
def test_the_demo_runs_and_ends_cleanly(installed, tmp_path, file, arguments, kind, topic, joints, nodes):
    text = (ROOT / "urdf" / "rr.urdf").read_text()
    (tmp_path / "named.urdf").write_text(text.replace("<robot", "<!-- a colon: not YAML -->\n<robot", 1))
    domain = random.randrange(1, 102)
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
                   "ROS_LOG_DIR": str(tmp_path)}
    command = [sys.executable, "-c", RUN, str(ROOT / "launch" / f"{file}.launch.py"),
               *(argument.format(tmp=tmp_path) for argument in arguments)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        message = wait_for_message(domain, kind, topic, seconds=30)
    finally:
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=20)[0]
    assert message is not None, output
    assert len(message.effort) == joints and any(message.effort_rate)
    assert output.count("process has finished cleanly") == nodes, output


def wait_for_message(domain, kind, topic, seconds):
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    import rnea_msgs.msg

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("listener", context=context)
    heard = []
    node.create_subscription(getattr(rnea_msgs.msg, kind), topic, heard.append, 10)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    end = time.monotonic() + seconds
    while time.monotonic() < end and not heard:
        executor.spin_once(timeout_sec=0.1)
    node.destroy_node()
    rclpy.try_shutdown(context=context)
    return heard[-1] if heard else None

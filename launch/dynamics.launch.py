"""Start the dynamics node on a robot, and beside it query_node, robot_state_publisher and RViz where wanted.

    ros2 launch rnea_ros dynamics.launch.py urdf:=robot.urdf
    ros2 launch rnea_ros dynamics.launch.py urdf_package:=ur_description urdf_package_path:=urdf/ur.urdf.xacro \
        xacro_args:="name:=ur5e ur_type:=ur5e" namespace:=left rviz:=true

Every topic name is relative, tf included, so `namespace` moves the robot as a whole and two robots can run side by
side. A launch file that includes this one finds the robot's XML in the launch configuration `robot_description`.
"""

import shlex
from pathlib import Path
from xml.etree import ElementTree

from ament_index_python.packages import PackageNotFoundError, get_package_prefix, get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, SetLaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

SHARE = Path(__file__).resolve().parents[1]

ARGUMENTS = [
    DeclareLaunchArgument("urdf", default_value="", description="Robot: path to a .urdf or .xacro file."),
    DeclareLaunchArgument(
        "urdf_package",
        default_value="",
        description="Robot, instead of urdf: the package whose share folder has the file.",
    ),
    DeclareLaunchArgument(
        "urdf_package_path",
        default_value="",
        description="Path of the .urdf or .xacro file inside urdf_package's share folder.",
    ),
    DeclareLaunchArgument(
        "xacro_args",
        default_value="",
        description='Arguments of a .xacro file, in the manner of "name:=ur5e prefix:=left_".',
    ),
    DeclareLaunchArgument(
        "params_file",
        default_value=str(SHARE / "config" / "dynamics_node.yaml"),
        description="Parameters of dynamics_node; the default file explains each.",
    ),
    DeclareLaunchArgument(
        "motion_source",
        default_value="",
        choices=["", "desired", "estimated"],
        description="Where acceleration and jerk come from: messages on ~/desired_motion, or an estimate from the "
        "joint states. Empty: as params_file says.",
    ),
    DeclareLaunchArgument(
        "dynamics", default_value="true", choices=["true", "false"], description="Whether to start dynamics_node."
    ),
    DeclareLaunchArgument(
        "query_node",
        default_value="false",
        choices=["true", "false"],
        description="Whether to start query_node, which answers questions about the same robot by services. Its "
        "parameters are those of /**/query_node in params_file; config/query_node.yaml explains them.",
    ),
    DeclareLaunchArgument("namespace", default_value="", description="Namespace of all nodes and topics, tf included."),
    DeclareLaunchArgument(
        "start_rsp",
        default_value="auto",
        choices=["auto", "true", "false"],
        description="Whether to start robot_state_publisher (link poses for RViz); auto: if it is installed.",
    ),
    DeclareLaunchArgument(
        "rviz", default_value="false", choices=["true", "false"], description="Whether to start RViz."
    ),
    DeclareLaunchArgument(
        "rviz_config",
        default_value=str(SHARE / "config" / "rnea.rviz"),
        description="RViz configuration; its fixed frame is replaced by the robot's root link.",
    ),
    DeclareLaunchArgument(
        "use_sim_time", default_value="false", choices=["true", "false"], description="Whether time comes from /clock."
    ),
    DeclareLaunchArgument(
        "log_level",
        default_value="info",
        choices=["debug", "info", "warn", "error", "fatal"],
        description="Least severity that the nodes log.",
    ),
]


def generate_launch_description():
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=start)])


def start(context, more=()):
    """The nodes for the arguments as given, with more parameters; a RuntimeError says what to give instead."""
    given = {argument.name: context.launch_configurations[argument.name] for argument in ARGUMENTS}
    if not Path(given["params_file"]).is_file():  # launch would only warn, and the node start with its defaults
        raise RuntimeError(f"params_file:={given['params_file']}: no such file")
    xml = robot_description(urdf_path(given), given["xacro_args"])
    # A URDF is text whatever it looks like: without value_type launch reads it as YAML and trips over a colon.
    description = {"robot_description": ParameterValue(xml, value_type=str)}
    actions = [SetLaunchConfiguration("robot_description", xml), *state_publisher(given, description)]
    rviz = given["rviz"] == "true"
    chosen = {"motion_source": given["motion_source"]} if given["motion_source"] else {}
    markers = {"publish_markers": True} if rviz else {}
    parameters = [given["params_file"], {**description, **chosen, **markers, **dict(more)}]
    if given["dynamics"] == "true":
        actions.append(node(given, "rnea_ros", "dynamics_node", parameters))
    if given["query_node"] == "true":
        actions.append(node(given, "rnea_ros", "query_node", [given["params_file"], description]))
    if rviz:
        arguments = ["-d", given["rviz_config"], "-f", root_link(xml)]
        actions.append(node(given, "rviz2", "rviz2", arguments=arguments))
    return actions


def joined(own, others):
    """Arguments of a launch file that builds on another one: its own, and those of the other that it does not declare anew."""
    names = {argument.name for argument in own}
    return [*own, *(argument for argument in others if argument.name not in names)]


def node(given, package, executable, parameters=(), arguments=(), remappings=()):
    """A node in the robot's namespace; /tf is absolute in tf2, so it has to be told to follow."""
    return Node(
        package=package,
        executable=executable,
        namespace=given["namespace"],
        parameters=[*parameters, {"use_sim_time": given["use_sim_time"] == "true"}],
        arguments=list(arguments),
        remappings=[("/tf", "tf"), ("/tf_static", "tf_static"), *remappings],
        ros_arguments=["--log-level", given["log_level"]],
        output="screen",
        emulate_tty=True,
    )


def state_publisher(given, description):
    """robot_state_publisher, or one line that says why not."""
    if given["start_rsp"] == "false":
        return []
    try:
        get_package_prefix("robot_state_publisher")
    except PackageNotFoundError:
        if given["start_rsp"] == "auto":
            return [LogInfo(msg="robot_state_publisher is not installed: no link poses on tf; torques need none")]
        raise RuntimeError(
            "start_rsp:=true, but robot_state_publisher is not installed (ros-<distro>-robot-state-publisher)"
        ) from None
    return [node(given, "robot_state_publisher", "robot_state_publisher", [description])]


def urdf_path(given):
    """The file that the arguments name."""
    package, inside = given["urdf_package"], given["urdf_package_path"]
    ways = "urdf:=/path/to/robot.urdf (or .xacro), or urdf_package:=PACKAGE urdf_package_path:=PATH/IN/ITS/SHARE"
    if bool(given["urdf"]) == bool(package or inside) or bool(package) != bool(inside):
        raise RuntimeError(f"which robot? Give either {ways}")
    if given["urdf"]:
        path = Path(given["urdf"]).expanduser().absolute()
    else:
        try:
            path = Path(get_package_share_directory(package), inside)
        except PackageNotFoundError:
            raise RuntimeError(f"urdf_package:={package}: no such package in the sourced workspaces") from None
    if not path.is_file():
        raise RuntimeError(f"no robot description at {path}. Give {ways}")
    return path


def robot_description(path, xacro_args):
    """The URDF text of a .urdf file, or of a .xacro file after processing."""
    if path.suffix != ".xacro":
        return path.read_text(encoding="utf-8")
    try:
        import xacro
    except ImportError:
        raise RuntimeError(
            f"{path} needs xacro, which is not installed: install ros-<distro>-xacro, or give a processed .urdf file"
        ) from None
    try:
        mappings = dict(pair.split(":=", maxsplit=1) for pair in shlex.split(xacro_args))
    except ValueError:
        raise RuntimeError(f"xacro_args:={xacro_args}: pairs name:=value are needed, separated by spaces") from None
    return xacro.process_file(str(path), mappings=mappings).toxml()


def root_link(xml):
    """The link that is no joint's child."""
    robot = ElementTree.fromstring(xml.encode())
    children = {child.get("link") for child in robot.findall("joint/child")}
    return next(link.get("name") for link in robot.findall("link") if link.get("name") not in children)

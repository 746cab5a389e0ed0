"""Start dynamics_node for a robot, optionally with query_node, robot_state_publisher and RViz.

    ros2 launch rnea_ros dynamics.launch.py urdf:=robot.urdf
    ros2 launch rnea_ros dynamics.launch.py urdf:=palletiser.urdf robot_file:=palletiser.robot.yaml
    ros2 launch rnea_ros dynamics.launch.py urdf_package:=ur_description urdf_package_path:=urdf/ur.urdf.xacro \
        xacro_args:="name:=ur5e ur_type:=ur5e" namespace:=left rviz:=true

Every topic name is relative, tf included, so two robots can run at the same time with different values of `namespace`.
A launch file that includes this one finds the robot's XML in the launch configuration `robot_description`.

Errors are detected before the first process starts, because launch does not end the started processes if an action fails.
"""

import shutil
from pathlib import Path
from tempfile import NamedTemporaryFile

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, TimerAction
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from rnea_ros.model.robot_file import located
from rnea_ros.nodes.common.launch_support import aimed, check_same_robot, robot_description, root_link, urdf_path

SHARE = Path(__file__).resolve().parents[1]

ARGUMENTS = [
    DeclareLaunchArgument(
        "urdf",
        default_value="",
        description="Robot: path to a .urdf or .xacro file. Expanding a .xacro file executes code.",
    ),
    DeclareLaunchArgument(
        "urdf_package",
        default_value="",
        description="Package whose share folder contains the robot's file; replaces urdf.",
    ),
    DeclareLaunchArgument(
        "urdf_package_path",
        default_value="",
        description="Path of the .urdf or .xacro file in the share folder of urdf_package. Expanding a .xacro file executes "
                    "code.",
    ),
    DeclareLaunchArgument(
        "xacro_args",
        default_value="",
        description='Arguments of a .xacro file, for example "name:=ur5e prefix:=left_".',
    ),
    DeclareLaunchArgument(
        "robot_file",
        default_value="",
        description="Robot file (YAML), or name of a profile, with data that a URDF cannot contain: loops, a platform, "
                    "springs, motors, drives, limits, payloads, a moving base. dynamics_node and query_node read it.",
    ),
    DeclareLaunchArgument(
        "params_file",
        default_value=str(SHARE / "config" / "dynamics_node.yaml"),
        description="Parameter file of the nodes; the default file contains those of dynamics_node with comments. Parameters "
                    "of the robot belong in /**, the section for every node.",
    ),
    DeclareLaunchArgument(
        "motion_source",
        default_value="",
        choices=["", "auto", "desired", "estimated", "reference"],
        description="Source of acceleration and jerk: auto (~/desired_motion while it arrives, otherwise estimated from the "
                    "joint states), desired, estimated, or reference (the reference of the robot's controller). Empty: as in "
                    "params_file.",
    ),
    DeclareLaunchArgument(
        "effort_commands",
        default_value="",
        choices=["", "none", "gravity", "gravity_friction", "feedforward"],
        description="Parameter commands of dynamics_node; with gravity an arm floats. Empty: as in params_file.",
    ),
    DeclareLaunchArgument(
        "effort_controller",
        default_value="",
        description="Name of the effort controller whose topic commands receives them. Empty: they are published on "
                    "~/commands.",
    ),
    DeclareLaunchArgument(
        "dynamics", default_value="true", choices=["true", "false"], description="Whether to start dynamics_node."
    ),
    DeclareLaunchArgument(
        "query_node",
        default_value="false",
        choices=["true", "false"],
        description="Whether to start query_node, which serves the dynamics of the same robot. Its parameters are in the "
                    "sections /** and /**/query_node of params_file; see config/query_node.yaml.",
    ),
    DeclareLaunchArgument("namespace", default_value="", description="Namespace of all nodes and topics, tf included."),
    DeclareLaunchArgument(
        "start_rsp",
        default_value="auto",
        choices=["auto", "true", "false"],
        description="Whether to start robot_state_publisher (link poses for RViz); auto: if it is installed and "
        "no other node, such as a driver, publishes robot_description in the namespace within four seconds.",
    ),
    DeclareLaunchArgument(
        "rviz", default_value="false", choices=["true", "false"], description="Whether to start RViz."
    ),
    DeclareLaunchArgument(
        "rviz_config",
        default_value=str(SHARE / "config" / "rnea.rviz"),
        description="RViz configuration. Its fixed frame is replaced by the robot's root link; the view of the default "
                    "configuration is adjusted to the robot.",
    ),
    DeclareLaunchArgument(
        "use_sim_time", default_value="false", choices=["true", "false"], description="Whether time comes from /clock."
    ),
    DeclareLaunchArgument(
        "log_level",
        default_value="info",
        choices=["debug", "info", "warn", "error", "fatal"],
        description="Minimum severity of log messages.",
    ),
]

COMPUTING = {"dynamics_node": "dynamics", "query_node": "query_node"}  # name of a node -> argument that starts it


def generate_launch_description():
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=start)])


def start(context, more=(), beside=()):
    """Return the nodes for the given arguments; computing nodes get `more` parameters. RuntimeError explains invalid ones.

    beside : names of other nodes that will get params_file and must compute with the same robot
    """
    given = context.launch_configurations
    params_file = file_of(given, "params_file")  # launch would only warn, and the node start with its defaults
    check_robots(given, [*(name for name, wanted in COMPUTING.items() if given[wanted] == "true"), *beside])
    root = read_robot(given)
    declared = robot_file(given)
    robot = {**described(given), **dict(more)}
    motion = {"motion_source": given["motion_source"]} if given["motion_source"] else {}
    markers = {"publish_markers": True} if given["rviz"] == "true" else {}
    actions = state_publisher(given)
    if given["dynamics"] == "true":
        commands = {"commands": given["effort_commands"]} if given["effort_commands"] else {}
        controller = given["effort_controller"]
        remapped = [("~/commands", f"{controller}/commands")] if controller else []
        own = {**robot, **declared, **motion, **markers, **commands}
        actions.append(node(given, "rnea_ros", "dynamics_node", [params_file, own], remappings=remapped))
    if given["query_node"] == "true":
        actions.append(node(given, "rnea_ros", "query_node", [params_file, {**robot, **declared}]))
    if given["rviz"] == "true":
        actions.append(node(given, "rviz2", "rviz2", arguments=["-d", str(rviz_config(given)), "-f", root]))
    return actions


# --- for launch files that build on this one ------------------------------------------------------------------------


def joined(own, others):
    """Arguments of a launch file that builds on another one: its own, and those of the other that it does not declare anew."""
    names = {argument.name for argument in own}
    return [*own, *(argument for argument in others if argument.name not in names)]


def default_robot(given, path):
    """Return the default robot."""
    if not any(given[name] for name in ("urdf", "urdf_package", "urdf_package_path")):
        given["urdf"] = str(path)


def read_robot(given):
    """Set the launch configuration robot_description; return the root link."""
    path = urdf_path(given)
    given["robot_description"] = robot_description(path, given["xacro_args"])
    return root_link(given["robot_description"], path)


def rviz_config(given):
    """Return the given RViz file, or the package's for this robot."""
    named = Path(file_of(given, "rviz_config"))
    if named != SHARE / "config" / "rnea.rviz":
        return named
    with NamedTemporaryFile("w", prefix="rnea_", suffix=".rviz", delete=False) as file:  # RViz reads it later
        file.write(aimed(named.read_text(), given["robot_description"], given["robot_file"] or None))
    return file.name


def check_robots(given, names):
    """Raise an error if params_file gives nodes different robots."""
    space = "".join(f"/{part}" for part in given["namespace"].split("/") if part)
    check_same_robot(given["params_file"], [f"{space}/{name}" for name in names])


def described(given):
    """Return the robot as a parameter. A URDF is always text: without value_type it might be read as YAML."""
    return {"robot_description": ParameterValue(given["robot_description"], value_type=str)}


def robot_file(given):
    """Return the robot file as a parameter, if there is one; a profile by its name."""
    if not given["robot_file"]:
        return {}
    given["robot_file"] = str(located(given["robot_file"]))
    return {"robot_file": ParameterValue(str(Path(file_of(given, "robot_file")).absolute()), value_type=str)}


def number(given, name):
    """Return the value of an argument that is a number."""
    try:
        return float(given[name])
    except ValueError:
        raise RuntimeError(f"{name}:={given[name]}: must be a number") from None


def file_of(given, name):
    """Return the value of an argument that names a file."""
    if not Path(given[name]).is_file():
        raise RuntimeError(f"{name}:={given[name]}: no such file")
    return given[name]


def node(given, package, executable, parameters=(), arguments=(), remappings=()):
    """Return a node in the robot's namespace; /tf is absolute in tf2, so it has to be remapped."""
    if not installed(package, executable):
        raise RuntimeError(
            f"{executable} is not installed: install ros-<distro>-{package.replace('_', '-')}, or build package {package} "
            "with colcon and source its workspace"
        )
    return Node(
        package=package,
        executable=executable,
        name=executable,  # so that parameters given here go over those of a file's section for this node, not only over /**
        namespace=given["namespace"],
        parameters=[*parameters, {"use_sim_time": given["use_sim_time"] == "true"}],
        arguments=list(arguments),
        remappings=[("/tf", "tf"), ("/tf_static", "tf_static"), *remappings],
        ros_arguments=["--log-level", given["log_level"]],
        output="screen",
        emulate_tty=True,
    )


# --- what there is --------------------------------------------------------------------------------------------------


def installed(package, executable):
    """Return whether launch will find an executable."""
    try:
        folder = Path(get_package_prefix(package), "lib", package)
    except PackageNotFoundError:
        return False
    return shutil.which(executable, path=str(folder)) is not None


def state_publisher(given):
    """robot_state_publisher, or one line that says why not."""
    name = "robot_state_publisher"
    if given["start_rsp"] == "false":
        return []
    if given["start_rsp"] == "auto" and not installed(name, name):
        return [LogInfo(msg=f"{name} is not installed: no link poses on tf; torques need none")]
    # Not the 20 Hz that it has by default: what is drawn at the stamp of an effort needs the link's pose at that stamp.
    publisher = node(given, name, name, [{**described(given), "publish_frequency": 1000.0}])
    return [publisher] if given["start_rsp"] == "true" else [unless_there(given["namespace"], publisher)]


def unless_there(namespace, publisher):
    """Return actions that start the publisher later, unless another one is discovered."""

    def begin(context):
        from rnea_ros.nodes.common.launch_support import DISCOVERY_TIMEOUT_S, GraphObserver

        graph = GraphObserver(namespace)
        return [TimerAction(period=DISCOVERY_TIMEOUT_S, actions=[OpaqueFunction(function=lambda context: decide(graph))])]

    def decide(graph):
        other = graph.robot_description_publisher()
        graph.end()
        said = f"robot_state_publisher is not started, since {other} is there; start_rsp:=true starts it all the same"
        return [LogInfo(msg=said) if other else publisher]

    return OpaqueFunction(function=begin)

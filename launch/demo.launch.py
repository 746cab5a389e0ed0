"""Demo without a robot: a demo robot moves the joints of a URDF, and dynamics_node publishes their torques.

    ros2 launch rnea_ros demo.launch.py                        a Franka Emika Panda
    ros2 launch rnea_ros demo.launch.py rviz:=true
    ros2 launch rnea_ros demo.launch.py urdf:=robot.urdf       any robot, swept through the middle of its range

The arguments of dynamics.launch.py are accepted too. Robots of other kinds have separate launch files,
NAME_demo, which call `robot_demo` below.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.launch_description_sources import load_python_launch_file_as_module

from rnea_ros.demo.catalogue import DEMOS
from rnea_ros.demo.processes import share_file

SHARE = Path(__file__).resolve().parents[1]
dynamics = load_python_launch_file_as_module(str(SHARE / "launch" / "dynamics.launch.py"))

OWN = [
    DeclareLaunchArgument(
        "urdf",
        default_value="",
        description="Robot: path to a .urdf or .xacro file. Default: the Panda.",
    ),
    DeclareLaunchArgument(
        "params_file",
        default_value="",
        description="Parameter file of dynamics_node. Default: the file in config/ with the name of a robot in urdf/, if it "
                    "exists, otherwise config/dynamics_node.yaml, which contains all parameters with comments.",
    ),
    DeclareLaunchArgument(
        "motion",
        default_value="auto",
        choices=["auto", "stanford", "sweep"],
        description="Motion of the demo robot; auto: the paper's motion for the Stanford arm, a sweep for other robots.",
    ),
    DeclareLaunchArgument("rate", default_value="500.0", description="Rate of the joint states [Hz]."),
    DeclareLaunchArgument(
        "duration", default_value="0.0", description="Duration of the motion in one direction [s]; 0: that of the motion."
    ),
]
ARGUMENTS = dynamics.joined(OWN, dynamics.ARGUMENTS)


def generate_launch_description():
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=start)])


def start(context):
    """Return the nodes, all of them with the robot's own parameters."""
    given = context.launch_configurations
    dynamics.default_robot(given, SHARE / "urdf" / "panda.urdf")
    if given["urdf"] == str(SHARE / "urdf" / "panda.urdf"):
        given["robot_file"] = given["robot_file"] or str(SHARE / "urdf" / "panda.robot.yaml")
    given["params_file"] = given["params_file"] or str(own_parameters(dynamics.urdf_path(given)))
    actions = dynamics.start(context)
    motion = {"motion": given["motion"], **{name: dynamics.number(given, name) for name in ("rate", "duration")}}
    return [*actions, dynamics.node(given, "rnea_ros", "demo_robot", [{**dynamics.described(given), **motion}])]


# --- for launch files of demos that have their own robot and motion -------------------------------------------------

OF_THE_ROBOT = ("urdf", "urdf_package", "urdf_package_path", "xacro_args", "robot_file")


def robot_demo(name):
    """Return the launch description of a demo of rnea_ros/demo/catalogue.py."""
    arguments = [argument for argument in dynamics.ARGUMENTS if argument.name not in OF_THE_ROBOT]
    return LaunchDescription([*arguments, OpaqueFunction(function=lambda context: start_robot(context, DEMOS[name]))])


def start_robot(context, demo):
    """dynamics_node, with what can stand beside it, and the nodes that play the demo."""
    given = context.launch_configurations
    if any(given.get(name) for name in OF_THE_ROBOT):
        raise RuntimeError(f"the robot of this demo is {demo.name}; for another robot use demo.launch.py with urdf:=")
    given.update(dict.fromkeys(OF_THE_ROBOT, ""), urdf=str(share_file(demo.urdf)), robot_file=str(share_file(demo.robot_file)))
    actions = dynamics.start(context, demo.parameters)
    players = [name for name in demo.nodes if name != "dynamics_node"]
    return [*actions, *(dynamics.node(given, "rnea_ros", name, [{**dynamics.described(given), **demo.node_parameters(name)}])
                        for name in players)]


def own_parameters(urdf):
    """Return the parameter file that comes with a robot of this package."""
    own = SHARE / "config" / f"{urdf.stem}.yaml"
    return own if urdf.resolve().parent == SHARE / "urdf" and own.is_file() else SHARE / "config" / "dynamics_node.yaml"

"""Try scaling_node without a robot: trajectories twice too fast, and a robot that is not there to follow what is made of them.

    ros2 launch rnea_ros scaling_demo.launch.py                      a 7R arm
    ros2 launch rnea_ros scaling_demo.launch.py rviz:=true           and watch it
    ros2 launch rnea_ros scaling_demo.launch.py urdf:=robot.urdf     any robot
    ros2 service call /scaling_node/pause std_srvs/srv/Trigger       interfere with it

Limits of effort and effort rate are the demo's own, tight enough to bind. Everything that scaling.launch.py takes can be given
here too.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.launch_description_sources import load_python_launch_file_as_module

from rnea_ros import Robot
from rnea_ros.demo.scaling import limit_parameters, overspeed_task

SHARE = Path(__file__).resolve().parents[1]
scaling = load_python_launch_file_as_module(str(SHARE / "launch" / "scaling.launch.py"))
dynamics = scaling.dynamics

OWN = [
    DeclareLaunchArgument(
        "urdf",
        default_value="",
        description="Robot: path to a .urdf or .xacro file. A .xacro file is a program, which is run. Without any, a 7R arm.",
    ),
    DeclareLaunchArgument(
        "dynamics", default_value="true", choices=["true", "false"], description="Whether to start dynamics_node, for RViz."
    ),
]
ARGUMENTS = dynamics.joined(OWN, scaling.ARGUMENTS)
SPEED = DeclareLaunchArgument(
    "speed", default_value="2.0", description="How many times faster than the limits allow the trajectories are planned."
)


def generate_launch_description():
    return LaunchDescription([*ARGUMENTS, SPEED, OpaqueFunction(function=start)])


def start(context):
    """Return the nodes, with the demo's limits for all of them."""
    return demo_nodes(context, "demo_follower", {"speed": dynamics.number(context.launch_configurations, "speed")})


def demo_nodes(context, robot_node, robot_parameters, scaling_parameters=None):
    """Return the nodes of a demo: those of scaling.launch.py, and one that is the robot and sends motions."""
    given = context.launch_configurations
    dynamics.default_robot(given, SHARE / "urdf" / "seven_r.urdf")
    dynamics.read_robot(given)
    robot = Robot.from_urdf(given["robot_description"].encode())
    limits = limit_parameters(robot, overspeed_task(robot).limits)
    actions = scaling.start(context, {**limits, **(scaling_parameters or {})})
    return [*actions, dynamics.node(given, "rnea_ros", robot_node, [{**dynamics.described(given), **robot_parameters}])]

"""Demo of scaling_node without a robot: trajectories planned twice too fast, and a simulated robot that tracks the result.

    ros2 launch rnea_ros scaling_demo.launch.py                      a 7R arm
    ros2 launch rnea_ros scaling_demo.launch.py rviz:=true           in RViz
    ros2 launch rnea_ros scaling_demo.launch.py urdf:=robot.urdf     any robot
    ros2 service call /scaling_node/pause std_srvs/srv/Trigger       pause the motion

The limits of effort and effort rate are those of the demo, and bind. The arguments of scaling.launch.py are accepted too.
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
        description="Robot: path to a .urdf or .xacro file. Expanding a .xacro file executes code. Default: a 7R arm.",
    ),
    DeclareLaunchArgument(
        "dynamics", default_value="true", choices=["true", "false"], description="Whether to start dynamics_node, for RViz."
    ),
]
ARGUMENTS = dynamics.joined(OWN, scaling.ARGUMENTS)
SPEED = DeclareLaunchArgument(
    "speed", default_value="2.0", description="Speed of the planned trajectories relative to the fastest feasible ones."
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

"""Try scaling_node with a learned policy's action chunks, without a robot and without a policy.

    ros2 launch rnea_ros policy_demo.launch.py                       a 7R arm
    ros2 launch rnea_ros policy_demo.launch.py rviz:=true            and watch it
    ros2 launch rnea_ros policy_demo.launch.py urdf:=robot.urdf      any robot
    ros2 service call /scaling_node/stop std_srvs/srv/Trigger        interfere with it; resume follows the policy again
    rnea_rqt                                                         accepted and rejected chunks, delay, the limit that binds

A scripted policy sends noisy chunks that are 200 ms behind and contradict each other; scaling_node executes them inside all
limits. Limits of effort and effort rate are the demo's. Everything that scaling.launch.py takes can be given here too.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.launch_description_sources import load_python_launch_file_as_module

from rnea_ros import Robot
from rnea_ros.demo.policies import RATE
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


def generate_launch_description():
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=start)])


def start(context):
    """Return the nodes, with the demo's limits for all of them."""
    given = context.launch_configurations
    dynamics.default_robot(given, SHARE / "urdf" / "seven_r.urdf")
    dynamics.read_robot(given)
    robot = Robot.from_urdf(given["robot_description"].encode())
    limits = limit_parameters(robot, overspeed_task(robot).limits)
    actions = scaling.start(context, {**limits, "policy_frequency": RATE})
    return [*actions, dynamics.node(given, "rnea_ros", "demo_policy", [dynamics.described(given)])]

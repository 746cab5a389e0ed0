"""Demo of scaling_node with action chunks of a policy, without a robot and a learned policy.

    ros2 launch rnea_ros policy_demo.launch.py                       a 7R arm
    ros2 launch rnea_ros policy_demo.launch.py rviz:=true            in RViz
    ros2 launch rnea_ros policy_demo.launch.py urdf:=robot.urdf      any robot
    ros2 service call /scaling_node/stop std_srvs/srv/Trigger        stop the motion; resume continues it
    rnea_rqt                                                         accepted and rejected chunks, delay, binding limit

A scripted policy sends noisy chunks that are 200 ms late and contradict each other; scaling_node executes them within all
limits. The limits of effort and effort rate are those of the demo. The arguments of scaling.launch.py are accepted too.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import OpaqueFunction
from launch.launch_description_sources import load_python_launch_file_as_module

from rnea_ros.demo.policies import STREAM

demo = load_python_launch_file_as_module(str(Path(__file__).resolve().with_name("scaling_demo.launch.py")))


def generate_launch_description():
    return LaunchDescription([*demo.ARGUMENTS, OpaqueFunction(function=start)])


def start(context):
    """Return the nodes, with the demo's limits for all of them."""
    return demo.demo_nodes(context, "demo_policy", {}, {"policy_frequency": STREAM.rate_hz})

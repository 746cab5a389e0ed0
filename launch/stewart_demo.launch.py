"""Demo of a parallel robot: a Gough-Stewart platform in a swell.

    ros2 launch rnea_ros stewart_demo.launch.py
    ros2 launch rnea_ros stewart_demo.launch.py rviz:=true

The arguments are those of dynamics.launch.py, except the robot. `rnea demo --robot stewart` checks the published torques;
rnea_ros/demo/catalogue.py describes the demo.
"""

from pathlib import Path

from launch.launch_description_sources import load_python_launch_file_as_module

demo = load_python_launch_file_as_module(str(Path(__file__).resolve().with_name("demo.launch.py")))


def generate_launch_description():
    return demo.robot_demo("stewart")

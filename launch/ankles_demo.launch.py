"""Try a humanoid's legs whose ankles are moved by two motors on each shin, through rods.

    ros2 launch rnea_ros ankles_demo.launch.py
    ros2 launch rnea_ros ankles_demo.launch.py rviz:=true

What dynamics.launch.py takes can be given here too, but another robot. rnea_ros/demo/robots/combinations.py says what is
played; `rnea demo --robot ankles` checks it.
"""

from pathlib import Path

from launch.launch_description_sources import load_python_launch_file_as_module

demo = load_python_launch_file_as_module(str(Path(__file__).resolve().with_name("demo.launch.py")))


def generate_launch_description():
    return demo.robot_demo("ankles")

"""Demo of an arm with contacts: with a force-torque sensor at its wrist, it is pushed at its tool in MuJoCo.

    ros2 launch rnea_ros touched_demo.launch.py
    ros2 launch rnea_ros touched_demo.launch.py rviz:=true

It requires MuJoCo and its URDF: pip install '.[sim]' in a clone. The arguments are those of dynamics.launch.py, except the
robot. rnea_ros/demo/catalogue.py describes the demo; `rnea demo --robot touched` checks the published torques.
"""

from pathlib import Path

from launch.launch_description_sources import load_python_launch_file_as_module

demo = load_python_launch_file_as_module(str(Path(__file__).resolve().with_name("demo.launch.py")))


def generate_launch_description():
    return demo.robot_demo("touched")

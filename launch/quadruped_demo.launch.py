"""Demo of a robot with contacts: the quadruped solo12 stands and trots in MuJoCo.

    ros2 launch rnea_ros quadruped_demo.launch.py
    ros2 launch rnea_ros quadruped_demo.launch.py rviz:=true

It requires MuJoCo and its URDF: pip install '.[sim]' in a clone. The arguments are those of dynamics.launch.py, except the
robot. rnea_ros/demo/catalogue.py describes the demo; `rnea demo --robot quadruped` checks the published torques.
"""

from pathlib import Path

from launch.launch_description_sources import load_python_launch_file_as_module

demo = load_python_launch_file_as_module(str(Path(__file__).resolve().with_name("demo.launch.py")))


def generate_launch_description():
    return demo.robot_demo("quadruped")

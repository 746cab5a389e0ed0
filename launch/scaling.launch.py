"""Start scaling_node on a robot: trajectories in, references inside all limits out, ready for a controller.

    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf params_file:=mine.yaml
    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf controller:=/joint_trajectory_controller
    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf forward_controller:=/forward_position_controller

Trajectories go to scaling_node/joint_trajectory. With `controller` the references go to that joint_trajectory_controller as
trajectories of one point; with `forward_controller` they go to that controller's commands. Everything that dynamics.launch.py
takes can be given here too; dynamics_node itself is started with dynamics:=true.
"""

import importlib.util
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetLaunchConfiguration
from launch_ros.parameter_descriptions import ParameterValue

SHARE = Path(__file__).resolve().parents[1]
_found = importlib.util.spec_from_file_location("dynamics_launch", SHARE / "launch" / "dynamics.launch.py")
dynamics = importlib.util.module_from_spec(_found)
_found.loader.exec_module(dynamics)

ARGUMENTS = [
    DeclareLaunchArgument(
        "params_file",
        default_value=str(SHARE / "config" / "scaling_node.yaml"),
        description="Parameters of scaling_node, and of dynamics_node with dynamics:=true; the default file explains each.",
    ),
    DeclareLaunchArgument(
        "controller",
        default_value="",
        description="A joint_trajectory_controller, by its name with namespace: the references go to its joint_trajectory.",
    ),
    DeclareLaunchArgument(
        "forward_controller",
        default_value="",
        description="A forward_command_controller, by its name with namespace: the references go to its commands.",
    ),
    DeclareLaunchArgument(
        "commands",
        default_value="position",
        choices=["position", "velocity", "effort"],
        description="What forward_controller takes.",
    ),
    DeclareLaunchArgument(
        "dynamics", default_value="false", choices=["true", "false"], description="Whether to start dynamics_node as well."
    ),
    *(argument for argument in dynamics.ARGUMENTS if argument.name != "params_file"),
]


def generate_launch_description():
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=start)])


def start(context, more=()):
    """The nodes for the arguments as given, with more parameters; a RuntimeError says what to give instead."""
    given = {argument.name: context.launch_configurations[argument.name] for argument in ARGUMENTS}
    if given["dynamics"] == "true":
        actions = dynamics.start(context, more)
    else:
        if not Path(given["params_file"]).is_file():
            raise RuntimeError(f"params_file:={given['params_file']}: no such file")
        xml = dynamics.robot_description(dynamics.urdf_path(given), given["xacro_args"])
        actions = [SetLaunchConfiguration("robot_description", xml)]
        actions += dynamics.state_publisher(given, {"robot_description": ParameterValue(xml, value_type=str)})
    xml = "".join(part.text for part in actions[0].value)
    parameters = {"robot_description": ParameterValue(xml, value_type=str), **dict(more)}
    remappings = []
    if given["controller"]:
        remappings.append(("~/reference", f"{given['controller']}/joint_trajectory"))
    if given["forward_controller"]:
        remappings.append(("~/commands", f"{given['forward_controller']}/commands"))
        parameters["commands"] = given["commands"]
    parameters = [given["params_file"], parameters]
    return [*actions, dynamics.node(given, "rnea_ros", "scaling_node", parameters, remappings=remappings)]

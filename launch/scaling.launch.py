"""Start scaling_node for a robot: it executes trajectories within all limits, with a controller.

    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf params_file:=mine.yaml
    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf controller:=/joint_trajectory_controller
    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf controller:=/joint_trajectory_controller \
        controller_interface:=action output:=trajectory
    ros2 launch rnea_ros scaling.launch.py urdf:=palletiser.urdf robot_file:=palletiser.robot.yaml
    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf forward_controller:=/forward_position_controller

Trajectories go to scaling_node/joint_trajectory. With `controller` the references are sent to that joint_trajectory_controller
after reading its parameters, as `output` and `controller_interface` define; with `forward_controller` they are sent to that
controller's topic commands. The arguments of dynamics.launch.py are accepted too; dynamics:=true also starts dynamics_node.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.launch_description_sources import load_python_launch_file_as_module

SHARE = Path(__file__).resolve().parents[1]
dynamics = load_python_launch_file_as_module(str(SHARE / "launch" / "dynamics.launch.py"))

OWN = [
    DeclareLaunchArgument(
        "params_file",
        default_value=str(SHARE / "config" / "scaling_node.yaml"),
        description="Parameter file of the nodes; the default file contains those of scaling_node with comments. Parameters "
                    "of the robot belong in /**, the section for every node.",
    ),
    DeclareLaunchArgument(
        "controller",
        default_value="",
        description="Name with namespace of the joint_trajectory_controller that receives the references on its topic "
                    "joint_trajectory (parameter controller.name).",
    ),
    DeclareLaunchArgument(
        "controller_interface",
        default_value="",
        choices=["", "topic", "action"],
        description="Interface through which that controller receives whole trajectories: its topic, or its action, which "
                    "reports their outcome (parameter controller.interface). Empty: as in params_file.",
    ),
    DeclareLaunchArgument(
        "output",
        default_value="",
        choices=["", "horizon", "trajectory", "points"],
        description="Content of the references: horizon, the next part of the motion and a stop; trajectory, the whole "
                    "motion; points, single points, each followed by a stop that is not checked against the limits (parameter "
                    "output). Empty: as in params_file.",
    ),
    DeclareLaunchArgument(
        "forward_controller",
        default_value="",
        description="Name with namespace of a forward_command_controller that receives the references on its topic commands.",
    ),
    DeclareLaunchArgument(
        "commands",
        default_value="position",
        choices=["position", "velocity", "commanded_effort"],
        description="Quantity that forward_controller receives.",
    ),
    DeclareLaunchArgument(
        "dynamics", default_value="false", choices=["true", "false"], description="Whether to start dynamics_node."
    ),
]
ARGUMENTS = dynamics.joined(OWN, dynamics.ARGUMENTS)
PARAMETERS = {"controller": "controller.name", "controller_interface": "controller.interface", "output": "output"}


def generate_launch_description():
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=start)])


def start(context, more=()):
    """Return the nodes for the given arguments; computing nodes get `more` parameters. RuntimeError explains invalid ones."""
    actions = dynamics.start(context, more, beside=("scaling_node",))
    given = context.launch_configurations
    parameters = {**dynamics.described(given), **dynamics.robot_file(given), **dict(more)}
    remappings = []
    parameters.update({name: given[argument] for argument, name in PARAMETERS.items() if given[argument]})
    if given["forward_controller"]:
        remappings.append(("~/commands", f"{given['forward_controller']}/commands"))
        parameters["commands"] = given["commands"]
    parameters = [given["params_file"], parameters]
    return [*actions, dynamics.node(given, "rnea_ros", "scaling_node", parameters, remappings=remappings)]

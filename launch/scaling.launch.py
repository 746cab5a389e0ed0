"""Start scaling_node on a robot: trajectories in, references inside all limits out, ready for a controller.

    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf params_file:=mine.yaml
    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf controller:=/joint_trajectory_controller
    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf controller:=/joint_trajectory_controller \
        controller_interface:=action output:=trajectory
    ros2 launch rnea_ros scaling.launch.py urdf:=palletiser.urdf robot_file:=palletiser.robot.yaml
    ros2 launch rnea_ros scaling.launch.py urdf:=robot.urdf forward_controller:=/forward_position_controller

Trajectories go to scaling_node/joint_trajectory. With `controller` the references go to that joint_trajectory_controller,
after reading its parameters, as `output` and `controller_interface` say; with `forward_controller` they go to that
controller's commands. Everything that dynamics.launch.py takes can be given here too; dynamics_node itself is started with
dynamics:=true.
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
        description="Parameters of the nodes; the default file explains those of scaling_node. What it says of the robot "
        "belongs under /**, the section for every node.",
    ),
    DeclareLaunchArgument(
        "controller",
        default_value="",
        description="A joint_trajectory_controller, by its name with namespace: the references go to its joint_trajectory "
        "(parameter controller.name).",
    ),
    DeclareLaunchArgument(
        "controller_interface",
        default_value="",
        choices=["", "topic", "action"],
        description="How that controller gets whole trajectories: on its topic, or as goals of its action, which says what "
        "becomes of them (parameter controller.interface). Empty: as params_file says.",
    ),
    DeclareLaunchArgument(
        "output",
        default_value="",
        choices=["", "horizon", "trajectory", "points"],
        description="What it gets: the motion of the next moment and of coming to rest, the whole motion ahead, or points one "
        "by one, each with an unchecked stop behind it (parameter output). Empty: as params_file says.",
    ),
    DeclareLaunchArgument(
        "forward_controller",
        default_value="",
        description="A forward_command_controller, by its name with namespace: the references go to its commands.",
    ),
    DeclareLaunchArgument(
        "commands",
        default_value="position",
        choices=["position", "velocity", "commanded_effort"],
        description="What forward_controller takes.",
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

"""Try the package without a robot: a demo robot moves the joints of a URDF, the dynamics node tells their torques.

    ros2 launch rnea_ros demo.launch.py                        the Stanford arm on the motion of guarino-gfd
    ros2 launch rnea_ros demo.launch.py rviz:=true
    ros2 launch rnea_ros demo.launch.py urdf:=robot.urdf       any robot, swept through the middle of its range

Everything that dynamics.launch.py takes can be given here too.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction, SetLaunchConfiguration
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

SHARE = Path(__file__).resolve().parents[1]


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(
            "urdf",
            default_value=str(SHARE / "urdf" / "stanford.urdf"),
            description="Robot: path to a .urdf or .xacro file. Without params_file, a file in config/ that is called "
            "like the robot's file is taken, if there is one.",
        ),
        DeclareLaunchArgument(
            "motion",
            default_value="auto",
            choices=["auto", "stanford", "sweep"],
            description="What the demo robot plays; auto: the paper's motion on the Stanford arm, a sweep elsewhere.",
        ),
        DeclareLaunchArgument("rate", default_value="500.0", description="Joint states for each second [Hz]."),
        DeclareLaunchArgument(
            "duration", default_value="0.0", description="Time for one way [s]; 0: as the motion has it."
        ),
    ]
    dynamics = IncludeLaunchDescription(PythonLaunchDescriptionSource(str(SHARE / "launch" / "dynamics.launch.py")))
    demo_robot = Node(
        package="rnea_ros",
        executable="demo_robot",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            {
                # set by dynamics.launch.py, which reads the file; always a string, never to be parsed as YAML
                "robot_description": ParameterValue(LaunchConfiguration("robot_description"), value_type=str),
                "motion": LaunchConfiguration("motion"),
                "rate": ParameterValue(LaunchConfiguration("rate"), value_type=float),
                "duration": ParameterValue(LaunchConfiguration("duration"), value_type=float),
                "use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool),
            }
        ],
        ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        output="screen",
        emulate_tty=True,
    )
    return LaunchDescription([*arguments, OpaqueFunction(function=settle_defaults), dynamics, demo_robot])


def settle_defaults(context):
    """Defaults that hang on what else was given."""
    given = context.launch_configurations
    if "urdf_package" in given:
        return [SetLaunchConfiguration("urdf", "")]
    own = SHARE / "config" / f"{Path(given['urdf']).stem}.yaml"
    if "params_file" not in given and own.is_file():
        return [SetLaunchConfiguration("params_file", str(own))]
    return []

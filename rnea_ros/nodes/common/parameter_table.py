"""Parameter tables of the nodes: plain data without ROS.

The tables in docs/ are written by markdown_table(); tests compare them, and the files in config/, with a running node.

generate_parameter_library is not used for three reasons. The defaults of joint parameters are those of the robot that is
loaded at run time, not of a YAML file at build time, and change with the robot; a group of them is accepted or rejected
together with the resulting model. Its Python output is not designed for several threads (its pull request 110), and there is
no wheel for installations without a ROS workspace.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rnea_ros.errors import shown
from rnea_ros.model.drives import CONTENTS

TYPES = {"bool": bool, "int": int, "double": float, "string": str}
INF = math.inf


@dataclass(frozen=True, eq=False)
class ParameterEntry:
    """Description of one parameter.

    default   : default value; it determines the type
    low, high : bounds of the value, or of every element of an array
    choices   : allowed strings; empty: any string
    size      : number of elements of an array; 0: any number
    """

    name: str
    default: Any
    text: str
    unit: str = ""
    low: float = -INF
    high: float = INF
    choices: tuple[str, ...] = ()
    size: int = 0
    read_only: bool = False

    @property
    def type(self) -> str:
        if isinstance(self.default, list):
            return "string_array" if isinstance(self.default[0], str) else "double_array"
        return next(name for name, kind in TYPES.items() if type(self.default) is kind)

    @property
    def bounds(self) -> str:
        """Allowed values as text."""
        if self.choices:
            return ", ".join(self.choices)
        low = "" if self.low == -INF else f">= {self.low:g}"
        high = "" if self.high == INF else f"<= {self.high:g}"
        size = f"{self.size} numbers" if self.size else ""
        return ", ".join(filter(None, (size, low, high)))

    def problem(self, value: Any) -> str:
        """Return why a value is rejected; "" if it is valid."""
        if self.type == "string_array":
            if isinstance(value, str) or not isinstance(value, Iterable) or not all(type(v) is str for v in value):
                return f"{self.name} must be a list of strings, got {value!r:.80}"
            numbers = []
        elif isinstance(self.default, list):
            numbers = list(value) if isinstance(value, Iterable) else [value]
            if not all(type(v) is float for v in numbers) or (self.size and len(numbers) != self.size):
                return f"{self.name} needs {self.size or 'any number of'} doubles, got {value!r:.80} (write 1.0, not 1)"
        elif type(value) is not TYPES[self.type]:
            hint = " (write 1.0, not 1)" if self.type == "double" else ""
            return f"{self.name} must be a {self.type}, got {value!r:.80}{hint}"
        else:
            numbers = [value] if self.type in ("int", "double") else []
        if self.choices and value not in self.choices:
            return f"{self.name} is '{value}'; allowed are {', '.join(self.choices)}"
        for number in numbers:
            unknown = number != number and self.default != self.default  # NaN may be given where it is the default
            if not unknown and not (self.low <= number <= self.high and abs(number) < INF):
                given = f"{number:g}" if isinstance(number, float) else shown(number)
                return f"{self.name} is {given}; it must be a finite number {self.bounds}".rstrip()
        return ""


LARGEST = 1e9  # upper bound of every joint quantity in SI units; its square does not overflow
JOINT, WRENCH = "<joint>", "<wrench>"
DERIVATIVES = ("velocity", "acceleration", "jerk", "effort", "effort_rate", "commanded_effort_rate")

ROBOT_FILE = ParameterEntry("robot_file", "", "Path of the robot file (.yaml, .yml), or name of a profile. The file declares "
                            "elements that a URDF cannot: loops, a platform, springs, motors, drives, limits, payloads, a "
                            "moving base. Setting the parameter reads the file again; an invalid file is rejected and the "
                            "current model stays active")
MODEL = (
    ParameterEntry("robot_description", "", "URDF as XML text. Empty: the latched topic robot_description is used. Setting "
                   "it replaces the model; an invalid description is rejected and the current model stays active"),
    ROBOT_FILE,
    ParameterEntry("backend", "llvm", "Backend that evaluates the equations. llvm: machine code compiled in this process; "
                   "without llvmlite, c or python is used", choices=("llvm", "c", "python", "reference"), read_only=True),
    ParameterEntry("gravity", [0.0, 0.0, -9.81], "Acceleration of gravity, expressed in the root link's frame. The "
                   "default keeps the value of the robot file, if that declares one", "m/s^2", -1e3, 1e3, size=3),
    ParameterEntry("use_friction", False, "Use damping and friction of the URDF's dynamics tags. Off by default, because many "
                   "files contain simulator settings there; joint_dynamics.* is always used"),
    ParameterEntry("payload.link", "", "Link that carries the payload; must be set if payload.mass is not zero"),
    ParameterEntry("payload.mass", 0.0, "Mass of the payload", "kg", 0.0, 1e6),
    ParameterEntry("payload.com", [0.0, 0.0, 0.0], "Centre of mass of the payload in the link's frame", "m", -1e3, 1e3,
                   size=3),
    ParameterEntry("payload.inertia", [0.0] * 6, "Inertia of the payload about its centre of mass: ixx, ixy, ixz, iyy, iyz, "
                   "izz, along the axes of the link", "kg m^2", -LARGEST, LARGEST, size=6),
)
NODE = (
    ParameterEntry("autostart", True, "Configure and activate the node at start. false: wait for transitions requested "
                   "through its lifecycle services (`ros2 lifecycle set`)", read_only=True),
    ParameterEntry("locked", False, "Reject every change of the robot and its limits at run time: robot description, robot "
                   "file, gravity, payload.*, hold_joints.*, joint_limits.*, joint_dynamics.*, speed_scaling.*, watch.*, "
                   "wrenches.*, commands, effort_commands.*, use_sim_time. /diagnostics counts rejected changes",
                   read_only=True),
)

BASE_TOPICS = (
    ParameterEntry("base.odometry_tolerance", 0.1, "Maximum difference between consecutive poses of the odometry and the "
                   "motion predicted by their twists; a larger jump is rejected", "m, rad", 1e-6, 100.0, read_only=True),
    ParameterEntry("base.timeout", 0.1, "Maximum age of the newest message with the motion of the base, by arrival. Older "
                   "messages are not used, and results that require them are not computed. Also applies to the desired motion "
                   "of a platform", "s", 1e-3, 10.0, read_only=True),
)


DYNAMICS = (
    ParameterEntry("loops.tolerance", 0.1, "Maximum difference between the measured and the computed position of a passive "
                   "joint of a closed loop before a warning; for prismatic joints as a share of the machine's size", "rad",
                   1e-6, 10.0,
                   read_only=True),
    ParameterEntry("base.source", "state", "Source of the motion of a moving base: topics ~/base_state, ~/base_imu, "
                   "~/base_odometry; wheels: dead reckoning from the joint states of the wheels, if they determine it",
                   choices=("state", "imu", "odometry", "odometry+imu", "wheels"), read_only=True),
    ParameterEntry("base.motion_source", "estimated", "Source of acceleration and jerk of a moving base if they are not "
                   "measured. estimated: from the sensors; desired: from ~/base_state; free: from the dynamics of a floating "
                   "base", choices=("estimated", "desired", "free"), read_only=True),
    *BASE_TOPICS,
    ParameterEntry("flexible.deflection", "measured", "Source of the modal coordinates of flexible links. measured: joint "
                   "states, as for other joints; predicted: from the motion of the other joints, on a fixed base",
                   choices=("measured", "predicted"), read_only=True),
    ParameterEntry("platform.source", "actuators", "Source of the motion of a parallel robot. actuators: joint states of its "
                   "actuators; state: ~/platform_state, with the whole motion of the platform; pose: "
                   "~/platform_pose_measured; pose+twist: also ~/platform_twist_measured. With several platforms the topics "
                   "end with /LINK",
                   choices=("actuators", "state", "pose", "pose+twist"), read_only=True),
    ParameterEntry("platform.motion_source", "estimated", "Source of the derivatives of a measured platform's motion that are "
                   "not measured (acceleration and jerk; with source pose also the twist). estimated: from the measurements; "
                   "desired: from ~/platform_state", choices=("estimated", "desired"), read_only=True),
    ParameterEntry("motion_source", "auto", "Source of acceleration and jerk. auto: ~/desired_motion while it arrives "
                   "(desired_timeout) and joint_states contain velocities, otherwise estimated. desired: ~/desired_motion "
                   "only (on_desired_timeout). estimated: the whole motion is estimated from the positions in joint_states, "
                   "for the instant estimator.lag before the newest one. reference: the whole motion is the reference of the "
                   "robot's controller", choices=("auto", "desired", "estimated", "reference")),
    ParameterEntry("reference.source", "scaled_motion", "Source of the reference: scaling_node, on ~/scaled_motion; a "
                   "joint_trajectory_controller, on ~/controller_state (requires control_msgs); or trajectories, on "
                   "~/joint_trajectory", choices=("scaled_motion", "controller_state", "trajectory")),
    ParameterEntry("on_desired_timeout", "zero_jerk", "With motion_source desired, effect of a desired motion that is "
                   "missing (desired_timeout) or late (input_tolerance). zero_jerk: hold the acceleration, with zero jerk; "
                   "hold: hold both; stop: stop publishing. Before the first desired motion both are zero",
                   choices=("zero_jerk", "hold", "stop")),
    ParameterEntry("desired_timeout", 0.1, "Maximum age of a desired motion, by arrival; for a scaled motion or a "
                   "controller's reference, by stamp", "s", 1e-3, 10.0),
    ParameterEntry("state_timeout", 0.5, "Time without a usable joint state after which the node reports STALE and discards "
                   "the history of the motion", "s", 1e-3, 10.0),
    ParameterEntry("input_wait", 0.03, "Maximum time that a joint state, or a measured pose of a platform, waits for the "
                   "other inputs (desired motion or reference, base, wrenches) to reach its stamp. 0: no wait", "s", 0.0,
                   0.5),
    ParameterEntry("input_tolerance", 0.01, "Maximum time over which ~/desired_motion and the motion of a base or platform "
                   "are extrapolated, by their own derivatives, to the stamp of a joint state that is later than the newest "
                   "message. Beyond it, the joint state is rejected, or on_desired_timeout applies", "s", 0.0, 1.0),
    ParameterEntry("joint_age", 0.5, "Maximum difference of the stamps of two joints if each joint state contains only some "
                   "of the joints. Beyond it, nothing is computed", "s", 1e-3, 10.0),
    ParameterEntry("missing_velocity", "refuse", "With motion_source desired, effect of a joint state without velocities. "
                   "refuse: it is dropped; differentiate: the positions are differentiated",
                   choices=("refuse", "differentiate")),
    ParameterEntry("estimator.lag", 0.03, "Time between the instant of an estimated motion and the newest joint state; "
                   "results have the stamp of that instant. A longer lag increases accuracy and delay. 0: the instant of the "
                   "newest joint state", "s", 0.0, 0.5),
    ParameterEntry("estimator.resolution", 0.0, "Resolution of the position encoders. 0: it is estimated from the joint "
                   "states", "rad, m", 0.0, 1.0),
    ParameterEntry("commanded_effort", "robot_file", "Content of ~/commanded_effort: the whole joint torque, or the joint "
                   "torque without the terms that the robot's own controller adds. robot_file: as the robot file declares, or "
                   "total. ~/joint_effort is always the whole torque", choices=("robot_file", *CONTENTS), read_only=True),
    ParameterEntry("measured_effort", "robot_file", "Content of the efforts in joint_states. robot_file: as the robot file "
                   "declares, or total", choices=("robot_file", *CONTENTS), read_only=True),
    ParameterEntry("commands", "none", "Effort commands on ~/commands and ~/joint_commands, in the convention of "
                   "commanded_effort. gravity: gravity compensation. gravity_friction: compensation of gravity and friction. "
                   "feedforward: the torque of the desired motion or reference; gravity_friction if there is none. Commands "
                   "begin and end with a ramp", choices=("none", "gravity", "gravity_friction", "feedforward")),
    ParameterEntry("effort_commands.joints", [""], "Joints of the commands, in the order of the controller's parameter "
                   "joints. Empty: all, in the robot's order"),
    ParameterEntry("effort_commands.ramp_time", 1.0, "Duration of the ramp from zero when commands begin, and to zero when "
                                                     "they "
                   "end", "s", 0.01, 60.0),
    ParameterEntry("effort_commands.rise_time", 0.2, "Minimum time for a change of an effort from zero to its limit; the "
                                                     "limits "
                   "of effort rate also apply", "s", 1e-3, 10.0),
    ParameterEntry("effort_commands.timeout", 0.1, "Age of the last valid joint state, by arrival, above which the commands "
                   "end. They begin again with the next states", "s", 0.01, 5.0),
    ParameterEntry("effort_commands.friction_share", 0.8, "Share of the friction that is compensated at measured velocities; "
                   "from 1 an arm may move without being pushed", low=0.0, high=1.5),
    ParameterEntry("publish_external_effort", False, "Read the efforts of the joint states, and publish ~/external_effort, "
                   "~/contact and ~/external_wrench: the efforts that the environment exerts on the robot. Required for "
                   "~/estimate_payload and ~/learn_contact_thresholds", read_only=True),
    ParameterEntry("external_effort.gain", 60.0, "Bandwidth of the momentum observer. A larger gain detects contacts "
                   "sooner, with more noise", "1/s", 1.0, 1e3),
    ParameterEntry("external_effort.threshold", 3.0, "External effort above which a joint is in contact, if "
                   "contact.<joint>.threshold is not set; in standard deviations of the model's error", low=1.0, high=100.0),
    ParameterEntry("external_effort.mass_uncertainty", 0.05, "Standard deviation of the mass of each link, relative to its "
                   "mass",
                   low=0.0, high=1.0),
    ParameterEntry("external_effort.friction_uncertainty", 0.3, "Standard deviation of the friction, relative to the declared "
                   "and learned friction", low=0.0, high=10.0),
    ParameterEntry("external_effort.effort_uncertainty", 0.003, "Standard deviation of the measured efforts in addition to "
                   "their estimated noise, for example of offsets; as a share of the effort limit", low=0.0, high=1.0),
    ParameterEntry("external_effort.check_payload", True, "Compare the declared payload with the measured efforts of the last "
                   "10, 30 and 60 s, and warn if they differ. The link is payload.link; if that is empty, "
                   "external_effort.link; otherwise the last link"),
    ParameterEntry("external_effort.link", "", "Link of the URDF on which ~/external_wrench acts. Empty: it is not "
                   "published", read_only=True),
    ParameterEntry("external_effort.wrench", "force", "Wrench that may act on external_effort.link. force: a force at its "
                   "origin; force_and_moment: any wrench, which requires six joints that determine it",
                   choices=("force", "force_and_moment")),
    ParameterEntry("frame_id", "", "frame_id of the published messages. Empty: the root link"),
    ParameterEntry("publish_markers", False, "Publish ~/markers for RViz: efforts and their rates, wrenches, centre of mass "
                   "and more"),
    ParameterEntry("markers.size", 0.0, "Length of a joint's marker at its limit. 0: derived from the lengths of the joint's "
                   "links",
                   "m", 0.0, 10.0),
    ParameterEntry("markers.rate", 30.0, "Rate of ~/markers", "Hz", 1.0, 100.0),
    ParameterEntry("publish_speed_scaling", False, "Publish ~/speed_scaling: the largest speed factor that keeps effort and "
                   "effort rate of the motion within their limits"),
    ParameterEntry("speed_scaling.motion", "planned", "Speed of the received motion. planned: that of the plan; executed: "
                   "already slowed by the published factor", choices=("planned", "executed")),
    ParameterEntry("speed_scaling.fall", 4.0, "Maximum rate at which the factor falls", "1/s", 1e-3, 100.0),
    ParameterEntry("speed_scaling.rise", 0.5, "Maximum rate at which the factor rises", "1/s", 1e-3, 100.0),
    ParameterEntry("speed_scaling.most", 1.0, "Maximum factor", low=1e-3, high=10.0),
    ParameterEntry("diagnostics.period", 1.0, "Time between two messages on /diagnostics", "s", 0.1, 60.0, read_only=True),
)

PROCESS = (
    ParameterEntry("process.executor", "lean", "Executor of the node. lean: keeps its wait set and uses half of the processor "
                   "time; rclpy: SingleThreadedExecutor", choices=("lean", "rclpy"), read_only=True),
    ParameterEntry("process.priority", 0, "Real-time priority (SCHED_FIFO) of the thread that computes and of the "
                   "middleware's threads. 0: unchanged. The node does not start if the system denies it", low=0, high=99,
                   read_only=True),
    ParameterEntry("process.lock_memory", False, "Lock all memory of the process against swapping (mlockall). The node does "
                   "not start if the system denies it", read_only=True),
    ParameterEntry("process.freeze_gc", False, "Exclude all objects that exist when a model is ready from garbage "
                   "collection (gc.freeze), which shortens its pauses", read_only=True),
)

SCALING = (
    ParameterEntry("base.source", "level", "Source of the orientation of a prescribed base (base: prescribed) when a "
                   "trajectory arrives. level: the base is assumed to be level; otherwise the topic ~/base_state, ~/base_imu "
                   "or ~/base_odometry",
                   choices=("level", "state", "imu", "odometry"), read_only=True),
    *BASE_TOPICS,
    ParameterEntry("control_rate", 1000.0, "Rate of references during a motion", "Hz", 1.0, 2000.0),
    ParameterEntry("output", "horizon", "Content of ~/reference. horizon: the motion of the next `horizon` seconds and the "
                   "stop after it, as stamped points. trajectory: the whole scaled motion as stamped points, sent again after "
                   "each change. points: the next reference in each control period, for receivers that accept nothing else; "
                   "if the node hangs or is killed the robot brakes in `points_stop_time`, or stops abruptly and exceeds "
                   "every limit. Takes effect with the next motion", choices=("horizon", "trajectory", "points")),
    ParameterEntry("horizon", 0.5, "Duration of the motion that is sent before the stop, with output horizon. It is sent "
                   "again when half of it has passed", "s", 0.2, 30.0),
    ParameterEntry("lead", 0.1, "Lead time from the request for a change to its beginning, with output trajectory or horizon. "
                   "Half of it is for the computation, half for the message. It is doubled when it is too short", "s",
                   0.02, 2.0),
    ParameterEntry("points_stop_time", 0.3, "Duration of the stop that follows the point in each message, with output points. "
                   "If the node ends, a receiver that executes the stop brakes to rest, at torques not checked against the "
                   "limits; a receiver that uses only the first point stops abruptly. 0: the point alone", "s", 0.0, 5.0),
    ParameterEntry("controller.name", "", "Name with namespace of the joint_trajectory_controller that executes the motions. "
                   "References are sent to its joint_trajectory instead of ~/reference, trajectories that its parameters do "
                   "not allow are rejected, and a motion is abandoned if its controller_state (requires control_msgs) "
                   "contains another reference. Empty: the controller is unknown and not checked", read_only=True),
    ParameterEntry("controller.interface", "topic", "Interface through which the controller of controller.name receives whole "
                   "trajectories (output trajectory or horizon): its topic, or its action FollowJointTrajectory (requires "
                   "control_msgs), which reports rejections and whether the robot has reached the goal", choices=("topic",
                   "action"), read_only=True),
    ParameterEntry("controller.timeout", 5.0, "Maximum time for which trajectories wait for the controller of controller.name "
                   "at the start, and for which its state may be missing during a motion", "s", 0.1, 60.0),
    ParameterEntry("controller.required", False, "Whether trajectories are rejected while the controller of controller.name "
                   "is not found. If false, a warning is logged"),
    ParameterEntry("longest_step", 5.0, "Maximum number of control periods by which a late tick advances the motion, with one "
                   "point for each; a later tick delays the motion. Only with output points and without use_sim_time",
                   low=1.0, high=100.0),
    ParameterEntry("interpolation", "positions", "Waypoint data used for the path: positions; positions and velocities; "
                   "positions, velocities and accelerations", choices=("positions", "velocities", "accelerations")),
    ParameterEntry("commanded_effort", "robot_file", "Content of the commanded efforts in ~/scaled_motion, ~/reference and "
                   "~/commands: the whole joint torque, or the joint torque without the terms that the robot's own "
                   "controller adds. "
                   "robot_file: as the robot file declares, or total", choices=("robot_file", *CONTENTS), read_only=True),
    ParameterEntry("limits_share.effort", 1.0, "Share of the effort limits that motions use; rnea margin computes it from the "
                   "requirements of the feedback", low=0.01, high=1.0, read_only=True),
    ParameterEntry("limits_share.effort_rate", 1.0, "Share of the effort rate limits that motions use", low=0.01, high=1.0,
                   read_only=True),
    ParameterEntry("catch_up", True, "Whether a motion may be faster than planned to reduce a delay; it is never ahead of the "
                   "plan"),
    ParameterEntry("solve_first", False, "Whether a motion begins only after the motion nearest to the plan has been solved, "
                   "usually within a second. If false, it begins immediately, slowed until then"),
    ParameterEntry("on_new_trajectory", "replace", "Treatment of a trajectory that arrives during a motion: stop that motion "
                   "on its path and begin from there, or reject the new trajectory", choices=("replace", "refuse")),
    ParameterEntry("start_tolerance", 0.01, "Maximum distance of the robot from the first point of a trajectory if that point "
                   "is at time 0", "rad, m",
                   1e-6, 1.0),
    ParameterEntry("start_mismatch", "refuse", "Treatment of a trajectory whose first point, at time 0, is not the robot's "
                   "position: reject it, or prepend a motion from the robot's position at half of the velocity limits",
                   choices=("refuse", "prepend")),
    ParameterEntry("state_timeout", 0.5, "Maximum age of a joint state that is used for the position of the robot", "s", 1e-3,
                   10.0),
    ParameterEntry("watch.source", "joint_states", "Source of the measured motion of the robot: joint_states; or "
                   "controller_state, the state of controller.name (requires control_msgs): its feedback and, if it has no "
                   "measured effort, its output", choices=("joint_states", "controller_state"), read_only=True),
    ParameterEntry("watch.tolerance", 0.0, "Tracking error of a joint above which the motion is slowed: distance from all "
                   "references within watch.lag. A suitable first value is 0.05. 0 disables it", "rad, m", 0.0, 10.0),
    ParameterEntry("watch.path_tolerance", 0.0, "Maximum deviation from the path before the motion is stopped, if the goal "
                   "has no path_tolerance. 0 disables the check", "rad, m", 0.0, 10.0),
    ParameterEntry("watch.lag", 0.1, "Time by which a robot may be behind its references, because of its controller and "
                   "sensors, without a tracking error", "s", 0.0, 0.5),
    ParameterEntry("watch.recovery", 5.0, "Time in which a slowed motion returns from the minimum speed to full speed, in "
                   "steps of a tenth", "s", 0.0, 3600.0),
    ParameterEntry("watch.goal_tolerance", 0.0, "Maximum distance of each joint from the goal at the end of a motion, if the "
                   "goal has no goal_tolerance. 0 disables the check", "rad, m", 0.0, 10.0),
    ParameterEntry("watch.goal_time", 2.0, "Time after the last reference within which the robot must reach the goal "
                   "tolerance, if the goal has no goal_time_tolerance. 0: unlimited", "s", 0.0, 3600.0),
    ParameterEntry("policy_frequency", 0.0, "Rate of the points of an action chunk on ~/action_chunks whose points have no "
                   "times. 0: chunks must contain time_from_start", "Hz", 0.0, 1000.0),
    ParameterEntry("policy.lead", 0.05, "Lead time from the arrival of an action chunk to its execution. Half of it is for "
                   "the computation, half for the message to the controller. It is doubled, up to 0.4 s, while it is too "
                   "short. This and the other parameters policy.* take effect with the next motion", "s", 0.01, 1.0),
    ParameterEntry("policy.timeout", 2.0, "Time at rest without an accepted chunk after which the motion ends; the next chunk "
                   "begins another one", "s", 0.1, 3600.0),
    ParameterEntry("policy.max_age", 1.0, "Maximum age of the observation of a chunk, from header.stamp. A stamp of zero is "
                   "the time of arrival", "s", 0.01, 60.0),
    ParameterEntry("policy.max_step", 0.5, "Maximum step from one point of a chunk to the next, and from the motion to the "
                   "chunk", "rad, m", 1e-4, 100.0),
    ParameterEntry("policy.tolerance", 0.02, "Maximum distance by which the motion may round the points of a chunk if limits "
                   "bind. 0: points are not rounded, the motion is slower instead", "rad, m", 0.0, 10.0),
    ParameterEntry("policy.max_stretch", 6.0, "Maximum factor by which a chunk is slowed if limits bind; a chunk that "
                   "requires more is rejected", low=1.0, high=100.0),
    ParameterEntry("policy.blending", "newest", "Use of overlapping chunks: only the newest one; or their mean with "
                   "exponential weights, as in the temporal ensembling of ACT", choices=("newest", "ensemble")),
    ParameterEntry("policy.ensemble_decay", 0.01, "Decay of the ensemble weights from one chunk to the next newer one. "
                   "Negative: newer chunks have larger weights", low=-10.0, high=10.0),
    ParameterEntry("policy.alignment", "time", "Treatment of a chunk with an offset from the motion. time: its points are not "
                   "shifted; offset: the offset at the splice is added to the points and decays",
                   choices=("time", "offset")),
    ParameterEntry("policy.alignment_time", 0.1, "Time constant of the decay of the offset, with policy.alignment offset",
                   "s", 1e-3, 10.0),
    ParameterEntry("shutdown_timeout", 4.0, "Maximum time for a motion to come to rest after SIGINT or SIGTERM before the "
                   "process ends. ros2 launch repeats the signal after 5 s (its argument sigterm_timeout), which ends the "
                   "process immediately", "s", 0.0, 60.0),
    ParameterEntry("reference_effort", False, "Whether the points on ~/reference contain the commanded effort. Off by "
                   "default, because a joint_trajectory_controller without effort interface rejects such points"),
    ParameterEntry("commands", "none", "Content of ~/commands, for a forward_command_controller or joint_group controller",
                   choices=("none", "position", "velocity", "commanded_effort")),
    ParameterEntry("frame_id", "", "frame_id of the published messages. Empty: the root link"),
    ParameterEntry("diagnostics.period", 1.0, "Time between two messages on /diagnostics", "s", 0.1, 60.0, read_only=True),
)


def _limit_entries() -> Iterable[ParameterEntry]:
    """Yield the parameters of the limits, named as in ros2_control; limits of effort rates are an addition."""
    prefix = f"joint_limits.{JOINT}"
    source = "Default: that of the loaded robot"
    units = ("rad/s, m/s", "rad/s^2, m/s^2", "rad/s^3, m/s^3", "N m, N", "N m/s, N/s", "N m/s, N/s")
    notes = {"effort_rate": ", of the whole joint torque", "commanded_effort_rate": ", of the joint torque without the "
             "terms that the robot's controller adds"}
    yield ParameterEntry(f"{prefix}.has_position_limits", False, f"Whether min_position and max_position are limits. "
                         f"{source}, or true if both are set")
    yield ParameterEntry(f"{prefix}.min_position", math.nan, f"Lower position limit. {source}", "rad, m", -LARGEST, LARGEST)
    yield ParameterEntry(f"{prefix}.max_position", math.nan, f"Upper position limit. {source}", "rad, m", -LARGEST, LARGEST)
    for quantity, unit in zip(DERIVATIVES, units):
        words = quantity.replace("_", " ")
        yield ParameterEntry(f"{prefix}.has_{quantity}_limits", False, f"Whether max_{quantity} is a limit. {source}, or true "
                             f"if max_{quantity} is set")
        text = f"Maximum magnitude of the {words}{notes.get(quantity, '')}. {source}"
        yield ParameterEntry(f"{prefix}.max_{quantity}", math.nan, text, unit, 0.0, LARGEST)


def limit_flags(given: Mapping[str, Any]) -> dict[str, bool]:
    """Return {has_..._limits: True} for all limits whose values are in `given` and not NaN.

    given: values of parameters, keyed by name
    """
    numbers: dict[str, list[str]] = {}
    for name in given:
        head, _, key = name.rpartition(".")
        if head.startswith("joint_limits.") and key.startswith(("min_", "max_")):
            numbers.setdefault(f"{head}.has_{key[4:]}_limits", []).append(name)
    return {flag: True for flag, names in numbers.items()
            if len(names) == (2 if flag.endswith(".has_position_limits") else 1) and all(given[n] == given[n] for n in names)}


JOINT_LIMITS = tuple(_limit_entries())
JOINT_DYNAMICS = (
    ParameterEntry(f"joint_dynamics.{JOINT}.rotor_inertia", 0.0, "Moment of inertia of the rotor about its axis, on the motor "
                                                                 "side of the gear",
                   "kg m^2", 0.0, 1e6),
    ParameterEntry(f"joint_dynamics.{JOINT}.gear_ratio", 1.0, "Rotor velocity divided by joint velocity; for prismatic "
                                                              "joints, rotor angle per metre", "",
                   -LARGEST, LARGEST),
    ParameterEntry(f"joint_dynamics.{JOINT}.coulomb", 0.0, "Coulomb friction", "N m, N", 0.0, LARGEST),
    ParameterEntry(f"joint_dynamics.{JOINT}.viscous", 0.0, "Viscous friction", "N m s/rad, N s/m", 0.0, LARGEST),
    ParameterEntry(f"joint_dynamics.{JOINT}.offset", 0.0, "Constant effort", "N m, N", -LARGEST, LARGEST),
    ParameterEntry(f"joint_dynamics.{JOINT}.smoothing", 1e-2, "Velocity at which tanh replaces the step of the Coulomb "
                   "friction", "rad/s, m/s", 1e-9, 10.0),
    ParameterEntry(f"joint_dynamics.{JOINT}.stribeck", 0.0, "Additional Coulomb friction near rest (Stribeck effect)",
                   "N m, N", -LARGEST, LARGEST),
    ParameterEntry(f"joint_dynamics.{JOINT}.stribeck_velocity", 0.1, "Velocity below which the additional friction stribeck "
                   "acts", "rad/s, m/s",
                   1e-9, 100.0),
    ParameterEntry(f"joint_dynamics.{JOINT}.asymmetry", 0.0, "Half the difference between the viscous friction in positive "
                   "and in negative direction", "N m s/rad, N s/m", -LARGEST, LARGEST),
    ParameterEntry(f"joint_dynamics.{JOINT}.load_dependent", 0.0, "Friction as a share of the torque that the joint "
                   "transmits", "", 0.0, 0.999),
    ParameterEntry(f"joint_dynamics.{JOINT}.load_smoothing", 0.1, "Torque that smooths the magnitude of the transmitted "
                   "torque X for load-dependent friction: sqrt(X^2 + load_smoothing^2)", "N m, N", 1e-9, LARGEST),
)
CONTACT = (
    ParameterEntry(f"contact.{JOINT}.offset", 0.0, "Constant external effort in free motion; it is subtracted", "N m, N",
                   -LARGEST, LARGEST),
    ParameterEntry(f"contact.{JOINT}.coulomb", 0.0, "Coulomb friction learned from free motion, in addition to the declared "
                   "friction", "N m, N", -LARGEST, LARGEST),
    ParameterEntry(f"contact.{JOINT}.viscous", 0.0, "Viscous friction learned from free motion, in addition to the declared "
                   "friction", "N m s/rad, N s/m", -LARGEST, LARGEST),
    ParameterEntry(f"contact.{JOINT}.threshold", math.nan, "External effort above which this joint is in contact, in "
                   "standard deviations of the model's error. Default: external_effort.threshold", "", 0.0, LARGEST),
)
HOLD = (
    ParameterEntry(f"hold_joints.{JOINT}", math.nan, "Assumed position, at rest, of a joint that joint states do not contain. "
                   "It has no effect after a joint state has contained the joint", "rad, m", -LARGEST, LARGEST),
)
WRENCHES = (
    ParameterEntry("wrenches.names", [""], "Names of the external wrenches that act on the robot: contacts, force-torque "
                   "sensors. Each has a topic and the parameters below", read_only=True),
    ParameterEntry(f"wrenches.{WRENCH}.topic", f"~/wrench/{WRENCH}", "Topic of type geometry_msgs/WrenchStamped, expressed "
                   "in the frame of any link. An empty frame_id is the link's own frame", read_only=True),
    ParameterEntry(f"wrenches.{WRENCH}.link", "", "Link of the URDF on which the wrench acts. Must be set", read_only=True),
    ParameterEntry(f"wrenches.{WRENCH}.sign", "on_robot", "Sign of the wrench. on_robot: exerted by the environment on the "
                   "link; by_robot: exerted by the robot on the environment, as many drivers publish it",
                   choices=("on_robot", "by_robot")),
    ParameterEntry(f"wrenches.{WRENCH}.includes_tool", False, "Whether the wrench includes weight and inertia of the link and "
                   "of everything attached to it, as that of a force-torque sensor does. These then have no mass in the model",
                   read_only=True),
    ParameterEntry(f"wrenches.{WRENCH}.rate", "estimated", "Rate of the wrench. estimated: slope of a line fitted to the "
                   "latest messages, which also extrapolates from their stamp to that of the joint state; zero: zero",
                   choices=("estimated", "zero")),
    ParameterEntry(f"wrenches.{WRENCH}.window", 0.05, "Time window of the fit of an estimated rate, with 256 messages at "
                   "most. The fit requires two messages",
                   "s", 1e-3, 2.0),
    ParameterEntry(f"wrenches.{WRENCH}.timeout", 0.1, "Maximum age of a wrench, by arrival", "s", 1e-3, 10.0),
    ParameterEntry(f"wrenches.{WRENCH}.on_timeout", "drop", "Effect of a missing wrench. drop: it counts as zero; hold: it "
                   "keeps its last value, with rate zero; stop: joint states are rejected", choices=("drop", "hold", "stop")),
)
DYNAMICS_TABLE = MODEL + NODE + DYNAMICS + WRENCHES + HOLD + CONTACT + PROCESS + JOINT_LIMITS + JOINT_DYNAMICS
QUERY_TABLE = MODEL + NODE + JOINT_LIMITS + JOINT_DYNAMICS  # of query_node
SCALING_TABLE = MODEL + NODE + SCALING + HOLD + PROCESS + JOINT_LIMITS + JOINT_DYNAMICS  # of scaling_node


def find(name: str, entries: Iterable[ParameterEntry]) -> ParameterEntry | None:
    """Return the entry of a parameter, None if there is none. <joint> matches every joint name, also with dots."""
    for entry in entries:
        head, joint, tail = entry.name.partition(JOINT)
        matches = len(name) > len(head) + len(tail) and name.startswith(head) and name.endswith(tail)
        if name == entry.name or (joint and matches):
            return entry
    return None


def with_wrenches(entries: Iterable[ParameterEntry], names: Iterable[str]) -> Iterable[ParameterEntry]:
    """Return a table with the entries of <wrench> repeated for each name."""
    for entry in entries:
        if WRENCH not in entry.name:
            yield entry
        else:
            default = entry.default
            for name in names:
                own_default = default.replace(WRENCH, name) if isinstance(default, str) else default
                yield replace(entry, name=entry.name.replace(WRENCH, name), default=own_default)


def markdown_table(entries: Iterable[ParameterEntry]) -> str:
    """Return the table of parameters for the pages of docs/."""
    lines = ["| parameter | type, default | allowed | unit | at run time | meaning |", "|---|---|---|---|---|---|"]
    for e in entries:
        default = "unknown" if e.default != e.default else f"`{json.dumps(e.default)}`"
        change = "no" if e.read_only else "yes"
        text = e.text.replace("*", r"\*")  # Markdown would set the text between two asterisks in italics
        lines.append(f"| `{e.name}` | {e.type}, {default} | {e.bounds} | {e.unit} | {change} | {text}. |")
    return "\n".join(lines) + "\n"

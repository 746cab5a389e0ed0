"""Robot of scaling_node: link-side model for the planning of trajectories, and orientation of a prescribed base."""

from __future__ import annotations

import numpy as np

from rnea_ros import BaseState, InputError, Robot
from rnea_ros.errors import some
from rnea_ros.nodes.common.base import BaseImu, BaseOdometry, BaseStates, BaseTopic, upright
from rnea_ros.nodes.common.model_facts import RobotFacts
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.robot_description import ModelRequest, tried
from rnea_ros.nodes.common.topics import Topics
from rnea_ros.trajectory.path_dynamics import default_base, link_side, unenforceable_limits
from rnea_ros.trajectory.sample_torques import DECLARED, CommandedEffort, TorqueStream

IMU_AVERAGING_NS = 500_000_000  # window over which accelerations are averaged; removes the sway of the base
BASE_ASSUMED_FIXED = "the motion of its base during a trajectory is unknown: the base is assumed to be at rest, "
BASE_LEVEL = "and level; if it is tilted, set base.source, or gravity in the frame of the root link"
BASE_MEASURED = "with the orientation that base.source measures when the trajectory arrives"
BASE_SOURCE_UNUSED = "base.source is ignored: it applies to a prescribed base (base: prescribed in the robot file)"


# ------------------------------------------------------------------------------------------------------ base orientation


class BaseOrientation:
    """Source of the orientation of a prescribed base: level, or measured on a topic.

    topic : ~/base_state, ~/base_odometry or ~/base_imu; None: level
    """

    def __init__(self, topic: BaseTopic | None = None):
        self.topic = topic

    def measure(self, gravity: np.ndarray) -> BaseState:
        """Return the base at rest with its current orientation. Raises Rejected if there is no recent measurement.

        For an IMU without orientation, it is computed from the mean specific force of a base that does not accelerate.

        gravity: (3,) acceleration of free fall in the world frame [m/s^2]
        """
        if self.topic is None:
            return BaseState()
        stamp, newest = self.topic.newest()
        if not isinstance(self.topic, BaseImu):
            return BaseState(quaternion=newest.state.quaternion)
        if newest.quaternion is not None:
            return BaseState(quaternion=newest.quaternion)
        specific_force = np.mean([sample.signals[:3] for sample in self.topic.since(stamp - IMU_AVERAGING_NS)], axis=0)
        return BaseState(quaternion=upright(specific_force, gravity))


def base_orientation(parameters: Values) -> BaseOrientation:
    """Return the orientation source that the parameter base.source selects."""
    source, timeout = parameters["base.source"], parameters["base.timeout"]
    if source == "imu":
        return BaseOrientation(BaseImu(timeout))
    if source == "odometry":
        return BaseOrientation(BaseOdometry(timeout, parameters["base.odometry_tolerance"]))
    return BaseOrientation(BaseStates(timeout) if source == "state" else None)


# ----------------------------------------------------------------------------------------------------------------- robot


class ScaledRobot(RobotFacts):
    """Robot whose trajectories are scaled.

    planned         : link-side model for which motions are planned; a prescribed base is at rest
    commanded       : convention of commanded efforts
    has_prescribed_base : whether the base has a prescribed motion
    """

    def __init__(self, robot: Robot, base: BaseOrientation | None = None, commanded_effort: str = DECLARED):
        """Create a robot. base: source of the orientation of a prescribed base; default: level.

        Raises InputError if the motion of the joints does not determine that of the robot or its commanded efforts.
        """
        super().__init__(robot)
        self.has_prescribed_base = default_base(robot) is not None
        self.planned, self._quaternion = link_side(robot, default_base(robot)), BaseState().quaternion
        self._set_base(base if base is not None and self.has_prescribed_base else BaseOrientation())
        if base is not None and base.topic and not self.has_prescribed_base:
            self.extra_warnings = (BASE_SOURCE_UNUSED,)
        self.commanded = CommandedEffort(self.planned, commanded_effort).convention
        if not robot.is_fixed_tree:
            self._check_springs(robot)

    def _set_base(self, base: BaseOrientation) -> None:
        self._base, self.streams = base, [base.topic.stream] if base.topic else []

    def connect(self, topics: Topics) -> None:
        """Subscribe to the topic of the base orientation."""
        if self._base.topic:
            self._base.topic.use(self.model)
            self._base.topic.connect(topics)

    def take_over(self, previous: RobotFacts) -> None:
        """Adopt the orientation source and the orientation of the previous robot."""
        if isinstance(previous, ScaledRobot) and previous.has_prescribed_base and self.has_prescribed_base:
            base, quaternion = previous.base_state()
            self._set_base(base)
            self._set_orientation(quaternion)  # the gravity of a current motion does not change

    def base_state(self) -> tuple[BaseOrientation, np.ndarray]:
        """Return the orientation source of the base and its current orientation, a quaternion x y z w."""
        return self._base, self._quaternion

    def forget(self) -> None:
        """Discard all measurements after the clock was set back."""
        if self._base.topic:
            self._base.topic.forget()

    def update_base_orientation(self) -> bool:
        """Measure the base orientation; return whether `planned` has changed. Raises Rejected if it cannot be measured."""
        if not self._base.topic:
            return False
        base = self._base.measure(self.gravity_vector)
        if np.array_equal(base.quaternion, self._quaternion):
            return False
        self._set_orientation(base.quaternion)
        return True

    def _set_orientation(self, quaternion: np.ndarray) -> None:
        self._quaternion, self.planned = quaternion, link_side(self.robot, BaseState(quaternion=quaternion))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the model and its use."""
        base = BASE_ASSUMED_FIXED + (BASE_MEASURED if self._base.topic else BASE_LEVEL)
        return (*super().warnings, *((base,) if self.has_prescribed_base else ()), *unenforceable_limits(self.robot))

    def _check_springs(self, robot: Robot) -> None:
        """Raise InputError if commanded efforts are those of the motor of an elastic joint."""
        motors = {name for name, unit in zip(self.joint_names, self.commanded.per_unit) if abs(unit) != 1.0}
        elastic = [name for name in robot.elastic_joints if name in motors]
        if elastic or (robot.elastic_joints and self.commanded.needs_friction):
            raise InputError(f"commanded efforts of elastic joints {some(elastic or robot.elastic_joints)} are those of their "
                             "motors; "
                             "only spring torques are supported, because motor friction, torque and current need two more "
                             "derivatives. Set commanded_effort to a joint_torque that is total or without_gravity")


def load_robot(parameters: Values, robot: Robot, request: ModelRequest) -> ScaledRobot:
    """Return the robot with all kernels of a tick compiled, in the thread that builds models. Raises RneaError."""
    scaled = ScaledRobot(robot, base_orientation(parameters), parameters["commanded_effort"])
    if scaled.planned.is_fixed_tree:
        tried(scaled.planned)
    else:
        TorqueStream(scaled.planned)(*scaled.planned.home_motion)
    return scaled

"""Arms of the timing demo: published data, and generic drives for arms without published ones.

Each arm has the torque and velocity limits of its URDF. The torque rate limit is equal in all joints, as libfranka has 1000 N
m/s
for a Panda: the strongest joint of every arm needs the same time from one torque limit to the other. All arms have the same
generic motors, in the range of harmonic drives: stall torque twice the torque limit, no-load speed 1.5 times the velocity
limit, electrical time constant 2 ms, and rotors that alone would accelerate at 150 rad/s^2.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import RneaError
from ..model import urdf_reader
from ..model.robot_file import read
from ..robots.load import load
from ..robots.robot import Robot
from ..sim.plant import Plant
from ..sim.scene import UnmodelledDynamics, scene
from .processes import urdf_source

EFFORT_SWING_S = 0.174  # time of the strongest joint from one torque limit to the other
GEAR_RATIO, TORQUE_CONSTANT, ELECTRICAL_TIME_CONSTANT_S = 100.0, 0.1, 2e-3  # -, N m/A, s
STALL_FACTOR, NO_LOAD_FACTOR, ROTOR_ACCELERATION = 2.0, 1.5, 150.0  # of torque limit, of velocity limit, rad/s^2
MAX_MASS_ERROR = 0.05  # largest relative error of the mass of a link
COULOMB, VISCOUS = 0.2, 0.03  # N m, N m s/rad: default friction, the smallest of a Panda's joints
RANGE_SHARE, MAX_REACH = 0.25, 0.8  # of random waypoints: share of the position range, and bound from its middle [rad, m]
TIMESTEP_S = 2.5e-4  # time step of the plant
N_WAYPOINTS = 4


class ArmSource(NamedTuple):
    """Source of an arm.

    tool    : link whose origin is the tool point; default: the last link
    rest    : middle of the motions [rad, m]; default: the middle of the position range
    held    : joints that are fixed
    profile : robot file whose friction the plant has
    """

    urdf: str | Path
    tool: str = ""
    rest: tuple[float, ...] = ()
    held: tuple[str, ...] = ()
    profile: str = ""


ARM_SOURCES = {
    "panda": ArmSource("example-robot-data:urdf/panda.urdf", "panda_hand", (0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8),
                       ("panda_finger_joint1", "panda_finger_joint2"), "panda"),
    "ur5": ArmSource("example-robot-data:urdf/ur5_robot.urdf", "tool0", (0.0, -1.2, 1.4, -0.6, 0.8, 0.0)),
    "seven_r": ArmSource("urdf/seven_r.urdf", "flange", (0.0, 0.5, 0.0, -1.8, 0.0, 1.8, 0.0)),
}


class Arm:
    """Arm with the model of its controller (`robot`, with limits and motors) and a different plant (`plant`).

    urdf, shapes : description for dynamics, and complete description
    file         : robot file

    Raises RneaError if the robot is not an arm with torque limits, or MuJoCo or example-robot-data is missing.
    """

    def __init__(self, source: ArmSource):
        path = urdf_source(source.urdf)
        self._path = Path(path)
        whole, _ = urdf_reader.whole(path)
        for joint in whole.iter("joint"):
            if joint.get("name") in source.held:
                joint.set("type", "fixed")
        self.shapes = urdf_reader.text(whole)
        self.urdf = urdf_reader.text(urdf_reader.read(self.shapes.encode()).robot).encode()
        bare = load(self.urdf)
        if not bare.is_fixed_tree or not bare.n or not np.isfinite(bare.limits.effort).all():
            raise RneaError(f"{source.urdf} is not an arm with a torque limit for every joint, which this demo needs")
        slew = 2.0 * float(bare.limits.effort.max()) / EFFORT_SWING_S
        self.file = {"version": 1, "limits": {name: {"max_effort_rate": slew} for name in bare.joint_names},
                     "drives": _generic_drives(bare)}
        self.robot = load(self.urdf, self.file)
        self.tool = source.tool or [name for name, frame in bare.model.frames.items() if frame.link == bare.n][-1]
        self._friction = _friction(bare, source.profile)
        lower, upper = self._positions = _positions(bare)
        self._rest = np.array(source.rest or 0.5 * (lower + upper))
        self._reach = np.minimum(RANGE_SHARE * (upper - lower), MAX_REACH)

    def points(self, rng: np.random.Generator) -> np.ndarray:
        """Return random waypoints (N_WAYPOINTS, n)."""
        return np.clip(self._rest + self._reach * rng.uniform(-1.0, 1.0, (N_WAYPOINTS, self.robot.n)), *self._positions)

    def masses(self, rng: np.random.Generator) -> np.ndarray:
        """Return random mass factors (n,) of the plant."""
        return 1.0 + MAX_MASS_ERROR * rng.uniform(-1.0, 1.0, self.robot.n)

    def plant(self, masses: np.ndarray) -> Plant:
        """Return the plant with these mass factors and with friction, both unknown to the controller."""
        return Plant(scene(self.urdf, self.file, unmodelled=UnmodelledDynamics(masses, *self._friction), timestep=TIMESTEP_S))

    @property
    def meshes(self) -> Path | None:
        """Folder of the meshes, if there is one."""
        folder = self._path.parent.parent / "meshes"
        return folder if folder.is_dir() else None

    def tool_at(self, q: np.ndarray) -> np.ndarray:
        """Return tool positions (samples, 3) [m]."""
        return self.robot.link_pose(self.tool, q).p


def _positions(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return position limits (n,); -pi and pi for joints without limits."""
    lower, upper = robot.limits.lower, robot.limits.upper
    return np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)


def _generic_drives(robot: Robot) -> dict[str, dict[str, float]]:
    """Return the drives for a robot file."""
    found, constant = {}, TORQUE_CONSTANT * GEAR_RATIO  # N m/A and V s/rad at the joint
    for name, effort, velocity in zip(robot.joint_names, robot.limits.effort.tolist(), robot.limits.velocity.tolist()):
        voltage = constant * NO_LOAD_FACTOR * velocity
        resistance = voltage * constant / (STALL_FACTOR * effort)
        found[name] = {"gear_ratio": GEAR_RATIO, "torque_constant": TORQUE_CONSTANT, "supply_voltage": voltage,
                       "resistance": resistance, "inductance": ELECTRICAL_TIME_CONSTANT_S * resistance,
                       "rotor_inertia": effort / ROTOR_ACCELERATION / GEAR_RATIO**2}
    return found


def _friction(robot: Robot, profile: str) -> tuple[np.ndarray, np.ndarray]:
    """Return Coulomb and viscous friction (n,)."""
    if not profile:
        return np.full(robot.n, COULOMB), np.full(robot.n, VISCOUS)
    known = read(profile).section("friction")
    coulomb, viscous = (np.array([known[name][kind] for name in robot.joint_names]) for kind in ("coulomb", "viscous"))
    return coulomb, viscous

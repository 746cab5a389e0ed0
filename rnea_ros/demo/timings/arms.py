"""Arms to try timings on: what is public of them, and drives that are made up where nothing is.

Each arm has the torque and velocity limits of its URDF and one slew limit for all joints, as libfranka has 1000 N m/s for a
Panda: by the strongest joint, whose torque then takes as long from end to end as a Panda's. Its motors are a choice, the same
for all, in the range of harmonic drives: at rest twice the torque limit, without load one and a half times the velocity limit,
electrical time constant 2 ms, and rotors that alone would gain 150 rad/s^2.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from ...errors import RneaError
from ...model import urdf_reader
from ...model.robot_file.robot_file import read
from ...robots.load import load
from ...robots.robot import Robot
from ...sim.plant import Plant
from ...sim.scene import UnmodelledDynamics, scene
from ..processes import described

SWING = 0.174  # s, in which the strongest joint may go from one end of its torque to the other
GEAR, TORQUE_CONSTANT, ELECTRICAL = 100.0, 0.1, 2e-3  # -, N m/A, s
STALL, NO_LOAD, SPIN = 2.0, 1.5, 150.0  # by the torque limit, by the velocity limit, rad/s^2
MASSES = 0.05  # by which the mass of every link may be wrong
COULOMB, VISCOUS = 0.2, 0.03  # N m, N m s/rad: friction where none is published, the smallest of a Panda's joints
SHARE, REACH = 0.25, 0.8  # of the range of positions, and at most so far from its middle [rad, m]
TIMESTEP = 2.5e-4  # s, of the plant
POINTS = 4


class Source(NamedTuple):
    """Where an arm comes from.

    tool    : the link whose origin is looked at; default the last one
    rest    : in the middle of its motions [rad, m]; default the middle of its positions
    held    : joints that do not move
    profile : of the robot files that come with the package, whose friction the plant has
    """

    urdf: str | Path
    tool: str = ""
    rest: tuple[float, ...] = ()
    held: tuple[str, ...] = ()
    profile: str = ""


SOURCES = {
    "panda": Source("example-robot-data:urdf/panda.urdf", "panda_hand", (0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8),
                    ("panda_finger_joint1", "panda_finger_joint2"), "panda"),
    "ur5": Source("example-robot-data:urdf/ur5_robot.urdf", "tool0", (0.0, -1.2, 1.4, -0.6, 0.8, 0.0)),
    "seven_r": Source("urdf/seven_r.urdf", "flange", (0.0, 0.5, 0.0, -1.8, 0.0, 1.8, 0.0)),
}


class Arm:
    """A robot as its controller knows it (`robot`, with limits and motors), and as it is (`plant`).

    urdf, shapes : what dynamics needs of the description, and all of it
    file         : the robot file

    Raises RneaError for what is no arm with torque limits, and where MuJoCo or example-robot-data is needed and missing.
    """

    def __init__(self, source: Source):
        path = described(source.urdf)
        self._path = Path(path)
        whole, _ = urdf_reader.whole(path)
        for joint in whole.iter("joint"):
            if joint.get("name") in source.held:
                joint.set("type", "fixed")
        self.shapes = urdf_reader.text(whole)
        self.urdf = urdf_reader.text(urdf_reader.read(self.shapes.encode()).robot).encode()
        bare = load(self.urdf)
        if not isinstance(bare, Robot) or not bare.n or not np.isfinite(bare.limits.effort).all():
            raise RneaError(f"{source.urdf} is no arm with a torque limit for every joint, which this demo needs")
        slew = 2.0 * float(bare.limits.effort.max()) / SWING
        self.file = {"version": 1, "limits": {name: {"max_effort_rate": slew} for name in bare.joint_names},
                      "drives": _drives(bare)}
        self.robot = cast(Robot, load(self.urdf, self.file))
        self.tool = source.tool or [name for name, frame in bare.model.frames.items() if frame.link == bare.n][-1]
        self._friction = _friction(bare, source.profile)
        lower, upper = self._positions = _positions(bare)
        self._rest = np.array(source.rest or 0.5 * (lower + upper))
        self._reach = np.minimum(SHARE * (upper - lower), REACH)

    def points(self, rng: np.random.Generator) -> np.ndarray:
        """(POINTS, n): where a path begins, what it passes, and where it ends."""
        return np.clip(self._rest + self._reach * rng.uniform(-1.0, 1.0, (POINTS, self.robot.n)), *self._positions)

    def masses(self, rng: np.random.Generator) -> np.ndarray:
        """Factors (n,) by which they are wrong."""
        return 1.0 + MASSES * rng.uniform(-1.0, 1.0, self.robot.n)

    def plant(self, masses: np.ndarray) -> Plant:
        """With masses wrong by these factors, and joints that rub; the controller knows of neither."""
        return Plant(scene(self.urdf, self.file, unmodelled=UnmodelledDynamics(masses, *self._friction), timestep=TIMESTEP))

    @property
    def meshes(self) -> Path | None:
        """Where descriptions have them."""
        folder = self._path.parent.parent / "meshes"
        return folder if folder.is_dir() else None

    def tool_at(self, q: np.ndarray) -> np.ndarray:
        """(samples, 3) [m]."""
        return self.robot.link_pose(self.tool, q).p


def _positions(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends (n,); half a turn either way where a joint has none."""
    lower, upper = robot.limits.lower, robot.limits.upper
    return np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)


def _drives(robot: Robot) -> dict[str, dict[str, float]]:
    """As a data sheet has them."""
    found, constant = {}, TORQUE_CONSTANT * GEAR  # N m/A and V s/rad at the joint
    for name, effort, velocity in zip(robot.joint_names, robot.limits.effort.tolist(), robot.limits.velocity.tolist()):
        voltage = constant * NO_LOAD * velocity
        resistance = voltage * constant / (STALL * effort)
        found[name] = {"gear_ratio": GEAR, "torque_constant": TORQUE_CONSTANT, "supply_voltage": voltage,
                       "resistance": resistance, "inductance": ELECTRICAL * resistance,
                       "rotor_inertia": effort / SPIN / GEAR**2}
    return found


def _friction(robot: Robot, profile: str) -> tuple[np.ndarray, np.ndarray]:
    """Coulomb and viscous (n,)."""
    if not profile:
        return np.full(robot.n, COULOMB), np.full(robot.n, VISCOUS)
    known = read(profile).section("friction")
    coulomb, viscous = (np.array([known[name][kind] for name in robot.joint_names]) for kind in ("coulomb", "viscous"))
    return coulomb, viscous

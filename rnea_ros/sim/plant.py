"""Plant: a robot in MuJoCo, its sensors, the exact state at each instant, and comparison of its torques with the package's.

An instant is the result of MuJoCo's forward dynamics before integration: positions, velocities, motor torques, contact forces
and the resulting accelerations. All belong to the same time, so they can be compared with inverse dynamics without an
integration error. `Sensors` adds noise to an instant.

`track` follows a motion with an imperfect plant: computed torque with the package's model, saturating drives. The feedback
law is the same for every timing of a path:

    tau = inverse dynamics of (r, rd, rdd + w^2 (r - q) + 2 w (rd - qd))

the planned torque and a PD of bandwidth w in every joint. A drive follows the commanded torque as fast as its limits allow.
Each limit is linear in torque, torque rate and speed of one joint,

    lower <= effort tau + effort_rate d tau/dt + velocity qd <= upper

the torque limit, the limit of its rate (slew), and those of the robot file's drives: voltage, current, speed-torque curve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..model.drives import DriveLimit
from ..robots.base_state import BaseState
from ..robots.conditions import Loads
from ..robots.robot import Robot
from .scene import Scene, mujoco


class Instant(NamedTuple):
    """State of a plant at one time t [s]: q, qd, qdd (n,) of all joints of the tree; tau of the motors in the order of the
    robot's joint_names [N m, N].

    base          : state of the root link with its acceleration; None for a fixed base
    wrenches      : {link: (6,)} of all feet and of the tool, exerted by the environment on the link, in the link's frame
    accelerometer : (3,) of the IMU at the origin of the root link, along its axes: acceleration minus gravity [m/s^2]
    gyro          : (3,) angular velocity [rad/s]
    """

    t: float
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    base: BaseState | None
    wrenches: dict[str, np.ndarray]
    accelerometer: np.ndarray
    gyro: np.ndarray


class Plant:
    """A running scene: `exert` torques, read the instant, `advance` by one timestep."""

    def __init__(self, scene: Scene):
        self.scene, self._engine = scene, mujoco()
        self.robot, self.tree, self._model = scene.robot, scene.tree, scene.model
        self.description = scene.description
        self._data = self._engine.MjData(self._model)
        joints = [self._model.joint(name) for name in self.tree.joint_names]
        self._q, self._v = (np.array([int(getattr(joint, name)[0]) for joint in joints], dtype=int)
                            for name in ("qposadr", "dofadr"))
        self._free = self.tree.model.base == "floating"
        self._balls = {self._model.geom(foot.link).id: foot.link for foot in scene.feet}
        self._six = np.zeros(6)

    @property
    def timestep(self) -> float:
        return float(self._model.opt.timestep)

    def set_state(self, q: ArrayLike, base: BaseState | None = None) -> None:
        """Set positions q (n,) of all joints of the tree at rest, and the state of a moving base; the time becomes zero."""
        self._engine.mj_resetData(self._model, self._data)
        self._data.qpos[self._q] = q
        if self._free and base is not None:
            x, y, z, w = base.quaternion
            self._data.qpos[:7] = *base.position, w, x, y, z
            self._data.qvel[:6] = *base.into_world(base.velocity[:3]), *base.velocity[3:]

    @property
    def joints(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n,) of all joints of the tree, without sensor noise."""
        return self._data.qpos[self._q], self._data.qvel[self._v]

    def push(self, force: ArrayLike, body: str = "tool") -> None:
        """Apply a force [N] along the world's axes to a body's centre of mass, until the next call."""
        self._data.body(body).xfrc_applied[:3] = force

    def exert(self, tau: ArrayLike) -> Instant:
        """Apply motor torques, in the order of the robot's joint_names, and return the resulting instant."""
        data = self._data
        data.ctrl[:] = tau
        self._engine.mj_forward(self._model, data)
        base = self._base() if self._free else None
        return Instant(data.time, *self.joints, data.qacc[self._v], data.actuator_force.copy(), base,
                       self._wrenches(), data.sensor("accelerometer").data.copy(), data.sensor("gyro").data.copy())

    def advance(self) -> None:
        """Advance by one timestep from the last instant (semi-implicit Euler)."""
        self._engine.mj_Euler(self._model, self._data)

    def _base(self) -> BaseState:
        """Return state and acceleration of the base. MuJoCo has linear parts in world axes, angular parts in base axes."""
        w, x, y, z = self._data.qpos[3:7]
        still = BaseState(self._data.qpos[:3], (x, y, z, w))
        velocity, acceleration = (np.concatenate((still.into_base(six[:3]), six[3:6]))
                                  for six in (self._data.qvel, self._data.qacc))
        return BaseState(still.position, still.quaternion, velocity, acceleration)

    def _wrenches(self) -> dict[str, np.ndarray]:
        data, found = self._data, {link: np.zeros(6) for link in self._balls.values()}
        for k in range(data.ncon):
            contact = data.contact[k]
            self._engine.mj_contactForce(self._model, data, k, self._six)  # on the second geom, along the contact's axes
            second = int(contact.geom2) in self._balls
            link = self._balls[int(contact.geom2 if second else contact.geom1)]
            force, moment = (1.0 if second else -1.0) * self._six.reshape(2, 3) @ contact.frame.reshape(3, 3)
            body = data.body(link)
            R, arm = body.xmat.reshape(3, 3), contact.pos - body.xpos
            found[link] += np.concatenate((force @ R, (moment + np.cross(arm, force)) @ R))
        if self.scene.tool:  # the sensor measures what the link exerts on the tool
            found[self.scene.tool.link] = -np.concatenate([data.sensor(name).data for name in ("force", "torque")])
        return found


class Noise(NamedTuple):
    """Standard deviations of one reading, and the encoder resolution; zero is a perfect sensor."""

    resolution: float = 0.0  # rad, m; positions are integer multiples of it
    velocity: float = 0.0  # rad/s, m/s
    accelerometer: float = 0.0  # m/s^2
    gyro: float = 0.0  # rad/s
    force: float = 0.0  # N
    moment: float = 0.0  # N m


# A 17-bit encoder and its tachometer, an IMU of a walking robot, a small six-axis force sensor.
TYPICAL_NOISE = Noise(2.0 * np.pi / 2**17, 2e-3, 0.02, 1e-3, 0.05, 1e-3)


class Sensors:
    """Noise model: maps an instant to the instant as measured; accelerations, base and torques are unchanged."""

    def __init__(self, noise: Noise = TYPICAL_NOISE, seed: int = 0):
        self._noise, self._rng = noise, np.random.default_rng(seed)

    def __call__(self, instant: Instant) -> Instant:
        noise = self._noise
        q = np.round(instant.q / noise.resolution) * noise.resolution if noise.resolution else instant.q
        spread = np.repeat((noise.force, noise.moment), 3)
        return instant._replace(
            q=q, qd=self._off(instant.qd, noise.velocity), gyro=self._off(instant.gyro, noise.gyro),
            accelerometer=self._off(instant.accelerometer, noise.accelerometer),
            wrenches={link: self._off(six, spread) for link, six in instant.wrenches.items()})

    def _off(self, true: np.ndarray, deviation: float | np.ndarray) -> np.ndarray:
        return true + deviation * self._rng.standard_normal(true.shape)


STANCE, SWING, CHANGE = "stance", "swing", "touch-down and lift-off"
CHANGE_WINDOW_S = 0.02  # samples this close to the beginning or the end of a contact have the phase CHANGE


def torques(robot: Robot, instant: Instant, motors: np.ndarray) -> np.ndarray:
    """Return the torques (n,) of an instant by inverse dynamics, from its motion and wrenches [N m, N].

    motors : indices of the robot's joints among those of the tree
    """
    q, qd, qdd = (part[motors] for part in (instant.q, instant.qd, instant.qdd))
    if not robot.is_fixed_tree and robot.has_moving_base:
        return robot.inverse_dynamics(q, qd, qdd, base=instant.base, loads=Loads(instant.wrenches))
    if not robot.is_fixed_tree:
        return robot.inverse_dynamics(q, qd, qdd, guess=instant.q)
    return robot.inverse_dynamics(q, qd, qdd, loads=Loads(instant.wrenches))


class InstantRates(NamedTuple):
    """An instant with its rates: jerk of the joints (n,) and of the base (6,) (see base_state.py; None for a fixed base),
    rates of the wrenches and of the motor torques.
    """

    instant: Instant
    jerk: np.ndarray
    base_jerk: np.ndarray | None
    wrench_rates: dict[str, np.ndarray]
    tau_rate: np.ndarray


def with_rates(instants: Iterable[Instant]) -> Iterator[InstantRates]:
    """Yield every instant but the first and the last with central differences of what MuJoCo does not provide.

    Within a contact phase the error is quadratic in the time between instants. At a change of contacts the accelerations jump
    and the jerk does not exist.
    """
    before = here = None
    for after in instants:
        if before is not None and here is not None:
            span = after.t - before.t
            base_jerk = None
            if here.base:
                base_jerk = here.base.into_base(_world_acceleration(after) - _world_acceleration(before)) / span
            wrench_rates = {link: (six - before.wrenches[link]) / span for link, six in after.wrenches.items()}
            yield InstantRates(here, (after.qdd - before.qdd) / span, base_jerk, wrench_rates, (after.tau - before.tau) / span)
        before, here = here, after


def _world_acceleration(instant: Instant) -> np.ndarray:
    assert instant.base is not None
    return instant.base.into_world(instant.base.acceleration)


def phases(t: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Return the phase of every leg: STANCE, SWING or CHANGE (samples, legs), from contact forces of that shape at times t."""
    loaded = forces > 0.0
    found = np.where(loaded, STANCE, SWING).astype(object)
    for leg, changes in enumerate(np.diff(loaded, axis=0).T):
        for moment in t[1:][changes]:
            found[np.abs(t - moment) <= CHANGE_WINDOW_S, leg] = CHANGE
    return found


class SaturatingDrives:
    """Saturating drives of all joints; unknown limits do not act. `tau` (n,) is the torque applied now [N m, N]."""

    def __init__(self, robot: Robot, tau: ArrayLike):
        self.tau = np.array(tau, dtype=float)
        limits, own = robot.limits, getattr(robot, "drive_limits", ())
        lines = [_line(joint, limits.effort_rate[joint], effort_rate=1.0) for joint in range(robot.n)]
        lines += [limit for limit in own if len(limit.joints) == 1 and not limit.power]
        lines += [_line(joint, limits.effort[joint], effort=1.0) for joint in range(robot.n)]
        self._lines = [line for line in lines if np.isfinite(line.upper) and (line.effort or line.effort_rate)]

    def step(self, wanted: np.ndarray, qd: np.ndarray, dt: float) -> np.ndarray:
        """Return the torques (n,) applied after a time dt [s], towards the wanted ones; the last of conflicting limits
        holds.
        """
        rate = (wanted - self.tau) / dt
        for line in self._lines:
            (joint,) = line.joints
            now = line.effort * self.tau[joint] + line.velocity * qd[joint]
            slope = line.effort * dt + line.effort_rate
            ends = (line.lower - now) / slope, (line.upper - now) / slope
            rate[joint] = min(max(rate[joint], min(ends)), max(ends))
        self.tau = self.tau + dt * rate
        return self.tau


def _line(joint: int, limit: float, effort: float = 0.0, effort_rate: float = 0.0) -> DriveLimit:
    return DriveLimit("", "", (joint,), -limit, limit, effort=effort, effort_rate=effort_rate)


CONTROL_PERIOD_S = 1e-3
PLANT_STEPS_PER_PERIOD = 4
BANDWIDTH_RAD_S = 42.0
MAX_TRACKING_ERROR = 0.25  # rad, m; beyond it tracking is lost and the drives are stopped
Motion = Callable[[np.ndarray], tuple[np.ndarray, ...]]


class TrackingResult(NamedTuple):
    """Tracking result: times t (samples,), reference and actual positions, commanded and applied torques (samples, n).

    lost : whether the tracking error exceeded MAX_TRACKING_ERROR; the samples end there
    """

    t: np.ndarray
    reference: np.ndarray
    q: np.ndarray
    commanded: np.ndarray
    applied: np.ndarray
    lost: bool


def track(plant: Plant, motion: Motion, duration: float, rest: float = 0.2) -> TrackingResult:
    """Simulate tracking of a motion from rest: hold the start, follow for `duration` [s], hold the end.

    motion : function of times (samples,) -> q, qd, qdd, ... (samples, n); at rest after the duration
    rest   : time for which start and end are held [s]; `t` starts at -rest
    """
    t = np.arange(-rest, duration + rest, CONTROL_PERIOD_S)
    r, rd, rdd = motion(np.maximum(t, 0.0))[:3]
    moving = (t >= 0.0)[:, None]
    rd, rdd = rd * moving, rdd * moving
    return follow(plant, r[0], t, lambda k: (r[k], rd[k], rdd[k]))


def follow(plant: Plant, start: np.ndarray, t: np.ndarray,
           reference: Callable[[int], tuple[np.ndarray, ...]]) -> TrackingResult:
    """Simulate tracking of references by the feedback law from rest at `start` (n,), until tracking is lost.

    t : times of the control periods (samples,) [s]; reference : number of a period -> position, velocity, acceleration (n,)
    """
    robot = plant.robot
    plant.set_state(start)
    drives = SaturatingDrives(robot, robot.gravity(start))
    wanted, q, commanded, applied = np.zeros((4, len(t), len(start)))
    for k in range(len(t)):
        r, rd, rdd = reference(k)
        wanted[k], (q[k], qd) = r, plant.joints
        commanded[k] = robot.inverse_dynamics(r, rd, rdd + BANDWIDTH_RAD_S**2 * (r - q[k]) + 2.0 * BANDWIDTH_RAD_S * (rd - qd))
        for _ in range(PLANT_STEPS_PER_PERIOD):
            plant.exert(drives.step(commanded[k], plant.joints[1], plant.timestep))
            plant.advance()
        applied[k] = drives.tau
        if np.abs(r - q[k]).max() > MAX_TRACKING_ERROR:
            till = slice(k + 1)
            return TrackingResult(t[till], wanted[till], q[till], commanded[till], applied[till], True)
    return TrackingResult(t, wanted, q, commanded, applied, False)

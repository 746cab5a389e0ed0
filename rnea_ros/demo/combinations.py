"""Demos of robots that combine moving bases, loops, springs, elastic joints and contacts.

The motion of actuated joints and base is a sum of harmonics. The motion of springs is solved from their equations of motion,
that of loops from their closure, that of elastic motors from the joint torques; all three are solved at samples of one period
and published as Fourier series. dynamics_node receives joint states, desired motion and base states. Its torques are checked:
rates of torques, loop forces and contact forces equal finite differences, and the power of motors and base equals the rate of
the energy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.vectors import rpy, rpy_angles
from ..algorithms.kinematics import Pose
from ..robots.base_state import BaseState, from_coordinates
from ..robots.conditions import MotorState
from ..robots.robot import Robot
from ..sim.free_base import simulate_free_base
from .robot_demo import (
    FINITE_DIFFERENCE_TOL,
    CheckResult,
    DemoMotion,
    DemoRecording,
    Harmonics,
    PeriodicMotion,
    RobotDemo,
    Topics,
    TopicSeries,
    check_close,
    check_rates,
    pair_by_stamp,
    slopes,
    smooth_samples,
)

SAMPLES_PER_PERIOD = 64
STROKES = 16  # periods until the motion of a swimming robot is periodic
STEPS_PER_SAMPLE = 4  # integration steps per sample
SPRING_HARMONICS = 14  # above those of the actuated joints, below the natural frequencies of the springs
COEFFICIENT_TOL = 1e-11  # tolerance of the Fourier coefficients of springs [rad]
MAX_ITERATIONS = 30  # most Newton iterations for springs
DIFFERENCE_STEP = 1e-6  # step of finite differences [rad]
TWIST, WRENCH = slice(7, 13), slice(25, 31)  # columns of rnea_msgs/BaseDynamics


@dataclass(frozen=True)
class CombinationMotion:
    """Periodic motion of one robot.

    about  : description for users
    period : period [s]
    joints : amplitude [rad, m], harmonic and phase [rad] of each moving joint
    middle : mean positions of the joints; default: 0 [rad, m]
    base   : amplitude [m, rad], harmonic and phase [rad] of x, y, z, roll, pitch, yaw of the base, keyed by 0 to 5
    feet   : feet that stay in place: {link: point in its frame [m]}; their legs are solved from the motion of the base
    """

    about: str
    period: float
    joints: Mapping[str, tuple[float, int, float]]
    middle: Mapping[str, float]
    base: Mapping[int, tuple[float, int, float]]
    feet: Mapping[str, tuple[float, float, float]]

    def player(self, robot: Robot) -> DemoMotion:
        """Return the motion of all joints and the base, solved, for demo_robot to publish."""
        times = np.arange(SAMPLES_PER_PERIOD) * (self.period / SAMPLES_PER_PERIOD)
        base = self._base_harmonics()
        given = _harmonics(robot.joint_names, self.joints, self.middle, self.period)
        names = [*robot.tree_joints, *robot.motor_joints.values()]
        motion = np.array([given.derivatives(t, robot.order + 1) for t in times])  # (N, order + 1, n)
        states = [self._base_at(base, t) for t in times] if robot.has_moving_base else []
        if robot.roles.fluid:
            swum = _swimming_velocities(robot, given, self.period, times)
            states = [BaseState(velocity=row) for row in swum]
        if self.feet:
            motion[:, 0] = _leg_positions(robot, self.feet, motion[:, 0], states)
            legs = PeriodicMotion(self.period, motion[:, 0])
            motion[:, 1:] = [legs.derivatives(t, robot.order + 1)[1:] for t in times]
        higher = None
        if states and robot.elastic_joints:
            velocity = PeriodicMotion(self.period, np.array([state.velocity for state in states]))
            higher = [velocity.derivatives(t, robot.order)[1:] for t in times]
        solved = _solve_period(robot, motion, [self._options(robot, states, higher, k) for k in range(SAMPLES_PER_PERIOD)],
                               self.period)
        positions = np.array([[found.positions[name][0] for name in robot.tree_joints]
                           + [found.positions[f"motor of {name}"][0] for name in robot.motor_joints] for found in solved])
        whole = PeriodicMotion(self.period, positions)
        moved: Any = None
        if is_free(robot):
            velocities = np.array([found.base[0] for found in solved])
            moved = _level_base_motion(PeriodicMotion(self.period, velocities), self.period)
        elif states:
            def moved(t: float) -> BaseState:
                return self._base_at(base, t)

        root, platforms = robot.tree.root_link, _platform_poses(robot, self.period, solved)

        def free_links(t: float) -> dict[str, Pose]:
            found = {link: pose(t) for link, pose in platforms.items()}
            return {root: Pose(moved(t).rotation, moved(t).position), **found} if moved else found

        return DemoMotion(f"{self.about} with a period of {self.period:g} s", tuple(names), "world" if moved else root,
                          whole,
                          free_links, moved)

    def _base_harmonics(self) -> Harmonics:
        return _harmonics(range(6), self.base, {}, self.period)

    @staticmethod
    def _base_at(base: Harmonics, t: float) -> BaseState:
        return from_coordinates(np.array(base.derivatives(t, 4)))

    @staticmethod
    def _options(robot: Robot, states: Sequence[BaseState], higher: Any, k: int) -> dict[str, Any]:
        if not states:
            return {}
        if higher is not None:
            return {"base": states[k].with_motion(rates=higher[k])}
        return {"base": states[k].free if is_free(robot) else states[k]}


def is_free(robot: Robot) -> bool:
    """Return whether the motion of the joints determines that of the base: the robot rolls or swims."""
    return bool(robot.roles.wheels or robot.roles.fluid)


def _swimming_velocities(robot: Robot, joints: Harmonics, period: float, times: np.ndarray) -> np.ndarray:
    """Return the velocity (N, 6) of a swimming base in its frame at times (N,) of one period, after STROKES periods."""
    grid = np.arange(STROKES * STEPS_PER_SAMPLE * len(times) + 1) * (period / (STEPS_PER_SAMPLE * len(times)))
    swum = simulate_free_base(robot, lambda t: joints.derivatives(t, 3), grid)
    velocities: np.ndarray = swum.base[-1 - STEPS_PER_SAMPLE * len(times):-1:STEPS_PER_SAMPLE, 7:13]
    return velocities


def _harmonics(names: Sequence[Any], waves: Mapping[Any, tuple[float, int, float]], middle: Mapping[Any, float],
               period: float) -> Harmonics:
    """Return harmonics with one wave per name: amplitude cos(k 2 pi t / period + phase)."""
    numbers = {name: k for k, name in enumerate(names)}
    phases, terms = np.zeros(len(numbers)), []
    for name, (size, harmonic, phase) in waves.items():
        row = np.zeros(len(numbers))
        row[numbers[name]], phases[numbers[name]] = size, phase / harmonic
        terms.append((harmonic, row))
    return Harmonics(period, np.array([middle.get(name, 0.0) for name in numbers]), tuple(terms), phases)


def _solve_period(robot: Robot, motion: np.ndarray, options: Sequence[dict[str, Any]], period: float) -> list[Any]:
    """Return the solutions of one period, including the periodic motion of the springs.

    motion  : (N, order + 1, n) derivatives of the joints at N samples; the positions and velocities of springs are filled in
    options : keyword arguments of `Robot.solve` for each sample

    The springs are solved by collocation with SPRING_HARMONICS harmonics: at each sample, the acceleration of the Fourier
    series equals that of the equations of motion. Newton's method uses the Jacobian at the initial guess.
    """
    columns = [robot.joint_names.index(name) for name in robot.state_joints]
    guess, N, S = np.array(robot.start), len(motion), len(columns)
    if columns:
        waves = [_wave(k, N, period) for k in range(2 * SPRING_HARMONICS + 1)]  # with two derivatives
        F, Fd, Fdd = (np.transpose([wave[order] for wave in waves]) for order in range(3))
        matrix = np.einsum("ij,ab->iajb", Fdd, np.eye(S))
        for k, (one, given) in enumerate(zip(motion, options, strict=True)):
            stiffness, damping = _spring_jacobians(robot, one, given, columns)
            matrix[k] += np.einsum("ab,j->ajb", stiffness, F[k]) + np.einsum("ab,j->ajb", damping, Fd[k])
        inverse = np.linalg.pinv(matrix.reshape(N * S, -1))
        coefficients = np.zeros((2 * SPRING_HARMONICS + 1, S))
        for _ in range(MAX_ITERATIONS):
            wanted = np.array([_accelerations(robot, one, given, guess) for one, given in zip(motion, options, strict=True)])
            step = (inverse @ (wanted - Fdd @ coefficients).ravel()).reshape(-1, S)
            coefficients += step
            motion[:, 0, columns], motion[:, 1, columns] = F @ coefficients, Fd @ coefficients
            if np.abs(step).max() < COEFFICIENT_TOL:
                break
    found = []
    for one, given in zip(motion, options, strict=True):
        found.append(robot.solve(*one, **given, guess=guess))
        guess = np.array([found[-1].positions[name][0] for name in robot.tree.joint_names])
    return found


def _platform_poses(robot: Robot, period: float, solved: Sequence[Any]) -> dict[str, Callable[[float], Pose]]:
    """Return the pose of every platform in the frame of the root link as a function of time [s], from Fourier series."""
    found: dict[str, Callable[[float], Pose]] = {}
    q = np.array([[one.positions[name][0] for name in robot.tree.joint_names] for one in solved])
    for link in robot.platforms:
        poses = [robot.tree.link_pose(link, row) for row in q]
        series = PeriodicMotion(period, np.array([[*pose.p, *rpy_angles(pose.R)] for pose in poses]))

        def pose_at(t: float, series: PeriodicMotion = series) -> Pose:
            x = series.derivatives(t, 1)[0]
            return Pose(rpy(*x[3:]), x[:3])

        found[link] = pose_at
    return found


def _wave(number: int, samples: int, period: float) -> list[np.ndarray]:
    """Return a constant (number 0), a cosine (odd) or a sine (even) over one period, with its first two derivatives."""
    w = 2.0 * np.pi / period * ((number + 1) // 2)
    angle = w * np.arange(samples) * (period / samples) - (0.5 * np.pi if number and number % 2 == 0 else 0.0)
    return [w**order * np.cos(angle + 0.5 * np.pi * order) for order in range(3)]


def _accelerations(robot: Robot, motion: np.ndarray, options: Mapping[str, Any], guess: np.ndarray) -> list[float]:
    """Return the accelerations of the joints with springs."""
    found = robot.solve(*motion, stages=1, **options, guess=guess).positions
    return [found[name][2] for name in robot.state_joints]


def _spring_jacobians(robot: Robot, motion: np.ndarray, options: Mapping[str, Any],
                      columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the negative derivatives of the springs' accelerations by their positions and velocities."""
    found = np.zeros((2, len(columns), len(columns)))
    for order in range(2):
        for k, column in enumerate(columns):
            ends = []
            for step in (DIFFERENCE_STEP, -DIFFERENCE_STEP):
                moved = motion.copy()
                moved[order, column] += step
                ends.append(np.array(_accelerations(robot, moved, options, robot.start)))
            found[order, :, k] = (ends[1] - ends[0]) / (2.0 * DIFFERENCE_STEP)
    return found[0], found[1]


def _leg_positions(robot: Robot, feet: Mapping[str, tuple[float, float, float]], positions: np.ndarray,
                   states: Sequence[BaseState]) -> np.ndarray:
    """Return positions (N, n) for which the feet stay in place, solved by Newton's method.

    The feet stay at their position at the mean of `positions` (N, n) with a level base. states: N states of the base
    """
    level = BaseState()
    found, q = positions.copy(), positions.mean(axis=0)
    there = _foot_positions(robot, feet, q, level)
    for k, state in enumerate(states):
        for _ in range(20):
            gap = _foot_positions(robot, feet, q, state) - there
            if np.abs(gap).max() < 1e-13:
                break
            slope = [(_foot_positions(robot, feet, q + step, state) - _foot_positions(robot, feet, q - step,
                                                                                      state)) / (2.0 * DIFFERENCE_STEP)
                     for step in DIFFERENCE_STEP * np.eye(robot.n)]
            q = q - np.linalg.solve(np.transpose(slope), gap)
        found[k] = q
    return found


def _foot_positions(robot: Robot, feet: Mapping[str, tuple[float, float, float]], q: np.ndarray,
                    base: BaseState) -> np.ndarray:
    return np.concatenate([robot.link_pose(link, q, point, base=base).p for link, point in feet.items()])


def _level_base_motion(velocity: PeriodicMotion, period: float) -> Any:
    """Return the planar motion of a base as a function of time [s], integrated from its velocity (6,) in the base frame."""
    grid = np.linspace(0.0, period, 16 * SAMPLES_PER_PERIOD + 1)
    rates = np.array([velocity.derivatives(t, 1)[0] for t in grid])
    heading = _integral(rates[:, 5], grid)
    c, s = np.cos(heading), np.sin(heading)
    x, y = _integral(c * rates[:, 0] - s * rates[:, 1], grid), _integral(s * rates[:, 0] + c * rates[:, 1], grid)
    path = np.column_stack((x, y, heading))

    def moved(t: float) -> BaseState:
        rounds, since = divmod(t, period)
        *p, yaw = (np.interp(since, grid, row) + rounds * row[-1] for row in path.T)
        turn = (0.0, 0.0, float(np.sin(0.5 * yaw)), float(np.cos(0.5 * yaw)))
        return BaseState((*p, 0.0), turn).moved_by(velocity.derivatives(t, 3))

    return moved


def _integral(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    return np.concatenate(([0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(grid))))


# ---------------------------------------------------------------------- checks


def simulate(robot: Robot, player: DemoMotion, seconds: float, rate: float) -> tuple[DemoRecording, Topics]:
    """Return the torques and topics that dynamics_node would publish, computed by the library."""
    assert not robot.is_fixed_tree
    t = np.arange(int(seconds * rate)) * round(1e9 / rate)
    given: dict[str, Any]
    rows: dict[str, list[Any]] = {name: [] for name in ("motion", "torques", "states", "base", "forces", "force_rates")}
    columns = [player.joint_names.index(name) for name in robot.joint_names]
    motors = [player.joint_names.index(name) for name in robot.motor_joints.values()]
    guess = robot.start
    for time in t * 1e-9:
        motion, given = player.motion(time), {"guess": guess}
        if player.base:
            state = player.base(time)
            given["base"] = state.free if is_free(robot) else state
        if motors:
            given["motors"] = MotorState(*(part[motors] for part in motion))
        found = robot.solve(*(part[columns] for part in motion), **given)
        guess = np.array([found.positions[name][0] for name in robot.tree.joint_names])
        rows["motion"].append([part[columns] for part in motion])
        rows["torques"].append(found.torques)
        rows["states"].append(np.concatenate(motion[:2]))
        for k, name in enumerate(("forces", "force_rates")):
            rows[name].append([found.multipliers[one][k] for one in robot.constraints])
        if player.base:
            wrench = [found.efforts[name][0] if name in found.efforts else 0.0
                      for name in ("base x", "base y", "base z", "base rx", "base ry", "base rz")]
            velocity = state.velocity if not robot.roles.wheels else found.base[0]
            rows["base"].append([*state.position, *state.quaternion, *velocity, *np.zeros(12), *wrench])
    motions, torques = np.array(rows["motion"]), np.array(rows["torques"])
    topics = {name: TopicSeries(t, np.array(rows[name])) for name in ("states", "base", "forces", "force_rates") if rows[name]}
    return DemoRecording(t, *motions.swapaxes(0, 1), *torques.swapaxes(0, 1)), topics


def checks(robot: Robot, recording: DemoRecording, topics: Topics | None) -> list[CheckResult]:
    """Check the rates of torques, loop forces and contact forces, and the power balance."""
    assert not robot.is_fixed_tree and topics is not None
    found = [check_rates(recording, robot.joint_names)]
    if robot.constraints:
        together, (forces, rates) = pair_by_stamp(recording, topics["forces"], topics["force_rates"])
        m, where = len(robot.constraints), smooth_samples(together)
        forces, rates = forces[:, -m:], rates[:, -m:]
        if not robot.roles.contacts:  # rates of contact forces are expressed in the world frame
            found.append(check_close(rates[where], slopes(together.seconds, forces)[where - 1], FINITE_DIFFERENCE_TOL * 5.0,
                                     "rates of loop and wheel forces equal finite differences"))
    return found if robot.roles.fluid else [*found, _check_power(robot, recording, topics)]  # drag dissipates energy


def _check_power(robot: Robot, recording: DemoRecording, topics: Topics) -> CheckResult:
    """Check that the power of motors and base carrier is the rate of the energy plus the dissipation of the dampers."""
    names = [*robot.tree_joints, *robot.motor_joints.values()]
    series = [topics["states"], *([topics["base"]] if robot.has_moving_base else [])]
    recording, (states, *bases) = pair_by_stamp(recording, *series)
    q, qd = states[:, :len(names)], states[:, len(names):2 * len(names)]
    columns = [names.index(name) for name in robot.joint_names]
    turning = [names.index(robot.motor_joints.get(name, name)) for name in robot.joint_names]
    driven = [name in robot.roles.actuated for name in robot.joint_names]
    power = (recording.tau * qd[:, turning])[:, driven].sum(axis=1)
    for spring in robot.roles.springs:
        power -= spring.damping * qd[:, names.index(robot.tree.joint_names[spring.coordinate])]**2
    given: dict[str, Any] = {} if robot.platforms else {"guess": q[0, :robot.tree.n]}
    if bases:
        (base,) = bases
        given["base"] = BaseState(base[:, :3], base[:, 3:7] / np.linalg.norm(base[:, 3:7], axis=1)[:, None], base[:, TWIST])
        power += (base[:, WRENCH] * base[:, TWIST]).sum(axis=1)
    if robot.motor_joints:
        motors = [names.index(robot.motor_joints[name]) for name in robot.elastic_joints]
        given["motors"] = MotorState(q[:, motors], qd[:, motors])
    energy = robot.energy(q[:, columns], qd[:, columns], **given).total
    where = smooth_samples(recording)
    return check_close(power[where, None], slopes(recording.seconds, energy[:, None])[where - 1], FINITE_DIFFERENCE_TOL,
                       "the power of motors and base equals the rate of the energy")


# ---------------------------------------------------------------------- robots


def _demo(name: str, motion: CombinationMotion, robot_file: str = "", urdf: str = "", **options: Any) -> RobotDemo:
    def player() -> DemoMotion:
        robot = demo.load()
        assert not robot.is_fixed_tree
        return motion.player(robot)

    topics = {"states": ("sensor_msgs/JointState", "joint_states")}
    if motion.base or options.pop("moves", False):
        topics["base"] = ("rnea_msgs/BaseDynamics", "dynamics_node/base_dynamics")
    if options.pop("constrained", True):
        topics |= {"forces": ("sensor_msgs/JointState", "dynamics_node/constraint_effort"),
                   "force_rates": ("sensor_msgs/JointState", "dynamics_node/constraint_effort_rate")}
    demo = RobotDemo(name, f"urdf/{urdf or name}.urdf", f"urdf/{robot_file or name}.robot.yaml", player, checks, topics=topics,
                     simulate=simulate, **options)
    return demo


def _legs(*waves: tuple[str, float, int, float]) -> dict[str, tuple[float, int, float]]:
    """Return the waves of both legs; those of the right leg are delayed by half a period."""
    return {f"{side}_{name}": (size, k, phase + (0.0 if side == "left" else k * np.pi))
            for name, size, k, phase in waves for side in ("left", "right")}


GANTRY = {0: (0.02, 1, 0.4), 1: (0.02, 1, 1.0), 2: (0.03, 2, 0.0), 3: (0.03, 1, 2.0), 4: (0.05, 2, 0.5), 5: (0.06, 1, 0.0)}
SWELL = {0: (0.3, 1, 0.0), 1: (0.2, 1, 0.7), 2: (0.4, 2, 1.1), 3: (0.12, 2, 0.2), 4: (0.08, 3, 0.9), 5: (0.05, 1, 0.4)}
SWAY = {0: (0.03, 1, 0.0), 1: (0.03, 2, 0.5), 2: (0.03, 1, 1.0), 3: (0.06, 2, 0.0), 4: (0.06, 1, 0.7), 5: (0.08, 1, 1.6)}
FEET = {f"{leg}_shank": (0.0, 0.0, -0.33) for leg in ("LF", "RF", "LH", "RH")}
STANCE = {f"{leg}_{joint}": value for leg, sign in (("LF", 1.0), ("RF", 1.0), ("LH", -1.0), ("RH", -1.0))
          for joint, value in (("HFE", 0.6 * sign), ("KFE", -1.2 * sign))}
TROT = {f"{leg}_{joint}": (size, k, phase + (0.0 if leg in ("LF", "RH") else np.pi))
        for leg in ("LF", "RF", "LH", "RH") for joint, size, k, phase in (("HAA", 0.08, 2, 0.3), ("HFE", 0.3, 1, 0.0),
                                                                          ("KFE", 0.35, 1, 0.9))}


def _slides(count: int, size: float) -> dict[str, tuple[float, int, float]]:
    """Return the waves of the legs of platforms in series; their phase increases around the circle of each level."""
    return {f"slide{level}{leg}": (size / level**0.5, 1 + level % 2, 1.1 * level + leg * np.pi / 3.0)
            for level in range(1, count + 1) for leg in range(1, 7)}


COMBINATIONS = (
    _demo("biped", CombinationMotion(
        "a biped that hangs on a gantry and walks in the air", 3.0,
        _legs(("hip_roll", 0.08, 1, 0.2), ("hip_yaw", 0.06, 1, 1.2), ("hip_pitch", 0.25, 1, 0.0), ("knee_joint", 0.2, 1, 1.4),
              ("toe", 0.25, 2, 0.5)), {}, GANTRY, {}), picture_times=(0.0, 1.5), view=(12.0, -60.0)),
    _demo("ship_arm", CombinationMotion(
        "an arm on a ship in a swell", 6.0,
        {"yaw": (0.5, 1, 0.0), "shoulder": (0.4, 2, 0.6), "elbow": (0.4, 2, 1.9), "wrist_roll": (0.5, 3, 0.2),
         "wrist_pitch": (0.5, 2, 1.0), "tool_roll": (0.6, 3, 0.0)}, {"shoulder": 0.3, "elbow": 0.6}, SWELL, {}),
          constrained=False, picture_times=(0.0, 1.2), view=(18.0, -60.0)),
    _demo("wheeled_arm", CombinationMotion(
        "a vehicle with an arm that winds back and forth", 6.0,
        {"left_wheel_joint": (4.0, 1, 0.0), "right_wheel_joint": (4.0, 1, 0.5), "turret_joint": (0.6, 2, 0.0),
         "shoulder": (0.4, 2, 0.8), "elbow": (0.5, 3, 0.1), "wrist": (0.5, 3, 1.3)}, {"shoulder": 0.3, "elbow": 0.4}, {}, {}),
          moves=True, parameters={"base.motion_source": "free"}, picture_times=(0.0, 1.5), view=(18.0, -60.0)),
    _demo("quadruped_stance", CombinationMotion(
        "a quadruped that stands on four feet and sways", 4.0, {}, STANCE, SWAY, FEET),
          robot_file="quadruped", urdf="quadruped", picture_times=(0.0, 2.0), view=(15.0, -60.0)),
    _demo("ankles", CombinationMotion(
        "a humanoid's legs that squat and roll on their feet", 3.0,
        _legs(("hip_pitch", 0.25, 1, 0.0), ("knee", 0.3, 1, 2.6), ("inner_motor", 0.25, 2, 0.5),
              ("outer_motor", 0.25, 1, 1.7)),
        {f"{side}_{name}": value for side in ("left", "right") for name, value in (("hip_pitch", -0.3), ("knee", 0.6))},
        SWAY, {}), picture_times=(0.0, 1.5), view=(12.0, -120.0)),
    _demo("elastic_quadruped", CombinationMotion(
        "a quadruped with elastic joints that trots in the air", 3.0, TROT, STANCE, GANTRY, {}),
          urdf="quadruped", constrained=False, picture_times=(0.0, 1.5), view=(15.0, -60.0)),
    _demo("crane", CombinationMotion(
        "a crane whose boom bends", 6.0, {"turn": (0.8, 1, 0.0), "lift": (0.3, 2, 0.4), "wrist": (0.5, 2, 1.3)},
        {"lift": -0.3}, {}, {}), constrained=False, picture_times=(0.0, 1.5), view=(18.0, -60.0)),
    _demo("eel", CombinationMotion(
        "an eel that swims", 1.6, {f"joint{k}": (0.10 + 0.035 * k, 1, -0.7 * k) for k in range(1, 10)}, {}, {}, {}),
          moves=True, constrained=False, parameters={"base.motion_source": "free"}, picture_times=(0.0, 0.4, 0.8),
          view=(60.0, -90.0)),
    *(_demo(f"{name}_platforms", CombinationMotion(f"{name} Gough-Stewart platforms in series that sway", 4.0,
                                                   _slides(count, 0.02), {}, {}, {}),
            rate=rate, picture_times=(0.0, 1.0, 2.0), view=(12.0, -60.0))
      for name, count, rate in (("two", 2, 500.0), ("four", 4, 250.0))),
)

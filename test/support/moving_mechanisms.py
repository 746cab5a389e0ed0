"""Hybrid, rolling, bending and swimming machines in motion, for dynamics_node; torques by Pinocchio.

Samples are independent states, as in moving_combinations.py; rates are differences of sixth order along the motion that the
oracle's equations continue from there.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import yaml

import rnea_ros
from rnea_ros import BaseState, PlatformMotion
from support.beam_oracle import ArmOracle
from support.constrained_motion import ConstrainedMotion, RandomMachine, least
from support.moving_robots import URDF, MovingRobot, Sines
from support.oracles import difference
from support.random_combinations import arm_with_tripod, parallel, parallel_leg
from support.rolling_machines import STEPS, WEIGHTS, VehicleOracle, random_vehicle
from support.swimming import EelOracle, FreeMotion, eel

H = 5e-3  # s, step of differences


class MovingMechanism(MovingRobot):
    """Robot on a fixed base whose loops decide all other joints: its motors follow sines about the start.

    by_platforms: the node is given the motion of the platforms, as the oracle has it, instead of that of the motors
    """

    def __init__(self, made: RandomMachine, seed: int = 0, size: float = 0.1, by_platforms: bool = False):
        self.urdf, self.content = made.urdf, {key: value for key, value in made.file.items() if key != "version"}
        self.robot = rnea_ros.load(made.urdf, made.file)
        self.joints = self.robot.joint_names
        self._truth = ConstrainedMotion(made, made.file["loops"]["active"], seed)
        self._truth.amplitude *= size
        self._columns = [self._truth.given.index(self._truth.number[name]) for name in self.joints]
        self._motors = [self._truth.motors.index(name) for name in self.joints]
        self._last, self._states = self._truth.X0[:self._truth.model.nq], {}
        self.parameters = {"platform.source": "state"} if by_platforms else {}

    def motion(self, t: float) -> list[np.ndarray]:
        truth = self._truth
        found = [part[self._columns] for part in truth.driven(t)[:4]]
        found[0] = found[0] + truth.start[[truth.q_index[name] for name in self.joints]]
        return found

    def state(self, t: float) -> tuple[np.ndarray, ...]:
        """Configuration, velocity, acceleration of all coordinates and efforts of the motors."""
        t = round(t, 9)  # so that differences share their instants
        if t not in self._states:
            truth, N = self._truth, len(self._truth.names)
            q = truth.configuration(t, np.concatenate((self._last, np.zeros(N))))[0]
            q, u = truth.closed(q), np.zeros(N)
            u[truth.given] = truth.driven(t)[1]
            J, _ = truth.constraints(q, truth.F @ u)
            u[truth.follows] = least(J[:, truth.follows], -J @ u)
            self._last = q
            self._states[t] = truth.equations(t, np.concatenate((q, u)))
        return self._states[t]

    def torque(self, t: float) -> np.ndarray:
        return self.state(t)[3][self._motors]

    def rate(self, t: float) -> np.ndarray:
        return difference(lambda s: self.torque(t + s), h=H)

    def platforms(self, t: float) -> dict[str, PlatformMotion]:
        """Motion of each platform, by its link."""
        truth, model = self._truth, self._truth.model

        def twists(s: float) -> np.ndarray:
            """Return velocity and acceleration of all platforms along the root's axes, (platforms, 2, 6)."""
            q, u, a, _ = self.state(s)
            found = []
            for i, j in truth.free_joints:
                (k,) = (k for k in range(1, model.njoints) if model.joints[k].idx_q == i)
                R = model.jointPlacements[k].rotation @ pin.Quaternion(q[i + 3:i + 7]).toRotationMatrix()
                v, w, dv, dw = R @ u[j:j + 3], R @ u[j + 3:j + 6], R @ a[j:j + 3], R @ a[j + 3:j + 6]
                found.append([np.r_[v, w], np.r_[dv + np.cross(w, v), dw]])
            return np.array(found)

        here = twists(t)
        jerks = np.tensordot(WEIGHTS, np.array([twists(t + k * H)[:, 1] for k in STEPS]), axes=1) / H
        found = {}
        for number, (i, _) in enumerate(truth.free_joints):
            (k,) = (k for k in range(1, model.njoints) if model.joints[k].idx_q == i)
            pose = model.jointPlacements[k] * pin.XYZQUATToSE3(self.state(t)[0][i:i + 7])
            link = next(one for one in self.robot.platforms if model.frames[model.getFrameId(one)].parentJoint == k)
            found[link] = PlatformMotion(pose.translation, pose.rotation, *here[number], jerks[number])
        return found


def series(name: str, seed: int, by_platforms: bool = False) -> MovingMechanism:
    """Platforms in series of urdf/."""
    file = yaml.safe_load((URDF / f"{name}.robot.yaml").read_text())
    urdf = (URDF / f"{name}.urdf").read_text()
    return MovingMechanism(RandomMachine(urdf, file, {}), seed, 0.1, by_platforms)


class MovingGround(MovingRobot):
    """Vehicle of rolling_machines.py; the pose of its base is given, its velocity follows from the wheels."""

    def __init__(self, kind: str, seed: int = 0):
        self.parameters = {"base.motion_source": "free"}
        self.urdf, file = random_vehicle(kind, seed)
        self.content, self._truth = file, VehicleOracle(self.urdf, file)
        self.joints = rnea_ros.load(self.urdf, file).joint_names
        self._order = [self._truth.names.index(name) for name in self.joints]
        self.base = self._base
        self._motions: dict[float, np.ndarray] = {}

    def motion(self, t: float) -> list[np.ndarray]:
        when = self._time(t)
        if when not in self._motions:
            self._motions[when] = self._truth.motion(when)
        return list(self._motions[when][:, self._order])

    def torque(self, t: float) -> np.ndarray:
        return self._truth.efforts(self._time(t))[self._order]

    def rate(self, t: float) -> np.ndarray:
        return self._truth.sample(self._time(t))[1][self._order]

    def _time(self, t: float) -> float:
        """Return one of 301 instants of the vehicle's motion: a ball's hinges are singular a quarter turn from its start."""
        return round(0.3 + 0.15 * np.sin(t), 3)

    @staticmethod
    def _base(t: float) -> BaseState:
        turn = (0.0, 0.0, np.sin(0.3 * t), np.cos(0.3 * t))
        return BaseState((0.3 * np.sin(t), 0.2, 0.0), turn, (1.0, -0.5, 0.2, 0.1, -0.2, 0.3), np.zeros(6), np.zeros(6))


class MovingArm(MovingRobot):
    """Arm with flexible links; joints and modes are where sines say, accelerations of the modes follow."""

    def __init__(self, seed: int = 0):
        self._truth = ArmOracle(seed)
        self.urdf, self.content = self._truth.urdf, {"flexible_links": self._truth.content}
        self.joints = self._truth.robot.joint_names
        self._swing = Sines(np.zeros(len(self.joints)), np.where(self._truth.driven, 0.8, 0.01), seed)

    def motion(self, t: float) -> list[np.ndarray]:
        return self._swing(t)

    def torque(self, t: float) -> np.ndarray:
        return self._truth.torque(*self._swing(t)[:3])

    def rate(self, t: float) -> np.ndarray:
        return self._truth.rate(lambda s: self._swing(t + s))


class MovingEel(MovingRobot):
    """Eel whose head is free: its acceleration follows."""

    def __init__(self, seed: int = 0):
        self.parameters = {"base.motion_source": "free"}
        self.urdf, file = eel("floating", seed=seed)
        self.content, truth = file, EelOracle(self.urdf, file)
        self._free = FreeMotion(truth, seed + 1)
        self.joints = rnea_ros.load(self.urdf, file).joint_names
        self._order = [list(truth.model.names).index(name) - 2 for name in self.joints]
        self._head = Sines(np.zeros(12), 0.3, seed + 2)
        self.base = self._base

    def motion(self, t: float) -> list[np.ndarray]:
        return [self._free.joints(t, k)[self._order] for k in range(4)]

    def _base(self, t: float) -> BaseState:
        x = self._head(t, 0)[0]
        turn = pin.Quaternion(pin.rpy.rpyToMatrix(x[3:6])).coeffs()
        return BaseState(x[:3], turn, x[6:], np.zeros(6), np.zeros(6))

    def _state(self, t: float) -> np.ndarray:
        base = self._base(t)
        return np.r_[base.position, base.quaternion, base.velocity]

    def torque(self, t: float) -> np.ndarray:
        return self._free.efforts(t, self._state(t), t)[self._order]

    def rate(self, t: float) -> np.ndarray:
        h, state = 5e-4, self._state(t)
        return (WEIGHTS @ np.array([self._free.efforts(t + k * h, state, t) for k in STEPS]) / h)[self._order]


MECHANISMS = {
    "two platforms in series": lambda seed: series("two_platforms", seed),
    "two platforms in series, their motions given": lambda seed: series("two_platforms", seed, True),
    "four platforms in series, their motions given": lambda seed: series("four_platforms", seed, True),
    "tripod on an arm": lambda seed: MovingMechanism(parallel(seed, arm_with_tripod), seed, 0.3),
    "tripod on an arm, its motion given": lambda seed: MovingMechanism(parallel(seed, arm_with_tripod), seed, 0.3, True),
    "leg with parallel knee and ankle": lambda seed: MovingMechanism(parallel(seed, parallel_leg, base="fixed"), seed, 0.5),
    "differential drive and turret": lambda seed: MovingGround("differential", seed),
    "ball with two motors, disc and turret": lambda seed: MovingGround("ball", seed),
    "four mecanum wheels and turret": lambda seed: MovingGround("mecanum", seed),
    "four steered wheels and turret": lambda seed: MovingGround("four steered wheels", seed),
    "arm with flexible links": MovingArm,
    "eel": MovingEel,
}

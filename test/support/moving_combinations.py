"""Moving combinations for tests of dynamics_node: inputs at any time; torques and rates by Pinocchio with multipliers.

Samples are independent states: coordinates whose state is an input follow sines, and the equations of motion are integrated
a few steps to both sides of it for the rates.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import yaml

import rnea_ros
from rnea_ros import BaseState
from support.combined_machines import NODES, WEIGHTS, Machine, MachineOracle, machine
from support.ground_machines import STEP, TripodOracle, VehicleOracle, tripod, vehicle
from support.machines import ROWS, constraint, solve
from support.moving_robots import URDF, MovingRobot, Sines


class StreamOracle(MachineOracle):
    """Oracle at any time: `at` moves the origin of time and the state."""

    def __init__(self, of: Machine, seed: int = 0, size: float = 1.0):
        self.shift = 0.0
        super().__init__(of, seed)
        self.amplitude *= size
        self._sway = Sines(self.start, 0.2 * size**2, seed + 1)
        self._pose = Sines(np.zeros(6), 0.3, seed + 2)
        self._closed = self.start.copy()

    def equations(self, t, X):
        return super().equations(t + self.shift, X)

    def at(self, t: float) -> StreamOracle:
        """Set the state of time t."""
        self.shift = t
        q, v = self._sway(t, 1)
        given, derivatives = self.given, self.driven(t)
        joints = [k for k in given if not (self.free and k < 6)]
        q[joints] = self.start[joints] + derivatives[0][:len(joints)]
        pose = np.concatenate((np.zeros(3), [0.0, 0.0, 0.0, 1.0]))
        if self.free:
            x, rates = self._pose(t, 1)
            pose = np.concatenate((x[:3], pin.Quaternion(pin.rpy.rpyToMatrix(x[3:])).coeffs()))
            v[:6] = rates
        follows = [self.number[name] for name in self.machine.follows]
        if follows:
            q[follows] = self._closed[follows]
            self._close(q, pose, follows)
            self._closed = q.copy()
        v[given] = derivatives[1]
        theirs = self._theirs(q, pose)
        if follows:
            J = self._jacobian(theirs)
            v[follows] = 0.0
            v[follows] = solve(J[:, follows], -J @ v)
        self.X0 = np.concatenate((theirs, v))
        return self

    def _theirs(self, q, pose):
        return np.concatenate((pose, q[6:])) if self.free else q

    def _jacobian(self, q):
        data = self.body.state(q, np.zeros(self.body.model.nv))
        rows = [constraint(kind, *(self.body.motion(data, end) for end in ends))[0] for kind, *ends in self.cuts]
        return np.vstack([sum(row) for row in rows])

    def _close(self, q, pose, follows):
        """Close the loops by Newton's method on the distances of the cut joints, which are all translations."""
        for _ in range(30):
            theirs = self._theirs(q, pose)
            data = self.body.state(theirs, np.zeros(self.body.model.nv))
            gaps = []
            for kind, first, second in self.cuts:
                (R, p, *_), (_, end, *_) = (self.body.motion(data, one) for one in (first, second))
                gaps.append((R.T @ (end - p))[list(ROWS[kind])])
            gap = np.concatenate(gaps)
            if np.abs(gap).max() < 1e-14:
                return
            q[follows] -= solve(self._jacobian(theirs)[:, follows], gap)
        assert np.abs(gap).max() < 1e-12, gap

    def answer(self):
        """Return state, accelerations and efforts, and motor efforts with three derivatives."""
        found = [self.equations(k * self.step, X) for k, X in zip(NODES, self.along(), strict=True)]
        efforts = np.array([each[3] for each in found])
        rates = [weights @ efforts / self.step**k for k, weights in enumerate(WEIGHTS, start=1)]
        return found[5], efforts[5], rates


class MovingCombination(MovingRobot):
    """Random machine. measured: whether joint states contain the motors of elastic joints."""

    def __init__(self, of: Machine, seed: int = 0, measured: bool = False, size: float = 1.0, step: float | None = None):
        """Set up the machine. size: amplitude relative to the usual motion; step: of the differences [s]."""
        self._truth, self.machine, self.urdf = StreamOracle(of, seed, size), of, of.urdf
        self._truth.step = step or self._truth.step
        content: dict[str, Any] = {key: value for key, value in of.file.items() if key != "version"}
        if measured:
            content["elastic_joints"] = {name: {**entry, "motor_joint": f"{name}_motor"}
                                         for name, entry in content["elastic_joints"].items()}
        self.content, self.measured = content, measured
        self.robot = rnea_ros.load(of.urdf, of.file)
        self.joints, self.numbers = self.robot.joint_names, self._truth.number
        self._samples: dict[float, Any] = {}
        self._states: dict[float, Any] = {}
        if of.base != "fixed":
            self.base = self._base
            self.parameters = {"base.motion_source": "free"} if of.base == "floating" else {}

    def state(self, t: float):
        """Return positions, velocities, accelerations and efforts at time t."""
        if t not in self._states:
            truth = self._truth.at(t)
            self._states[t] = truth.equations(0.0, truth.X0)
        return self._states[t]

    def sample(self, t: float):
        """Return ((q, v, a, efforts), link-side motor efforts, their three derivatives) at time t."""
        if t not in self._samples:
            self._samples[t] = self._truth.at(t).answer()
        return self._samples[t]

    def motion(self, t):
        truth, (q, v, *_) = self._truth, self.state(t)
        offset = truth.body.model.nq - truth.body.model.nv
        orders = 4 if self.measured else self.robot.order + 1
        found, derivatives = np.zeros((orders, self.robot.n)), truth.driven(t)
        for column, name in enumerate(self.joints):
            k = truth.number[name]
            found[:2, column] = q[k + offset], v[k]
            if k in truth.given:
                found[2:, column] = [derivatives[order][truth.given.index(k)] for order in range(2, orders)]
        return list(found)

    def _base(self, t):
        truth, (q, v, *_) = self._truth, self.state(t)
        state = BaseState(q[:3], q[3:7] / np.linalg.norm(q[3:7]), v[:6])
        if self.machine.base == "floating":
            return state.with_motion(np.zeros(6), np.zeros(6))
        return state.moved_by(np.array([derivative[-6:] for derivative in truth.driven(t)[1:4]]))

    def _motor(self, name, t):
        """Return the motion up to the jerk of the motor of an elastic joint, from the deflection by the effort."""
        truth, (_, efforts, rates) = self._truth, self.sample(t)
        k = truth.given.index(truth.number[name])
        stiffness = self.machine.file["elastic_joints"][name]["stiffness"]
        joint = [part[k] for part in truth.driven(t)[:4]]
        joint[0] += truth.start[truth.number[name]]
        return [x + one[k] / stiffness for x, one in zip(joint, (efforts, *rates))]

    def beside(self, t):
        return {f"{name}_motor": self._motor(name, t) for name in self.machine.elastic} if self.measured else None

    def both(self, t: float, rates: bool = True) -> np.ndarray:
        """Return joint torques and rates (2, n); rates are zero if they are not requested."""
        if rates or self.machine.elastic:
            return self._both(t, *self.sample(t))
        state = self.state(t)
        return self._both(t, state, state[3], np.zeros((1, len(state[3]))))

    def _both(self, t: float, state: Any, efforts: Any, rates: Any) -> np.ndarray:
        truth, (q, v, a, _) = self._truth, state
        offset, found = truth.body.model.nq - truth.body.model.nv, np.zeros((2, self.robot.n))
        for column, name in enumerate(self.joints):
            k = truth.number[name]
            if k in truth.motors:
                found[:, column] = [part[truth.motors.index(k)] for part in (efforts, rates[0])]
            elif name in self.machine.file.get("springs", {}):
                spring = self.machine.file["springs"][name]
                stretch = q[k + offset] - spring.get("rest", 0.0)
                found[:, column] = (-spring["stiffness"] * stretch - spring["damping"] * v[k],
                                    -spring["stiffness"] * v[k] - spring["damping"] * a[k])
            if name in self.machine.elastic:
                drive = self.machine.file["drives"][name]
                inertia, motor = drive["rotor_inertia"] * drive["gear_ratio"]**2, self._motor(name, t)
                found[:, column] += inertia * motor[2], inertia * motor[3]
        return found

    def torque(self, t):
        return self.both(t, rates=False)[0]

    def rate(self, t):
        return self.both(t)[1]


def biped(seed: int = 0) -> MovingCombination:
    """Return the biped of urdf/ with 24 joints, four loops and four springs on a moving gantry."""
    file = yaml.safe_load((URDF / "biped.robot.yaml").read_text())
    urdf = (URDF / "biped.urdf").read_text()
    joints = [element.get("name") for element in ElementTree.fromstring(urdf).findall("joint")]
    active, state = file["loops"]["active"], list(file["springs"])
    follows = [name for name in joints if name not in active and name not in state]
    made = Machine(urdf, file, dict.fromkeys(joints, 0.0), active, state, follows, [], file["base"],
                   file["loops"]["cut_joints"])
    return MovingCombination(made, seed, size=0.3, step=2e-4)  # natural frequencies of the springs are some hundred rad/s


class MovingTripod(MovingRobot):
    """Body that sways on three standing legs: minimum-norm torques of nine motors."""

    def __init__(self, seed: int = 0):
        self.urdf, file, pose = tripod(seed)
        self._truth = TripodOracle(self.urdf, file, pose, seed)
        self.content = {key: value for key, value in file.items() if key != "version"}
        self.joints = rnea_ros.load(self.urdf, file).joint_names
        self._order = [self._truth.names.index(name) for name in self.joints]
        self._columns = [self._truth.body.number[name] for name in self.joints]
        self.base = self._base

    def motion(self, t):
        """Return the motion of the legs; accelerations and jerks are not used, since they depend on the body."""
        q, v, *_ = self._truth.at(t)
        return [q[[k + 1 for k in self._columns]], v[self._columns], *np.zeros((2, len(self.joints)))]

    def _base(self, t):
        return self._truth.base(t)[1]

    def torque(self, t):
        return self._truth.at(t)[3][self._order]

    def rate(self, t):
        return WEIGHTS[0] @ np.array([self.torque(t + k * STEP) for k in NODES]) / STEP


class MovingVehicle(MovingRobot):
    """Differential drive with a castor and an arm on a level floor."""

    def __init__(self, seed: int = 0):
        self.urdf, file = vehicle(seed)
        self._truth = VehicleOracle(self.urdf, seed)
        self.content = {key: value for key, value in file.items() if key != "version"}
        self.joints = rnea_ros.load(self.urdf, file).joint_names
        self._order = [self._truth.names.index(name) for name in self.joints]
        self.base, self.parameters = self._base, {"base.motion_source": "free"}

    def motion(self, t):
        return [self._truth.joints(t, k)[self._order] for k in range(4)]

    def _base(self, t):
        """Return the base motion; the velocity is not used, since it depends on the wheels."""
        turn = (0.0, 0.0, np.sin(0.3 * t), np.cos(0.3 * t))
        return BaseState((0.3 * np.sin(t), 0.2, 0.0), turn, (1.0, -0.5, 0.2, 0.1, -0.2, 0.3), np.zeros(6), np.zeros(6))

    def torque(self, t):
        return self._truth.efforts(t)[self._order]

    def rate(self, t):
        return WEIGHTS[0] @ np.array([self.torque(t + k * STEP) for k in NODES]) / STEP


def combination(name: str, seed: int = 0) -> MovingRobot:
    """Return one of COMBINATIONS."""
    return COMBINATIONS[name](seed)


COMBINATIONS = {
    "free base, two loops, springs": lambda seed: MovingCombination(
        machine(seed, joints=10, base="floating", loops=2, springs=2), seed),
    "elastic joints on a carried base, motors measured": lambda seed: MovingCombination(
        machine(seed, joints=5, base="prescribed", elastic=2), seed, measured=True),
    "wheels and arm": MovingVehicle,
    "standing on three legs": MovingTripod,
    "two loops and a spring on a carried base": lambda seed: MovingCombination(
        machine(seed, joints=10, base="prescribed", loops=2, springs=1), seed),
    "loop and spring": lambda seed: MovingCombination(machine(seed, joints=7, loops=1, springs=1), seed),
    "elastic joint and loop": lambda seed: MovingCombination(machine(seed, joints=6, loops=1, elastic=1), seed),
    "biped": biped,
}

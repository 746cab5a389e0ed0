"""Random machines that combine bases, loops, springs, passive and elastic joints; torques by Pinocchio with Lagrange
multipliers.

The equations of motion M a + h = S tau + J^T lambda and J a + drift = 0 are built from Pinocchio's terms and integrated in
time (DOP853); torque rates are differences of tenth order along that motion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pinocchio as pin
from scipy.integrate import DOP853

import rnea_ros
from rnea_ros import BaseState
from support.machines import Body, constraint, pointing, solve, text

NODES = np.arange(-5, 6)
# Weights of the first, second and third derivative by values at NODES, exact for polynomials of degree 10.
WEIGHTS = [np.linalg.solve(np.vander(NODES, increasing=True).T.astype(float), np.eye(11)[k] * factor)
           for k, factor in ((1, 1.0), (2, 2.0), (3, 6.0))]


@dataclass
class Machine:
    """URDF text, content of its robot file, positions at which its loops are closed, and the role of each joint."""

    urdf: str
    file: dict
    q: dict[str, float]
    given: list[str]
    state: list[str]
    follows: list[str]
    elastic: list[str]
    base: str
    cuts: dict = field(default_factory=dict)


def link(rng, name: str) -> str:
    V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    a, b, c = rng.uniform(0.01, 0.05, 3)
    I = V @ np.diag([a + b, b + c, c + a]) @ V.T
    entries = " ".join(f'i{"xyz"[i]}{"xyz"[j]}="{float(I[i, j])!r}"' for i in range(3) for j in range(i, 3))
    mass = float(rng.uniform(0.5, 2.0))
    return (f'<link name="{name}"><inertial><origin xyz="{text(0.1 * rng.normal(size=3))}"/><mass value="{mass!r}"/>'
            f'<inertia {entries}/></inertial></link>')


def machine(seed: int, joints: int = 6, base: str = "fixed", loops: int = 0, springs: int = 0, passive: int = 0,
            elastic: int = 0, redundant: int = 0, prismatic: float = 0.2, types=("spherical", "point_on_axis")) -> Machine:
    """Return a random tree; `loops` cut joints join links of it, some joints follow; `redundant` ones of these have motors."""
    rng = np.random.default_rng(seed)
    names, parents = [f"j{k}" for k in range(joints)], [int(rng.integers(max(0, k - 2), k + 1)) for k in range(joints)]
    body = link(rng, "l0")
    for k, (name, parent) in enumerate(zip(names, parents, strict=True)):
        kind = "prismatic" if rng.random() < prismatic else "revolute"
        body += link(rng, f"l{k + 1}")
        body += (f'<joint name="{name}" type="{kind}"><parent link="l{parent}"/><child link="l{k + 1}"/>'
                 f'<origin xyz="{text(0.3 * rng.normal(size=3))}" rpy="{text(rng.normal(size=3))}"/>'
                 f'<axis xyz="{text(rng.normal(size=3))}"/>'
                 '<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>')
    urdf = f'<robot name="machine{seed}">{body}</robot>'
    q = dict(zip(names, rng.uniform(-1.0, 1.0, joints).tolist(), strict=True))
    cuts, follows = _loops(rng, urdf, names, q, loops, types)
    others = [name for name in names if name not in follows]
    rng.shuffle(others)
    sprung, loose, driven = others[:springs], others[springs:springs + passive], others[springs + passive:]
    behind = driven[:elastic]
    given = [name for name in names if name in driven]
    file: dict = {"version": 1, "base": base}
    if sprung:
        file["springs"] = {name: {"stiffness": float(rng.uniform(20.0, 60.0)), "rest": float(q[name] + 0.2 * rng.normal()),
                                  "damping": float(rng.uniform(0.0, 1.0))} for name in sprung}
    if loose:
        file["passive"] = loose
    if behind:
        file["elastic_joints"] = {name: {"stiffness": float(rng.uniform(80.0, 200.0))} for name in behind}
        file["drives"] = {name: {"gear_ratio": 20.0, "rotor_inertia": float(rng.uniform(1e-4, 5e-4))} for name in behind}
    if cuts:
        file["loops"] = {"active": [*given, *follows[:redundant]], "cut_joints": cuts, "start": q}
    if redundant:
        file["actuation_weights"] = {name: float(rng.uniform(0.5, 2.0)) for name in (*given, *follows[:redundant])}
    state = [name for name in names if name in (*sprung, *loose)]
    return Machine(urdf, file, q, given, state, follows, [name for name in names if name in behind], base, cuts)


def _loops(rng, urdf, names, q, count, types):
    """Return random cut joints that are closed at q, and dependent joints chosen for a well-conditioned Jacobian."""
    body, cuts, taken = Body(urdf), {}, []
    order = [body.number[name] for name in names]
    theirs = np.zeros(len(names))
    theirs[order] = [q[name] for name in names]
    data = body.state(theirs, theirs * 0.0)
    for _ in range(400):
        if len(cuts) == count:
            break
        a, b = rng.choice(len(names) + 1, 2, replace=False)
        kind = str(rng.choice(types))
        first = {"link": f"l{a}", "xyz": (0.2 * rng.normal(size=3)).tolist(), "rpy": pointing(rng.normal(size=3))}
        pose = _pose(body, data, first)
        second_link = data.oMf[body.model.getFrameId(f"l{b}")]
        there = second_link.actInv(pose)
        second = {"link": f"l{b}", "xyz": there.translation.tolist(), "rpy": pin.rpy.matrixToRpy(there.rotation).tolist()}
        trial = {**cuts, f"cut{len(cuts)}": {"type": kind, "first": first, "second": second}}
        J = jacobian(Body(urdf), trial, theirs)[:, order]
        free = _independent(J)
        if len(free) == len(J) and len(names) - len(free) >= 2:
            cuts, taken = trial, free
    assert len(cuts) == count, "no loops found"
    return cuts, [name for k, name in enumerate(names) if k in taken]


def _pose(body, data, end):
    link = data.oMf[body.model.getFrameId(end["link"])]
    return link * pin.SE3(pin.rpy.rpyToMatrix(np.array(end["rpy"])), np.array(end["xyz"]))


def _independent(J) -> list[int]:
    """Return as many columns as rows, chosen by pivoting, if they are well conditioned."""
    rest, chosen = J.copy(), []
    for _ in range(len(J)):
        sizes = np.linalg.norm(rest, axis=0)
        k = int(sizes.argmax())
        if sizes[k] < 0.1:
            return []
        chosen.append(k)
        direction = rest[:, k] / sizes[k]
        rest = rest - np.outer(direction, direction @ rest)
    return chosen


def jacobian(body, cuts, q):
    """Return the Jacobian J (m, nv) of the cut joints."""
    ends = [(cut["type"], body.frame(cut["first"]), body.frame(cut["second"])) for cut in cuts.values()]
    data = body.state(q, np.zeros(body.model.nv))
    return np.vstack([sum(constraint(kind, body.motion(data, a), body.motion(data, b))[0]) for kind, a, b in ends])


class MachineOracle:
    """Motion of a machine in time by Pinocchio with multipliers: given joints follow sines, all others the
    equations.
    """

    def __init__(self, of: Machine, seed: int = 0, gravity=(0.0, 0.0, -9.81)):
        self.machine, rng = of, np.random.default_rng(1000 + seed)
        self.free = of.base != "fixed"
        smooth = of.base != "floating" and not of.state  # all given
        self.step = 1e-2 if smooth else 1.5e-3 if of.elastic else 2e-3  # [s], for differences
        self.body = Body(of.urdf, free=self.free)
        self.body.model.gravity.linear = np.array(gravity)
        self.cuts = [(cut["type"], self.body.frame(cut["first"]), self.body.frame(cut["second"])) for cut in of.cuts.values()]
        n, number = self.body.model.nv, self.body.number
        self.number = number
        armature = np.zeros(n)
        for name, drive in of.file.get("drives", {}).items():
            if name not in of.elastic:
                armature[number[name]] = drive.get("rotor_inertia", 0.0) * drive.get("gear_ratio", 1.0)**2
        self.body.model.armature = armature
        self.amplitude, self.frequency = rng.uniform(0.1, 0.4, n), rng.uniform(1.0, 3.0, n)
        self.phase = rng.uniform(0.0, 6.0, n)
        self.given = [number[name] for name in of.given] + (list(range(6)) if of.base == "prescribed" else [])
        self.loose = [k for k in range(n) if k not in self.given]
        self.weights = {number[name]: weight for name, weight in of.file.get("actuation_weights", {}).items()}
        self.motors = [*self.given, *(k for k in self.weights if k not in self.given)]
        start = np.zeros(n)
        for name, value in of.q.items():
            start[number[name]] = value
        self.start, self.turn = start, 0.3 * rng.normal(size=6)
        v = 0.5 * rng.normal(size=n)
        q = self.configuration(0.0, start, np.array([0.2, -0.1, 0.5, 0.0, 0.0, 0.0, 1.0]))
        v[self.given] = self.driven(0.0)[1]
        follows = [number[name] for name in of.follows]
        if follows:
            J = np.vstack([sum(constraint(kind, *(self.body.motion(self.body.state(q, v), end) for end in ends))[0])
                           for kind, *ends in self.cuts])
            v[follows] = 0.0
            v[follows] = solve(J[:, follows], -J @ v)
        self.X0 = np.concatenate((q, v))

    def driven(self, t):
        """Return displacement from the start, velocity, acceleration, ...

        up to order 6 of the given coordinates; a base's are quasi-velocities.
        """
        A, w, phase = (x[self.given] for x in (self.amplitude, self.frequency, self.phase))
        found = [A * w**k * np.sin(w * t + phase + 0.5 * np.pi * k) for k in range(8)]
        return [found[0] - A * np.sin(phase), *found[1:]]

    def configuration(self, t, q, pose):
        """Return Pinocchio's configuration for joint positions."""
        q = q.copy()
        joints = [k for k in self.given if not (self.free and k < 6)]
        q[joints] = self.start[joints] + self.driven(t)[0][:len(joints)]
        return np.concatenate((pose, q[6:])) if self.free else q

    def equations(self, t, X):
        """Return accelerations of all coordinates, efforts of the given ones, and multipliers."""
        model = self.body.model
        q, v = X[:model.nq].copy(), X[model.nq:].copy()
        if self.free:
            q[3:7] /= np.linalg.norm(q[3:7])
        offset = model.nq - model.nv
        joints = [k for k in self.given if not (self.free and k < 6)]
        positions, velocities, accelerations = self.driven(t)[:3]
        q[[k + offset for k in joints]] = self.start[joints] + positions[:len(joints)]
        v[self.given] = velocities
        M, h = self.body.mass_matrix(q), self.body.rnea(q, v, np.zeros(model.nv))
        for name, spring in self.machine.file.get("springs", {}).items():
            k = self.number[name]
            h[k] += spring["stiffness"] * (q[k + offset] - spring.get("rest", 0.0)) + spring["damping"] * v[k]
        data = self.body.state(q, v)
        found = [constraint(kind, *(self.body.motion(data, end) for end in ends)) for kind, *ends in self.cuts]
        J = np.vstack([one + two for (one, two), _ in found]) if found else np.zeros((0, model.nv))
        drift = np.concatenate([one for _, one in found]) if found else np.zeros(0)
        a = np.zeros(model.nv)
        a[self.given] = accelerations
        S = np.eye(model.nv)[:, self.motors]
        A = np.block([[M[:, self.loose], -S, -J.T], [J[:, self.loose], np.zeros((len(J), len(self.motors) + len(J)))]])
        right = np.concatenate((-h - M @ a, -drift - J @ a))
        if self.weights:  # least efforts: stationarity with multipliers for the equations of motion
            W = np.zeros(A.shape[1])
            W[len(self.loose):len(self.loose) + len(self.motors)] = [self.weights.get(k, 0.0) for k in self.motors]
            A = np.block([[np.diag(W), A.T], [A, np.zeros((len(A), len(A)))]])
            right = np.concatenate((np.zeros(len(W)), right))
        found = np.linalg.solve(A, right)
        a[self.loose] = found[:len(self.loose)]
        return q, v, a, found[len(self.loose):len(self.loose) + len(self.motors)]

    def _slope(self, t, X):
        q, v, a, _ = self.equations(t, X)
        qd = np.zeros(len(q))
        if self.free:
            R = pin.Quaternion(q[3:7]).toRotationMatrix()
            qd[:3] = R @ v[:3]
            x, w = q[3:6], v[3:6]
            qd[3:7] = 0.5 * np.concatenate((q[6] * w + np.cross(x, w), [-x @ w]))
            qd[7:] = v[6:]
        else:
            qd = v
        return np.concatenate((qd, a))

    def along(self):
        """Return states at -5 .. 5 steps."""
        found = {0: self.X0}
        for sign in (1, -1):
            X = self.X0
            for k in range(1, 6):
                solver = DOP853(self._slope, sign * (k - 1) * self.step, X, sign * k * self.step, rtol=1e-13, atol=1e-14)
                while solver.status == "running":
                    solver.step()
                found[sign * k] = X = solver.y
        return [found[k] for k in range(-5, 6)]

    def sample(self):
        """Return velocities, accelerations and jerks by Pinocchio at t = 0, and the motor efforts and their rates by
        name.

        The motor of an elastic joint turns by the deflection that the joint's effort needs: theta = q + effort / stiffness.
        """
        found = [self.equations(k * self.step, X) for k, X in zip(NODES, self.along(), strict=True)]
        efforts = np.array([each[3] for each in found])
        rates = [weights @ efforts / self.step**k for k, weights in enumerate(WEIGHTS, start=1)]
        jerk = WEIGHTS[0] @ np.array([each[2] for each in found]) / self.step
        effort, effort_rate = efforts[5].copy(), rates[0].copy()
        for name in self.machine.elastic:
            k, drive = self.given.index(self.number[name]), self.machine.file["drives"][name]
            inertia = drive["rotor_inertia"] * drive["gear_ratio"]**2
            stiffness = self.machine.file["elastic_joints"][name]["stiffness"]
            motion = self.driven(0.0)
            effort[k] += inertia * (motion[2][k] + rates[1][k] / stiffness)
            effort_rate[k] += inertia * (motion[3][k] + rates[2][k] / stiffness)
        return found[5][1], found[5][2], jerk, effort, effort_rate

    def inputs(self, robot):
        """Return the arrays and keywords for torque_and_rate."""
        q, v, _, _ = self.equations(0.0, self.X0)
        offset = self.body.model.nq - self.body.model.nv
        motion = np.zeros((robot.order + 1, robot.n))
        derivatives = self.driven(0.0)
        for column, name in enumerate(robot.joint_names):
            k = self.number[name]
            motion[0, column], motion[1, column] = q[k + offset], v[k]
            if k in self.given:
                motion[2:, column] = [derivatives[order][self.given.index(k)] for order in range(2, robot.order + 1)]
        if not self.free:
            return motion, {}
        base = BaseState(q[:3], q[3:7], v[:6])
        if self.machine.base == "floating":
            return motion, {"base": base}
        V, Vd, Vdd = (derivatives[k][-6:] for k in (1, 2, 3))
        a = base.classical(Vd)
        w, wd = V[3:], Vd[3:]
        linear = Vdd[:3] + np.cross(wd, V[:3]) + np.cross(w, Vd[:3]) + np.cross(w, a[:3])
        if robot.order > 3:
            return motion, {"base": base.with_motion(rates=np.array([derivatives[k][-6:] for k in range(2, robot.order + 1)]))}
        return motion, {"base": base.with_motion(a, np.concatenate((linear, Vdd[3:] + np.cross(w, wd))))}

    def guess(self, robot):
        """Return positions of all joints of the tree."""
        q = self.equations(0.0, self.X0)[0]
        offset = self.body.model.nq - self.body.model.nv
        return np.array([q[self.number[name] + offset] for name in robot.tree.joint_names])


COMBINATIONS = {
    "free base, loop, springs": {"joints": 8, "base": "floating", "loops": 1, "springs": 2},
    "free base, two loops, spring, passive joint": {"joints": 10, "base": "floating", "loops": 2, "springs": 1, "passive": 1},
    "given base, loop, spring": {"joints": 8, "base": "prescribed", "loops": 1, "springs": 1},
    "given base, spring, passive joint": {"base": "prescribed", "springs": 1, "passive": 1},
    "loop, spring": {"joints": 7, "loops": 1, "springs": 1},
    "passive joint": {"joints": 5, "passive": 1},
    "redundant motors, loop, spring": {"joints": 8, "loops": 1, "redundant": 1, "springs": 1},
    "redundant motors, free base, loop": {"joints": 8, "base": "floating", "loops": 1, "redundant": 2},
    "elastic joint, loop": {"joints": 6, "loops": 1, "elastic": 1},
    "elastic joint, free base, loop, spring": {"joints": 8, "base": "floating", "loops": 1, "elastic": 1, "springs": 1},
    "elastic joint, given base": {"joints": 4, "base": "prescribed", "elastic": 1},
}


@cache
def case(name: str, seed: int):
    """Return robot, oracle, motion and call keywords of a random machine of a combination."""
    made = machine(seed, **COMBINATIONS[name])
    truth, robot = MachineOracle(made, seed), rnea_ros.load(made.urdf, made.file)
    motion, state = truth.inputs(robot)
    return robot, truth, motion, {**state, "guess": truth.guess(robot)}

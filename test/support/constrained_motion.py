"""Motion of a machine computed without rnea_ros from URDF and robot file: Pinocchio or MuJoCo with multipliers, in time.

    M a + h = S tau + J^T lambda,    J a + drift = 0

M, h and the Jacobians of frames come from Pinocchio or MuJoCo. Rotors on links are bodies on separate joints. Given
coordinates follow sines; all others follow from the equations, integrated by DOP853. Derivatives in time are those of the
polynomial through values at Chebyshev points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from numpy.polynomial import chebyshev
from scipy.integrate import DOP853

from rnea_ros import BaseState, InputError
from support.machines import ROWS, Body, constraint, cross
from support.rotor_trees import numbers, rotor

BASE = ("base x", "base y", "base z", "base rx", "base ry", "base rz")
NODES = 21  # Chebyshev points; the middle one is the instant of interest
MAX_STEPS = 40  # between two Chebyshev points
TAIL = 1e-13  # size of the last Chebyshev coefficients relative to the largest
UP = np.array([0.0, 0.0, 1.0])


@dataclass
class RandomMachine:
    """URDF text, content of its robot file, and joint positions at which its loops are closed.

    measured: whether the motion of motors behind springs is given too
    """

    urdf: str
    file: dict[str, Any]
    q: dict[str, float]
    measured: bool = False

    @property
    def base(self) -> str:
        return self.file.get("base", "fixed")


def with_rotors(made: RandomMachine) -> str:
    """Return a URDF in which every rotor that the robot file mounts on a link is a body on a revolute joint."""
    extra = ""
    for name, entry in made.file.get("motors", {}).items():
        body = rotor(entry | {"rotor_inertia": made.file["drives"][name]["rotor_inertia"]})
        extra += (f'<link name="rotor of {name}">{body}</link><joint name="rotor joint of {name}" type="revolute">'
                  f'<parent link="{entry["link"]}"/><child link="rotor of {name}"/>'
                  f'<origin xyz="{numbers(entry["position"])}"/><axis xyz="{numbers(entry["axis"])}"/>'
                  '<limit effort="1" velocity="1" lower="-1e9" upper="1e9"/></joint>')
    return made.urdf.replace("</robot>", extra + "</robot>")


class PinocchioBody(Body):
    """Pinocchio's terms, with result buffers that are allocated once."""

    def __init__(self, urdf: str, free: bool, gravity: Any):
        super().__init__(urdf, free)
        self.model.gravity.linear = gravity
        self._data: list[Any] = []
        self._upper = np.triu(np.ones((self.model.nv, self.model.nv), dtype=bool))

    def _memory(self, k: int) -> Any:
        if not self._data or len(self._data[0].oMf) != self.model.nframes:
            self._data = [self.model.createData() for _ in range(2)]
        return self._data[k]

    def state(self, q, v):
        data = self._memory(0)
        pin.forwardKinematics(self.model, data, q, v, np.zeros(self.model.nv))
        pin.computeJointJacobians(self.model, data, q)
        pin.updateFramePlacements(self.model, data)
        return data

    def mass_matrix(self, q):
        M = pin.crba(self.model, self._memory(1), q)
        return np.where(self._upper, M, M.T)

    def rnea(self, q, v, a):
        return pin.rnea(self.model, self._memory(1), q, v, a)


class MujocoBody:
    """MuJoCo's terms in Pinocchio's coordinates, with the interface of machines.Body."""

    def __init__(self, urdf: str, of: Body, free: bool, gravity: Any):
        if free:
            root = urdf.split('<link name="')[1].split('"')[0]
            urdf = urdf.replace("</robot>", '<link name="ground of all"/><joint name="free base" type="floating"><parent '
                                f'link="ground of all"/><child link="{root}"/></joint></robot>')
        self.model = mujoco.MjSpec.from_string(urdf).compile()
        self.model.opt.gravity[:] = gravity
        self.of, self.data = of, mujoco.MjData(self.model)
        nv = of.model.nv
        self.order, self.qpos_indices, self.free = np.zeros(nv, dtype=int), np.zeros(of.model.nq, dtype=int), []
        for k in range(1, of.model.njoints):
            name, joint = of.model.names[k], of.model.joints[k]
            theirs = self.model.joint("free base" if name == "root_joint" else name)
            self.order[joint.idx_v:joint.idx_v + joint.nv] = theirs.dofadr[0] + np.arange(joint.nv)
            self.qpos_indices[joint.idx_q:joint.idx_q + joint.nq] = theirs.qposadr[0] + np.arange(joint.nq)
            if joint.nq == 7:
                self.free.append((joint.idx_q, joint.idx_v, of.model.jointPlacements[k]))
        self._frames: dict[int, tuple[int, Any]] = {}

    def _set(self, q, v):
        """Set the state; return T and T' v with v_mujoco = T v_pinocchio: velocities of free joints are along world axes."""
        theirs, T, bias = q.copy(), np.eye(len(v)), np.zeros(len(v))
        for i, j, placement in self.free:
            pose = placement * pin.XYZQUATToSE3(q[i:i + 7])
            x, y, z, w = pin.SE3ToXYZQUAT(pose)[3:]
            theirs[i:i + 7] = [*pose.translation, w, x, y, z]
            T[j:j + 3, j:j + 3] = pose.rotation
            bias[j:j + 3] = pose.rotation @ cross(v[j + 3:j + 6], v[j:j + 3])
        self.data.qpos[self.qpos_indices] = theirs
        self.data.qvel[self.order] = T @ v
        mujoco.mj_forward(self.model, self.data)
        return T, bias

    def mass_matrix(self, q):
        T, _ = self._set(q, np.zeros(self.of.model.nv))
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return T.T @ M[np.ix_(self.order, self.order)] @ T

    def rnea(self, q, v, a):
        T, bias = self._set(q, v)
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return T.T @ (self.data.qfrc_bias[self.order] + M[np.ix_(self.order, self.order)] @ (T @ a + bias))

    def state(self, q, v):
        T, bias = self._set(q, v)
        return T, bias, v

    def frame(self, end):
        found = self.of.frame(end)
        at = pin.SE3(pin.rpy.rpyToMatrix(np.array(end.get("rpy", [0.0] * 3), dtype=float)),
                     np.array(end.get("xyz", [0.0] * 3), dtype=float))
        body = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, end["link"])
        self._frames[found] = max(body, 0), at
        return found

    def motion(self, state, frame):
        T, bias, v = state
        body, at = self._frames[frame]
        R = self.data.xmat[body].reshape(3, 3)
        point = self.data.xpos[body] + R @ at.translation
        J, rates = np.zeros((2, 6, self.model.nv))
        mujoco.mj_jac(self.model, self.data, J[:3], J[3:], point, body)
        mujoco.mj_jacDot(self.model, self.data, rates[:3], rates[3:], point, body)
        J, rates = J[:, self.order], rates[:, self.order]
        return R @ at.rotation, point, J @ T, J @ T @ v, rates @ T @ v + J @ bias


class ConstrainedMotion:
    """Motion of a machine at and around an instant.

    given : joints whose motion is a sine; the base's too where it is prescribed
    source: t, q, v -> (positions, velocities, accelerations) of the rotors of elastic joints, in turns of the joint; None:
            they are coordinates whose accelerations follow
    """

    def __init__(self, made: RandomMachine, given: Sequence[str], seed: int, source: Callable[..., Any] | None = None):
        self.made, self.source, file = made, source, made.file
        rng = np.random.default_rng([seed, 7])
        self.free = made.base != "fixed"
        self.gravity = np.array(file.get("gravity", (0.0, 0.0, -9.81)))
        self.whole = with_rotors(made)
        self.body: Any = PinocchioBody(self.whole, self.free, self.gravity)
        self.model = self.body.model
        self._name_coordinates()
        self._read_constraints()
        self._roles(given)
        N, names = len(self.names), self.names
        self.amplitude, self.frequency, self.phase = rng.uniform(0.1, 0.4, N), rng.uniform(1.0, 3.0, N), rng.uniform(0, 6, N)
        q = pin.neutral(self.model)
        if self.free:
            turn = pin.exp3(0.5 * rng.normal(size=3)) if not self.wheels else pin.rpy.rpyToMatrix(0.0, 0.0, rng.uniform(-3, 3))
            q[:7] = pin.SE3ToXYZQUAT(pin.SE3(turn, rng.normal(size=3)))
        for name, value in made.q.items():
            q[self.q_index[name]] = value
        self._follow_rotors(q)
        for name in self.elastic_bodies:  # a deflection, where it is a state
            q[self.q_index[f"motor of {name}"]] = self.ratio[name] * (made.q[name] + 0.05 * rng.normal())
        self.start = q.copy()
        q = self.closed(q)
        self._anchors = self._poses_of_contacts(q)
        u = 0.5 * rng.normal(size=N)
        u[self.given] = self.driven(0.0)[1]
        J, _ = self.constraints(q, self.F @ u)
        if len(J):
            u[self.follows] = 0.0
            u[self.follows] = least(J[:, self.follows], -J @ u)
        self.X0 = np.concatenate((q, u))
        assert len(names) == N

    # ------------------------------------------------------------------ coordinates

    def _name_coordinates(self) -> None:
        """Set names of the coordinates, F with v = F u, and indices of positions in Pinocchio's configuration."""
        file, model = self.made.file, self.model
        motors, elastic = file.get("motors", {}), file.get("elastic_joints", {})
        self.ratio = {name: drive.get("gear_ratio", 1.0) for name, drive in file.get("drives", {}).items()}
        self.elastic_bodies = [name for name in elastic if name in motors]
        self.names: list[str] = []
        self.q_index, columns, self.rotors, self.free_joints = {}, [], {}, []
        for k in range(1, model.njoints):
            name, joint = model.names[k], model.joints[k]
            if name.startswith("rotor joint of "):
                self.rotors[name[15:]] = k
                continue
            if joint.nq == 7:
                self.free_joints.append((joint.idx_q, joint.idx_v))
            labels = BASE if name == "root_joint" else [name] if joint.nv == 1 else [f"{name}[{i}]" for i in range(6)]
            self.q_index |= {label: joint.idx_q for label in labels if joint.nv == 1}
            self.names += labels
            columns += [np.eye(model.nv)[joint.idx_v + i] for i in range(joint.nv)]
        for name in self.elastic_bodies:
            self.names.append(f"motor of {name}")
            columns.append(np.zeros(model.nv))
        self.number = {name: k for k, name in enumerate(self.names)}
        self.turns = {f"motor of {name}": self.ratio[name] for name in self.elastic_bodies}  # of rotors, by turns of the joint
        self.F = np.array(columns).T
        for name, k in self.rotors.items():
            joint = model.joints[k]
            label = f"motor of {name}"
            self.q_index[label] = joint.idx_q
            self.F[joint.idx_v, self.number[label if name in self.elastic_bodies else name]] = self.ratio[name]

    def _follow_rotors(self, q) -> None:
        """Turn the rotors of rigid joints with their joints."""
        for name in self.rotors:
            if name not in self.elastic_bodies:
                q[self.q_index[f"motor of {name}"]] = self.ratio[name] * q[self.q_index[name]]

    def _roles(self, given: Sequence[str]) -> None:
        file, number = self.made.file, self.number
        loops, sprung, loose = file.get("loops"), file.get("springs", {}), file.get("passive", ())
        joints = [name for name in self.names if name in self.q_index and not name.startswith("motor of ")]
        actuated = [name for name in joints if (name in loops["active"] if loops else name not in (*sprung, *loose))]
        self.state = [name for name in joints if name in (*sprung, *loose) and name not in actuated]
        motors = [f"motor of {name}" if name in self.elastic_bodies else name for name in actuated]
        if self.made.base == "prescribed" and not self.contacts:
            motors = [*BASE, *motors]
        if self.source or self.made.measured:  # motor effort beyond spring and model, zero where they determine the motion
            motors += self.elastic_bodies
        self.motors = motors
        base = list(range(6)) if self.made.base == "prescribed" else []
        self.behind = [number[f"motor of {name}"] for name in self.elastic_bodies]
        self.given = [*(number[name] for name in given), *(self.behind if self.made.measured else []), *base]
        self.loose = [k for k in range(len(self.names)) if k not in self.given and not (self.source and k in self.behind)]
        waiting = [number[name] for name in self.state] + ([] if self.made.measured else self.behind)
        if self.made.base == "floating" and not self.wheels:
            waiting += list(range(6))
        self.follows = [k for k in self.loose if k not in waiting]
        weights = file.get("actuation_weights")
        carried = [1.0] * (len(motors) - len(actuated))  # the given motion determines the base's wrench
        self.weights = np.array([*carried, *((weights or {}).get(name, 1.0) for name in actuated)]) if (
            weights or self.contacts) else None
        inertia = np.zeros(len(self.names))
        for name, drive in file.get("drives", {}).items():
            if name not in self.rotors and name not in file.get("elastic_joints", {}):
                inertia[number[name]] = drive.get("rotor_inertia", 0.0) * self.ratio[name]**2
        self.armature = np.diag(inertia)

    def driven(self, t: float) -> list[np.ndarray]:
        """Return displacement from the start, velocity, acceleration, ... of the given coordinates."""
        A, w, phase = (x[self.given] for x in (self.amplitude, self.frequency, self.phase))
        found = [A * w**k * np.sin(w * t + phase + 0.5 * np.pi * k) for k in range(9)]
        return [found[0] - A * np.sin(phase), *found[1:]]

    # ------------------------------------------------------------------ constraints

    def _read_constraints(self) -> None:
        file = self.made.file
        self.cuts = [(cut["type"], as_end(cut["first"]), as_end(cut["second"]))
                     for cut in file.get("loops", {}).get("cut_joints", {}).values()]
        self.contacts = [(entry["type"], as_end(entry)) for entry in file.get("ground_contacts", {}).values()]
        self.wheels = [(wheel, {"link": wheel["link"], "xyz": wheel.get("center", [0.0] * 3)})
                       for wheel in file.get("wheels", {}).values()]
        self._frames = self._frames_of(self.body)
        self._anchors: list[Any] = []

    def _frames_of(self, body):
        return ([(kind, body.frame(first), body.frame(second)) for kind, first, second in self.cuts],
                [(kind, body.frame(end)) for kind, end in self.contacts],
                [(wheel, body.frame(end)) for wheel, end in self.wheels])

    def _poses_of_contacts(self, q):
        data = self.body.state(q, np.zeros(self.model.nv))
        return [self.body.motion(data, frame)[:2] for _, frame in self._frames[1]]

    def constraints(self, q, v, body=None, frames=None):
        """Return J (m, N) and drift (m,)."""
        body, (cuts, contacts, wheels) = body or self.body, frames or self._frames
        data = body.state(q, v)
        still = np.zeros((6, self.model.nv)), np.zeros(6), np.zeros(6)
        found = [constraint(kind, body.motion(data, a), body.motion(data, b)) for kind, a, b in cuts]
        found += [constraint(kind, (*anchor, *still), body.motion(data, end))
                  for (kind, end), anchor in zip(contacts, self._anchors, strict=True)]
        rows, drifts = [first + second for (first, second), _ in found], [drift for _, drift in found]
        for wheel, frame in wheels:
            A, drift = rolling(wheel, *body.motion(data, frame))
            rows.append(A)
            drifts.append(drift)
        if not rows:
            return np.zeros((0, len(self.names))), np.zeros(0)
        return np.vstack(rows) @ self.F, np.concatenate(drifts)

    def closed(self, q):
        """Return the configuration with closed loops; dependent joints are found by Newton's method."""
        kinds = self._frames[0]
        if not kinds:
            return q
        for _ in range(30):
            data, gaps = self.body.state(q, np.zeros(self.model.nv)), []
            for kind, first, second in kinds:
                (R1, p1, *_), (R2, p2, *_) = self.body.motion(data, first), self.body.motion(data, second)
                gaps.append(np.concatenate((R1.T @ (p2 - p1), pin.log3(R1.T @ R2)))[list(ROWS[kind])])
            gap = np.concatenate(gaps)
            if np.abs(gap).max() < 1e-15:
                break
            J = self.constraints(q, np.zeros(self.model.nv), frames=(kinds, [], []))[0]
            step = np.zeros(len(self.names))
            followers = [k for k in self.follows if self.made.base == "fixed" or k >= 6]
            step[followers] = least(J[:, followers], -gap)
            q = pin.integrate(self.model, q, self.F @ step)
        assert np.abs(gap).max() < 1e-13, "loops do not close"
        return q

    # ------------------------------------------------------------------ equations

    def configuration(self, t, X):
        """Return configuration and velocity u with the given motion at time t."""
        q, u = X[:self.model.nq].copy(), X[self.model.nq:].copy()
        for i, _ in self.free_joints:
            q[i + 3:i + 7] /= np.linalg.norm(q[i + 3:i + 7])
        moved, velocity = self.driven(t)[:2]
        for k, k_given in enumerate(self.given):
            if (name := self.names[k_given]) in self.q_index:
                q[self.q_index[name]] = self.start[self.q_index[name]] + moved[k] * self.turns.get(name, 1.0)
        u[self.given] = velocity
        self._follow_rotors(q)
        return q, u

    def equations(self, t, X, body=None, frames=None):
        """Return configuration, velocity, acceleration and motor efforts at a state."""
        body = body or self.body
        q, u = self.configuration(t, X)
        a = np.zeros(len(u))
        a[self.given] = self.driven(t)[2]
        if self.source:
            theta, rate, acceleration = self.source(t, q, u)
            for name, value in zip(self.elastic_bodies, theta, strict=True):
                q[self.q_index[f"motor of {name}"]] = self.ratio[name] * value
            u[self.behind], a[self.behind] = rate, acceleration
        v = self.F @ u
        M = self.F.T @ body.mass_matrix(q) @ self.F + self.armature
        h = self.F.T @ body.rnea(q, v, np.zeros(self.model.nv))
        for name, spring in self.made.file.get("springs", {}).items():
            k = self.number[name]
            h[k] += spring["stiffness"] * (q[self.q_index[name]] - spring.get("rest", 0.0)) + spring.get("damping", 0.0) * u[k]
        for name in self.elastic_bodies:
            turn = q[self.q_index[f"motor of {name}"]] / self.ratio[name] - q[self.q_index[name]]
            torque = self.made.file["elastic_joints"][name]["stiffness"] * turn
            h[self.number[name]] -= torque
            h[self.number[f"motor of {name}"]] += torque
        J, drift = self.constraints(q, v, body, frames)
        S = np.eye(len(u))[:, [self.number[name] for name in self.motors]]
        A = np.block([[M[:, self.loose], -S, -J.T], [J[:, self.loose], np.zeros((len(J), len(self.motors) + len(J)))]])
        right = np.concatenate((-h - M @ a, -drift - J @ a))
        free = len(self.loose)
        if self.weights is None:
            found = least(A, right)
        else:  # stationary: multipliers of the equations of motion
            W = np.zeros(A.shape[1])
            W[free:free + len(self.motors)] = self.weights
            found = least(np.block([[np.diag(W), A.T], [A, np.zeros((len(A), len(A)))]]),
                          np.concatenate((np.zeros(len(W)), right)))
        left = np.abs(A @ found[:A.shape[1]] - right).max() / (1.0 + np.abs(right).max())
        assert left < 1e-9, f"no efforts give this motion: {left:.1e} left"
        a[self.loose] = found[:free]
        return q, u, a, found[free:free + len(self.motors)]

    def _slope(self, t, X):
        q, u, a, _ = self.equations(t, X)
        v, qd = self.F @ u, np.zeros(len(q))
        for k in range(1, self.model.njoints):
            joint = self.model.joints[k]
            if joint.nq == 1:
                qd[joint.idx_q] = v[joint.idx_v]
        for i, j in self.free_joints:
            x, w, turn = q[i + 3:i + 6], v[j + 3:j + 6], q[i + 6]
            qd[i:i + 3] = pin.Quaternion(q[i + 3:i + 7]).toRotationMatrix() @ v[j:j + 3]
            qd[i + 3:i + 7] = 0.5 * np.concatenate((turn * w + cross(x, w), [-x @ w]))
        return np.concatenate((qd, a))

    # ------------------------------------------------------------------ results

    def along(self, times):
        """Return states at increasing or decreasing times, from the start."""
        found, X, t = [], self.X0, 0.0
        for end in times:
            solver, steps = DOP853(self._slope, t, X, end, rtol=3e-14, atol=1e-15), 0
            while solver.status == "running":
                solver.step()
                assert (steps := steps + 1) < MAX_STEPS, "the motion is too fast for this interval"
            assert solver.status == "finished", solver.status
            X, t = solver.y, end
            found.append(X)
        return found

    def sample(self):
        """Return times (NODES,) with configurations, velocities, accelerations and motor efforts.

        On the interval, the efforts are a polynomial up to TAIL.
        """
        L, best = min(0.2, 1.0 / np.sqrt(np.abs(self.equations(0.0, self.X0)[2]).max())), None
        while L > 1e-4:
            try:
                found = self._around(L)
            except (AssertionError, np.linalg.LinAlgError, InputError):
                L *= 0.5
                continue
            tail = _tail(found[0], found[4])
            worse = best is not None and tail > 0.5 * best[0] and best[0] < 1e-11  # only rounding errors remain
            if best is None or tail < best[0]:
                best = tail, found
            if tail < TAIL or worse:
                break
            L *= 0.8 if tail < 1e-12 else 0.7
        assert best, "the motion is singular"
        self.half_width, self.tail = best[1][0][-1], best[0]
        return best[1]

    def _around(self, L: float):
        times = L * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)[::-1]
        times[NODES // 2] = 0.0
        before, after = times[:NODES // 2], times[NODES // 2 + 1:]
        states = [*self.along(before[::-1])[::-1], self.X0, *self.along(after)]
        found = [self.equations(t, X) for t, X in zip(times, states, strict=True)]
        return times, *(np.array(part) for part in zip(*found, strict=True))

    def by_mujoco(self):
        """Return motor efforts at the start with MuJoCo's mass matrix, bias and Jacobians."""
        body = MujocoBody(self.whole, self.body, self.free, self.gravity)
        return self.equations(0.0, self.X0, body, self._frames_of(body))[3]

    def base_state(self, q, u) -> BaseState:
        return BaseState(q[:3], q[3:7] / np.linalg.norm(q[3:7]), u[:6])


def _tail(times, values) -> float:
    """Return the size of the last coefficients of the polynomial through values (NODES, ...), relative to the largest."""
    c = np.linalg.solve(chebyshev.chebvander(times / times[-1], len(times) - 1), values)
    return float(np.abs(c[-4:]).max() / np.abs(values).max())


def derivatives(times, values, order: int) -> np.ndarray:
    """Return the derivative at time 0 of the polynomial through values (NODES, ...) at Chebyshev points."""
    L = times[-1]
    V = chebyshev.chebvander(times / L, len(times) - 1)
    slopes = np.array([chebyshev.chebval(0.0, chebyshev.chebder(unit, order)) for unit in np.eye(len(times))])
    weights = np.linalg.solve(V.T, slopes) / L**order
    return np.tensordot(weights, values, axes=1)


def as_end(end: Any) -> dict[str, Any]:
    return {"link": end} if isinstance(end, str) else {key: end[key] for key in ("link", "xyz", "rpy") if key in end}


def least(A, b):
    """Return the minimum-norm solution of A x = b with scaled rows and columns and one refinement."""
    columns = np.linalg.norm(A, axis=0)
    columns[columns == 0.0] = 1.0
    rows = np.linalg.norm(A / columns, axis=1)
    rows[rows == 0.0] = 1.0
    scaled, right = A / columns / rows[:, None], (b.T / rows).T
    if A.shape[0] == A.shape[1]:
        try:
            x = np.linalg.solve(scaled, right)
            x = x + np.linalg.solve(scaled, right - scaled @ x)
        except np.linalg.LinAlgError:
            x = np.full(right.shape, np.inf)
        if np.abs(x).max(initial=0.0) < 1e6 * np.abs(right).max(initial=1e-300):
            return (x.T / columns).T
    U, s, Vt = np.linalg.svd(scaled, full_matrices=False)
    keep = s > 1e-11 * s.max(initial=0.0)
    inverse = (Vt[keep].T / s[keep]) @ U[:, keep].T
    x = inverse @ right
    for _ in range(2):
        x = x + inverse @ (right - scaled @ x)
    return (x.T / columns).T


def rolling(wheel: dict[str, Any], R, p, J, velocity, acceleration):
    """Return rows A (m, nv) and drift of a disc that rolls on a level plane, from the motion of its center in world axes."""
    axis = np.array(wheel["axis"], dtype=float)
    n = R @ (axis / np.linalg.norm(axis))
    w, r = velocity[3:], wheel["radius"]
    n_rate = cross(w, n)
    tilt, tilt_rate = UP @ n, UP @ n_rate
    c = np.sqrt(1.0 - tilt**2)
    c_rate = -tilt * tilt_rate / c
    u, u_rate = UP - n * tilt, -n_rate * tilt - n * tilt_rate
    arm, arm_rate = -r * u / c, -r * (u_rate / c - u * c_rate / c**2)
    along = cross(n, UP) / c
    along_rate = cross(n_rate, UP) / c - along * c_rate / c
    ways = {"along": (along, along_rate), "across": (cross(UP, along), cross(UP, along_rate)),
            "normal": (UP, np.zeros(3))}
    at_point = J[:3] - pin.skew(arm) @ J[3:]
    point = velocity[:3] + cross(w, arm)
    point_rate = acceleration[:3] + cross(acceleration[3:], arm) + cross(w, arm_rate)
    held = [ways[way] for way in wheel.get("holds", ("along", "across"))]
    return np.array([way @ at_point for way, _ in held]), np.array([way @ point_rate + rate @ point for way, rate in held])

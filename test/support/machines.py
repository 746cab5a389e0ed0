"""Machines with loops that can be cut at any joint, and their dynamics by Pinocchio with Lagrange multipliers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pinocchio as pin

# Relative directions that a cut joint holds, in the first frame: three translations, then three rotations.
ROWS = {"revolute": (0, 1, 2, 3, 4), "prismatic": (0, 1, 3, 4, 5), "spherical": (0, 1, 2), "fixed": (0, 1, 2, 3, 4, 5),
        "cylindrical": (0, 1, 3, 4), "planar": (2, 3, 4), "point_on_axis": (0, 1)}


# ---------------------------------------------------------------------- mechanisms


@dataclass
class Mechanism:
    """Bodies and joints in one pose, all in the world's axes; body 'base' is the ground.

    bodies : {name: (mass, centre of mass, inertia about it)}
    joints : {name: (body, body, "revolute" or "prismatic", a point of its axis, direction of its axis)}
    The pose is that of joint positions zero, in which the loops are closed.
    """

    bodies: dict = field(default_factory=dict)
    joints: dict = field(default_factory=dict)

    def cut_at(self, *cuts: str, active: list[str]) -> tuple[str, dict]:
        """Return the URDF of the tree without the cut joints, and the declaration of its loops."""
        parts, points, front = ['<link name="base"/>'], {"base": np.zeros(3)}, ["base"]
        while front:
            parent = front.pop(0)
            for name, (a, b, kind, point, axis) in self.joints.items():
                if name in cuts or parent not in (a, b):
                    continue
                child, along = (b, np.asarray(axis)) if parent == a else (a, -np.asarray(axis))
                if child in points:
                    continue
                points[child] = np.asarray(point)
                front.append(child)
                parts += [self._link(child, points[child]),
                          f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
                          f'<origin xyz="{text(points[child] - points[parent])}"/><axis xyz="{text(along)}"/>'
                          '<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>']
        loops = {}
        for name in cuts:
            a, b, kind, point, axis = self.joints[name]
            ends = [{"link": body, "xyz": (np.asarray(point) - points[body]).tolist(), "rpy": pointing(axis)}
                    for body in (a, b)]
            loops[name] = {"type": kind, "first": ends[0], "second": ends[1]}
        return f'<robot name="mechanism">{"".join(parts)}</robot>', {"loops": {"active": active, "cut_joints": loops}}

    def _link(self, name: str, origin: np.ndarray) -> str:
        m, com, inertia = self.bodies[name]
        tensor = " ".join(f'i{"xyz"[i]}{"xyz"[j]}="{float(inertia[i, j])!r}"' for i in range(3) for j in range(i, 3))
        return (f'<link name="{name}"><inertial><origin xyz="{text(com - origin)}"/><mass value="{m!r}"/><inertia {tensor}/>'
                '</inertial></link>')


def text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def pointing(axis) -> list[float]:
    """Return rpy of a frame with z along the axis: pitch, then yaw."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    return [0.0, float(np.arctan2(np.hypot(x, y), z)), float(np.arctan2(y, x))]


def random_body(rng, where) -> tuple:
    """Return mass, center of mass near `where`, and a physical inertia with all products of inertia."""
    V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    a, b, c = rng.uniform(0.002, 0.02, 3)
    centre = np.asarray(where) + 0.05 * rng.normal(size=3)
    return float(rng.uniform(0.3, 2.0)), centre, V @ np.diag([a + b, b + c, c + a]) @ V.T


def polygon(corners, seed: int = 0, sliders: tuple[int, ...] = ()) -> Mechanism:
    """Return a planar loop in the plane x z with a joint at each corner and the ground between last and first corner.

    Joints j1, j2 ... at the corners, bodies b1, b2 ... between them; those in `sliders` are slides along x.
    """
    rng = np.random.default_rng(seed)
    corners = [np.array([x, 0.0, z]) for x, z in corners]
    names = ["base", *(f"b{k}" for k in range(1, len(corners))), "base"]
    machine = Mechanism()
    for k, (here, after) in enumerate(pairwise(corners), start=1):
        machine.bodies[f"b{k}"] = random_body(rng, 0.5 * (here + after))
    for k, corner in enumerate(corners, start=1):
        kind, axis = ("prismatic", [1.0, 0.0, 0.0]) if k in sliders else ("revolute", [0.0, 1.0, 0.0])
        machine.joints[f"j{k}"] = (names[k - 1], names[k], kind, corner, axis)
    return machine


def bennett(theta1: float, lengths=(0.4, 0.25), twist: float = 0.6, seed: int = 0) -> tuple[Mechanism, float]:
    """Return Bennett's linkage at angle theta1, and K. It has four spatial axes and one freedom, although counting gives none.

    Two opposite links have length a and twist alpha, the others b and beta, with sin(alpha) / a = sin(beta) / b. The angles
    between them obey tan(theta1 / 2) tan(theta2 / 2) = K = sin((beta + alpha) / 2) / sin((beta - alpha) / 2).
    """
    (a, b), alpha = lengths, twist
    beta = np.arcsin(np.sin(alpha) * b / a)
    K = np.sin(0.5 * (beta + alpha)) / np.sin(0.5 * (beta - alpha))
    theta2 = 2.0 * np.arctan(K / np.tan(0.5 * theta1))
    T, axes = np.eye(4), []
    for theta, length, turn in zip((theta1, theta2, -theta1, -theta2), (a, b, a, b), (alpha, beta, alpha, beta)):
        axes.append((T[:3, 3].copy(), T[:3, 2].copy()))
        T = T @ _transform(0, 0, theta) @ _transform(length, turn, 0)
    assert np.abs(T - np.eye(4)).max() < 1e-12, "the linkage does not close"
    rng = np.random.default_rng(seed)
    machine, names = Mechanism(), ["b3", "base", "b1", "b2", "b3"]
    for k in range(3):
        machine.bodies[f"b{k + 1}"] = random_body(rng, 0.5 * (axes[(k + 1) % 4][0] + axes[(k + 2) % 4][0]))
    # The link between axes 1 and 2 is the ground: axis 2 is the motor, axes 3, 4 and 1 are passive.
    for k, axis in enumerate((0, 1, 2, 3)):
        machine.joints[f"j{k + 1}"] = (names[k], names[k + 1], "revolute", axes[axis][0], axes[axis][1])
    return machine, K


def _transform(length, twist, theta):
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(twist), np.sin(twist)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]) @ np.array(
        [[1, 0, 0, length], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1.0]])


# ---------------------------------------------------------------------- parallel robots as closed loops


def as_closed_loop(machine, first, kind):
    """Return the machine as a tree: the platform is attached at cut joint `first`, the others close the loops."""
    loops = {name: {**cut, "first": as_frame(cut["first"]), "second": as_frame(cut["second"])}
             for name, cut in machine.loops["cut_joints"].items()}
    ends = loops.pop(first)
    xyz = " ".join(map(repr, ends["first"].get("xyz", [0.0] * 3)))
    back = " ".join(repr(-x) for x in ends["second"]["xyz"])
    joints, parent, origin = "", ends["first"]["link"], f'<origin xyz="{xyz}"/>'
    for k, axis in enumerate(("1 0 0", "0 1 0", "0 0 1") if kind == "spherical" else ("0 0 1",)):
        joints += (f'<link name="pivot{k}"/><joint name="pivot{k}" type="revolute"><parent link="{parent}"/>'
                   f'<child link="pivot{k}"/>{origin}<axis xyz="{axis}"/><limit effort="1" velocity="1"/></joint>')
        parent, origin = f"pivot{k}", ""
    body = machine.platform[machine.platform.index(">") + 1:machine.platform.rindex("</robot>")]
    joints += (f'<joint name="held" type="fixed"><parent link="{parent}"/><child link="platform"/><origin xyz="{back}" '
               'rpy="0 0 0"/></joint>')
    return machine.legs.replace("</robot>", body + joints + "</robot>"), {"loops": {**machine.loops, "cut_joints": loops}}


def as_frame(end):
    return {"link": end} if isinstance(end, str) else end


def start_of_pivots(machine, first, kind):
    """Return the pivot angles that cancel the rotation of the leg's link at home."""
    model = pin.buildModelFromXML(machine.legs)
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    R = data.oMf[model.getFrameId(as_frame(machine.loops["cut_joints"][first]["first"])["link"])].rotation.T
    if kind == "revolute":
        return {"pivot0": float(np.arctan2(R[1, 0], R[0, 0]))}
    y = np.arcsin(R[0, 2])  # R = Rx Ry Rz
    return {"pivot0": float(np.arctan2(-R[1, 2], R[2, 2])), "pivot1": float(y), "pivot2": float(np.arctan2(-R[0, 1], R[0, 0]))}


# ---------------------------------------------------------------------- Pinocchio with Lagrange multipliers


class Body:
    """A Pinocchio model with the frames of cut joints; velocities in Pinocchio's order."""

    def __init__(self, urdf: str, free: bool = False):
        self.model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer()) if free else pin.buildModelFromXML(urdf)
        self.number = {name: self.model.joints[k].idx_v for k, name in enumerate(self.model.names)}

    def has(self, link: str) -> bool:
        return self.model.existFrame(link)

    def frame(self, end: dict) -> int:
        link = self.model.getFrameId(end["link"])
        rpy, xyz = (np.array(end.get(key, [0.0] * 3), dtype=float) for key in ("rpy", "xyz"))
        at = pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)
        parent = self.model.frames[link]
        name = f"cut{len(self.model.frames)}"
        return self.model.addFrame(pin.Frame(name, parent.parentJoint, link, parent.placement * at, pin.FrameType.OP_FRAME))

    def state(self, q, v):
        """Compute all terms at this state and zero acceleration; call before `motion`."""
        data = self.model.createData()
        pin.forwardKinematics(self.model, data, q, v, np.zeros(self.model.nv))
        pin.computeJointJacobians(self.model, data, q)
        pin.updateFramePlacements(self.model, data)
        return data

    def motion(self, data, frame):
        """Return pose, Jacobian (6, nv), velocity and acceleration at zero qdd of a frame, in world axes."""
        there = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pose = data.oMf[frame]
        return (pose.rotation, pose.translation, pin.getFrameJacobian(self.model, data, frame, there),
                pin.getFrameVelocity(self.model, data, frame, there).vector,
                pin.getFrameClassicalAcceleration(self.model, data, frame, there).vector)

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.model.createData(), q)
        return np.triu(M) + np.triu(M, 1).T

    def rnea(self, q, v, a):
        return pin.rnea(self.model, self.model.createData(), q, v, a)


def constraint(kind: str, one: tuple, two: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return the constraint Jacobian of a cut joint, separately for its two ends, and its acceleration at zero qdd.

    Derivatives of R1^T (p2 - p1) and, as the cut is closed, R1^T (w2 - w1), for ends that may move against each other.
    """
    (R1, p1, J1, v1, a1), (_R2, p2, J2, v2, a2) = one, two
    R, p = R1.T, p2 - p1
    moved = J1.copy()
    moved[:3] -= pin.skew(p) @ J1[3:]
    first, second = (np.matmul(R, J.reshape(2, 3, -1)).reshape(J.shape) for J in (moved, J2))
    w, alpha, pd, pdd = v1[3:], a1[3:], v2[:3] - v1[:3], a2[:3] - a1[:3]
    ud = pd - cross(w, p)
    linear = pdd - cross(alpha, p) - cross(w, pd) - cross(w, ud)
    angular = a2[3:] - alpha - cross(w, v2[3:] - w)
    rows = list(ROWS[kind])
    return (-first[rows], second[rows]), np.concatenate((R @ linear, R @ angular))[rows]


def cross(a, b) -> np.ndarray:
    """Return the cross product of two vectors (3,), faster than NumPy's."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


class LoopOracle:
    """Tree with cut joints: M qdd + h = S^T tau + J^T lambda, J qdd + drift = 0. Arrays are in the order of `joint_names`."""

    def __init__(self, urdf: str, loops: dict, joint_names):
        self.body = Body(urdf)
        self.order = [self.body.number[name] for name in joint_names]  # ours -> Pinocchio's
        self.active = [list(joint_names).index(name) for name in loops["loops"]["active"]]
        self.cuts = [(cut["type"], self.body.frame(cut["first"]), self.body.frame(cut["second"]))
                     for cut in loops["loops"]["cut_joints"].values()]

    def _theirs(self, x):
        y = np.zeros(self.body.model.nv)
        y[self.order] = x
        return y

    def equations(self, q, qd):
        """Return M, h, J, drift."""
        q, v = self._theirs(q), self._theirs(qd)
        data = self.body.state(q, v)
        rows, drifts = [], []
        for kind, first, second in self.cuts:
            (one, two), drift = constraint(kind, self.body.motion(data, first), self.body.motion(data, second))
            rows.append((one + two)[:, self.order])
            drifts.append(drift)
        h = self.body.rnea(q, v, np.zeros(self.body.model.nv))[self.order]
        return self.body.mass_matrix(q)[np.ix_(self.order, self.order)], h, np.vstack(rows), np.concatenate(drifts)

    def inverse(self, q, qd, qdd_active):
        """Return (tau of the active joints, qdd of all)."""
        M, h, J, drift = self.equations(q, qd)
        passive = np.setdiff1d(np.arange(len(q)), self.active)
        qdd = np.zeros(len(q))
        qdd[self.active] = qdd_active
        qdd[passive] = solve(J[:, passive], -drift - J @ qdd)
        unknown = np.hstack((np.eye(len(q))[:, self.active], J.T))
        return solve(unknown, M @ qdd + h)[:len(self.active)], qdd

    def forward(self, q, qd, tau):
        """Return qdd of all joints."""
        M, h, J, drift = self.equations(q, qd)
        push = np.zeros(len(q))
        push[self.active] = tau
        zero = np.zeros((len(J), len(J)))
        return solve(np.block([[M, -J.T], [J, zero]]), np.concatenate((push - h, -drift)))[:len(q)]


class PlatformOracle:
    """Actuator forces of legs and a free platform, joined by multipliers, for a given motion of both."""

    def __init__(self, machine, joint_names):
        self.legs, self.platform = Body(machine.legs), Body(machine.platform, free=True)
        self.order = [self.legs.number[name] for name in joint_names]
        self.active = [list(joint_names).index(name) for name in machine.loops["active"]]
        self.cuts = []
        for cut in machine.loops["cut_joints"].values():
            ends = [{"link": end} if isinstance(end, str) else end for end in (cut["first"], cut["second"])]
            self.cuts.append((cut["type"], self.legs.frame(ends[0]), self.platform.frame(ends[1])))

    def forces(self, legs, motion):
        """Return (tau, largest gap of velocity or acceleration). legs: (q, qd, qdd) of all joints; motion: PlatformMotion."""
        n = len(self.order)
        q, v, a = (np.zeros(n) for _ in range(3))
        for mine, theirs in zip(legs, (q, v, a)):
            theirs[self.order] = mine
        R, V, Vd = motion.rotation, motion.velocity, motion.acceleration
        pose = np.concatenate((motion.position, pin.Quaternion(R).coeffs()))
        twist = np.concatenate((R.T @ V[:3], R.T @ V[3:]))  # velocity of the free flyer in body axes
        spatial = np.concatenate((R.T @ (Vd[:3] - np.cross(V[3:], V[:3])), R.T @ Vd[3:]))
        data = self.legs.state(q, v), self.platform.state(pose, twist)
        on_legs, on_platform, gaps = [], [], []
        for kind, first, second in self.cuts:
            (one, two), drift = constraint(kind, self.legs.motion(data[0], first), self.platform.motion(data[1], second))
            gaps += [one @ v + two @ twist, one @ a + two @ spatial + drift]
            on_legs.append(one)
            on_platform.append(two)
        loads = np.concatenate((self.legs.rnea(q, v, a)[self.order], self.platform.rnea(pose, twist, spatial)))
        J = np.hstack((np.vstack(on_legs)[:, self.order], np.vstack(on_platform)))
        unknown = np.hstack((np.eye(n + 6)[:, self.active], J.T))
        solution = solve(unknown, loads)
        assert np.abs(unknown @ solution - loads).max() < 1e-9 * max(1.0, np.abs(loads).max())
        return solution[:len(self.active)], max(np.abs(gap).max() for gap in gaps)


def solve(A, b):
    return np.linalg.lstsq(A, b, rcond=1e-11)[0]

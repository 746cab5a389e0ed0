"""Oracle for arms with flexible links: a fine chain of rigid segments with springs in Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp
from scipy.linalg import eigh

from rnea_ros import load
from rnea_ros.model import robot_file, urdf_reader
from rnea_ros.model import urdf as urdf_model
from rnea_ros.model.flexible_links import with_flexible_links
from rnea_ros.trajectory import vibration

LENGTH, MASS, TIP_MASS, TIP_COM, TIP_INERTIA = 1.0, 0.8, 0.5, 0.1, 0.004  # of boom and hand
GRAVITY = (0.0, 0.0, -9.81)


def boom_urdf(tip_mass=TIP_MASS, axis="0 0 1"):
    """Return the URDF of a hub, a boom along x, a wrist at its end, and a hand."""
    j = MASS * LENGTH**2 / 12.0
    hand = (f'<inertial><origin xyz="{TIP_COM} 0 0"/><mass value="{tip_mass}"/><inertia ixx="0.002" ixy="0" ixz="0" '
            f'iyy="{TIP_INERTIA}" iyz="0" izz="{TIP_INERTIA}"/></inertial>') if tip_mass else ""
    return (f'<robot name="crane"><link name="base"/><link name="boom"><inertial><origin xyz="{LENGTH / 2} 0 0"/>'
            f'<mass value="{MASS}"/><inertia ixx="0" ixy="0" ixz="0" iyy="{j}" iyz="0" izz="{j}"/></inertial></link>'
            f'<link name="hand">{hand}</link><joint name="hub" type="continuous"><parent link="base"/><child link="boom"/>'
            f'<axis xyz="{axis}"/></joint><joint name="wrist" type="continuous"><parent link="boom"/><child link="hand"/>'
            f'<origin xyz="{LENGTH} 0 0"/><axis xyz="{axis}"/></joint></robot>')


def boom_file(stiffness, modes=3, **bending):
    """Return the robot file of a boom that bends in the plane of the hub."""
    return {"flexible_links": {"boom": {"end": [LENGTH, 0, 0], "bending": {
        "y": {"direction": [0, 1, 0], "stiffness": stiffness, "modes": modes, **bending}}}}}


class Chain:
    """Hub, `count` hinges in the middle of equal segments with springs EI / h, wrist."""

    def __init__(self, count, stiffness, tip_mass=TIP_MASS, gravity=GRAVITY, axis="z"):
        self.n, h = count, LENGTH / count
        self.spring, self.model = stiffness / h, pin.Model()
        self.model.gravity.linear = np.array(gravity, dtype=float)
        joint = {"z": pin.JointModelRZ, "y": pin.JointModelRY}[axis]
        parent, at = 0, 0.0
        for k in range(count + 2):
            pose = pin.SE3(np.eye(3), np.array([at, 0.0, 0.0]))
            parent = self.model.addJoint(parent, joint(), pose, f"joint{k}")
            if k <= count:
                at = 0.5 * h if k in (0, count) else h
                body = pin.Inertia(MASS / LENGTH * at, np.array([0.5 * at, 0.0, 0.0]),
                                   MASS / LENGTH * at**3 / 12.0 * np.diag([0.0, 1.0, 1.0]))
            else:
                body = pin.Inertia(tip_mass, np.array([TIP_COM, 0.0, 0.0]), np.diag([0.002, TIP_INERTIA, TIP_INERTIA]))
            self.model.appendBodyToJoint(parent, body, pin.SE3.Identity())
        self.data = self.model.createData()

    def mass_matrix(self, q):
        M = np.triu(pin.crba(self.model, self.data, q))
        return M + np.triu(M, 1).T

    def frequencies(self):
        """Return natural frequencies [rad/s] of the straight boom at rest with locked motors."""
        inner = slice(1, self.n + 1)
        M = self.mass_matrix(np.zeros(self.n + 2))[inner, inner]
        return np.sqrt(eigh(self.spring * np.eye(self.n), M, eigvals_only=True))

    def accelerations(self, hub, wrist, y):
        """Return q, qd, qdd of all joints. hub, wrist: position, velocity, acceleration; y: angles and rates of hinges."""
        q = np.r_[hub[0], y[:self.n], wrist[0]]
        v = np.r_[hub[1], y[self.n:], wrist[1]]
        a = np.r_[hub[2], np.zeros(self.n), wrist[2]]
        bias = pin.rnea(self.model, self.data, q, v, a)[1:-1]
        a[1:-1] = np.linalg.solve(self.mass_matrix(q)[1:-1, 1:-1], -bias - self.spring * y[:self.n])
        return q, v, a

    def simulate(self, hub, wrist, times):
        """Return torques of hub and wrist and the end of the boom in hub axes (samples, 2 + 2), starting from rest."""
        def slope(t, y):
            return np.r_[y[self.n:], self.accelerations(hub(t), wrist(t), y)[2][1:-1]]

        found = solve_ivp(slope, times[[0, -1]], np.zeros(2 * self.n), method="Radau", t_eval=times, rtol=1e-6, atol=1e-8)
        rows = []
        for t, y in zip(times, found.y.T, strict=True):
            q, v, a = self.accelerations(hub(t), wrist(t), y)
            tau = pin.rnea(self.model, self.data, q, v, a)
            pin.forwardKinematics(self.model, self.data, q)
            root, end = self.data.oMi[1], self.data.oMi[self.n + 2]
            rows.append([tau[0], tau[-1], *(root.rotation.T @ (end.translation - root.translation))[:2]])
        return np.array(rows)


def slew(angle, duration):
    """Return q, qd, qdd, qddd (4,) as a function of time: a cycloid from rest to rest."""
    w = 2.0 * np.pi / duration

    def motion(t):
        if t >= duration:
            return np.array([angle, 0.0, 0.0, 0.0])
        return angle / duration * np.array([t - np.sin(w * t) / w, 1.0 - np.cos(w * t), w * np.sin(w * t),
                                            w * w * np.cos(w * t)])

    return motion


def random_arm(seed):
    """Robot, URDF and flexible links of an arm of three joints about any axes; its first two links bend, some twist."""
    rng = np.random.default_rng(seed)
    urdf, parent, at, flexible_links = '<robot name="arm"><link name="base"/>', "base", 0.0, {}
    for k in range(3):
        length, mass, radius = rng.uniform(0.4, 0.9), rng.uniform(0.5, 2.0), 0.03
        across = mass * (length**2 / 12.0 + radius**2 / 4.0)
        urdf += (f'<link name="l{k}"><inertial><origin xyz="{0.5 * length} 0 0"/><mass value="{mass}"/><inertia ixx="'
                 f'{0.5 * mass * radius**2}" ixy="0" ixz="0" iyy="{across}" iyz="0" izz="{across}"/></inertial></link>')
        axis = rng.normal(size=3)
        urdf += (f'<joint name="j{k}" type="continuous"><parent link="{parent}"/><child link="l{k}"/><origin xyz="'
                 f'{at} 0 0"/><axis xyz="{axis[0]} {axis[1]} {axis[2]}"/></joint>')
        parent, at = f"l{k}", length
        turn = rng.uniform(0.0, 3.0)
        directions = ([0.0, np.cos(turn), np.sin(turn)], [0.0, -np.sin(turn), np.cos(turn)])
        if k < 2:
            bending = {name: {"direction": list(map(float, way)), "stiffness": float(rng.uniform(50.0, 300.0)),
                              "modes": int(rng.integers(1, 4))} for name, way in [*zip("uv", directions, strict=True)][:1 + k]}
            flexible_links[f"l{k}"] = {"end": [length, 0, 0], "damping": 0.01, "bending": bending, **(
                {"twist": {"stiffness": float(rng.uniform(20.0, 90.0))}} if rng.random() < 0.5 else {})}
    urdf += "</robot>"
    return load(urdf, {"flexible_links": flexible_links}), urdf, flexible_links


class ArmOracle:
    """Random arm whose links bend: Pinocchio moves every joint of the chain; modal efforts are K q + D q'.

    driven: which of the robot's joints have motors; the others are modes
    """

    def __init__(self, seed):
        self.robot, self.urdf, self.content = robot, urdf, content = random_arm(seed)
        read, file = urdf_reader.read(urdf), robot_file.draft({"flexible_links": content})
        chains, made = with_flexible_links(read, file, urdf_model.load(read))
        self.model = pin.buildModelFromXML(urdf_reader.text(chains.robot))
        self.data, names = self.model.createData(), list(robot.joint_names)
        self.G = np.zeros((self.model.nv, robot.n))
        for joint in chains.robot.findall("joint"):
            mimic, name = joint.find("mimic"), joint.get("name")
            leader = name if mimic is None else mimic.get("joint")
            scale = next((chain.leaders[leader] for chain in made if leader in chain.leaders), 1.0)
            self.G[self.model.joints[self.model.getJointId(name)].idx_v, names.index(leader)] = scale * (
                1.0 if mimic is None else float(mimic.get("multiplier")))
        modes = {mode.joint: mode for beam in vibration.flexible_links(robot) for mode in beam.modes}
        self.K, self.D = (np.array([getattr(modes[name], what) if name in modes else 0.0 for name in names])
                          for what in ("stiffness", "damping"))
        self.driven = np.array([name not in modes for name in names])

    def efforts(self, q, v, a):
        """Efforts (n,) of motors and modes."""
        at = pin.neutral(self.model)
        for joint, angle in zip(list(self.model.joints)[1:], self.G @ q, strict=True):
            at[joint.idx_q:joint.idx_q + 2] = np.cos(angle), np.sin(angle)
        return self.G.T @ pin.rnea(self.model, self.data, at, self.G @ v, self.G @ a) + self.K * q + self.D * v

    def accelerations(self, q, v, a):
        """Return a (n,) with the accelerations of the modes: these need no effort."""
        a, bends = np.array(a), np.flatnonzero(~self.driven)
        a[bends] = 0.0
        rest = self.efforts(q, v, a)[bends]
        M = np.array([self.efforts(q, v, a + unit)[bends] - rest for unit in np.eye(len(a))[bends]]).T
        for _ in range(2):  # the second one takes what rounding left
            a[bends] -= np.linalg.solve(M, self.efforts(q, v, a)[bends])
        return a

    def torque(self, q, v, a):
        """Torques (n,): of motors, and those of the modes' springs and dampers."""
        tau = self.efforts(q, v, self.accelerations(q, v, a))
        return np.where(self.driven, tau, -self.K * q - self.D * v)

    def rate(self, motion, h=3e-5):
        """Rates of the torques at 0; motion(t): q, qd, qdd of the driven joints, and of all at t = 0."""
        n, bends = len(self.driven), np.flatnonzero(~self.driven)

        def state(t, y):
            q, v, a = (np.array(part) for part in motion(t)[:3])
            q[bends], v[bends] = np.split(y, 2)
            return q, v, self.accelerations(q, v, a)

        def slope(t, y):
            return np.r_[y[len(bends):], state(t, y)[2][bends]]

        start = np.concatenate([motion(0.0)[k][bends] for k in (0, 1)])
        along = []
        for k in range(-3, 4):
            y = start if k == 0 else solve_ivp(slope, (0.0, k * h), start, method="DOP853", rtol=1e-13,
                                               atol=1e-16).y[:, -1]
            along.append(self.torque(*state(k * h, y)))
        assert along[0].shape == (n,)
        return np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) @ np.array(along) / (60.0 * h)


def compare_arm(seed):
    """Largest errors of torques, of their rates, and efforts that modes lack, as shares of the largest, of a random arm."""
    truth, rng = ArmOracle(seed), np.random.default_rng(seed)
    driven, names = truth.driven, truth.robot.joint_names
    state = rng.uniform(-0.8, 0.8, (4, truth.robot.n)) * np.where(driven, 1.0, 0.05)
    found = truth.robot.solve(*state)
    q, v, a, j = np.array([found.positions[name][:4] for name in names]).T
    tau = truth.efforts(q, v, a)
    h = 1e-5  # of the fastest modes' time
    along = [truth.efforts(q + t * v + t**2 / 2 * a + t**3 / 6 * j, v + t * a + t**2 / 2 * j, a + t * j)
             for t in h * np.arange(-3, 4)]
    slope = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) @ np.array(along) / (60.0 * h)
    errors = (found.torques[0] - tau)[driven], (found.torques[1] - slope)[driven], tau[~driven]
    size = np.abs(tau).max()
    return tuple(float(np.abs(error).max() / scale) for error, scale in
                 zip(errors, (size, np.abs(slope).max(), size), strict=True))

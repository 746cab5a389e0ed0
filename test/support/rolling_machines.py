"""Wheeled vehicles, and their minimum-norm motor torques by Pinocchio, in time."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from rnea_ros import BaseState, load

RADIUS, GRAVITY = 0.2, 9.81
ANGLE = np.pi / 10.0  # steering axis of the bicycle
# Differences of sixth order: nodes and weights of the first derivative.
STEPS, WEIGHTS = np.arange(-3, 4), np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0


def text(values):
    return " ".join(repr(float(x)) for x in values)


def link_text(name, mass, com, moments, xz=0.0):
    return (f'<link name="{name}"><inertial><origin xyz="{text(com)}"/><mass value="{mass}"/><inertia ixx="{moments[0]}" '
            f'iyy="{moments[1]}" izz="{moments[2]}" ixy="0" ixz="{xz}" iyz="0"/></inertial></link>')


def joint_text(name, parent, child, xyz, axis):
    return (f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{text(xyz)}"/><axis xyz="{text(axis)}"/></joint>')


# The bicycle of Meijaard et al. (2007), table 1; their axes x, y, z are ours x, -y, -z.
BICYCLE_URDF = ('<robot name="bicycle">' + link_text("frame", 85.0, (0.3, 0.0, 0.9), (9.2, 11.0, 2.8), -2.4)
                + link_text("rear_wheel", 2.0, (0, 0, 0), (0.0603, 0.12, 0.0603))
                + link_text("fork", 4.0, (-0.2, 0.0, 0.7), (0.05892, 0.06, 0.00708), 0.00756)
                + link_text("front_wheel", 3.0, (0, 0, 0), (0.1405, 0.28, 0.1405))
                + joint_text("rear", "frame", "rear_wheel", (0.0, 0.0, 0.3), (0, 1, 0))
                + joint_text("steer", "frame", "fork", (1.1, 0.0, 0.0), (np.sin(ANGLE), 0.0, -np.cos(ANGLE)))
                + joint_text("front", "fork", "front_wheel", (-0.08, 0.0, 0.35), (0, 1, 0)) + "</robot>")
HELD = ["along", "across", "normal"]
BICYCLE_FILE = {"base": "floating", "passive": ["front"], "wheels": {
    "rear": {"link": "rear_wheel", "axis": [0, 1, 0], "radius": 0.3, "holds": HELD},
    "front": {"link": "front_wheel", "axis": [0, 1, 0], "radius": 0.35, "holds": HELD}}}


def _vehicle(corners, file, steered=False, rng=None, **kinds):
    """Chassis with an arm and wheels. corners: {name: (x, y, angle of the axis from y about z)}; kinds: of each wheel; rng:
    draws masses, mass centres and radii.
    """
    def size(x):
        return x if rng is None else float(x * rng.uniform(0.7, 1.4))

    center, inertia = (size(0.05), size(0.02), size(0.3)), size(1.0) * np.array([2.0, 4.0, 5.0])
    body, wheels = link_text("chassis", size(60.0), center, inertia), {}
    for name, (x, y, turn) in corners.items():
        radius = size(RADIUS)
        axis, parent, at = (-np.sin(turn), np.cos(turn), 0.0), "chassis", (x, y, radius)
        if steered:
            body += link_text(f"{name}_fork", size(1.0), (0, 0, 0), (0.01, 0.01, 0.02))
            body += joint_text(f"{name}_steer", "chassis", f"{name}_fork", at, (0, 0, 1))
            parent, at = f"{name}_fork", (0.0, 0.0, 0.0)
        body += link_text(f"{name}_wheel", size(3.0), (0, 0, 0), (0.05, 0.05, 0.05))
        body += joint_text(f"{name}_drive", parent, f"{name}_wheel", at, axis)
        wheels[name] = {"link": f"{name}_wheel", "axis": list(axis), "radius": radius, "friction": 0.8, **kinds[name]}
    body += link_text("arm", size(5.0), (size(0.4), 0.0, size(0.1)), (0.1, 0.2, 0.2))
    body += joint_text("turret", "chassis", "arm", (0.1, 0.0, 0.5), (0, 0, 1))
    return body, {"base": "floating", "wheels": wheels, **file}


def random_vehicle(kind, seed):
    """URDF and robot file of a vehicle: "differential", "ball", "mecanum", "omni" or "four steered wheels"."""
    rng = np.random.default_rng(seed)
    corners = {name: (x + 0.1 * rng.normal(), y + 0.1 * rng.normal(), 0.0) for name, (x, y, _) in CORNERS.items()}
    if kind == "differential":
        y = rng.uniform(0.3, 0.5)
        made = _vehicle({"left": (0.0, y, 0.0), "right": (0.0, -y, 0.0)}, {}, rng=rng, left={"holds": HELD},
                        right={"holds": ["along", "normal"]})
        made[1]["wheels"]["skid"] = SKID
    elif kind == "ball":
        made = _vehicle({"rear": corners["rl"]}, {}, rng=rng, rear={"holds": ["along", "normal"]})
        x, y, radius = rng.uniform(0.3, 0.6), 0.2 * rng.normal(), rng.uniform(0.15, 0.3)
        body = made[0] + link_text("cross", rng.uniform(0.5, 2.0), (0.0, 0.02, 0.01), (0.02, 0.01, 0.015))
        body += link_text("ball", rng.uniform(2.0, 5.0), (0, 0, 0), (0.05,) * 3)
        body += joint_text("ball_x", "chassis", "cross", (x, y, radius), (1, 0, 0))
        body += joint_text("ball_y", "cross", "ball", (0, 0, 0), (0, 1, 0))
        made = body, made[1]
        made[1]["wheels"]["ball"] = {"link": "ball", "shape": "sphere", "radius": radius, "holds": HELD}
        made[1]["wheels"]["skid"] = {**SKID, "center": [-0.5, -0.5, 0.05]}
    elif kind == "mecanum":
        made = _vehicle(corners, {"actuation_weights": DRIVES}, rng=rng, **{name: {
            "roller_angle": angle * rng.uniform(0.8, 1.2), "holds": ["roller", "normal"]} for name, angle in ROLLERS.items()})
    elif kind == "omni":
        turns = np.array([0.3, 2.4, 4.5]) + 0.2 * rng.normal(size=3)
        at = {f"w{k}": (0.4 * np.cos(a), 0.4 * np.sin(a), a - 0.5 * np.pi) for k, a in enumerate(turns)}
        rollers = {"roller_angle": 0.5 * np.pi, "holds": ["roller", "normal"]}
        made = _vehicle(at, {}, rng=rng, **dict.fromkeys(at, rollers))
    else:
        made = _vehicle(corners, {"actuation_weights": DRIVES}, steered=True, rng=rng,
                        **{name: {"holds": HELD} for name in CORNERS})
    return _closed(made)


def _closed(made):
    return f'<robot name="vehicle">{made[0]}</robot>', made[1]


CORNERS = {"fl": (0.5, 0.4, 0.0), "fr": (0.5, -0.4, 0.0), "rl": (-0.5, 0.4, 0.0), "rr": (-0.5, -0.4, 0.0)}
ROLLERS = {"fl": 0.25 * np.pi, "fr": -0.25 * np.pi, "rl": -0.25 * np.pi, "rr": 0.25 * np.pi}
DRIVES = {f"{name}_drive": 1.0 for name in CORNERS}
SKID = {"link": "chassis", "center": [0.45, 0.0, 0.05], "axis": [0, 1, 0], "radius": 0.05, "holds": ["normal"]}


def _differential():
    body, file = _vehicle({"left": (0.0, 0.4, 0.0), "right": (0.0, -0.4, 0.0)}, {},
                          left={"holds": HELD}, right={"holds": ["along", "normal"]})
    return body, {**file, "wheels": {**file["wheels"], "skid": {**SKID, "friction": 0.8}}}


def _castor():
    body, file = _differential()
    body += link_text("swing", 1.0, (-0.03, 0, 0), (0.01, 0.01, 0.01)) + link_text("roll", 1.0, (0, 0, 0), (0.01, 0.01, 0.01))
    body += joint_text("swivel", "chassis", "swing", (-0.4, 0.0, 0.2), (0, 0, 1))
    body += joint_text("castor_spin", "swing", "roll", (-0.07, 0.0, -0.1), (0, 1, 0))
    wheels = {**file["wheels"], "castor": {"link": "roll", "axis": [0, 1, 0], "radius": 0.1, "holds": HELD}}
    del wheels["skid"]
    return body, {**file, "wheels": wheels, "passive": ["swivel", "castor_spin"]}


VEHICLES = {name: _closed(made) for name, made in {
    "differential": _differential(),
    "castor": _castor(),
    "omni": _vehicle({f"w{k}": (0.4 * np.cos(a), 0.4 * np.sin(a), a - 0.5 * np.pi) for k, a in enumerate((0.3, 2.4, 4.5))}, {},
                     **{f"w{k}": {"roller_angle": 0.5 * np.pi, "holds": ["roller", "normal"]} for k in range(3)}),
    "mecanum": _vehicle(CORNERS, {"actuation_weights": DRIVES},
                        **{name: {"roller_angle": angle, "holds": ["roller", "normal"]} for name, angle in ROLLERS.items()}),
    "four steered wheels": _vehicle(CORNERS, {"actuation_weights": DRIVES}, steered=True,
                                    **{name: {"holds": HELD} for name in CORNERS}),
}.items()}


class VehicleOracle:
    """Vehicle on level ground whose base follows a given twist; joints by closed forms of the wheels."""

    def __init__(self, urdf, file):
        self.model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
        self.model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])
        self.data, self.file = self.model.createData(), file
        self.names = list(self.model.names)[2:]
        self.steered = any(name.endswith("_steer") for name in self.names)
        self.free = [k for k, name in enumerate(self.names) if name in file.get("passive", ())]

    def _twist(self, t):
        """Return the base velocity along x, y and about z, with zero y for differential drives."""
        sideways = 0.0 if "left" in self.file["wheels"] else 0.3 * np.cos(1.7 * t) + 0.2
        return np.array([1.0 + 0.4 * np.sin(2.0 * t), sideways, 0.5 * np.sin(1.3 * t + 0.5)])

    def _at(self, joint):
        """Position (3,) of a joint on the base, all joints at zero."""
        pin.framesForwardKinematics(self.model, self.data, pin.neutral(self.model))
        return self.data.oMi[self.model.getJointId(joint)].translation

    def _joints(self, t):
        """Return angles of steering joints (others zero), and speeds of all other joints."""
        vx, vy, w = self._twist(t)
        angles, speeds = np.zeros((2, len(self.names)))
        for k, name in enumerate(self.names):
            if name == "turret":
                angles[k], speeds[k] = 0.5 * np.sin(1.5 * t), 0.75 * np.cos(1.5 * t)
            elif name == "ball_x":  # a ball on two hinges, about x and the y that has turned with it
                radius, (x, y, _) = self.file["wheels"]["ball"]["radius"], self._at(name)
                way = [0.3 / 1.7 * np.sin(1.7 * s) + 0.2 * s - 0.5 / 1.3 * np.cos(1.3 * s + 0.5) * x for s in (t, 0.3)]
                angles[k] = (way[1] - way[0]) / radius
                speeds[k] = -(vy + w * x) / radius
                speeds[self.names.index("ball_y")] = (vx - w * y) / radius / np.cos(angles[k])
            elif name.endswith("_drive"):
                wheel = self.file["wheels"][name.removesuffix("_drive")]
                x, y, _ = self._at(name)
                v = np.array([vx - w * y, vy + w * x])
                axis = np.array(wheel["axis"][:2])
                along = np.array([axis[1], -axis[0]])
                if self.steered:
                    angle = np.arctan2(v[1], v[0])
                    angles[self.names.index(name.replace("_drive", "_steer"))] = angle
                    speeds[k] = np.hypot(*v) / wheel["radius"]
                elif "roller_angle" in wheel:
                    g = wheel["roller_angle"]  # roller: across cos - along sin; r speed along roller's along part balances v
                    roller = axis * np.cos(g) - along * np.sin(g)
                    speeds[k] = (roller @ v) / (roller @ along) / wheel["radius"]
                else:
                    speeds[k] = along @ v / wheel["radius"]
        return angles, speeds

    def _slopes(self, function, t, h=2e-3):
        values = np.array([function(t + k * h) for k in STEPS])
        return np.tensordot(WEIGHTS, values, axes=1) / h

    def _angles(self, t):
        return self._joints(t)[0]

    def _speeds(self, t):
        """Return speeds of all joints."""
        speeds = self._joints(t)[1]
        if self.steered:
            steering = [k for k, name in enumerate(self.names) if name.endswith("_steer")]
            speeds[steering] = self._slopes(self._angles, t)[steering]
        return speeds

    def base(self, t, k):
        """Return derivative k of the base's velocity (6,) along its axes."""
        def six(t):
            vx, vy, w = self._twist(t)
            return np.array([vx, vy, 0.0, 0.0, 0.0, w])

        return six(t) if k == 0 else self._slopes(lambda s: self.base(s, k - 1), t)

    def motion(self, t):
        """Return q, qd, qdd, qddd (4, joints); dependent joints rest at an angle."""
        def accelerations(s):
            return self._slopes(self._speeds, s)

        found = np.array([self._angles(t), self._speeds(t), accelerations(t), self._slopes(accelerations, t)])
        if self.free:
            found[0, self.free[0]] = 0.4
        return found

    def rolling(self, angles):
        """Return A (rows, 6 + joints) at these joint angles, with the base at the origin."""
        q = pin.neutral(self.model)
        for name, angle in zip(self.names, angles, strict=True):
            k = self.model.joints[self.model.getJointId(name)].idx_q
            q[k:k + 2] = np.cos(angle), np.sin(angle)
        pin.computeJointJacobians(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        order = [self.model.joints[self.model.getJointId(name)].idx_v for name in self.names]
        rows = []
        for wheel in self.file["wheels"].values():
            frame = self.model.getFrameId(wheel["link"])
            J = pin.getFrameJacobian(self.model, self.data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            pose = self.data.oMf[frame]
            arm = pose.rotation @ np.array(wheel.get("center", (0.0, 0.0, 0.0)), dtype=float) - [0.0, 0.0, wheel["radius"]]
            point = J[:3] - pin.skew(arm) @ J[3:]
            axis = pose.rotation @ np.array(wheel.get("axis", (0.0, 1.0, 0.0)), dtype=float)
            along = np.cross(axis, [0.0, 0.0, 1.0])
            g = wheel.get("roller_angle", 0.0)
            ways = {"along": along, "across": axis, "normal": np.array([0.0, 0.0, 1.0]),
                    "roller": axis * np.cos(g) - along * np.sin(g)}
            if wheel.get("shape") == "sphere":
                ways |= {"along": np.array([1.0, 0.0, 0.0]), "across": np.array([0.0, 1.0, 0.0])}
            rows += [ways[way] @ point for way in wheel["holds"]]
        A = np.array(rows)
        return np.column_stack((A[:, :6], A[:, order]))

    def load(self, angles, v, a):
        """Return efforts (6 + joints,) of a motion without constraints: base, then joints in the order of names."""
        q, velocity, acceleration = pin.neutral(self.model), np.zeros(self.model.nv), np.zeros(self.model.nv)
        order = [*range(6), *(self.model.joints[self.model.getJointId(name)].idx_v for name in self.names)]
        for angle, name in zip(angles, self.names, strict=True):
            at = self.model.joints[self.model.getJointId(name)].idx_q
            q[at:at + 2] = np.cos(angle), np.sin(angle)
        velocity[order], acceleration[order] = v, a
        return pin.rnea(self.model, self.data, q, velocity, acceleration)[order]

    def _load(self, t):
        angles, speeds, accelerations = self._angles(t), self._speeds(t), self._slopes(self._speeds, t)
        load = self.load(angles, np.r_[self.base(t, 0), speeds], np.r_[self.base(t, 1), accelerations])
        return load, self.rolling(angles)

    def efforts(self, t):
        """Return the minimum-norm motor torques (joints,) that satisfy the equations of motion with ground forces."""
        load, A = self._load(t)
        n = len(self.names)
        S = np.vstack((np.zeros((6, n)), np.eye(n)))
        both = np.column_stack((S, A.T))
        start = np.linalg.lstsq(both, load, rcond=1e-12)[0]
        assert np.abs(both @ start - load).max() < 1e-8 * np.abs(load).max()
        _, s, V = np.linalg.svd(both)
        free = V[int((s > 1e-10 * s[0]).sum()):].T
        tau, moves = start[:n], free[:n]
        return tau - moves @ np.linalg.lstsq(moves, tau, rcond=1e-10)[0] if free.size else tau

    def sample(self, t):
        """Return torques and their rates."""
        return self.efforts(t), self._slopes(self.efforts, t)

    def ground_reaction(self, t):
        """Return force and moment (3,) by the ground about the origin of the base."""
        load, _ = self._load(t)
        return load[:3], load[3:6]


def compare_vehicle(kind, seed, t=0.4):
    """Largest errors of torques, rates and the acceleration of the base of a random vehicle, as shares of the largest."""
    urdf, file = random_vehicle(kind, seed)
    truth, robot = VehicleOracle(urdf, file), load(urdf, file)
    order = [truth.names.index(one) for one in robot.joint_names]
    found = robot.solve(*truth.motion(t)[:, order], base=BaseState())
    tau, rate = (part[order] for part in truth.sample(t))
    pairs = (found.torques[0], tau), (found.torques[1], rate), (found.base[1], truth.base(t, 1))
    return tuple(float(np.abs(ours - theirs).max() / np.abs(theirs).max()) for ours, theirs in pairs)

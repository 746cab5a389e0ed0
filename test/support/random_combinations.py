"""Random machines of many combinations of base, loops, platforms, springs, elastic joints, motors on links, passive joints,
contacts, wheels and redundant motors, and their torques and rates by `constrained_motion`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import rnea_ros
from rnea_ros import MotorState, Robot
from support import combined_machines
from support.beam_oracle import compare_arm
from support.combined_machines import link
from support.constrained_motion import ConstrainedMotion, RandomMachine, derivatives
from support.machines import Body, text
from support.rolling_machines import compare_vehicle
from support.swimming import compare_eel

ANY_CUT = ("spherical", "point_on_axis", "revolute", "cylindrical", "planar", "prismatic", "fixed")


class Parts:
    """Builder of URDF text and robot file of a machine."""

    def __init__(self, seed: int, root: str, base: str):
        self.rng, self.root = np.random.default_rng(seed), root
        self._text = link(self.rng, root)
        self.file: dict[str, Any] = {"version": 1, "base": base}
        self.q: dict[str, float] = {}

    def add(self, name: str, parent: str, kind: str = "revolute", xyz: Any = None, rpy: Any = None, axis: Any = None,
            q: float | None = None) -> str:
        """Add joint NAME and link "NAME link" to a parent, with random values where not given; return the link."""
        rng, child = self.rng, f"{name} link"
        xyz = 0.3 * rng.normal(size=3) if xyz is None else xyz
        rpy = rng.normal(size=3) if rpy is None else rpy
        axis = rng.normal(size=3) if axis is None else axis
        self._text += link(rng, child) + (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{text(xyz)}" '
            f'rpy="{text(rpy)}"/><axis xyz="{text(axis)}"/><limit lower="-9" upper="9" effort="1" velocity="1"/></joint>')
        self.q[name] = float(rng.uniform(-1.0, 1.0)) if q is None else q
        return child

    def platform(self, name: str, xyz: Any, rpy: Any) -> None:
        """Add a link on a floating joint of the root."""
        self._text += link(self.rng, name) + (
            f'<joint name="pose of {name}" type="floating"><parent link="{self.root}"/><child link="{name}"/>'
            f'<origin xyz="{text(xyz)}" rpy="{text(rpy)}"/></joint>')

    def entry(self, section: str, name: str, **values: Any) -> None:
        self.file.setdefault(section, {})[name] = values

    def spring(self, name: str) -> None:
        self.entry("springs", name, stiffness=float(self.rng.uniform(20.0, 60.0)), damping=float(self.rng.uniform(0.0, 1.0)),
                   rest=float(self.q[name] + 0.2 * self.rng.normal()))

    def elastic(self, name: str, stiffness: bool = True) -> None:
        """Add a drive with or without a spring."""
        rng = self.rng
        if stiffness:
            self.entry("elastic_joints", name, stiffness=float(rng.uniform(80.0, 200.0)))
        self.entry("drives", name, gear_ratio=float(rng.choice([-1.0, 1.0]) * rng.uniform(5.0, 30.0)),
                   rotor_inertia=float(rng.uniform(1e-4, 5e-4)))

    def rotor(self, name: str, carrier: str) -> None:
        """Mount the motor of a joint on a link."""
        rng = self.rng
        self.entry("motors", name, link=carrier, axis=rng.normal(size=3).tolist(), mass=float(rng.uniform(0.1, 0.5)),
                   transverse_inertia=float(rng.uniform(3e-4, 1e-3)), position=(0.1 * rng.normal(size=3)).tolist())

    def made(self) -> RandomMachine:
        return RandomMachine(f'<robot name="{self.root}">{self._text}</robot>', self.file, self.q)


# ---------------------------------------------------------------------- trees with loops


def tree(seed: int, motors: int = 0, rigid_motors: int = 0, measured: bool = False, **options: Any) -> RandomMachine:
    """Return a tree of combined_machines.machine; `motors` elastic and `rigid_motors` other joints have rotors on links."""
    made = combined_machines.machine(seed, **options)
    parts = Parts(seed + 1, "l0", made.base)
    parts.file, parts.q = made.file, made.q
    elastic = [name for name in made.given if name in made.elastic][:motors]
    rigid = [name for name in made.given if name not in made.elastic][:rigid_motors]
    for name in rigid:
        parts.elastic(name, stiffness=False)
    for name in (*elastic, *rigid):  # on the link before the joint or one before that
        parts.rotor(name, _parent(made.urdf, name))
    return RandomMachine(made.urdf, made.file, made.q, measured)


def _parent(urdf: str, joint: str) -> str:
    return urdf.split(f'<joint name="{joint}"')[1].split('parent link="')[1].split('"')[0]


# ---------------------------------------------------------------------- platforms


def parallel(seed: int, make: Callable[..., RandomMachine] | None = None, **options: Any) -> RandomMachine:
    """Return a machine of `make`, by default platforms in series of `_parallel`, far from singular poses."""
    for trial in range(100):
        made = (make or _parallel)(seed + 10000 * trial, **options)
        motion = ConstrainedMotion(made, made.file["loops"]["active"], seed)
        J, _ = motion.constraints(motion.X0[:motion.model.nq], np.zeros(motion.model.nv))
        if np.linalg.svd(J[:, motion.follows], compute_uv=False)[-1] > 0.02:
            return made
    raise AssertionError("every machine is singular")


def _parallel(seed: int, modules: int = 1, base: str = "fixed", legs: int = 6, elastic: int = 0, rotors: int = 0,
              arm: int = 0, springs: int = 0) -> RandomMachine:
    """Return platforms in series on random legs: six or more of two hinges, a driven slide and a ball; or three of three
    hinges, two of them driven, and a ball (legs = 3). More than six motors are redundant. An arm with springs is on top.
    """
    parts, active, below, at = Parts(seed, "ground", base), [], "ground", pin.SE3.Identity()
    rng, cuts, weights = parts.rng, {}, {}
    parts.file["platforms"] = {}
    for m in range(modules):
        name = f"platform{m}"
        turn = pin.rpy.rpyToMatrix(0.2 * rng.normal(size=3))
        upper = at * pin.SE3(turn, np.array([0.0, 0.0, 0.8]) + 0.1 * rng.normal(size=3))
        parts.platform(name, upper.translation, pin.rpy.matrixToRpy(upper.rotation))
        parts.file["platforms"][name] = {}
        for k in range(legs):
            turn = 2.0 * np.pi * (k // 2) / (max(legs, 4) // 2) if legs > 3 else 2.0 * np.pi * k / 3.0
            one, two = (turn + sign * rng.uniform(0.25, 0.45) * (1.0 if k % 2 else -1.0) for sign in (1.0, 3.0))
            foot = np.array([0.6 * np.cos(one), 0.6 * np.sin(one), 0.0]) + 0.05 * rng.normal(size=3)
            ball = np.array([0.4 * np.cos(two), 0.4 * np.sin(two), 0.0]) + 0.05 * rng.normal(size=3)
            there = at.actInv(upper.act(ball))  # ball in the frame of the lower body
            leg = _leg if legs > 3 else _crank
            end, point, motors = leg(parts, f"m{m}leg{k}", below, foot, there)
            active += motors
            cuts[f"m{m}ball{k}"] = {"type": "spherical", "first": {"link": end, "xyz": point},
                                    "second": {"link": name, "xyz": ball.tolist()}}
        below, at = name, upper
    parts.file["loops"] = {"cut_joints": cuts}
    if legs > 6:
        weights = {name: float(rng.uniform(0.5, 2.0)) for name in active}
        parts.file["actuation_weights"] = weights
    for name in active[:elastic]:
        parts.elastic(name)
    for name in active[elastic:elastic + rotors]:
        parts.elastic(name, stiffness=False)
        parts.rotor(name, _parent(parts.made().urdf, name))
    for k in range(arm):
        below = parts.add(f"arm{k}", below)
        if k < springs:
            parts.spring(f"arm{k}")
        else:
            active.append(f"arm{k}")
    parts.file["loops"] = {"active": active, "cut_joints": cuts, "start": dict(parts.q)}
    return parts.made()


def _leg(parts: Parts, name: str, below: str, foot: Any, ball: Any) -> tuple[str, list[float], list[str]]:
    """Add two hinges, a slide, and the ball at its end; all at zero."""
    d = ball - foot
    length = float(np.linalg.norm(d))
    lean = float(np.arctan2(-d[1], d[2])), float(np.arcsin(d[0] / length))  # of Rx Ry: z along the leg
    cross = parts.add(f"{name} first", below, xyz=foot, rpy=(lean[0], 0.0, 0.0), axis=(1.0, 0.0, 0.0), q=0.0)
    cylinder = parts.add(f"{name} second", cross, xyz=(0.0, 0.0, 0.0), rpy=(0.0, lean[1], 0.0), axis=(0.0, 1.0, 0.0), q=0.0)
    rod = parts.add(f"{name} slide", cylinder, "prismatic", (0.0, 0.0, 0.6 * length), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.0)
    return rod, [0.0, 0.0, 0.4 * length], [f"{name} slide"]


def _crank(parts: Parts, name: str, below: str, foot: Any, ball: Any) -> tuple[str, list[float], list[str]]:
    """Add three hinges, the first two with motors: hip abduction, hip and knee in a plane; all at zero."""
    d = ball - foot
    length = float(np.linalg.norm(d))
    lean = float(np.arctan2(-d[1], d[2])), float(np.arcsin(d[0] / length))
    upper, lower = 0.6 * length, 0.65 * length
    hip = float(np.arccos((length**2 + upper**2 - lower**2) / (2.0 * length * upper)))
    knee = float(np.arcsin(upper * np.sin(hip) / lower)) + hip
    first = parts.add(f"{name} first", below, xyz=foot, rpy=(lean[0], 0.0, 0.0), axis=(1.0, 0.0, 0.0), q=0.0)
    thigh = parts.add(f"{name} second", first, xyz=(0.0, 0.0, 0.0), rpy=(0.0, lean[1] + hip, 0.0), axis=(0.0, 1.0, 0.0), q=0.0)
    shank = parts.add(f"{name} knee", thigh, xyz=(0.0, 0.0, upper), rpy=(0.0, -knee, 0.0), axis=(0.0, 1.0, 0.0), q=0.0)
    return shank, [0.0, 0.0, lower], [f"{name} first", f"{name} second"]


# ---------------------------------------------------------------------- parallel modules on serial ones


def arm_with_tripod(seed: int, joints: int = 3) -> RandomMachine:
    """Arm of any axes with a tripod at its end: three legs of a hinge, a slide with a motor and a ball."""
    parts, below, at = Parts(seed, "ground", "fixed"), "ground", pin.SE3.Identity()
    rng, active, cuts = parts.rng, [], {}
    for k in range(joints):
        xyz, angles = 0.3 * rng.normal(size=3), rng.normal(size=3)
        below = parts.add(f"arm{k}", below, xyz=xyz, rpy=angles, q=0.0)
        active.append(f"arm{k}")
        at = at * pin.SE3(pin.rpy.rpyToMatrix(*angles), xyz)
    height, upper = rng.uniform(0.4, 0.7), rng.uniform(0.15, 0.25)
    pose = at * pin.SE3(np.eye(3), np.array([0.0, 0.0, height]))
    parts.platform("tool", pose.translation, pin.rpy.matrixToRpy(pose.rotation))
    parts.file["platforms"] = {"tool": {}}
    for k in range(3):
        turn = 2.0 * np.pi * k / 3.0 + 0.2 * rng.normal()
        radial, foot, ball = np.array([np.cos(turn), np.sin(turn), 0.0]), rng.uniform(0.3, 0.5), upper * rng.uniform(0.8, 1.2)
        length = float(np.hypot(ball - foot, height))
        rod = parts.add(f"leg{k} hinge", below, xyz=foot * radial, rpy=(0.0, float(np.arctan2(ball - foot, height)), turn),
                        axis=(0.0, 1.0, 0.0), q=0.0)
        rod = parts.add(f"leg{k} slide", rod, "prismatic", (0.0, 0.0, 0.6 * length), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.0)
        active.append(f"leg{k} slide")
        cuts[f"ball{k}"] = {"type": "spherical", "first": {"link": rod, "xyz": [0.0, 0.0, 0.4 * length]},
                            "second": {"link": "tool", "xyz": (ball * radial).tolist()}}
    parts.file["loops"] = {"active": active, "cut_joints": cuts, "start": dict(parts.q)}
    return parts.made()


def parallel_leg(seed: int, base: str = "floating") -> RandomMachine:
    """Leg below a pelvis: three hip joints, a knee that a crank on the thigh turns by a rod, and an ankle of two axes that two
    cranks on the shank turn by rods with balls.
    """
    parts = Parts(seed, "pelvis", base)
    rng, cuts, level = parts.rng, {}, (0.0, 0.0, 0.0)

    def near(*xyz: float) -> np.ndarray:
        return np.array(xyz) + 0.02 * rng.normal(size=3)

    def hinge(name: str, parent: str, xyz: Any, axis: Any) -> str:
        return parts.add(name, parent, xyz=xyz, rpy=level, axis=axis, q=0.0)

    across, along = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)
    body = "pelvis"
    for k, axis in enumerate(((0.0, 0.0, 1.0), along, across)):
        body = hinge(f"hip{k}", body, near(0.0, 0.1, -0.05), axis)
    thigh, knee_at = body, near(0.0, 0.0, -0.4)
    shank = hinge("knee", thigh, knee_at, across)
    crank_at, tip, pin_at = near(0.02, 0.0, -0.1), np.array([-0.06, 0.0, 0.02]), np.array([-0.07, 0.0, 0.03])
    crank = hinge("knee crank", thigh, crank_at, across)
    rod = hinge("knee rod", crank, tip, across)
    reach = knee_at + pin_at - crank_at - tip  # from the crank's tip to the pin on the shank, all joints at zero
    sideways = [-np.pi / 2.0, 0.0, 0.0]  # z along the axes
    cuts["knee pin"] = {"type": "point_on_axis", "first": {"link": rod, "xyz": reach.tolist(), "rpy": sideways},
                        "second": {"link": shank, "xyz": pin_at.tolist(), "rpy": sideways}}
    foot = hinge("ankle roll", hinge("ankle pitch", shank, near(0.0, 0.0, -0.4), across), level, along)
    ankle_at = np.array(_origin(parts.made().urdf, "ankle pitch"))
    active = ["hip0", "hip1", "hip2", "knee crank"]
    for name, side in (("inner", -1.0), ("outer", 1.0)):
        motor_at, tip, ball = near(0.0, 0.05 * side, -0.1), np.array([-0.07, 0.0, 0.01]), np.array([-0.08, 0.05 * side, 0.0])
        crank = hinge(f"{name} crank", shank, motor_at, across)
        rod = hinge(f"{name} rod pitch", crank, tip, across)
        rod = hinge(f"{name} rod roll", rod, level, along)
        reach = ankle_at + ball - motor_at - tip
        cuts[f"{name} ball"] = {"type": "spherical", "first": {"link": rod, "xyz": reach.tolist()},
                                "second": {"link": foot, "xyz": ball.tolist()}}
        active.append(f"{name} crank")
    parts.file["loops"] = {"active": active, "cut_joints": cuts, "start": dict(parts.q)}
    return parts.made()


def _origin(urdf: str, joint: str) -> list[float]:
    return [float(x) for x in urdf.split(f'<joint name="{joint}"')[1].split('origin xyz="')[1].split('"')[0].split()]


# ---------------------------------------------------------------------- standing and rolling


def standing(seed: int, feet: str = "spherical", springs: int = 0, passive: int = 0, elastic: int = 0,
             arm: int = 2) -> RandomMachine:
    """Return a body with an arm on three or four legs of three joints with point feet, or on two legs of six with soles."""
    parts = Parts(seed, "trunk", "prescribed")
    rng = parts.rng
    joints, legs = (6, 2) if feet == "fixed" else (3, int(rng.integers(3, 5)))
    names = []
    while True:  # until the legs are far from singular
        trial = Parts(int(rng.integers(1 << 30)), "trunk", "prescribed")
        names = []
        for k in range(legs):
            below = "trunk"
            for j in range(joints):
                below = trial.add(f"leg{k}{j}", below)
                names.append(f"leg{k}{j}")
            trial.entry("ground_contacts", f"foot{k}", link=below, type=feet, xyz=(0.3 * rng.normal(size=3)).tolist(),
                        rpy=rng.normal(size=3).tolist())
        if _conditioned(trial, names, joints):
            break
    below = "trunk"
    for k in range(arm):
        below = trial.add(f"arm{k}", below)
    for k in range(springs):
        trial.spring(f"arm{k}")
    if passive:
        trial.file["passive"] = [f"arm{k}" for k in range(springs, springs + passive)]
    for k in range(springs + passive, springs + passive + elastic):
        trial.elastic(f"arm{k}")
    trial.file["actuation_weights"] = {name: float(rng.uniform(0.5, 2.0)) for name in names}
    return trial.made()


def _conditioned(trial: Parts, names: list[str], joints: int) -> bool:
    made = trial.made()
    body = Body(made.urdf)
    q = np.zeros(body.model.nq)
    for name, value in made.q.items():
        q[body.number[name]] = value
    rows = 6 if joints == 6 else 3
    data, frames = body.state(q, 0.0 * q), [body.frame(contact) for contact in made.file["ground_contacts"].values()]
    data = body.state(q, 0.0 * q)
    blocks = []
    for k, frame in enumerate(frames):
        J = body.motion(data, frame)[2][:rows]
        blocks.append(J[:, [body.number[name] for name in names[k * joints:(k + 1) * joints]]])
    return min(np.linalg.svd(block, compute_uv=False)[-1] for block in blocks) > 0.08


def rolling_base(seed: int, kind: str = "differential", springs: int = 0, passive: int = 0, elastic: int = 0,
                 arm: int = 3) -> RandomMachine:
    """Return a wheeled vehicle with an arm: a differential drive with a castor, one with sprung wheels, or a tricycle."""
    parts = Parts(seed, "chassis", "floating")
    rng = parts.rng
    radius = rng.uniform(0.08, 0.2, 3)
    feet = np.array([[0.0, 0.3, 0.0], [0.0, -0.3, 0.0], [-0.4, 0.0, 0.0]]) + 0.05 * rng.normal(size=(3, 3))
    feet[:, 2] = radius

    def wheel(name: str, parent: str, k: int, xyz: Any, holds: list[str], turning: bool = True) -> None:
        if turning:
            child = parts.add(name, parent, xyz=xyz, rpy=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
            parts.entry("wheels", f"{name} disc", link=child, axis=[0.0, 1.0, 0.0], radius=float(radius[k]), holds=holds)
        else:
            parts.entry("wheels", f"{name} disc", link=parent, axis=[0.0, 1.0, 0.0], radius=float(radius[k]), holds=holds,
                        center=list(map(float, xyz)))

    if kind == "tricycle":
        fork = parts.add("steering", "chassis", xyz=feet[2], rpy=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0),
                         q=float(rng.uniform(-0.5, 0.5)))
        wheel("front", fork, 2, (0.02, 0.0, 0.0), ["along", "across", "normal"])
        wheel("left", "chassis", 0, feet[0], ["across", "normal"], turning=False)
        wheel("right", "chassis", 1, feet[1], ["normal"], turning=False)
    else:
        for k, name in enumerate(("left", "right")):
            parent, xyz = "chassis", feet[k]
            if kind == "sprung":
                parent = parts.add(f"{name} strut", "chassis", "prismatic", feet[k], (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.0)
                parts.spring(f"{name} strut")
                parts.file["springs"][f"{name} strut"]["stiffness"] *= 20.0
                xyz = (0.0, 0.0, 0.0)
            wheel(name, parent, k, xyz, ["along", "across", "normal"] if k == 0 else ["along", "normal"])
        wheel("castor", "chassis", 2, feet[2], ["normal"], turning=False)
    below = "chassis"
    for k in range(arm):
        below = parts.add(f"arm{k}", below)
    for k in range(springs):
        parts.spring(f"arm{k}")
    if passive:
        parts.file["passive"] = [f"arm{k}" for k in range(springs, springs + passive)]
    for k in range(springs + passive, springs + passive + elastic):
        parts.elastic(f"arm{k}")
    return parts.made()


# ---------------------------------------------------------------------- combinations


COMBINATIONS: Mapping[str, Callable[[int], RandomMachine]] = {
    "free base, loops, springs": lambda s: tree(s, joints=10, base="floating", loops=2, springs=2),
    "free base, loop of any cut joint, spring, passive joint": lambda s: tree(
        s, joints=12, base="floating", loops=1, springs=1, passive=1, types=ANY_CUT),
    "given base, loops, springs, passive joint": lambda s: tree(
        s, joints=11, base="prescribed", loops=2, springs=2, passive=1),
    "fixed base, loop of any cut joint, spring": lambda s: tree(s, joints=11, loops=1, springs=1, types=ANY_CUT),
    "free base, redundant motors in loops, spring": lambda s: tree(
        s, joints=10, base="floating", loops=2, redundant=2, springs=1),
    "free base, elastic joints, loop, spring": lambda s: tree(s, joints=9, base="floating", loops=1, elastic=2, springs=1),
    "given base, elastic joints, springs": lambda s: tree(s, joints=6, base="prescribed", elastic=2, springs=1),
    "given base, elastic joints with motors on links": lambda s: tree(s, joints=6, base="prescribed", elastic=2, motors=2),
    "given base, loop, elastic joints with measured motors on links": lambda s: tree(
        s, joints=8, base="prescribed", loops=1, elastic=2, motors=2, measured=True),
    "fixed base, rigid and elastic joints with motors on links": lambda s: tree(
        s, joints=6, elastic=2, motors=2, rigid_motors=2),
    "fixed base, springs, elastic joints with measured motors on links": lambda s: tree(
        s, joints=6, elastic=2, motors=2, rigid_motors=2, springs=2, measured=True),
    "free base, motors on links, loop, spring": lambda s: tree(
        s, joints=9, base="floating", loops=1, springs=1, rigid_motors=3),
    "free base, elastic joints with motors on links": lambda s: tree(s, joints=6, base="floating", elastic=2, motors=2),
    "free base, loop, elastic joints with measured motors on links": lambda s: tree(
        s, joints=8, base="floating", loops=1, elastic=2, motors=2, measured=True),
    "platform on a given base, arm with springs": lambda s: parallel(s, base="prescribed", arm=2, springs=1),
    "platform on a free base, two motors a leg": lambda s: parallel(s, base="floating", legs=3),
    "redundant platform, motors on links": lambda s: parallel(s, legs=8, rotors=2),
    "platforms in series": lambda s: parallel(s, modules=2),
    "platforms in series on a free base, arm with springs": lambda s: parallel(
        s, modules=2, base="floating", legs=3, arm=2, springs=1),
    "platform, elastic joints": lambda s: parallel(s, elastic=2),
    "four platforms in series": lambda s: parallel(s, modules=4),
    "tripod on an arm": lambda s: parallel(s, arm_with_tripod),
    "leg with parallel knee and ankle": lambda s: parallel(s, parallel_leg),
    "standing on points, arm with spring and passive joint": lambda s: standing(s, springs=1, passive=1, arm=3),
    "standing on points, elastic joint in the arm": lambda s: standing(s, elastic=1),
    "redundant motors in a loop, elastic joint": lambda s: tree(s, joints=9, loops=1, redundant=1, elastic=1),
    "standing on soles": lambda s: standing(s, feet="fixed"),
    "wheels, arm with springs": lambda s: rolling_base(s, springs=1, passive=1),
    "sprung wheels, arm": lambda s: rolling_base(s, kind="sprung"),
    "tricycle, arm with spring": lambda s: rolling_base(s, kind="tricycle", springs=1),
}


class Errors(NamedTuple):
    """Largest errors relative to the machine's largest value: torques, rates, dependent accelerations, and torques against
    MuJoCo, NaN where MuJoCo cannot model the machine.
    """

    torque: float
    rate: float
    acceleration: float
    mujoco: float


def inputs(robot: Robot, motion: ConstrainedMotion, t: float, q: Any, u: Any, a: Any) -> tuple[np.ndarray, dict[str, Any]]:
    """Return derivatives of q and keywords of Robot.solve at a state."""
    driven = motion.driven(t)
    given = {k: column for column, k in enumerate(motion.given)}
    found = np.zeros((robot.order + 1, robot.n))
    for column, name in enumerate(robot.joint_names):
        k = motion.number[name]
        found[:2, column] = q[motion.q_index[name]], u[k]
        if k in given:
            found[2:, column] = [driven[order][given[k]] for order in range(2, robot.order + 1)]
    names = motion.q_index
    near = [q[names[name]] if name in names else 0.0 for name in robot.tree.joint_names]
    options: dict[str, Any] = {} if robot.platforms else {"guess": np.array(near)}
    if motion.free:
        options["base"] = motion.base_state(q, u)
        if motion.made.base == "prescribed":
            rates = [driven[k][-6:] for k in range(2, 4 if motion.made.measured else robot.order + 1)]
            options["base"] = options["base"].with_motion(rates=np.array(rates))
    if motion.elastic_bodies and motion.source is None:
        order = robot.elastic_joints
        known = [[q[names[f"motor of {name}"]] / motion.ratio[name] for name in order],
                 [u[motion.number[f"motor of {name}"]] for name in order]]
        if motion.made.measured:
            known += [[driven[at][given[motion.number[f"motor of {name}"]]] for name in order] for at in (2, 3)]
        options["motors"] = MotorState(*known)
    return found, options


def compare(made: RandomMachine, seed: int) -> Errors:
    """Return the largest errors of a machine at one instant of a random motion."""
    robot = rnea_ros.load(made.urdf, made.file)
    file = made.file
    decided = bool(file.get("elastic_joints")) and bool(file.get("motors")) and made.base != "floating" and not made.measured
    motion: ConstrainedMotion

    def motors(t: float, q: Any, u: Any) -> np.ndarray:
        """Motion of the rotors as the robot has it: that it is one that the springs ask for is part of the check."""
        given, options = inputs(robot, motion, t, q, u, None)
        found = robot.solve(*given[:robot.order], stages=1, **options)
        return np.array([found.positions[f"motor of {name}"][:3] for name in motion.elastic_bodies]).T

    motion = ConstrainedMotion(made, robot.roles.given, seed, motors if decided else None)
    times, q, u, a, efforts = motion.sample()
    middle = len(times) // 2
    given, options = inputs(robot, motion, 0.0, q[middle], u[middle], a[middle])
    if made.measured:
        given = given[:4]
    found = robot.solve(*given, **options)
    labels = list(motion.motors)
    torque, rate = efforts[middle].copy(), derivatives(times, efforts, 1)
    tau, tau_rate = (np.array([found.efforts[_name(name, file, motion)][k] if _name(name, file, motion) in found.efforts
                               else 0.0 for name in labels]) for k in range(2))
    for k, name in enumerate(labels):  # a rotor with an own coordinate: theta = q + torque / stiffness
        if name in file.get("elastic_joints", {}) and name not in motion.elastic_bodies:
            drive, stiffness = file["drives"][name], file["elastic_joints"][name]["stiffness"]
            inertia = drive["rotor_inertia"] * drive["gear_ratio"]**2
            joint = [part[motion.given.index(motion.number[name])] for part in motion.driven(0.0)]
            torque[k] += inertia * (joint[2] + derivatives(times, efforts[:, k], 2) / stiffness)
            rate[k] += inertia * (joint[3] + derivatives(times, efforts[:, k], 3) / stiffness)
    scale, rate_scale = np.abs(torque).max(), np.abs(rate).max()
    accelerations = _accelerations(found, motion, a[middle])
    if decided:  # the rotors' velocity and acceleration are those of their positions
        motor_states = np.array([motors(t, *state) for t, *state in zip(times, q, u, strict=True)])
        for order in (1, 2):
            slope = derivatives(times, motor_states[:, order - 1], 1)
            accelerations = max(accelerations, np.abs(motor_states[middle, order] - slope).max() / (1.0 + np.abs(slope).max()))
    return Errors(float(np.abs(tau - torque).max() / scale), float(np.abs(tau_rate - rate).max() / rate_scale),
                  float(accelerations), _beside_mujoco(made, motion, efforts[middle]))


# What other oracles judge: rates by differences of sixth order.
OTHERS: Mapping[str, Callable[[int], tuple[float, ...]]] = {
    "differential drive, turret": lambda s: compare_vehicle("differential", s),
    "ball with two motors and a disc, turret": lambda s: compare_vehicle("ball", s),
    "four mecanum wheels, turret": lambda s: compare_vehicle("mecanum", s),
    "three omni wheels, turret": lambda s: compare_vehicle("omni", s),
    "four steered wheels, turret": lambda s: compare_vehicle("four steered wheels", s),
    "flexible links": compare_arm,
    "eel, head given": lambda s: compare_eel("prescribed", s),
    "eel, head free": lambda s: compare_eel("floating", s),
}


def errors_of(name: str, seed: int) -> Errors:
    """Largest errors of a machine of COMBINATIONS or OTHERS."""
    return Errors(*OTHERS[name](seed), np.nan) if name in OTHERS else compare(COMBINATIONS[name](seed), seed)


def _name(name: str, file: Mapping[str, Any], motion: ConstrainedMotion) -> str:
    """Return the name of an effort in a solution; for elastic joints with measured motors, of the effort beyond the spring."""
    if name not in file.get("elastic_joints", {}) or motion.made.measured:
        return name
    return f"motor of {name}" if name not in motion.elastic_bodies else "nothing"


def _accelerations(found: Any, motion: ConstrainedMotion, a: np.ndarray) -> float:
    pairs = [(found.positions[name][2], a[k]) for name, k in motion.number.items()
             if name in found.positions and len(found.positions[name]) > 2]
    if motion.free:
        pairs += list(zip(found.base[1], a[:6], strict=True))
    ours, theirs = np.array(pairs).T
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def _beside_mujoco(made: RandomMachine, motion: ConstrainedMotion, efforts: np.ndarray) -> float:
    if made.file.get("platforms") and motion.free:
        return np.nan  # MuJoCo has free joints only on the world
    return float(np.abs(motion.by_mujoco() - efforts).max() / np.abs(efforts).max())



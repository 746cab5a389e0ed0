"""Robots of combined kinds for the benchmark: Gough-Stewart modules in series, and a biped like Cassie."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnea_ros import Robot

LEFT_POSE = {"roll": 0.1, "yaw": -0.05, "pitch": 0.4, "knee": -1.1, "shin": 0.03, "tarsus": 1.6, "heel": 0.02, "rod1": -0.3,
             "rod2": 0.1, "crank": -1.5, "push": 1.4, "toe": -1.5}


class Urdf:
    """URDF text, link by link; masses and inertias are random and physical."""

    def __init__(self, name: str, root: str, seed: int):
        self._rng, self._name = np.random.default_rng(seed), name
        self._parts = [self._link(root, 4.0)]

    def _link(self, name: str, mass: float) -> str:
        a, b, c = mass * self._rng.uniform(0.002, 0.01, 3)
        x, y, z = 0.05 * self._rng.normal(size=3)
        return (f'<link name="{name}"><inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/><inertia ixx="{a + b}" '
                f'iyy="{b + c}" izz="{c + a}" ixy="0" ixz="0" iyz="0"/></inertial></link>')

    def add(self, link: str, parent: str, joint: str, kind: str, axis: str, xyz: Any = (0, 0, 0), rpy: Any = (0, 0, 0),
            mass: float = 0.0) -> None:
        """Add a link, with or without mass, and the joint that holds it."""
        body = self._link(link, mass) if mass else f'<link name="{link}"/>'
        x, angles = (" ".join(f"{float(value)!r}" for value in values) for values in (xyz, rpy))
        self._parts.append(
            f'{body}<joint name="{joint}" type="{kind}"><parent link="{parent}"/><child link="{link}"/><origin xyz="{x}" '
            f'rpy="{angles}"/><axis xyz="{axis}"/><limit lower="-9" upper="9" effort="1e4" velocity="9"/></joint>')

    def text(self) -> str:
        return f'<robot name="{self._name}">{"".join(self._parts)}</robot>'


def stewart(modules: int) -> tuple[str, dict[str, Any]]:
    """Gough-Stewart platforms in series, each on the one before; 24 joints a module, six of them slides with motors.

    The platform of a module is carried by three slides and three turns, to which six legs are tied by spherical cut joints.
    """
    urdf, cuts, active, parent = Urdf(f"stewart{modules}", "base", modules), {}, [], "base"
    for m in range(modules):
        below, above, height = (0.6, 0.35, 0.7) if m == 0 else (0.35, 0.3, 0.5)
        frame = parent
        for k, (kind, axis) in enumerate([("prismatic", a) for a in ("1 0 0", "0 1 0", "0 0 1")]
                                         + [("revolute", a) for a in ("1 0 0", "0 1 0", "0 0 1")]):
            link = f"platform{m}" if k == 5 else f"carrier{m}{k}"
            urdf.add(link, frame, f"platform{m}_{k}", kind, axis, (0, 0, height) if k == 0 else (0, 0, 0),
                     mass=6.0 if k == 5 else 0.0)
            frame = link
        for k in range(6):
            pair, side = (k + 1) // 2 * 2.0 * np.pi / 3.0, 1.0 if k % 2 else -1.0
            one, two = pair - side * 0.35, pair - side * (np.pi / 3.0 - 0.35)
            foot = np.array([below * np.cos(one), below * np.sin(one), 0.0])
            ball = np.array([above * np.cos(two), above * np.sin(two), 0.0])
            d = ball + [0.0, 0.0, height] - foot
            length = float(np.linalg.norm(d))
            lean = (float(np.arctan2(-d[1], d[2])), float(np.arcsin(d[0] / length)), 0.0)  # of Rx Ry: z along the leg
            leg = f"{m}{k}"
            urdf.add(f"cross{leg}", parent, f"first{leg}", "revolute", "1 0 0", foot, (lean[0], 0.0, 0.0))
            urdf.add(f"cylinder{leg}", f"cross{leg}", f"second{leg}", "revolute", "0 1 0", (0, 0, 0), (0.0, lean[1], 0.0), 1.0)
            urdf.add(f"piston{leg}", f"cylinder{leg}", f"slide{leg}", "prismatic", "0 0 1", (0, 0, length), mass=0.6)
            active.append(f"slide{leg}")
            cuts[f"ball{leg}"] = {"type": "spherical", "first": f"piston{leg}",
                                  "second": {"link": f"platform{m}", "xyz": ball.tolist()}}
        parent = f"platform{m}"
    return urdf.text(), {"version": 1, "loops": {"active": active, "cut_joints": cuts}}


def biped() -> tuple[str, dict[str, Any]]:
    """Biped like Cassie: a free base and 24 joints; in each leg five motors, two springs, and two loops with five joints.

    The heel spring is held by a rod from the thigh; the toe is pushed by a crank on the tarsus.
    """
    urdf, start = Urdf("biped", "pelvis", 0), {}
    for s, side in (("L", 1.0), ("R", -1.0)):
        for link, parent, axis, xyz, mass in (
                ("roll", "pelvis", "1 0 0", (0.02, 0.13 * side, 0), 1.8), ("yaw", "roll", "0 0 1", (0, 0, -0.09), 1.2),
                ("pitch", "yaw", "0 1 0", (0, 0.02 * side, -0.06), 5.5), ("knee", "pitch", "0 1 0", (0.06, 0, -0.12), 0.7),
                ("shin", "knee", "0 1 0", (0.06, 0, -0.04), 0.5), ("tarsus", "shin", "0 1 0", (0.04, 0, -0.43), 0.8),
                ("heel", "tarsus", "0 1 0", (-0.01, 0.03 * side, 0.02), 0.15),
                ("rod1", "pitch", "0 0 1", (0, 0.04 * side, 0), 0.0), ("rod2", "rod1", "0 1 0", (0, 0, 0), 0.16),
                ("crank", "tarsus", "0 1 0", (0.06, 0.02 * side, -0.03), 0.1),
                ("push", "crank", "0 1 0", (0.055, 0, 0), 0.1), ("toe", "tarsus", "0 1 0", (0.4, 0, -0.04), 0.15)):
            urdf.add(s + link, parent if parent == "pelvis" else s + parent, f"{s}_{link}", "revolute", axis, xyz, mass=mass)
        start |= {f"{s}_{name}": value for name, value in LEFT_POSE.items()}
    cuts: dict[str, Any] = {}
    tree = Robot.from_urdf(urdf.text(), backend="reference")
    q = np.array([start[name] for name in tree.joint_names])

    def end(link: str, point: Any, of: str, rpy: Any = (0.0, 0.0, 0.0)) -> dict[str, Any]:
        """The frame of a link that is where a point of another one is."""
        here, there = tree.link_pose(link, q), tree.link_pose(of, q, np.array(point))
        return {"link": link, "xyz": (here.R.T @ (there.p - here.p)).tolist(), "rpy": list(rpy)}

    for s in "LR":
        cuts[f"{s}_heel_rod"] = {"type": "spherical", "first": end(f"{s}rod2", (0.11, 0.0, 0.01), f"{s}heel"),
                                 "second": {"link": f"{s}heel", "xyz": [0.11, 0.0, 0.01]}}
        sideways = [-np.pi / 2, 0.0, 0.0]  # z along the axes of crank and toe
        cuts[f"{s}_toe_rod"] = {"type": "point_on_axis", "first": end(f"{s}push", (0.055, -0.01, 0.02), f"{s}toe", sideways),
                                "second": {"link": f"{s}toe", "xyz": [0.055, -0.01, 0.02], "rpy": sideways}}
    motors = [f"{s}_{name}" for s in "LR" for name in ("roll", "yaw", "pitch", "knee", "crank")]
    springs = {f"{s}_{name}": {"stiffness": stiffness, "rest": 0.0, "damping": 0.3}
               for s in "LR" for name, stiffness in (("shin", 180.0), ("heel", 120.0))}
    return urdf.text(), {"version": 1, "base": "floating", "springs": springs,
                         "loops": {"active": motors, "cut_joints": cuts, "start": start}}

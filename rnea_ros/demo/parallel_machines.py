"""Parametric parallel machines: the Gough-Stewart platform, the delta robot and the planar 3-RRR.

Each is a `Machine`: a URDF with all legs, a URDF with the platform, the joints between them, and the home pose, where all leg
joints are at zero; `Machine.robot()` makes the robot. Every frame is given by its pose in the base frame at home;
links are rods of even density, so every inertia is physically possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import rot_z, rpy_angles
from ..errors import InputError
from ..model.tree import JointDynamics
from ..robots.load import load
from ..robots.robot import Robot

EFFORT, SPEED = 1e4, 10.0  # limits written into the URDFs


class Machine(NamedTuple):
    """legs, platform: URDF texts; loops: section of a robot file; home: position (3,) and rotation (3, 3) of the platform,
    link: its name.
    """

    legs: str
    platform: str
    loops: dict[str, Any]
    home: tuple[Any, Any]
    link: str = "platform"

    def robot(self, joint_dynamics: Mapping[str, JointDynamics] | None = None, **options: Any) -> Robot:
        """Return the machine's robot; options as of rnea_ros.load: gravity, backend, ..."""
        found = load(self.urdf, self.robot_file, **options)
        return found.with_joint_dynamics(joint_dynamics) if joint_dynamics else found

    @property
    def urdf(self) -> str:
        """Legs and platform in one URDF, as rnea_ros.load takes it: the platform is held by a floating joint, at home."""
        legs, platform = (text[text.index(">") + 1:text.rindex("</robot>")].strip() for text in (self.legs, self.platform))
        root = legs.split('"')[1]
        position, rotation = self.home
        origin = f'<origin xyz="{_text(position)}" rpy="{_text(rpy_angles(np.asarray(rotation)))}"/>'
        ends = f'<parent link="{root}"/><child link="{self.link}"/>'
        name = self.legs.split('"')[1].removesuffix("_legs")
        return "\n".join([f'<robot name="{name}">', legs, platform,
                          f'  <joint name="platform_pose" type="floating">{ends}{origin}</joint>', "</robot>"])

    @property
    def robot_file(self) -> dict[str, Any]:
        """Return the content of the robot file that belongs to the URDF."""
        return {"version": 1, "platform": {"link": self.link}, "loops": self.loops}


def gough_stewart(base_radius: float = 1.0, platform_radius: float = 0.6, height: float = 1.2, spread: float = 0.35,
                  platform_mass: float = 40.0, leg_masses: Sequence[float] = (4.0, 2.0)) -> Machine:
    """Hexapod of six legs: universal joint at the base, actuated slide, spherical joint at the platform (6-UPS).

    base_radius, platform_radius : circles of the joints [m]; height : of the platform at home [m]
    spread      : half the angle between the two joints of a pair [rad]
    leg_masses  : cylinder (to the universal joint) and rod (to the platform) of one leg [kg]
    Links cylinder1.., rod1.., platform; joints universal1_x, universal1_y, slide1 ..; the slides are active.
    """
    _positive(base_radius=base_radius, platform_radius=platform_radius, height=height, platform_mass=platform_mass)
    urdf = _Urdf("gough_stewart_legs", "base")
    loops: dict[str, Any] = {"active": [f"slide{k}" for k in range(1, 7)], "cut_joints": {}}
    for k in range(6):
        pair, side = (k + 1) // 2 * (2.0 * np.pi / 3.0), 1.0 if k % 2 else -1.0
        below = _on_circle(base_radius, pair - side * spread, 0.0)
        above = _on_circle(platform_radius, pair - side * (np.pi / 3.0 - spread), height)
        R, length = _along(above - below), float(np.linalg.norm(above - below))
        n = k + 1
        urdf.add(f"cross{n}", "base", f"universal{n}_x", "revolute", (1, 0, 0), (R, below))
        urdf.add(f"cylinder{n}", f"cross{n}", f"universal{n}_y", "revolute", (0, 1, 0), (R, below),
                 _rod(leg_masses[0], 0.55 * length, 0.04, 0.275 * length))
        urdf.add(f"rod{n}", f"cylinder{n}", f"slide{n}", "prismatic", (0, 0, 1), (R, above),
                 _rod(leg_masses[1], 0.55 * length, 0.02, -0.275 * length))
        loops["cut_joints"][f"ball{n}"] = {"type": "spherical", "first": f"rod{n}",
                                       "second": {"link": "platform", "xyz": (above - [0.0, 0.0, height]).tolist()}}
    platform = _Urdf("gough_stewart_platform", "platform", _disc(platform_mass, 1.1 * platform_radius, 0.08))
    return Machine(urdf.text(), platform.text(), loops, ((0.0, 0.0, height), np.eye(3)))


def delta(base_radius: float = 0.2, platform_radius: float = 0.05, arm: float = 0.3, forearm: float = 0.7, droop: float = 0.3,
          platform_mass: float = 0.5, masses: Sequence[float] = (0.8, 0.12)) -> Machine:
    """Delta robot: three arms on motors, each carrying two parallel rods that keep the platform level. It hangs from its base.

    arm, forearm : lengths [m]; droop: slope of the arms at home [rad]; masses: of an arm and of a single rod [kg]
    Each rod hangs on a universal joint and ends in a spherical one, 50 mm to either side of the arm's plane.
    Links arm1.., rod1a, rod1b.., platform; joints motor1.. (active, positive turns the arm down), swing1a, sway1a ..
    """
    _positive(base_radius=base_radius, platform_radius=platform_radius, arm=arm, forearm=forearm, platform_mass=platform_mass)
    elbow = base_radius + arm * np.cos(droop)
    if abs(elbow - platform_radius) >= forearm:
        raise InputError(f"delta: forearm {forearm} m cannot span the {abs(elbow - platform_radius):.3g} m from elbow to "
                         "platform")
    height = -arm * np.sin(droop) - np.sqrt(forearm**2 - (elbow - platform_radius) ** 2)
    urdf = _Urdf("delta_legs", "base")
    loops: dict[str, Any] = {"active": ["motor1", "motor2", "motor3"], "cut_joints": {}}
    for n in (1, 2, 3):
        turn = rot_z(*_cos_sin((n - 1) * 2.0 * np.pi / 3.0))  # y is the motor's axis, x points outward
        R = turn @ _along([np.cos(droop), 0.0, -np.sin(droop)])
        urdf.add(f"arm{n}", "base", f"motor{n}", "revolute", (0, 1, 0), (R, turn @ [base_radius, 0.0, 0.0]),
                 _rod(masses[0], arm, 0.03, 0.5 * arm))
        for side, y in (("a", 0.05), ("b", -0.05)):
            above, below = np.array([elbow, y, -arm * np.sin(droop)]), np.array([platform_radius, y, height])
            pose = turn @ _along(below - above), turn @ above
            urdf.add(f"fork{n}{side}", f"arm{n}", f"swing{n}{side}", "revolute", (0, 1, 0), pose)
            urdf.add(f"rod{n}{side}", f"fork{n}{side}", f"sway{n}{side}", "revolute", (1, 0, 0), pose,
                     _rod(masses[1], forearm, 0.01, 0.5 * forearm))
            loops["cut_joints"][f"ball{n}{side}"] = {
                "type": "spherical", "first": {"link": f"rod{n}{side}", "xyz": [0.0, 0.0, forearm]},
                "second": {"link": "platform", "xyz": (turn @ (below - [0.0, 0.0, height])).tolist()}}
    platform = _Urdf("delta_platform", "platform", _disc(platform_mass, platform_radius + 0.03, 0.02))
    return Machine(urdf.text(), platform.text(), loops, ((0.0, 0.0, height), np.eye(3)))


def planar_3rrr(base_radius: float = 0.5, platform_radius: float = 0.12, link: float = 0.32, platform_mass: float = 2.0,
                masses: Sequence[float] = (0.9, 0.7)) -> Machine:
    """Planar machine in the x y plane: three legs of two links of length `link` [m], three revolute joints each, first active.

    Links upper1, lower1 .., platform; joints motor1, elbow1 ..; all axes are z. The last joint of each leg is cut.
    """
    _positive(base_radius=base_radius, platform_radius=platform_radius, link=link, platform_mass=platform_mass)
    span = base_radius - platform_radius
    if not 0.0 < span < 2.0 * link:
        raise InputError(f"planar 3-RRR: two links of {link} m cannot span the {span:.3g} m from base to platform")
    aside = np.arccos(span / (2.0 * link))
    urdf = _Urdf("planar_3rrr_legs", "base")
    loops: dict[str, Any] = {"active": ["motor1", "motor2", "motor3"], "cut_joints": {}}
    for n in (1, 2, 3):
        angle = (n - 1) * 2.0 * np.pi / 3.0
        motor = _on_circle(base_radius, angle, 0.0)
        upper, lower = (rot_z(*_cos_sin(angle + np.pi + lean)) for lean in (aside, -aside))
        urdf.add(f"upper{n}", "base", f"motor{n}", "revolute", (0, 0, 1), (upper, motor), _bar(masses[0], link))
        urdf.add(f"lower{n}", f"upper{n}", f"elbow{n}", "revolute", (0, 0, 1), (lower, motor + upper @ [link, 0.0, 0.0]),
                 _bar(masses[1], link))
        loops["cut_joints"][f"pin{n}"] = {
            "type": "revolute", "first": {"link": f"lower{n}", "xyz": [link, 0.0, 0.0]},
            "second": {"link": "platform", "xyz": _on_circle(platform_radius, angle, 0.0).tolist()}}
    platform = _Urdf("planar_3rrr_platform", "platform", _disc(platform_mass, platform_radius, 0.02))
    return Machine(urdf.text(), platform.text(), loops, ((0.0, 0.0, 0.0), np.eye(3)))


# ---------------------------------------------------------------------- URDF text


class _Urdf:
    """Links and joints, each link's frame given by its pose in the base frame at joint positions zero."""

    def __init__(self, name: str, root: str, inertial: str = ""):
        self.name, self.poses = name, {root: (np.eye(3), np.zeros(3))}
        self.parts = [f'  <link name="{root}">{inertial}</link>']

    def add(self, link: str, parent: str, joint: str, kind: str, axis: Sequence[float], pose: tuple,
            inertial: str = "") -> None:
        (R0, P0), (R, P) = self.poses[parent], pose
        self.poses[link] = pose
        origin = f'<origin xyz="{_text(R0.T @ (P - P0))}" rpy="{_text(rpy_angles(R0.T @ R))}"/>'
        limit = f'<limit lower="-3.14" upper="3.14" effort="{EFFORT}" velocity="{SPEED}"/>'
        self.parts += [f'  <link name="{link}">{inertial}</link>',
                       f'  <joint name="{joint}" type="{kind}"><parent link="{parent}"/><child link="{link}"/>{origin}'
                       f'<axis xyz="{_text(axis)}"/>{limit}</joint>']

    def text(self) -> str:
        return "\n".join([f'<robot name="{self.name}">', *self.parts, "</robot>"])


def _inertial(mass: float, centre: Sequence[float], moments: Sequence[float]) -> str:
    tensor = " ".join(f'i{axis}{axis}="{float(value)!r}" ' for axis, value in zip("xyz", moments, strict=True))
    return (f'<inertial><origin xyz="{_text(centre)}"/><mass value="{float(mass)!r}"/>'
            f'<inertia {tensor}ixy="0" ixz="0" iyz="0"/></inertial>')


def _cylinder(xyz: Sequence[float], angles: Sequence[float], length: float, radius: float) -> str:
    """Return the visual element of a cylinder, which RViz draws."""
    return (f'<visual><origin xyz="{_text(xyz)}" rpy="{_text(angles)}"/><geometry><cylinder radius="{_text([radius])}" '
            f'length="{_text([length])}"/></geometry></visual>')


def _rod(mass: float, length: float, radius: float, middle: float) -> str:
    """Return a cylinder along z, its middle at z = middle."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    inertial = _inertial(mass, (0.0, 0.0, middle), (across, across, 0.5 * mass * radius**2))
    return inertial + _cylinder((0.0, 0.0, middle), (0.0, 0.0, 0.0), length, radius)


def _bar(mass: float, length: float, radius: float = 0.015) -> str:
    """Return a cylinder along x from the frame's origin."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    inertial = _inertial(mass, (0.5 * length, 0.0, 0.0), (0.5 * mass * radius**2, across, across))
    return inertial + _cylinder((0.5 * length, 0.0, 0.0), (0.0, 0.5 * np.pi, 0.0), length, radius)


def _disc(mass: float, radius: float, height: float) -> str:
    return _rod(mass, height, radius, 0.0)


def _along(direction: Any) -> np.ndarray:
    """Rotation whose z is along the direction, its y as level as can be."""
    z = np.array(direction, dtype=float) / np.linalg.norm(direction)
    y = np.cross(z, [1.0, 0.0, 0.0]) if abs(z[2]) > 0.999999 else np.cross([0.0, 0.0, 1.0], z)
    y = y / np.linalg.norm(y)
    return np.column_stack((np.cross(y, z), y, z))


def _on_circle(radius: float, angle: float, height: float) -> np.ndarray:
    return np.array([radius * np.cos(angle), radius * np.sin(angle), height])


def _cos_sin(angle: float) -> tuple[float, float]:
    return float(np.cos(angle)), float(np.sin(angle))


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _positive(**sizes: float) -> None:
    wrong = [f"{name} = {value}" for name, value in sizes.items() if not (np.isfinite(value) and value > 0.0)]
    if wrong:
        raise InputError(f"{', '.join(wrong)}; sizes and masses must be above zero")

"""Parametric parallel machines: the Gough-Stewart platform, and the links that others are made of.

A `Machine` has a URDF with all legs, a URDF with the platform, the joints between them, and the home pose, where all leg
joints are at zero; `Machine.robot()` makes the robot. Every frame is given by its pose in the base frame at home;
links are rods of even density, so every inertia is physically possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import rpy_angles
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
    check_sizes(base_radius=base_radius, platform_radius=platform_radius, height=height, platform_mass=platform_mass)
    urdf = MachineUrdf("gough_stewart_legs", "base")
    loops: dict[str, Any] = {"active": [f"slide{k}" for k in range(1, 7)], "cut_joints": {}}
    for k in range(6):
        pair, side = (k + 1) // 2 * (2.0 * np.pi / 3.0), 1.0 if k % 2 else -1.0
        below = on_circle(base_radius, pair - side * spread, 0.0)
        above = on_circle(platform_radius, pair - side * (np.pi / 3.0 - spread), height)
        R, length = rotation_along(above - below), float(np.linalg.norm(above - below))
        n = k + 1
        urdf.add(f"cross{n}", "base", f"universal{n}_x", "revolute", (1, 0, 0), (R, below))
        urdf.add(f"cylinder{n}", f"cross{n}", f"universal{n}_y", "revolute", (0, 1, 0), (R, below),
                 rod(leg_masses[0], 0.55 * length, 0.04, 0.275 * length))
        urdf.add(f"rod{n}", f"cylinder{n}", f"slide{n}", "prismatic", (0, 0, 1), (R, above),
                 rod(leg_masses[1], 0.55 * length, 0.02, -0.275 * length))
        loops["cut_joints"][f"ball{n}"] = {"type": "spherical", "first": f"rod{n}",
                                       "second": {"link": "platform", "xyz": (above - [0.0, 0.0, height]).tolist()}}
    platform = MachineUrdf("gough_stewart_platform", "platform", disc(platform_mass, 1.1 * platform_radius, 0.08))
    return Machine(urdf.text(), platform.text(), loops, ((0.0, 0.0, height), np.eye(3)))


# ---------------------------------------------------------------------- URDF text


class MachineUrdf:
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


def inertial_element(mass: float, centre: Sequence[float], moments: Sequence[float]) -> str:
    """Return an <inertial> element: centre of mass and principal moments about it, along the axes of the link."""
    tensor = " ".join(f'i{axis}{axis}="{float(value)!r}" ' for axis, value in zip("xyz", moments, strict=True))
    return (f'<inertial><origin xyz="{_text(centre)}"/><mass value="{float(mass)!r}"/>'
            f'<inertia {tensor}ixy="0" ixz="0" iyz="0"/></inertial>')


def cylinder_element(xyz: Sequence[float], angles: Sequence[float], length: float, radius: float) -> str:
    """Return the visual element of a cylinder, which RViz draws."""
    return (f'<visual><origin xyz="{_text(xyz)}" rpy="{_text(angles)}"/><geometry><cylinder radius="{_text([radius])}" '
            f'length="{_text([length])}"/></geometry></visual>')


def rod(mass: float, length: float, radius: float, middle: float) -> str:
    """Return inertia and shape of a cylinder along z, its middle at z = middle."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    inertial = inertial_element(mass, (0.0, 0.0, middle), (across, across, 0.5 * mass * radius**2))
    return inertial + cylinder_element((0.0, 0.0, middle), (0.0, 0.0, 0.0), length, radius)


def disc(mass: float, radius: float, height: float) -> str:
    """Return inertia and shape of a cylinder along z about the origin."""
    return rod(mass, height, radius, 0.0)


def rotation_along(direction: Any) -> np.ndarray:
    """Return the rotation whose z is along a direction and whose y is as level as possible."""
    z = np.array(direction, dtype=float) / np.linalg.norm(direction)
    y = np.cross(z, [1.0, 0.0, 0.0]) if abs(z[2]) > 0.999999 else np.cross([0.0, 0.0, 1.0], z)
    y = y / np.linalg.norm(y)
    return np.column_stack((np.cross(y, z), y, z))


def on_circle(radius: float, angle: float, height: float) -> np.ndarray:
    """Return the point (3,) at an angle on a circle about z [m]."""
    return np.array([radius * np.cos(angle), radius * np.sin(angle), height])


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def check_sizes(**sizes: float) -> None:
    """Raise InputError unless all sizes are above zero."""
    wrong = [f"{name} = {value}" for name, value in sizes.items() if not (np.isfinite(value) and value > 0.0)]
    if wrong:
        raise InputError(f"{', '.join(wrong)}; sizes and masses must be above zero")

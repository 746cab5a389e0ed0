"""Write the URDFs of demos whose links are rods and boxes of even density: python urdf/generate.py

biped       after Cassie of Agility Robotics: layout, link lengths, masses and springs rounded from its published MuJoCo model
            (github.com/osudrl/cassie-mujoco-sim); rods and shapes simplified
ankles      a humanoid's legs whose ankles are moved by two motors on each shin through rods; numbers chosen here
ship_arm    an arm of six joints on the deck of a ship; numbers chosen here
wheeled_arm a differential drive with an arm of four joints; numbers chosen here
crane       a turning column with a light boom and a load on a wrist; numbers chosen here
eel         ten cylinders of the density of water in a chain; numbers chosen here
quadruped   legs of three joints, about the size and mass of ANYmal C (50 kg, ANYbotics data sheet); numbers rounded here
two_platforms, four_platforms : Gough-Stewart platforms in series, each on the one below; numbers chosen here

What a URDF cannot say is in the robot files beside them; those of the platforms are written here too.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

GREY, DARK, LIGHT, BLUE, ORANGE = "0.45 0.47 0.50", "0.15 0.16 0.18", "0.85 0.85 0.83", "0.12 0.30 0.55", "0.80 0.40 0.10"
EEL_MODULES, EEL_MASS, EEL_LENGTH, EEL_RADIUS = 10, 0.9, 0.14, 0.045  # kg, m, m
HERE = Path(__file__).resolve().parent


def text(numbers) -> str:
    return " ".join(f"{round(float(x), 9) + 0.0:.9g}" for x in numbers)


class Robot:
    """URDF under construction."""

    def __init__(self, name: str, about: str):
        self._name, self._about, self._parts = name, about, []

    def box(self, name: str, mass: float, size, center=(0.0, 0.0, 0.0), colour: str = GREY) -> str:
        """Add a link that is a box."""
        a, b, c = (float(x)**2 for x in size)
        self._link(name, mass, center, (0.0, 0.0, 0.0), [mass / 12.0 * x for x in (b + c, a + c, a + b)],
                   f'<box size="{text(size)}"/>', colour)
        return name

    def rod(self, name: str, mass: float, start, end, radius: float = 0.02, colour: str = GREY) -> str:
        """Add a link that is a cylinder between two points."""
        start, end = np.array(start, dtype=float), np.array(end, dtype=float)
        length = float(np.linalg.norm(end - start))
        x, y, z = (end - start) / length
        across = mass * (3.0 * radius**2 + length**2) / 12.0
        self._link(name, mass, 0.5 * (start + end), (0.0, math.atan2(math.hypot(x, y), z), math.atan2(y, x)),
                   (across, across, 0.5 * mass * radius**2), f'<cylinder radius="{radius:g}" length="{length:.9g}"/>', colour)
        return name

    def cross(self, name: str) -> str:
        """Add a link without mass, as in a universal joint."""
        self._parts.append(f'''  <link name="{name}">
    <visual><geometry><sphere radius="0.015"/></geometry><material name=""><color rgba="{DARK} 1"/></material></visual>
  </link>''')
        return name

    def _link(self, name, mass, xyz, rpy, inertia, shape, colour):
        origin = f'<origin xyz="{text(xyz)}" rpy="{text(rpy)}"/>'
        moments = " ".join(f'i{axis}{axis}="{value:.6g}"' for axis, value in zip("xyz", inertia))
        self._parts.append(f'''  <link name="{name}">
    <inertial>{origin}<mass value="{mass:g}"/><inertia {moments} ixy="0" ixz="0" iyz="0"/></inertial>
    <visual>{origin}<geometry>{shape}</geometry><material name=""><color rgba="{colour} 1"/></material></visual>
  </link>''')

    def joint(self, name: str, parent: str, child: str, xyz, axis: str, limits=(-3.0, 3.0, 200.0, 12.0), rpy=None,
              kind: str = "") -> None:
        """Add a joint about or along x, y or z; limits: lower and upper [rad, m] (0 0: none), effort, velocity.

        kind: of the URDF; default revolute, or continuous without limits
        """
        lower, upper, effort, velocity = limits
        vector = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}[axis]
        kind = kind or ("revolute" if lower < upper else "continuous")
        turn = "" if rpy is None else f' rpy="{text(rpy)}"'
        self._parts.append(f'''  <joint name="{name}" type="{kind}">
    <parent link="{parent}"/><child link="{child}"/><origin xyz="{text(xyz)}"{turn}/><axis xyz="{vector}"/>
    <limit lower="{lower:g}" upper="{upper:g}" effort="{effort:g}" velocity="{velocity:g}"/>
  </joint>''')

    def floating(self, name: str, parent: str, child: str, xyz) -> None:
        """Add a joint that leaves its child free."""
        self._parts.append(f'''  <joint name="{name}" type="floating">
    <parent link="{parent}"/><child link="{child}"/><origin xyz="{text(xyz)}"/>
  </joint>''')

    def text(self) -> str:
        about = f"  {self._about}\n  Written by urdf/generate.py; what a URDF cannot say is in the robot file beside it."
        body = "\n".join(self._parts)
        return f'<?xml version="1.0"?>\n<!--\n{about}\n-->\n<robot name="{self._name}">\n{body}\n</robot>\n'


def biped() -> Robot:
    """Return the biped. At zero all loops are closed. Points of a leg in the plane x z, from the hip's pitch axis."""
    robot = Robot("biped", "A biped with loops and springs, after Cassie of Agility Robotics, masses and lengths rounded.")
    knee, shin, tarsus = np.array([0.12, 0, -0.02]), np.array([0.06, 0, -0.05]), np.array([-0.30, 0, -0.31])
    heel, end, foot = np.array([-0.01, 0, -0.03]), np.array([-0.10, 0, -0.01]), np.array([0.12, 0, -0.39])
    crank, arm = np.array([0.02, 0, -0.065]), 0.055 * np.array([-0.956, 0, -0.294])
    robot.box("pelvis", 10.3, (0.18, 0.22, 0.16), (0.0, 0.0, 0.08), BLUE)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        rod = np.array([0.0, 0.045 * sign, 0.0])
        reach = knee + shin + tarsus + heel + end - rod
        for name, mass, start, stop, radius, colour in (
                ("hip", 1.8, (-0.04, 0, -0.01), (0.04, 0, -0.01), 0.062, DARK),
                ("yaw", 1.2, (0, 0, 0), (0, 0, -0.09), 0.045, GREY), ("thigh", 5.5, (0, 0, 0), knee, 0.06, DARK),
                ("knee", 0.76, (0, 0, 0), shin, 0.03, GREY), ("shin", 0.58, (0, 0, 0), tarsus, 0.018, ORANGE),
                ("tarsus", 0.78, (0, 0, 0), foot, 0.02, GREY), ("heel", 0.13, (0, 0, 0), end, 0.012, ORANGE),
                ("rod", 0.16, (0, 0, 0), reach, 0.008, LIGHT), ("crank", 0.13, (0, 0, 0), arm, 0.012, DARK),
                ("plantar_rod", 0.12, (0, 0, 0), foot - crank, 0.007, LIGHT),
                ("foot", 0.15, (-0.08, 0, -0.01), (0.09, 0, -0.01), 0.015, DARK)):
            robot.rod(f"{side}_{name}", mass, start, stop, radius, colour)
        robot.cross(f"{side}_rod_cross")
        for name, parent, child, xyz, axis, effort in (
                ("hip_roll", "pelvis", "hip", (0.02, 0.135 * sign, 0.0), "x", 112.5),
                ("hip_yaw", "hip", "yaw", (0, 0, -0.07), "z", 112.5),
                ("hip_pitch", "yaw", "thigh", (0, 0, -0.09), "y", 195.2), ("knee_joint", "thigh", "knee", knee, "y", 195.2),
                ("shin_spring", "knee", "shin", shin, "y", 400.0), ("tarsus_joint", "shin", "tarsus", tarsus, "y", 400.0),
                ("heel_spring", "tarsus", "heel", heel, "y", 400.0), ("rod_pitch", "thigh", "rod_cross", rod, "y", 400.0),
                ("rod_roll", "rod_cross", "rod", (0, 0, 0), "x", 400.0), ("toe", "tarsus", "crank", crank, "y", 45.0),
                ("plantar_joint", "crank", "plantar_rod", arm, "y", 400.0),
                ("foot_joint", "tarsus", "foot", foot, "y", 400.0)):
            parent = parent if parent == "pelvis" else f"{side}_{parent}"
            robot.joint(f"{side}_{name}", parent, f"{side}_{child}", xyz, axis, (-2.5, 2.5, effort, 12.0))
    return robot


def ankles() -> Robot:
    """Return legs with driven ankles. At zero all loops are closed: rods are vertical, 0.09 m behind the ankles."""
    robot = Robot("ankles", "Legs of a humanoid whose ankles are moved by two motors on each shin, through rods.")
    robot.box("pelvis", 25.0, (0.2, 0.3, 0.3), (0.0, 0.0, 0.15), BLUE)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        robot.rod(f"{side}_thigh", 6.0, (0, 0, 0), (0, 0, -0.4), 0.05, GREY)
        robot.rod(f"{side}_shin", 3.0, (0, 0, 0), (0, 0, -0.4), 0.05, GREY)
        robot.cross(f"{side}_ankle")
        robot.box(f"{side}_foot", 1.2, (0.24, 0.1, 0.06), (0.03, 0.0, -0.04), DARK)
        robot.joint(f"{side}_hip_pitch", "pelvis", f"{side}_thigh", (0.0, 0.12 * sign, 0.0), "y")
        robot.joint(f"{side}_knee", f"{side}_thigh", f"{side}_shin", (0, 0, -0.4), "y")
        robot.joint(f"{side}_ankle_pitch", f"{side}_shin", f"{side}_ankle", (0, 0, -0.4), "y")
        robot.joint(f"{side}_ankle_roll", f"{side}_ankle", f"{side}_foot", (0, 0, 0), "x")
        for way, y in (("inner", -0.05 * sign), ("outer", 0.05 * sign)):
            name = f"{side}_{way}"
            robot.rod(f"{name}_crank", 0.15, (0, 0, 0), (-0.06, 0, 0), 0.012, DARK)
            robot.cross(f"{name}_cross")
            robot.rod(f"{name}_rod", 0.12, (0, 0, 0), (0, 0, -0.3), 0.008, LIGHT)
            robot.joint(f"{name}_motor", f"{side}_shin", f"{name}_crank", (-0.03, y, -0.1), "y", (-1.0, 1.0, 80.0, 15.0))
            robot.joint(f"{name}_rod_pitch", f"{name}_crank", f"{name}_cross", (-0.06, 0, 0), "y")
            robot.joint(f"{name}_rod_roll", f"{name}_cross", f"{name}_rod", (0, 0, 0), "x")
    return robot


def ship_arm() -> Robot:
    robot = Robot("ship_arm", "An arm of six joints on the deck of a ship.")
    robot.box("deck", 400.0, (1.6, 1.2, 0.1), (0.0, 0.0, -0.05), LIGHT)
    links = (("turret", 30.0, (0, 0, 0), (0, 0, 0.35), 0.12), ("upper_arm", 25.0, (0, 0, 0), (0, 0, 0.8), 0.07),
             ("forearm", 15.0, (0, 0, 0), (0.7, 0, 0), 0.055), ("wrist", 5.0, (0, 0, 0), (0.12, 0, 0), 0.05),
             ("hand", 3.0, (0, 0, 0), (0.1, 0, 0), 0.045), ("tool", 4.0, (0, 0, 0), (0.15, 0, 0.05), 0.03))
    joints = (("yaw", (0, 0, 0), "z", 900.0), ("shoulder", (0, 0, 0.35), "y", 900.0), ("elbow", (0, 0, 0.8), "y", 500.0),
              ("wrist_roll", (0.7, 0, 0), "x", 120.0), ("wrist_pitch", (0.12, 0, 0), "y", 120.0),
              ("tool_roll", (0.1, 0, 0), "x", 60.0))
    parent = "deck"
    for k, ((link, mass, start, end, radius), (joint, xyz, axis, effort)) in enumerate(zip(links, joints)):
        robot.rod(link, mass, start, end, radius, (BLUE, ORANGE, ORANGE, DARK, GREY, DARK)[k])
        robot.joint(joint, parent, link, xyz, axis, (-2.8, 2.8, effort, 3.0))
        parent = link
    return robot


def wheeled_arm() -> Robot:
    robot = Robot("wheeled_arm", "A differential drive with a castor and an arm of four joints.")
    robot.box("chassis", 30.0, (0.7, 0.46, 0.18), (-0.05, 0.0, 0.24), BLUE)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        robot.rod(f"{side}_wheel", 2.5, (0, -0.025, 0), (0, 0.025, 0), 0.15, DARK)
        robot.joint(f"{side}_wheel_joint", "chassis", f"{side}_wheel", (0.0, 0.25 * sign, 0.15), "y", (0.0, 0.0, 60.0, 20.0))
    links = (("turret", 4.0, (0, 0, 0), (0, 0, 0.15), 0.06), ("upper_arm", 3.0, (0, 0, 0), (0, 0, 0.4), 0.04),
             ("forearm", 2.0, (0, 0, 0), (0.35, 0, 0), 0.035), ("hand", 1.0, (0, 0, 0), (0.12, 0, 0), 0.03))
    joints = (("turret_joint", (0.15, 0, 0.33), "z"), ("shoulder", (0, 0, 0.15), "y"), ("elbow", (0, 0, 0.4), "y"),
              ("wrist", (0.35, 0, 0), "y"))
    parent = "chassis"
    for k, ((link, mass, start, end, radius), (joint, xyz, axis)) in enumerate(zip(links, joints)):
        robot.rod(link, mass, start, end, radius, (DARK, ORANGE, ORANGE, GREY)[k])
        robot.joint(joint, parent, link, xyz, axis, (-2.8, 2.8, 80.0, 4.0))
        parent = link
    return robot


def crane() -> Robot:
    robot = Robot("crane", "A column that turns, a light boom that bends, and a load on a wrist at its end.")
    robot.rod("column", 20.0, (0, 0, 0), (0, 0, 0.5), 0.1, DARK)
    robot.rod("mast", 8.0, (0, 0, 0), (0, 0, 0.3), 0.06, GREY)
    robot.rod("boom", 1.5, (0, 0, 0), (1.8, 0, 0), 0.02, BLUE)
    robot.rod("load", 1.0, (0, 0, 0), (0.25, 0, 0), 0.05, ORANGE)
    robot.joint("turn", "column", "mast", (0, 0, 0.5), "z", (-3.0, 3.0, 100.0, 3.0))
    robot.joint("lift", "mast", "boom", (0, 0, 0.3), "y", (-1.4, 1.4, 150.0, 3.0))
    robot.joint("wrist", "boom", "load", (1.8, 0, 0), "y", (-2.5, 2.5, 20.0, 6.0))
    return robot


def eel() -> Robot:
    robot = Robot("eel", "A serial eel: ten modules, head first, with vertical axes between them.")
    for k in range(EEL_MODULES):
        colour = ORANGE if k == 0 else BLUE if k % 2 else GREY
        robot.rod(f"module{k}", EEL_MASS, (0, 0, 0), (-EEL_LENGTH, 0, 0), EEL_RADIUS, colour)
        if k:
            robot.joint(f"joint{k}", f"module{k - 1}", f"module{k}", (-EEL_LENGTH, 0, 0), "z", (-1.2, 1.2, 10.0, 8.0))
    return robot


def eel_file() -> str:
    """Return the robot file of the eel: slender bodies of the density of water."""
    across, area = EEL_MASS * EEL_LENGTH**2 / 12.0, 2.0 * EEL_RADIUS * EEL_LENGTH
    body = {"center": (-0.5 * EEL_LENGTH, 0, 0), "added_mass": (0, EEL_MASS, EEL_MASS), "added_inertia": (0, across, across),
            "quadratic_drag": [0.5 * 1000.0 * c * area for c in (0.06, 1.2, 1.2)]}
    entries = ", ".join(f"{name}: [{', '.join(f'{float(x):.6g}' for x in values)}]" for name, values in body.items())
    lines = ["# What urdf/eel.urdf cannot say: water around every module. Written by urdf/generate.py.", "", "version: 1",
             "base: floating", "", "fluid:", "  density: 1000", "  links:",
             *(f"    module{k}: {{{entries}, volume: {EEL_MASS / 1000.0:.6g}}}" for k in range(EEL_MODULES))]
    return "\n".join(lines) + "\n"


def quadruped() -> Robot:
    robot = Robot("quadruped", "A quadruped with legs of three joints, of about the size and mass of ANYmal C.")
    robot.box("trunk", 28.0, (0.6, 0.3, 0.2), (0.0, 0.0, 0.0), BLUE)
    for name, x, y in (("LF", 1.0, 1.0), ("RF", 1.0, -1.0), ("LH", -1.0, 1.0), ("RH", -1.0, -1.0)):
        robot.rod(f"{name}_hip", 2.0, (-0.05, 0, 0), (0.05, 0, 0), 0.065, DARK)
        robot.rod(f"{name}_thigh", 2.8, (0, 0, 0), (0, 0.05 * y, -0.32), 0.04, GREY)
        robot.rod(f"{name}_shank", 0.7, (0, 0, 0), (0, 0, -0.33), 0.025, LIGHT)
        robot.joint(f"{name}_HAA", "trunk", f"{name}_hip", (0.32 * x, 0.12 * y, 0.0), "x", (-0.8, 0.8, 80.0, 8.0))
        robot.joint(f"{name}_HFE", f"{name}_hip", f"{name}_thigh", (0.0, 0.1 * y, 0.0), "y", (-2.0, 2.0, 80.0, 8.0))
        robot.joint(f"{name}_KFE", f"{name}_thigh", f"{name}_shank", (0, 0.05 * y, -0.32), "y", (-2.6, 2.6, 80.0, 8.0))
    return robot


# Gough-Stewart platforms in series, from the ground up: radius below and above [m], height [m], mass [kg].
LEVELS = ((0.60, 0.42, 0.70, 12.0), (0.40, 0.32, 0.55, 8.0), (0.31, 0.25, 0.45, 6.0), (0.24, 0.20, 0.40, 4.0))
SPREAD = 0.35  # half the angle between the two joints of a pair [rad]


def _legs(level: int):
    """Foot and ball of the six legs of a level, each in the frame of its platform (3,) [m]."""
    below, above, height, _ = LEVELS[level]
    for k in range(6):
        pair, side = (k + 1) // 2 * 2.0 * math.pi / 3.0, 1.0 if k % 2 else -1.0
        one, two = pair - side * SPREAD, pair - side * (math.pi / 3.0 - SPREAD)
        yield (np.array([below * math.cos(one), below * math.sin(one), 0.0]),
               np.array([above * math.cos(two), above * math.sin(two), 0.0]), height)


def platforms(count: int) -> Robot:
    """Platforms in series; all legs at zero at home."""
    name = {2: "two_platforms", 4: "four_platforms"}[count]
    robot = Robot(name, f"{count} Gough-Stewart platforms in series: legs of two hinges, a slide with a motor and a ball.")
    robot.rod("ground", 50.0, (0, 0, -0.06), (0, 0, -0.02), 0.66, GREY)
    parent, at = "ground", 0.0
    for level in range(count):
        platform, height, mass = f"platform{level + 1}", LEVELS[level][2], LEVELS[level][3]
        robot.rod(platform, mass, (0, 0, -0.02), (0, 0, 0.0), 1.05 * LEVELS[level][1], (BLUE, ORANGE)[level % 2])
        robot.floating(f"pose{level + 1}", "ground", platform, (0.0, 0.0, at + height))
        for k, (foot, ball, _) in enumerate(_legs(level), start=1):
            d = ball + [0.0, 0.0, height] - foot
            length, leg = float(np.linalg.norm(d)), f"{level + 1}{k}"
            lean = math.atan2(-d[1], d[2]), math.asin(d[0] / length)  # Rx Ry: z along the leg
            robot.cross(f"cross{leg}")
            robot.rod(f"cylinder{leg}", 0.08 * mass, (0, 0, 0), (0, 0, 0.55 * length), 0.016, DARK)
            robot.rod(f"rod{leg}", 0.04 * mass, (0, 0, -0.55 * length), (0, 0, 0), 0.008, LIGHT)
            robot.joint(f"first{leg}", parent, f"cross{leg}", foot, "x", (-1.5, 1.5, 200.0, 12.0), (lean[0], 0.0, 0.0))
            robot.joint(f"second{leg}", f"cross{leg}", f"cylinder{leg}", (0, 0, 0), "y", (-1.5, 1.5, 200.0, 12.0),
                        (0.0, lean[1], 0.0))
            robot.joint(f"slide{leg}", f"cylinder{leg}", f"rod{leg}", (0, 0, length), "z", (-0.2, 0.2, 2000.0, 2.0),
                        kind="prismatic")
        parent, at = platform, at + height
    return robot


def platform_file(count: int) -> str:
    """Return the robot file of platforms in series."""
    urdf = f"urdf/{'two' if count == 2 else 'four'}_platforms.urdf"
    lines = [f"# What {urdf} cannot say: the legs end at the platforms. Written by urdf/generate.py.", "", "version: 1",
             "accepted_warnings: [missing_mass]  # of the crosses in the universal joints", "", "platforms:",
             *(f"  platform{level + 1}: {{}}" for level in range(count)), "", "loops:", "  active:"]
    lines += [f"    - slide{level + 1}{k}" for level in range(count) for k in range(1, 7)]
    lines.append("  cut_joints:")
    for level in range(count):
        for k, (_, ball, _) in enumerate(_legs(level), start=1):
            xyz = ", ".join(f"{round(float(x), 9) + 0.0:.9g}" for x in ball)
            lines += [f"    ball{level + 1}{k}:", "      type: spherical", f"      first: rod{level + 1}{k}",
                      f"      second: {{link: platform{level + 1}, xyz: [{xyz}]}}"]
    return "\n".join(lines) + "\n"


def two_platforms() -> Robot:
    return platforms(2)


def four_platforms() -> Robot:
    return platforms(4)


ROBOTS = {make.__name__: make for make in (biped, ankles, ship_arm, wheeled_arm, crane, eel, quadruped, two_platforms,
                                           four_platforms)}

if __name__ == "__main__":
    for name, make in ROBOTS.items():
        (HERE / f"{name}.urdf").write_text(make().text(), encoding="utf-8")
    (HERE / "eel.robot.yaml").write_text(eel_file(), encoding="utf-8")
    for count, name in ((2, "two_platforms"), (4, "four_platforms")):
        (HERE / f"{name}.robot.yaml").write_text(platform_file(count), encoding="utf-8")

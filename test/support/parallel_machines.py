"""Parallel machines beside the Gough-Stewart platform: the delta robot and the planar 3-RRR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnea_ros import InputError
from rnea_ros.algebra.vectors import rot_z
from rnea_ros.sim.machines import (
    Machine,
    MachineUrdf,
    check_sizes,
    cylinder_element,
    disc,
    inertial_element,
    on_circle,
    rod,
    rotation_along,
)


def delta(base_radius: float = 0.2, platform_radius: float = 0.05, arm: float = 0.3, forearm: float = 0.7, droop: float = 0.3,
          platform_mass: float = 0.5, masses: Sequence[float] = (0.8, 0.12)) -> Machine:
    """Delta robot: three arms on motors, each carrying two parallel rods that keep the platform level. It hangs from its base.

    arm, forearm : lengths [m]; droop: slope of the arms at home [rad]; masses: of an arm and of a single rod [kg]
    Each rod hangs on a universal joint and ends in a spherical one, 50 mm to either side of the arm's plane.
    Links arm1.., rod1a, rod1b.., platform; joints motor1.. (active, positive turns the arm down), swing1a, sway1a ..
    """
    check_sizes(base_radius=base_radius, platform_radius=platform_radius, arm=arm, forearm=forearm,
                platform_mass=platform_mass)
    elbow = base_radius + arm * np.cos(droop)
    if abs(elbow - platform_radius) >= forearm:
        raise InputError(f"delta: forearm {forearm} m cannot span the {abs(elbow - platform_radius):.3g} m from elbow to "
                         "platform")
    height = -arm * np.sin(droop) - np.sqrt(forearm**2 - (elbow - platform_radius) ** 2)
    urdf = MachineUrdf("delta_legs", "base")
    loops: dict[str, Any] = {"active": ["motor1", "motor2", "motor3"], "cut_joints": {}}
    for n in (1, 2, 3):
        turn = rot_z(*_cos_sin((n - 1) * 2.0 * np.pi / 3.0))  # y is the motor's axis, x points outward
        R = turn @ rotation_along([np.cos(droop), 0.0, -np.sin(droop)])
        urdf.add(f"arm{n}", "base", f"motor{n}", "revolute", (0, 1, 0), (R, turn @ [base_radius, 0.0, 0.0]),
                 rod(masses[0], arm, 0.03, 0.5 * arm))
        for side, y in (("a", 0.05), ("b", -0.05)):
            above, below = np.array([elbow, y, -arm * np.sin(droop)]), np.array([platform_radius, y, height])
            pose = turn @ rotation_along(below - above), turn @ above
            urdf.add(f"fork{n}{side}", f"arm{n}", f"swing{n}{side}", "revolute", (0, 1, 0), pose)
            urdf.add(f"rod{n}{side}", f"fork{n}{side}", f"sway{n}{side}", "revolute", (1, 0, 0), pose,
                     rod(masses[1], forearm, 0.01, 0.5 * forearm))
            loops["cut_joints"][f"ball{n}{side}"] = {
                "type": "spherical", "first": {"link": f"rod{n}{side}", "xyz": [0.0, 0.0, forearm]},
                "second": {"link": "platform", "xyz": (turn @ (below - [0.0, 0.0, height])).tolist()}}
    platform = MachineUrdf("delta_platform", "platform", disc(platform_mass, platform_radius + 0.03, 0.02))
    return Machine(urdf.text(), platform.text(), loops, ((0.0, 0.0, height), np.eye(3)))


def planar_3rrr(base_radius: float = 0.5, platform_radius: float = 0.12, link: float = 0.32, platform_mass: float = 2.0,
                masses: Sequence[float] = (0.9, 0.7)) -> Machine:
    """Planar machine in the x y plane: three legs of two links of length `link` [m], three revolute joints each, first active.

    Links upper1, lower1 .., platform; joints motor1, elbow1 ..; all axes are z. The last joint of each leg is cut.
    """
    check_sizes(base_radius=base_radius, platform_radius=platform_radius, link=link, platform_mass=platform_mass)
    span = base_radius - platform_radius
    if not 0.0 < span < 2.0 * link:
        raise InputError(f"planar 3-RRR: two links of {link} m cannot span the {span:.3g} m from base to platform")
    aside = np.arccos(span / (2.0 * link))
    urdf = MachineUrdf("planar_3rrr_legs", "base")
    loops: dict[str, Any] = {"active": ["motor1", "motor2", "motor3"], "cut_joints": {}}
    for n in (1, 2, 3):
        angle = (n - 1) * 2.0 * np.pi / 3.0
        motor = on_circle(base_radius, angle, 0.0)
        upper, lower = (rot_z(*_cos_sin(angle + np.pi + lean)) for lean in (aside, -aside))
        urdf.add(f"upper{n}", "base", f"motor{n}", "revolute", (0, 0, 1), (upper, motor), _bar(masses[0], link))
        urdf.add(f"lower{n}", f"upper{n}", f"elbow{n}", "revolute", (0, 0, 1), (lower, motor + upper @ [link, 0.0, 0.0]),
                 _bar(masses[1], link))
        loops["cut_joints"][f"pin{n}"] = {
            "type": "revolute", "first": {"link": f"lower{n}", "xyz": [link, 0.0, 0.0]},
            "second": {"link": "platform", "xyz": on_circle(platform_radius, angle, 0.0).tolist()}}
    platform = MachineUrdf("planar_3rrr_platform", "platform", disc(platform_mass, platform_radius, 0.02))
    return Machine(urdf.text(), platform.text(), loops, ((0.0, 0.0, 0.0), np.eye(3)))


def _bar(mass: float, length: float, radius: float = 0.015) -> str:
    """Return a cylinder along x from the frame's origin."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    inertial = inertial_element(mass, (0.5 * length, 0.0, 0.0), (0.5 * mass * radius**2, across, across))
    return inertial + cylinder_element((0.5 * length, 0.0, 0.0), (0.0, 0.5 * np.pi, 0.0), length, radius)


def _cos_sin(angle: float) -> tuple[float, float]:
    return float(np.cos(angle)), float(np.sin(angle))

"""A light boom with a load: how far it bends, what its motor must do, and a motion that leaves no vibration.

    python examples/crane.py [OUT_DIR]

The boom is a beam with three assumed modes in place of its rigid link (Boyer and Khalil 1998). Along the motion of hub and
wrist the deflection of the boom is predicted; torque, torque rate and bending moment at its root follow exactly. The same
motion, shaped by a ZVD shaper for the lowest frequency, is half a period longer and ends still.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import rnea_ros
from rnea_ros import STYLE, picture

BOOM = ('<link name="boom"><inertial><origin xyz="0.6 0 0"/><mass value="0.9"/><inertia ixx="0.0002" ixy="0" ixz="0" '
        'iyy="0.1081" iyz="0" izz="0.1081"/></inertial></link>')
LOAD = ('<link name="load"><inertial><origin xyz="0.1 0 0"/><mass value="0.6"/><inertia ixx="0.002" ixy="0" ixz="0" '
        'iyy="0.004" iyz="0" izz="0.004"/></inertial></link>')
JOINT = ('<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><origin xyz="{3} 0 0"/>'
         '<axis xyz="0 0 1"/></joint>')
URDF = (f'<robot name="crane"><link name="column"/>{BOOM}{LOAD}{JOINT.format("hub", "column", "boom", 0)}'
        f'{JOINT.format("wrist", "boom", "load", 1.2)}</robot>')
ROBOT_FILE = {"version": 1, "flexible_links": {"boom": {"end": [1.2, 0, 0], "damping": 0.005, "bending": {
    "y": {"direction": [0, 1, 0], "stiffness": 200.0, "section_modulus": 6.0e-7}}}}}  # aluminium tube
DURATION, AFTER, RATE = 1.2, 1.0, 200.0  # s, s, Hz


def main(out_dir: str | Path = ".") -> None:
    robot = rnea_ros.load(URDF, ROBOT_FILE)
    free = rnea_ros.free_vibration(robot, np.zeros(robot.n))
    print(f"the boom vibrates with {', '.join(f'{w / 2.0 / np.pi:.2f}' for w in free.frequency)} Hz")
    t = np.arange(0.0, DURATION + AFTER, 1.0 / RATE)
    step, share = np.polynomial.Polynomial([0, 0, 0, 0, 35, -84, 70, -20]), np.minimum(t / DURATION, 1.0)
    motion = np.array([step.deriv(k)(share) / DURATION**k for k in range(4)])[:, :, None] * [1.4, -0.6]
    shaper = rnea_ros.input_shaper(free.frequency[:1], free.damping_ratio[:1], "zvd")
    found = []
    for name, (times, driven) in (("as planned", (t, motion)), ("shaped", shaper.shape(t, motion))):
        whole = rnea_ros.predict_deflection(robot, times, *driven)
        torque, rate = robot.torque_and_rate(*whole)
        hub = robot.joint_names.index("hub")
        tip = rnea_ros.tip_deflection(robot, whole[0])["boom"][:, 1]
        stress = rnea_ros.root_loads(robot, *whole)["boom"]["y"].stress[:, 0]
        end = int((DURATION + shaper.duration) * RATE) + 1 if name == "shaped" else int(DURATION * RATE) + 1
        left = rnea_ros.residual_vibration(robot, whole[:, end])["boom"]
        most = [np.abs(values).max() for values in (tip, stress / 1e6, torque[:, hub], rate[:, hub])]
        print("{}: bends by {:.3f} m, {:.0f} MPa, hub {:.1f} N m and {:.0f} N m/s; {:.2f} mm are left".format(
            name, *most, 1e3 * left))
        found.append((name, times, tip, torque[:, hub], rate[:, hub], left))
    with picture(Path(out_dir) / "crane.png", (9, 6.5), settings=STYLE) as figure:
        axes = figure.subplots(3, 1, sharex=True)
        for name, times, *curves, _ in found:
            for plot, curve in zip(axes, curves, strict=True):
                plot.plot(times, curve, label=name)
        titles = ("deflection of the end [m]", "torque of the hub [N m]", "its rate [N m/s]")
        for plot, title in zip(axes, titles, strict=True):
            plot.set(title=title)
        axes[0].legend()
        axes[-1].set(xlabel="time [s]")
    assert found[1][-1] < 0.1 * found[0][-1]


if __name__ == "__main__":
    main(*sys.argv[1:2])

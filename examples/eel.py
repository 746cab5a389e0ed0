"""A serial eel swims: the joints undulate, the water decides how the head moves, torques and torque rates follow.

    python examples/eel.py [OUT_DIR]

Rigid modules with added mass and drag of slender bodies (Khalil, Gallot, Boyer 2007), declared in the robot file. The water's
forces are rows of the equations of motion, so that the acceleration of the head, the torques and their rates are exact. The
wave leans to one side between the fifth and the eighth second: the eel turns.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, BaseState, color_scale, derivatives_of_time, load, picture, simulate_free_base, smooth_step

MODULES, LENGTH, RADIUS, WATER = 10, 0.14, 0.045, 1000.0  # length and radius of a module [m]; density [kg/m^3]
FREQUENCY, WAVES, DURATION = 0.8, 1.1, 10.0  # Hz, wavelengths on the body, s
LINK = ('<link name="m{0}"><inertial><origin xyz="{1} 0 0"/><mass value="{2}"/><inertia ixx="{3}" ixy="0" ixz="0" iyy="{4}" '
        'iyz="0" izz="{4}"/></inertial></link>')
JOINT = ('<joint name="j{0}" type="continuous"><parent link="m{1}"/><child link="m{0}"/><origin xyz="{2} 0 0"/>'
         '<axis xyz="0 0 1"/></joint>')


def eel() -> tuple[str, dict]:
    """URDF and robot file: cylinders of the density of water, head first."""
    volume = np.pi * RADIUS**2 * LENGTH
    m, across = WATER * volume, WATER * volume * (RADIUS**2 / 4.0 + LENGTH**2 / 12.0)
    urdf = "".join(LINK.format(k, -0.5 * LENGTH, m, 0.5 * m * RADIUS**2, across) for k in range(MODULES))
    urdf += "".join(JOINT.format(k, k - 1, -LENGTH) for k in range(1, MODULES))
    area = 2.0 * RADIUS * LENGTH
    body = {"center": [-0.5 * LENGTH, 0, 0], "volume": float(volume), "added_mass": [0.0, m, m],
            "added_inertia": [0.0, m * LENGTH**2 / 12.0, m * LENGTH**2 / 12.0],
            "quadratic_drag": [0.5 * WATER * 0.06 * area, 0.5 * WATER * 1.2 * area, 0.5 * WATER * 1.2 * area]}
    links = {f"m{k}": body for k in range(MODULES)}
    return f'<robot name="eel">{urdf}</robot>', {"base": "floating", "fluid": {"density": WATER, "links": links}}


def wave(t) -> list:
    """Joint angles: a wave that runs from head to tail and grows towards it, and leans while the eel turns."""
    lean = 0.12 * (smooth_step(t - 5.0) - smooth_step(t - 7.0))
    return [smooth_step(t) * (0.15 + 0.3 * s) * np.sin(2 * np.pi * (FREQUENCY * t - WAVES * s)) + lean
            for s in np.arange(1, MODULES) / MODULES]


def main(out_dir: str | Path = ".") -> None:
    robot = load(*eel())
    times = np.arange(0.0, DURATION, 0.01)
    swum = simulate_free_base(robot, lambda t: derivatives_of_time(wave, t, 2), times)
    states = [BaseState.from_vector(row) for row in swum.base]
    found = [robot.torque_and_rate(*derivatives_of_time(wave, t, 3), base=state)
             for t, state in zip(times, states, strict=True)]
    tau, rate = np.array(found).swapaxes(0, 1)
    off = np.abs(np.gradient(tau, times, axis=0)[1:-1] - rate[1:-1]).max() / np.abs(rate).max()
    head = swum.base[:, :2]
    print(f"it swims {np.linalg.norm(np.diff(head, axis=0), axis=1).sum():.2f} m in {DURATION} s, "
          f"{np.linalg.norm(states[480].velocity[:2]):.2f} m/s; torques to {np.abs(tau).max():.2f} N m, rates to "
          f"{np.abs(rate).max():.1f} N m/s, which are the slopes of the torques within {100 * off:.1f} %")
    with picture(Path(out_dir) / "eel.png", (11, 6), settings=STYLE) as figure:
        above, torques = figure.subplots(2, 1, height_ratios=(1.6, 1.0))
        for colour, k in zip(color_scale(6), np.linspace(0, len(times) - 1, 6).astype(int), strict=True):
            heading = 2.0 * np.arctan2(swum.base[k, 5], swum.base[k, 6]) + np.cumsum([0.0, *swum.q[k]])
            body = head[k] - np.cumsum(LENGTH * np.column_stack((np.cos(heading), np.sin(heading))), axis=0)
            above.plot(*np.vstack((head[k], body)).T, color=colour, linewidth=5, label=f"{times[k]:.0f} s")
        above.plot(*head.T, color="black", linewidth=0.8)
        above.set(aspect="equal", title="the eel from above [m]")
        above.legend(ncols=6)
        torques.plot(times, tau[:, [0, 4, 8]], label=["first joint", "middle joint", "last joint"])
        torques.set(title="torques [N m]", xlabel="time [s]")
        torques.legend(ncols=3)
    assert off < 0.02 and np.linalg.norm(head[-1]) > 1.0


if __name__ == "__main__":
    main(*sys.argv[1:2])

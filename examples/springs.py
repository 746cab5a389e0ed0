"""A pendulum with a sprung wrist (khalil-rne section 6): nothing drives the wrist but its spring, and yet its motion is exact.

    python examples/springs.py [OUT_DIR]

A motor turns the first joint as planned; where the wrist goes follows. Its acceleration and jerk, the motor's torque and the
torque's rate come out of one call at every instant, and a Taylor step of the third order carries the wrist to the next one.
Checked against what holds for any motion: the motor's power is what the energy gains, spring included.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import rnea_ros
from rnea_ros import STYLE, picture

LINK = ('<link name="{0}"><inertial><origin xyz="0 0 -0.2"/><mass value="1.2"/>'
        '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.004"/></inertial></link>')
JOINT = ('<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><origin xyz="0 0 {3}"/>'
         '<axis xyz="0 1 0"/></joint>')
URDF = (f'<robot name="pendulum"><link name="base"/>{LINK.format("upper")}{LINK.format("lower")}'
        f'{JOINT.format("shoulder", "base", "upper", 0)}{JOINT.format("wrist", "upper", "lower", -0.4)}</robot>')
STIFFNESS, REST = 4.0, 0.2  # N m/rad, rad
ROBOT_FILE = {"version": 1, "springs": {"wrist": {"stiffness": STIFFNESS, "rest": REST}}}
DURATION, STEPS = 2.0, 4000


def swing(t: float) -> np.ndarray:
    """q, qd, qdd, qddd of the shoulder: a wave that begins and ends at rest."""
    w = 2.0 * np.pi / DURATION
    return 0.6 * np.array([1.0 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t), -w**3 * np.sin(w * t)])


def draw(path: Path, wrist, torque, rate) -> None:
    t = np.linspace(0.0, DURATION, len(wrist))
    with picture(path, (9, 6.5), settings=STYLE) as figure:
        angles, torques, rates = figure.subplots(3, 1, sharex=True, height_ratios=(1.3, 1, 1))
        angles.plot(t, [swing(x)[0] for x in t], label="shoulder, as planned")
        angles.plot(t, wrist, label="wrist, as its spring lets it")
        angles.set(title="angles [rad]")
        angles.legend()
        torques.plot(t, torque)
        torques.set(title="torque of the shoulder's motor [N m]")
        rates.plot(t, rate)
        rates.set(title="its rate [N m/s]", xlabel="time [s]")


def main(out_dir: str | Path = ".") -> None:
    robot = rnea_ros.load(URDF, ROBOT_FILE)
    h, wrist, speed = DURATION / STEPS, REST, 0.0
    rows = []
    for k in range(STEPS + 1):
        q, qd, qdd, qddd = (np.array([planned, free]) for planned, free in zip(swing(k * h), (wrist, speed, 0.0, 0.0)))
        found = robot.solve(q, qd, qdd, qddd)
        _, _, acceleration, jerk = found.positions["wrist"]
        torque, rate = found.efforts["shoulder"]
        energy = robot.tree.energy(q, qd).total + 0.5 * STIFFNESS * (wrist - REST) ** 2  # of links, gravity and spring [J]
        rows.append((wrist, torque, rate, torque * qd[0], energy))
        wrist += h * (speed + h / 2.0 * (acceleration + h / 3.0 * jerk))
        speed += h * (acceleration + h / 2.0 * jerk)
    path, torques, rates, powers, energies = np.array(rows).T
    work = np.concatenate(([0.0], np.cumsum(0.5 * h * (powers[1:] + powers[:-1]))))
    lost = np.abs(energies - energies[0] - work).max()
    slope = np.gradient(torques, h)[1:-1]
    print(f"wrist, {STIFFNESS} N m/rad: from {path.min():.3f} to {path.max():.3f} rad; motor: {torques.min():.3f} to "
          f"{torques.max():.3f} N m, {np.abs(rates).max():.3f} N m/s at most")
    print(f"energy gained is the motor's work within {lost:.1e} J of {energies.max() - energies.min():.2f} J")
    print(f"rate of the torque and its central difference: {np.abs(slope - rates[1:-1]).max():.1e} N m/s apart")
    draw(Path(out_dir) / "springs.png", path, torques, rates)
    assert lost < 2e-5 and np.abs(slope - rates[1:-1]).max() < 1e-3


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""A vehicle on four steered wheels with an arm turns ever tighter: when it slips, and when it tips over.

    python examples/four_wheels.py [OUT_DIR]

More motors drive than the motion needs: torques are the least ones. Ground forces, their shares of friction and the distance
of the zero moment point from the edge of the support polygon follow, load of the arm included.
"""

import sys
from pathlib import Path

import numpy as np

import rnea_ros
from rnea_ros import STYLE, picture

LINK = ('<link name="{0}"><inertial><origin xyz="{1}"/><mass value="{2}"/><inertia ixx="{3}" ixy="0" ixz="0" iyy="{3}" '
        'iyz="0" izz="{3}"/></inertial></link>')
JOINT = ('<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><origin xyz="{3}"/>'
         '<axis xyz="{4}"/></joint>')
RADIUS = 0.2
CORNERS = {"front left": (0.5, 0.35), "front right": (0.5, -0.35), "rear left": (-0.5, 0.35), "rear right": (-0.5, -0.35)}
SPEED, DURATION, RATE = 2.0, 4.0, 100.0  # m/s, s, Hz


def vehicle() -> tuple[str, dict]:
    """URDF and robot file."""
    body = LINK.format("chassis", "0 0 0.35", 60, 4) + LINK.format("arm", "0.5 0 0.4", 15, 0.5)
    body, wheels = body + JOINT.format("turret", "chassis", "arm", "0.1 0 0.7", "0 0 1"), {}
    for name, (x, y) in CORNERS.items():
        body += LINK.format(f"{name}_fork", "0 0 0", 1, 0.01) + LINK.format(f"{name}_wheel", "0 0 0", 3, 0.05)
        body += JOINT.format(f"{name}_steer", "chassis", f"{name}_fork", f"{x} {y} {RADIUS}", "0 0 1")
        body += JOINT.format(f"{name}_drive", f"{name}_fork", f"{name}_wheel", "0 0 0", "0 1 0")
        wheels[name] = {"link": f"{name}_wheel", "axis": [0, 1, 0], "radius": RADIUS, "friction": 0.8,
                        "holds": ["along", "across", "normal"]}
    weights = {f"{name}_drive": 1.0 for name in CORNERS}
    return f'<robot name="car">{body}</robot>', {"base": "floating", "wheels": wheels, "actuation_weights": weights}


def rates(t):
    """Velocities of the joints towards the centre of rotation: the curvature of the path grows with the square of time."""
    turn, turn_rate, found = SPEED * 0.12 * t * t, SPEED * 0.24 * t, [0.0 * t]
    for x, y in CORNERS.values():
        ahead, aside = SPEED - turn * y, turn * x  # velocity of the wheel's centre in the chassis
        square = ahead * ahead + aside * aside
        found += [(x * ahead + y * aside) * turn_rate / square, np.sqrt(square) / RADIUS]
    return found


def motion(t: float) -> np.ndarray:
    """Return q, qd, qdd, qddd of turret, then steering and drive of each wheel."""
    angles = [(np.arctan2(0.12 * t * t * x, 1.0 - 0.12 * t * t * y), 0.0) for x, y in CORNERS.values()]
    return np.array([[1.2, *np.ravel(angles)], *rnea_ros.derivatives_of_time(rates, t, 2)])


def main(out_dir: str | Path = ".") -> None:
    robot = rnea_ros.load(*vehicle())
    names = ["turret", *(f"{name}_{part}" for name in CORNERS for part in ("steer", "drive"))]
    order = [names.index(name) for name in robot.joint_names]
    odometry, times, rows = rnea_ros.WheelOdometry(robot), np.arange(0.0, DURATION, 1.0 / RATE), []
    for t in times:
        state = odometry.advance(t, *motion(t)[:, order])
        loads = rnea_ros.wheel_loads(robot, odometry.solution, state)
        use = max(load.friction_use for load in loads.values())
        rows.append([*(load.normal[0] for load in loads.values()), use, rnea_ros.tip_over_margin(loads)])
    *normal, use, margin = np.array(rows).T
    print(f"it slips after {times[use > 1.0][0]:.2f} s, {margin[use > 1.0][0]:.3f} m before it tips over")
    with picture(Path(out_dir) / "four_wheels.png", (9, 5), settings=STYLE) as figure:
        shares, edge = figure.subplots(2, 1, sharex=True)
        shares.plot(times, np.transpose(normal), label=[*CORNERS])
        shares.set(title="normal forces [N]")
        edge.plot(times, np.transpose([margin, use]), label=["tip-over margin [m]", "largest share of friction"])
        edge.set(xlabel="time [s]", ylim=(-0.1, 1.5))
        [plot.legend() for plot in (shares, edge)]
    assert margin[0] > 0.1 and use[0] < 0.1 and (use > 1.0).any()


if __name__ == "__main__":
    main(*sys.argv[1:2])

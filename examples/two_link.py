"""The two-link robot of the lie-notes, sections 8 to 10: tau_1 and tau_2 by powers of the velocities, worked by hand.

    python examples/two_link.py [OUT_DIR]

Without acceleration and gravity each torque is a form  a thd1^2 + b thd1 thd2 + c thd2^2. Its coefficients are computed as the
notes work them out, with what is wrong in the print mended (marked *), and compared with those of `Robot`, for an arm whose
axes are skew: in the plane, most of the terms that the notes collect are zero.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, Robot, picture

# Frame {i} of a link sits at its centre of mass, along the axes of its URDF link, whose origin is on the joint's axis.
Z = np.array([[0.0, 0.0, 1.0], [0.0, 0.6, 0.8]])  # axes of the joints
COM = np.array([[0.2, 0.05, 0.3], [0.1, -0.2, 0.25]])  # from the joint's origin [m]
ELBOW = np.array([0.4, 0.1, 0.5])  # joint 2 from joint 1 [m]
MASS, MOMENTS = (3.0, 2.0), ((0.06, 0.05, 0.02), (0.04, 0.03, 0.025))  # [kg], of inertia about the mass centre [kg m^2]
POWERS = (r"$\dot\theta_1^2$", r"$\dot\theta_1\dot\theta_2$", r"$\dot\theta_2^2$")
LINK = """<link name="link{0}"><inertial><origin xyz="{1}"/><mass value="{2}"/><inertia ixx="{3}" iyy="{4}" izz="{5}" ixy="0"
ixz="0" iyz="0"/></inertial></link><joint name="joint{0}" type="continuous"><parent link="link{6}"/><child link="link{0}"/>
<origin xyz="{7}"/><axis xyz="{8}"/></joint>"""


def urdf() -> str:
    """Return the URDF of this arm."""
    com, elbow, axes = ([" ".join(map(str, row)) for row in rows] for rows in (COM, [np.zeros(3), ELBOW], Z))
    links = [LINK.format(k + 1, com[k], MASS[k], *MOMENTS[k], k, elbow[k], axes[k]) for k in range(2)]
    return f'<robot name="two_link"><link name="link0"/>{"".join(links)}</robot>'


def by_hand(theta2: float) -> np.ndarray:
    """(2, 3): rows tau_1, tau_2, columns POWERS. theta_1 does not matter: joint 1 turns everything alike."""
    (z1, z2), m2, I2 = Z, MASS[1], np.diag(MOMENTS[1])
    b1, b2 = np.cross(z1, COM[0]), np.cross(z2, COM[1])  # 5.2: b = -z x r, r from the centre of mass to the axis
    K = np.cross(np.eye(3), z2)
    R12 = np.eye(3) + np.sin(theta2) * K + (1.0 - np.cos(theta2)) * (K @ K)
    R21, p12 = R12.T, ELBOW + R12 @ COM[1] - COM[0]
    p21 = -R21 @ p12  # * index shift of the print: T_21, not T_12, takes velocities from link 1 to link 2
    u, c = R21 @ z1, np.cross(p21, R21 @ z1) + R21 @ b1  # w2 = thd1 u + thd2 z2, v2 = thd1 c + thd2 b2
    # 10.1, * with I_2 in the mixed terms, I_2 wd_2 = thd1 thd2 I_2 (u x z2), and z2 x I_2 z2
    n2 = np.array([np.cross(u, I2 @ u), I2 @ np.cross(u, z2) + np.cross(u, I2 @ z2) + np.cross(z2, I2 @ u),
                   np.cross(z2, I2 @ z2)])
    # 10.2, vd_2 + w_2 x v_2: * c x z2 of the one and z2 x c of the other cancel, u x b2 is in both
    f2 = m2 * np.array([np.cross(u, c), 2.0 * np.cross(u, b2), np.cross(z2, b2)])
    n1 = n2 @ R12.T + np.cross(p12, f2 @ R12.T)  # 10.4, * by R_12; 10.5: link 1 adds nothing along z1 and b1
    return np.array([n1 @ z1 + (f2 @ R12.T) @ b1, n2 @ z2 + f2 @ b2])  # 10.3


def by_robot(robot: Robot, theta2: float) -> np.ndarray:
    """Return the coefficients from torques at three velocities."""
    first, second, both = robot.inverse_dynamics(np.tile([0.3, theta2], (3, 1)), [[1, 0], [0, 1], [1, 1]], np.zeros((3, 2)))
    return np.column_stack((first, both - first - second, second))


def main(out_dir: str | Path = ".") -> None:
    robot, angles = Robot.from_urdf(urdf(), gravity=(0.0, 0.0, 0.0)), np.linspace(-np.pi, np.pi, 97)
    hand, library = (np.array([found(angle) for angle in angles]) for found in (by_hand, lambda x: by_robot(robot, x)))
    with picture(Path(out_dir) / "two_link.png", (11, 4.6), settings=STYLE | {"text.parse_math": True}) as figure:
        for joint, axis in enumerate(figure.subplots(1, 2, sharey=True)):
            for k, power in enumerate(POWERS):
                (line,) = axis.plot(angles, hand[:, joint, k], label=power)
                axis.plot(angles[::8], library[::8, joint, k], "o", color=line.get_color())
            axis.set(xlabel=r"$\theta_2$ [rad]", title=f"coefficients of torque {joint + 1} [kg m²]")
        axis.legend(title="lines: by hand\ndots: Robot")
    print(f"largest difference over {len(angles)} angles: {np.abs(hand - library).max():.1e} N m")
    assert np.abs(hand - library).max() < 1e-12
    C, velocities = robot.coriolis([0.3, 0.7], [2.0, -1.5]), np.array([4.0, -3.0, 2.25])  # thd1^2, thd1 thd2, thd2^2
    np.testing.assert_allclose(C @ [2.0, -1.5], by_hand(0.7) @ velocities, rtol=0, atol=1e-12)  # section 11: tau = C thd


if __name__ == "__main__":
    main(*sys.argv[1:2])

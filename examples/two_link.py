"""The two-link robot of the lie-notes, sections 8 to 10: tau_1 and tau_2 by powers of the velocities, worked by hand.

    python examples/two_link.py

Without acceleration and gravity each torque is a form  a thd1^2 + b thd1 thd2 + c thd2^2. Its coefficients are computed as the
notes work them out, with what is wrong in the print mended (marked *), and compared with those of `Robot`, for an arm whose
axes are skew: in the plane, most of the terms that the notes collect are zero.
"""

from __future__ import annotations

import numpy as np

from rnea_ros import Robot

# Frame {i} of a link sits at its centre of mass, along the axes of its URDF link, whose origin is on the joint's axis.
Z = np.array([[0.0, 0.0, 1.0], [0.0, 0.6, 0.8]])  # axes of the joints
COM = np.array([[0.2, 0.05, 0.3], [0.1, -0.2, 0.25]])  # from the joint's origin [m]
ELBOW = np.array([0.4, 0.1, 0.5])  # joint 2 from joint 1 [m]
MASS = 3.0, 2.0  # kg
INERTIA = [np.diag([0.06, 0.05, 0.02]), np.array([[0.04, 0.003, -0.002], [0.003, 0.03, 0.004], [-0.002, 0.004, 0.025]])]
POWERS = "thd1^2", "thd1 thd2", "thd2^2"


def urdf() -> str:
    """The same arm for `Robot`."""
    parts = ['<robot name="two_link"><link name="base"/>']
    for k, (parent, origin) in enumerate((("base", np.zeros(3)), ("link1", ELBOW))):
        (xx, xy, xz), (_, yy, yz), (*_, zz) = INERTIA[k]
        parts.append(f'<link name="link{k + 1}"><inertial><origin xyz="{_text(COM[k])}"/><mass value="{MASS[k]}"/>'
                     f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/></inertial></link>'
                     f'<joint name="joint{k + 1}" type="continuous"><parent link="{parent}"/><child link="link{k + 1}"/>'
                     f'<origin xyz="{_text(origin)}"/><axis xyz="{_text(Z[k])}"/></joint>')
    return "".join(parts) + "</robot>"


def by_hand(theta2: float) -> np.ndarray:
    """(2, 3): rows tau_1, tau_2, columns POWERS. theta_1 does not matter: joint 1 turns everything alike."""
    (z1, z2), (_, m2), (_, I2) = Z, MASS, INERTIA
    b1, b2 = np.cross(z1, COM[0]), np.cross(z2, COM[1])  # 5.2: b = -z x r, r from the centre of mass to the axis
    R12 = _turn(z2, theta2)
    R21, p12 = R12.T, ELBOW + R12 @ COM[1] - COM[0]
    p21 = -R21 @ p12  # * index shift of the print: T_21, not T_12, takes velocities from link 1 to link 2
    u, c = R21 @ z1, np.cross(p21, R21 @ z1) + R21 @ b1  # w2 = thd1 u + thd2 z2, v2 = thd1 c + thd2 b2
    # 10.1, * with I_2 in the mixed terms, I_2 wd_2 = thd1 thd2 I_2 (u x z2), and z2 x I_2 z2
    n2 = np.array([np.cross(u, I2 @ u), I2 @ np.cross(u, z2) + np.cross(u, I2 @ z2) + np.cross(z2, I2 @ u),
                   np.cross(z2, I2 @ z2)])
    # 10.2, vd_2 + w_2 x v_2: * c x z2 of the one and z2 x c of the other cancel, u x b2 is in both
    f2 = m2 * np.array([np.cross(u, c), 2.0 * np.cross(u, b2), np.cross(z2, b2)])
    tau2 = n2 @ z2 + f2 @ b2  # 10.3
    n1 = n2 @ R12.T + np.cross(p12, f2 @ R12.T)  # 10.4, * by R_12; 10.5: link 1 adds nothing along z1 and b1
    return np.array([n1 @ z1 + (f2 @ R12.T) @ b1, tau2])


def by_robot(robot: Robot, theta2: float) -> np.ndarray:
    """The same from torques at three velocities."""
    def torque(*speed):
        return robot.inverse_dynamics([0.3, theta2], speed, [0.0, 0.0])

    squares = torque(1.0, 0.0), torque(0.0, 1.0)
    return np.column_stack((squares[0], torque(1.0, 1.0) - squares[0] - squares[1], squares[1]))


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    K = np.cross(np.eye(3), axis)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


def _text(numbers: np.ndarray) -> str:
    return " ".join(map(str, numbers.tolist()))


def main() -> None:
    robot, theta2 = Robot.from_urdf(urdf(), gravity=(0.0, 0.0, 0.0)), 0.7
    mine, theirs = by_hand(theta2), by_robot(robot, theta2)
    print(f"theta_2 = {theta2} rad{'':12}" + "".join(f"{power:>14}" for power in POWERS))
    for joint, (ours, library) in enumerate(zip(mine, theirs), start=1):
        for who, row in (("by hand", ours), ("by Robot", library)):
            print(f"tau_{joint} [N m] {who:<16}" + "".join(f"{x:>14.9f}" for x in row))
    error = max(np.abs(by_hand(angle) - by_robot(robot, angle)).max() for angle in np.linspace(-3.0, 3.0, 25))
    print(f"largest difference over 25 angles: {error:.1e} N m")
    assert error < 1e-12, error
    C = robot.coriolis([0.3, theta2], [2.0, -1.5])
    velocities = np.array([4.0, -3.0, 2.25])  # thd1^2, thd1 thd2, thd2^2
    np.testing.assert_allclose(C @ [2.0, -1.5], mine @ velocities, rtol=0, atol=1e-12)  # section 11: tau = C(theta, thd) thd


if __name__ == "__main__":
    main()

"""A quadruped sways and jumps: ground reaction, zero-moment point, and torques of the legs, on the ground and in flight.

    python examples/quadruped.py [OUT_DIR]

On the ground the trunk's motion is given and the feet stand: the base wrench is all that the ground exerts. Shared out to the
four feet as external wrenches, it must give the same trunk motion back through the free-base model, with the torques of the
legs. The jump begins where the reaction would have to pull. From there on nothing is given but the joints, and the free-base
model, integrated, tells how the trunk flies.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros.algebra.taylor import Jet, derivative
from rnea_ros.output.figures import new_figure
from rnea_ros.robots.floating import FloatingRobot
from rnea_ros.robots.inputs.base_state import BaseState, along

THIGH = 0.25  # and shank [m]
HIPS = {"front_left": (0.25, 0.15), "front_right": (0.25, -0.15), "rear_left": (-0.25, 0.15), "rear_right": (-0.25, -0.15)}
BENDS = np.array([1.0, 1.0, -1.0, -1.0])  # front knees backwards, rear knees forwards
HEIGHT, CROUCH, PUSH = 0.40, 0.12, 0.24  # of the trunk: standing, how far down, then how far up [m]
SWAY, SWAY_FREQUENCY = 0.04, 0.9  # [m], [Hz]
SWAY_END, JUMP, PUSH_TIME, TUCK_TIME = 2.4, 2.9, 0.3, 0.12  # [s]
TUCKED = (0.0, 0.95, -1.9)  # of a front leg in flight [rad]; the rear knees bend the other way


def urdf() -> str:
    """A trunk and four legs: hip about x, hip about y, knee about y, and a foot at the end of the shank."""

    def solid(mass, x, y, z, down=0.0):
        moments = (mass * (y * y + z * z) / 12, mass * (x * x + z * z) / 12, mass * (x * x + y * y) / 12)
        ixx, iyy, izz = moments
        return (f'<inertial><origin xyz="0 0 {-down}"/><mass value="{mass}"/>'
                f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial>')

    text = [f'<robot name="quadruped"><link name="trunk">{solid(10.0, 0.55, 0.25, 0.12)}</link>']
    for leg, (x, y) in HIPS.items():
        parts = (("hip", "roll", "trunk", f"{x} {y} 0", "1 0 0", solid(0.7, 0.08, 0.08, 0.08)),
                 ("thigh", "pitch", f"{leg}_hip", "0 0 0", "0 1 0", solid(0.8, 0.05, 0.05, THIGH, THIGH / 2)),
                 ("shank", "knee", f"{leg}_thigh", f"0 0 {-THIGH}", "0 1 0", solid(0.25, 0.03, 0.03, THIGH, THIGH / 2)))
        for link, joint, parent, origin, axis, inertial in parts:
            text.append(f'<link name="{leg}_{link}">{inertial}</link><joint name="{leg}_{joint}" type="continuous"><parent '
                        f'link="{parent}"/><child link="{leg}_{link}"/><origin xyz="{origin}"/><axis xyz="{axis}"/></joint>')
        text.append(f'<link name="{leg}_foot"/><joint name="{leg}_sole" type="fixed"><parent link="{leg}_shank"/>'
                    f'<child link="{leg}_foot"/><origin xyz="0 0 {-THIGH}"/></joint>')
    return "".join([*text, "</robot>"])


# ------------------------------------------------------------------ the motion on the ground


def step(t, start, duration):
    """From 0 to 1 with three smooth derivatives; t: a jet."""
    if not start < t.c[0] < start + duration:
        return t * 0.0 + float(t.c[0] >= start + duration)
    x = (t - start) * (1.0 / duration)
    return x * x * x * x * (35.0 - 84.0 * x + 70.0 * x * x - 20.0 * x * x * x)


def trunk(t):
    """Position and rotation: a circle that comes and goes, a crouch, a push."""
    size, angle = (step(t, 0.0, 0.8) - step(t, SWAY_END - 0.8, 0.8)) * SWAY, t * (2 * np.pi * SWAY_FREQUENCY)
    z = HEIGHT - step(t, SWAY_END, JUMP - SWAY_END) * CROUCH + step(t, JUMP, PUSH_TIME) * PUSH
    return np.array([size * np.cos(angle), size * np.sin(angle), z]), np.eye(3)


def turned_to(x, y, start):
    """The angle near `start` with cosine and sine in proportion to x and y: Newton's rule, which twice makes a jet exact."""
    angle = Jet([start, 0.0, 0.0])
    for _ in range(2):
        c, s = np.cos(angle), np.sin(angle)
        angle = angle + (c * y - s * x) / (c * x + s * y)
    return angle


def legs(t: float) -> list[np.ndarray]:
    """q, qd, qdd (12,) that keep the feet below where the hips were: inverse kinematics, differentiated by a jet of time."""
    x, y, z = trunk(Jet([t, 1.0, 0.0]))[0]
    roll = turned_to(z, -y, np.arctan2(-y.c[0], z.c[0]))
    reach = np.sqrt(y * y + z * z)
    half = (x * x + reach * reach) * (1.0 / (2 * THIGH))  # of the leg's square length, over the thigh
    cosine = half * (1.0 / THIGH) - 1.0
    knee = turned_to(cosine, np.sqrt(1.0 - cosine * cosine), np.arccos(cosine.c[0]))
    pitch = turned_to(reach, x, np.arctan2(x.c[0], reach.c[0]))
    q = [[roll, pitch + knee * (bend / 2), -knee * bend] for bend in BENDS]
    return [derivative(q, k).astype(float).ravel() for k in range(3)]


def share(robot: FloatingRobot, base: BaseState, q: np.ndarray, wrench: np.ndarray) -> dict[str, np.ndarray]:
    """Forces of the ground on the four feet, the smallest that make up the base wrench, each in its foot's frame."""
    arms = np.array([[x, y, 0.0] for x, y in HIPS.values()]) - base.position
    cross = [np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]) for x, y, z in arms]
    forces = np.linalg.lstsq(np.vstack((np.hstack([np.eye(3)] * 4), np.hstack(cross))), wrench, rcond=None)[0].reshape(4, 3)
    wrenches = {}
    for leg, force, (roll, pitch, knee) in zip(HIPS, forces, q.reshape(4, 3), strict=True):
        x, y, z = force  # turned back about x by the roll, then about y
        c, s = np.cos(roll), np.sin(roll)
        y, z = c * y + s * z, c * z - s * y
        c, s = np.cos(pitch + knee), np.sin(pitch + knee)
        wrenches[f"{leg}_foot"] = np.array([c * x - s * z, y, s * x + c * z, 0.0, 0.0, 0.0])
    return wrenches


def stand(robot: FloatingRobot, h: float) -> dict[str, np.ndarray]:
    """From the start until the reaction vanishes: t, base (13), q, qd, qdd, tau, base wrench, trunk acceleration twice."""
    rows, t = [], 0.0
    while True:
        base, acceleration, _jerk = along(trunk, t)
        q, qd, qdd = legs(t)
        wrench = robot.base_wrench(q, qd, qdd, base=base, base_acceleration=acceleration)
        if wrench[2] < 0.0:
            break
        free = robot.free_motion(q, qd, qdd, base=base, wrenches=share(robot, base, q, wrench))
        rows.append((t, base.vector(), q, qd, qdd, free.tau, wrench, acceleration, free.base_acceleration))
        t += h
    return columns(rows, "t", "base", "q", "qd", "qdd", "tau", "wrench", "given", "found")


def tuck(last: dict[str, np.ndarray], t: float) -> list[np.ndarray]:
    """q, qd, qdd (12,) after take-off: what the joints did dies out, and the tucked pose takes over."""
    since = Jet([t - last["t"], 1.0, 0.0])
    fading = 1.0 - step(since, 0.0, TUCK_TIME)
    goals = np.outer(BENDS, TUCKED).ravel()
    q = [(since * since * (c / 2) + since * b + (a - goal)) * fading + goal
         for a, b, c, goal in zip(last["q"], last["qd"], last["qdd"], goals, strict=True)]
    return [derivative(q, k).astype(float) for k in range(3)]


def fly(robot: FloatingRobot, start: dict[str, np.ndarray], h: float) -> dict[str, np.ndarray]:
    """From take-off until the trunk is back at that height, by the classical Runge-Kutta rule: t, base (13), q, qd, tau."""
    last = {name: column[-1] for name, column in start.items()}

    def rate(t, x):
        base = BaseState.from_vector(x)
        found = robot.free_motion(*tuck(last, t), base=base)
        return base.vector_rate(found.base_acceleration), found.tau

    rows, t, x = [], last["t"], last["base"]
    while not rows or x[2] >= last["base"][2]:
        a, tau = rate(t, x)
        rows.append((t, x, *tuck(last, t)[:2], tau))
        b, _ = rate(t + h / 2, x + a * (h / 2))
        c, _ = rate(t + h / 2, x + b * (h / 2))
        d, _ = rate(t + h, x + c * h)
        t, x = t + h, x + (a + 2 * b + 2 * c + d) * (h / 6)
    return columns(rows, "t", "base", "q", "qd", "tau")


def columns(rows: list[tuple], *names: str) -> dict[str, np.ndarray]:
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def picture(path: Path, robot: FloatingRobot, ground, air, zmp, centre) -> None:
    """Support polygon with the zero-moment point, stills of the jump, ground reaction, height, and torques of one leg."""
    figure = new_figure(13, 8)
    panels = "top force, top force, top height, side height, side torque, side torque"
    top, force, height, side, torque = figure.subplot_mosaic([row.split() for row in panels.split(",")]).values()
    feet = np.array(list(HIPS.values()))
    top.fill(*feet[[0, 1, 3, 2]].T, color="0.92")
    top.plot(*feet.T, "s", color="black", markersize=9, label="feet, support polygon")
    swaying = ground["t"] < SWAY_END
    top.plot(*zmp[swaying, :2].T, color="tab:red", label="zero-moment point, sway")
    top.plot(*zmp[~swaying, :2].T, "o", color="tab:orange", markersize=3, label="zero-moment point, jump")
    top.plot(*centre[swaying, :2].T, color="tab:blue", label="mass centre")
    top.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", xlim=(-0.35, 0.35), ylim=(-0.2, 0.32), title="seen from above")
    top.legend(loc="upper center", fontsize=8, ncols=2)
    stills(side, ground, air)
    weight = robot.robot.total_mass * 9.81
    t = np.concatenate((ground["t"], air["t"]))
    force.plot(t, np.concatenate((ground["wrench"][:, 2], 0 * air["t"])) / weight, color="tab:green")
    force.set(ylabel="reaction / weight", title="vertical ground reaction; shaded: flight")
    height.plot(t, np.concatenate((ground["base"][:, 2], air["base"][:, 2])), color="black")
    height.set(ylabel="trunk height [m]")
    tau = np.concatenate((ground["tau"], air["tau"]))
    for name in ("front_left_roll", "front_left_pitch", "front_left_knee"):
        torque.plot(t, tau[:, robot.joint_names.index(name)], label=name.removeprefix("front_left_"))
    torque.set(xlabel="time [s]", ylabel="torque [N m]")
    torque.legend(fontsize=8, title="front left leg", title_fontsize=8, loc="upper left")
    for axis in (force, height, torque):
        axis.axvspan(air["t"][0], air["t"][-1], color="tab:cyan", alpha=0.2)
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def stills(axis, ground, air) -> None:
    """Left legs and trunk from the side: standing, crouching, taking off, at the top, falling."""
    ready, highest = np.searchsorted(ground["t"], JUMP), int(air["base"][:, 2].argmax())
    for place, (part, k) in enumerate(((ground, 0), (ground, ready - 1), (ground, -1), (air, highest), (air, -1))):
        x, z = 0.75 * place, part["base"][k, 2]
        axis.plot([x - 0.3, x + 0.3], [z, z], color="black", linewidth=9, solid_capstyle="round")
        for leg in (0, 2):
            hip, (_roll, pitch, knee) = list(HIPS.values())[leg][0], part["q"][k].reshape(4, 3)[leg]
            angles = np.array([pitch, pitch + knee])
            axis.plot(x + hip - np.cumsum([0.0, *THIGH * np.sin(angles)]), z - np.cumsum([0.0, *THIGH * np.cos(angles)]),
                      "o-", color="tab:brown", linewidth=3, markersize=4)
        axis.annotate(f"{part['t'][k]:.2f} s", (x, -0.12), ha="center", fontsize=9)
    axis.axhline(0.0, color="0.5", linewidth=2)
    axis.set(aspect="equal", ylim=(-0.2, 0.65), title="the jump")
    axis.axis("off")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot, h = FloatingRobot.from_urdf(urdf()), 0.01 if small else 0.005
    ground = stand(robot, h)
    air = fly(robot, ground, h / 2)
    bases = BaseState.from_vector(ground["base"])
    zmp = robot.zero_moment_point(ground["wrench"], base=bases)
    centre = robot.center_of_mass(ground["q"], ground["qd"], base=bases)
    flying = robot.center_of_mass(air["q"], air["qd"], base=BaseState.from_vector(air["base"]))
    fall = np.polyfit(air["t"], flying.position[:, 2], 2)
    picture(Path(out_dir) / "quadruped.png", robot, ground, air, zmp, centre.position)
    return {"take-off [s]": float(air["t"][0]), "flight [s]": float(air["t"][-1] - air["t"][0]),
            "largest reaction / weight": float(ground["wrench"][:, 2].max() / (robot.robot.total_mass * 9.81)),
            "widest zero-moment point": float(np.abs(zmp[:, :2]).max()),
            "trunk acceleration, given - found": float(np.abs(ground["given"] - ground["found"]).max()),
            "fall of the mass centre": float(2 * fall[0]),
            "angular momentum kept": float(np.abs(flying.momentum[:, 3:] - flying.momentum[0, 3:]).max())}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:34} {value:.6g}")

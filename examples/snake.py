"""A swimming snake of 60 links: the joints are told to undulate, and the free-base model says where that takes the body.

    python examples/snake.py [OUT_DIR]

Inverse dynamics with a free base (khalil-rne 7.2) gives, for given joint motion, the base's acceleration and the joints'
torques at a cost linear in the links: no mass matrix is formed. Water acts as an external wrench on every link. Slender bodies
slide easily along themselves and hardly sideways, and that difference is all that swimming needs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros.algebra.taylor import Jet, derivative
from rnea_ros.algorithms import screws
from rnea_ros.output.figures import new_figure, shades
from rnea_ros.robots.floating import FloatingRobot
from rnea_ros.robots.inputs.base_state import BaseState

LENGTH, RADIUS = 1.5, 0.03  # of the body [m]
WATER = 1000.0  # density of body and water alike [kg/m^3]: it floats, so gravity is left out
ALONG, ACROSS = 0.05, 2.0  # drag coefficients of a link, along and across it
FREQUENCY, WAVES, SWING, RAMP = 1.0, 1.0, 1.3, 1.0  # undulation [Hz], wavelengths on the body, size, time to full size [s]


def urdf(links: int) -> str:
    """A chain of equal cylinders, head first, with a vertical axis between neighbours."""
    length = LENGTH / links
    mass = WATER * np.pi * RADIUS**2 * length
    across, along = mass * (3 * RADIUS**2 + length**2) / 12, mass * RADIUS**2 / 2
    inertial = (f'<inertial><origin xyz="{-length / 2} 0 0"/><mass value="{mass}"/>'
                f'<inertia ixx="{along}" iyy="{across}" izz="{across}" ixy="0" ixz="0" iyz="0"/></inertial>')
    text = [f'<robot name="snake"><link name="link0">{inertial}</link>']
    for k in range(1, links):
        text.append(f'<link name="link{k}">{inertial}</link><joint name="joint{k}" type="continuous"><axis xyz="0 0 1"/>'
                    f'<parent link="link{k - 1}"/><child link="link{k}"/><origin xyz="{-length} 0 0"/></joint>')
    return "".join([*text, "</robot>"])


def undulation(n: int, t: float) -> list[np.ndarray]:
    """q, qd, qdd, qddd of n joints: a wave that runs from head to tail and grows, differentiated by a jet of time."""
    time, place = Jet([t, 1.0, 0.0, 0.0]), np.arange(1, n + 1) / n
    x = time * (1.0 / RAMP)
    ramp = x * x * x * x * (35.0 - 84.0 * x + 70.0 * x * x - 20.0 * x * x * x) if t < RAMP else 1.0
    wave = [np.sin(time * (2 * np.pi * FREQUENCY) - 2 * np.pi * WAVES * s) * ramp * (SWING * (0.3 + 0.7 * s) * 2 * np.pi / n)
            for s in place]
    return [derivative(wave, k).astype(float) for k in range(4)]


def drag(robot: FloatingRobot, base: BaseState, q: np.ndarray, qd: np.ndarray) -> dict[str, np.ndarray]:
    """Wrench of the water on every link, about the link's frame: quadratic in the velocity of its middle, along and across."""
    links = list(robot.robot.model.frames)
    length = LENGTH / len(links)
    middle = np.array([-length / 2, 0.0, 0.0])
    velocities = robot.link_velocities(links, q, qd, base=base)
    v = velocities[:, :3] + np.cross(velocities[:, 3:], middle)
    speed = np.stack([np.abs(v[:, 0]), *[np.hypot(v[:, 1], v[:, 2])] * 2], axis=1)
    areas = np.array([ALONG * 2 * np.pi * RADIUS * length, *[ACROSS * 2 * RADIUS * length] * 2])
    force = -0.5 * WATER * areas * speed * v
    return dict(zip(links, np.concatenate((force, np.cross(middle, force)), axis=1), strict=True))


def swim(robot: FloatingRobot, duration: float, step: float) -> dict[str, np.ndarray]:
    """Integrate the base by the classical Runge-Kutta rule; t, base (13 numbers), q and tau at every step."""
    motion = [undulation(robot.n, k * step / 2) for k in range(2 * round(duration / step) + 1)]
    x = BaseState().vector()
    rows = []

    def rate(x, now):
        base, (q, qd, qdd, _qddd) = BaseState.from_vector(x), now
        found = robot.free_motion(q, qd, qdd, base=base, wrenches=drag(robot, base, q, qd))
        return base.vector_rate(found.base_acceleration), found.tau

    for k in range(0, len(motion) - 1, 2):
        (a, tau), h = rate(x, motion[k]), step
        rows.append((k * step / 2, x, motion[k][0], motion[k][1], tau))
        b, _ = rate(x + a * (h / 2), motion[k + 1])
        c, _ = rate(x + b * (h / 2), motion[k + 1])
        d, _ = rate(x + c * h, motion[k + 2])
        x = x + (a + 2 * b + 2 * c + d) * (h / 6)
        x[3:7] /= np.linalg.norm(x[3:7])
    names = ("t", "base", "q", "qd", "tau")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def picture(path: Path, robot: FloatingRobot, swum: dict[str, np.ndarray], centre: np.ndarray, velocity: np.ndarray) -> None:
    """The body at several instants, the speed of the mass centre, and the torque of every joint."""
    figure = new_figure(12, 6.5)
    where, speed, torque = figure.subplot_mosaic([["where", "where"], ["speed", "torque"]], height_ratios=(0.75, 1.0)).values()
    model, t = robot.robot.model, swum["t"]
    body = screws.screws(model)
    instants = np.linspace(0, len(t) - 1, 5).astype(int)
    for colour, k in zip(shades(len(instants)), instants, strict=True):
        base = BaseState.from_vector(swum["base"][k])
        middles = np.array([pose[:3, 3] for pose in screws.body_poses(model, body, swum["q"][k])])
        x, y, _z = (base.position + base.into_world(middles.ravel()).reshape(-1, 3)).T
        where.plot(x, y, color=colour, linewidth=4, solid_capstyle="round", label=f"{t[k]:.1f} s")
        where.plot(x[0], y[0], "o", color=colour, markersize=8)
    where.plot(centre[:, 0], centre[:, 1], color="crimson", linewidth=1.2, label="mass centre")
    where.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title=f"{len(model.links)} links from above, heads dotted")
    where.margins(y=0.45)
    where.legend(fontsize=8, ncols=6, loc="upper right")
    speed.plot(t, np.linalg.norm(velocity, axis=1), color="crimson")
    speed.set(xlabel="time [s]", ylabel="speed of the mass centre [m/s]", ylim=(0, None))
    speed.grid(alpha=0.3)
    limit = np.abs(swum["tau"]).max()
    extent = (t[0], t[-1], robot.n, 1)
    image = torque.imshow(swum["tau"].T, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, extent=extent)
    torque.set(xlabel="time [s]", ylabel="joint, from head to tail", title="joint torque")
    figure.colorbar(image, ax=torque, label="N m")
    figure.savefig(path, dpi=120)


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    links, duration, step = (12, 2.0, 0.02) if small else (60, 8.0, 0.01)
    robot = FloatingRobot.from_urdf(urdf(links), gravity=(0.0, 0.0, 0.0))
    swum = swim(robot, duration, step)
    bases = BaseState.from_vector(swum["base"])
    mass_centre = robot.center_of_mass(swum["q"], swum["qd"], base=bases)
    picture(Path(out_dir) / "snake.png", robot, swum, mass_centre.position, mass_centre.velocity)
    return {"links": links, "distance": float(np.linalg.norm(mass_centre.position[-1] - mass_centre.position[0])),
            "speed": float(np.linalg.norm(mass_centre.velocity[-1])), "largest torque": float(np.abs(swum["tau"]).max()),
            "out of plane": float(np.abs(bases.position[:, 2]).max())}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:16} {value:.6g}")

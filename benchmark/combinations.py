"""Robot from Python: one streamed sample, loading time, growth with the number of coordinates.

    python benchmark/combinations.py [ROUNDS]      measures these alone and writes combinations.md, combinations.png

The machines are Gough-Stewart modules in series, declared as loops of one tree, a biped like Cassie, arms whose links bend,
eels, and rigid arms of as many coordinates.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the source beside it, not the installed package

from timing import Loop, Times, interleaved

import rnea_ros
from rnea_ros import BaseState, Robot
from rnea_ros.robots.tree import TreeDynamics

LEFT_POSE = {"roll": 0.1, "yaw": -0.05, "pitch": 0.4, "knee": -1.1, "shin": 0.03, "tarsus": 1.6, "heel": 0.02, "rod1": -0.3,
             "rod2": 0.1, "crank": -1.5, "push": 1.4, "toe": -1.5}


class Urdf:
    """URDF text, link by link; masses and inertias are random and physical."""

    def __init__(self, name: str, root: str, seed: int):
        self._rng, self._name = np.random.default_rng(seed), name
        self._parts = [self._link(root, 4.0)]

    def _link(self, name: str, mass: float) -> str:
        a, b, c = mass * self._rng.uniform(0.002, 0.01, 3)
        x, y, z = 0.05 * self._rng.normal(size=3)
        return (f'<link name="{name}"><inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/><inertia ixx="{a + b}" '
                f'iyy="{b + c}" izz="{c + a}" ixy="0" ixz="0" iyz="0"/></inertial></link>')

    def add(self, link: str, parent: str, joint: str, kind: str, axis: str, xyz: Any = (0, 0, 0), rpy: Any = (0, 0, 0),
            mass: float = 0.0) -> None:
        """Add a link, with or without mass, and the joint that holds it."""
        body = self._link(link, mass) if mass else f'<link name="{link}"/>'
        x, angles = (" ".join(f"{float(value)!r}" for value in values) for values in (xyz, rpy))
        self._parts.append(
            f'{body}<joint name="{joint}" type="{kind}"><parent link="{parent}"/><child link="{link}"/><origin xyz="{x}" '
            f'rpy="{angles}"/><axis xyz="{axis}"/><limit lower="-9" upper="9" effort="1e4" velocity="9"/></joint>')

    def text(self) -> str:
        return f'<robot name="{self._name}">{"".join(self._parts)}</robot>'


def stewart(modules: int) -> tuple[str, dict[str, Any]]:
    """Gough-Stewart platforms in series, each on the one before; 24 joints a module, six of them slides with motors.

    The platform of a module is carried by three slides and three turns, to which six legs are tied by spherical cut joints.
    """
    urdf, cuts, active, parent = Urdf(f"stewart{modules}", "base", modules), {}, [], "base"
    for m in range(modules):
        below, above, height = (0.6, 0.35, 0.7) if m == 0 else (0.35, 0.3, 0.5)
        frame = parent
        for k, (kind, axis) in enumerate([("prismatic", a) for a in ("1 0 0", "0 1 0", "0 0 1")]
                                         + [("revolute", a) for a in ("1 0 0", "0 1 0", "0 0 1")]):
            link = f"platform{m}" if k == 5 else f"carrier{m}{k}"
            urdf.add(link, frame, f"platform{m}_{k}", kind, axis, (0, 0, height) if k == 0 else (0, 0, 0),
                     mass=6.0 if k == 5 else 0.0)
            frame = link
        for k in range(6):
            pair, side = (k + 1) // 2 * 2.0 * np.pi / 3.0, 1.0 if k % 2 else -1.0
            one, two = pair - side * 0.35, pair - side * (np.pi / 3.0 - 0.35)
            foot = np.array([below * np.cos(one), below * np.sin(one), 0.0])
            ball = np.array([above * np.cos(two), above * np.sin(two), 0.0])
            d = ball + [0.0, 0.0, height] - foot
            length = float(np.linalg.norm(d))
            lean = (float(np.arctan2(-d[1], d[2])), float(np.arcsin(d[0] / length)), 0.0)  # of Rx Ry: z along the leg
            leg = f"{m}{k}"
            urdf.add(f"cross{leg}", parent, f"first{leg}", "revolute", "1 0 0", foot, (lean[0], 0.0, 0.0))
            urdf.add(f"cylinder{leg}", f"cross{leg}", f"second{leg}", "revolute", "0 1 0", (0, 0, 0), (0.0, lean[1], 0.0), 1.0)
            urdf.add(f"piston{leg}", f"cylinder{leg}", f"slide{leg}", "prismatic", "0 0 1", (0, 0, length), mass=0.6)
            active.append(f"slide{leg}")
            cuts[f"ball{leg}"] = {"type": "spherical", "first": f"piston{leg}",
                                  "second": {"link": f"platform{m}", "xyz": ball.tolist()}}
        parent = f"platform{m}"
    return urdf.text(), {"version": 1, "loops": {"active": active, "cut_joints": cuts}}


UPPER_BODY = (("waist1", "pelvis", "0 0 1", (0, 0, 0.1), 4.0), ("waist2", "waist1", "1 0 0", (0, 0, 0.05), 3.0),
              ("torso", "waist2", "0 1 0", (0, 0, 0.05), 15.0), ("neck", "torso", "0 0 1", (0, 0, 0.4), 1.0),
              ("head", "neck", "0 1 0", (0, 0, 0.1), 3.0))
ARM = (("0 1 0", (0, 0.2, 0.3), 2.0), ("1 0 0", (0, 0.05, 0), 2.0), ("0 0 1", (0, 0, -0.1), 1.5), ("0 1 0", (0, 0, -0.2), 1.5),
       ("0 0 1", (0, 0, -0.1), 1.0), ("0 1 0", (0, 0, -0.15), 0.6), ("1 0 0", (0, 0, 0), 0.5))


def biped(has_upper_body: bool = False) -> tuple[str, dict[str, Any]]:
    """Biped like Cassie: a free base and 24 joints; in each leg five motors, two springs, and two loops with five joints.

    The heel spring is held by a rod from the thigh; the toe is pushed by a crank on the tarsus. A humanoid also has 19 joints
    of waist, head and arms.
    """
    urdf, start = Urdf("biped", "pelvis", 0), {}
    for s, side in (("L", 1.0), ("R", -1.0)):
        for link, parent, axis, xyz, mass in (
                ("roll", "pelvis", "1 0 0", (0.02, 0.13 * side, 0), 1.8), ("yaw", "roll", "0 0 1", (0, 0, -0.09), 1.2),
                ("pitch", "yaw", "0 1 0", (0, 0.02 * side, -0.06), 5.5), ("knee", "pitch", "0 1 0", (0.06, 0, -0.12), 0.7),
                ("shin", "knee", "0 1 0", (0.06, 0, -0.04), 0.5), ("tarsus", "shin", "0 1 0", (0.04, 0, -0.43), 0.8),
                ("heel", "tarsus", "0 1 0", (-0.01, 0.03 * side, 0.02), 0.15),
                ("rod1", "pitch", "1 0 0", (0, 0.04 * side, 0), 0.0), ("rod2", "rod1", "0 1 0", (0, 0, 0), 0.16),
                ("crank", "tarsus", "0 1 0", (0.06, 0.02 * side, -0.03), 0.1),
                ("push", "crank", "0 1 0", (0.055, 0, 0), 0.1), ("toe", "tarsus", "0 1 0", (0.4, 0, -0.04), 0.15)):
            urdf.add(s + link, parent if parent == "pelvis" else s + parent, f"{s}_{link}", "revolute", axis, xyz, mass=mass)
        start |= {f"{s}_{name}": value for name, value in LEFT_POSE.items()}
    upper = [*UPPER_BODY] if has_upper_body else []
    for s, side in (("L", 1.0), ("R", -1.0)) if has_upper_body else ():
        upper += [(f"{s}arm{k}", f"{s}arm{k - 1}" if k else "torso", axis, (x, y * side, z), mass)
                  for k, (axis, (x, y, z), mass) in enumerate(ARM)]
    for link, parent, axis, xyz, mass in upper:
        urdf.add(link, parent, f"J_{link}", "revolute", axis, xyz, mass=mass)
        start[f"J_{link}"] = 0.0
    cuts: dict[str, Any] = {}
    tree = Robot.from_urdf(urdf.text(), backend="reference")
    q = np.array([start[name] for name in tree.joint_names])

    def end(link: str, point: Any, of: str, rpy: Any = (0.0, 0.0, 0.0)) -> dict[str, Any]:
        """Return the frame of a link at a point of another one."""
        here, there = tree.link_pose(link, q), tree.link_pose(of, q, np.array(point))
        return {"link": link, "xyz": (here.R.T @ (there.p - here.p)).tolist(), "rpy": list(rpy)}

    for s in "LR":
        cuts[f"{s}_heel_rod"] = {"type": "spherical", "first": end(f"{s}rod2", (0.05, 0.0, -0.11), f"{s}heel"),
                                 "second": {"link": f"{s}heel", "xyz": [0.05, 0.0, -0.11]}}
        sideways = [-np.pi / 2, 0.0, 0.0]  # z along the axes of crank and toe
        cuts[f"{s}_toe_rod"] = {"type": "point_on_axis", "first": end(f"{s}push", (0.055, -0.01, 0.02), f"{s}toe", sideways),
                                "second": {"link": f"{s}toe", "xyz": [0.055, -0.01, 0.02], "rpy": sideways}}
    motors = [f"{s}_{name}" for s in "LR" for name in ("roll", "yaw", "pitch", "knee", "crank")]
    motors += [f"J_{link}" for link, *_ in upper]
    springs = {f"{s}_{name}": {"stiffness": stiffness, "rest": 0.0, "damping": 0.3}
               for s in "LR" for name, stiffness in (("shin", 180.0), ("heel", 120.0))}
    return urdf.text(), {"version": 1, "base": "floating", "springs": springs,
                         "loops": {"active": motors, "cut_joints": cuts, "start": start}}


def arm(joints: int) -> tuple[str, dict[str, Any]]:
    """Rigid arm of rods with axes that alternate."""
    parts, parent = ['<link name="base"/>'], "base"
    for k in range(joints):
        parts.append(f'<link name="l{k}"><inertial><origin xyz="0.15 0 0"/><mass value="1.5"/><inertia ixx="0.001" '
                     'iyy="0.012" izz="0.012" ixy="0" ixz="0" iyz="0"/></inertial></link>'
                     f'<joint name="j{k}" type="continuous"><parent link="{parent}"/><child link="l{k}"/>'
                     f'<origin xyz="{0.3 if k else 0.0} 0 0"/><axis xyz="{("0 0 1", "0 1 0", "1 0 0")[k % 3]}"/></joint>')
        parent = f"l{k}"
    return f'<robot name="arm{joints}">{"".join(parts)}</robot>', {"version": 1}


def flexible_arm(links: int) -> tuple[str, dict[str, Any]]:
    """Return arms of two links side by side, or one link, with two modes of bending in each of two directions and one of
    twist: six coordinates a link.
    """
    text, _ = arm(links)
    for k in range(2, links, 2):
        text = text.replace(f'<parent link="l{k - 1}"/>', '<parent link="base"/>')
    bending = {name: {"direction": way, "stiffness": 400.0, "modes": 2} for name, way in (("y", [0, 1, 0]), ("z", [0, 0, 1]))}
    beams = {f"l{k}": {"end": [0.3, 0.0, 0.0], "damping": 0.01, "bending": bending, "twist": {"stiffness": 200.0}}
             for k in range(links)}
    return text, {"version": 1, "flexible_links": beams}


def eel(joints: int) -> tuple[str, dict[str, Any]]:
    """Return the arm in water on a free base: 6 + joints coordinates."""
    text, _ = arm(joints)
    body = {"center": [0.15, 0.0, 0.0], "volume": 0.0015, "added_mass": [0.1, 1.1, 0.9], "linear_drag": [0.2, 0.5, 0.4],
            "added_inertia": [0.001, 0.004, 0.006], "quadratic_drag": [1.0, 9.0, 7.0], "angular_drag": [0.01, 0.1, 0.2]}
    return text, {"version": 1, "base": "floating", "fluid": {"links": {f"l{k}": body for k in range(joints)}}}


# ---------------------------------------------------------------------- what is measured


PERIOD, SAMPLES = 1e-3, 500  # s between samples; samples of a motion that ends where it began
MODULES = (1, 2, 3, 4)
SIZES = (6, 12, 24, 48, 96)  # coordinates of rigid arms, arms that bend, and joints of eels
RIGID, BENDING, SWIMMING, TOWER = "rigid arm", "flexible arm", "eel", "Stewart"  # words in names of machines
HUMANOID = "humanoid, 49 coordinates"
LIMITS = {"palletiser": 20.0, "Stewart platform": 35.0, "biped, 30 coordinates": 45.0}  # us of a streamed sample


@dataclass
class Machine:
    """Processor time of one machine.

    coordinates      : of the tree, base included; cold, cached: s to load it and to its first result, without imports, with
                       nothing compiled before and with everything
    streamed, stages : s of a sample by torque_and_rate with the pose before as guess: by the program and by the stages of
                       solution.py alone; batch: of one sample of 500 in one call
    """

    name: str
    coordinates: int
    cold: float
    cached: float
    times: dict[str, Times] = field(default_factory=dict)


def machines() -> Iterator[tuple[str, Callable[[], Robot], float]]:
    """Names, loaders, and the size of the motion [rad, m]."""
    urdf = Path(__file__).resolve().parents[1] / "urdf"
    files = urdf / "palletiser.urdf", urdf / "palletiser.robot.yaml"
    yield "palletiser", lambda: Robot(TreeDynamics.from_urdf(files[0]), files[1]), 0.2
    text, file = biped()
    yield "biped, 30 coordinates", lambda text=text, file=file: Robot(TreeDynamics.from_urdf(text, base="floating"), file), 0.1
    for count in MODULES:
        tower, loops = stewart(count)
        name = "Stewart platform" if count == 1 else f"{count} Stewart platforms in series"
        yield name, lambda tower=tower, loops=loops: Robot(TreeDynamics.from_urdf(tower), loops), 0.01
    text, file = biped(has_upper_body=True)
    yield HUMANOID, lambda text=text, file=file: Robot(TreeDynamics.from_urdf(text, base="floating"), file), 0.1
    for size in SIZES:
        for name, (text, file), amplitude in ((f"{RIGID}, {size} joints", arm(size), 0.2),
                                              (f"{BENDING}, {size // 6} links", flexible_arm(size // 6), 0.002),
                                              (f"{SWIMMING}, {size} joints", eel(size), 0.2)):
            yield name, lambda text=text, file=file: rnea_ros.load(text, file), amplitude


def motion_of(robot: Any, size: float) -> tuple[np.ndarray, ...]:
    """q .. qddd, (SAMPLES, n) each: sines about the start."""
    start = robot.home_motion[0]
    w = 2.0 * np.pi / (SAMPLES * PERIOD)
    angle = w * PERIOD * np.arange(SAMPLES)[:, None] + np.linspace(0.0, 2.0, len(start))
    found = [size * w**k * (np.sin(angle + k * np.pi / 2.0) - (np.sin(angle[0]) if k == 0 else 0.0)) for k in range(4)]
    return found[0] + start, *found[1:]


def streamed(robot: Any, size: float) -> Loop:
    """Time torque_and_rate with the pose of the previous sample as guess; processor time."""
    motion = motion_of(robot, size)
    poses = robot.close(motion[0])
    state = {"base": BaseState()} if robot.has_moving_base else {}
    guesses = [{"guess": poses[k - 1]} if robot.loops else {} for k in range(SAMPLES)]
    samples = [(*(np.ascontiguousarray(part[k]) for part in motion), guesses[k]) for k in range(SAMPLES)]
    index = 0

    def loop(count: int) -> float:
        nonlocal index
        began = time.process_time()
        for _ in range(count):
            q, qd, qdd, qddd, guess = samples[index]
            robot.torque_and_rate(q, qd, qdd, qddd, **guess, **state)
            index = (index + 1) % SAMPLES
        return time.process_time() - began

    return loop


def batch(robot: Robot, size: float) -> Loop:
    """One call of many samples."""
    motion = motion_of(robot, size)
    state = {"base": BaseState()} if robot.has_moving_base else {}

    def loop(count: int) -> float:
        began = time.process_time()
        for _ in range(count):
            robot.torque_and_rate(*motion, **state)
        return (time.process_time() - began) / SAMPLES

    return loop


@contextmanager
def _cache(folder: str) -> Iterator[None]:
    before = os.environ.get("RNEA_ROS_CACHE")
    os.environ["RNEA_ROS_CACHE"] = folder
    try:
        yield
    finally:
        os.environ.pop("RNEA_ROS_CACHE")
        if before is not None:
            os.environ["RNEA_ROS_CACHE"] = before


def loading(load: Callable[[], Robot], size: float) -> tuple[float, float, Robot]:
    """Processor time from the URDF to the first torques and rates: with an empty cache, and with a full one; the robot."""
    found = []
    with tempfile.TemporaryDirectory() as folder, _cache(folder):
        for _ in range(3):
            began = time.process_time()
            robot = load()
            state = {"base": BaseState()} if robot.has_moving_base else {}
            robot.torque_and_rate(*(part[0] for part in motion_of(robot, size)), **state)
            found.append(time.process_time() - began)
    return found[0], min(found[1:]), robot


def by_stages(robot: Robot) -> Robot:
    """Return the same robot without the compiled program."""
    found = Robot(robot.tree, robot.declaration | {"version": 1})
    found._solver.program_of = lambda inputs: None
    return found


def measure(rounds: int) -> list[Machine]:
    next(iter(machines()))[1]()  # imports
    made: list[Machine] = []
    sides: dict[tuple[str, str], Loop] = {}
    for name, load, size in machines():
        cold, cached, robot = loading(load, size)
        coordinates = robot.n if robot.is_fixed_tree else len(robot.structure().equations.coordinates)
        made.append(Machine(name, coordinates, cold, cached))
        sides[name, "streamed"], sides[name, "batch"] = streamed(robot, size), batch(robot, size)
        if len(made) < 4:
            sides[name, "stages"] = streamed(by_stages(robot), size)
    times = interleaved({"|".join(key): loop for key, loop in sides.items()}, rounds)
    for machine in made:
        machine.times = {what: times[f"{name}|{what}"] for name, what in sides if name == machine.name}
    return made


def goals(found: list[Machine]) -> list[tuple[str, float, float, str]]:
    """Text, limit, reached, unit."""
    made = [(f"8. one streamed sample of a Robot from Python, processor time: {machine.name}", LIMITS[machine.name],
             machine.times["streamed"].low * 1e6, " us") for machine in found if machine.name in LIMITS]
    by_name = {machine.name: machine for machine in found}
    one, four, humanoid = (by_name[name] for name in ("Stewart platform", "4 Stewart platforms in series", HUMANOID))
    return [*made, ("8. URDF to the first result, empty cache, processor time: Stewart platform", 1.5, one.cold, " s"),
            ("8. the same, 4 Stewart platforms in series", 6.0, four.cold, " s"),
            ("8. the same from the cache, Stewart platform", 0.1, one.cached, " s"),
            ("8. the same, empty cache, humanoid with loops and springs", 3.0, humanoid.cold, " s"),
            ("8. the same from the cache, humanoid", 0.15, humanoid.cached, " s")]


def lines(found: list[Machine]) -> list[str]:
    """Return the lines of results.md."""
    def cell(machine: Machine, what: str) -> str:
        if what not in machine.times:
            return ""
        ratio = machine.times[what].over(machine.times["streamed"])
        return f"{machine.times[what].low * 1e6:.1f}" + (f" ({ratio:.1f} x)" if what != "streamed" else "")

    text = ["## Combinations: Robot, one sample from Python", "",
            "Processor time of torques and rates [us]. Values are minima of all rounds, because other programs were running. "
            "The guess is the pose of the previous sample, 1 ms earlier; each sample includes the loop closure and the "
            "accelerations of springs and base. In brackets: ratio to the first column. Stages: solution.py without the "
            "compiled program. Loading: processor time [s] from the URDF to the first result, without imports. Sample / rigid "
            "and loading / rigid: ratio to a rigid arm with the same number of coordinates, interpolated between those of the "
            "table. A flexible arm has six coordinates per link: its joint, two modes in each of two directions, one of "
            "torsion; those with more than two links are several arms of two links side by side.", "",
            "| robot | coordinates | streamed sample | sample in a batch of 500 | stages | loading [s] | loading from the "
            "cache [s] | loading per coordinate [s] | sample / rigid | loading / rigid |",
"|---|---|---|---|---|---|---|---|---|---|"]
    rigid = family(found, RIGID)
    sizes = [machine.coordinates for machine in rigid]
    for machine in found:
        beside = [value(machine) / np.interp(machine.coordinates, sizes, [value(one) for one in rigid])
                  for value in (lambda one: one.times["streamed"].low, lambda one: one.cold)]
        text.append(f"| {machine.name} | {machine.coordinates} | " + " | ".join(
            cell(machine, what) for what in ("streamed", "batch", "stages")) +
            f" | {machine.cold:.2f} | {machine.cached:.2f} | {machine.cold / machine.coordinates:.3f} | {beside[0]:.1f} | "
            f"{beside[1]:.1f} |")
    return text


def family(found: list[Machine], word: str) -> list[Machine]:
    """Return the machines whose names have the word."""
    return [machine for machine in found if word in machine.name]


def picture(found: list[Machine], file: Path) -> None:
    """Growth with the number of coordinates, by family: one sample, loading, loading from the cache."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    families = ((TOWER, "Stewart platforms in series", "#1f5fa8"),
                (BENDING, "flexible arm, six coordinates a link", "#2f8f4e"),
                (SWIMMING, "eel on a free base", "#8a4fa8"), (RIGID, "rigid arm", "#777777"))
    sides = ((left, "microseconds of processor time", "One streamed sample of torques and rates, from Python",
              (("-", "", lambda m: m.times["streamed"].low * 1e6),)),
             (right, "seconds of processor time", "From URDF to the first result",
              (("-", "", lambda m: m.cold), ("--", ", from the cache", lambda m: m.cached))))
    for axes, unit, title, series in sides:
        for word, label, colour in families:
            here = family(found, word)
            for style, suffix, value in series:
                axes.plot([m.coordinates for m in here], [value(m) for m in here], f"o{style}", color=colour,
                          label=f"{label}{suffix}" if not suffix or word == TOWER else None, markersize=4)
        others = [m for m in found if not any(word in m.name for word, _, _ in families)]
        for machine in others:
            y = series[0][2](machine)
            axes.plot(machine.coordinates, y, "s", color="#d9822b", markersize=4)
            axes.annotate(machine.name.split(",")[0], (machine.coordinates, y), (5, 3), textcoords="offset points", fontsize=8)
        axes.set(xlabel="coordinates", ylabel=unit, title=title, xlim=(0, None), ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    measured = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
    rows = [f"| {text} | {limit:g}{unit} | {reached:.3g}{unit} |" for text, limit, reached, unit in goals(measured)]
    written = "\n".join(["# Combinations", "", "Written by `python benchmark/combinations.py`.", "", *lines(measured), "",
                         f"Load of the machine at the end: {os.getloadavg()[0]:.0f}, on {os.cpu_count()} processors.", "",
                         "| goal | target | result |", "|---|---|---|", *rows, "",
                         "![Growth with the number of coordinates](combinations.png)"])
    print(written)
    picture(measured, Path(__file__).with_suffix(".png"))
    (Path(__file__).parent / "combinations.md").write_text(written + "\n")

"""InverseDynamicsController of rnea_controllers: cost of update() beside KDL and Pinocchio, tracking and upsets in MuJoCo.

``python benchmark/controllers.py`` writes controllers.md here, ``--sections upsets`` only that section of it. Needs g++;
Pinocchio (`pip install pin`), KDL (`apt install liborocos-kdl-dev`) and valgrind are used where they are there.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from toolchain import PINOCCHIO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]  # the source beside it, not the installed package

from rnea_ros import Robot, load  # noqa: E402
from rnea_ros.cli.main import main as rnea  # noqa: E402
from rnea_ros.sim.plant import Plant  # noqa: E402
from rnea_ros.sim.scene import UnmodelledDynamics, scene  # noqa: E402
from support.controller_harness import COMPILER, PACKAGE, PLUGIN, Controller  # noqa: E402
from support.controller_upsets import KINDS, LINKS, Result, random_upset  # noqa: E402
from support.controller_upsets import plant as upset_plant  # noqa: E402
from support.controller_upsets import run as run_upset  # noqa: E402
from support.scaling_cases import urdf as find_urdf  # noqa: E402

URDF, LINK, PERIOD = ROOT / "urdf" / "panda.urdf", "panda_link7", 1e-3
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG")  # of a Release build of CMake
WRAPPED = ("-Wl,--wrap=pthread_mutex_lock", "-Wl,--wrap=__cxa_throw")
PEER, FEEDBACK = "peer::ComputedTorque", "feedback without dynamics"
# Gains of torques at the joints, as arms of this size have them in their PID controllers (N m/rad, N m s/rad).
P = np.array([600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0])
D = np.array([30.0, 30.0, 30.0, 30.0, 10.0, 10.0, 5.0])
STIFFNESS, DAMPING = 400.0, 40.0  # of computed torque, 1/s^2 and 1/s
SECONDS, MASS_ERROR, PAYLOAD = 3.0, 0.05, 1.5
ROBOT_FILES = {"panda": URDF.with_suffix(".robot.yaml"), "ur5": ROOT / "urdf" / "ur5.robot.yaml"}


class Side(NamedTuple):
    """One controller of the comparison: program, plugin and what its parameter robot_library names."""

    program: Path
    plugin: str
    library: str
    mode: str = "computed_torque"


def compiled(target: Path, sources: list[Path], *more: str) -> Path:
    """Compile sources into a file, unless it is newer than all of them."""
    headers = [path for folder in ("include", "test") for path in (PACKAGE / folder).rglob("*.hpp")]
    if target.is_file() and all(path.stat().st_mtime < target.stat().st_mtime for path in (*sources, *headers)):
        return target
    include = [f"-I{PACKAGE / folder}" for folder in ("include", "test/stand_in")]
    native = () if "portable" in target.name else ("-march=native",)
    words = [COMPILER, *FLAGS, *native, *include, "-o", target, *map(str, sources), *more, "-ldl", "-pthread"]
    subprocess.run(words, check=True)
    return target


def chain_file(robot: Robot, path: Path) -> Path:
    """Write the arm for the peers: pose of each joint in its parent link, axis, and inertia beyond it."""
    tree, zero = robot.tree, np.zeros(robot.n)
    lines = [f"{robot.n} " + " ".join(map(repr, tree.gravity_vector.tolist()))]
    moving = [link for link in tree.model.links if link.joint]
    before = np.eye(3), np.zeros(3)
    for link in moving:
        frame = next(frame for frame in tree.model.frames.values() if tree.model.links[frame.link] is link)
        name = next(name for name, one in tree.model.frames.items() if one is frame)
        R, p = robot.link_pose(name, zero)
        R, p = R @ frame.R.T, p - R @ frame.R.T @ frame.P  # of the frame in which the inertia is given: z is the axis
        com = link.ms / link.m
        about_com = link.J + link.m * (np.outer(com, com) - com @ com * np.eye(3))
        relative = before[0].T @ R, before[0].T @ (p - before[1])
        numbers = [*relative[0].ravel(), *relative[1], 0.0, 0.0, 1.0, link.m, *com, *about_com[np.triu_indices(3)]]
        lines.append(" ".join(repr(float(x)) for x in numbers))
        before = R, p
    path.write_text("\n".join(lines) + "\n")
    return path


def sides(folder: Path, robot: Robot, libraries: dict[str, str]) -> dict[str, Side]:
    """Compile every controller that this machine can, in one way."""
    test = [PACKAGE / "test" / name for name in ("harness.cpp", "realtime.cpp")]
    ours = compiled(folder / "ours", [*sorted((PACKAGE / "src").glob("*.cpp")), *test], *WRAPPED)
    found = {f"InverseDynamicsController, {mode}": Side(ours, PLUGIN, libraries["native"], mode)
             for mode in ("computed_torque", "joint_impedance", "feedforward", "gravity")}
    chain = str(chain_file(robot, folder / "chain.txt"))
    peers = {FEEDBACK: ["-DPEER_NONE"]}
    try:
        import pinocchio

        prefix = Path(pinocchio.__file__).parents[4]
        include = prefix / "include"
        peers["computed torque by Pinocchio rnea"] = [*PINOCCHIO, f"-I{include}", f"-I{include / 'eigen3'}"]
    except ImportError:
        pass
    if Path("/usr/include/kdl/chain.hpp").is_file():
        peers["computed torque by KDL ChainIdSolver_RNE"] = ["-DPEER_KDL", "-I/usr/include/eigen3", "-lorocos-kdl"]
    for name, flags in peers.items():
        word = name.split()[-2].lower()
        compiles = [flag for flag in flags if not flag.startswith("-l")]
        code = compiled(folder / f"{word}.o", [HERE / "controller_peers.cpp"], *compiles, "-c", "-fPIC")
        program = compiled(folder / word, [code, *test], *flags, *WRAPPED)
        harness = compiled(folder / f"{word}.so", [code, test[0]], *flags, "-shared", "-fPIC")
        if name != FEEDBACK:
            check_peer(robot, harness, chain)
        found[name] = Side(program, PEER, chain)
    return found


def check_peer(robot: Robot, harness: Path, chain: str) -> None:
    """Raise SystemExit if a peer computes other torques: it would not be the same robot."""
    peer = Controller(ctypes.CDLL(str(harness)), {"robot_library": chain, "stiffness": [1.0], "damping": [1.0]}, plugin=PEER)
    assert [peer.transition(name) for name in ("init", "configure", "activate")] == [97] * 3
    peer.chain()
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, robot.n))
    peer.write(np.column_stack((q, qd)).ravel(), np.column_stack((q, qd, qdd)).ravel())
    peer.update(PERIOD)
    wrong = np.abs(peer.read()[0] - robot.inverse_dynamics(q, qd, qdd)).max()
    if not wrong < 1e-8:
        raise SystemExit(f"{harness.stem}: torques differ by {wrong:g} N m")


def run(side: Side, what: str, cycles: int, *before: str) -> str:
    done = subprocess.run([*before, side.program, side.plugin, side.library, side.mode, what, str(cycles)], check=True,
                          capture_output=True, text=True)
    return done.stdout + done.stderr


def times(found: dict[str, Side], cycles: int, rounds: int) -> dict[str, list[float]]:
    """Median over rounds of p50, p99.9 and mean [ns] of processor time; all sides in turn."""
    rows: dict[str, list[list[float]]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, side in found.items():
            p50, p999, _, mean = map(float, run(side, "time", cycles // rounds).split())
            rows[name].append([p50, p999, mean])
    return {name: [statistics.median(column) for column in zip(*values, strict=True)] for name, values in rows.items()}


def instructions(folder: Path, portable: str, cycles: int) -> str:
    """Instructions of a cycle: those of cycles/10 and of all cycles by valgrind, which does not know every processor."""
    if not shutil.which("valgrind"):
        return "valgrind is not there"
    test = [PACKAGE / "test" / name for name in ("harness.cpp", "realtime.cpp")]
    program = compiled(folder / "ours_portable", [*sorted((PACKAGE / "src").glob("*.cpp")), *test], *WRAPPED)
    side = Side(program, PLUGIN, portable)
    counts = []
    for count in (cycles // 10, cycles):
        text = run(side, "loop", count, "valgrind", "--tool=callgrind", "--toggle-collect=cycle",
                   "--callgrind-out-file=/dev/null")
        counts.append(int(text.split("Collected : ")[1].split()[0]))
    each, rest = divmod(counts[1] - counts[0], cycles - cycles // 10)
    return f"{each}, the same in each of {cycles - cycles // 10} cycles" if not rest else (
        f"{(counts[1] - counts[0]) / (cycles - cycles // 10):.2f} on average")


# ---------------------------------------------------------------------- tracking


def motion(t: float) -> np.ndarray:
    """Return the reference (4, 7): positions and three derivatives."""
    k = np.arange(7)
    w, centre = 1.0 + 0.3 * k, np.array([0.3, -0.5, 0.2, -1.8, 0.1, 1.5, 0.4])
    phase = w * t + k
    return np.array([centre + 0.4 * np.sin(phase), 0.4 * w * np.cos(phase), -0.4 * w**2 * np.sin(phase),
                     -0.4 * w**3 * np.cos(phase)])


def plant(robot: Robot, seed: int, carries: bool) -> Plant:
    """Return the arm in MuJoCo with wrong masses, and maybe a payload at the centre of mass of the last link."""
    masses = 1.0 + MASS_ERROR * np.random.default_rng(seed).uniform(-1.0, 1.0, robot.n)
    made = scene(URDF, unmodelled=UnmodelledDynamics(masses=masses), timestep=PERIOD)
    if carries:
        made.model.body(LINK).mass[0] += PAYLOAD
    return Plant(made)


Law = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # cycle, q, qd, reference -> efforts


def follow(device: Plant, law: Law, step: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors (samples, n) after the first half second, and the efforts of all cycles.

    step : of the reference of all joints, after half of the time [rad]
    """
    begin = motion(0.0)
    device.set_state(begin[0])
    errors, efforts = [], []
    count = round(SECONDS / PERIOD)
    for cycle in range(count):
        q, qd = device.joints
        reference = motion(cycle * PERIOD)[:3].copy()
        reference[0] += step * (cycle > count // 2)
        efforts.append(law(cycle, q.copy(), qd.copy(), reference))
        device.exert(efforts[-1])
        device.advance()
        if cycle * PERIOD > 0.5:
            errors.append(device.joints[0] - motion((cycle + 1) * PERIOD)[0])
    return np.array(errors), np.array(efforts)


def ours(code: ctypes.CDLL, library: str, mode: str, known: np.ndarray | None) -> Law:
    """known : centre of mass of a payload that the controller knows."""
    gains = (P, D) if mode != "computed_torque" else ([STIFFNESS], [DAMPING])
    given: dict[str, Any] = {"robot_library": library, "mode": mode, "stiffness": gains[0], "damping": gains[1],
                             "activation_time": 0.1}
    if known is not None:
        given |= {"payload.mass": PAYLOAD, "payload.com": known}
    controller = Controller(code, given)
    assert [controller.transition(name) for name in ("init", "configure")] == [97, 97], controller.log
    controller.chain()

    def law(cycle: int, q: np.ndarray, qd: np.ndarray, reference: np.ndarray) -> np.ndarray:
        controller.write(np.column_stack((q, qd)).ravel(), np.column_stack(reference).ravel() if cycle else None)
        if not cycle:
            assert controller.transition("activate") == 97
        controller.update(PERIOD)
        return controller.read()[0]

    return law


def pid(_cycle: int, q: np.ndarray, qd: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return P * (reference[0] - q) + D * (reference[1] - qd)


def by_pinocchio(known: np.ndarray | None) -> Law:
    import pinocchio

    model = pinocchio.buildModelFromUrdf(str(URDF))
    if known is not None:
        model.inertias[7] = model.inertias[7] + pinocchio.Inertia(PAYLOAD, known, np.zeros((3, 3)))
    data = model.createData()

    def law(_cycle: int, q: np.ndarray, qd: np.ndarray, reference: np.ndarray) -> np.ndarray:
        a = reference[2] + STIFFNESS * (reference[0] - q) + DAMPING * (reference[1] - qd)
        return pinocchio.rnea(model, data, q, qd, a)[:7].copy()

    return law


def laws(code: ctypes.CDLL, library: str) -> dict[str, Callable[[bool], Law]]:
    com = scene(URDF).model.body(LINK).ipos.copy()  # of that link alone, without those that are fixed to it
    return {"PID of joint_trajectory_controller": lambda _known: pid,
            "computed torque by Pinocchio": lambda known: by_pinocchio(com if known else None),
            **{f"InverseDynamicsController, {mode}": lambda known, mode=mode: ours(code, library, mode, com if known else None)
               for mode in ("computed_torque", "joint_impedance", "feedforward")}}


def tracking(robot: Robot, code: ctypes.CDLL, library: str, seeds: int) -> list[str]:
    rows = []
    for name, law in laws(code, library).items():
        cells = []
        for carries, known in ((False, False), (True, False), (True, True)):
            if name.startswith("PID") and known:
                cells.append("as before")
                continue
            found = np.concatenate([follow(plant(robot, seed, carries), law(known))[0] for seed in range(seeds)])
            cells.append(f"{1e3 * np.sqrt((found**2).mean()):.2f}")
        efforts = follow(plant(robot, 0, False), law(False), 0.1)[1]
        smooth = follow(plant(robot, 0, False), law(False))[1]
        steps = [np.abs(np.diff(x, axis=0)).max() for x in (smooth, efforts)]
        rows.append(f"| {name} | {' | '.join(cells)} | {steps[0]:.3f} | {steps[1]:.3f} |")
    return rows


# ---------------------------------------------------------------------- upsets


def upsets(code: ctypes.CDLL, library: Callable[[str], str], count: int) -> list[str]:
    """Return rows of a table: random upsets of a Panda and a UR5, each kind in turn."""
    gains = {"panda": (P, D), "ur5": ([1000.0] * 3 + [100.0, 100.0, 50.0], [100.0] * 3 + [10.0, 10.0, 2.0])}
    found: dict[str, list[tuple[Result, float]]] = {kind: [] for kind in KINDS}
    for seed in range(count):
        kind, upset, given = random_upset(seed)
        for name, (stiffness, damping) in gains.items():
            if given["mode"] == "computed_torque":
                stiffness, damping = [STIFFNESS], [DAMPING]
            device = upset_plant(find_urdf({"panda": "panda", "ur5": "ur5_robot"}[name]), ROBOT_FILES[name], name, upset)
            result = run_upset(code, library(name), device, name, upset, stiffness=stiffness, damping=damping,
                               effort_convention="total", **given)
            found[kind].append((result, 1e-3 * given.get("max_effort_rate", [np.inf])[0]))
            ends = f"error {result.final_error():.3f} speed {result.final_speed():.3f}"
            print(seed, name, kind, upset, given, ends, flush=True)
    rows = []
    for kind, results in found.items():
        rests = [result.final_speed() < 0.1 for result, _ in results]
        back = [result.final_error() < 0.1 and still for (result, _), still in zip(results, rests, strict=True)]
        steps = [np.abs(np.diff(result.effort, axis=0)).max() / step for result, step in results]
        rows.append(f"| {kind} | {len(results)} | {sum(back)} | {sum(rests) - sum(back)} | {len(results) - sum(rests)} | "
                    f"{max(steps):.3f} |")
    return rows


def export(folder: Path, name: str, kind: str) -> str:
    """Return the path of the shared library of a robot, exported for this processor (native) or any (portable)."""
    more = ["--portable"] if kind == "portable" else []
    urdf = find_urdf({"panda": "panda", "ur5": "ur5_robot"}[name])
    words = ["export", str(urdf), "--robot-file", str(ROBOT_FILES[name]), "--payload", LINKS[name], "--shared"]
    target = folder / (kind if name == "panda" else name)
    if not list(target.glob("lib*.so")):
        assert rnea([*words, "-o", str(target), *more]) == 0
    return str(next(target.glob("lib*.so")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=1_000_000)
    parser.add_argument("--instructions", type=int, default=200_000, help="cycles whose instructions are counted")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--upsets", type=int, default=70, help="random upsets of each robot")
    parser.add_argument("--folder", type=Path, help="where compiled programs are kept; default: nowhere")
    parser.add_argument("--compile", action="store_true", help="compile and check the programs only")
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    options = parser.parse_args()
    robot = load(URDF, URDF.with_suffix(".robot.yaml"))
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        library = cache(lambda robot, kind="native": export(folder, robot, kind))
        found = sides(folder, robot, {"native": library("panda")}) if options.compile or "update" in options.sections else {}
        if options.compile:
            return
        values: dict[str, Any] = {}
        if "update" in options.sections:
            values |= update_section(found, options.cycles)
        if "instructions" in options.sections:
            values["counted"] = instructions(folder, library("panda", "portable"), options.instructions)
        sources = [*sorted((PACKAGE / "src").glob("*.cpp")), PACKAGE / "test" / "harness.cpp"]
        code = ctypes.CDLL(str(compiled(folder / "harness.so", sources, "-shared", "-fPIC")))
        if "tracking" in options.sections:
            values |= {"seconds": f"{SECONDS:g}", "seeds": options.seeds, "percent": f"{100 * MASS_ERROR:g}",
                       "payload": f"{PAYLOAD:g}", "tracked": "\n".join(tracking(robot, code, library("panda"), options.seeds))}
        if "upsets" in options.sections:
            values["upsets"] = "\n".join(upsets(code, library, options.upsets))
    page = HERE / "controllers.md"
    kept = dict(zip(SECTIONS, page.read_text().split("\n## ")[1:], strict=True))
    text = [SECTIONS[name].format(**values) if name in options.sections else f"\n## {kept[name]}" for name in SECTIONS]
    page.write_text(HEAD + "".join(text))


def update_section(found: dict[str, Side], cycles: int) -> dict[str, Any]:
    measured = times(found, cycles, 10)
    calls = {name: run(side, "calls", 10_000).strip() if side.plugin == PLUGIN else "" for name, side in found.items()}
    clean = {name: "0 of each" if " 0 locks 0 exceptions 0" in text else "" for name, text in calls.items()}
    rows = [f"| {name} | {p50:.0f} | {p999:.0f} | {mean:.0f} | {clean[name]} |"
            for name, (p50, p999, mean) in measured.items()]
    version = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return {"compiler": f"{version}, {' '.join(FLAGS)} -march=native", "cycles": cycles, "times": "\n".join(rows)}


HEAD = """# Controllers

Written by `python benchmark/controllers.py`: a Panda, 7 joints, 1 kHz, with the stand-in headers of rnea_controllers/test.
Their handles try to lock a shared mutex, as those of ros2_control do.
"""

SECTIONS = {"update": """
## update()

Processor time of one cycle [ns] over {cycles} cycles, including reading 14 states and 21 references and writing 7 efforts.
InverseDynamicsController also computes the exact torque rate, enforces limits, and writes 14 exported states. The row without
dynamics is the time for reading and writing 42 handles; InverseDynamicsController has 56. Controllers are measured
alternately; the values are medians of 10 rounds. p99.9 contains interrupts and cold caches of the machine, which the row
without dynamics shows. {compiler}.

| controller | p50 | p99.9 | mean | allocations, locks, exceptions, system calls |
|---|---|---|---|---|
{times}
""", "instructions": """
## Instructions

Number of instructions per cycle of InverseDynamicsController, computed_torque, exported for any processor of this
architecture, counted by valgrind: {counted}.
""", "tracking": """
## Tracking in MuJoCo

RMS of the tracking error of all joints [mrad] over {seconds} s and {seeds} arms whose masses are wrong by up to
{percent} %: without payload, and with a payload of {payload} kg that is unknown or known to the controller. Largest change of
a torque in a millisecond [N m], during the motion and after a step of the reference by 0.1 rad. PID, impedance and feedforward
have the same gains; both computed torque controllers have the same gains. The arm allows 1 N m per millisecond.

| controller | no payload | unknown payload | known payload | largest step of a torque | after a step of the reference |
|---|---|---|---|---|---|
{tracked}
""", "upsets": """
## Upsets

Random motions of a Panda and a UR5 in MuJoCo, without any other limiter, with peak velocities of 0.2 to 1 of their limits,
with computed torque, joint impedance and feedforward. Upsets: positions, velocities or both are stale or missing for 0.05 to
1 s, or a trajectory begins 0.1 to 1.5 rad away from the arm. The masses are exact or up to 5 % off; an unknown payload is 0 or
0.3 to 2 kg. The torque limit is the whole one or half of it, and the torque rate is limited to 1000 N m/s or unlimited. States
arrive at the full rate, half or a quarter of it with noise of 0.01 rad/s and 1 mrad. The arms have no friction unknown
to the controller and no end stops; `state_timeout` is 0, so that the controller is never deactivated. The last column is the
largest step of a torque in one cycle, relative to the torque rate limit, if there is one.

| upset | runs | on the path at the end, within 0.1 rad | at rest elsewhere | neither | largest step of a torque |
|---|---|---|---|---|---|
{upsets}
"""}


if __name__ == "__main__":
    main()

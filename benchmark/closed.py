"""One sample of robots with closed loops, from Python: palletiser and Stewart platform, as a node follows them."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from cases import ROOT
from timing import Loop, Times, interleaved, python_loop

from rnea_ros import load
from rnea_ros.trajectory.sample_torques import TorqueStream

ROBOTS = ("palletiser", "stewart")
SAMPLES, PERIOD = 2000, 2.0  # of one swing, which ends where it began; s
UNIT = "Pinocchio: rnea of the open tree (tau)"


def swing(start: np.ndarray, size: float) -> np.ndarray:
    """Return (SAMPLES, 4, n): q .. qddd, sines about a pose."""
    w, phases = 2.0 * np.pi / PERIOD, np.linspace(0.0, 2.0, len(start))
    angles = w * np.linspace(0.0, PERIOD, SAMPLES, endpoint=False)[:, None] + phases
    waves = [size * w**k * np.sin(angles + k * np.pi / 2.0) for k in range(4)]
    waves[0] = waves[0] + start
    return np.stack(waves, axis=1)


def sides(name: str) -> dict[str, Loop]:
    """Loops by name. One that follows goes on where it was, from sample to sample."""
    file = ROOT / "urdf" / f"{name}.urdf"
    robot = load(file, file.with_suffix(".robot.yaml"))
    assert not robot.is_fixed_tree
    start = robot.start[[*map(robot.tree.joint_names.index, robot.joint_names)]]
    samples = [list(sample) for sample in swing(start, 0.02 if name == "stewart" else 0.2)]
    stream, pose, index = TorqueStream(robot), robot.start, 0

    def of_stream(count: int) -> float:
        nonlocal index
        began = time.perf_counter()
        for _ in range(count):
            stream(*samples[index])
            index = (index + 1) % SAMPLES
        return time.perf_counter() - began

    def of_platform(count: int) -> float:
        nonlocal index
        began = time.perf_counter()
        for _ in range(count):
            robot.torque_and_rate(motion=moving[index], guess=pose)
            index = (index + 1) % SAMPLES
        return time.perf_counter() - began

    loops = {"ours: tau, tau_rate and gravity torques with rates of the next sample": of_stream,
             "ours: torque_and_rate, from the start pose": python_loop(robot.torque_and_rate, *samples[0])}
    if robot.platforms:
        moving = [robot.platform_of(robot.solve(*sample)) for sample in samples]
        loops["ours: torque_and_rate by the motion of the platform"] = of_platform
    model = pin.buildModelFromXML(file.read_text())
    data, q = model.createData(), pin.neutral(model)
    v = np.random.default_rng(0).uniform(-1.0, 1.0, model.nv)
    return loops | {UNIT: python_loop(pin.rnea, model, data, q, v, v)}


def measure(rounds: int) -> dict[str, dict[str, Times]]:
    return {name: interleaved(sides(name), rounds) for name in ROBOTS}


def lines(found: Mapping[str, Mapping[str, Times]]) -> list[str]:
    """Return the lines of results.md."""
    text = ["## Loops and platforms, one call from Python", "",
            "Time per call [us]. The loops of the palletiser (4 motors, 10 joints) and of the Stewart platform (6 motors) are "
            "solved from sample to sample, as in dynamics_node. Pinocchio's rnea of the same tree with open loops is given "
            "for comparison; it computes less.",
"", "| robot | computation | min | median | / rnea |", "|---|---|---|---|---|"]
    for robot, times in found.items():
        text += [f"| {robot} | {name} | {one.low * 1e6:.1f} | {one.middle * 1e6:.1f} | {one.over(times[UNIT]):.1f} |"
                 for name, one in times.items()]
    return text


if __name__ == "__main__":
    print("\n".join(lines(measure(60))))

"""Torque and torque rate beside Pinocchio, interleaved in one process: ``make bench`` writes results.md here.

Every claim is a ratio of two medians of the same run: absolute times drift with the machine.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import llvmlite
import numpy as np
import pinocchio as pin

from rnea_ros import Robot

HERE = Path(__file__).resolve().parent
ROBOTS = ("ur5_robot.urdf", "panda.urdf", "talos_reduced.urdf")
ROUNDS = 31


def urdf(name: str) -> Path:
    return next(Path(pin.__file__).parents[4].glob(f"share/example-robot-data/robots/**/{name}"))


class Case:
    """One robot: the same motion for both sides."""

    def __init__(self, path: Path):
        start = time.perf_counter()
        self.robot = Robot.from_urdf(path)
        self.motion = np.random.default_rng(0).uniform(-1.0, 1.0, (4, self.robot.n))
        self.robot.torque_and_rate(*self.motion)
        self.build = time.perf_counter() - start
        self.batch = np.random.default_rng(1).uniform(-1.0, 1.0, (4, 4096, self.robot.n))
        self.model = pin.buildModelFromUrdf(str(path))
        self.data = self.model.createData()
        rng = np.random.default_rng(2)
        self.v, self.a, self.j = rng.uniform(-1.0, 1.0, (3, self.model.nv))
        self.q = pin.integrate(self.model, pin.neutral(self.model), rng.uniform(-1.0, 1.0, self.model.nv))

    def pinocchio_rnea(self) -> None:
        pin.rnea(self.model, self.data, self.q, self.v, self.a)

    def pinocchio_rate(self) -> None:
        """The exact rate, as it can be had from the derivatives: dtau/dq v + dtau/dv a + M j."""
        dq, dv, M = pin.computeRNEADerivatives(self.model, self.data, self.q, self.v, self.a)
        dq @ self.v + dv @ self.a + M @ self.j

    def pinocchio_sensitivities(self) -> None:
        pin.computeRNEADerivatives(self.model, self.data, self.q, self.v, self.a)


def microseconds(call: Callable[[], object], seconds: float = 0.01) -> float:
    """Per call, over a loop of about `seconds`."""
    start = time.perf_counter()
    call()
    count = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count * 1e6


def measure(case: Case, rounds: int) -> dict[str, tuple[float, float]]:
    """(minimum, median) in microseconds, the sides taking turns."""
    robot, (q, qd, qdd, qddd) = case.robot, case.motion
    sides: dict[str, tuple[Callable[[], object], int]] = {
        "ours: tau and tau_rate, one call": (lambda: robot.torque_and_rate(q, qd, qdd, qddd), 1),
        "Pinocchio: rnea, one call": (case.pinocchio_rnea, 1),
        "Pinocchio: exact rate from derivatives": (case.pinocchio_rate, 1),
        "ours: tau and tau_rate, batch, per sample": (lambda: robot.torque_and_rate(*case.batch), case.batch.shape[1]),
        "ours: sensitivities of tau, one call": (lambda: robot.sensitivities(q, qd, qdd), 1),
        "Pinocchio: computeRNEADerivatives": (case.pinocchio_sensitivities, 1),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (call, samples) in sides.items():
            times[name].append(microseconds(call) / samples)
    return {name: (min(values), statistics.median(values)) for name, values in times.items()}


def report(rounds: int) -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    machine = (f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, "
               f"llvmlite {llvmlite.__version__}, Pinocchio {pin.__version__}, commit {commit}, {rounds} rounds.")
    lines = ["# Speed", "", "Written by `make bench`: microseconds per call or sample from Python, minimum and median of "
             "interleaved rounds.", "", machine]
    for name in ROBOTS:
        case = Case(urdf(name))
        found = measure(case, rounds)
        lines += ["", f"## {name}, {case.robot.n} joints; URDF to first result {case.build:.2f} s", "",
                  "| | min | median | median / Pinocchio rnea |", "|---|---|---|---|"]
        unit = found["Pinocchio: rnea, one call"][1]
        lines += [f"| {what} | {low:.2f} | {middle:.2f} | {middle / unit:.2f} |" for what, (low, middle) in found.items()]
        print("\n".join(lines[-len(found) - 4:]), flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results.md")
    args = parser.parse_args()
    args.output.write_text(report(args.rounds))
    print(f"-> {args.output}")

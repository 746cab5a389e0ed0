"""The robot in other libraries: an optimal control problem in CasADi, and batches with gradients in PyTorch and JAX.

``python benchmark/interop.py`` writes interop.md here; it needs casadi, pin, torch, jax and frax, all on the CPU. Everything
is measured in one run, sides in turn, and the fastest round counts.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "RNEA_ROS_CACHE": "",
               "RNEA_ROS_THREADS": "1",
               "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}

import frax
import interop_ocp
import jax
import numpy as np
import pinocchio as pin
import torch
from cases import path
from interop_ocp import Problem
from timing import interleaved

from rnea_ros import Robot
from rnea_ros.interop import casadi as in_casadi
from rnea_ros.interop import jax as in_jax
from rnea_ros.interop import torch as in_torch

HERE = Path(__file__).resolve().parent
SAMPLES = (1, 64, 4096)
ROUNDS = 5
COMPILED = ("ur5_robot",)  # CasADi's C of a Panda had not been compiled after 100 s of processor time
RATES = {"ur5_robot": 600.0, "panda": 1000.0}  # N m/s
WAY = np.array([0.84, -0.42, 0.56, 0.49, -0.42, 0.63, 0.35])  # rad


def optimal_control() -> tuple[list[str], list[str]]:
    """Return the rows of the table, and what compiling took."""
    rows, compilation = [], list[str]()
    for name, most in RATES.items():
        robot = Robot.from_urdf(path(name) if name == "ur5_robot" else HERE.parent / "urdf" / "panda.urdf")
        limits, n = robot.limits, robot.n
        middle = (np.maximum(limits.lower, -3.0) + np.minimum(limits.upper, 3.0)) / 2.0
        problem = Problem(middle - WAY[:n] / 2.0, middle + WAY[:n] / 2.0, limits.effort, np.full(n, most), limits.velocity)
        began = processor_time()
        library, made = in_casadi.external(robot), processor_time()
        symbols = interop_ocp.by_symbols(robot)
        compiled, took = interop_ocp.compiled(symbols) if name in COMPILED else None, processor_time() - made
        short, ours = name.removesuffix("_robot"), None
        times = f"{short}: {made - began:.0f} s for ours" + (f", {took:.0f} s for CasADi's" if compiled else "")
        compilation.append(times)
        for way, (function, exact) in interop_ocp.ways(library, symbols, compiled).items():
            best = min((interop_ocp.solve(function, problem, exact) for _ in range(3)), key=lambda one: one.solve)
            ours = ours or best
            rows.append(f"| {short} | {way} | {best.duration:.5f} | {best.iterations} | "
                        f"{best.setup:.3f} | {best.solve:.3f} | {best.solve / ours.solve:.1f} |")
            print(rows[-1], best.success, flush=True)
        print(times, flush=True)
    return rows, compilation


def processor_time() -> float:
    """Return seconds of this process and of those that it waited for, as compilers."""
    return sum(os.times()[:4])


def sides(count: int) -> tuple[dict[str, dict[str, Callable[[], Any]]], float]:
    """Return the calls by task and side, and the largest relative difference between the sides' gradients."""
    urdf = Path(frax.__file__).parent / "assets" / "franka_panda" / "panda.urdf"
    robot, peer = Robot.from_urdf(urdf), frax.load_panda()
    n, rng = robot.n, np.random.default_rng(0)
    x, seed = [rng.uniform(-1.0, 1.0, (count, n)) for _ in range(4)], rng.normal(size=(count, n))
    tensors = [torch.tensor(part, requires_grad=True) for part in x]
    arrays, seeds = [jax.numpy.asarray(part) for part in x], jax.numpy.asarray(seed)
    torques, rates = (in_torch.differentiable(robot, name) for name in ("inverse_dynamics", "torque_and_rate"))
    torques_jax, rates_jax = (in_jax.differentiable(robot, name) for name in ("inverse_dynamics", "torque_and_rate"))
    weight = torch.tensor(seed)
    gravity = jax.numpy.asarray(np.concatenate([-robot.gravity_vector, np.zeros(3)]))

    def frax_torque(*motion: Any) -> Any:
        return jax.vmap(lambda q, v, a: peer.rnea(q, v, a, gravity, None))(*motion)

    def frax_rate(*motion: Any) -> Any:
        return jax.jvp(frax_torque, motion[:3], motion[1:])[1]

    model = pin.buildModelFromUrdf(str(urdf))
    data = model.createData()

    def pin_torque() -> Any:
        return np.array([pin.rnea(model, data, *motion) for motion in zip(*x[:3], strict=True)])

    def pin_gradient() -> Any:
        found = []
        for *motion, w in zip(*x[:3], seed, strict=True):
            pin.computeRNEADerivatives(model, data, *motion)
            M = np.triu(data.M) + np.triu(data.M, 1).T
            found.append([w @ data.dtau_dq, w @ data.dtau_dv, w @ M])
        return tuple(np.swapaxes(found, 0, 1))

    def of_jax(function: Callable[..., Any], many: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """Return value and gradient, compiled."""
        motion = arrays[:many]
        value = jax.jit(function)
        gradient = jax.jit(jax.grad(lambda *moved: (function(*moved) * seeds).sum(), argnums=tuple(range(many))))
        return lambda: jax.block_until_ready(value(*motion)), lambda: jax.block_until_ready(gradient(*motion))

    calls = {"torque": {"torch": lambda: torques(*tensors[:3]), "pin, loop in Python": pin_torque},
             "torque, gradient": {"torch": lambda: torch.autograd.grad(torques(*tensors[:3]), tensors[:3], weight),
                                  "pin, loop in Python": pin_gradient},
             "torque rate": {"torch": lambda: rates(*tensors)[1]},
             "torque rate, gradient": {"torch": lambda: torch.autograd.grad(rates(*tensors)[1], tensors, weight)}}
    for task, many, functions in (("torque", 3, {"jax": torques_jax, "frax": frax_torque}),
                                  ("torque rate", 4, {"jax": lambda *m: rates_jax(*m)[1], "frax": frax_rate})):
        for side, function in functions.items():
            calls[task][side], calls[f"{task}, gradient"][side] = of_jax(function, many)
    worst = 0.0
    for by_side in calls.values():
        wanted, *others = (arrays_of(call()) for call in by_side.values())
        worst = max([worst, *(float(np.abs(other - wanted).max() / np.abs(wanted).max()) for other in others)])
    return calls, worst


def arrays_of(found: Any) -> np.ndarray:
    """Return one result or several as an array (results, samples, n)."""
    parts = found if isinstance(found, tuple) else (found,)
    return np.array([np.asarray(part.detach() if isinstance(part, torch.Tensor) else part) for part in parts])


def batches() -> tuple[list[str], float]:
    rows, worst = [], 0.0
    for count in SAMPLES:
        calls, difference = sides(count)
        worst = max(worst, difference)
        for task, by_side in calls.items():
            loops = {side: looped(call) for side, call in by_side.items()}
            found = interleaved(loops, rounds=ROUNDS, turn=0.2)
            best = {side: one.low / count * 1e6 for side, one in found.items()}
            order = ("torch", "jax", "frax", "pin, loop in Python")
            cells = " | ".join(f"{best[side]:.2f}" if side in best else "-" for side in order)
            rows.append(f"| {task} | {count} | {cells} |")
            print(rows[-1], flush=True)
    return rows, worst


def looped(call: Callable[[], Any]) -> Callable[[int], float]:
    def loop(count: int) -> float:
        begin = time.process_time()  # of all threads
        for _ in range(count):
            call()
        return time.process_time() - begin

    return loop


STORY = """# CasADi, PyTorch, JAX

{versions}; {machine}, one thread. Written by `python benchmark/interop.py`.

## Optimal control with torque-rate limits

Minimum-time motions from rest to rest with {intervals} intervals of constant jerk; torques and torque rates are limited at
both ends of each interval (UR5 600 N m/s, Panda 1000 N m/s). All solvers start from the same straight line and use IPOPT with
MUMPS and a tolerance of 1e-7. Setup is the time from the function to a solver. Times are processor time, the best of three.

"CasADi symbols" is the recursion of the papers on CasADi's scalars for the torque, with the rate by CasADi's own
differentiation. "Compiled" is the C code that CasADi generates from these functions and their derivatives, with the same
compiler and flags as our library. Processor time to trace and compile: {compilation}.
The compilation of CasADi's C code for a Panda was stopped after 100 s.

| robot | function | duration [s] | iterations | setup [s] | solve [s] | solve / ours |
|---|---|---|---|---|---|---|
{control}

## Batches with gradients

Processor time per sample [us] for a Panda of 7 joints in float64, the best of {rounds} rounds. The gradient is that of a
weighted sum of all results with respect to all inputs, and includes the forward pass. torch, jax: this package in these
libraries; frax: its own code in JAX, with `jax.jvp` for the rate. The largest relative difference of the results is
{worst:.0e}.

| result | samples | torch | jax | frax | pin, loop in Python |
|---|---|---|---|---|---|
{batch}
"""


def main() -> None:
    (control, compilation), (batch, worst) = optimal_control(), batches()
    versions = ", ".join(f"{name} {version(name)}" for name in ("casadi", "torch", "jax", "frax", "pin"))
    (HERE / "interop.md").write_text(STORY.format(
        versions=versions, machine=platform.machine(), intervals=interop_ocp.INTERVALS, control="\n".join(control),
        compilation="; ".join(compilation),
        rounds=ROUNDS, worst=worst, batch="\n".join(batch)), encoding="utf-8")


if __name__ == "__main__":
    main()

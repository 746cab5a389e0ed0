"""Machine code against machine code: each of our kernels beside what Pinocchio has for it, robot by robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from cases import Case, path
from loops import Pinocchio, our_loop
from timing import Loop, Times, interleaved
from toolchain import Missing

FIXED = (("seven_r", False), ("ur5_robot", False), ("panda", False), ("talos_reduced", False), ("human", False))
FLOATING = (("solo12", True), ("talos_reduced", True))
# Our evaluation, what it gives, Pinocchio's equivalents.
PAIRS = (
    ("torque_and_rate", "tau and tau_rate", ("rnea", "exact rate", "difference")),
    ("inverse_dynamics", "tau", ("rnea",)),
    ("mass_matrix", "mass matrix", ("crba world", "crba local")),
    ("forward_dynamics", "forward dynamics", ("aba world", "aba local")),
    ("sensitivities", "d tau / d q, d tau / d qd, mass matrix", ("derivatives",)),
)
FREE_PAIRS = (
    ("prescribed_base", "tau, tau_rate, base wrench and its rate", ("rnea", "exact rate")),
    ("free_mass_matrix", "mass matrix", ("crba world", "crba local")),
    ("free_response", "forward dynamics", ("aba world", "aba local")),
)


@dataclass(frozen=True)
class Row:
    robot: str
    n: int
    floating: bool
    gives: str
    ours: Times
    theirs: dict[str, Times]  # by Pinocchio's name


def measure(rounds: int) -> tuple[list[Row], list[str]]:
    """Rows, and what is missing."""
    rows: list[Row] = []
    missing: list[str] = []
    for name, floating in (*FIXED, *FLOATING):
        try:
            rows += _of_robot(Case(name, path(name), floating), rounds)
        except (Missing, IndexError) as reason:
            missing.append(f"{name}: {reason}")
    return rows, missing


def _compare(case: Case) -> None:
    """Check that both sides compute the same; loops.py checks torque and rate."""
    robot, (q, qd, qdd, _) = case.robot, case.motion[:, 0]
    model, data, fold = case.model, case.data, case.fold
    theirs_q, v, a, _ = np.split(case.pinocchio[0], np.cumsum([model.nq, model.nv, model.nv]))
    M = pin.crba(model, data, theirs_q)
    M = np.triu(M) + np.triu(M, 1).T
    dq, dv, _ = pin.computeRNEADerivatives(model, data, theirs_q, v, a)
    pairs = [(robot.mass_matrix(q), fold.T @ M @ fold),
             (robot.inverse_dynamics(q, qd, qdd), pin.rnea(model, data, theirs_q, v, a) @ fold),
             *zip(robot.sensitivities(q, qd, qdd), (fold.T @ dq @ fold, fold.T @ dv @ fold))]
    if case.n == model.nv:
        pairs.append((robot.forward_dynamics(q, qd, qdd), pin.aba(model, data, theirs_q, v, a) @ fold))
    for ours, theirs in pairs:
        assert np.abs(ours - theirs).max() <= 1e-9 * np.abs(theirs).max(), f"{case.name}: the sides differ"


def _of_robot(case: Case, rounds: int) -> list[Row]:
    pairs = FREE_PAIRS if case.floating else PAIRS
    pinocchio = Pinocchio(case)
    if not case.floating:
        _compare(case)
    sides: dict[str, Loop] = {f"ours {evaluation}": our_loop(case, evaluation) for evaluation, _, _ in pairs}
    sides |= {name: pinocchio.loop(name) for name in sorted({name for *_, names in pairs for name in names})}
    times = interleaved(sides, rounds)
    return [Row(case.name, case.n, case.floating, gives, times[f"ours {evaluation}"], {name: times[name] for name in names})
            for evaluation, gives, names in pairs]

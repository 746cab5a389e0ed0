"""Random machines of many combinations beside Pinocchio and MuJoCo with multipliers: torques, their rates, accelerations.

    python benchmark/campaign.py [COMBINATION ...] [--machines 20] [--first-seed 0] [--list]

COMBINATION is a name of test/support/random_combinations.py, or a part of one; default: all. Machines that were tried before
are not tried again (build/campaign.jsonl). Writes campaign.md beside this file, of all that were tried. Exit code 1: a machine
was refused, or an error is above its limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from support.random_combinations import COMBINATIONS, OTHERS, Errors, errors_of

HERE = Path(__file__).resolve().parent
ROWS = HERE.parent / "build" / "campaign.jsonl"  # one machine a line: an interrupted run goes on where it ended
LIMITS = Errors(torque=1e-11, rate=1e-9, acceleration=1e-9, mujoco=1e-11)
OTHER_LIMITS = Errors(torque=1e-9, rate=1e-7, acceleration=1e-9, mujoco=1e-9)  # where motions and rates are differences
NAMES = (*COMBINATIONS, *OTHERS)

HEAD = """# Random robots of many combinations

`python benchmark/campaign.py --machines {machines} --first-seed {first}` generates random robots of each combination, each at
one instant of a random motion. Geometry, masses, cut joints, springs, drives and motion are random
(`test/support/random_combinations.py`); the seed reproduces a robot. Robots of an earlier run (seeds from 100) are included.

The oracle (`test/support/constrained_motion.py`) reads URDF and robot file independently, uses mass matrix, bias and Jacobians
of Pinocchio, and solves `M a + h = S tau + J^T lambda`, `J a + drift = 0`; torques of minimum norm satisfy the conditions of
the minimum. Unknown motions are integrated in time (DOP853). Rates are derivatives of polynomials through {nodes} Chebyshev
points of that motion. MuJoCo: torques from the same equations with MuJoCo's mass matrix, bias, Jacobians and their rates; "-":
MuJoCo has no free joint below a moving base.

Errors are the largest of all robots, relative to the largest torque, rate or acceleration of the robot. The limits are
{torque:g}, {rate:g} and {acceleration:g}. "Pinocchio and MuJoCo" is the difference between the two oracles.

The last rows have other oracles, limits of 1e-9, 1e-7 and 1e-9, and rates by sixth-order differences.

* Vehicles with a turret (`test/support/rolling_machines.py`): wheel speeds in closed form, Pinocchio's inverse dynamics,
  ground forces and torques of minimum norm by least squares.
* Flexible links (`beam_oracle.py`): Pinocchio computes every joint of the chains that represent two flexible links with one to
  three modes per direction, half of them with torsion; "acceleration" is the residual effort of the modes.
* Eels (`swimming.py`): Pinocchio's kinematics with Lamb's terms and drag in spatial vectors, four to seven joints; the motion
  of a free head is integrated.

Two robots on balls exceed the torque limit because the oracle differentiates their velocities: with twice its step, the errors
are 62 times as large, as expected for sixth-order truncation.

| combination | robots | torque | torque rate | acceleration | Pinocchio and MuJoCo | failed |
|---|---|---|---|---|---|---|
"""


def machine(name: str, seed: int) -> dict[str, Any]:
    """Return a row: errors, or why there are none."""
    began = time.process_time()
    row: dict[str, Any] = {"combination": name, "seed": seed}
    try:
        row["errors"] = list(errors_of(name, seed))
    except Exception as reason:  # a campaign goes on
        row["failed"] = f"{type(reason).__name__}: {reason}"
    return row | {"seconds": time.process_time() - began}


def failure(row: dict[str, Any]) -> str:
    """Return what is wrong with a machine, or nothing."""
    if "failed" in row:
        return str(row["failed"])
    above = [f"{what} {error:.1e}" for what, error, limit in zip(
        Errors._fields, row["errors"], OTHER_LIMITS if row["combination"] in OTHERS else LIMITS, strict=True) if error > limit]
    return ", ".join(above)


def page(rows: list[dict[str, Any]], machines: int, first: int) -> str:
    text = HEAD.format(machines=machines, first=first, nodes=21, **LIMITS._asdict())
    for name in NAMES:
        here = [row for row in rows if row["combination"] == name]
        errors = np.array([row["errors"] for row in here if "errors" in row], dtype=float)
        if not len(errors):
            continue
        worst = [f"{np.nanmax(column):.1e}" if np.isfinite(column).any() else "-" for column in errors.T]
        failed = sum(bool(failure(row)) for row in here)
        text += f"| {name} | {len(here)} | {' | '.join(worst)} | {failed or ''} |\n"
    bad = [(row, failure(row)) for row in rows if failure(row)]
    whole = np.array([row["errors"] for row in rows if "errors" in row], dtype=float)
    text += (f"\n{len(rows)} robots, {len(bad)} failed. Median errors: torque {np.median(whole[:, 0]):.1e}, rate "
             f"{np.median(whole[:, 1]):.1e}.\n")
    if bad:
        text += "\n" + "\n".join(f"* {row['combination']}, seed {row['seed']}: {why}" for row, why in bad) + "\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("combinations", nargs="*", metavar="COMBINATION")
    parser.add_argument("--machines", type=int, default=20, help="of each combination")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="print the names of the combinations")
    args = parser.parse_args()
    if args.list:
        print("\n".join(NAMES))
        return 0
    names = [name for name in NAMES if not args.combinations or any(part in name for part in args.combinations)]
    seeds = range(args.first_seed, args.first_seed + args.machines)
    ROWS.parent.mkdir(exist_ok=True)
    kept = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    done = {(row["combination"], row["seed"]): row for row in kept}
    for name in names:
        for seed in seeds:
            if (name, seed) not in done:
                row = done[name, seed] = machine(name, seed)
                with ROWS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                errors = " ".join(f"{error:.1e}" for error in row.get("errors", ()))
                print(f"{name}, seed {seed}: {errors} ({row['seconds']:.1f} s) {failure(row)}", flush=True)
    tried = [row for (name, _), row in done.items() if name in NAMES]
    (HERE / "campaign.md").write_text(page(tried, args.machines, args.first_seed), encoding="utf-8")
    return int(any(failure(done[name, seed]) for name in names for seed in seeds))


if __name__ == "__main__":
    sys.exit(main())

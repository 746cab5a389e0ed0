"""Speed beside other libraries, all sides interleaved: ``make bench`` writes results.md and its pictures here.

--quick takes a fifth of the time; --only kernels,node prints some sections and writes nothing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import batch
import calls
import closed
import combinations
import joints
import kernels
import laws
import mix
import plots
import report
from cases import Case, path
from loops import our_loop
from timing import interleaved
from toolchain import Missing, library

HERE = Path(__file__).resolve().parent
SECTIONS = ("kernels", "calls", "closed", "combinations", "batch", "joints", "node", "ticks", "laws")


def measure(sections: tuple[str, ...], rounds: int, node_seconds: float) -> dict[str, Any]:
    """Return results by section; "missing" lists what could not be measured."""
    found: dict[str, Any] = {"missing": []}

    def attempt(section: str, work: Any) -> None:
        if section in sections:
            print(f"[bench] {section}", flush=True)
            try:
                found[section] = work()
            except (Missing, ImportError) as reason:
                found["missing"].append(f"{section}: {reason}")

    attempt("kernels", lambda: kernels.measure(rounds))
    if "kernels" in found:
        found["missing"] += found["kernels"][1]
    attempt("calls", lambda: _calls(rounds, found["missing"]))
    attempt("closed", lambda: closed.measure(rounds))
    attempt("combinations", lambda: combinations.measure(rounds))
    attempt("batch", lambda: [batch.measure(file.stem, file, rounds) for file in (batch.STANFORD, batch.SEVEN)])
    if "batch" in found:
        sections += ("mix",)
        attempt("mix", lambda: [mix.measure(file.stem, file, one.operations, one.peak, rounds)
                                for file, one in zip((batch.STANFORD, batch.SEVEN), found["batch"])])
    attempt("joints", lambda: joints.measure(rounds, _has_pinocchio()))
    attempt("node", lambda: __import__("node").measure(node_seconds))
    attempt("ticks", lambda: __import__("ticks").measure(node_seconds))
    attempt("laws", laws.measure)
    found["missing"] += found.get("laws", {}).get("missing", [])
    return found


def _has_pinocchio() -> bool:
    try:
        return bool(library("pinocchio_loops"))
    except Missing:
        return False


def _calls(rounds: int, missing: list[str]) -> dict[str, Any]:
    found = {}
    for name in ("seven_r", "ur5_robot", "panda", "talos_reduced", "human"):
        case = Case(name, path(name))
        sides, absent = calls.sides(case)
        found[name] = interleaved({"kernel": our_loop(case, "torque_and_rate"), **sides}, rounds)
        missing += absent
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("-o", "--output", type=Path, default=HERE)
    args = parser.parse_args()
    sections, rounds = tuple(args.only.split(",")), 60 if args.quick else 400
    args.output.mkdir(parents=True, exist_ok=True)  # not after ten minutes
    start = time.monotonic()
    found = measure(sections, rounds, 10.0 if args.quick else 60.0)
    text = report.written(found, rounds, (time.monotonic() - start) / 60)
    print(text)
    if sections == SECTIONS:
        write(found, text, args.output)


def write(found: dict[str, Any], text: str, folder: Path) -> None:
    (folder / "results.md").write_text(text)
    for section, draw, name in (("joints", plots.joints, "joints.png"), ("node", plots.latency, "latency.png")):
        if section in found:
            draw(found[section], folder / name)
    print(f"-> {folder / 'results.md'}")


if __name__ == "__main__":
    main()

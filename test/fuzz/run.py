"""`make fuzz`: fuzz every target in a separate process; fails if there are findings.

python -m fuzz.run --seconds 60 --seed 1           all targets, 60 s together
python -m fuzz.run --seconds 600 --target urdf bag
python -m fuzz.run --again build/fuzz/urdf-1f3a...  one input, once more
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from fuzz.campaign import TARGETS
from fuzz.target import outcome

START, HANG = 60.0, 120.0  # [s]: to start; to end after the given time
FOLDER = Path("build/fuzz")


def tried(name: str, seconds: float, seed: int, folder: Path, count: int) -> dict:
    """Return the output of a campaign; a process that died or hung is a finding."""
    command = [sys.executable, "-X", "faulthandler", "-m", "fuzz.campaign", name, "--seconds", str(seconds), "--seed",
               str(seed), "--folder", str(folder), "--count", str(count)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START + seconds + HANG)
    except subprocess.TimeoutExpired:
        return {"became": {}, "found": {"hang": f"no end; the input is in {folder / name}.last"}, "megabytes": 0}
    lines = done.stdout.splitlines()
    if done.returncode or not lines or not lines[-1].startswith("{"):
        why = f"exit code {done.returncode}; the input is in {folder / name}.last\n{done.stderr[-2000:]}"
        return {"became": {}, "found": {"crash": why}, "megabytes": 0}
    return json.loads(lines[-1])


def reported(name: str, result: dict) -> str:
    became = Counter(result["became"])
    most = ", ".join(f"{word} {count}" for word, count in became.most_common(4))
    lines = [f"{name:<11} {became.total():>9} inputs, {result['megabytes']} MB: {most}"]
    return "\n".join([*lines, *(f"  FOUND {where}: {what}" for where, what in result["found"].items())])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of all targets together (%(default)s)")
    parser.add_argument("--count", type=int, default=10**9, help="of inputs of each target, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for what is found (%(default)s)")
    parser.add_argument("--again", type=Path, help="an input that was found")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.again:
        name = given.again.name.partition("-")[0].removesuffix(".last")
        print(outcome(TARGETS[name].make(given.folder), given.again.read_bytes()))
        return 0
    results = {}
    for name in given.target:
        results[name] = tried(name, given.seconds / len(given.target), given.seed, given.folder, given.count)
        print(reported(name, results[name]), flush=True)
    total = sum(sum(result["became"].values()) for result in results.values())
    found = sum(len(result["found"]) for result in results.values())
    print(f"{total} inputs, seed {given.seed}: {found or 'nothing'} found" + (f", in {given.folder}" if found else ""))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

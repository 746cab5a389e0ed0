"""Command that adds the processor steps to the checkpoint of a policy in a local folder, or removes them.

lerobot-rnea outputs/train/act/checkpoints/last/pretrained_model
lerobot-rnea --remove outputs/train/act/checkpoints/last/pretrained_model
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

STEP = "rnea_protect_chunks"
FILES = ("policy_preprocessor.json", "policy_postprocessor.json")


def edit(folder: Path, remove: bool = False) -> None:
    """Add a step to both processors of a checkpoint: first, where observations come in, and last, where actions leave."""
    for name in FILES:
        path = folder / name
        content = json.loads(path.read_text(encoding="utf-8"))
        steps = [step for step in content["steps"] if step.get("registry_name") != STEP]
        if not remove:
            steps.insert(0 if name == FILES[0] else len(steps), {"registry_name": STEP, "config": {}})
        content["steps"] = steps
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with policy_preprocessor.json and policy_postprocessor.json")
    parser.add_argument("--remove", action="store_true")
    given = parser.parse_args(arguments)
    missing = [name for name in FILES if not (given.folder / name).is_file()]
    if missing:
        parser.error(f"{given.folder} has no {' and no '.join(missing)}: give the folder of a checkpoint")
    edit(given.folder, given.remove)
    print(f"{'removed from' if given.remove else 'added to'} {given.folder}: {STEP}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

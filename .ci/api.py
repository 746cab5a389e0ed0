"""Comparison of the public names of rnea_ros with those of an earlier commit: breaking changes for users.

python .ci/api.py [COMMIT]        default: the last tag, without one the commit before; exit code 1 if anything breaks
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[1]


def last_release() -> str:
    """Return the newest tag; without one, the previous commit."""
    found = subprocess.run(["git", "describe", "--tags", "--abbrev=0"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "HEAD~1"


def public(package: griffe.Module) -> dict[str, griffe.Object]:
    """Return the names of __all__, each as the class or function that it leads to."""
    found = {name: package[name] for name in package.exports or ()}
    return {str(name): one.final_target if one.is_alias else one for name, one in found.items()}


def broken(before: griffe.Module, now: griffe.Module) -> list[str]:
    """Return a line for each public name that was removed, or whose signature changed."""
    old, new = public(before), public(now)
    lines = [f"{name}: no longer there" for name in old if name not in new]
    for name, one in old.items():
        if name in new:
            lines += [change.explain(griffe.ExplanationStyle.ONE_LINE)
                      for change in griffe.find_breaking_changes(one, new[name])]
    return [re.sub(r"\x1b\[\d+m", "", line) for line in lines]


def main() -> int:
    commit = sys.argv[1] if len(sys.argv) > 1 else last_release()
    before = griffe.load_git("rnea_ros", ref=commit, repo=ROOT, resolve_aliases=True)
    now = griffe.load("rnea_ros", search_paths=[ROOT], resolve_aliases=True)
    lines = broken(before, now)
    print("\n".join(lines) or f"nothing public has broken since {commit}: {len(public(now))} names")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())

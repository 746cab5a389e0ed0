"""Fuzzing of the same targets guided by coverage, where atheris installs.

    python -m fuzz.guided urdf -max_total_time=60 -seed=1

Inputs that reach new lines of rnea_ros are kept and changed further, in build/fuzz/corpus/TARGET. Other options are those of
libFuzzer. It ends with the first finding.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["rnea_ros"]):
    from fuzz.campaign import TARGETS
    from fuzz.target import outcome

FOLDER = Path("build/fuzz")


def main() -> None:
    target = TARGETS[sys.argv[1]]
    corpus = FOLDER / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    attempt = target.make(Path(tempfile.mkdtemp()))
    limits = ["-rss_limit_mb=4096", "-timeout=60", "-max_len=131072", f"-artifact_prefix={FOLDER}/{target.name}-"]
    atheris.Setup([sys.argv[0], *limits, *sys.argv[2:], str(corpus)], lambda data: outcome(attempt, data) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

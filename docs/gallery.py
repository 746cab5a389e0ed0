"""The gallery: every example is run where the site is built, and gets a page with its words, its picture and its code.

What an example drew is kept in build/gallery until the example or the package changes. ``-D gallery_run=0`` draws nothing: for
a quick build of the pages.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import image

ROOT = Path(__file__).resolve().parents[1]
PAGES, DRAWN = ROOT / "docs" / "gallery", ROOT / "build" / "gallery"
WIDTH = 480  # of pictures in the overview [pixels]
MAX_PROCESSES, TIMEOUT_S = 2, 1800.0


def build(app: Any) -> None:
    """Build the gallery; called by Sphinx before it reads the pages."""
    PAGES.mkdir(exist_ok=True)
    DRAWN.mkdir(parents=True, exist_ok=True)
    examples = sorted((ROOT / "examples").glob("*.py"))
    with ThreadPoolExecutor(MAX_PROCESSES) as pool:
        said = list(pool.map(run, examples)) if app.config.gallery_run else [""] * len(examples)
    cards = [page(example, text) for example, text in zip(examples, said)]
    (PAGES / "index.md").write_text("# Gallery\n\nThe files of `examples/`, run when this site was built.\n\n"
                                    "::::{container} gallery\n" + "".join(cards) + "::::\n\n```{toctree}\n:hidden:\n\n"
                                    + "".join(f"{example.stem}\n" for example in examples) + "```\n", encoding="utf-8")


def run(example: Path) -> str:
    """Run an example and return its output; its picture is stored for the pages."""
    picture, text = DRAWN / f"{example.stem}.png", DRAWN / f"{example.stem}.txt"
    sources = [example, *(ROOT / "rnea_ros").rglob("*.py")]
    if not text.exists() or text.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        done = subprocess.run([sys.executable, str(example), str(DRAWN)], cwd=ROOT, capture_output=True, text=True,
                              timeout=TIMEOUT_S, env={**os.environ, "PYTHONPATH": str(ROOT)})
        if done.returncode or not picture.exists():
            raise RuntimeError(f"{example.name} drew no picture: {done.stderr}")
        text.write_text(done.stdout, encoding="utf-8")
    return text.read_text(encoding="utf-8")


def page(example: Path, said: str) -> str:
    """Write the page of an example; return its card in the overview."""
    name, drawn, picture = example.stem, DRAWN / f"{example.stem}.png", PAGES / f"{example.stem}.png"
    small = PAGES / f"{name}_small.png"
    if drawn.exists():
        shutil.copyfile(drawn, picture)
        image.thumbnail(drawn, small, WIDTH / image.imread(drawn).shape[1])
    else:
        for blank in (picture, small):
            image.imsave(blank, np.ones((1, 1, 3)))
    first, *words = (ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or name).split("\n\n")
    words.insert(0, first)
    summary = " ".join(first.split())
    title = summary.partition(": ")[0].rstrip(".")
    words = [f"```text\n{part.strip()}\n```" if part.startswith("    ") else part for part in words]
    said = f"It prints:\n\n```text\n{said.rstrip()}\n```\n\n" if said.strip() else ""
    (PAGES / f"{name}.md").write_text(f"# {title}\n\n![{title}]({name}.png)\n\n" + "\n\n".join(words) + f"\n\n{said}"
                                      f"```{{literalinclude}} ../../examples/{name}.py\n```\n", encoding="utf-8")
    return f":::{{container}} card\n[![{title}]({name}_small.png)]({name}.md)\n\n{summary}\n:::\n"

"""Documentation site: it builds without warnings, and every public name has a description."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rnea_ros

ROOT = Path(__file__).resolve().parents[2]
# Sphinx without pages of source code and without the navigation beside each page, which take half of the time.
PROGRAM = """
import sys
import furo
import sphinx.ext.viewcode
from sphinx.cmd.build import main

furo._compute_navigation_tree = lambda context: ""
sphinx.ext.viewcode.setup = lambda app: {"parallel_read_safe": True}
sys.exit(main(sys.argv[1:]))
"""
SPHINX = ("-c", PROGRAM, "--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", "docs", "--define",
          "gallery_run=0", ".")


@pytest.mark.timeout(600)
def test_site_builds_without_warnings(tmp_path):
    for needed in ("sphinx", "myst_parser", "furo", "sphinx_copybutton", "matplotlib"):
        pytest.importorskip(needed)
    done = subprocess.run([sys.executable, *SPHINX, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stderr
    assert "exact time derivatives along a motion" in (tmp_path / "docs/api/generated/rnea_ros.Robot.html").read_text()
    assert (tmp_path / "searchindex.js").stat().st_size > 10_000
    (front,) = re.findall(r'url=([^"]+)"', (tmp_path / "index.html").read_text())
    assert "demo_plant.gif" in (tmp_path / front).read_text()
    if importlib.util.find_spec("sphinx-mathjax-offline"):  # equations without a network
        scripts = re.findall(r'<script[^>]* src="([^"]+)"', (tmp_path / "docs/systems/torque_rate.html").read_text())
        assert any("tex-svg.js" in script for script in scripts) and not [script for script in scripts if "//" in script]
        assert (tmp_path / "_static/tex-svg.js").stat().st_size > 1_000_000


def own(cls: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods and properties defined in this package."""
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        ours = any(name in base.__dict__ and base.__module__.startswith("rnea_ros") for base in cls.__mro__)
        inner = getattr(value, "__func__", None) or getattr(value, "func", None) or value  # of class methods, cached ones
        if not name.startswith("_") and ours and (callable(inner) or isinstance(inner, property)):
            yield name, inner


def test_every_public_name_has_a_description():
    silent, seen = [], set()
    for name in rnea_ros.__all__:
        found = getattr(rnea_ros, name)
        members = own(found) if inspect.isclass(found) else ()
        for path, value in ((name, found), *((f"{name}.{member}", value) for member, value in members)):
            seen.add(path)
            if not inspect.getdoc(value):
                silent.append(path)
    assert not silent
    assert {"load", "plan_motion", "Robot.torque_and_rate", "Robot.close", "Robot.joint_names"} <= seen

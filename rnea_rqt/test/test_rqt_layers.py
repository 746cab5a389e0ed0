"""Architecture of rnea_rqt, checked in the source: widgets do not import ROS, and only one file imports Qt."""

from __future__ import annotations

import ast
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "rnea_rqt"
FILES = {file.relative_to(PACKAGE).as_posix(): file for file in sorted(PACKAGE.rglob("*.py"))}
ROS = ("rclpy", "rcl_interfaces", "*_msgs", "*_srvs")
# Allowed imports besides NumPy and the standard library; the first matching pattern counts. Data flows one way.
LAYERS = {
    "__init__.py": (), "widgets/__init__.py": (),
    "qt.py": ("PySide6",),  # for types only
    "data.py": (),
    "history.py": ("rnea_rqt.data",), "inbox.py": ("rnea_rqt.data",),
    "messages.py": ("rnea_rqt.data", *ROS),
    "widgets/*": ("rnea_rqt.qt", "rnea_rqt.data", "rnea_rqt.history", "rnea_rqt.widgets.*"),
    "streams.py": ROS,
    "bridge.py": ("rnea_rqt.qt", "rnea_rqt.data", "rnea_rqt.inbox", "rnea_rqt.messages",
                  "rnea_rqt.streams", *ROS),
    "session.py": ("rnea_rqt.qt", "rnea_rqt.bridge", "rnea_rqt.widgets.panel", *ROS),
    "application.py": ("rnea_rqt.qt", "rnea_rqt.session", *ROS),
    "plugin.py": ("rnea_rqt.session", "rqt_gui_py.*"),
}


def imported(file: Path) -> set[str]:
    """Return imported modules; those of this package have absolute names."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "no relative imports"
            inner = {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "rnea_rqt" else {node.module}
            found |= inner
    return {name for name in found if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy"}}


@pytest.mark.parametrize("name", FILES)
def test_modules_import_only_their_allowed_layers(name):
    allowed = next(patterns for pattern, patterns in LAYERS.items() if fnmatch(name, pattern))
    for module in imported(FILES[name]):
        top = module if module.startswith(("rnea_rqt", "rqt_gui_py")) else module.partition(".")[0]
        assert any(fnmatch(top, pattern) for pattern in allowed), f"{name} imports {module}"


@pytest.mark.parametrize("name", FILES)
def test_files_have_at_most_300_lines(name):
    assert len(FILES[name].read_text(encoding="utf-8").splitlines()) <= 300

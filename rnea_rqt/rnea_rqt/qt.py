"""Qt, from whichever binding is there: the only file that imports one.

rqt has python_qt_binding (PyQt5 or PySide2, Qt 6 in later distributions); without ROS there are PySide6 and PyQt5 from PyPI.
Code here and in the widgets is for all of them: enumerations by their full names, floats as QPointF and QRectF.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

BINDINGS = ("python_qt_binding", "PySide6", "PyQt5")


def _binding():
    for name in BINDINGS:
        try:
            return [import_module(f"{name}.{part}") for part in ("QtCore", "QtGui", "QtWidgets")]
        except ModuleNotFoundError as missing:
            if missing.name not in (name, f"{name}.QtCore"):
                raise
    raise ModuleNotFoundError(f"no Qt for Python: tried {', '.join(BINDINGS)}; "
                              "with ROS install ros-$ROS_DISTRO-rqt-gui-py, else pip install PySide6-Essentials")


if TYPE_CHECKING:
    from PySide6 import QtCore, QtGui, QtWidgets
else:
    QtCore, QtGui, QtWidgets = _binding()
Qt = QtCore.Qt
Signal = QtCore.Signal if hasattr(QtCore, "Signal") else getattr(QtCore, "pyqtSignal")  # noqa: B009
Action = getattr(QtGui, "QAction", None) or getattr(QtWidgets, "QAction")  # noqa: B009  Qt 6, Qt 5

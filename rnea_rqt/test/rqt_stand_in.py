"""Stand-in for the part of rqt_gui_py that a plugin uses."""

from __future__ import annotations

import sys
from types import ModuleType


class Plugin:
    def __init__(self, context):
        self.context, self.name = context, ""

    def setObjectName(self, name):
        self.name = name


class Context:
    """Context that rqt passes to a plugin."""

    def __init__(self, node, serial=1):
        self.node, self._serial, self.widgets = node, serial, []

    def serial_number(self):
        return self._serial

    def add_widget(self, widget):
        self.widgets.append(widget)


class Settings(dict):
    """Settings that store text, as INI files do."""

    def set_value(self, key, value):
        self[key] = str(value)

    def value(self, key, default=None):
        return self.get(key, default)


def installed(patch) -> None:
    """Make `from rqt_gui_py.plugin import Plugin` import this class."""
    package, module = ModuleType("rqt_gui_py"), ModuleType("rqt_gui_py.plugin")
    module.Plugin = Plugin
    patch.setitem(sys.modules, "rqt_gui_py", package)
    patch.setitem(sys.modules, "rqt_gui_py.plugin", module)

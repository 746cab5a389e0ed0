"""Panel with its bridge to ROS, shared by the plugin and the program."""

from __future__ import annotations

import json

from rclpy.context import Context

from rnea_rqt.bridge import Bridge
from rnea_rqt.qt import QtCore
from rnea_rqt.widgets.panel import Panel

FRAME = 33  # ms between two pictures, however many messages come


class Session(QtCore.QObject):
    """Panel and bridge of one window, for calls in the window's thread."""

    def __init__(self, context: Context):
        super().__init__()
        self.panel, self.bridge = Panel(), Bridge(context)
        panel, bridge = self.panel, self.bridge
        panel.dynamics_chosen.connect(bridge.watch_dynamics)
        panel.scaling_chosen.connect(bridge.watch_scaling)
        panel.commanded.connect(bridge.command)
        panel.overridden.connect(bridge.override)
        panel.payload_applied.connect(bridge.apply_payload)
        bridge.found.connect(panel.offer)
        bridge.said.connect(panel.say)
        bridge.links_read.connect(panel.payload.set_links)
        bridge.payload_read.connect(panel.payload.show_payload)
        self._timer = QtCore.QTimer(self)
        self._timer.timeout.connect(self._show)
        self._timer.start(FRAME)

    def _show(self) -> None:
        self.panel.show_update(self.bridge.inbox.take())

    def saved(self) -> str:
        """All settings, as one text: Qt's files do not keep types."""
        return json.dumps(self.panel.settings())

    def restore(self, text: object) -> None:
        """Restore the state that `saved` returned; anything else is ignored."""
        try:
            settings = json.loads(str(text))
        except ValueError:
            return
        if isinstance(settings, dict):
            self.panel.restore(settings)

    def close(self) -> None:
        self._timer.stop()
        self.bridge.close()

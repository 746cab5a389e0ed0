"""The window as a plugin of rqt."""

from __future__ import annotations

from rqt_gui_py.plugin import Plugin

from rnea_rqt.session import Session

KEY = "session"


class RneaPlugin(Plugin):
    """rqt keeps the settings, with its perspective."""

    def __init__(self, context):
        super().__init__(context)
        self.setObjectName("RneaPlugin")
        self.session = Session(context.node.context)
        if context.serial_number() > 1:
            self.session.panel.setWindowTitle(f"{self.session.panel.windowTitle()} ({context.serial_number()})")
        context.add_widget(self.session.panel)

    def shutdown_plugin(self):
        self.session.close()

    def save_settings(self, plugin_settings, instance_settings):
        instance_settings.set_value(KEY, self.session.saved())

    def restore_settings(self, plugin_settings, instance_settings):
        self.session.restore(instance_settings.value(KEY, ""))

"""Standalone program with the window: ros2 run rnea_rqt rnea_rqt."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

import rclpy
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import get_default_context, remove_ros_args

from rnea_rqt.qt import QtCore, QtWidgets
from rnea_rqt.session import Session

KEY = "session"


def main(begin: Callable[[Session], None] = lambda session: None) -> int:
    """Run until the window is closed, or SIGINT or SIGTERM. begin(session) is called when the window is open."""
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    app = QtWidgets.QApplication(remove_ros_args(sys.argv))
    settings, session = QtCore.QSettings("rnea_ros", "rnea_rqt"), Session(get_default_context())
    try:
        session.restore(settings.value(KEY, ""))
        for which in (signal.SIGINT, signal.SIGTERM):
            signal.signal(which, lambda *_: app.quit())  # handled at the next picture, when Python runs again
        session.panel.show()
        begin(session)
        code = (getattr(app, "exec", None) or app.exec_)()
        settings.setValue(KEY, session.saved())
        settings.sync()
        return code
    finally:
        session.close()
        rclpy.try_shutdown()


if __name__ == "__main__":
    sys.exit(main())

"""The window as a program of its own: ros2 run rnea_rqt rnea_rqt."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable

import rclpy
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from rnea_rqt.qt import QtCore, QtWidgets
from rnea_rqt.session import Session

KEY = "session"


def main(begin: Callable[[Session], None] = lambda session: None) -> int:
    """Ends when the window is closed, or on SIGINT or SIGTERM. begin(session) is called when the window is there."""
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("rnea_rqt")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    app = QtWidgets.QApplication(rclpy.utilities.remove_ros_args(sys.argv))
    settings, session = QtCore.QSettings("rnea_ros", "rnea_rqt"), Session(node)
    thread = threading.Thread(target=_spin, args=(executor, session.bridge.said.emit), name="ros")
    session.restore(settings.value(KEY, ""))
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, lambda *_: app.quit())  # heard at the next picture, when Python runs again
    session.panel.show()
    thread.start()
    begin(session)
    try:
        return (getattr(app, "exec", None) or app.exec_)()
    finally:
        settings.setValue(KEY, session.saved())
        settings.sync()
        executor.shutdown()
        thread.join()
        session.close()
        node.destroy_node()
        rclpy.try_shutdown()


def _spin(executor: SingleThreadedExecutor, say: Callable[[str], None]) -> None:
    """A callback that fails is told in the window, and the others go on."""
    while executor.context.ok():
        try:
            return executor.spin()
        except (ExternalShutdownException, ShutdownException):
            return
        except Exception as error:
            traceback.print_exc()
            say(f"failed: {error!r:.300}")


if __name__ == "__main__":
    sys.exit(main())

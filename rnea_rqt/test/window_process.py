"""Window in a separate process, operated by a script: waits for torques, pauses and resumes the motion, sets a payload.

It prints a line for each completed step; the parent process limits the time.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rnea_rqt.application import main
from rnea_rqt.data import INDEX, Payload
from rnea_rqt.qt import QtCore, QtWidgets


class WindowScript(QtCore.QObject):
    """Run the steps of the script, each when its condition is shown in the window."""

    def __init__(self, session):
        super().__init__()
        self.panel = session.panel
        self.steps = self.script()
        next(self.steps)
        self.timer = QtCore.QTimer(self)
        self.timer.timeout.connect(self.check)
        self.timer.start(50)

    def check(self):
        if next(self.steps, "end") == "end":
            self.timer.stop()
            QtWidgets.QApplication.instance().quit()

    def phase(self) -> str:
        return self.panel.motion.labels["phase"].text()

    def script(self):
        """Wait while the generator yields."""
        panel, motion = self.panel, self.panel.motion
        yield from wait(lambda: panel.status.text().endswith(" Hz") and panel.table.bars.known(INDEX["effort"]))
        print(f"torques of {panel.dynamics.node}", flush=True)
        yield from wait(lambda: panel.lights.count() >= 2 and panel.payload.payload().link)
        print("lights", flush=True)
        yield from wait(lambda: self.phase() == "moving")
        yield from press(motion.buttons["pause"].click, lambda: self.phase().startswith("paused"))
        print("paused", flush=True)
        yield from press(motion.buttons["resume"].click, lambda: self.phase() == "moving")
        print("resumed", flush=True)
        motion.slider.setValue(50)
        yield from press(motion._rest.start, lambda: "override" in panel.message.text() and motion.share.text() == "50 %")
        print("overridden", flush=True)
        panel.payload.show_payload(Payload(panel.payload.payload().link, 0.05, (0.0, 0.0, 0.01)))
        yield from press(panel.payload.apply.click, lambda: panel.message.text().count(": 0.05 kg") == 2)  # both nodes
        print("loaded", flush=True)


def wait(condition):
    while not condition():
        yield


def press(action, condition):
    """Repeat the action every ten seconds, since a response can be lost on a busy machine."""
    for check in count():
        if check % 200 == 0:
            action()
        if condition():
            return
        yield


if __name__ == "__main__":
    kept = []  # Qt does not own it
    sys.exit(main(lambda session: kept.append(WindowScript(session))))

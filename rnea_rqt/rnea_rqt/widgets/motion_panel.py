"""The motion that scaling_node executes: how far it is, what slows it, and how to interfere."""

from __future__ import annotations

import math
from functools import partial

from rnea_rqt.data import COMMANDS, Motion
from rnea_rqt.qt import Qt, QtCore, QtWidgets, Signal
from rnea_rqt.widgets.theme import number, percent

TIPS = ("come to rest on the path, until resumed", "go on after a pause", "come to rest on the path, and end the motion there")
SETTLED = 150  # ms; a slider that is moved is sent when it has rested so long


class MotionPanel(QtWidgets.QGroupBox):
    """Buttons of a motion: each signal is an action of the user."""

    commanded = Signal(str)  # pause, resume, stop
    overridden = Signal(float)  # 0 to 1

    def __init__(self, parent=None):
        super().__init__("Motion", parent)
        self.progress = QtWidgets.QProgressBar()
        self.progress.setRange(0, 1000)
        self.labels = {name: QtWidgets.QLabel("–") for name in ("phase", "speed factor", "delay", "nearest limit")}
        form = QtWidgets.QFormLayout()
        for name, label in self.labels.items():
            label.setWordWrap(True)
            policy = label.sizePolicy()
            policy.setHorizontalPolicy(QtWidgets.QSizePolicy.Policy.Ignored)  # a text, however long, moves nothing else
            label.setSizePolicy(policy)
            form.addRow(name, label)
        self.labels["nearest limit"].setMinimumHeight(2 * self.fontMetrics().lineSpacing())
        self.buttons = {name: QtWidgets.QPushButton(name.capitalize()) for name in COMMANDS}
        row = QtWidgets.QHBoxLayout()
        for (name, button), tip in zip(self.buttons.items(), TIPS):
            button.setToolTip(tip)
            button.clicked.connect(partial(self._on_button, name))
            row.addWidget(button)
        column = QtWidgets.QVBoxLayout(self)
        column.addWidget(self.progress)
        for part in (form, row, self._override_row()):
            column.addLayout(part)
        self.set_reachable(False)

    def _override_row(self) -> QtWidgets.QHBoxLayout:
        self.slider, self.share = QtWidgets.QSlider(Qt.Orientation.Horizontal), QtWidgets.QLabel("100 %")
        self.slider.setRange(0, 100)
        self.slider.setValue(100)
        self.slider.setToolTip("share of the speed; 0 holds the motion")
        self.share.setMinimumWidth(self.share.fontMetrics().horizontalAdvance("100 %") + 4)
        self._rest = QtCore.QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(SETTLED)
        self._rest.timeout.connect(self._on_rest)
        self.slider.valueChanged.connect(self._on_slider)
        row = QtWidgets.QHBoxLayout()
        for widget in (QtWidgets.QLabel("Override"), self.slider, self.share):
            row.addWidget(widget)
        return row

    def _on_button(self, name: str, *_: bool) -> None:
        self.commanded.emit(name)

    def _on_rest(self) -> None:
        self.overridden.emit(self.slider.value() / 100.0)

    def _on_slider(self, value: int) -> None:
        self.share.setText(f"{value} %")
        self._rest.start()

    def set_reachable(self, reachable: bool) -> None:
        """Enable the buttons if there is a node that serves them."""
        self.slider.setEnabled(reachable)
        for button in self.buttons.values():
            button.setEnabled(reachable)

    def show_motion(self, motion: Motion) -> None:
        self.setTitle(f"Motion {motion.number}")
        self.progress.setValue(round(1000.0 * motion.progress))
        nearest = f"{motion.limit.replace('_', ' ')} of {motion.joint}, {percent(motion.utilization)}"
        words = {"phase": motion.phase, "speed factor": "at rest" if math.isnan(motion.speed) else percent(motion.speed),
                 "delay": f"{number(motion.delay)} s", "nearest limit": nearest if motion.joint else "none"}
        for name, text in words.items():
            self.labels[name].setText(text)
        if not self._rest.isActive() and not self.slider.isSliderDown():  # an override by another client
            self.slider.blockSignals(True)
            self.slider.setValue(round(100.0 * motion.override))
            self.slider.blockSignals(False)
            self.share.setText(f"{self.slider.value()} %")

"""The whole picture: choosers and headline above, bars and chart at the left, motion, payload and lights at the right."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import Any

from rnea_rqt.data import INDEX, QUANTITIES, Robot, Update
from rnea_rqt.qt import Qt, QtWidgets, Signal
from rnea_rqt.widgets.bar_table import BarTable
from rnea_rqt.widgets.chart import SPANS, StripChart
from rnea_rqt.widgets.chooser import NodeChooser
from rnea_rqt.widgets.lights import Lights
from rnea_rqt.widgets.motion_panel import MotionPanel
from rnea_rqt.widgets.payload_panel import PayloadPanel
from rnea_rqt.widgets.policy_panel import PolicyPanel
from rnea_rqt.widgets.theme import percent

NO_NODE_FOUND = "no dynamics_node to be seen"
STALE = 1.0  # s without a sample after which what is shown is no longer true


class Panel(QtWidgets.QWidget):
    """Panel that shows updates, and emits signals for actions of the user."""

    dynamics_chosen, scaling_chosen = Signal(str), Signal(str)
    commanded, overridden, payload_applied = Signal(str), Signal(float), Signal(object)

    def __init__(self, parent=None):
        super().__init__(parent)
        self.setObjectName("rnea_rqt")
        self.setWindowTitle("Torques and limits")
        self.dynamics, self.scaling = NodeChooser(), NodeChooser()
        self.status, self.message = _line(), _line()
        self.table, self.chart, self.lights = BarTable(), StripChart(), Lights()
        self.motion, self.policy, self.payload = MotionPanel(), PolicyPanel(), PayloadPanel()
        self.quantity, self.span = QtWidgets.QComboBox(), QtWidgets.QComboBox()
        self.reset = QtWidgets.QPushButton("Reset peaks")
        self._arrange()
        self._connect()
        self._show_age(Update())

    def _arrange(self) -> None:
        self.quantity.addItems([quantity.title for quantity in QUANTITIES])
        self.span.addItems([f"{span:g} s" for span in SPANS])
        left = QtWidgets.QSplitter(Qt.Orientation.Vertical)
        left.addWidget(self.table)
        left.addWidget(_column(_row("Chart", self.quantity, "of the last", self.span, None, self.reset), self.chart))
        left.setStretchFactor(0, 3)
        left.setStretchFactor(1, 2)
        right = _column(self.motion, self.policy, self.payload, "Diagnostics", self.lights, self.message)
        self.splitters = left, QtWidgets.QSplitter(Qt.Orientation.Horizontal)
        self.splitters[1].addWidget(left)
        self.splitters[1].addWidget(right)
        self.splitters[1].setStretchFactor(0, 1)
        self.splitters[1].setSizes([780, 320])
        top = _row("Torques of", self.dynamics, "motion of", self.scaling, None)
        outer = QtWidgets.QVBoxLayout(self)
        outer.addLayout(top)
        outer.addWidget(self.status)
        outer.addWidget(self.splitters[1], 1)
        self.resize(1120, 760)

    def _connect(self) -> None:
        self.dynamics.chosen.connect(self.dynamics_chosen)
        self.scaling.chosen.connect(self.scaling_chosen)
        self.scaling.chosen.connect(self._on_scaling)
        self.motion.commanded.connect(self.commanded)
        self.motion.overridden.connect(self.overridden)
        self.payload.applied.connect(self.payload_applied)
        self.reset.clicked.connect(self.table.reset_peaks)
        self.table.chosen.connect(self._show_curves)
        self.quantity.currentIndexChanged.connect(self._show_curves)
        self.span.currentIndexChanged.connect(self._show_curves)
        self.span.setCurrentIndex(1)

    def _on_scaling(self, _: str) -> None:
        self.policy.hide()  # until the chosen node reports one
        self.motion.set_reachable(True)

    # --- in ---------------------------------------------------------------------------------------------------------

    def offer(self, dynamics: list[str], scaling: list[str]) -> None:
        """Set the nodes that can be chosen."""
        self.dynamics.offer(dynamics)
        self.scaling.offer(scaling)

    def show_update(self, update: Update) -> None:
        """Paints what has come; call it as often as the picture shall change."""
        if update.robot:
            self._show_robot(update.robot)
        stale = update.age > STALE
        if update.samples or stale != self.table.bars.stale:  # else there is nothing new to paint
            self.table.show_samples(update.samples, stale)
            self.chart.add(update.samples)
            self.chart.update()
        if update.motion:
            self.motion.show_motion(update.motion)
        if update.policy:
            self.policy.show_policy(update.policy)
        self.lights.show_lights(update.lights)
        self._show_age(update)

    def say(self, text: str) -> None:
        """Show the outcome of a request."""
        self.message.setText(text)
        self.message.setToolTip(text)

    def _show_robot(self, robot: Robot) -> None:
        self.table.set_robot(robot)
        self.chart.set_robot(robot)
        self.setWindowTitle(f"{robot.name}: torques and limits" if robot.name else "Torques and limits")
        self._show_curves()

    def _show_curves(self, *_: object) -> None:
        self.chart.quantity, self.chart.span = self.quantity.currentIndex(), SPANS[self.span.currentIndex()]
        self.chart.rows = self.table.rows()
        self.chart.update()

    def _show_age(self, update: Update) -> None:
        nearest = self.table.bars.most_used()
        if isinf(update.age):
            self.status.setText("no data yet" if self.dynamics.node else NO_NODE_FOUND)
        elif update.age > STALE:
            self.status.setText(f"no data for {update.age:.1f} s")
        else:
            words = f"nearest limit: {nearest[1]} of {nearest[0]}, {percent(nearest[2])}; " if nearest else ""
            self.status.setText(f"{words}{update.rate:.0f} Hz")

    # --- settings -----------------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """Return all choices of the user, as data for JSON."""
        return {"dynamics": self.dynamics.node, "scaling": self.scaling.node, "hidden": self.table.hidden(),
                "chart": QUANTITIES[self.chart.quantity].key, "span": self.chart.span, "rows": self.table.names,
                "sizes": [splitter.sizes() for splitter in self.splitters]}

    def restore(self, settings: Mapping[str, Any]) -> None:
        """Restore the result of `settings`, possibly of another version; missing or invalid entries are ignored."""
        for chooser, key in ((self.dynamics, "dynamics"), (self.scaling, "scaling")):
            if isinstance(node := settings.get(key), str):
                chooser.choose(node)
        if isinstance(hidden := settings.get("hidden"), list):
            self.table.hide_quantities(hidden)
        if isinstance(chart := settings.get("chart"), str) and chart in INDEX:
            self.quantity.setCurrentIndex(INDEX[chart])
        if (span := settings.get("span")) in SPANS:
            self.span.setCurrentIndex(SPANS.index(span))
        if isinstance(rows := settings.get("rows"), list):
            self.table.select(rows)
        for splitter, sizes in zip(self.splitters, found if isinstance(found := settings.get("sizes"), list) else []):
            if isinstance(sizes, list) and all(isinstance(size, int) for size in sizes):
                splitter.setSizes(sizes)


def _line() -> QtWidgets.QLabel:
    """Return a label whose text, however long, does not change the layout."""
    label = QtWidgets.QLabel()
    label.setSizePolicy(QtWidgets.QSizePolicy.Policy.Ignored, QtWidgets.QSizePolicy.Policy.Preferred)
    return label


def _row(*parts: QtWidgets.QWidget | str | None) -> QtWidgets.QHBoxLayout:
    """Widgets and words side by side; None: room."""
    row = QtWidgets.QHBoxLayout()
    for part in parts:
        if part is None:
            row.addStretch(1)
        else:
            row.addWidget(QtWidgets.QLabel(part) if isinstance(part, str) else part)
    return row


def _column(*parts: QtWidgets.QWidget | QtWidgets.QLayout | str) -> QtWidgets.QWidget:
    widget = QtWidgets.QWidget()
    column = QtWidgets.QVBoxLayout(widget)
    column.setContentsMargins(0, 0, 0, 0)
    for part in parts:
        if isinstance(part, QtWidgets.QLayout):
            column.addLayout(part)
        else:
            column.addWidget(QtWidgets.QLabel(part) if isinstance(part, str) else part)
    return widget

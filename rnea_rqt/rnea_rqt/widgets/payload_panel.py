"""Payload of the robot: shown, and sent to the nodes."""

from __future__ import annotations

from rnea_rqt.data import Payload
from rnea_rqt.qt import QtWidgets, Signal


class PayloadPanel(QtWidgets.QGroupBox):
    """Editor of the payload; values are sent when Apply is pressed."""

    applied = Signal(object)  # a Payload

    def __init__(self, parent=None):
        super().__init__("Payload", parent)
        self.link = QtWidgets.QComboBox()
        self.link.setEditable(True)  # until the links are known
        self.link.setSizeAdjustPolicy(QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.mass = _spin(0.0, 1e4, " kg", "mass")
        self.com = [_spin(-100.0, 100.0, "", f"centre of mass, {axis} in the link's frame, m") for axis in "xyz"]
        self.apply = QtWidgets.QPushButton("Apply")
        self.apply.setToolTip("sets the parameters payload.* of both nodes")
        self.apply.clicked.connect(self._on_apply)
        form = QtWidgets.QFormLayout(self)
        form.addRow("on link", self.link)
        form.addRow("mass", self.mass)
        row = QtWidgets.QHBoxLayout()
        for spin in self.com:
            row.addWidget(spin)
        form.addRow("centre [m]", row)
        form.addRow(self.apply)

    def payload(self) -> Payload:
        x, y, z = (spin.value() for spin in self.com)
        return Payload(self.link.currentText(), self.mass.value(), (x, y, z))

    def _on_apply(self) -> None:
        self.applied.emit(self.payload())

    def set_links(self, links: tuple[str, ...]) -> None:
        """Links to choose from; the last one at first, since that is where tools are."""
        before = self.link.currentText()
        self.link.clear()
        self.link.addItems(links)
        self.link.setEditText(before or links[-1])

    def show_payload(self, payload: Payload) -> None:
        """Show the payload of the node."""
        self.link.setEditText(payload.link)
        self.mass.setValue(payload.mass)
        for spin, value in zip(self.com, payload.com):
            spin.setValue(value)


def _spin(least: float, most: float, unit: str, tip: str) -> QtWidgets.QDoubleSpinBox:
    spin = QtWidgets.QDoubleSpinBox()
    spin.setRange(least, most)
    spin.setDecimals(3)
    spin.setSingleStep(0.1 if unit == " kg" else 0.01)
    spin.setSuffix(unit)
    spin.setToolTip(tip)
    spin.setButtonSymbols(QtWidgets.QAbstractSpinBox.ButtonSymbols.NoButtons)
    spin.setMinimumWidth(40)
    return spin

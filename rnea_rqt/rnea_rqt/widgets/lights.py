"""Diagnostics as lights: one line for each status, worst first."""

from __future__ import annotations

from rnea_rqt.data import Light
from rnea_rqt.qt import Qt, QtCore, QtGui, QtWidgets
from rnea_rqt.widgets.theme import theme

WORDS = ("ok", "warning", "error", "stale")
SIGNS = ("", "!", "×", "?")  # colours alone do not reach everyone
SIZE = 16


class Lights(QtWidgets.QListWidget):
    """Lights with messages; all values of a status are in its tool tip."""

    def __init__(self, parent=None):
        super().__init__(parent)
        self._shown: tuple[Light, ...] = ()
        self.setWordWrap(True)
        self.setIconSize(QtCore.QSize(SIZE, SIZE))
        self.setSelectionMode(QtWidgets.QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_lights(self, lights: tuple[Light, ...]) -> None:
        """Replace the shown lights."""
        if lights == self._shown:
            return
        self._shown = lights
        ordered = sorted(lights, key=lambda light: (-light.level, light.name))
        self.setUpdatesEnabled(False)
        while self.count() > len(ordered):
            self.takeItem(self.count() - 1)
        for row, light in enumerate(ordered):
            if row == self.count():
                self.addItem(QtWidgets.QListWidgetItem())
            item = self.item(row)
            item.setText(f"{light.name}: {light.message}")
            item.setIcon(self._icon(light.level))
            item.setToolTip("\n".join([WORDS[light.level], *(f"{key}: {value}" for key, value in light.values)]))
        self.setUpdatesEnabled(True)

    def _icon(self, level: int) -> QtGui.QIcon:
        colours = theme(self.palette())
        picture = QtGui.QPixmap(SIZE, SIZE)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QtGui.QPainter(picture)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush((colours.fine, colours.near, colours.over, colours.off)[level])
        painter.drawEllipse(1, 1, SIZE - 2, SIZE - 2)
        painter.setPen(QtGui.QColor("white"))
        painter.drawText(QtCore.QRectF(0.0, 0.0, SIZE, SIZE), Qt.AlignmentFlag.AlignCenter, SIGNS[level])
        painter.end()
        return QtGui.QIcon(picture)

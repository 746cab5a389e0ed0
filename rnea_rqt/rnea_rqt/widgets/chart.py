"""A strip chart: one quantity of some rows over the last seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rnea_rqt.data import QUANTITIES, Robot, Sample, unknown
from rnea_rqt.history import Curve, History
from rnea_rqt.qt import Qt, QtCore, QtGui, QtWidgets
from rnea_rqt.widgets.theme import Theme, theme

SPANS = (5.0, 10.0, 20.0, 60.0)  # s, to choose from
TICK = "−0.00005"  # the longest that stands beside the chart
SWATCH = 23.0  # px, line and gap before the text of a legend entry
STYLES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine, Qt.PenStyle.DotLine)  # when the colours are used up

LegendEntry = tuple[QtCore.QRectF, str, int | None]  # box, text, number of the curve (None: the title)


class StripChart(QtWidgets.QWidget):
    """Scales itself; of a single row also the limits are drawn, where they are within what is shown."""

    def __init__(self, parent=None):
        super().__init__(parent)
        self.history = History()
        self.quantity, self.span = 0, 10.0
        self.rows: list[int] = []
        self._robot = Robot("", (), (), 0, unknown(0), unknown(0))
        self.setMinimumHeight(130)

    def set_robot(self, robot: Robot) -> None:
        if robot.rows != self._robot.rows:
            self.history.clear(len(robot.rows))
        self._robot = robot

    def add(self, samples: list[Sample]) -> None:
        for sample in samples:
            if sample.rows == self._robot.rows:
                self.history.add(sample)

    def paintEvent(self, event):
        painter = QtGui.QPainter(self)
        try:  # a painter that is left open takes the process with it
            painter.fillRect(self.rect(), self.palette().color(QtGui.QPalette.ColorRole.Base))
            painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
            self._paint(painter, theme(self.palette()))
        finally:
            painter.end()

    def _paint(self, painter: QtGui.QPainter, colours: Theme) -> None:
        metrics = painter.fontMetrics()
        left, line = metrics.horizontalAdvance(TICK), metrics.height()
        rows = [row for row in self.rows if row < len(self._robot.rows)]
        legend, height = self.legend(metrics, rows)
        area = QtCore.QRectF(self.rect()).adjusted(left + 6, height + 6, -12, -line - 6)
        curves = {row: self.history.curves(self.quantity, row, self.span, int(area.width())) for row in rows}
        least, most = bounds([curve for some in curves.values() for curve in some])
        frame = QtGui.QTransform.fromTranslate(area.right(), area.bottom())
        frame.scale(area.width() / self.span, -area.height() / (most - least))
        frame.translate(0.0, -least)
        self._paint_grid(painter, area, frame, (least, most), colours)
        for index, row in enumerate(rows):
            self._paint_row(painter, frame, row, curves[row], (least, most), self._pen(index, colours))
        self._paint_legend(painter, legend, colours)

    def _pen(self, index: int, colours: Theme) -> QtGui.QPen:
        count = len(colours.curves)
        return QtGui.QPen(colours.curves[index % count], 1.6, STYLES[index // count % len(STYLES)])

    def _paint_grid(self, painter, area, frame, shown, colours) -> None:
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for value in ticks(*shown):
            y = frame.map(QtCore.QPointF(0.0, value)).y()
            painter.setPen(QtGui.QPen(colours.dim if value == 0.0 else colours.grid, 1.0))
            painter.drawLine(QtCore.QPointF(area.left(), y), QtCore.QPointF(area.right(), y))
            painter.setPen(colours.dim)
            painter.drawText(QtCore.QRectF(0.0, y - 15.0, area.left() - 6.0, 30.0), right, f"{value:g}".replace("-", "−"))
        for value in ticks(-self.span, 0.0):
            x = frame.map(QtCore.QPointF(value, 0.0)).x()
            text = f"−{-value:g} s" if value else "now"
            align = Qt.AlignmentFlag.AlignTop | (Qt.AlignmentFlag.AlignHCenter if value else Qt.AlignmentFlag.AlignRight)
            box = QtCore.QRectF(x - 50.0, area.bottom() + 3.0, 100.0 if value else 50.0, 40.0)
            painter.drawText(box, align, text)

    def _paint_row(self, painter, frame, row, curves, shown, pen) -> None:
        painter.setPen(pen)
        for curve in curves:
            points = [QtCore.QPointF(x, y) for x, y in zip(curve.time.tolist(), curve.value.tolist())]
            painter.drawPolyline(frame.map(QtGui.QPolygonF(points)))
        if len(self.rows) > 1:  # limits of several rows would be ambiguous
            return
        painter.setPen(QtGui.QPen(pen.color(), 1.0, Qt.PenStyle.DashDotDotLine))
        for limits in (self._robot.low, self._robot.high):
            limit = float(limits[self.quantity, row])
            if shown[0] <= limit <= shown[1] and limit:
                painter.drawLine(frame.map(QtCore.QPointF(-self.span, limit)), frame.map(QtCore.QPointF(0.0, limit)))

    def legend(self, metrics: QtGui.QFontMetrics, rows: list[int]) -> tuple[list[LegendEntry], float]:
        """Return the entries, on as many lines as they need, and the height of all."""
        quantity, height = QUANTITIES[self.quantity], metrics.height() + 4.0
        units = dict.fromkeys(self._robot.unit(self.quantity, row) for row in rows)
        title = " ".join(filter(None, (quantity.title, f"[{', '.join(units)}]" if any(units) else "")))
        found: list[LegendEntry] = []
        x, y = 8.0, 2.0
        for text, index in [(title, None), *((self._robot.rows[row], index) for index, row in enumerate(rows))]:
            width = metrics.horizontalAdvance(text) + 4.0 + (0.0 if index is None else SWATCH)
            if found and x + width > self.width():
                x, y = 8.0, y + height
            found.append((QtCore.QRectF(x, y, width, height), text, index))
            x += width + 10.0
        return found, y + height

    def _paint_legend(self, painter, legend, colours) -> None:
        for box, text, index in legend:
            if index is not None:
                painter.setPen(self._pen(index, colours))
                y = box.center().y()
                painter.drawLine(QtCore.QPointF(box.left(), y), QtCore.QPointF(box.left() + SWATCH - 5.0, y))
                box = box.adjusted(SWATCH, 0.0, 0.0, 0.0)
            painter.setPen(colours.text)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, text)


def bounds(curves: list[Curve]) -> tuple[float, float]:
    """Least and greatest value, a little apart, at round numbers so that the scale rests while curves move."""
    values = [curve.value for curve in curves]
    least = float(min(map(np.min, values), default=0.0))
    most = float(max(map(np.max, values), default=0.0))
    if most - least <= 1e-9 * max(1.0, abs(most)):
        least, most = least - 1.0, most + 1.0
    step = _step(most - least) / 2.0
    return math.floor(least / step) * step, math.ceil(most / step) * step


def ticks(least: float, most: float) -> Iterator[float]:
    """Round numbers from least to most, about five."""
    step = _step(most - least)
    for k in range(math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9) + 1):
        yield k * step


def _step(size: float) -> float:
    """Return a grid step of at least a fifth of the size: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(size / 5.0))
    return next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if 5.0 * power * factor >= size * (1.0 - 1e-9))

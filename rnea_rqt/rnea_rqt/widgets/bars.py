"""Painting of one bar: a value between its limits, with peak values and a band of two standard deviations."""

from __future__ import annotations

from math import isfinite, isnan
from typing import NamedTuple

from rnea_rqt.qt import Qt, QtCore, QtGui
from rnea_rqt.widgets.theme import Theme, number, percent

RANGE_FACTOR = 1.2  # range of the bar over the limits: shows by how much they are exceeded
N_STDS = 2.0  # half width of the band in standard deviations


class Bar(NamedTuple):
    """Content of one bar; NaN: unknown.

    unit      : unit of the value; empty: a utilization, displayed in percent
    stale     : True if the value is outdated
    low, high : limits
    std       : standard deviation
    least, most : peak values since the last reset
    use, least_use, most_use : utilization of the limit by the value and by both peaks
    """

    unit: str
    stale: bool
    value: float
    low: float
    high: float
    std: float
    least: float
    most: float
    use: float
    least_use: float
    most_use: float


def paint_text(painter: QtGui.QPainter, rect: QtCore.QRectF, bar: Bar, colours: Theme) -> None:
    """Paint the value on the left and the utilization on the right."""
    align = Qt.AlignmentFlag
    value = f"{number(bar.value)} {bar.unit}" if bar.unit else percent(bar.value)
    use = "no limit" if isnan(bar.use) else percent(bar.use) if bar.unit else ""  # without unit: same as value
    painter.setPen(colours.dim if bar.stale else colours.text)
    painter.drawText(rect, align.AlignLeft | align.AlignTop, value)
    painter.setPen(colours.over if bar.use > 1.0 and not bar.stale else colours.dim)
    painter.drawText(rect, align.AlignRight | align.AlignTop, use)


def paint_bar(painter: QtGui.QPainter, rect: QtCore.QRectF, bar: Bar, colours: Theme) -> None:
    """Paint the track between the limits, the bar from zero to the value, the band, the limits and the peaks."""
    begin, end = _span(bar)
    left, top, height, scale = rect.left(), rect.top(), rect.height(), rect.width() / (end - begin)

    def x(value: float) -> float:
        return left + scale * (min(max(value, begin), end) - begin)

    def fill(first: float, second: float, inset: float, colour: QtGui.QColor) -> None:
        x1, x2 = x(first), x(second)
        painter.fillRect(QtCore.QRectF(min(x1, x2), top + inset, abs(x2 - x1), height - 2.0 * inset), colour)

    def mark(value: float, width: float, beyond: float, colour: QtGui.QColor) -> None:
        painter.fillRect(QtCore.QRectF(x(value) - 0.5 * width, top - beyond, width, height + 2.0 * beyond), colour)

    if isfinite(bar.high):
        fill(bar.low, bar.high, 0.0, colours.track)
    else:
        painter.fillRect(rect, colours.faint)
    fill(0.0, bar.value, 1.0, colours.off if bar.stale else colours.of_use(bar.use))
    if bar.std > 0.0:
        fill(bar.value - N_STDS * bar.std, bar.value + N_STDS * bar.std, 3.0, colours.band)
    if begin < 0.0:
        mark(0.0, 1.0, 1.0, colours.dim)
    for limit in (bar.low, bar.high):
        if isfinite(limit) and limit:
            mark(limit, 1.5, 1.0, colours.text)
    for peak, use in ((bar.least, bar.least_use), (bar.most, bar.most_use)):
        if isfinite(peak) and peak:
            mark(peak, 2.0, 2.0, colours.of_use(use))


def _span(bar: Bar) -> tuple[float, float]:
    """Return the range of the bar: slightly wider than the limits, or than the peaks if a limit is unknown."""
    least, most = min(bar.value, 0.0, bar.least), max(bar.value, 0.0, bar.most)
    size = max(-least, most) or 1.0
    low = bar.low if isfinite(bar.low) else -size
    high = bar.high if isfinite(bar.high) else size
    return RANGE_FACTOR * low, RANGE_FACTOR * high or 1.0

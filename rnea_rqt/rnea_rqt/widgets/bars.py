"""One bar, painted: a value between its limits, with held peaks and a band of two standard deviations."""

from __future__ import annotations

from math import isfinite, isnan
from typing import NamedTuple

from rnea_rqt.qt import Qt, QtCore, QtGui
from rnea_rqt.widgets.theme import Theme, number, percent

ROOM = 1.2  # the cell ends at this share of the limits, so that one sees how far they are passed
SIGMAS = 2.0


class Bar(NamedTuple):
    """Content of one cell; NaN: unknown."""

    unit: str
    stale: bool
    value: float
    low: float
    high: float
    std: float
    least: float  # held peaks
    most: float
    use: float  # share of the limit on this side of zero
    least_use: float
    most_use: float


def paint_words(painter: QtGui.QPainter, rect: QtCore.QRectF, bar: Bar, colours: Theme) -> None:
    align = Qt.AlignmentFlag
    value = f"{number(bar.value)} {bar.unit}" if bar.unit else percent(bar.value)
    use = "no limit" if isnan(bar.use) else percent(bar.use) if bar.unit else ""  # of a share, its value says it
    painter.setPen(colours.dim if bar.stale else colours.text)
    painter.drawText(rect, align.AlignLeft | align.AlignTop, value)
    painter.setPen(colours.over if bar.use > 1.0 and not bar.stale else colours.dim)
    painter.drawText(rect, align.AlignRight | align.AlignTop, use)


def paint_bar(painter: QtGui.QPainter, rect: QtCore.QRectF, bar: Bar, colours: Theme) -> None:
    """Paint the track between the limits, the bar from zero, its band, limits and peaks."""
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
        fill(bar.value - SIGMAS * bar.std, bar.value + SIGMAS * bar.std, 3.0, colours.band)
    if begin < 0.0:
        mark(0.0, 1.0, 1.0, colours.dim)
    for limit in (bar.low, bar.high):
        if isfinite(limit) and limit:
            mark(limit, 1.5, 1.0, colours.text)
    for peak, use in ((bar.least, bar.least_use), (bar.most, bar.most_use)):
        if isfinite(peak) and peak:
            mark(peak, 2.0, 2.0, colours.of_use(use))


def _span(bar: Bar) -> tuple[float, float]:
    """Return the range of the cell: slightly more than the limits, or than the peaks if a limit is unknown."""
    least, most = min(bar.value, 0.0, bar.least), max(bar.value, 0.0, bar.most)
    size = max(-least, most) or 1.0
    low = bar.low if isfinite(bar.low) else -size
    high = bar.high if isfinite(bar.high) else size
    return ROOM * low, ROOM * high or 1.0

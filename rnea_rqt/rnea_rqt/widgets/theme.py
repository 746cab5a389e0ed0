"""Colours for light and dark desktops, suitable for colour-blind people (Okabe and Ito), and numbers as text."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from rnea_rqt.qt import QtGui

NEAR, OVER = 0.8, 1.0  # shares of a limit from which it is shown as near, and as passed


class Theme(NamedTuple):
    text: QtGui.QColor
    dim: QtGui.QColor
    track: QtGui.QColor  # between the limits
    faint: QtGui.QColor  # where there are none
    band: QtGui.QColor
    grid: QtGui.QColor
    well: QtGui.QColor
    fine: QtGui.QColor  # a light
    near: QtGui.QColor
    over: QtGui.QColor
    off: QtGui.QColor  # no data, or no limit to compare with
    curves: tuple[QtGui.QColor, ...]

    def of_use(self, share: float) -> QtGui.QColor:
        """Return the colour of a share of a limit; NaN: unknown."""
        if math.isnan(share):
            return self.off
        return self.over if share > OVER else self.near if share >= NEAR else self.well


def theme(palette: QtGui.QPalette) -> Theme:
    """Return the theme for the desktop's palette."""
    return _theme(palette.color(QtGui.QPalette.ColorRole.Base).rgb(), palette.color(QtGui.QPalette.ColorRole.Text).rgb())


@lru_cache(maxsize=8)
def _theme(base_rgb: int, text_rgb: int) -> Theme:
    base, text = QtGui.QColor(base_rgb), QtGui.QColor(text_rgb)
    dark = base.lightness() < 128
    return Theme(text, mixed(text, base, 0.4), mixed(text, base, 0.88), mixed(text, base, 0.95), mixed(text, base, 0.45),
                 mixed(text, base, 0.82),
                 QtGui.QColor("#56b4e9" if dark else "#0072b2"),
                 QtGui.QColor("#2cc79b" if dark else "#009e73"), QtGui.QColor("#f0a830" if dark else "#e69f00"),
                 QtGui.QColor("#ff7a45" if dark else "#d03a00"), mixed(text, base, 0.55),
                 tuple(QtGui.QColor(name) for name in (_DARK if dark else _LIGHT)))


_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b08900", "#2f9bd6", "#333333")
_DARK = ("#56b4e9", "#ff8a3d", "#2cc79b", "#e39cc4", "#f0e442", "#8fa9ff", "#dddddd")


def mixed(first: QtGui.QColor, second: QtGui.QColor, share: float) -> QtGui.QColor:
    """Return a mixture of two colours, with a share of the second."""
    pairs = ((first.red(), second.red()), (first.green(), second.green()), (first.blue(), second.blue()))
    return QtGui.QColor(*(round(a + share * (b - a)) for a, b in pairs))


def number(value: float) -> str:
    """Three digits that count, without exponents for what people meet; a true minus sign."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 1e5:
        text = f"{value:.2e}"
    else:
        digits = 0 if size >= 100.0 else 1 if size >= 10.0 else 2 if size >= 1.0 else 3
        text = f"{value:.{digits}f}"
    return "0" if float(text) == 0.0 else text.replace("-", "−")


def percent(share: float) -> str:
    return "" if math.isnan(share) else f"{min(abs(share), 99.99):.0%}".replace("%", " %")

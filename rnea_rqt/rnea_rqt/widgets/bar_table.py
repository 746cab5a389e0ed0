"""A table of bars: a row for each joint, a column for each quantity."""

from __future__ import annotations

from math import isfinite, isnan

import numpy as np

from rnea_rqt.data import OPTIONAL, QUANTITIES, Peaks, Robot, Sample, unknown, utilization
from rnea_rqt.qt import Action, Qt, QtCore, QtWidgets, Signal
from rnea_rqt.widgets.bars import N_STDS, Bar, paint_bar, paint_text
from rnea_rqt.widgets.theme import number, theme

WIDEST = "−0000 N m/s 000 %"  # text that a cell has room for
VIEW = QtWidgets.QAbstractItemView


class BarModel(QtCore.QAbstractTableModel):
    """The newest sample, held peaks and limits."""

    def __init__(self, parent=None):
        super().__init__(parent)
        self.robot = Robot("", (), (), 0, unknown(0), unknown(0))
        self.peaks = Peaks()
        self.stale = True
        self._value = self._std = self._use = unknown(0)
        self._cells: list[list[list[float]]] = []  # by column and row, the numbers of a Bar

    def set_robot(self, robot: Robot) -> None:
        """Peaks of the same rows stay: they are those of the robot, not of its model."""
        self.beginResetModel()
        if robot.rows != self.robot.rows:
            self.peaks.reset(len(robot.rows))
            self._value = self._std = self._use = unknown(len(robot.rows))
        self.robot = robot
        self._arrange()
        self.endResetModel()

    def show(self, samples: list[Sample], stale: bool) -> None:
        self.stale = stale
        if samples := [sample for sample in samples if sample.rows == self.robot.rows]:
            self.peaks.update(samples)
            self._value, self._std, self._use = samples[-1].value, samples[-1].std, samples[-1].use
            self._arrange()

    def reset_peaks(self) -> None:
        self.peaks.reset(len(self.robot.rows))
        self._arrange()

    def _arrange(self) -> None:
        low, high, peaks = self.robot.low, self.robot.high, self.peaks
        cells = (self._value, low, high, self._std, peaks.low, peaks.high, self._use,
                 utilization(peaks.low, low, high), utilization(peaks.high, low, high))
        self._cells = np.stack(cells, axis=2).tolist()

    def known(self, column: int) -> bool:
        """Return whether a quantity has been received for any row."""
        return bool(np.isfinite(self._value[column]).any())

    def most_used(self) -> tuple[str, str, float] | None:
        """(row, quantity, share) of the limit that is nearest."""
        if not np.isfinite(self._use).any():
            return None
        column, row = np.unravel_index(np.nanargmax(self._use), self._use.shape)
        return self.robot.rows[row], QUANTITIES[column].title, float(self._use[column, row])

    def bar(self, row: int, column: int) -> Bar:
        return Bar(self.robot.unit(column, row), self.stale, *self._cells[column][row])

    # --- what Qt asks -------------------------------------------------------------------------------------------------

    def rowCount(self, parent=None):
        return len(self.robot.rows)

    def columnCount(self, parent=None):
        return len(QUANTITIES)

    def headerData(self, section, orientation, role=Qt.ItemDataRole.DisplayRole):
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return QUANTITIES[section].title if orientation == Qt.Orientation.Horizontal else self.robot.rows[section]

    def data(self, index, role=Qt.ItemDataRole.DisplayRole):
        return self._words(index.row(), index.column()) if role == Qt.ItemDataRole.ToolTipRole else None

    def _words(self, row: int, column: int) -> str:
        bar = self.bar(row, column)
        limits = "not known" if isnan(bar.high) else f"{number(bar.low)} to {number(bar.high)} {bar.unit}"
        band = "" if isnan(bar.std) else f"\n2 sigma: ±{number(N_STDS * bar.std)} {bar.unit}"
        return (f"{self.robot.rows[row]}, {QUANTITIES[column].title}: {number(bar.value)} {bar.unit}\nlimits: {limits}{band}\n"
                f"held peaks: {number(bar.least)} to {number(bar.most)} {bar.unit}")


class BarDelegate(QtWidgets.QStyledItemDelegate):
    """Paints a bar into a cell."""

    def paint(self, painter, option, index):
        bar, rect = index.model().bar(index.row(), index.column()), QtCore.QRectF(option.rect).adjusted(6, 2, -6, -4)
        if isfinite(bar.value):
            colours = theme(option.palette)
            painter.save()
            paint_text(painter, rect, bar, colours)
            paint_bar(painter, rect.adjusted(0, painter.fontMetrics().height() + 3, 0, -1), bar, colours)
            painter.restore()


class BarTable(QtWidgets.QTableView):
    """Bars of all rows; the rows that are selected are those of the chart. Its header's menu hides columns."""

    chosen = Signal()  # other rows were selected

    def __init__(self, parent=None):
        super().__init__(parent)
        self.bars = BarModel(self)
        self.names: list[str] = []  # of the selected rows
        self.setModel(self.bars)
        self.setItemDelegate(BarDelegate(self))
        self.setSelectionBehavior(VIEW.SelectionBehavior.SelectRows)
        self.setVerticalScrollMode(VIEW.ScrollMode.ScrollPerPixel)
        self.setShowGrid(False)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QtWidgets.QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(self.fontMetrics().horizontalAdvance(WIDEST) + 12)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.verticalHeader().setDefaultSectionSize(round(1.6 * self.fontMetrics().height()) + 12)
        self._switches = {quantity.key: self._switch(quantity.key, quantity.title) for quantity in QUANTITIES}
        header.addActions(list(self._switches.values()))
        self.selectionModel().selectionChanged.connect(self._on_selection)
        self._hide()

    def set_robot(self, robot: Robot) -> None:
        self.bars.set_robot(robot)
        self.select(self.names)
        self._hide()
        self._fit()

    def show_samples(self, samples: list[Sample], stale: bool) -> None:
        self.bars.show(samples, stale)
        self._hide()
        self.viewport().update()

    def reset_peaks(self, *_: bool) -> None:
        self.bars.reset_peaks()
        self.viewport().update()

    def rows(self) -> list[int]:
        """Those of the chart: the selected ones, or else the first six."""
        there = self.bars.robot.rows
        return [row for row, name in enumerate(there) if name in self.names] or list(range(min(6, len(there))))

    def select(self, names: list[str]) -> None:
        """Rows by name; those that are not there are waited for."""
        flags, model = QtCore.QItemSelectionModel.SelectionFlag, self.selectionModel()
        model.blockSignals(True)
        model.clearSelection()
        for row, name in enumerate(self.bars.robot.rows):
            if name in names:
                model.select(self.bars.index(row, 0), flags.Select | flags.Rows)
        model.blockSignals(False)
        self.names = list(names)
        self.chosen.emit()

    def hidden(self) -> list[str]:
        """Keys of quantities that are switched off."""
        return [key for key, switch in self._switches.items() if not switch.isChecked()]

    def hide_quantities(self, keys: list[str]) -> None:
        for key, switch in self._switches.items():
            switch.setChecked(key not in keys)

    def _on_selection(self, *_: object) -> None:
        self.names = [self.bars.robot.rows[index.row()] for index in self.selectionModel().selectedRows()]
        self.chosen.emit()

    def _switch(self, key: str, title: str):
        switch = Action(title, self)
        switch.setCheckable(True)
        switch.setChecked(key not in OPTIONAL)
        switch.toggled.connect(self._hide)
        return switch

    def _hide(self, *_: bool) -> None:
        """Hide columns that are switched off, and those without data."""
        for column, quantity in enumerate(QUANTITIES):
            hidden = not (self._switches[quantity.key].isChecked() and self.bars.known(column))
            if hidden != self.isColumnHidden(column):
                self.setColumnHidden(column, hidden)
                self._fit()  # titles that are all hidden have no height

    def _fit(self) -> None:
        """Fit the height to all rows, their titles and a scroll bar; the chart gets the rest of the window."""
        rows = self.verticalHeader().defaultSectionSize() * max(2, self.bars.rowCount())
        around = self.horizontalHeader().sizeHint().height() + self.horizontalScrollBar().sizeHint().height()
        self.setMaximumHeight(rows + around + 2 * self.frameWidth())

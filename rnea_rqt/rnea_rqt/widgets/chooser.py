"""Selector of the node to monitor: lists the running nodes, and the selected one even if it is not running."""

from __future__ import annotations

from rnea_rqt.qt import QtWidgets, Signal

NO_NODE = "none yet"


class NodeChooser(QtWidgets.QComboBox):
    """Selector of a node. It selects the first available node by default.

    node : full name of the selected node; empty: none
    """

    chosen = Signal(str)  # full name of a node

    def __init__(self, parent=None):
        super().__init__(parent)
        self.node = ""
        self.setSizeAdjustPolicy(QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.setMinimumContentsLength(16)
        self.activated.connect(self._on_activated)
        self.offer([])

    def offer(self, nodes: list[str]) -> None:
        """Set the full names of the running nodes."""
        if not self.node and nodes:
            self.choose(nodes[0])
        shown = sorted({*nodes, *filter(None, [self.node])}) or [NO_NODE]
        if shown != [self.itemText(row) for row in range(self.count())]:
            self.clear()
            self.addItems(shown)
            self.setEnabled(shown != [NO_NODE])
        self.setCurrentIndex(self.findText(self.node) if self.node else 0)

    def _on_activated(self, row: int) -> None:
        self.choose(self.itemText(row))

    def choose(self, node: str) -> None:
        """Select a node by its full name, and emit `chosen` if it changes."""
        if node not in ("", NO_NODE, self.node):
            self.node = node
            if self.findText(node) < 0:
                self.addItem(node)
            self.setCurrentIndex(self.findText(node))
            self.chosen.emit(node)

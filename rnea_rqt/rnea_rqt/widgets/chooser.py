"""Which node to watch: those that are there, and the one that was chosen, also while it is away."""

from __future__ import annotations

from rnea_rqt.qt import QtWidgets, Signal

NOBODY = "none yet"


class NodeChooser(QtWidgets.QComboBox):
    """Chooses the first node by itself, until somebody chooses."""

    chosen = Signal(str)  # full name of a node

    def __init__(self, parent=None):
        super().__init__(parent)
        self.node = ""
        self.setSizeAdjustPolicy(QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.setMinimumContentsLength(16)
        self.activated.connect(self._on_activated)
        self.offer([])

    def offer(self, nodes: list[str]) -> None:
        """Set the nodes that exist now."""
        if not self.node and nodes:
            self.choose(nodes[0])
        shown = sorted({*nodes, *filter(None, [self.node])}) or [NOBODY]
        if shown != [self.itemText(row) for row in range(self.count())]:
            self.clear()
            self.addItems(shown)
            self.setEnabled(shown != [NOBODY])
        self.setCurrentIndex(self.findText(self.node) if self.node else 0)

    def _on_activated(self, row: int) -> None:
        self.choose(self.itemText(row))

    def choose(self, node: str) -> None:
        if node not in ("", NOBODY, self.node):
            self.node = node
            if self.findText(node) < 0:
                self.addItem(node)
            self.setCurrentIndex(self.findText(node))
            self.chosen.emit(node)

"""Selection of the node to watch: existing nodes, and the chosen one, also while it is away."""

from __future__ import annotations

from rnea_rqt.qt import QtWidgets, Signal

NO_NODE = "none yet"


class NodeChooser(QtWidgets.QComboBox):
    """Selector that chooses the first node, until the user chooses one."""

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
        shown = sorted({*nodes, *filter(None, [self.node])}) or [NO_NODE]
        if shown != [self.itemText(row) for row in range(self.count())]:
            self.clear()
            self.addItems(shown)
            self.setEnabled(shown != [NO_NODE])
        self.setCurrentIndex(self.findText(self.node) if self.node else 0)

    def _on_activated(self, row: int) -> None:
        self.choose(self.itemText(row))

    def choose(self, node: str) -> None:
        if node not in ("", NO_NODE, self.node):
            self.node = node
            if self.findText(node) < 0:
                self.addItem(node)
            self.setCurrentIndex(self.findText(node))
            self.chosen.emit(node)

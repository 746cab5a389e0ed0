"""Action chunks of a policy that scaling_node executes: accepted, rejected by reason, and what slows them."""

from __future__ import annotations

from rnea_rqt.data import PolicyStatus
from rnea_rqt.qt import QtWidgets
from rnea_rqt.widgets.theme import number, percent

ROWS = ("chunks", "rejected", "slowed", "binding limit", "delay", "observation")


class PolicyPanel(QtWidgets.QGroupBox):
    """Panel of a policy; hidden until a chunk was received."""

    def __init__(self, parent=None):
        super().__init__("Policy", parent)
        self.labels = {name: QtWidgets.QLabel("–") for name in ROWS}
        form = QtWidgets.QFormLayout(self)
        for name, label in self.labels.items():
            label.setWordWrap(True)
            policy = label.sizePolicy()
            policy.setHorizontalPolicy(QtWidgets.QSizePolicy.Policy.Ignored)  # a long text moves nothing else
            label.setSizePolicy(policy)
            form.addRow(name, label)
        self.setVisible(False)

    def show_policy(self, status: PolicyStatus) -> None:
        """Show the newest status."""
        rejected = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in status.rejected)
        words = {"chunks": f"{status.received} received, {status.rate:g} Hz", "rejected": rejected or "none",
                 "slowed": percent(status.slowed_share), "binding limit": status.binding or "none",
                 "delay": f"{number(status.delay)} s behind the policy", "observation": f"{number(status.age)} s old"}
        for name, text in words.items():
            self.labels[name].setText(text)
        self.setToolTip(status.last_drop)
        self.setVisible(status.received > 0)

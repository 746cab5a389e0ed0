"""Qt application without a screen for all tests."""

import os

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@pytest.fixture(scope="session")
def app():
    """Return the Qt application of the process."""
    pytest.importorskip("rnea_rqt.qt", reason="no Qt for Python", exc_type=ImportError)
    from rnea_rqt.qt import QtWidgets

    application = QtWidgets.QApplication.instance() or QtWidgets.QApplication(["test"])
    application.setStyle("Fusion")
    return application

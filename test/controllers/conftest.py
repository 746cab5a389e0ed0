"""Controllers of rnea_controllers, compiled once for all tests of a process."""

from __future__ import annotations

import ctypes

import pytest

from support.controller_harness import COMPILER, NO_COMPILER, library


@pytest.fixture(scope="session", autouse=True)
def compiler():
    if not COMPILER:
        pytest.skip(NO_COMPILER)


@pytest.fixture(scope="session")
def code():
    return ctypes.CDLL(str(library()))

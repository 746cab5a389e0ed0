"""Controllers of rnea_controllers, compiled once for all tests of a process."""

from __future__ import annotations

import ctypes

import pytest

from support.controller_harness import COMPILER, NO_COMPILER, build


@pytest.fixture(scope="session", autouse=True)
def compiler():
    if not COMPILER:
        pytest.skip(NO_COMPILER)


@pytest.fixture(scope="session")
def code(tmp_path_factory):
    return ctypes.CDLL(str(build(tmp_path_factory.mktemp("controllers") / "harness.so", "-O1", "-fPIC", "-shared")))

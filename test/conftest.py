"""Settings for all tests: a folder of kernels for each run, the order of files, campaign tests, memory of finished files."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
# Folders whose files take longest come first: a long file at the end would leave the other workers without work.
FIRST = ("demo", "robots", "project", "nodes", "export", "inertial", "gait", "identification")

# One thread for linear algebra: the matrices are small, and threads that wait for each other beside other workers took three
# quarters of the processor time of tests of identification. Before numpy is imported; processes of tests inherit it.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Kernels are compiled once for each run: workers, and nodes that they start, inherit the folder of the first process.
if not IS_WORKER:
    os.environ["RNEA_ROS_CACHE"] = tempfile.mkdtemp(prefix="rnea_test_kernels_")


def pytest_unconfigure() -> None:
    if not IS_WORKER:
        shutil.rmtree(os.environ["RNEA_ROS_CACHE"], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort files, and leave out what `make campaign` runs; see `seeds` of support/robots.py."""
    rank = {folder: number for number, folder in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.path.parent.name, len(FIRST)))
    if "RNEA_TEST_SEEDS" not in os.environ:
        left_out = [item for item in items if item.get_closest_marker("campaign")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]


@pytest.fixture(scope="module", autouse=True)
def _caches_end_with_their_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """Clear the function caches of a test file after its last test: robots and oracles take hundreds of megabytes."""
    yield
    for value in list(vars(request.module).values()):
        if hasattr(value, "cache_clear") and getattr(value, "__module__", "") == request.module.__name__:
            value.cache_clear()

"""Settings for all tests: one empty folder of kernels for each run, shared by its workers and by the nodes that they start."""

import os
import shutil
import tempfile

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ  # a worker inherits the folder of the process that started it
if not IS_WORKER:
    os.environ["RNEA_ROS_CACHE"] = tempfile.mkdtemp(prefix="rnea_test_kernels_")


def pytest_unconfigure() -> None:
    if not IS_WORKER:
        shutil.rmtree(os.environ["RNEA_ROS_CACHE"], ignore_errors=True)

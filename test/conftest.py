"""Settings for all tests: a folder of kernels for each run, the order of files, campaign tests, memory of finished files."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
# Tests of nodes wait most of their time, others compute: files of both kinds take turns, so that processors have work at any
# time. Within a kind the folders whose files take longest come first, and their longest files: one at the end would leave the
# other workers without work.
WAITING = ("demo", "nodes", "rnea_rqt")
COMPUTING = ("robots", "project", "export", "identification", "gait", "codegen", "estimation", "trajectory", "planning")
# Files that take most processor time: those with nodes, then the others.
LONGEST = ("test_demo", "test_scaling_node", "test_scaling_node_life", "test_controller_motions_node", "test_policy_node",
           "test_combinations_node", "test_timings", "test_closed_loop_node", "test_dynamics_node_life", "test_plants_node",
           "test_platform_topics_node", "test_external_effort_node", "test_dynamics_node_input", "test_other_distributions",
           "test_readme", "test_dynamics_plugins", "test_inverse_dynamics_controller", "test_site", "test_random_combinations",
           "test_planning_arms", "test_export", "test_parallel_robots", "test_moveit_adapter", "test_program",
           "test_derivatives_of_robots", "test_closed_loops", "test_floating_base", "test_sensitivities", "test_invariants",
           "test_protocol", "test_pickling", "test_flexible_links", "test_general_robot", "test_c_compiler", "test_typing",
           "test_fuzz", "test_torque_rate")

# One thread for linear algebra: the matrices are small, and threads that wait for each other beside other workers took three
# quarters of the processor time of tests of identification. Before numpy is imported; processes of tests inherit it.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Tests of these folders and files run kernels as users do. The others compile more than they evaluate, and LLVM would take
# half of their time: they run the same instructions, compiled without optimisation, in C as well (QUICK_CC). `make campaign`
# optimises everywhere.
OPTIMIZED = ("codegen", "controllers", "execution", "export", "gait", "interop", "planning", "test_golden")
OPTIMIZATION = "RNEA_ROS_OPTIMIZATION"
QUICK_CC = """#!/bin/sh
for word; do shift; [ "$word" = -O2 ] && word=-O0; set -- "$@" "$word"; done
exec cc "$@"
"""

# Folders of this run, which the first process makes: workers, and the processes that they start, inherit them.
FOLDERS: list[str] = []
if not IS_WORKER:
    FOLDERS.append(tempfile.mkdtemp(prefix="rnea_test_kernels_"))
    os.environ["RNEA_ROS_CACHE"] = FOLDERS[-1]  # each kernel is compiled once
    FOLDERS.append(tempfile.mkdtemp(prefix="rnea_test_programs_"))
    os.environ["RNEA_TEST_PROGRAMS"] = FOLDERS[-1]  # and each program in C++
    quick_cc = Path(FOLDERS[-1]) / "cc"
    quick_cc.write_text(QUICK_CC, encoding="utf-8")
    quick_cc.chmod(0o755)
    # Where Python may not write bytecode beside the sources, some hundred processes would each compile all that they import,
    # which takes longer than most of them run.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).parents[1] / "build" / "bytecode")


def pytest_unconfigure() -> None:
    for folder in FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort files, and leave out what `make campaign` runs; see `seeds` of support/robots.py."""
    order = in_turns(dict.fromkeys(item.path for item in items))
    items.sort(key=lambda item: order[item.path])
    if "RNEA_TEST_SEEDS" not in os.environ:
        left_out = [item for item in items if item.get_closest_marker("campaign")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]


def in_turns(files: Iterable[Path]) -> dict[Path, float]:
    """Return the position of each file, from 0 to 1: each kind from its longest to its shortest file, both kinds in turns."""
    order: dict[Path, float] = {}
    kinds: dict[bool, list[Path]] = {False: [], True: []}
    for file in files:
        kinds[not {file.parent.name, file.parent.parent.name}.isdisjoint(WAITING)].append(file)
    for waits, folders in ((True, WAITING), (False, COMPUTING)):
        def length(file: Path, folders: tuple[str, ...] = folders) -> tuple[int, int]:
            """Return the position of a file in the lists; files in no list come last."""
            folder = file.parent.name if file.parent.name != "test" else file.parent.parent.name
            return (LONGEST.index(file.stem) if file.stem in LONGEST else len(LONGEST),
                    folders.index(folder) if folder in folders else len(folders))

        kinds[waits].sort(key=length)
        order |= {file: number / len(kinds[waits]) for number, file in enumerate(kinds[waits])}
    return order


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[Any]:
    """ROS domain of one test, with the processes that it starts."""
    from support.ros_helpers import ros_domain

    with ros_domain(tmp_path) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def _account(request: pytest.FixtureRequest) -> Iterator[None]:
    """Append processor time [s], time [s] and name of each test file to the file that RNEA_TEST_ACCOUNT names, if any."""
    if not (account := os.environ.get("RNEA_TEST_ACCOUNT")):
        yield
        return
    from support.processor_time import processor_time

    used, begin = processor_time(), time.monotonic()
    yield
    with open(account, "a", encoding="utf-8") as file:
        file.write(f"{processor_time() - used:8.2f} {time.monotonic() - begin:8.2f} {request.path}\n")


@pytest.fixture(scope="module", autouse=True)
def _optimization(request: pytest.FixtureRequest) -> Iterator[None]:
    """Choose the optimisation of kernels for a test file and the processes that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        if not {request.path.parent.name, request.path.stem} & set(OPTIMIZED) and "RNEA_TEST_SEEDS" not in os.environ:
            patch.setenv(OPTIMIZATION, "0")
            if shutil.which("cc"):
                patch.setenv("CC", str(Path(os.environ["RNEA_TEST_PROGRAMS"]) / "cc"))
        yield


@pytest.fixture(scope="module", autouse=True)
def _caches_end_with_their_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """Clear the function caches of a test file after its last test: robots and oracles take hundreds of megabytes."""
    yield
    for value in list(vars(request.module).values()):
        if hasattr(value, "cache_clear") and getattr(value, "__module__", "") == request.module.__name__:
            value.cache_clear()

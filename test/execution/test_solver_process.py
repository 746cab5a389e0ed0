"""Solver in a separate process: same results as in this process, also after a crash of the solver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.execution import solver_process
from rnea_ros.execution.executor import compile_kernels
from rnea_ros.execution.solver_process import SolverLost, SolverProcess
from rnea_ros.trajectory.constraints import Constraints
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from rnea_ros.trajectory.time_optimal import NoLaw
from rnea_ros.trajectory.trajectory_scaler import assess, next_law
from support.overspeed_motion import DURATION, DYNAMICS, LIMITS, POINTS, ROBOT

WAIT = 60.0  # s; deadline


@contextmanager
def solver_process_of_a_test():
    made = SolverProcess(lambda is_ok, message: made.events.append(message))
    made.events = []
    yield made
    made.shutdown()
    assert made.pid is None or gone(made.pid)


@pytest.fixture
def solver():
    """Return a solver that the test may kill."""
    with solver_process_of_a_test() as made:
        yield made


@pytest.fixture(scope="module")
def shared():
    """Return a solver that stays alive."""
    with solver_process_of_a_test() as made:
        yield made


def gone(pid: int) -> bool:
    """Return whether a process ends soon; reap it if it is a child of this process."""
    end = time.monotonic() + WAIT
    while alive(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


# requests


def pid(progress):
    return os.getpid()


def dies(progress, how=signal.SIGKILL):
    os.kill(os.getpid(), how)


def dies_once(file, progress):
    if not Path(file).exists():
        Path(file).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "answered"


def fails(progress):
    raise InputError("no")


def breaks(progress):
    raise ZeroDivisionError("none")


def works_on(file, progress):
    """Return whether a process computes until its result is not needed any more."""
    Path(file).touch()
    while True:
        progress("", 0.0)
        time.sleep(0.001)


def lambda_of(progress):
    return lambda: None


def until(condition):
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_solver_process_returns_the_same_results_as_this_process(shared):
    plan = plan_from_waypoints(POINTS, np.linspace(0.0, DURATION, 4))
    constraints = Constraints(plan.path, DYNAMICS, DYNAMICS.limits(LIMITS), ROBOT.joint_names)
    assert shared.submit(partial(compile_kernels, DYNAMICS)).result(WAIT) is None
    slow = plan.slower(0.2)
    for work in (partial(assess, constraints, plan, 0.0), partial(next_law, constraints, slow, 0.3, plan, True, 0.0)):
        mine, found = work(), shared.submit(work).result(WAIT)
        assert type(found) is type(mine)
        np.testing.assert_array_equal(found.table.flat, mine.table.flat)
        np.testing.assert_array_equal(found.table.law.coefficients, mine.table.law.coefficients)
    assert found.motion.law is found.table.law and found.at == 0.3


def test_all_requests_use_one_separate_process(shared):
    first = shared.submit(pid).result(WAIT)
    assert first == shared.pid == shared.submit(pid).result(WAIT) != os.getpid() and not shared.events


@pytest.mark.parametrize(("work", "error"), [(fails, InputError("no")), (breaks, ZeroDivisionError("none"))])
def test_errors_of_the_solver_process_are_raised(shared, work, error):
    with pytest.raises(type(error), match=str(error)):
        shared.submit(work).result(WAIT)
    assert shared.submit(pid).result(WAIT) == shared.pid and not shared.losses


def test_requests_that_cannot_be_pickled_fail_alone(shared):
    for work in (lambda progress: 1, lambda_of):  # request and result
        with pytest.raises(Exception, match=r"pickle|local object"):
            shared.submit(work).result(WAIT)
    assert shared.submit(pid).result(WAIT) == shared.pid and not shared.losses


def test_crashed_solver_is_restarted_and_the_request_repeated(solver, tmp_path):
    first = solver.submit(pid).result(WAIT)
    assert solver.submit(partial(dies_once, tmp_path / "died")).result(WAIT) == "answered"
    assert solver.pid != first and gone(first) and solver.losses == 1
    assert solver.events == ["the solver process ended and is started again, SIGKILL"]


def test_request_that_crashes_the_solver_twice_fails(solver):
    with pytest.raises(SolverLost, match="2 times"):
        solver.submit(partial(dies, how=signal.SIGSEGV)).result(WAIT)
    assert solver.losses == 2 and solver.submit(pid).result(WAIT) == solver.pid


def test_solver_that_ends_between_two_requests_is_replaced(solver):
    first = solver.submit(pid).result(WAIT)
    os.kill(first, signal.SIGKILL)
    assert solver.submit(pid).result(WAIT) == solver.pid != first


def test_newest_request_interrupts_and_replaces_older_ones(shared, tmp_path):
    """Running work is interrupted, and queued requests are not started."""
    begun = tmp_path / "begun"
    old = shared.submit(partial(works_on, begun))
    until(begun.exists)
    never = shared.submit(breaks)
    new = shared.submit(pid)
    assert new.result(WAIT) == shared.pid
    for given_up in (old, never):
        with pytest.raises(NoLaw, match="replaced by a newer one"):
            given_up.result(WAIT)
    assert not shared.losses


def test_solver_that_does_not_react_to_cancellation_is_killed(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(solver_process, "CANCEL_TIMEOUT_S", 0.1)
    stuck = solver.submit(partial(stays, tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    first = solver.pid
    assert solver.submit(pid).result(WAIT) == solver.pid != first and gone(first)
    with pytest.raises(NoLaw):
        stuck.result(WAIT)


def stays(file, progress):
    Path(file).touch()
    time.sleep(2.0 * WAIT)


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "import time; time.sleep(1000)"])
def test_thread_is_used_when_the_solver_process_fails_to_start(solver, monkeypatch, code):
    """The process ends at once, or never becomes ready."""
    monkeypatch.setattr(solver_process, "CODE", code)
    monkeypatch.setattr(solver_process, "START_TIMEOUT_S", 1.0)
    assert solver.submit(pid).result(WAIT) == os.getpid()
    (event,) = solver.events
    assert "cannot be started" in event and "ticks will be late" in event


def test_thread_is_used_when_no_process_can_be_created(solver, monkeypatch):
    def refuse(*args, **options):
        raise OSError("no more processes")

    monkeypatch.setattr(solver_process.subprocess, "Popen", refuse)
    assert solver.submit(pid).result(WAIT) == os.getpid() and "no more processes" in solver.events[0]
    monkeypatch.undo()
    assert solver.submit(pid).result(WAIT) == solver.pid


def test_shutdown_does_not_wait_for_a_result(tmp_path):
    solver = SolverProcess()
    future = solver.submit(partial(works_on, tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    child = solver.pid
    solver.shutdown()
    with pytest.raises(NoLaw, match="closed"):
        future.result(WAIT)
    assert gone(child) and not solver.losses


def test_signals_to_the_process_group_do_not_end_the_solver(shared):
    child = shared.submit(pid).result(WAIT)
    for which in (signal.SIGINT, signal.SIGTERM):
        os.kill(child, which)
    assert shared.submit(pid).result(WAIT) == child and os.getpgid(child) != os.getpgid(0)


@pytest.mark.parametrize("busy", [False, True])
def test_solver_ends_when_its_parent_is_killed(tmp_path, busy):
    begun = tmp_path / "begun"
    program = textwrap.dedent(f"""
        import sys
        sys.path[:] = {sys.path!r}
        from functools import partial
        from rnea_ros.execution.solver_process import SolverProcess
        from test_solver_process import pid, works_on
        solver = SolverProcess()
        print(solver.submit(pid).result(), flush=True)
        if {busy}:
            solver.submit(partial(works_on, {str(begun)!r}))
        print("ready", flush=True)
        sys.stdin.read()
        """)
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    assert process.stdout.readline() == "ready\n"
    until(lambda: not busy or begun.exists())
    assert alive(child)
    process.kill()
    process.communicate()
    assert gone(child)

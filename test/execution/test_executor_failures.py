"""Failures in a control cycle or a worker: they are reported, and the motion comes to rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.execution import executed_motion, executor
from rnea_ros.execution.executed_motion import ExecutedMotion
from rnea_ros.execution.states import Phase
from rnea_ros.trajectory import path_dynamics, trajectory_scaler
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.trajectory_scaler import TrajectoryScaler
from support.executor_harness import DT, ExecutorHarness, trajectory
from support.overspeed_motion import EFFORT, LIMITS, POINTS, ROBOT, START

FAILING = [InputError("no"), MemoryError(), KeyboardInterrupt()]
TIGHT = replace(LIMITS, effort=0.93 * EFFORT)


def fail(error):
    def failing(*args, **options):
        raise error

    return failing


@pytest.mark.parametrize("error", FAILING, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", [(PathDynamics, "limits"), (path_dynamics, "Constraints"), (ExecutedMotion, "set_robot"),
                                   (TrajectoryScaler, "change"), (trajectory_scaler, "assess")], ids=lambda where: where[1])
def test_failure_while_new_limits_are_applied_brings_the_motion_to_rest(monkeypatch, where, error):
    sim, outcomes = ExecutorHarness(), []
    sim.take(replace(trajectory(), on_end=outcomes.append))
    sim.play(0.6)
    with monkeypatch.context() as patch:
        patch.setattr(*where, fail(error))
        sim.executor.set_robot(ROBOT, TIGHT)
        sim.settle()
        sim.play(0.05)
        assert sim.executor.phase is Phase.STOPPING
    sim.play()
    why = "no" if isinstance(error, InputError) else f"internal error, please report it: {error!r}"
    ((reason, sentence),) = outcomes
    assert reason == "stopped" and "cannot go on with the new limits or payload: " in sentence and why in sentence
    assert not np.abs(sim.motion()[1][-1]).any() and sim.samples[-1].reference.s < sim.samples[0].reference.s + 10.0
    assert any(why in text for text in sim.events) and sim.used() <= 1.0
    before = len(sim.samples)
    sim.executor.set_robot(ROBOT, TIGHT)  # mended: all is well again
    sim.take(trajectory(START[None], first=1.5))
    sim.play()
    assert np.abs(sim.motion()[0][-1] - START).max() < 1e-9 and sim.used(limits=TIGHT, since=before) <= 1.0


def test_kernels_that_the_solver_cannot_compile_are_reported(monkeypatch):
    for error, reported in ((MemoryError(), True), (InputError("asked for something else"), False)):  # self-explanatory
        monkeypatch.setattr(executor, "compile_kernels", fail(error))
        sim = ExecutorHarness()
        sim.settle()
        assert any("preparation failed" in text for text in sim.events) is reported


@pytest.mark.parametrize("error", FAILING[1:], ids=lambda error: type(error).__name__)
def test_failure_while_a_motion_is_prepared_rejects_it(monkeypatch, error):
    sim, outcomes = ExecutorHarness(), []
    with monkeypatch.context() as patch:
        patch.setattr(executed_motion, "plan_from_waypoints", fail(error))
        sim.take(replace(trajectory(), on_end=outcomes.append))
    assert [rejected.reason for rejected in sim.rejected] == ["internal_error"] == [reason for reason, _ in outcomes]
    assert repr(error) in str(sim.rejected[0]) and sim.executor.phase is Phase.IDLE
    sim.take(trajectory())
    sim.play()
    assert np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_motion_is_rejected_when_no_thread_can_be_started(monkeypatch):
    sim = ExecutorHarness()
    sim.settle()
    with monkeypatch.context() as patch:
        patch.setattr(sim.worker, "submit", fail(RuntimeError("can't start new thread")))
        sim.executor.accept(trajectory(), sim.now)
        with pytest.raises(RuntimeError):  # a request for other limits is rejected with a message
            sim.executor.set_robot(ROBOT, TIGHT)
    assert [rejected.reason for rejected in sim.rejected] == ["internal_error"] and sim.executor.phase is Phase.IDLE


@pytest.mark.parametrize("error", FAILING, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", [(ExecutedMotion, "tick"), (TrajectoryScaler, "tick")], ids=lambda where: where[0].__name__)
def test_failing_cycle_brings_the_motion_to_rest(monkeypatch, where, error):
    sim, outcomes = ExecutorHarness(), []
    sim.take(replace(trajectory(), on_end=outcomes.append))
    sim.play(0.6)
    with monkeypatch.context() as patch:
        patch.setattr(*where, fail(error))
        for _ in range(3):
            assert sim.executor.tick(sim.now, DT) is None
    assert sim.executor.phase is Phase.STOPPING and sum("a tick failed" in text for text in sim.events) == 1
    sim.play()
    ((reason, sentence),) = outcomes
    assert reason == "stopped" and sentence.startswith("a tick failed") and not np.abs(sim.motion()[1][-1]).any()


def test_permanently_failing_cycles_abort_the_motion(monkeypatch):
    sim, outcomes = ExecutorHarness(), []
    sim.take(replace(trajectory(), on_end=outcomes.append))
    sim.play(0.6)
    with monkeypatch.context() as patch:
        patch.setattr(TrajectoryScaler, "tick", fail(ZeroDivisionError("no")))
        for _ in range(200):
            sim.executor.tick(sim.now, DT)
    ((reason, sentence),) = outcomes
    assert reason == "stopped" and "100 ticks in a row failed" in sentence and sim.executor.phase is Phase.IDLE
    sim.take(trajectory())
    sim.play()
    assert np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9


@pytest.mark.parametrize("error", FAILING, ids=lambda error: type(error).__name__)
def test_motion_continues_with_the_slower_law_when_the_solver_fails(monkeypatch, error):
    """The slower law is inside the limits to its end."""
    sim = ExecutorHarness()
    with monkeypatch.context() as patch:
        patch.setattr(trajectory_scaler, "next_law", fail(error))
        sim.take(trajectory())
        sim.play()
    assert np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9 and sim.used() <= 1.0
    assert any(text.startswith("the motion goes on as it was: ") for text in sim.events)


def test_failing_result_callback_does_not_delay_others():
    sim = ExecutorHarness()
    sim.take(replace(trajectory(), on_end=fail(RuntimeError("gone"))))
    sim.play(0.4)
    sim.take(trajectory(START[None], first=1.5))
    sim.play()
    assert np.abs(sim.motion()[0][-1] - START).max() < 1e-9
    assert sum("the result callback of a trajectory (stopped) failed" in text and "gone" in text for text in sim.events) == 1

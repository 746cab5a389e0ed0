"""What takes longer than a tick, one thing after another in a worker: the context for a robot, and the motions of goals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from ..errors import Rejected, RneaError, in_words
from ..model.tree import Limits
from ..motion.path_dynamics import PathDynamics
from ..robots.link_side import LinkSideRobot
from ..scaling.profile import Progress
from .executed_motion import ExecutedMotion
from .execution_context import ExecutionContext, execution_context
from .goal import Goal
from .start_state import StartState


class Preparation:
    """Its callbacks are called by the workers; nobody reads their futures, so every failure ends in one.

    on_context : with the context for the robot that was asked for last; returns whether a motion is under way
    on_motion  : with a goal and its motion
    on_refused : with a goal and why there is no motion
    on_failure : with what fails that never should
    """

    def __init__(self, worker: Executor, solver: Executor, start: StartState, on_context: Callable[[ExecutionContext], bool],
                 on_motion: Callable[[Goal, ExecutedMotion], None], on_refused: Callable[[Goal, Rejected], None],
                 on_failure: Callable[[BaseException], None]):
        self._worker, self._solver, self._start = worker, solver, start
        self._on_context, self._on_motion, self._on_refused = on_context, on_motion, on_refused
        self._on_failure = on_failure
        self._wanted: tuple[LinkSideRobot, Limits] | None = None
        self._context: ExecutionContext | None = None
        self._count = 0  # of motions

    def use(self, robot: LinkSideRobot, limits: Limits) -> None:
        """For what moves, and for what will."""
        self._wanted = wanted = robot, limits
        self._worker.submit(self._guarded, self._make_context, wanted)

    def make(self, goal: Goal, now: int, values: Mapping[str, Any]) -> None:
        """A goal's motion from where the robot is at time now [ns]."""
        self._worker.submit(self._guarded, self._make_motion, goal, now, values)

    def _guarded(self, work: Callable[..., None], *args: Any) -> None:
        try:
            work(*args)
        except BaseException as error:
            self._on_failure(error)

    def _make_context(self, wanted: tuple[LinkSideRobot, Limits]) -> None:
        if wanted is not self._wanted:  # overtaken while it waited
            return
        self._context = context = execution_context(*wanted)
        moving = self._on_context(context)
        if not moving and context.dynamics is not None:  # else compiling would keep ticks waiting
            self._solver.submit(partial(compiled, context.dynamics)).add_done_callback(self._compiled)
            context.dynamics.compile()

    def _compiled(self, done: Future) -> None:
        """In the solver. That it is lost, or is asked for something else before, it tells itself."""
        error = None if done.cancelled() else done.exception()
        if error is not None and not isinstance(error, RneaError):
            self._on_failure(error)

    def _make_motion(self, goal: Goal, now: int, values: Mapping[str, Any]) -> None:
        try:
            motion = self._motion(goal, now, values)
        except Rejected as rejected:
            self._on_refused(goal, rejected)
        except BaseException as error:
            reason = "motion_refused" if isinstance(error, RneaError) else "internal_error"
            self._on_refused(goal, Rejected(reason, in_words(error)))
        else:
            self._on_motion(goal, motion)

    def _motion(self, goal: Goal, now: int, values: Mapping[str, Any]) -> ExecutedMotion:
        """Raises RneaError."""
        context = self._context
        if context is None or goal.joint_names != context.robot.joint_names:
            raise Rejected("no_model", "the robot description was exchanged since the trajectory came")
        place = self._start.at(goal.joint_names, now, values["start_tolerance"], context.turns)
        motion = context.motion(self._count + 1, goal, place, values, self._solver)
        self._count += 1
        return motion


def compiled(dynamics: PathDynamics, progress: Progress | None = None) -> None:
    """Have the kernels in the process that solves before they are needed."""
    dynamics.compile()

"""The state machine of a trajectory executor: which trajectory is executed, which waits, and who is told what became of it.

states.py has the table; here are the actions. There are no threads here, and no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..errors import Rejected, in_words
from .executed_motion import ExecutedMotion
from .goal import Goal, Outcome
from .states import Action, Event, State, step

REPLACED = "another trajectory came before this one had begun"


class Occasion(NamedTuple):
    """What comes with an event, for its actions.

    outcome : what senders are told
    goal    : that is new
    motion  : that is prepared
    now     : time [ns]
    well    : as what it is reported; None, where the caller does so
    """

    outcome: Outcome = Outcome()
    goal: Goal | None = None
    motion: ExecutedMotion | None = None
    now: int = 0
    well: bool | None = None


class StateMachine:
    """state, and what belongs to it: `waiting`, the goal that waits, its motion once it is `ready`, and the `motion` that is
    executed.

    prepare     : called with a goal and the time [ns]: its motion is wanted
    keep        : called with a motion that is ready
    forget      : called when the robot is somewhere else
    on_event    : called with (whether all is well, a sentence)
    on_rejected : called with why a goal was replaced, or its preparation not even begun
    """

    def __init__(self, prepare: Callable[[Goal, int], None], keep: Callable[[ExecutedMotion], None],
                 forget: Callable[[], None], on_event: Callable[[bool, str], None], on_rejected: Callable[[Rejected], None]):
        self._ask, self._on_ready, self._forget = prepare, keep, forget
        self._on_event, self._on_rejected = on_event, on_rejected
        self.state = State.NO_MODEL
        self.waiting: Goal | None = None
        self.ready: ExecutedMotion | None = None
        self.motion: ExecutedMotion | None = None
        self._actions: dict[Action, Callable[[Occasion], None]] = {
            Action.REPLACE: self._replace, Action.REFUSE: self._refuse, Action.TAKE: self._take, Action.PREPARE: self._prepare,
            Action.KEEP: self._keep, Action.EXECUTE: self._execute, Action.BRAKE: self._brake, Action.FINISH: self._finish,
            Action.FORGET: lambda occasion: self._forget()}

    def fire(self, event: Event, occasion: Occasion = Occasion()) -> None:
        """Something has happened."""
        self.state, actions = step(self.state, event)
        for action in actions:
            self._actions[action](occasion)

    def refuse(self, goal: Goal, rejected: Rejected) -> None:
        """What was to be prepared cannot be, unless it does not wait any more."""
        if goal is self.waiting:
            self.fire(Event.REFUSED, Occasion(Outcome(rejected.reason, rejected.detail)))
            self._on_rejected(rejected)

    def _replace(self, occasion: Occasion) -> None:
        rejected = Rejected("replaced", REPLACED)
        self._refuse(Occasion(Outcome(rejected.reason, rejected.detail)))
        self._on_rejected(rejected)

    def _refuse(self, occasion: Occasion) -> None:
        goal, self.waiting, self.ready = self.waiting, None, None
        if occasion.well is not None:
            self._on_event(occasion.well, f"the trajectory that waited is dropped: {occasion.outcome.sentence}")
        self._tell(goal, occasion.outcome)

    def _take(self, occasion: Occasion) -> None:
        self.waiting = occasion.goal

    def _prepare(self, occasion: Occasion) -> None:
        assert self.waiting is not None
        try:
            self._ask(self.waiting, occasion.now)
        except Exception as error:  # no thread can be started any more
            self.refuse(self.waiting, Rejected("internal_error", in_words(error)))

    def _keep(self, occasion: Occasion) -> None:
        assert occasion.motion is not None
        self.ready = occasion.motion
        self._on_ready(occasion.motion)

    def _execute(self, occasion: Occasion) -> None:
        self.motion, self.ready, self.waiting = self.ready, None, None

    def _brake(self, occasion: Occasion) -> None:
        assert self.motion is not None
        self.motion.stop(occasion.outcome.sentence, occasion.outcome.reason)
        self._on_event(occasion.well is not False, f"motion {self.motion.number} comes to rest: {occasion.outcome.sentence}")

    def _finish(self, occasion: Occasion) -> None:
        assert self.motion is not None
        goal, self.motion = self.motion.goal, None
        self._tell(goal, occasion.outcome)

    def _tell(self, goal: Goal | None, outcome: Outcome) -> None:
        """A sender that cannot be told is nobody else's trouble."""
        try:
            if goal is not None:
                goal.on_end(outcome)
        except Exception as error:
            self._on_event(False, f"who sent a trajectory could not be told that it {outcome.reason or 'is done'}: "
                                  f"{in_words(error)}")

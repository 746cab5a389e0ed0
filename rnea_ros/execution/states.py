"""State machine of a trajectory executor: a table of states, events and actions, and the object that performs the actions.

At most one trajectory is executed: its motion moves, or comes to rest. At most one waits: for its motion to be prepared, for
its start time, or for the end of the executed one. An event that the table does not name in a state changes nothing. A pause
is not a state: it lasts until resumed, also while trajectories begin or end. There are no threads and no clocks here.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from ..errors import Rejected, in_words
from .executed_motion import ExecutedMotion
from .goal import Goal, Outcome

REPLACED = "another trajectory came before this one had begun"


class State(Enum):
    """State of an executor; the value is shown to users."""

    NO_MODEL = "no robot model"
    IDLE = "no trajectory"
    PREPARING = "a trajectory waits for its motion to be prepared"
    WAITING = "a prepared trajectory waits for its start time"
    MOVING = "a trajectory is executed"
    MOVING_WITH_NEXT = "a trajectory is executed, another one waits"
    STOPPING = "the executed motion comes to rest"
    STOPPING_FOR_NEXT = "the executed motion comes to rest, another trajectory waits"


class Event(Enum):
    """Event of an executor; the value is shown to users."""

    MODEL = "a robot model is set"
    OTHER_JOINTS = "a robot model with other joints is set"
    GOAL = "a trajectory is accepted"
    PREPARED = "the motion of the waiting trajectory is prepared"
    REFUSED = "the waiting trajectory cannot be prepared, or cannot begin at the robot's position"
    BEGIN = "the start time of the waiting trajectory is reached"
    NEXT_DUE = "the start time of the trajectory that waits during a motion is reached"
    DROP = "the waiting trajectory is cancelled"
    STOP = "the executed trajectory is cancelled"
    AT_REST = "the executed motion has ended"
    ABORT = "all trajectories are abandoned immediately"


class Action(Enum):
    """Action on the transition to the next state; the value is shown to users."""

    REPLACE = "report to the sender of the waiting trajectory that another one has replaced it"
    REFUSE = "report to the sender of the waiting trajectory why it was not executed"
    TAKE = "store the new trajectory as the waiting one"
    PREPARE = "start the preparation of its motion"
    KEEP = "store its motion"
    EXECUTE = "begin its motion"
    BRAKE = "stop the executed motion on its path"
    FINISH = "report the outcome to the sender of the executed trajectory"
    FORGET = "discard the references that were sent"


class Step(NamedTuple):
    """Next state, and the actions on the transition, in this order."""

    state: State
    actions: tuple[Action, ...] = ()


def _to(state: State, *actions: Action) -> Step:
    return Step(state, actions)


TABLE = {
    State.NO_MODEL: {
        Event.MODEL: _to(State.IDLE),
        Event.ABORT: _to(State.NO_MODEL, Action.FORGET),
    },
    State.IDLE: {
        Event.GOAL: _to(State.PREPARING, Action.TAKE, Action.PREPARE),
        Event.ABORT: _to(State.IDLE, Action.FORGET),
    },
    State.PREPARING: {
        Event.PREPARED: _to(State.WAITING, Action.KEEP),
        Event.REFUSED: _to(State.IDLE, Action.REFUSE),
        Event.GOAL: _to(State.PREPARING, Action.REPLACE, Action.TAKE, Action.PREPARE),
        Event.DROP: _to(State.IDLE, Action.REFUSE),
        Event.OTHER_JOINTS: _to(State.IDLE, Action.REFUSE),
        Event.ABORT: _to(State.IDLE, Action.REFUSE, Action.FORGET),
    },
    State.WAITING: {
        Event.BEGIN: _to(State.MOVING, Action.EXECUTE),
        Event.REFUSED: _to(State.IDLE, Action.REFUSE),
        Event.GOAL: _to(State.PREPARING, Action.REPLACE, Action.TAKE, Action.PREPARE),
        Event.DROP: _to(State.IDLE, Action.REFUSE),
        Event.OTHER_JOINTS: _to(State.IDLE, Action.REFUSE),
        Event.ABORT: _to(State.IDLE, Action.REFUSE, Action.FORGET),
    },
    State.MOVING: {
        Event.GOAL: _to(State.MOVING_WITH_NEXT, Action.TAKE),
        Event.STOP: _to(State.STOPPING, Action.BRAKE),
        Event.OTHER_JOINTS: _to(State.STOPPING, Action.BRAKE),
        Event.AT_REST: _to(State.IDLE, Action.FINISH),
        Event.ABORT: _to(State.IDLE, Action.FINISH, Action.FORGET),
    },
    State.MOVING_WITH_NEXT: {
        Event.NEXT_DUE: _to(State.STOPPING_FOR_NEXT, Action.BRAKE),
        Event.GOAL: _to(State.MOVING_WITH_NEXT, Action.REPLACE, Action.TAKE),
        Event.DROP: _to(State.MOVING, Action.REFUSE),
        Event.STOP: _to(State.STOPPING_FOR_NEXT, Action.BRAKE),
        Event.OTHER_JOINTS: _to(State.STOPPING, Action.REFUSE, Action.BRAKE),
        Event.AT_REST: _to(State.PREPARING, Action.FINISH, Action.PREPARE),
        Event.ABORT: _to(State.IDLE, Action.REFUSE, Action.FINISH, Action.FORGET),
    },
    State.STOPPING: {
        Event.GOAL: _to(State.STOPPING_FOR_NEXT, Action.TAKE),
        Event.AT_REST: _to(State.IDLE, Action.FINISH),
        Event.ABORT: _to(State.IDLE, Action.FINISH, Action.FORGET),
    },
    State.STOPPING_FOR_NEXT: {
        Event.GOAL: _to(State.STOPPING_FOR_NEXT, Action.REPLACE, Action.TAKE),
        Event.DROP: _to(State.STOPPING, Action.REFUSE),
        Event.OTHER_JOINTS: _to(State.STOPPING, Action.REFUSE),
        Event.AT_REST: _to(State.PREPARING, Action.FINISH, Action.PREPARE),
        Event.ABORT: _to(State.IDLE, Action.REFUSE, Action.FINISH, Action.FORGET),
    },
}


def step(state: State, event: Event) -> Step:
    """Return the transition for an event."""
    return TABLE[state].get(event, Step(state))


class Phase(Enum):
    """Reported phase: a state without the waiting trajectory, but with the pause; the value is shown to users."""

    NO_MODEL = "waiting for a robot description"
    IDLE = "waiting for a trajectory"
    PREPARING = "preparing a trajectory"
    WAITING = "waiting for the start time of a trajectory"
    MOVING = "moving"
    PAUSED = "paused"
    STOPPING = "coming to rest"
    SETTLING = "waiting for the robot to reach the goal"


_MERGED = {State.MOVING_WITH_NEXT: Phase.MOVING, State.STOPPING_FOR_NEXT: Phase.STOPPING}


def phase(state: State, paused: bool, settling: bool = False) -> Phase:
    """Return the reported phase.

    paused   : whether the motion rests on its path until it is resumed
    settling : whether all references are sent and the robot has not reached the goal
    """
    found = _MERGED.get(state) or Phase[state.name]
    if found is not Phase.MOVING:
        return found
    return Phase.SETTLING if settling else Phase.PAUSED if paused else found


class EventContext(NamedTuple):
    """Data of an event, for its actions.

    outcome : outcome that is reported to senders
    goal    : new goal
    motion  : prepared motion
    now     : time [ns]
    is_ok   : level at which the event is reported; None: the caller reports it
    """

    outcome: Outcome = Outcome()
    goal: Goal | None = None
    motion: ExecutedMotion | None = None
    now: int = 0
    is_ok: bool | None = None


class StateMachine:
    """State with its data: the `waiting` goal, its motion once `ready`, and the executed `motion`.

    prepare     : called with a goal and the time [ns] to start the preparation of its motion
    on_ready    : called with a prepared motion
    forget      : called when the sent references no longer determine the position of the robot
    on_event    : called with (is_ok, message)
    on_rejected : called with the reason why a goal was replaced, or its preparation could not start
    """

    def __init__(self, prepare: Callable[[Goal, int], None], on_ready: Callable[[ExecutedMotion], None],
                 forget: Callable[[], None], on_event: Callable[[bool, str], None], on_rejected: Callable[[Rejected], None]):
        self._start_preparation, self._on_ready, self._forget = prepare, on_ready, forget
        self._on_event, self._on_rejected = on_event, on_rejected
        self.state = State.NO_MODEL
        self.waiting: Goal | None = None
        self.ready: ExecutedMotion | None = None
        self.motion: ExecutedMotion | None = None
        self._actions: dict[Action, Callable[[EventContext], None]] = {
            Action.REPLACE: self._replace, Action.REFUSE: self._refuse, Action.TAKE: self._take, Action.PREPARE: self._prepare,
            Action.KEEP: self._keep, Action.EXECUTE: self._execute, Action.BRAKE: self._brake, Action.FINISH: self._finish,
            Action.FORGET: lambda context: self._forget()}

    def fire(self, event: Event, context: EventContext = EventContext()) -> None:
        """Change the state by an event, and perform the actions of the transition."""
        self.state, actions = step(self.state, event)
        for action in actions:
            self._actions[action](context)

    def refuse(self, goal: Goal, rejected: Rejected) -> None:
        """Report that a goal cannot be prepared, unless it does not wait any more."""
        if goal is self.waiting:
            self.fire(Event.REFUSED, EventContext(Outcome(rejected.reason, rejected.detail)))
            self._on_rejected(rejected)

    def _replace(self, context: EventContext) -> None:
        rejected = Rejected("replaced", REPLACED)
        self._refuse(EventContext(Outcome(rejected.reason, rejected.detail)))
        self._on_rejected(rejected)

    def _refuse(self, context: EventContext) -> None:
        goal, self.waiting, self.ready = self.waiting, None, None
        if context.is_ok is not None:
            self._on_event(context.is_ok, f"the waiting trajectory is dropped: {context.outcome.message}")
        self._report_outcome(goal, context.outcome)

    def _take(self, context: EventContext) -> None:
        self.waiting = context.goal

    def _prepare(self, context: EventContext) -> None:
        assert self.waiting is not None
        try:
            self._start_preparation(self.waiting, context.now)
        except Exception as error:  # for instance if no thread can be started
            self.refuse(self.waiting, Rejected("internal_error", in_words(error)))

    def _keep(self, context: EventContext) -> None:
        assert context.motion is not None
        self.ready = context.motion
        self._on_ready(context.motion)

    def _execute(self, context: EventContext) -> None:
        self.motion, self.ready, self.waiting = self.ready, None, None

    def _brake(self, context: EventContext) -> None:
        assert self.motion is not None
        self.motion.stop(context.outcome.message, context.outcome.reason)
        self._on_event(context.is_ok is not False, f"motion {self.motion.number} comes to rest: {context.outcome.message}")

    def _finish(self, context: EventContext) -> None:
        assert self.motion is not None
        goal, self.motion = self.motion.goal, None
        self._report_outcome(goal, context.outcome)

    def _report_outcome(self, goal: Goal | None, outcome: Outcome) -> None:
        """Call the result callback. Its errors are reported and not propagated: other goals go on."""
        try:
            if goal is not None:
                goal.on_end(outcome)
        except Exception as error:
            self._on_event(False, f"the result callback of a trajectory ({outcome.reason or 'succeeded'}) failed: "
                                  f"{in_words(error)}")

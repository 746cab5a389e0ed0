"""The states of a trajectory executor and what happens in each: one table, without threads, clocks or robots.

At most one trajectory is executed: its motion moves, or comes to rest. At most one waits: for its motion to be prepared, for
its time, or for the end of the one that is executed. What the table does not name changes nothing. A pause is no state: it
lasts until it is resumed, whatever trajectories come and go.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class State(Enum):
    """What an executor is at; the value is for people."""

    NO_MODEL = "there is no robot"
    IDLE = "nothing to do"
    PREPARING = "one waits for its motion to be prepared"
    WAITING = "one is ready, and waits for its time"
    MOVING = "one moves"
    MOVING_WITH_NEXT = "one moves, another waits"
    STOPPING = "one comes to rest"
    STOPPING_FOR_NEXT = "one comes to rest, another waits"


class Event(Enum):
    """What may happen, in any state; the value is for people."""

    MODEL = "a robot is there"
    OTHER_JOINTS = "a robot with other joints is there"
    GOAL = "a trajectory is accepted"
    PREPARED = "its motion is prepared"
    REFUSED = "it cannot be prepared, or not begin where the robot is"
    BEGIN = "its time has come"
    NEXT_DUE = "the time of the one behind it has come"
    DROP = "the one that waits is not wanted any more"
    STOP = "the one that moves is not wanted any more"
    AT_REST = "the motion has ended"
    ABORT = "all is given up, at once"


class Action(Enum):
    """What is done on the way to the next state; the value is for people."""

    REPLACE = "tell the one that waits that another came"
    REFUSE = "tell the one that waits why not"
    TAKE = "let the new one wait"
    PREPARE = "have its motion prepared"
    KEEP = "keep its motion"
    EXECUTE = "execute it"
    BRAKE = "stop the motion on its path"
    FINISH = "tell the one that moved what became of it"
    FORGET = "forget where the robot was sent"


class Step(NamedTuple):
    """The next state, and what is done on the way, in this order."""

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
    """What an event leads to."""
    return TABLE[state].get(event, Step(state))


class Phase(Enum):
    """What is reported of a state: whether another trajectory waits is left out, a pause is not; the value is for people."""

    NO_MODEL = "waiting for a robot description"
    IDLE = "waiting for a trajectory"
    PREPARING = "preparing a trajectory"
    WAITING = "waiting for the trajectory's time"
    MOVING = "moving"
    PAUSED = "paused"
    STOPPING = "coming to rest"
    SETTLING = "waiting for the robot to be at its goal"


_MERGED = {State.MOVING_WITH_NEXT: Phase.MOVING, State.STOPPING_FOR_NEXT: Phase.STOPPING}


def phase(state: State, paused: bool, settling: bool = False) -> Phase:
    """paused: whether the motion rests on its path until it is resumed; settling: whether it rests at its goal."""
    found = _MERGED.get(state) or Phase[state.name]
    if found is not Phase.MOVING:
        return found
    return Phase.SETTLING if settling else Phase.PAUSED if paused else found

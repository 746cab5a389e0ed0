"""State table of the trajectory executor: every event in every state, and reachability."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from rnea_ros.execution.states import TABLE, Action, Event, Phase, State, phase, step

PAGE = Path(__file__).resolve().parents[2] / "docs" / "execution_states.md"
EVERY = list(itertools.product(State, Event))
WAITS = {State.PREPARING, State.WAITING, State.MOVING_WITH_NEXT, State.STOPPING_FOR_NEXT}
MOVES = {State.MOVING, State.MOVING_WITH_NEXT, State.STOPPING, State.STOPPING_FOR_NEXT}


def table() -> str:
    """Return the table of docs/execution_states.md."""
    lines = ["| state | event | next state | actions |", "|---|---|---|---|"]
    for state, events in TABLE.items():
        for event, (following, actions) in events.items():
            done = ", ".join(action.name.lower() for action in actions)
            lines.append(f"| {state.name} | {event.name} | {following.name} | {done} |")
    return "\n".join(lines) + "\n"


def test_documentation_contains_the_state_table():
    text = PAGE.read_text(encoding="utf-8")
    assert table() in text, f"docs/execution_states.md needs\n{table()}"
    for kind in (State, Event, Action):  # with the meaning of each name
        for word in kind:
            name = word.name.lower() if kind is Action else word.name
            assert re.search(rf"\| {name} \| {re.escape(word.value)} \|", text), f"| {name} | {word.value} |"


class Slots:
    """Trajectories held by an executor, each with its outcome."""

    def __init__(self, state: State):
        self.waiting, self.moving, self.prepared, self.braked = state in WAITS, state in MOVES, state is State.WAITING, False
        self.reported: list[str] = []

    def do(self, action: Action) -> None:
        match action:
            case Action.REPLACE | Action.REFUSE:
                assert self.waiting
                self.waiting = self.prepared = False
                self.reported.append("the one that waits")
            case Action.TAKE:
                assert not self.waiting, "one would be forgotten"
                self.waiting = True
            case Action.PREPARE:
                assert self.waiting and not self.moving and not self.prepared
            case Action.KEEP:
                assert self.waiting and not self.moving
                self.prepared = True
            case Action.EXECUTE:
                assert self.prepared and not self.moving
                self.waiting, self.prepared, self.moving = False, False, True
            case Action.BRAKE:
                assert self.moving
                self.braked = True
            case Action.FINISH:
                assert self.moving
                self.moving = False
                self.reported.append("the one that moved")


@pytest.mark.parametrize(("state", "event"), EVERY, ids=lambda value: value.name)
def test_every_event_in_every_state_keeps_goals_and_state_consistent(state, event):
    """Each goal receives exactly one result, and the next state matches the goals that are held."""
    following, actions = step(state, event)
    slots = Slots(state)
    for action in actions:
        slots.do(action)
    assert max(Counter(slots.reported).values(), default=0) <= 1
    assert (slots.waiting, slots.moving) == (following in WAITS, following in MOVES)
    assert slots.prepared == (following is State.WAITING)
    assert slots.braked == (following in {State.STOPPING, State.STOPPING_FOR_NEXT}
                            and state in {State.MOVING, State.MOVING_WITH_NEXT})
    if event not in TABLE[state]:
        assert (following, actions) == (state, ())


@pytest.mark.parametrize("state", State)
def test_goal_abort_and_new_joints_have_the_same_effect_in_every_state(state):
    known = state is not State.NO_MODEL
    if known:
        taken, actions = step(state, Event.GOAL)
        assert taken in WAITS and Action.TAKE in actions  # a trajectory is never lost
        assert (Action.REPLACE in actions) == (state in WAITS)
        assert step(state, Event.ABORT).state is State.IDLE and step(state, Event.OTHER_JOINTS).state not in WAITS
    assert Action.FORGET in step(state, Event.ABORT).actions
    for event in (Event.STOP, Event.OTHER_JOINTS):  # nothing goes on to move that is not wanted
        assert step(state, event).state not in {State.MOVING, State.MOVING_WITH_NEXT}
    assert step(state, Event.DROP).state not in WAITS
    dropped_and_stopped = step(step(state, Event.DROP).state, Event.STOP).state
    assert dropped_and_stopped in {State.NO_MODEL, State.IDLE, State.STOPPING}
    for late in (Event.PREPARED, Event.BEGIN, Event.NEXT_DUE, Event.REFUSED):  # late events change nothing
        if state not in WAITS:
            assert step(state, late) == (state, ())


def test_every_state_can_be_reached_and_left():
    reached, new = {State.NO_MODEL}, {State.NO_MODEL}
    while new:
        new = {step(state, event).state for state in new for event in Event} - reached
        reached |= new
    assert reached == set(State)
    for start in State:  # and IDLE can be reached from each
        ways = {start}
        for _ in State:
            ways |= {step(state, event).state for state in ways for event in (Event.AT_REST, Event.DROP, Event.MODEL)}
        assert State.IDLE in ways


@pytest.mark.parametrize("state", State)
def test_phase_of_every_state_is_reported(state):
    plain, paused = phase(state, False), phase(state, True)
    assert state.name.startswith(plain.name)
    assert paused is (Phase.PAUSED if plain is Phase.MOVING else plain)
    for rests in (True, False):
        assert phase(state, rests, settling=True) is (Phase.SETTLING if plain is Phase.MOVING else plain)

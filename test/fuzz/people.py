"""Fuzzing targets of `rnea gait`: files of strength curves, and the numbers of a person, a lift and repeated work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fuzz.mutation import Choices
from fuzz.nodes import dice
from fuzz.target import Target, Try, WrongNumber
from rnea_ros.gait.lift import LiftTask, recommended_weight
from rnea_ros.gait.muscles import COLUMNS, RATES, STRENGTH_TABLE, MuscleStrength, RepeatedWork, sustained_endurance
from rnea_ros.gait.skeleton import NEUTRAL, Human

ANGLES, SPEEDS = np.linspace(-3.0, 3.0, 7), np.linspace(-30.0, 30.0, 7)  # rad, rad/s
BITE = 1e-12  # tolerance of a share of strength
WORDS = (b"hip_flexion", b"negative", b"positive", b",", b"\n", b'"', b"0", b"-1", b"nan", b"knee_flexion")


def _curves() -> list[bytes]:
    rows = [f"{joint},{direction},{','.join(f'{value:g}' for value in ages[0])}"
            for (joint, direction), ages in STRENGTH_TABLE["male"].items()]
    return ["\n".join([",".join(COLUMNS), *rows]).encode(), "\r\n".join([",".join(COLUMNS), rows[0]]).encode()]


def _muscles(folder: Path) -> Try:
    path, person = folder / "muscles.csv", Human()

    def attempt(data: bytes) -> str:
        path.write_bytes(data)
        strength = MuscleStrength.of(person, str(path))
        for joint, direction in strength.curves:
            with np.errstate(all="ignore"):
                found = strength.torque(joint, direction, ANGLES, SPEEDS)
            largest = strength.curves[joint, direction].c1
            if largest < 1e100 and not (np.isfinite(found).all() and found[0].min() >= -BITE * strength.unit * largest):
                raise WrongNumber(f"{joint} {direction}: torques {found}")
        return "read"

    return attempt


def _value(choose: Choices, usual: float) -> float:
    return choose.number() if choose.byte() < 30 else usual * choose.pick((1.0, 1.0, 0.5, 0.9, 1.1, 2.0))


def _pair(choose: Choices, usual: tuple[float, ...]) -> Any:
    return tuple(_value(choose, value) for value in usual)


def _people(_folder: Path) -> Try:
    usual = LiftTask()

    def attempt(data: bytes) -> str:
        choose = Choices(data)
        task = LiftTask(_value(choose, 10.0), _pair(choose, usual.box_size), _pair(choose, usual.start),
                        _pair(choose, usual.goal), _value(choose, 1.5), choose.pick((None, _value(choose, 0.3))),
                        choose.pick((np.inf, _value(choose, 100.0))), choose.pick((np.inf, _value(choose, 3400.0))))
        frozen = choose.pick((NEUTRAL, NEUTRAL, (), ("unknown",), ("right_",)))
        person = Human(_value(choose, 1.7), _value(choose, 70.0), choose.pick(("male", "female")), frozen, _value(choose, 5.0),
                       choose.pick((True, False)))
        load = np.abs([[_value(choose, 0.3)] for _ in range(5)])
        work = RepeatedWork(np.linspace(0.0, task.duration, 5), load, _value(choose, 10.0), [choose.pick([*RATES.values()])])
        with np.errstate(all="ignore"):
            capacity = work.capacity(100.0)
        numbers = [recommended_weight(task), person.standing_height, person.ankle_height, *person.grip,
                   *(body.mass for body in person.bodies.values())]
        if not np.isfinite(numbers).all() or min(numbers[-3:]) < 0.0 or not 0.0 <= recommended_weight(task) <= 23.0:
            raise WrongNumber(f"{numbers} of {person} and {task}")
        held = sustained_endurance(load[np.isfinite(load)], work.rates[0])
        if (held < 0.0).any() or (np.isfinite(load).all() and not (work.cycles >= 0.0).all()) or (capacity > 1.0 + BITE).any():
            raise WrongNumber(f"endurance {held}, cycles {work.cycles}, capacity {capacity} at {load.ravel()}")
        return "valid"

    return attempt


TARGETS = (Target("muscles", _curves, _muscles, WORDS),
           Target("people", dice, _people, generate=lambda rng: rng.randbytes(100)))

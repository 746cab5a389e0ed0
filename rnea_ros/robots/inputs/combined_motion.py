"""Inputs of a motion with one sample or many: the options of each sample, and rates of a base's velocity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...algebra.arrays import Array
from ...algebra.vectors import cross
from ...errors import InputError
from . import validation
from .base_state import BaseState

LOADS = ("wrenches", "wrench_rates", "world_wrenches")


def loads(given: Any) -> Mapping[str, Any]:
    """Return external wrenches or their rates; InputError where they are no mapping of links."""
    if not isinstance(given, Mapping):
        raise InputError(f"wrenches, wrench_rates and world_wrenches are mappings {{URDF link: six numbers}}; a "
                         f"{type(given).__name__} is given")
    return given


def sampled(arrays: Sequence[Array], options: dict[str, Any],
            motors: int) -> tuple[int | None, Callable[[int], dict[str, Any]]]:
    """Return the number of samples, None for a single one, and a function of the options of each sample.

    arrays  : of the motion, (n,) or (samples, n) each
    options : base, base_acceleration, base_jerk, base_rates, q_motor, qd_motor and loads by name, as of Robot.solve
    motors  : number of motors behind springs
    """
    base: BaseState | None = options.pop("base", None)
    rates = options.pop("base_rates", None)
    for name in LOADS:
        if options.get(name) is not None:
            loads(options[name])
    sized: dict[str, Any] = {name: validation.numbers(name, value) for name, value in options.items()
                             if value is not None and not isinstance(value, Mapping)}
    if rates is not None:
        rates = validation.numbers("base_rates", rates)
        if rates.ndim not in (2, 3) or rates.shape[-1] != 6 or not np.isfinite(rates).all():
            raise InputError(f"base_rates has shape {rates.shape}; (k, 6) or (samples, k, 6) finite numbers are needed")
    for name, value in sized.items():
        size = 6 if name.startswith("base") else motors
        if value.shape[-1:] != (size,) or value.ndim > 2 or not np.isfinite(value).all():
            raise InputError(f"{name} has shape {value.shape}; ({size},) or (samples, {size}) finite numbers are needed")
    mapped: dict[str, dict[str, Array]] = {name: {link: validation.wrench(link, six) for link, six in value.items()}
                                          for name, value in options.items() if isinstance(value, Mapping)}
    every = [*arrays, *sized.values(), *(six for load in mapped.values() for six in load.values())]
    if base is not None:
        every += [base.position, base.quaternion, base.velocity]
    if rates is not None and rates.ndim == 3:
        every.append(rates[:, 0])
    count = validation.samples(every)

    def at(k: int) -> dict[str, Any]:
        found: dict[str, Any] = {name: value[k] if value.ndim == 2 else value for name, value in sized.items()}
        found |= {name: {link: six[k] if six.ndim == 2 else six for link, six in load.items()}
                  for name, load in mapped.items()}
        if rates is not None:
            found["base_rates"] = rates[k] if rates.ndim == 3 else rates
        if base is not None:
            found["base"] = BaseState(*(value[k] if value.ndim == 2 else value
                                        for value in (base.position, base.quaternion, base.velocity)))
        return found

    return count, at


def base_rates_of(base: BaseState, acceleration: Array | None, jerk: Array | None) -> Array:
    """Return first and second rates (2, 6) of the numbers of a base's velocity from its true acceleration and jerk, see
    base_state.py.
    """
    a = np.zeros(6) if acceleration is None else acceleration
    j = np.zeros(6) if jerk is None else jerk
    v, w = base.velocity[:3], base.velocity[3:]
    first = base.spatial(a)
    wd = first[3:]
    # a = v' + w x v; its derivative in the world, seen along the base, is a' + w x a
    linear = j[:3] - np.cross(w, a[:3]) - np.cross(wd, v) - np.cross(w, first[:3])
    return np.array([first, np.concatenate((linear, j[3:] - np.cross(w, wd)))])


def base_motion_of(state: BaseState, rates: Array) -> tuple[BaseState, Array, Array]:
    """Return state, true acceleration (6,) and jerk (6,) of a base: the inverse of `base_rates_of`.

    state: its pose; rates: (3, 6) numbers of its velocity, and their first and second rates
    """
    return BaseState(state.position, state.quaternion, rates[0]), base_acceleration(rates), base_jerk(rates)


def base_acceleration(rates: Array) -> Array:
    """Return the true acceleration (..., 6) of a base, see base_state.py. rates: (..., k, 6) numbers of its velocity and
    their rates.
    """
    x = rates.T  # (6, k, ...): components first
    return np.concatenate((x[:3, 1] + cross(x[3:, 0], x[:3, 0]), x[3:, 1])).T


def base_jerk(rates: Array) -> Array:
    """Return the true jerk (..., 6) of a base likewise."""
    x = rates.T
    v, w, vd, wd = x[:3, 0], x[3:, 0], x[:3, 1], x[3:, 1]
    linear = x[:3, 2] + cross(wd, v) + cross(w, 2.0 * vd + cross(w, v))
    return np.concatenate((linear, x[3:, 2] + cross(w, wd))).T

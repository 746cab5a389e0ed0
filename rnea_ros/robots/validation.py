"""Validation of what users hand to a robot: checked here, once, it becomes the flat input of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from math import isfinite
from typing import Any, TypeGuard, TypeVar

import numpy as np

from ..errors import InputError, shown, some
from ..model.tree import Limits, Model, frozen

# Options of robots with a moving base, loops, or motors behind springs.
OPTIONS_OF_OTHERS = ("base", "guess", "motors")
DOUBLE = np.dtype(float)
Rows = TypeVar("Rows", bound=tuple[Any, ...])
# Blocks that are not coordinates.
SIZES = {"point": 3, "base_gravity": 3, "base_velocity": 6, "base_acceleration": 6, "base_jerk": 6, "base_position": 3,
         "base_rotation": 9, "twist": 6}


def numbers(name: str, value: Any) -> np.ndarray:
    """Return an array of floats, of any shape."""
    if type(value) is np.ndarray and value.dtype is DOUBLE:
        return value
    parts = value if isinstance(value, list | tuple) else [value]
    if any(np.ma.is_masked(part) for part in parts if isinstance(part, np.ma.MaskedArray)):
        raise InputError(f"{name} has masked values; every value must be a number: fill them, or leave those samples out")
    try:
        if not np.iscomplexobj(value):  # numpy would drop the imaginary part
            return np.asarray(value, dtype=float)
    except OverflowError:
        raise InputError(f"{name} is {shown(value)}; no number may be larger than 1.8e308") from None
    except (TypeError, ValueError):
        pass
    raise InputError(f"{name} is not an array of numbers: {shown(value)}")


def sound(value: Any, size: int) -> TypeGuard[np.ndarray]:
    """Return whether a value is a plain array (size,) of finite doubles; a quick test, False for numbers near the largest."""
    return (type(value) is np.ndarray and value.dtype is DOUBLE and value.shape == (size,) and value.flags.c_contiguous
            and value.flags.aligned and isfinite(sum(value.tolist())))


def vector(name: str, value: Any, size: int) -> np.ndarray:
    """Return a read-only vector of `size` finite numbers."""
    array = np.array(numbers(name, value))
    if array.shape != (size,) or not np.isfinite(array).all():
        raise InputError(f"{name} is {value!r:.80}; {size} finite numbers are needed")
    array.flags.writeable = False
    return array


def guess(value: Any, size: int) -> np.ndarray | None:
    """Return a pose of `size` joints to begin from, if one is given."""
    return value if value is None or sound(value, size) else vector("guess", value, size)


def block(name: str, value: Any, joint_names: Sequence[str], finite: bool = True) -> np.ndarray:
    """(size,) or (samples, size) finite numbers of a kernel's input block: coordinates, or those of SIZES.

    finite : whether to check every number of many samples; a kernel does so itself, but does not report the index
    """
    if name not in SIZES:
        return coordinates(name, value, joint_names, finite)
    array = numbers(name, value)
    if array.ndim not in (1, 2) or array.shape[-1] != SIZES[name] or not np.isfinite(array).all():
        raise InputError(f"{name} is {value!r:.120}; ({SIZES[name]},) or (samples, {SIZES[name]}) finite numbers are needed")
    return array


def coordinates(name: str, value: Any, joint_names: Sequence[str], finite: bool = True) -> np.ndarray:
    """(n,) or (samples, n) finite numbers, a column for each joint."""
    if sound(value, len(joint_names)):
        return value
    array = numbers(name, value)
    if array.ndim not in (1, 2) or array.shape[-1] != len(joint_names):
        n, names = len(joint_names), some(joint_names) or "no joints"
        raise InputError(f"{name} has shape {array.shape}; ({n},) or (samples, {n}) is needed, one column for each of {names}")
    if (finite or array.ndim == 1) and not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        raise InputError(f"{name}{where.tolist()} is {array[tuple(where)]} (joint '{joint_names[where[-1]]}'); every value "
                         "must be a finite number")
    return array


def limits(value: Any, joint_names: Sequence[str]) -> Limits:
    """Arrays (n,); those beside position above zero, infinite for no limit, NaN for an unknown one."""
    if not isinstance(value, Limits):
        raise InputError(f"limits are {value!r:.80}; Limits are needed: dataclasses.replace(robot.limits, effort_rate=...)")
    found = {}
    for field in fields(Limits):
        found[field.name] = given = numbers(f"limits.{field.name}", getattr(value, field.name))
        if given.shape != (len(joint_names),):
            raise InputError(f"limits.{field.name} has shape {given.shape}; ({len(joint_names)},) is needed, in the order of "
                             f"{some(joint_names)}")
        if field.name not in ("lower", "upper") and (given <= 0.0).any():
            k = int(np.flatnonzero(given <= 0.0)[0])
            raise InputError(f"limits.{field.name} of {joint_names[k]} is {given[k]:g}; a number above zero is needed, or NaN "
                             "where it is unknown")
    return Limits(**{name: frozen(array) for name, array in found.items()})


def held_base(model: Model) -> None:
    """Raise InputError where the base moves: the result would be that of a fixed one."""
    if model.base != "fixed":
        raise InputError(f"robot '{model.name}' has a moving base, which this function does not serve; base='fixed' holds it")


def no_others(robot: str, others: Mapping[str, Any]) -> None:
    """Raise InputError for options that fixed trees do not have; None counts as left out."""
    given = [name for name, value in others.items() if value is not None]
    if unknown := [name for name in given if name not in OPTIONS_OF_OTHERS]:
        raise TypeError(f"unknown option {some(unknown)}")
    if given:
        raise InputError(f"{some(given)} has no meaning for robot '{robot}', a tree of rigid links on a fixed base")


def no_load_friction(model: Model) -> None:
    """Raise InputError for load-dependent friction, which only trees on a fixed base (TreeDynamics) support."""
    if rough := [link.joint for link in model.links if link.term.load_dependent]:
        raise InputError(f"load_dependent is set for {some(rough, quoted=True)}; only trees of rigid links on a fixed base "
                         "support "
                         "load-dependent friction. Remove it from the robot file")


def results(what: str, found: Sequence[np.ndarray]) -> None:
    """InputError where finite inputs gave what is too large for a number, or the difference of two such."""
    if not all(np.isfinite(part).all() for part in found):
        raise too_large(what)


def overflow_ignored() -> np.errstate:
    """Return a context without numpy's warnings of overflow: what comes of it is checked, and an InputError says it."""
    return np.errstate(over="ignore", invalid="ignore")


def too_large(what: str) -> InputError:
    """Return the error for results that are not finite."""
    return InputError(f"{what} comes out too large for a number (1.8e308): motion, loads or model are too extreme")


def wrench(name: str, value: Any) -> np.ndarray:
    """(6,) or (samples, 6) finite numbers on the link `name`."""
    try:
        six = numbers("wrench", value)
    except InputError:
        six = np.empty(0)
    if six.shape[-1:] != (6,) or six.ndim > 2 or not np.isfinite(six).all():
        raise InputError(f"wrench on link '{name}' is {shown(value, 120)}; (6,) or (samples, 6) finite numbers are needed, "
                         "force first")
    return six


@contextmanager
def at_sample(k: int) -> Iterator[None]:
    """Inside, an InputError says at which sample of a motion."""
    try:
        yield
    except InputError as error:
        raise InputError(f"sample {k}: {error}") from None


def samples(arrays: Sequence[np.ndarray]) -> int | None:
    """Return the number of samples in arrays (size,) or (samples, size); None for a single one."""
    counts = {len(array) for array in arrays if array.ndim == 2}
    if len(counts) > 1:
        raise InputError(f"arrays have different numbers of samples: {sorted(counts)}")
    return counts.pop() if counts else None


def zeros_like(name: str, value: Any) -> np.ndarray:
    """Zeros of the shape of an argument; InputError if that is not an array of numbers."""
    return np.zeros(numbers(name, value).shape)


def stacked(kind: type[Rows], rows: Sequence[Rows], example: Callable[[], Rows]) -> Rows:
    """One NamedTuple of arrays (samples, ...) from those of each sample; without samples, `example` gives the shapes."""
    return kind(*(np.array(part)[:len(rows)] for part in zip(*(rows or [example()]), strict=True)))


def beside(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays (size,) or (samples, size) side by side; single ones serve all samples."""
    count = samples(arrays)
    if count is None:
        return np.concatenate(arrays)
    return np.concatenate([np.broadcast_to(array, (count, array.shape[-1])) for array in arrays], axis=1)

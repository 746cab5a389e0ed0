"""Singular mass matrices: joints without mass have no acceleration; the error names the joint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ...algebra.linalg import pivots
from ...errors import InputError
from ..inputs.validation import results, too_large

LEAST = 1e-12  # share of a joint's inertia that may be left when other joints are free; doubles leave 1e-16 of nothing


def check_nonsingular(felt: np.ndarray, locked: np.ndarray, names: Sequence[str]) -> None:
    """InputError where the inertia felt, (n,) or (samples, n), is nothing beside that with all other joints locked."""
    if b"\0" in (felt > LEAST * locked).tobytes():  # one is False; found in a tenth of the time that .all() takes
        raise _error(felt, locked, names)


@contextmanager
def nonsingular(mass_matrix: Callable[[], np.ndarray], names: Sequence[str]) -> Iterator[None]:
    """Raise the same error for a robot that is massless by structure, where tracing a kernel divides by zero."""
    try:
        with np.errstate(divide="raise", invalid="raise"):
            yield
    except (ZeroDivisionError, FloatingPointError):
        M = mass_matrix()
        M = M.reshape(-1, *M.shape[-2:])[0]
        with np.errstate(all="ignore"):
            felt = np.array(pivots(M[::-1, ::-1])[::-1])
        some = not np.all(felt > LEAST * np.diag(M))
        raise (_error(felt, np.diag(M), names) if some else too_large("the acceleration")) from None


def _error(felt: np.ndarray, locked: np.ndarray, names: Sequence[str]) -> InputError:
    felt, locked = (np.reshape(x, (-1, len(names))) for x in (felt, locked))
    loose = np.any(felt <= LEAST * locked, axis=0).tolist()  # not what is NaN, which follows from another's zero
    which = ", ".join(f"'{name}'" for name, free in zip(names, loose, strict=True) if free) or "some joint"
    return InputError(f"the mass matrix is singular: {which} moves no mass (joints beyond it give way), so its acceleration "
                      "has no answer; give its links mass and inertia, or its joint a rotor inertia")


def accelerations(A: np.ndarray, force: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Solves A x = force, (n,) or (samples, n); InputError names what moves no mass."""
    with np.errstate(all="ignore"):
        felt = np.stack(pivots(np.moveaxis(A, (-2, -1), (0, 1))), axis=-1)
    check_nonsingular(felt, np.diagonal(A, axis1=-2, axis2=-1), names)
    found = np.asarray(np.linalg.solve(A, force[..., None])[..., 0], dtype=float)
    results("forward_dynamics", [found])
    return found

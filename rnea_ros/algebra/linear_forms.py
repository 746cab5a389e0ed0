"""Linear forms as a scalar: run an algorithm on parameters that are not numbers yet, and read off what multiplies each.

A `LinearForm` is c_1 p_1 + c_2 p_2 + ... with unknown p_k. Torques are linear in the inertial parameters, so a recursion whose
masses, first moments and inertias are forms returns each torque as a form, and its coefficients are that torque's row of the
regressor: one evaluation, no second formula. The coefficients may be floats, complex numbers or traced symbols. What would not
be linear, a product of two forms or a form plus a number, is refused with a TypeError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .taylor import Jet


class LinearForm:
    """Coefficients by parameter number; what is not there is zero. Array first, scalar second, as everywhere."""

    __slots__ = ("c",)

    def __init__(self, coefficients: Mapping[int, Any]):
        self.c = {k: x for k, x in coefficients.items() if not _is_zero(x)}

    def __neg__(self) -> LinearForm:
        return LinearForm({k: -x for k, x in self.c.items()})

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, LinearForm):
            return self if _is_zero(other) else NotImplemented
        total = dict(self.c)
        for k, y in other.c.items():
            total[k] = total[k] + y if k in total else y
        return LinearForm(total)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, LinearForm):
            return self if _is_zero(other) else NotImplemented
        total = dict(self.c)
        for k, y in other.c.items():
            total[k] = total[k] - y if k in total else -y
        return LinearForm(total)

    def __rsub__(self, other: Any) -> Any:
        return -self if _is_zero(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray | LinearForm | Jet):  # arrays go element by element; a jet takes forms as coefficients
            return NotImplemented
        return LinearForm({k: x * other for k, x in self.c.items()})

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray | LinearForm | Jet):
            return NotImplemented
        return LinearForm({k: x / other for k, x in self.c.items()})


def _is_zero(x: Any) -> bool:
    """Return whether x is the number zero; a traced symbol is not a number."""
    return isinstance(x, int | float | complex) and x == 0.0


def unknowns(count: int, first: int = 0) -> np.ndarray:
    """`count` parameters, numbered from `first`: an array of forms with one coefficient each."""
    forms = np.empty(count, dtype=object)
    forms[:] = [LinearForm({first + k: 1.0}) for k in range(count)]
    return forms


def coefficients(forms: Iterable[Any], count: int) -> np.ndarray:
    """Matrix (forms, count) with row k such that forms[k] = row @ parameters; a plain zero is an empty form."""
    rows = [[_coefficient(form, k) for k in range(count)] for form in forms]
    numeric = all(isinstance(x, int | float | complex) for row in rows for x in row)
    return np.array(rows, dtype=None if numeric else object).reshape(len(rows), count)


def _coefficient(form: Any, k: int) -> Any:
    if isinstance(form, Jet):  # of forms
        return Jet([_coefficient(part, k) for part in form.c])
    if isinstance(form, LinearForm):
        return form.c.get(k, 0.0)
    if not _is_zero(form):
        raise TypeError(f"a linear form in the parameters was expected, not {form!r:.80}: something else was added to it")
    return 0.0

"""Polynomials and their first three derivatives at many places: of paths and of time laws."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from .compiled import Many, of_many

ORDERS = 4  # a value and its first three derivatives


@cache
def derivatives(size: int, n: int) -> Many:
    """Of a point and its first three derivatives, (4, n), by x and the coefficients (size n) of its powers."""

    def text(x: Any, coefficients: Any) -> list[Any]:
        found = []
        for order in range(ORDERS):
            total = coefficients[:n] * 0.0
            for k in reversed(range(order, size)):
                total = total * x[0] + math.perm(k, order) * coefficients[n * k:n * (k + 1)]
            found.append(total)
        return [np.stack(found)]

    return of_many(text, {"x": 1, "coefficients": size * n})

"""What a step of Newton's method asks of one point of a grid and of one interval, for any scalar; compiled where it is run.

`look` and `shares`: the constraints at a point, and what they and the time add to the gradient and to Newton's matrix by the
four coefficients that matter there, in the way of Gauss and Newton: second derivatives of the constraints are left out.

`onward` and `back`: the minimum of

    sum over intervals [ g'd + d'H d / 2 + q z + w z^2 / 2 ],   z = z before + L d

by Riccati's recursion, where d are the changes of an interval's four coefficients and z is the change of the delay at its end.
`back` goes from the last interval to the first: what comes after an interval is a quadratic function V of its last three
coefficients and of z; it puts in z, adds the interval's own share, and the fourth coefficient is the minimum over it. `onward`
goes the other way and has the changes. Work grows with the number of intervals, and so does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial, reduce
from operator import mul
from typing import Any

import numpy as np

from ..codegen import kernel
from ..codegen.ir.expression import larger
from .compiled import Many, of_many

Groups = tuple[tuple[tuple[int, ...], int], ...]  # places of terms.py's seven that constraints have coefficients at; how many
WINDOW = 4  # coefficients that matter in an interval
WALL = 1e12  # times the largest curvature
ASTRAY = 1e3  # times the multiplier that a slack has in the centre, or one over that
LEAST = 0.01  # of a multiplier, that a step leaves of it
SYMMETRIC = {3: [[0, 1, 2], [1, 3, 4], [2, 4, 5]], 4: [[0, 1, 2], [1, 4, 5], [2, 5, 7]]}  # three rows from an upper half
PAIRS = [(a, b) for a in range(WINDOW) for b in range(a, WINDOW)]  # of a symmetric matrix, in the order of its ten numbers


def look(groups: Groups, c: Any, basis: Any, rows: Any, before: Any) -> tuple[list, ...]:
    """The value of each constraint; and 1 / sqrt y, the product of all 1 - value^2, the largest value, either way, and by what
    share a slack has become less since the values `before`, at most. rows: by group, by place, by constraint."""
    motion = _motion(c, basis)
    basic = _basic(*motion)
    found = [sum(r * basic[p] for p, r in row) for row in _rows(groups, rows)]
    falls = [(new - old) * part for new, old in zip(found, before) for part in _inverse(old)]
    signed = [fall * sign for fall, sign in zip(falls, (1.0, -1.0) * len(found))]
    return found, [1.0 / np.sqrt(motion[0]), reduce(mul, [1.0 - value * value for value in found]),
                   reduce(larger, map(abs, found)), reduce(larger, signed)]


def shares(groups: Groups, c: Any, basis: Any, rows: Any, weight: Any, values: Any, before: Any, multipliers: Any,
           step: Any) -> tuple[list, ...]:
    """Matrix (10) by its upper half, and gradient (4), of the merit; and the multipliers of all upper limits and all lower.

    weight : of 1 / sqrt y in the cost; step : mu; and of the step that led here from the values `before`, see `followed`, mu,
             1 / length, and 1, or 0 where there was none
    """
    (y, *_), slopes, mu = _motion(c, basis), _slopes(*_motion(c, basis)), step[0]
    per_y = weight[0] / (y * np.sqrt(y))
    first, second = [-0.5 * per_y, 0.0, 0.0], [[0.0] * 3 for _ in range(3)]
    second[0][0] = 0.75 * per_y / y
    kept: list[list] = [[], []]
    for number, (row, value, old) in enumerate(zip(_rows(groups, rows), values, before)):
        force, curve = 0.0, 0.0
        for side, (sign, inverse, was) in enumerate(zip((1.0, -1.0), _inverse(value), _inverse(old))):
            z = multipliers[side * len(values) + number]
            z = followed(z, 1.0 - sign * value, inverse, 1.0 - sign * old, was, step[1:])
            force, curve = force + sign * mu * inverse, curve + z * inverse
            kept[side].append(z)
        slope = [sum(r * by[p] for p, r in row) for by in slopes]
        for i in range(3):
            first[i] = first[i] + force * slope[i]
            for j in range(i, 3):
                second[i][j] = second[i][j] + curve * slope[i] * slope[j]
    B = [[basis[WINDOW * i + a] for a in range(WINDOW)] for i in range(3)]
    half = [[sum(second[min(i, j)][max(i, j)] * B[j][a] for j in range(3)) for a in range(WINDOW)] for i in range(3)]
    gradient = [sum(B[i][a] * first[i] for i in range(3)) for a in range(WINDOW)]
    return [sum(B[i][a] * half[i][b] for i in range(3)) for a, b in PAIRS] + gradient, [*kept[0], *kept[1]]


def followed(z: Any, slack: Any, inverse: Any, before: Any, inverse_before: Any, step: Any) -> Any:
    """The multiplier of a slack to where z slack = mu by Newton's step, of which the slack has gone `length`; never by all
    that there is of it, and near that of the slack now. inverse: 1 / slack; step: mu, 1 / length, and 0 to leave it as it is.
    """
    mu, per_length, any_ = step
    change = mu * inverse_before - z * (1.0 + (slack - before) * inverse_before * per_length)
    z = larger(z + any_ * change, LEAST * z)
    return -larger(-larger(z, mu / ASTRAY * inverse), -ASTRAY * mu * inverse)


def _inverse(value: Any) -> tuple[Any, Any]:
    """1 / slack of both limits of a value."""
    both = 1.0 / (1.0 - value * value)
    return (1.0 + value) * both, (1.0 - value) * both


def _motion(c: Any, basis: Any) -> list[Any]:
    """y, y', y''."""
    return [sum(basis[WINDOW * k + a] * c[a] for a in range(WINDOW)) for k in range(3)]


def _basic(y: Any, y1: Any, y2: Any) -> list[Any]:
    """What the coefficients of terms.py multiply: k = sqrt y, kappa = y'/2, w = k y''/2."""
    k = np.sqrt(y)
    return [1.0, k, y, 0.5 * y1, y * k, 0.5 * k * y1, 0.5 * k * y2]


def _slopes(y: Any, y1: Any, y2: Any) -> list[list[Any]]:
    """Its derivatives by y, y', y''."""
    k = np.sqrt(y)
    return [[0.0, 0.5 / k, 1.0, 0.0, 1.5 * k, 0.25 * y1 / k, 0.25 * y2 / k], [0.0, 0.0, 0.0, 0.5, 0.0, 0.5 * k, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * k]]


def _rows(groups: Groups, rows: Any) -> Iterator[list[tuple[int, Any]]]:
    """Place and coefficient of each constraint."""
    start = 0
    for places, count in groups:
        for number in range(count):
            yield [(place, rows[start + count * i + number]) for i, place in enumerate(places)]
        start += count * len(places)


def back(state: Any, H: Any, g: Any, L: Any = None, w: Any = None, q: Any = None) -> tuple[list, ...]:
    """state: V's matrix by its upper half, V's gradient. Returns how the fourth coefficient follows from the state before
    (its factors, and what does not depend on it), and the state of the interval before."""
    size = WINDOW if L is None else WINDOW + 1
    places = [1, 2, 3] if L is None else [1, 2, 3, 4]
    W, b = [[0.0] * size for _ in range(size)], [0.0] * size
    numbers = iter(state)
    for n, i in enumerate(places):
        for j in places[n:]:
            W[i][j] = W[j][i] = next(numbers)
    for i in places:
        b[i] = next(numbers)
    if L is not None:
        W[4][4], b[4] = W[4][4] + w[0], b[4] + q[0]
        for i in range(WINDOW):  # z = z before + L d: first the columns, then the rows
            b[i] = b[i] + L[i] * b[4]
        for m in range(size):
            for i in range(WINDOW):
                W[m][i] = W[m][i] + W[m][4] * L[i]
        for m in range(size):
            for i in range(WINDOW):
                W[i][m] = W[i][m] + L[i] * W[4][m]
    for (i, j), h in zip(PAIRS, H):
        W[i][j] = W[i][j] + h
        W[j][i] = W[i][j]
    b = [b[i] + g[i] if i < WINDOW else b[i] for i in range(size)]
    kept = [0, 1, 2] if L is None else [0, 1, 2, 4]
    inverse = 1.0 / W[3][3]
    factors, rest = [W[i][3] * inverse for i in kept], b[3] * inverse
    matrix = [W[i][j] - W[i][3] * factors[kept.index(j)] for n, i in enumerate(kept) for j in kept[n:]]
    return factors, [rest], [*matrix, *(b[i] - W[i][3] * rest for i in kept)]


def onward(state: Any, factors: Any, rest: Any, L: Any = None) -> tuple[list]:
    """state: the changes of the first three coefficients, and z before; the same of the next interval."""
    last = -rest[0]
    for number, factor in zip(state, factors):
        last = last - factor * number
    if L is None:
        return ([state[1], state[2], last],)
    change = sum(l * d for l, d in zip(L, [*state[:3], last]))
    return ([state[1], state[2], last, state[3] + change],)


@cache
def of_points(groups: Groups) -> tuple[Many, Many]:
    """`look` and `shares` at many points."""
    count = sum(count for _, count in groups)
    inputs = {"c": WINDOW, "basis": 3 * WINDOW, "rows": sum(len(places) * count for places, count in groups)}
    more = {"weight": 1, "values": count, "before": count, "multipliers": 2 * count, "step": 4}
    return (of_many(partial(look, groups), {**inputs, "before": count}),
            of_many(partial(shares, groups), {**inputs, **more}))


@cache
def of_intervals(scheduled: bool) -> tuple[kernel.Kernel, kernel.Kernel]:
    """`back` and `onward` as recurrences."""
    backend, size = kernel.available("llvm"), 4 if scheduled else 3
    delay = {"L": WINDOW} if scheduled else {}
    quadratic = {"state": size * (size + 1) // 2 + size, "H": len(PAIRS), "g": WINDOW, **delay}
    return (kernel.build(back, {**quadratic, **({"w": 1, "q": 1} if scheduled else {})}, backend),
            kernel.build(onward, {"state": size, "factors": size, "rest": 1, **delay}, backend))


def minimum(H: np.ndarray, g: np.ndarray, fixed: tuple[bool, bool], L: np.ndarray | None = None,
            w: np.ndarray | None = None, q: np.ndarray | None = None) -> np.ndarray:
    """The changes of all coefficients (intervals + 3,), from H (intervals, 10), g, L (intervals, 4), w, q (intervals,).

    fixed: whether the first three stay, and the last three
    """
    backwards, forwards = of_intervals(L is not None)
    size = 3 if L is None else 4
    states = (size * (size + 1) // 2 + size, size)
    given = [np.zeros((len(H), states[0])), H, g, *(x.reshape(len(H), -1) for x in (L, w, q) if x is not None)]
    if fixed[1]:  # what comes behind the last interval: a wall
        given[0][-1, [0, size, 2 * size - 1]] = WALL * H.max()
    found = backwards.sweep(np.concatenate([block[::-1] for block in given], axis=1), states[0])
    state = np.zeros((len(H), size))
    if not fixed[0]:
        V = found[-1, size + 1:]
        state[0, :3] = np.linalg.solve(V[SYMMETRIC[size]], -V[-size:][:3])  # before the first interval there is no delay
    start = state[0, :3].copy()
    rows = np.concatenate([state, found[::-1, :size + 1]] + ([] if L is None else [L]), axis=1)
    return np.concatenate((start, forwards.sweep(rows, size)[:, 2]))

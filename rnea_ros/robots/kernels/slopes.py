"""Partial derivatives of what a kernel function evaluates: the function itself runs on series along a change of its motion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ...algebra.arrays import Array
from ...algebra.taylor import derivative, jets
from ..inputs import validation
from ..inputs.validation import Wrenches
from .kernel_function import KernelFunction


def slope(key: Hashable, function: KernelFunction, result: int, motion: Sequence[str], checks: int = 0) -> KernelFunction:
    """Return the function of a directional derivative: of one result along a change of some blocks; then the last results.

    motion : names of the blocks that change. Blocks of the slope are those of the function, then a change for each of these
    checks : number of last results that the caller checks
    """
    def evaluate(model: Any, gravity: Any, options: Any, **blocks: Any) -> list[Any]:
        moved = {name: jets(blocks[name], blocks[_change(name)]) if name in motion else blocks[name]
                 for name in function.blocks}
        found = function.evaluate(model, gravity, options, **moved)
        return [derivative(found[result], 1), *(derivative(found[len(found) - k], 0) for k in range(checks, 0, -1))]

    return function._replace(key=key, evaluate=evaluate, blocks=(*function.blocks, *map(_change, motion)), reference=None)


def _change(name: str) -> str:
    return f"change of {name}"


def partial_derivatives(ask: Callable[..., Array], motion: Mapping[str, Any], joints: Sequence[str],
                        loads: Mapping[str, Wrenches | None], state: Sequence[Array] = ()) -> tuple[Array, ...]:
    """(n, n), or (samples, n, n), by each array of a motion; a column for each coordinate.

    ask(motion, changes, state, **loads) : slopes (changes, n), or (samples x changes, n), all changes of a sample in a row
    """
    given = [validation.coordinates(name, value, joints) for name, value in motion.items()]
    pushed = {kind: {link: validation.wrench(link, six) for link, six in (links or {}).items()}
              for kind, links in loads.items()}
    count = validation.samples([*given, *state, *(six for links in pushed.values() for six in links.values())])
    size = sum(part.shape[-1] for part in given)

    def repeated(array: Array) -> Array:
        return np.repeat(array, size, axis=0) if array.ndim == 2 else array

    changes = np.split(np.tile(np.eye(size), (1 if count is None else count, 1)), len(given), axis=1)
    slopes = ask([repeated(part) for part in given], changes, [repeated(part) for part in state],
                 **{kind: {link: repeated(six) for link, six in links.items()} for kind, links in pushed.items()})
    table = np.swapaxes(slopes.reshape(*(() if count is None else (count,)), size, slopes.shape[-1]), -1, -2)
    return tuple(np.split(table, len(given), axis=-1))

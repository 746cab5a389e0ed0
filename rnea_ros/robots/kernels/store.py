"""Kernels of a model for evaluations that ask for more than Robot's do: motors, springs, control laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...codegen import kernel
from ...model.tree import Model, frozen
from ..inputs import validation
from ..inputs.payload import Payload
from ..inputs.validation import Wrenches


class KernelStore:
    """Evaluates functions (options, **blocks) -> sequence of arrays, each compiled when it is first asked for.

    options: gravity, wrenches {link number: (6,)}, their wrench_rates, and world_wrenches [(link number, point, (6,))] as the
    algorithms take them.
    """

    def __init__(self, model: Model, gravity: np.ndarray, backend: str):
        self.model, self.gravity, self.backend = model, gravity, backend
        self._kernels: dict[tuple, kernel.Kernel] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled: machine code holds addresses of this process."""
        return self.__dict__ | {"_kernels": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.backend = kernel.available(self.backend)

    def __call__(self, function: Callable, blocks: Mapping[str, np.ndarray], wrenches: Wrenches | None = None,
                 wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None, *,
                 masses: bool = True) -> tuple[np.ndarray, ...]:
        """blocks: checked arrays (size,) or (samples, size). Wrenches as in Robot; they are checked here.

        masses : whether a result that is not finite can only be too large; the caller looks for what moves no mass otherwise
        """
        arrays = list(blocks.values())
        loaded = validation.loaded_links(self.model, wrenches, wrench_rates)
        if loaded:
            arrays += [validation.wrench_block(self.model, loaded, given or {}) for given in (wrenches, wrench_rates)]
        held = validation.world_blocks(self.model, world_wrenches)
        arrays += held.values()
        sizes = {name: array.shape[-1] for name, array in blocks.items()}
        carriers = {"wrenches": loaded, "wrench_rates": loaded, "world_wrenches": held}
        sizes |= {name: 6 * len(links) for name, links in carriers.items() if links}
        key = (function, tuple(sizes), loaded, tuple(held))
        if key not in self._kernels:
            self._kernels[key] = kernel.build(self._traced(function, loaded, tuple(held)), sizes, self.backend)
        found = self._kernels[key](validation.beside(arrays))
        if masses:
            validation.results(function.__name__.strip("_"), found)
        return found

    def _traced(self, function: Callable, loaded: Sequence[int], held: Sequence[str]) -> Callable:
        frames = [self.model.frame(link) for link in held]

        def traced(wrenches=(), wrench_rates=(), world_wrenches=(), **blocks):
            options: dict[str, Any] = {"gravity": self.gravity}
            if loaded:
                options["wrenches"] = dict(zip(loaded, _sixes(wrenches), strict=True))
                options["wrench_rates"] = dict(zip(loaded, _sixes(wrench_rates), strict=True))
            if held:
                options["world_wrenches"] = [(frame.link, frame.P, six)
                                             for frame, six in zip(frames, _sixes(world_wrenches), strict=True)]
            return function(options, **blocks)

        return traced


def _sixes(block: Any) -> list[Any]:
    return [block[k:k + 6] for k in range(0, len(block), 6)]


def unified(model: Model, bodies: Sequence[Payload]) -> Model:
    """The model with rigid bodies added to its links: what hua-mixed-joints calls unified bodies."""
    block = np.concatenate([np.zeros(0), *(body.parameters for body in bodies)])
    links = list(model.links)
    for number, (m, ms, J) in Payload.added(model, [body.link_number for body in bodies], block).items():
        links[number] = replace(links[number], m=float(m), ms=frozen(ms), J=frozen(J))
    return replace(model, links=tuple(links))

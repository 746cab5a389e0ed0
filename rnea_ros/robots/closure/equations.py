"""What the equations of loops and of legs have in common: kernels, made when they are first needed, and a pose's `Step`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...codegen import kernel
from ...codegen.kernel import Kernel
from ...model.tree import Model, frozen
from .inverses import EASY, norm
from .loops import Loops
from .newton import Step
from .units import Units


class Equations:
    """Of the cut joints `loops` of a tree `model`; a cached_property of a class derived from this is a kernel."""

    units: Units

    def __init__(self, model: Model, loops: Loops, backend: str):
        self.model, self.loops, self._backend = model, loops, backend
        self.active = np.array(loops.active, dtype=int)
        self.active_joints = tuple(model.joint_names[k] for k in self.active)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled: machine code holds addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if not isinstance(value, Kernel)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._backend = kernel.available(self._backend)

    @cached_property
    def _step(self) -> Kernel:
        """The parts of a Step, by `TracedInverse`."""
        raise NotImplementedError

    def _quick_step(self, *blocks: np.ndarray) -> Step | None:
        """By the kernel, unless bounds of the singular values are not good enough."""
        if found := self._step.call(*blocks):
            step = Step(found[0], found[1], *found[2].tolist())
            if step.condition <= EASY:
                return step
        return None

    def _answer(self, of: Kernel, *blocks: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Of a kernel, to any finite arrays of the right sizes; None where a result is no number."""
        return of.call(*blocks) or of.call(*map(frozen, blocks))

    def _parts(self, values: Any, J_inverse: Any, correction: Any, slope: Any) -> tuple[Any, Any, list[Any]]:
        """Of a Step, for any scalar."""
        sizes = norm(values / self.units.equations), norm(correction / self.units.unknowns)
        return correction, slope, [*sizes, J_inverse.condition, J_inverse.margin]

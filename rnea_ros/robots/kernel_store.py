"""Kernels of one model: compiled on first use, and called with validated arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import Array
from ..algorithms.equations import with_bodies
from ..algorithms.inertial_parameters import regrouped
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..errors import InputError
from ..model.tree import Model, frozen
from . import validation
from .conditions import Loads, Payload, checked_loads


class KernelFunction(NamedTuple):
    """Function of (model, gravity, options, **blocks), for any scalar type, from which kernels are traced.

    It returns a sequence of arrays. options contain those of the backward recursion that are used: inertias, wrenches,
    wrench_rates, world_wrenches.

    key       : key of the function among the kernels of a robot
    evaluate  : the function
    blocks    : names of its input blocks, in order
    reference : published form of the algorithm, for backend "reference"; None: `evaluate`
    regrouped : True if a model with regrouped inertial parameters gives the same results; kernels are then traced from it
    any_base  : True if the function is valid on a floating base: the motion of the base is an input, or has no effect
    massless  : True if the result does not depend on masses; payloads are then not inputs
    """

    key: Hashable
    evaluate: Callable[..., Any]
    blocks: tuple[str, ...]
    reference: Callable[..., Any] | None = None
    regrouped: bool = False
    any_base: bool = False
    massless: bool = False

    @property
    def name(self) -> str:
        """Name for messages."""
        first = self.key[0] if isinstance(self.key, tuple) else self.key
        return str(getattr(first, "__name__", first))


Quick = dict[Hashable, Callable[..., tuple[Array, ...] | None]]
COMPILED = ("quick", "_kernels")


class KernelStore:
    """Store of the kernels of one model: one for each function, set of loaded links, and set of links with payloads.

    quick   : compiled functions for one sample without loads, keyed like KernelFunction; they return None for arguments that
              need conversion, or before compilation. Callers at high rates use them first
    columns : names of the columns of blocks that are not joints of the model
    """

    def __init__(self, model: Model, gravity: Array, backend: str, names: Iterable[Hashable] = (),
                 columns: Mapping[str, Sequence[str]] | None = None):
        self.model, self.gravity, self.backend = model, gravity, kernel.available(backend)
        self.payloads: Mapping[str, Payload] = {}
        self._names, self._columns = tuple(names), dict(columns or {})
        self._kernels: dict[tuple[Any, ...], Kernel] = {}
        self.quick: Quick = dict.fromkeys(self._names, not_made)

    def carrying(self, payloads: Mapping[str, Payload]) -> KernelStore:
        """Return a store with payloads, keyed by link. Kernels are shared, because payloads are inputs of kernels."""
        twin = object.__new__(KernelStore)
        twin.__dict__.update(self.__dict__, payloads=payloads, quick=dict.fromkeys(self._names, not_made))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without compiled kernels: machine code contains addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if name not in COMPILED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _kernels={}, quick=dict.fromkeys(state["_names"], not_made))
        self.backend, self.gravity = kernel.available(self.backend), frozen(self.gravity)

    # ------------------------------------------------------------------ calls

    def __call__(self, function: KernelFunction, *motion: Any, loads: Loads | None = None,
                 masses: bool = True) -> tuple[Array, ...]:
        """Return the results of a function.

        motion : one array for each block, (size,) or (samples, size)
        loads  : external loads
        masses : True: raise InputError for results that are not finite; False: the caller searches for massless joints

        Valid arrays of one sample are passed directly to the kernel; others are converted, or rejected with the reason.
        """
        quick: Callable[..., tuple[Array, ...] | None] = self.quick.get(function.key, not_made)
        if loads is None and (results := quick(*motion)):
            return results
        arrays, loaded, held = self._arrays(function, motion, loads)
        count, ready = validation.samples(arrays), self.kernel(function, loaded, held)
        if count is not None:
            if results := ready.samples(arrays, count):
                return results
            self._checked(function, motion, True)  # raises with the element that is not finite
        results = ready(validation.beside(arrays))
        if masses:
            validation.results(function.name, results)
        return results

    def _arrays(self, function: KernelFunction, motion: Sequence[Any],
                loads: Loads | None) -> tuple[list[Array], tuple[int, ...], tuple[str, ...]]:
        """Return the input blocks, the numbers of links with wrenches, and the names of links with world wrenches."""
        blocks = [*self._carried(function), *self._checked(function, motion, False)]
        if loads is None:
            return blocks, (), ()
        loaded, held = checked_loads(loads).on_links(self.model), loads.in_world(self.model)
        blocks += [validation.beside(kind) for kind in zip(*loaded.values())]
        blocks += [validation.beside([six for _, six in held])] if held else []
        return blocks, tuple(loaded), tuple(sorted(loads.world_wrenches))

    def _checked(self, function: KernelFunction, motion: Sequence[Any], finite: bool) -> list[Array]:
        names = self.model.joint_names
        return [validation.block(name, value, self._columns.get(name, names), finite)
                for name, value in zip(function.blocks, motion, strict=True)]

    def _carried(self, function: KernelFunction) -> list[Array]:
        carriers = self._carriers(function)
        return [np.concatenate([payload.parameters for payload in carriers.values()])] if carriers else []

    def _carriers(self, function: KernelFunction) -> Mapping[str, Payload]:
        return {} if function.massless else self.payloads

    def on_floats(self, function: KernelFunction, *motion: Any, loads: Loads | None = None) -> Any:
        """Return the value of the function on floats for one sample, without a kernel and without a check of the result."""
        arrays, loaded, held = self._arrays(function, motion, loads)
        x = validation.beside(arrays)
        if x.ndim != 1:
            raise InputError(f"{function.name} has an array of shape {np.shape(motion[0])}; one sample, ({self.model.n},), is "
                             "needed")
        traced, sizes = self.traced(function, loaded, held)
        starts = np.cumsum([0, *sizes.values()])
        return traced(**{name: x[a:a + size] for (name, size), a in zip(sizes.items(), starts, strict=False)})

    # ------------------------------------------------------------------ compilation

    def kernel(self, function: KernelFunction, loaded: tuple[int, ...] = (), held: tuple[str, ...] = ()) -> Kernel:
        """Return a kernel, compiled on first use.

        loaded : numbers of the links with wrenches in their own frames
        held   : names of the links with wrenches in the world frame
        """
        key = (function.key, loaded, held, tuple(self._carriers(function)))
        if key not in self._kernels:
            self._kernels[key] = kernel.build(*self.traced(function, loaded, held), self.backend)
        if not (loaded or held):
            call, carried = self._kernels[key].call, self._carried(function)
            self.quick[function.key] = partial(call, *carried) if carried else call
        return self._kernels[key]

    @cached_property
    def _regrouped(self) -> Model:
        """Model with regrouped inertial parameters, which gives the same torques with fewer operations."""
        return regrouped(self.model, self.gravity, second_moments=True)

    def traced(self, function: KernelFunction, loaded: Sequence[int] = (), held: Sequence[str] = (),
               by_paper: bool | None = None) -> tuple[Callable[..., Any], dict[str, int]]:
        """Return the function that a kernel is traced from, and the sizes of its input blocks.

        by_paper : True: the published form on the original model; None: only with backend "reference"
        """
        by_paper = self.backend == "reference" if by_paper is None else by_paper
        evaluate = function.reference if by_paper and function.reference else function.evaluate
        model = self._regrouped if function.regrouped and not by_paper else self.model
        carriers = [payload.link_number for payload in self._carriers(function).values()]
        sizes = {"payloads": 10 * len(carriers)} if carriers else {}
        sizes |= {name: validation.SIZES.get(name, len(self._columns.get(name, self.model.joint_names)))
                  for name in function.blocks}
        sizes |= {"wrenches": 6 * len(loaded), "wrench_rates": 6 * len(loaded)} if loaded else {}
        sizes |= {"world_wrenches": 6 * len(held)} if held else {}

        def traced(wrenches: Any = None, wrench_rates: Any = None, world_wrenches: Any = None, payloads: Any = None,
                   **motion: Any) -> Any:
            options: dict[str, Any] = {}
            if loaded:
                options |= {"wrenches": dict(zip(loaded, _sixes(wrenches), strict=True)),
                            "wrench_rates": dict(zip(loaded, _sixes(wrench_rates), strict=True))}
            if held:
                frames = [self.model.frame(link) for link in held]
                options["world_wrenches"] = [(frame.link, frame.P, six) for frame, six in zip(frames, _sixes(world_wrenches))]
            if carriers:
                options["inertias"] = with_bodies(model, carriers, payloads)
            return evaluate(model, self.gravity, options, **motion)

        return traced, sizes


def not_made(*_blocks: Any) -> None:
    """Return None: placeholder of a kernel that is not compiled yet."""


def _sixes(block: Any) -> list[Any]:
    return [block[k:k + 6] for k in range(0, len(block), 6)]

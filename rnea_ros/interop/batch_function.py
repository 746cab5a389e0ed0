"""Functions of a robot on batches of samples with their vector-Jacobian products: what interop.torch and interop.jax call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..algebra.vectors import Array
from ..codegen import kernel
from ..codegen.program import Program, split, trace
from ..errors import InputError, near, some
from ..export.functions import exported
from ..robots.robot import Robot

MAX_ORDER = 2  # derivatives of a function: gradients, and gradients of gradients


class BatchFunction:
    """Compiled function of arrays (..., size), one row for each sample, and its vector-Jacobian product as another one.

    inputs, outputs : sizes by name. Those of the `vjp` are inputs and adj_OUTPUT, then adj_INPUT
    order           : 0, or 1 and 2 for the vector-Jacobian product of a function and of that product
    """

    def __init__(self, name: str, program: Program, results: Sequence[str], backend: str, order: int = 0):
        self.name, self.order = name, order
        self.inputs = dict(program.inputs)
        self.outputs = dict(zip(results, map(prod, program.outputs), strict=True))
        self._program, self._backend = program, backend

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """Return an array (..., size) for each output; all inputs have the same leading dimensions."""
        leading = arrays[0].shape[:-1]
        count = prod(leading)
        blocks = [np.ascontiguousarray(array, dtype=float).reshape(count, array.shape[-1]) for array in arrays]
        found = self._kernel.of_samples(blocks, count)
        return tuple(np.ascontiguousarray(part).reshape(*leading, -1) for part in found)

    @cached_property
    def _kernel(self) -> kernel.Kernel:
        return kernel.build(self._replayed, self.inputs, self._backend)

    def _replayed(self, **blocks: Any) -> list[Any]:
        found = self._program.evaluate(np.concatenate(list(blocks.values())))
        return split(found, self.outputs.values())

    @cached_property
    def vjp(self) -> BatchFunction:
        """Function of the inputs and of a seed for each output: the gradient of the sum of seeds times outputs."""
        if self.order == MAX_ORDER:
            raise InputError(f"{self.name}: derivatives of order {MAX_ORDER + 1} are not available; allowed are gradients and "
                             "gradients of gradients. Do not create a graph in the second backward pass")
        seeds = {f"adj_{name}": size for name, size in self.outputs.items()}
        given = {**self.inputs, **seeds}

        def gradient(**blocks: Any) -> list[Any]:
            whole = self._program.gradient(np.concatenate([blocks[name] for name in self.inputs]),
                                           np.concatenate([blocks[name] for name in seeds]))
            return split(whole, self.inputs.values())

        return BatchFunction(self.name, trace(gradient, given), [f"adj_{name}" for name in self.inputs], self._backend,
                             self.order + 1)


def batch_function(robot: Robot, name: str, payload_link: str | None = None, links: Iterable[str] = ()) -> BatchFunction:
    """Return a function of a robot by its name in exported C, as `torque_and_rate` or `pose_LINK` of one of the links.

    payload_link : link whose payload, ten numbers, becomes the first input
    InputError names what can be differentiated, where the name is unknown or the function cannot.
    """
    carrier = robot.with_payload(payload_link, 1.0) if payload_link else robot
    functions: Mapping[str, Any] = {one.name: one for one in exported(carrier, links)}
    if name not in functions:
        raise InputError(f"robot '{robot.name}' has no function '{name}'; there are {some(functions)}{near(name, functions)}")
    function = functions[name]
    if payload_link and "payloads" not in function.inputs:
        raise InputError(f"{name} of robot '{robot.name}' does not depend on a payload; leave payload_link out")
    evaluate: Callable[..., Any] = function.__call__
    with np.errstate(all="ignore"):
        program = trace(evaluate, function.inputs)
    if not (program.is_finite and program.can_differentiate):
        raise InputError(f"{name} of robot '{robot.name}', a {robot.kind}, cannot be differentiated here: it solves linear "
                         "systems with pivots, or divides by a mass that is zero. Use a robot with fewer loops and contacts, "
                         "or Robot.sensitivities")
    return BatchFunction(name, program, function.results, robot.backend)


def checked_shapes(function: BatchFunction, shapes: Sequence[Sequence[int]]) -> None:
    """Raise InputError unless there is an array (..., size) for each input."""
    expected = some(f"{name} (..., {size})" for name, size in function.inputs.items())
    if len(shapes) != len(function.inputs):
        raise InputError(f"{function.name} takes {len(function.inputs)} arrays, {expected}; got {len(shapes)}")
    for (name, size), shape in zip(function.inputs.items(), shapes, strict=True):
        if not shape or shape[-1] != size:
            raise InputError(f"{function.name}: {name} has shape {tuple(shape)}; needed is (..., {size})")

"""Minimal reverse-mode automatic differentiation on NumPy arrays, for the stand-ins for torch and jax.

A `Tensor` stores the operation that created it. Rules of operations use tensors, so gradients can be differentiated
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Rule = Callable[[Sequence["Tensor"]], Sequence["Tensor | None"]]


class Origin(NamedTuple):
    """Operation that created tensors: inputs, outputs, and the rule for gradients of inputs from those of outputs."""

    inputs: Sequence[Tensor]
    outputs: list[Tensor]
    rule: Rule


class Device(NamedTuple):
    type: str

    def __str__(self) -> str:
        return self.type


class Tensor:
    """Array with automatic differentiation as in torch and jax."""

    __array_priority__ = 100

    def __init__(self, data: Any, requires_grad: bool = False, origin: Origin | None = None, device: str = "cpu"):
        self.data, self.requires_grad, self.origin = np.asarray(data), requires_grad, origin
        self.grad: Tensor | None = None
        self.device = Device(device)

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: self.data.ndim)

    def detach(self) -> Tensor:
        return Tensor(self.data)

    def numpy(self) -> np.ndarray:
        assert not self.requires_grad, "detach() first, as torch demands"
        return self.data

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.data if dtype is None else self.data.astype(dtype)

    def __float__(self) -> float:
        return float(self.data)

    def item(self) -> float:
        return float(self.data)

    def expand(self, *shape: int) -> Tensor:
        return made(np.broadcast_to(self.data, shape), [self], lambda seeds: [summed_to(seeds[0], self.shape)])

    def sum(self) -> Tensor:
        return made(self.data.sum(), [self], lambda seeds: [seeds[0].expand(*self.shape)])

    def mean(self) -> Tensor:
        return self.sum() * (1.0 / self.data.size)

    def tanh(self) -> Tensor:
        found = made(np.tanh(self.data), [self], lambda seeds: [seeds[0] * (1.0 - found * found)])
        return found

    def transposed(self) -> Tensor:
        return made(self.data.T, [self], lambda seeds: [seeds[0].transposed()])

    def __neg__(self) -> Tensor:
        return self * -1.0

    def __add__(self, other: Any) -> Tensor:
        other = as_tensor(other)
        return made(self.data + other.data, [self, other],
                    lambda seeds: [summed_to(seeds[0], self.shape), summed_to(seeds[0], other.shape)])

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tensor:
        return self + -as_tensor(other)

    def __rsub__(self, other: Any) -> Tensor:
        return -self + other

    def __mul__(self, other: Any) -> Tensor:
        other = as_tensor(other)
        return made(self.data * other.data, [self, other],
                    lambda seeds: [summed_to(seeds[0] * other, self.shape), summed_to(seeds[0] * self, other.shape)])

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Tensor:
        assert exponent == 2
        return self * self

    def __matmul__(self, other: Tensor) -> Tensor:
        assert self.ndim == other.ndim == 2
        return made(self.data @ other.data, [self, other],
                    lambda seeds: [seeds[0] @ other.transposed(), self.transposed() @ seeds[0]])

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self.data)))

    def __getitem__(self, index: Any) -> Tensor:
        def rule(seeds: Sequence[Tensor]) -> list[Tensor]:
            whole = np.zeros(self.shape)
            whole[index] = seeds[0].data
            return [Tensor(whole)]

        return made(self.data[index], [self], rule)

    def backward(self) -> None:
        leaves = leaves_of(self)
        for leaf, gradient in zip(leaves, gradients([self], leaves, [Tensor(np.ones(self.shape))]), strict=True):
            if gradient is not None:
                leaf.grad = gradient.detach() if leaf.grad is None else Tensor(leaf.grad.data + gradient.data)


def as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(np.asarray(x, dtype=float))


def made(data: Any, inputs: Sequence[Tensor], rule: Rule) -> Tensor:
    """Return the single result of an operation."""
    return all_made([data], inputs, rule)[0]


def all_made(results: Sequence[Any], inputs: Sequence[Tensor], rule: Rule) -> list[Tensor]:
    """Return the results of an operation; they have an origin if a derivative can be requested."""
    needed = any(one.requires_grad for one in inputs)
    outputs = [Tensor(data, requires_grad=needed) for data in results]
    if needed:
        origin = Origin(inputs, outputs, rule)
        for output in outputs:
            output.origin = origin
    return outputs


def summed_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the sum over dimensions that were broadcast."""
    if x.shape == shape:
        return x
    extra = x.ndim - len(shape)
    axes = (*range(extra), *(k for k, size in enumerate(shape, start=extra) if size == 1 and x.shape[k] != 1))
    return made(x.data.sum(axis=axes).reshape(shape), [x], lambda seeds: [seeds[0].expand(*x.shape)])


def order_of(results: Sequence[Tensor]) -> list[Origin]:
    """Return the operations behind results, each after those that created its inputs."""
    found: list[Origin] = []
    seen: set[int] = set()

    def visit(origin: Origin | None) -> None:
        if origin is None or id(origin) in seen:
            return
        seen.add(id(origin))
        for one in origin.inputs:
            visit(one.origin)
        found.append(origin)

    for result in results:
        visit(result.origin)
    return found


def leaves_of(result: Tensor) -> list[Tensor]:
    inputs = {id(one): one for origin in order_of([result]) for one in origin.inputs}
    return [one for one in inputs.values() if one.requires_grad and one.origin is None]


def gradients(results: Sequence[Tensor], wanted: Sequence[Tensor], seeds: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the gradients of the sum of seeds times results; they are tensors with origins themselves."""
    found: dict[int, Tensor] = {}
    for result, seed in zip(results, seeds, strict=True):
        found[id(result)] = found[id(result)] + seed if id(result) in found else seed
    for origin in reversed(order_of(results)):
        given = [found.get(id(output)) for output in origin.outputs]
        if all(one is None for one in given):
            continue
        filled = [Tensor(np.zeros(output.shape)) if one is None else one
                  for one, output in zip(given, origin.outputs, strict=True)]
        for one, share in zip(origin.inputs, origin.rule(filled), strict=True):
            if one.requires_grad and share is not None:
                assert share.shape == one.shape, (share.shape, one.shape)
                found[id(one)] = found[id(one)] + share if id(one) in found else share
    return [found.get(id(one)) for one in wanted]

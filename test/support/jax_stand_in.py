"""Stand-in for the part of JAX used by rnea_ros.interop.jax and its documentation, on NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from support import autodiff
from support.autodiff import Tensor


class ShapeDtypeStruct(NamedTuple):
    shape: tuple[int, ...]
    dtype: Any


class Configuration:
    """jax.config."""

    jax_enable_x64 = False

    def update(self, name: str, value: bool) -> None:
        assert name == "jax_enable_x64"
        self.jax_enable_x64 = value


def pure_callback(callback: Callable[..., Any], results: Sequence[ShapeDtypeStruct], *arrays: Tensor,
                  vmap_method: str) -> tuple[Tensor, ...]:
    """Call a function of NumPy arrays and check shapes and types of its results."""
    assert vmap_method == "broadcast_all"
    found = callback(*(one.data for one in arrays))
    for array, promised in zip(found, results, strict=True):
        assert array.shape == promised.shape and array.dtype == promised.dtype
    return tuple(map(Tensor, found))


class custom_vjp:  # noqa: N801  # jax's name
    """Function with a rule for its vector-Jacobian product."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        self.forward, self.backward = forward, backward

    def __call__(self, *arrays: Tensor) -> tuple[Tensor, ...]:
        found = self.function(*(one.detach() for one in arrays))

        def rule(seeds: Sequence[Tensor]) -> Sequence[Tensor]:
            _, residuals = self.forward(*arrays)
            return self.backward(residuals, tuple(seeds))

        return tuple(autodiff.all_made([one.data for one in found], arrays, rule))


def grad(function: Callable[..., Tensor], argnums: int = 0) -> Callable[..., Tensor]:
    """jax.grad."""
    def gradient(*arguments: Any) -> Tensor:
        given = [autodiff.as_tensor(one) for one in arguments]
        chosen = given[argnums]
        moved = autodiff.made(chosen.data, [chosen], list) if chosen.requires_grad else Tensor(chosen.data, requires_grad=True)
        given[argnums] = moved
        (found,) = autodiff.gradients([function(*given)], [moved], [Tensor(1.0)])
        return Tensor(np.zeros(moved.shape)) if found is None else found

    return gradient


@contextmanager
def installed(monkeypatch: Any) -> Iterator[None]:
    """Make `import jax` import the stand-in."""
    jax, numpy = ModuleType("jax"), ModuleType("jax.numpy")
    numpy.__dict__.update(
        asarray=autodiff.as_tensor, broadcast_shapes=np.broadcast_shapes, sum=lambda x: x.sum(), array=autodiff.as_tensor,
        broadcast_to=lambda x, shape: x.expand(*shape))
    jax.__dict__.update(config=Configuration(), numpy=numpy, custom_vjp=custom_vjp, pure_callback=pure_callback, grad=grad,
                        jit=lambda function: function, ShapeDtypeStruct=ShapeDtypeStruct, is_stand_in=True)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "jax", jax)
        patch.setitem(sys.modules, "jax.numpy", numpy)
        yield

"""Stand-in for the part of PyTorch used by rnea_ros.interop.torch and its documentation, on NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from support import autodiff
from support.autodiff import Tensor

float64, float32 = np.dtype("float64"), np.dtype("float32")


class Context:
    """Context that torch passes to setup_context and backward."""

    saved_tensors: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor) -> None:
        assert all(isinstance(one, Tensor) for one in tensors)
        self.saved_tensors = tensors


class Function:
    """torch.autograd.Function in the form with setup_context: forward works on detached tensors."""

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        tensors = [one for one in inputs if isinstance(one, Tensor)]
        detached = [one.detach() if isinstance(one, Tensor) else one for one in inputs]
        results = cls.forward(*detached)  # type: ignore[attr-defined]
        assert isinstance(results, tuple) and all(isinstance(one, Tensor) for one in results)
        ctx = Context()

        def rule(seeds: Sequence[Tensor]) -> list[Tensor | None]:
            found = cls.backward(ctx, *seeds)  # type: ignore[attr-defined]
            assert len(found) == len(inputs), "a gradient for each input, None for what is no tensor"
            return [share for share, one in zip(found, inputs, strict=True) if isinstance(one, Tensor)]

        outputs = autodiff.all_made([one.data for one in results], tensors, rule)
        cls.setup_context(ctx, inputs, tuple(outputs))  # type: ignore[attr-defined]
        return tuple(outputs)


def grad(results: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], grad_outputs: Sequence[Tensor] | None = None,
         create_graph: bool = False) -> tuple[Tensor | None, ...]:
    """torch.autograd.grad."""
    outputs = [results] if isinstance(results, Tensor) else list(results)
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    seeds = [Tensor(np.ones(one.shape)) for one in outputs] if grad_outputs is None else grad_outputs
    found = autodiff.gradients(outputs, wanted, seeds)
    return tuple(one if create_graph or one is None else one.detach() for one in found)


class Adam:
    """torch.optim.Adam (Kingma and Ba 2015)."""

    def __init__(self, parameters: Iterable[Tensor], lr: float = 1e-3):
        self.parameters, self.lr, self.steps = list(parameters), lr, 0
        self.moments = [(np.zeros(one.shape), np.zeros(one.shape)) for one in self.parameters]

    def zero_grad(self) -> None:
        for one in self.parameters:
            one.grad = None

    def step(self) -> None:
        self.steps += 1
        for one, (first, second) in zip(self.parameters, self.moments, strict=True):
            assert one.grad is not None
            first += 0.1 * (one.grad.data - first)
            second += 0.001 * (one.grad.data**2 - second)
            one.data = one.data - self.lr * first / (1.0 - 0.9**self.steps) / (
                np.sqrt(second / (1.0 - 0.999**self.steps)) + 1e-8)


def tensor(data: Any, dtype: np.dtype = float32, requires_grad: bool = False) -> Tensor:
    return Tensor(np.array(data, dtype=dtype), requires_grad)


@contextmanager
def installed(monkeypatch: Any) -> Iterator[None]:
    """Make `import torch` import the stand-in."""
    torch = ModuleType("torch")
    generator = np.random.default_rng(0)
    torch.__dict__.update(
        Tensor=Tensor, float64=float64, float32=float32, tensor=tensor, from_numpy=Tensor,
        broadcast_shapes=np.broadcast_shapes, tanh=Tensor.tanh, manual_seed=lambda seed: None,
        zeros=lambda *shape, dtype=float32, requires_grad=False: tensor(np.zeros(shape), dtype, requires_grad),
        randn=lambda *shape, dtype=float32: tensor(generator.normal(size=shape), dtype),
        autograd=SimpleNamespace(Function=Function, grad=grad), optim=SimpleNamespace(Adam=Adam), is_stand_in=True)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", torch)
        yield

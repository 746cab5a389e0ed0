"""Functions of robots as PyTorch operations in float64 on the CPU, with two derivatives: pip install '.[torch]'."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from ..errors import InputError, MissingPackage
from ..robots.robot import Robot
from .batch_function import BatchFunction, batch_function, checked_shapes


class TorchFunction:
    """Differentiable function of tensors (..., size), one row for each sample, of which leading dimensions broadcast.

    inputs, outputs : names and sizes, in order. A call returns one tensor, or a tuple of as many as there are outputs.
    torch.func.vmap, vjp and grad work too. Third derivatives are refused.
    """

    def __init__(self, function: BatchFunction):
        self._function = function
        self.name, self.inputs, self.outputs = function.name, dict(function.inputs), dict(function.outputs)

    def __call__(self, *tensors: Any) -> Any:
        torch, function = _torch(), self._function
        for name, tensor in zip(self.inputs, tensors, strict=False):
            if not isinstance(tensor, torch.Tensor):
                raise InputError(f"{self.name}: {name} is a {type(tensor).__name__}; needed is a torch.Tensor")
            if tensor.dtype != torch.float64 or tensor.device.type != "cpu":
                raise InputError(f"{self.name}: {name} is {tensor.dtype} on {tensor.device}; needed is torch.float64 on the "
                                 f"cpu: {name}.to('cpu', torch.float64)")
        checked_shapes(function, [tensor.shape for tensor in tensors])
        leading = torch.broadcast_shapes(*(tensor.shape[:-1] for tensor in tensors))
        found = _operation().apply(function, *(tensor.expand(*leading, tensor.shape[-1]) for tensor in tensors))
        return found[0] if len(self.outputs) == 1 else found


def differentiable(robot: Robot, name: str = "torque_and_rate", payload_link: str | None = None,
                   links: Iterable[str] = ()) -> TorchFunction:
    """Return a function of a robot for tensors: torque_and_rate, inverse_dynamics, forward_dynamics, gravity, mass_matrix, ...

    payload_link : link whose payload, ten numbers as of `Payload.parameters`, is the first input and has a gradient
    links        : links of pose_LINK and jacobian_LINK
    Matrices are flat, row by row. MissingPackage where torch is not installed.
    """
    _torch()
    return TorchFunction(batch_function(robot, name, payload_link, links))


def _torch() -> Any:
    try:
        import torch  # type: Any
    except ImportError:
        raise MissingPackage("interop.torch needs PyTorch", "torch") from None
    return torch


@cache
def _operation() -> Any:
    torch = _torch()

    class Operation(torch.autograd.Function):  # type: ignore[name-defined]
        """Evaluation of a BatchFunction, whose backward pass is the evaluation of its `vjp`."""

        @staticmethod
        def forward(function: BatchFunction, *tensors: Any) -> Any:
            found = function(*(tensor.detach().numpy() for tensor in tensors))
            return tuple(torch.from_numpy(array) for array in found)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.function = inputs[0]
            ctx.save_for_backward(*inputs[1:])

        @staticmethod
        def backward(ctx: Any, *seeds: Any) -> Any:
            return None, *Operation.apply(ctx.function.vjp, *ctx.saved_tensors, *seeds)

        @staticmethod
        def vmap(info: Any, in_dims: Any, function: BatchFunction, *tensors: Any) -> Any:
            moved = [tensor.unsqueeze(0).expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
                     for tensor, dim in zip(tensors, in_dims[1:], strict=True)]
            return Operation.apply(function, *moved), (0,) * len(function.outputs)

    return Operation

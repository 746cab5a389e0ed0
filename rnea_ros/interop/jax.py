"""Functions of robots as JAX operations: float64 on the CPU, gradients, vmap and jit: pip install '.[jax]'."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InputError, MissingPackage
from ..robots.robot import Robot
from .batch_function import BatchFunction, batch_function, checked_shapes


class JaxFunction:
    """Differentiable function of arrays (..., size), one row for each sample, of which leading dimensions broadcast.

    inputs, outputs : names and sizes, in order. A call returns one array, or a tuple of as many as there are outputs.
    jax.grad, vjp, jacrev, jit and vmap work, and gradients of gradients. JAX refuses forward mode (jvp, jacfwd) of it, and
    third derivatives are refused here.
    """

    def __init__(self, function: BatchFunction):
        self._function, self._operation = function, _operation(function)
        self.name, self.inputs, self.outputs = function.name, dict(function.inputs), dict(function.outputs)

    def __call__(self, *arrays: Any) -> Any:
        jax = _jax()
        if not jax.config.jax_enable_x64:
            raise InputError(f"{self.name}: JAX computes in float32; needed is float64: "
                             "jax.config.update('jax_enable_x64', True) before the first array")
        given = [jax.numpy.asarray(array) for array in arrays]
        for name, array in zip(self.inputs, given, strict=False):
            if array.dtype != np.float64:
                raise InputError(f"{self.name}: {name} is {array.dtype}; needed is float64: {name}.astype('float64')")
        checked_shapes(self._function, [array.shape for array in given])
        leading = jax.numpy.broadcast_shapes(*(array.shape[:-1] for array in given))
        found = self._operation(*(jax.numpy.broadcast_to(array, (*leading, array.shape[-1])) for array in given))
        return found[0] if len(self.outputs) == 1 else tuple(found)


def differentiable(robot: Robot, name: str = "torque_and_rate", payload_link: str | None = None,
                   links: Iterable[str] = ()) -> JaxFunction:
    """Return a function of a robot for JAX arrays: torque_and_rate, inverse_dynamics, forward_dynamics, gravity, ...

    payload_link : link whose payload, ten numbers as of `Payload.parameters`, is the first input and has a gradient
    links        : links of pose_LINK and jacobian_LINK
    Matrices are flat, row by row. MissingPackage where jax is not installed.
    """
    _jax()
    return JaxFunction(batch_function(robot, name, payload_link, links))


def _jax() -> Any:
    try:
        import jax  # type: Any
    except ImportError:
        raise MissingPackage("interop.jax needs JAX", "jax") from None
    return jax


def _operation(function: BatchFunction) -> Any:
    jax = _jax()

    def on_host(*arrays: Any) -> Any:
        return function(*map(np.asarray, arrays))

    @jax.custom_vjp
    def operation(*arrays: Any) -> Any:
        leading = arrays[0].shape[:-1]
        results = tuple(jax.ShapeDtypeStruct((*leading, size), np.float64) for size in function.outputs.values())
        return jax.pure_callback(on_host, results, *arrays, vmap_method="broadcast_all")

    def forward(*arrays: Any) -> Any:
        return operation(*arrays), arrays

    def backward(arrays: Any, seeds: Any) -> Any:
        return tuple(_operation(function.vjp)(*arrays, *seeds))

    operation.defvjp(forward, backward)
    return operation

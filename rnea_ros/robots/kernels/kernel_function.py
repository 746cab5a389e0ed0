"""Description of a function that a kernel evaluates, as a store of kernels needs it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple


class KernelFunction(NamedTuple):
    """A function of (model, gravity, options, **blocks) in any scalar, which returns a sequence of arrays.

    options are those of the backward recursion: inertias, wrenches, wrench_rates, world_wrenches, as far as there are any.

    key       : its name among the kernels of a robot
    evaluate  : the function
    blocks    : names of its input blocks, in order
    reference : what backend "reference" evaluates instead: the papers' text, where `evaluate` is a cheaper form
    regrouped : whether a model with fewer inertial parameters gives the same, so that kernels are made from that
    any_base  : whether it is right on a base that floats: its motion is among the blocks, or it does not matter
    massless  : whether no mass counts: then payloads are not among the inputs
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

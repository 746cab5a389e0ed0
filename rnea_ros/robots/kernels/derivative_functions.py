"""What the kernels of sensitivities and of internal joint wrenches evaluate; same form as evaluations.py."""

from __future__ import annotations

from collections.abc import Callable

from ...algorithms import joint_wrenches as internal
from ...algorithms import sensitivities as closed_form


def sensitivities(model, gravity, options, q, qd, qdd):
    return closed_form.sensitivities(model, q, qd, qdd, gravity, **_values_only(options))


def rate_sensitivities(model, gravity, options, q, qd, qdd, qddd):
    return closed_form.rate_sensitivities(model, q, qd, qdd, qddd, gravity, **options)


def joint_wrenches(model, gravity, options, q, qd, qdd):
    return internal.joint_wrenches(model, q, qd, qdd, q * 0.0, gravity, **options)[:1]


def joint_wrenches_and_rates(model, gravity, options, q, qd, qdd, qddd):
    return internal.joint_wrenches(model, q, qd, qdd, qddd, gravity, **options)


def joint_wrench_sensitivities(model, gravity, options, q, qd, qdd):
    return internal.joint_wrench_sensitivities(model, q, qd, qdd, gravity, **_values_only(options))


def _values_only(options):
    """Options of algorithms that have no rates."""
    return {name: value for name, value in options.items() if name != "wrench_rates"}


KERNEL_FUNCTIONS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "sensitivities": (sensitivities, ("q", "qd", "qdd")),
    "rate_sensitivities": (rate_sensitivities, ("q", "qd", "qdd", "qddd")),
    "joint_wrenches": (joint_wrenches, ("q", "qd", "qdd")),
    "joint_wrenches_and_rates": (joint_wrenches_and_rates, ("q", "qd", "qdd", "qddd")),
    "joint_wrench_sensitivities": (joint_wrench_sensitivities, ("q", "qd", "qdd")),
}

"""Functions of the kernels of sensitivities and of internal joint wrenches, in the form of functions.py."""

from __future__ import annotations

import numpy as np

from ...algorithms import joint_wrenches as internal
from ...algorithms import sensitivities as closed_form
from .floating_functions import values_only
from .kernel_function import KernelFunction


def sensitivities(model, gravity, options, q, qd, qdd):
    return closed_form.sensitivities(model, q, qd, qdd, gravity, **values_only(options))


def rate_sensitivities(model, gravity, options, q, qd, qdd, qddd):
    return closed_form.rate_sensitivities(model, q, qd, qdd, qddd, gravity, **options)


def torque_deviations(model, gravity, options, q, qd, qdd, qddd, q_std, qd_std, qdd_std, qddd_std):
    """Standard deviations of tau and tau_rate, to first order, where those of the motion are independent of each other."""
    tables = closed_form.sensitivities(model, q, qd, qdd, gravity, **values_only(options))
    rate_tables = closed_form.rate_sensitivities(model, q, qd, qdd, qddd, gravity, **options)
    return [_spread(found, (q_std, qd_std, qdd_std, qddd_std)) for found in (tables, rate_tables)]


def _spread(tables, deviations):
    """Return the root of the sum of squares of table @ deviation for each joint."""
    shares = [table * deviation for table, deviation in zip(tables, deviations, strict=False)]
    return np.array([np.sqrt(variance) for variance in sum((share * share).sum(axis=1) for share in shares)])


def joint_wrenches(model, gravity, options, q, qd, qdd):
    return internal.joint_wrenches(model, q, qd, qdd, q * 0.0, gravity, **options)[:1]


def joint_wrenches_and_rates(model, gravity, options, q, qd, qdd, qddd):
    return internal.joint_wrenches(model, q, qd, qdd, qddd, gravity, **options)


def joint_wrench_sensitivities(model, gravity, options, q, qd, qdd):
    return internal.joint_wrench_sensitivities(model, q, qd, qdd, gravity, **values_only(options))


MOTION_AND_DEVIATIONS = ("q", "qd", "qdd", "qddd", "q_std", "qd_std", "qdd_std", "qddd_std")
KERNEL_FUNCTIONS = (
    KernelFunction("sensitivities", sensitivities, ("q", "qd", "qdd"), regrouped=True),
    KernelFunction("rate_sensitivities", rate_sensitivities, ("q", "qd", "qdd", "qddd"), regrouped=True),
    KernelFunction("torque_deviations", torque_deviations, MOTION_AND_DEVIATIONS, regrouped=True),
    KernelFunction("joint_wrenches", joint_wrenches, ("q", "qd", "qdd")),
    KernelFunction("joint_wrenches_and_rates", joint_wrenches_and_rates, ("q", "qd", "qdd", "qddd")),
    KernelFunction("joint_wrench_sensitivities", joint_wrench_sensitivities, ("q", "qd", "qdd")),
)

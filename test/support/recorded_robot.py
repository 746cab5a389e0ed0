"""Six-axis arm that differs from its URDF, with all friction terms, and recordings of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from rnea_ros import JointDynamics, Robot
from rnea_ros.identification.excitation import FourierMotion

from .robots import arm

JOINTS = [{"axis": axis, "xyz": xyz} for axis, xyz in
          (((0, 0, 1), (0, 0, 0.3)), ((0, 1, 0), (0, 0.1, 0.1)), ((0, 1, 0), (0, 0, 0.4)))]
URDF = arm(*JOINTS)
NOISE = np.array([0.2, 0.3, 0.1])
STEP = 2.0 * np.pi / 2**17


@cache
def robots() -> tuple[Robot, Robot]:
    """Return the robot of the URDF and the true one."""
    model = Robot.from_urdf(URDF).model
    scaled = tuple(replace(link, m=s * link.m, ms=s * link.ms, J=s * link.J)
                   for link, s in zip(model.links, (1.0, 1.3, 0.8, 1.2), strict=True))
    terms = {"j1": JointDynamics(0.3, 1.0, 4.0, 2.0, 0.3, 0.01, 2.0, 0.15, 0.5),
             "j2": JointDynamics(0.4, 1.0, 3.0, 1.0, -0.5, 0.02), "j3": JointDynamics(0.2, 1.0, 2.0, 0.5, 0.1, 0.01, 1.5, 0.2)}
    return Robot.from_model(model), Robot.from_model(replace(model, links=scaled).with_joint_dynamics(terms))


def motion(seed: int) -> FourierMotion:
    rng = np.random.default_rng(seed)
    return FourierMotion(8.0, np.zeros(3), *(0.5 * rng.normal(size=(2, 4, 3))))


@cache
def recorded(seconds: float = 24.0, rate: float = 200.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return t, q quantized by encoders, and tau with noise."""
    t = np.arange(0.0, seconds, 1.0 / rate)
    q, qd, qdd, _ = motion(seed)(t)
    tau = robots()[1].inverse_dynamics(q, qd, qdd)
    return t, np.round(q / STEP) * STEP, tau + np.random.default_rng(seed).normal(size=tau.shape) * NOISE


def write_csv(path: Path, t: np.ndarray, q: np.ndarray, tau: np.ndarray, words: tuple[str, str] = ("q_", "tau_")) -> None:
    names = ["t", *(f"{word}j{k}" for word in words for k in (1, 2, 3)), "temperature"]
    np.savetxt(path, np.column_stack((t, q, tau, 0.0 * t)), fmt="%.17g", delimiter=",", header=",".join(names), comments="")

"""Simulated robot and controller: by Pinocchio, with other masses, friction, payload and external forces than the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin

PANDA = Path(pin.__file__).parents[4] / "share/example-robot-data/robots/panda_description/urdf/panda.urdf"
REST = np.array([0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8])
RANGE = np.array([0.8, 0.6, 0.8, 0.6, 0.8, 0.6, 1.0])
COULOMB = np.array([0.311, 0.2007, 0.4265, 0.3214, 0.3555, 0.4978, 0.3318])  # N m, of a Panda (CC-BY set of robots.md)
VISCOUS = np.array([0.0746, 0.0866, 0.0406, 0.0453, 0.0410, 0.0574, 0.0310])
STICK = 0.01  # [rad/s], half width of the sign change of friction


def panda() -> str:
    """Return the URDF of a Panda with fixed fingers."""
    return PANDA.read_text().replace('type="prismatic"', 'type="fixed"')


class Sample(NamedTuple):
    """Measured state with the true motion: t [s], arrays (n,)."""

    t: float
    q: np.ndarray
    qd: np.ndarray
    effort: np.ndarray


class Plant:
    """Robot driven by motor torques; integration is implicit for friction and explicit otherwise."""

    def __init__(self, urdf: str, mass_factors: np.ndarray | float = 1.0, coulomb=0.0, viscous=0.0):
        """Build the robot. mass_factors: of each moving link, or of all."""
        self.model = pin.buildModelFromXML(urdf)
        for body, factor in zip(list(self.model.inertias)[1:], np.broadcast_to(mass_factors, self.model.nv)):
            body.mass *= factor
            body.inertia = body.inertia * factor
        self.data, n = self.model.createData(), self.model.nv
        self.coulomb, self.viscous = np.broadcast_to(coulomb, n), np.broadcast_to(viscous, n)

    def carry(self, frame: str, mass: float, com: np.ndarray, inertia: np.ndarray | None = None) -> None:
        """Attach a rigid body to a link; inertia about its center of mass."""
        found = self.model.frames[self.model.getFrameId(frame)]
        body = pin.Inertia(mass, com, np.zeros((3, 3)) if inertia is None else inertia)
        self.model.appendBodyToJoint(found.parentJoint, body, found.placement)
        self.data = self.model.createData()

    def jacobian(self, frame: str, q: np.ndarray) -> np.ndarray:
        number = self.model.getFrameId(frame)
        return pin.computeFrameJacobian(self.model, self.data, q, number, pin.LOCAL_WORLD_ALIGNED)

    def friction(self, v: np.ndarray) -> np.ndarray:
        return self.coulomb * np.tanh(v / STICK) + self.viscous * v

    def step(self, dt: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state; tau is the sum of motor and external torques."""
        M = pin.crba(self.model, self.data, q)
        M = np.triu(M) + np.triu(M, 1).T
        slope = self.coulomb / STICK * (1.0 - np.tanh(v / STICK) ** 2) + self.viscous
        free = tau - pin.nle(self.model, self.data, q, v) - self.friction(v)
        v = v + np.linalg.solve(M + dt * np.diag(slope), dt * free)
        return q + dt * v, v


class Motion(NamedTuple):
    """Sums of sines about a pose, from rest at t = 0: amplitudes, frequencies [rad/s], phases, (k, n) each."""

    rest: np.ndarray
    a: np.ndarray
    w: np.ndarray
    phase: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        """Return q, qd, qdd, qddd (4, n)."""
        x = self.w * t + self.phase
        s, c = self.a * np.sin(x), self.a * np.cos(x)
        found = np.array([s.sum(0), (c * self.w).sum(0), -(s * self.w**2).sum(0), -(c * self.w**3).sum(0)])
        found[0] += self.rest
        return found


def motion(rng: np.random.Generator, brisk: float = 1.0, count: int = 3) -> Motion:
    """Return a motion of a Panda, up to about 1.5 rad/s times brisk."""
    w = brisk * rng.uniform(0.5, 2.0, (count, 7))
    return Motion(REST, RANGE * rng.uniform(0.5, 1.0, (count, 7)) / count, w, rng.uniform(0.0, 2.0 * np.pi, (count, 7)))


def follow(plant: Plant, model, wanted: Callable[[float], np.ndarray], seconds: float, *, rate: float = 500.0, inner: int = 2,
           bandwidth: float = 50.0, bits: int = 17, effort_noise: float = 0.0, push=lambda t, q: 0.0,
           rng: np.random.Generator | None = None):
    """Return samples under feed-forward of `model` and PD control of a bandwidth [rad/s]; push(t, q): external torques."""
    rng = rng or np.random.default_rng(0)
    dt, unit = 1.0 / (rate * inner), 2.0 * np.pi / 2**bits
    q, v = wanted(0.0)[:2]
    for k in range(round(seconds * rate)):
        t = k / rate
        r, rd, rdd, _ = wanted(t)
        ahead = rdd + bandwidth**2 * (r - q) + 2.0 * bandwidth * (rd - v)
        tau = model.inverse_dynamics(r, rd, ahead)
        yield Sample(t, np.round(q / unit) * unit, v, tau + effort_noise * rng.standard_normal(len(q)))
        for i in range(inner):
            q, v = plant.step(dt, q, v, tau + push(t + i * dt, q))

"""Inputs of a robot's calls besides the motion of its joints: external loads, payloads, motors behind springs, torques."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.vectors import Array, rotate_inertia, shift, skew
from ..algorithms.equations import with_bodies
from ..errors import InputError, shown
from ..model.tree import Frame, Frozen, Model, frozen
from . import validation
from .base_state import BaseState
from .validation import numbers

if TYPE_CHECKING:
    from .tree import TreeDynamics

Wrenches = Mapping[str, Any]  # {URDF link: (6,) or (samples, 6)}


@dataclass(frozen=True, eq=False)
class Loads:
    """Wrenches that the environment exerts ON links: force, then moment about the origin of the link's frame [N, N m].

    wrenches       : {URDF link: (6,) or (samples, 6)}, along the axes of the link's frame
    wrench_rates   : time derivatives of those six numbers [N/s, N m/s]; missing ones are zero
    world_wrenches : {URDF link: ...} along the axes of the root link, or of the world where the base moves; constant there
                     while the link turns
    """

    wrenches: Wrenches = field(default_factory=dict)
    wrench_rates: Wrenches = field(default_factory=dict)
    world_wrenches: Wrenches = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, given in zip(self.__dataclass_fields__, self.by_kind()):
            if not isinstance(given, Mapping):
                raise InputError(f"{name} is {shown(given)}; a mapping {{URDF link: six numbers}} is needed")
            object.__setattr__(self, name, {link: validation.wrench(link, six) for link, six in given.items()})

    def by_kind(self) -> tuple[Wrenches, Wrenches, Wrenches]:
        """Return wrenches, wrench_rates and world_wrenches."""
        return self.wrenches, self.wrench_rates, self.world_wrenches

    @cached_property
    def links(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Names of the links under wrenches, wrench_rates and world_wrenches."""
        return tuple(self.wrenches), tuple(self.wrench_rates), tuple(self.world_wrenches)

    def arrays(self) -> Iterator[np.ndarray]:
        """Return all wrenches."""
        return (six for kind in self.by_kind() for six in kind.values())

    def at(self, k: int) -> Loads:
        """Return the loads of one sample."""
        return Loads(*({link: six[k] if six.ndim == 2 else six for link, six in kind.items()} for kind in self.by_kind()))

    def on_links(self, model: Model) -> dict[int, list[np.ndarray]]:
        """Return wrenches and their rates by number of the link, moved to its MDH frame and added up.

        InputError where a rate has no wrench, or links of one body have different numbers of samples
        """
        if alone := sorted(set(self.wrench_rates) - set(self.wrenches)):
            raise InputError(f"wrench rates without a wrench on links {alone}")
        numbers = sorted({model.frame(link).link for link in self.wrenches})
        found = {number: [np.zeros(6), np.zeros(6)] for number in numbers}
        for order, given in enumerate((self.wrenches, self.wrench_rates)):
            for link, six in given.items():
                frame = model.frame(link)
                f, n = six[..., :3] @ frame.R.T, six[..., 3:] @ frame.R.T
                moved = np.concatenate((f, n + np.cross(frame.P, f)), axis=-1)
                validation.samples([found[frame.link][order], moved])  # refuses different numbers on links of one body
                found[frame.link][order] = found[frame.link][order] + moved
        return found

    def in_world(self, model: Model) -> list[tuple[Frame, np.ndarray]]:
        """Return the world's wrenches with the frames of their links, by name of these."""
        return [(model.frame(link), six) for link, six in sorted(self.world_wrenches.items())]

    def seen_from(self, base: BaseState) -> Loads:
        """Return the loads with the world's wrenches along the axes of a base."""
        held = {link: base.into_base(six) for link, six in self.world_wrenches.items()}
        return Loads(self.wrenches, self.wrench_rates, held)


@dataclass(frozen=True, eq=False)
class MotorState:
    """Motion of the motors behind springs, a column for each of Robot.elastic_joints: (Ne,) or (samples, Ne) [rad, m].

    Their position and velocity, where the motion of the joints does not decide them; acceleration and jerk too where all of it
    is measured.
    """

    q: Any
    qd: Any
    qdd: Any = None
    qddd: Any = None

    def __post_init__(self) -> None:
        if (self.qdd is None) != (self.qddd is None):
            raise InputError("motors: one of qdd and qddd is given; measured motion has both, a state neither")
        for name in ("q", "qd", "qdd", "qddd"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, validation.numbers(f"motors {name}", value))

    @cached_property
    def known(self) -> tuple[np.ndarray, ...]:
        """The two or four arrays that are given."""
        return (self.q, self.qd) if self.qdd is None else (self.q, self.qd, self.qdd, self.qddd)

    def checked(self, size: int) -> MotorState:
        """Raise InputError unless there is a column for each of `size` motors."""
        for name, value in zip(("q", "qd", "qdd", "qddd"), self.known, strict=False):
            if value.shape[-1:] != (size,) or value.ndim > 2 or not np.isfinite(value).all():
                raise InputError(f"motors {name} has shape {value.shape}; ({size},) or (samples, {size}) finite numbers are "
                                 "needed")
        return self

    def at(self, k: int) -> MotorState:
        """Return the motion of one sample."""
        return MotorState(*(value[k] if value.ndim == 2 else value for value in self.known))


def checked_loads(loads: Any) -> Loads:
    """Return the loads. Raises InputError for another type."""
    if not isinstance(loads, Loads):
        raise InputError(f"loads is {shown(loads)}; loads=Loads(wrenches={{link: six numbers}}, ...) is needed")
    return loads


def checked_motors(motors: Any) -> MotorState:
    """Return the motion of the motors. Raises InputError for another type."""
    if not isinstance(motors, MotorState):
        raise InputError(f"motors is {shown(motors)}; motors=MotorState(q, qd) is needed")
    return motors


class Conditions(NamedTuple):
    """Inputs of a call besides the motion of the joints; None where not given. tau: torques of forward dynamics."""

    base: BaseState | None = None
    loads: Loads | None = None
    motors: MotorState | None = None
    tau: Any = None


def sampled(arrays: Sequence[Array], given: Conditions, motors: int) -> tuple[int | None, Callable[[int], Conditions]]:
    """Return the number of samples, None for a single one, and a function of the conditions of each sample.

    arrays: of the motion, (n,) or (samples, n) each; motors: number of motors behind springs
    """
    base, loads, state, tau = given
    every = [*arrays]
    if base is not None:
        every += base.arrays()
    if loads is not None:
        every += loads.arrays()
    if state is not None:
        every += state.checked(motors).known
    if tau is not None:
        every.append(tau)
    count = validation.samples(every)
    if count is None:
        return None, lambda k: given

    def at(k: int) -> Conditions:
        return Conditions(base and base.at(k), loads and loads.at(k), state and state.at(k),
                          tau[k] if tau is not None and tau.ndim == 2 else tau)

    return count, at


# ---------------------------------------------------------------------- payloads


_UPPER = np.triu_indices(3)


@dataclass(frozen=True, eq=False)
class Payload(Frozen):
    """Rigid body carried by a link: checked once, then ten numbers that a kernel adds to the link's own inertia.

    parameters (10,): m, m com (3), Jxx Jxy Jxz Jyy Jyz Jzz, in the MDH frame of link `link_number`, J about its origin.
    """

    link_number: int
    mass: float
    parameters: np.ndarray

    @classmethod
    def on_link(cls, model: Model, link: str, mass: float, com: Any, inertia: Any) -> Payload:
        """Return the payload from com (3,) in the URDF link's frame and inertia (3, 3) about the com in its axes."""
        frame = model.frame(link)
        m, centre = numbers("payload mass", mass), numbers("payload com", com)
        about_com = np.zeros((3, 3)) if inertia is None else numbers("payload inertia", inertia)
        if m.shape != () or centre.shape != (3,) or about_com.shape != (3, 3):
            raise InputError(f"payload: mass is a number, com needs 3 numbers and inertia 3 x 3; got shapes {m.shape}, "
                             f"{centre.shape} and {about_com.shape}")
        if not (np.isfinite(m) and np.isfinite(centre).all() and np.isfinite(about_com).all()) or m < 0.0:
            raise InputError(f"payload: mass {mass} must be finite and not negative, com and inertia finite")
        if not np.allclose(about_com, about_com.T) or np.linalg.eigvalsh(about_com)[0] < -1e-12:
            raise InputError(f"payload: inertia {about_com.tolist()} must be symmetric and not negative")
        with np.errstate(all="ignore"):  # an overflow is reported below
            parameters = cls.parameters_of(frame, m, centre, about_com)
        if not np.isfinite(parameters).all():
            raise InputError(f"payload: mass {m:g} kg at {centre.tolist()} m has moments larger than any number")
        return cls(frame.link, float(m), frozen(parameters))

    @staticmethod
    def parameters_of(frame: Frame, m: Any, centre: Any, about_com: Any) -> Any:
        """Return `parameters` of a body on the URDF link whose pose is `frame`; any scalar."""
        J, ms = rotate_inertia(frame.R, *shift(about_com, np.zeros(3), m, centre))
        J, ms = shift(J, ms, m, frame.P)
        return np.array([m, *ms, *J[_UPPER]])

    @classmethod
    def share(cls, model: Model, number: int, share: float) -> Payload:
        """Return a share of the link of that number itself; it may be negative."""
        link = model.links[number]
        return cls(number, share * link.m, frozen(share * np.array([link.m, *link.ms, *link.J[_UPPER]])))


def unified(model: Model, bodies: Sequence[Payload]) -> Model:
    """Return the model with rigid bodies added to its links: the unified bodies of hua-mixed-joints."""
    block = np.concatenate([np.zeros(0), *(body.parameters for body in bodies)])
    links = list(model.links)
    for number, (m, ms, J) in with_bodies(model, [body.link_number for body in bodies], block).items():
        links[number] = replace(links[number], m=float(m), ms=frozen(ms), J=frozen(J))
    return replace(model, links=tuple(links))


# ---------------------------------------------------------------------- wrenches in other frames


class WrenchTransform(NamedTuple):
    """Transform of wrenches from a frame to the frame of a link, X (6, 6), and its rate X_rate (6, 6) as both move.

    Seen from link i, frame j is at (R, p) and moves with v = dp/dt and w, all along the axes of i. Then (as khalil-rne (23))

        f_i = R f_j                 df_i/dt = R df_j/dt + w x f_i
        n_i = R n_j + p x f_i       dn_i/dt = R dn_j/dt + w x R n_j + v x f_i + p x df_i/dt
    """

    X: np.ndarray
    X_rate: np.ndarray

    def __call__(self, wrench: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Wrench and rate of its six numbers (6,) in the link's frame, from those in the other frame."""
        return self.X @ wrench, self.X @ rate + self.X_rate @ wrench


def rigid_transform(model: Model, link: str, frame: str) -> WrenchTransform | None:
    """Return the transform from a frame that is fixed in a link; None if joints are between them."""
    here, there = model.frame(link), model.frame(frame)
    if here.link != there.link:
        return None
    return _transform(here.R.T @ there.R, here.R.T @ (there.P - here.P), np.zeros(3), np.zeros(3))


def moving_transform(robot: TreeDynamics, link: str, frame: str, q: np.ndarray, qd: np.ndarray) -> WrenchTransform:
    """Return the transform from any frame of the robot, at one sample q, qd (n,)."""
    here, there = robot.link_pose(link, q), robot.link_pose(frame, q)
    own, other = robot.link_velocity(link, q, qd), robot.link_velocity(frame, q, qd)
    away, turn, inward = there.p - here.p, other[3:] - own[3:], here.R.T
    drift = other[:3] - own[:3] - skew(own[3:]) @ away
    return _transform(inward @ there.R, inward @ away, inward @ drift, inward @ turn)


def _transform(R: np.ndarray, p: np.ndarray, v: np.ndarray, w: np.ndarray) -> WrenchTransform:
    X, X_rate = np.zeros((2, 6, 6))
    R_rate = skew(w) @ R
    X[:3, :3] = X[3:, 3:] = R
    X[3:, :3] = skew(p) @ R
    X_rate[:3, :3] = X_rate[3:, 3:] = R_rate
    X_rate[3:, :3] = skew(v) @ R + skew(p) @ R_rate
    return WrenchTransform(X, X_rate)

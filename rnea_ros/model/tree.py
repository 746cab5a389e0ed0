"""Immutable model of a robot: a tree of links in modified Denavit-Hartenberg frames.

Links are numbered as in khalil-rne: link 0 is the root, and the antecedent of link j has a smaller number. A link with
sigma = 2 is a massless frame fixed to its antecedent. Coordinates are the joints of the public interface; several links may
depend on one coordinate (mimic joints), each with ``q_link = multiplier * q[coordinate] + offset``.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import InputError, ModelWarning, near, shown, some
from . import mdh
from .beams import FlexibleLink
from .drives import TOTAL, Drive, DriveLimit, Efforts, Supply, VelocityByPosition

NO_COORDINATE = -1  # coordinate of the root and of fixed frames


def frozen(values: Any) -> np.ndarray:
    """Return a read-only float copy with the standard dtype, also of unpickled arrays, whose dtype object differs."""
    values = np.asarray(values, dtype=float)
    array = np.empty(values.shape)  # a copy in numpy 1 would keep the dtype object
    array[...] = values
    array.flags.writeable = False
    return array


class Frozen:
    """Base class of dataclasses whose arrays are read-only, also after unpickling."""

    def __reduce__(self) -> tuple[Any, ...]:
        given = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]  # of a dataclass
        return _restored, (type(self), [dict(value) if isinstance(value, MappingProxyType) else value for value in given])


def _restored(kind: type, values: list[Any]) -> Any:
    return kind(*[frozen(value) if isinstance(value, np.ndarray) else value for value in values])


@dataclass(frozen=True)
class JointDynamics:
    """Dynamics of a joint in addition to the rigid links: rotor, gear, friction, offset (khalil-rne (30), (44)).

    rotor_inertia : moment of inertia of the rotor about its axis, on the motor side of the gear [kg m^2]
    gear_ratio    : rotor velocity divided by joint velocity [-] (prismatic joints: rad/m)
    coulomb       : Coulomb friction [N m or N]
    viscous       : viscous friction [N m s/rad or N s/m]
    offset        : constant torque [N m or N]
    smoothing     : velocity scale at which tanh replaces the discontinuity of the Coulomb term [rad/s or m/s]
    stribeck      : additional Coulomb friction near zero velocity, may be negative [N m or N]
    stribeck_velocity : velocity scale of this term [rad/s or m/s]
    asymmetry     : half the difference between the viscous friction of positive and negative velocity [N m s/rad or N s/m]
    load_dependent : friction as a share of the torque that the joint transmits, including that of the rotor [-]
    load_smoothing : torque scale that smooths the absolute value of this torque at zero [N m or N]
    """

    rotor_inertia: float = 0.0
    gear_ratio: float = 1.0
    coulomb: float = 0.0
    viscous: float = 0.0
    offset: float = 0.0
    smoothing: float = 1e-2
    stribeck: float = 0.0
    stribeck_velocity: float = 0.1
    asymmetry: float = 0.0
    load_dependent: float = 0.0
    load_smoothing: float = 0.1

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not isinstance(value, Real) or not abs(value) <= sys.float_info.max:  # type: ignore[operator]
                raise InputError(f"joint dynamics {f.name} is {shown(value)}; a finite number is needed")
        if self.rotor_inertia < 0 or self.coulomb < 0 or self.viscous < 0:
            raise InputError(f"rotor_inertia is {self.rotor_inertia:g}, coulomb {self.coulomb:g}, viscous {self.viscous:g}; "
                             "numbers that are not negative are needed")
        for name, what in (("smoothing", "speed"), ("stribeck_velocity", "speed"), ("load_smoothing", "torque")):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} is {getattr(self, name)}; a {what} above zero is needed")
        if not 0.0 <= self.load_dependent < 1.0:
            raise InputError(f"load_dependent is {self.load_dependent}; a share from 0 to below 1 is needed")
        if self.stribeck < -self.coulomb or abs(self.asymmetry) > self.viscous:
            raise InputError(f"friction must oppose motion: stribeck is {self.stribeck:g}, at least -coulomb, "
                             f"{-self.coulomb:g}, is needed; asymmetry is {self.asymmetry:g}, from -viscous to viscous, "
                             f"{self.viscous:g}, is needed")
        inertia, ratio = float(self.rotor_inertia), float(self.gear_ratio)
        if not math.isfinite(inertia * (ratio * ratio)):  # ** would raise
            raise InputError(f"gear_ratio is {ratio:g}, rotor_inertia {inertia:g}: their product gear_ratio^2 rotor_inertia "
                             "must "
                             "be a finite number")

    @property
    def armature(self) -> float:
        """Rotor inertia reflected to the joint, Ia [kg m^2 or kg]."""
        return self.rotor_inertia * self.gear_ratio**2

    @property
    def breakaway(self) -> float:
        """Largest Coulomb friction over all velocities [N m or N]."""
        return max(self.coulomb, self.coulomb + self.stribeck)


@dataclass(frozen=True)
class CoupledMotor:
    """Motor of a coupled transmission: its velocity is the sum of the ratios times the joint velocities.

    name        : "coupling.motor", as in the robot file
    coordinates : indices of the joints that turn it
    ratios      : rotor velocity per velocity of each of these joints [-] (prismatic joints: rad/m)
    term        : rotor inertia and friction on the motor side; gear_ratio is 1
    """

    name: str
    coordinates: tuple[int, ...]
    ratios: tuple[float, ...]
    term: JointDynamics

    def motion(self, qd: Any) -> Any:
        """Return the velocity of the motor for joint velocities (n,) or (n, ...); also for accelerations and jerks."""
        return sum(qd[k] * ratio for k, ratio in zip(self.coordinates, self.ratios, strict=True))


@dataclass(frozen=True)
class ContactCalibration:
    """Error of the modelled effort of one joint in free motion, and its contact threshold.

    offset    : constant error [N m, N]
    coulomb   : Coulomb friction in addition to the declared one [N m, N]
    viscous   : viscous friction in addition to the declared one [N m s/rad, N s/m]
    threshold : external effort above which a contact is reported, in standard deviations of the model error; NaN: default
    """

    offset: float = 0.0
    coulomb: float = 0.0
    viscous: float = 0.0
    threshold: float = math.nan


@dataclass(frozen=True, eq=False)
class Link(Frozen):
    """Link of the tree, with its joint and its frame.

    name, joint : URDF names of the link and of the joint that moves it ("" for the root and fixed frames)
    parent      : index of the antecedent, a(j)
    sigma       : 0 revolute, 1 prismatic, 2 fixed frame
    gamma, b, alpha, d, theta, r : see mdh.py; theta and r at joint variable zero
    coordinate, multiplier, offset : the joint variable is multiplier * q[coordinate] + offset
    m, ms, J    : mass [kg], first moments (3,) [kg m], inertia about the frame's origin (3, 3) [kg m^2], in frame j
    term        : rotor inertia, friction and offset of the joint
    """

    name: str
    joint: str = ""
    parent: int = 0
    sigma: int = mdh.FIXED
    gamma: float = 0.0
    b: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    r: float = 0.0
    coordinate: int = NO_COORDINATE
    multiplier: float = 1.0
    offset: float = 0.0
    m: float = 0.0
    ms: np.ndarray = field(default_factory=lambda: frozen(np.zeros(3)))
    J: np.ndarray = field(default_factory=lambda: frozen(np.zeros((3, 3))))
    term: JointDynamics = JointDynamics()

    @property
    def geometry(self) -> mdh.Parameters:
        return mdh.Parameters(self.gamma, self.b, self.alpha, self.d, self.theta, self.r)

    @cached_property
    def _constant_part(self) -> tuple[np.ndarray, np.ndarray]:
        C, D = mdh.constant_part(self.geometry)
        return frozen(C), frozen(D)

    @property
    def C(self) -> np.ndarray:
        """Rotation Rot(z, gamma) Rot(x, alpha)."""
        return self._constant_part[0]

    @property
    def D(self) -> np.ndarray:
        """Translation Rot(z, gamma) (d, 0, b)."""
        return self._constant_part[1]


@dataclass(frozen=True)
class Joint:
    """Coordinate of the public interface: name, type ("revolute", "continuous", "prismatic") and limits; NaN: unknown."""

    name: str
    type: str
    lower: float = np.nan
    upper: float = np.nan
    velocity: float = np.nan
    effort: float = np.nan
    acceleration: float = np.nan
    jerk: float = np.nan
    effort_rate: float = np.nan
    commanded_effort_rate: float = np.nan


@dataclass(frozen=True, eq=False)
class Limits(Frozen):
    """Limits of the n coordinates: read-only arrays (n,); NaN: unknown.

    lower, upper          : position limits [rad, m]
    velocity, acceleration, jerk : limits of absolute values [rad/s, m/s] and so on
    effort, effort_rate   : limits of the whole joint torque, gravity and friction included, and of its rate
                            [N m, N], [N m/s, N/s]
    commanded_effort_rate : limit of the rate of the joint torque without the terms that the controller of the robot adds
                            (commanded_effort of the robot file), at the joint [N m/s, N/s]

    The limits of both rates come from robot files, never from a URDF; acceleration and jerk require URDF 1.2.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    effort_rate: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray
    commanded_effort_rate: np.ndarray

    def of(self, coordinates: Sequence[int] | np.ndarray) -> Limits:
        """Return the limits of some coordinates, by index."""
        return Limits(*(frozen(getattr(self, f.name)[coordinates]) for f in fields(self)))

    def share(self, effort: float = 1.0, effort_rate: float = 1.0, velocity: float = 1.0, acceleration: float = 1.0) -> Limits:
        """Return the limits multiplied by shares; effort_rate applies to both limits of effort rates.

        Raises InputError for shares that are not in (0, 1].
        """
        shares = {"effort": effort, "effort_rate": effort_rate, "commanded_effort_rate": effort_rate, "velocity": velocity,
                  "acceleration": acceleration}
        for name, share in shares.items():
            if not 0.0 < share <= 1.0:
                raise InputError(f"the share of the {name.replace('_', ' ')} limits is {share:g}; a number above zero, at "
                                 "most 1, is needed")
        return replace(self, **{name: frozen(share * getattr(self, name)) for name, share in shares.items() if share != 1.0})


@dataclass(frozen=True, eq=False)
class Frame(Frozen):
    """Frame of a URDF link: constant pose (R, P) in the MDH frame of link number `link`."""

    link: int
    R: np.ndarray
    P: np.ndarray


@dataclass(frozen=True, eq=False)
class Model(Frozen):
    """Immutable model of a tree: geometry, inertias, joint dynamics, limits.

    links  : link 0 (root) to N
    joints : the n coordinates, in the order of every array of the public interface
    frames : frames of all URDF links, keyed by name
    base   : "fixed" or "floating"
    reconstruction_error : largest deviation of any frame from the URDF, over several poses [m, rad]
    drive_limits : limits that combine torque, torque rate and velocity, derived from motors, gears and supplies
    drives, supplies : data of motors, gears and supplies from the robot file
    velocity_by_position : velocity limits near the position limits
    efforts : conventions of the commanded and the measured effort of a joint
    warnings : warnings about implausible properties, one sentence each
    accepted_warnings : warnings whose names the robot file accepts
    contact : contact thresholds, keyed by joint
    coupled_motors : motors of coupled transmissions
    flexible_links : beams that replace links; several links of the tree depend on each of their modal coordinates
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    frames: Mapping[str, Frame]
    base: str = "fixed"
    reconstruction_error: float = 0.0
    warnings: tuple[ModelWarning, ...] = ()
    drive_limits: tuple[DriveLimit, ...] = ()
    drives: tuple[Drive, ...] = ()
    supplies: tuple[Supply, ...] = ()
    velocity_by_position: tuple[VelocityByPosition, ...] = ()
    efforts: Efforts = TOTAL
    accepted_warnings: tuple[ModelWarning, ...] = ()
    contact: Mapping[str, ContactCalibration] = field(default_factory=dict)
    coupled_motors: tuple[CoupledMotor, ...] = ()
    flexible_links: tuple[FlexibleLink, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.joints)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the n coordinates, in the order of every array."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def limits(self) -> Limits:
        """Limits in the order of joint_names; NaN where unknown."""
        return Limits(**{f.name: frozen([getattr(joint, f.name) for joint in self.joints]) for f in fields(Limits)})

    @property
    def total_mass(self) -> float:
        """Mass of all links, including the root [kg]."""
        return float(sum(link.m for link in self.links))

    @cached_property
    def model_id(self) -> str:
        """Fingerprint of every name and number of the model: 16 hexadecimal digits."""
        digest = hashlib.sha256(repr((self.name, self.base, self.joints)).encode())
        for link in self.links:
            rest = [getattr(link, f.name) for f in fields(link) if f.name not in ("ms", "J")]
            digest.update(repr((rest, link.ms.tolist(), link.J.tolist())).encode())
        if self.coupled_motors:
            digest.update(repr(self.coupled_motors).encode())
        return digest.hexdigest()[:16]

    def frame(self, link_name: str) -> Frame:
        """Return the frame of a URDF link. Raises InputError, which names the existing links, for an unknown name."""
        if link_name not in self.frames:
            raise InputError(f"link '{link_name}' is not in robot '{self.name}'; its links: {some(self.frames)}"
                             f"{near(link_name, self.frames)}")
        return self.frames[link_name]

    def mdh_table(self) -> list[tuple[Any, ...]]:
        """Return (name, parent, sigma, gamma, b, alpha, d, theta, r) of links 1..N; parent 0 is the root [rad, m]."""
        return [(link.joint or link.name, link.parent, link.sigma, *link.geometry) for link in self.links[1:]]

    def with_joint_dynamics(self, terms: Mapping[str, JointDynamics]) -> Model:
        """Return the model with new joint dynamics, keyed by joint name (mimic joints included)."""
        known = {link.joint for link in self.links if link.joint}
        unknown = sorted(set(terms) - known)
        if unknown:
            raise InputError(f"joint dynamics for {some(unknown, quoted=True)}, but the moving joints are "
                             f"{some(sorted(known))}")
        links = tuple(replace(link, term=terms.get(link.joint, link.term)) for link in self.links)
        counts = Counter(link.coordinate for link in links)
        if sharing := [link.joint for link in links if link.term.load_dependent and counts[link.coordinate] > 1]:
            raise InputError(f"load_dependent is set for {some(sharing, quoted=True)}, whose coordinate mimic joints share: "
                             "the torque "
                             "of each joint is unknown. Load-dependent friction requires a joint with its own coordinate")
        return replace(self, links=links).with_coupled_motors(self.coupled_motors)

    def with_coupled_motors(self, motors: Sequence[CoupledMotor]) -> Model:
        """Return the model with these motors of coupled transmissions.

        Raises InputError if one of their joints has load-dependent friction: its load would depend on the accelerations of
        other joints.
        """
        turned = {k for motor in motors for k in motor.coordinates}
        if loaded := [link.joint for link in self.links if link.term.load_dependent and link.coordinate in turned]:
            raise InputError(f"load_dependent is set for {some(loaded, quoted=True)}, whose motor is coupled with other "
                             "joints: the "
                             "torque of each joint is unknown. Load-dependent friction requires a separate motor")
        return replace(self, coupled_motors=tuple(motors))

"""Parameters in which joint torques are linear: their numbered list, names, values, and models made of them.

Per moving link, in its MDH frame: mass, first moments, and inertia about the frame's origin. Per joint, on request: rotor
inertia reflected to the joint, Coulomb and viscous friction, constant torque (joint_dynamics.py). Per motor of a coupled
transmission, on request: its inertia, Coulomb and viscous friction, at the motor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.linear_forms import coefficients, unknowns
from ..algebra.vectors import ZERO, cross
from ..errors import InputError
from ..model import mdh
from ..model.tree import JointDynamics, Link, Model, frozen
from .joint_dynamics import from_links, with_motors
from .torque_rate import RootMotion, dynamics, kinematics

INERTIAL = ("m", "msx", "msy", "msz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
TERMS = ("Ia", "coulomb", "viscous", "offset")
_UNITS = dict(zip(INERTIAL, ("kg", *["kg m"] * 3, *["kg m^2"] * 6), strict=True))
_TURNING = dict(zip(TERMS, ("kg m^2", "N m", "N m s/rad", "N m"), strict=True))
_SLIDING = dict(zip(TERMS, ("kg", "N", "N s/m", "N"), strict=True))
OF_MOTORS = ("Ia", "coulomb", "viscous")  # of TERMS


class Parameter(NamedTuple):
    """Parameter of a link, a joint, or a coupled motor.

    link  : number of the link that the joint moves; of coupled motor k the number of links + k
    kind  : one of INERTIAL or TERMS
    owner : name of the link, for TERMS of the joint or the coupled motor
    """

    link: int
    kind: str
    owner: str
    unit: str

    @property
    def name(self) -> str:
        """Kind and owner, for example Jzz(link3)."""
        return f"{self.kind}({self.owner})"


class SymbolicJointDynamics(NamedTuple):
    """Joint dynamics whose parameters may be symbolic: the attributes of JointDynamics that joint_dynamics.py reads."""

    armature: Any = 0.0
    coulomb: Any = 0.0
    viscous: Any = 0.0
    offset: Any = 0.0
    smoothing: float = 1e-2
    stribeck: float = 0.0
    asymmetry: float = 0.0
    load_dependent: float = 0.0


def parameters(model: Model, terms: Iterable[str] = (), root: bool = False) -> tuple[Parameter, ...]:
    """Return all parameters of a model, link by link.

    terms : which of TERMS to list for each joint. With Ia, OF_MOTORS are listed for each coupled motor, whose inertia and
            friction act on several joints
    root  : whether to list the parameters of the root link, on which only the wrench at a free base depends
    """
    wanted = set(terms)
    if not wanted <= set(TERMS):
        raise InputError(f"joint parameters {sorted(wanted - set(TERMS))} do not exist; allowed are {', '.join(TERMS)}")
    found = []
    for k, link in enumerate(model.links):
        if link.joint or (root and k == 0):
            found += [Parameter(k, kind, link.name, _UNITS[kind]) for kind in INERTIAL]
        if link.joint:
            units = _SLIDING if link.sigma == mdh.PRISMATIC else _TURNING
            found += [Parameter(k, kind, link.joint, units[kind]) for kind in TERMS if kind in wanted]
    for k, motor in enumerate(model.coupled_motors if "Ia" in wanted else (), start=len(model.links)):
        found += [Parameter(k, kind, motor.name, _TURNING[kind]) for kind in OF_MOTORS]
    return tuple(found)


def values(model: Model, listed: Sequence[Parameter]) -> np.ndarray:
    """Return the values (p,) of the listed parameters in a model."""
    links = [*map(_values, model.links), *(_term_values(motor.term) for motor in model.coupled_motors)]
    return np.array([links[parameter.link][parameter.kind] for parameter in listed], dtype=float)


def _values(link: Link) -> dict[str, Any]:
    return {**dict(zip(INERTIAL, ten(link.m, link.ms, link.J), strict=True)), **_term_values(link.term)}


def _term_values(term: JointDynamics) -> dict[str, Any]:
    return dict(zip(TERMS, (term.armature, term.coulomb, term.viscous, term.offset), strict=True))


def _with_terms(term: JointDynamics, given: Mapping[str, float]) -> JointDynamics:
    """Return joint dynamics with the given values by kind."""
    rotor = given["Ia"] / term.gear_ratio**2 if "Ia" in given else term.rotor_inertia
    return replace(term, rotor_inertia=rotor, **{kind: given[kind] for kind in TERMS[1:] if kind in given})


def with_values(model: Model, listed: Sequence[Parameter], new: Sequence[float] | np.ndarray) -> Model:
    """Return the model with new values (p,) of the listed parameters; others are unchanged.

    Raises InputError for a negative Ia or friction.
    """
    links, motors = list(model.links), list(model.coupled_motors)
    for number, given in _by_link(listed, [float(x) for x in new]).items():
        if number >= len(links):
            motor = motors[number - len(links)]
            motors[number - len(links)] = replace(motor, term=_with_terms(motor.term, given))
            continue
        link = links[number]
        m, ms, J = inertia({**_values(link), **given})
        links[number] = replace(link, m=m, ms=frozen(ms), J=frozen(J), term=_with_terms(link.term, given))
    return replace(model, links=tuple(links), coupled_motors=tuple(motors))


def with_unknowns(model: Model, listed: Sequence[Parameter]) -> Model:
    """Return the model whose listed parameters are linear forms, numbered as in the list, and whose others are zero.

    For algorithms that are linear in the parameters. The attributes of its links are symbolic.
    """
    still = frozen(np.zeros(3))
    links = [replace(link, m=0.0, ms=still, J=frozen(np.zeros((3, 3))), term=JointDynamics()) for link in model.links]
    motors = [replace(motor, term=JointDynamics()) for motor in model.coupled_motors]
    terms = [*(link.term for link in model.links), *(motor.term for motor in model.coupled_motors)]
    for number, given in _by_link(listed, unknowns(len(listed))).items():
        names = {"armature" if kind == "Ia" else kind: given[kind] for kind in TERMS if kind in given}
        form: dict[str, Any] = {"term": SymbolicJointDynamics(**names, smoothing=terms[number].smoothing)}
        if number >= len(links):
            motors[number - len(links)] = replace(motors[number - len(links)], **form)
        else:
            form |= dict(zip(("m", "ms", "J"), inertia(given), strict=True))
            links[number] = replace(links[number], **form)
    return replace(model, links=tuple(links), coupled_motors=tuple(motors))


def _by_link(listed: Sequence[Parameter], given: Iterable[Any]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for parameter, value in zip(listed, given, strict=True):
        found.setdefault(parameter.link, {})[parameter.kind] = value
    return found


def inertia(given: Mapping[str, Any]) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return m, ms (3,), J (3, 3) from values by kind, zero where missing; any scalar type."""
    m, x, y, z, xx, xy, xz, yy, yz, zz = (given.get(kind, 0.0) for kind in INERTIAL)
    return m, np.array([x, y, z]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def ten(m: Any, ms: Any, J: Any) -> np.ndarray:
    """Return the ten numbers of INERTIAL from m, ms, J; any scalar type."""
    return np.array([m, *ms, J[0][0], J[0][1], J[0][2], J[1][1], J[1][2], J[2][2]])


def regressor(model, count, q, qd, qdd, qddd, gravity=ZERO, base=RootMotion(), root=False):
    """(Y, Yd), (n, count) each: a row for each coordinate, mimic joints folded, a column for each parameter; any scalar.

    model   : its parameters are the forms 0 to count - 1, or zero: see inertial_parameters.with_unknowns
    gravity : acceleration (3,) in frame 0 [m/s^2]
    base    : motion of link 0, see torque_rate.py
    root    : prepend six rows: the wrench on link 0 that its motion needs, in frame 0, force first; in Yd the rates of its
              components
    """
    motion = kinematics(model, q, qd, qdd, qddd, base._replace(a=base.a - gravity))
    forces = dynamics(model, motion, qd, qdd, qddd)
    tau, tau_rate = from_links(model, forces.tau), from_links(model, forces.tau_rate)
    tau, tau_rate = with_motors(model.coupled_motors, tau, tau_rate, qd, qdd, qddd)
    if root:
        f, n, fd, nd = (load[0] for load in (forces.f, forces.n, forces.fd, forces.nd))
        tau = [*f, *n, *tau]
        tau_rate = [*(fd + cross(f, base.w)), *(nd + cross(n, base.w)), *tau_rate]
    return coefficients(tau, count), coefficients(tau_rate, count)

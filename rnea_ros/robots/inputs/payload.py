"""A rigid body carried by a link: checked once, then ten numbers that a kernel adds to the link's own inertia."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...algebra.vectors import rotate_inertia, shift
from ...algorithms.equations import with_bodies
from ...errors import InputError
from ...model.tree import Frame, Frozen, Model, frozen
from .validation import numbers

_UPPER = np.triu_indices(3)


@dataclass(frozen=True, eq=False)
class Payload(Frozen):
    """Link that carries a payload, and the parameters that a kernel adds to that link.

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
        with np.errstate(all="ignore"):  # what comes of it is said in words
            parameters = cls.seen(frame, m, centre, about_com)
        if not np.isfinite(parameters).all():
            raise InputError(f"payload: mass {m:g} kg at {centre.tolist()} m has moments larger than any number")
        return cls(frame.link, float(m), frozen(parameters))

    @staticmethod
    def seen(frame: Frame, m: Any, centre: Any, about_com: Any) -> Any:
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

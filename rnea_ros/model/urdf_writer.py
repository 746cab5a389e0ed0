"""A URDF with other bodies: its <inertial> elements are replaced, all else stays as it was written, comments too."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from ..algebra.vectors import rotate_inertia, shift
from . import urdf_reader
from .tree import Link, Model

AXES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


class Body(NamedTuple):
    """Inertia of a URDF link in its frame: mass [kg], centre of mass [m], inertia about that as AXES [kg m^2]."""

    mass: float
    com: list[float]
    inertia: list[float]


def bodies(model: Model) -> dict[str, Body]:
    """Return the bodies of moving links by URDF link; links on fixed joints are part of the body that they are fixed to."""
    return {link.name: _body(model, link) for link in model.links[1:] if link.joint and link.name in model.frames}


def _body(model: Model, link: Link) -> Body:
    frame = model.frames[link.name]
    J, ms = shift(link.J, link.ms, link.m, -frame.P)
    J, ms = rotate_inertia(frame.R.T, J, ms)
    com = ms / link.m if link.m > 0.0 else np.zeros(3)
    central, _ = shift(J, ms, link.m, -com)
    return Body(float(link.m), com.tolist(), central[np.triu_indices(3)].tolist())


def with_bodies(source: str | bytes | os.PathLike[str], model: Model, allow_xacro: bool = False) -> str:
    """Return the text of a URDF whose moving links have the bodies of a model of the same robot.

    What fixed joints tie to a link loses its own <inertial>, for it is in that of the link.
    """
    root, _ = urdf_reader.whole(source, allow_xacro, comments=True)
    new = bodies(model)
    moved = {model.frames[name].link for name in new}
    for element in root.findall("link"):
        name = element.get("name", "")
        if name not in model.frames or model.frames[name].link not in moved:
            continue
        for old in element.findall("inertial"):
            element.remove(old)
        if name in new:
            element.insert(0, _inertial(new[name]))
    etree.indent(root)
    return '<?xml version="1.0"?>\n' + urdf_reader.text(root) + "\n"


def _inertial(body: Body) -> Any:
    found = etree.Element("inertial")
    etree.SubElement(found, "origin", xyz=" ".join(map(repr, body.com)), rpy="0 0 0")
    etree.SubElement(found, "mass", value=repr(body.mass))
    etree.SubElement(found, "inertia", {axis: repr(value) for axis, value in zip(AXES, body.inertia, strict=True)})
    return found

"""Reading untrusted robot descriptions: guards first, then only what dynamics needs is handed on.

A URDF arrives from a file, a parameter or a topic. No document type, no entities, no mesh is ever opened, and bytes, links
and depth are capped before anything is built. Materials, transmissions and vendor tags do not concern dynamics and are
ignored; an attribute that is not understood, in an element whose numbers are used, is reported.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from ..errors import ModelError
from .xacro_file import XacroFile, expanded

MAX_BYTES = 3_000_000  # a hostile file takes fifty times its size in memory; real ones stay below a tenth of this
MAX_LINKS = 2_000
MAX_TEXT = 1_000  # characters in an attribute
MAX_LEFT_OUT = 100  # kinds of attributes without effect that are remembered
MAX_NUMBER = 1e9  # nothing on a robot is larger, and products of such numbers stay finite

VERSIONS = ((1, 0), (1, 1), (1, 2))  # of the format, as urdfdom 6 knows them; without an attribute it is the first

# Every element that dynamics needs: {element: (attributes with the count of their numbers, 0 for a name; children)}
_SCHEMA: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "link": ({"name": 0}, ("inertial",)),
    "inertial": ({}, ("origin", "mass", "inertia")),
    "mass": ({"value": 1}, ()),
    "inertia": (dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1), ()),
    "origin": ({"xyz": 3, "rpy": 3, "quat_xyzw": 4}, ()),
    "joint": ({"name": 0, "type": 0}, ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic")),
    "parent": ({"link": 0}, ()),
    "child": ({"link": 0}, ()),
    "axis": ({"xyz": 3}, ()),
    "limit": (dict.fromkeys(("lower", "upper", "effort", "velocity", "acceleration", "deceleration", "jerk"), 1), ()),
    "dynamics": ({"damping": 1, "friction": 1}, ()),
    "mimic": ({"joint": 0, "multiplier": 1, "offset": 1}, ()),
}
_WITHOUT_AXIS = ("fixed", "floating")
_REQUIRED = {"link": ("name",), "joint": ("name", "type"), "parent": ("link",), "child": ("link",), "axis": ("xyz",),
             "mass": ("value",), "inertia": tuple(_SCHEMA["inertia"][0]), "mimic": ("joint",)}
SINCE = {"quat_xyzw": (1, 1), "acceleration": (1, 2), "deceleration": (1, 2), "jerk": (1, 2)}
_REQUIRED_CHILDREN = {"inertial": ("mass", "inertia"), "joint": ("parent", "child")}
_MAY_BE_INFINITE = "limit"


class Description(NamedTuple):
    """Content of a robot description.

    robot    : the pruned element; its attribute version is one of VERSIONS
    problems : malformed elements
    left_out : {(element, attribute): where it stands} of attributes that this version of URDF does not have
    where    : a word for where it came from
    shaped   : names of links with a <visual> or <collision>
    """

    robot: etree._Element
    problems: list[str]
    left_out: dict[tuple[str, str], list[str]]
    where: str
    shaped: frozenset[str] = frozenset()


def read(source: str | bytes | os.PathLike, allow_xacro: bool = False) -> Description:
    """Return a robot description, checked.

    source      : a path (.urdf, or .xacro if allowed), or the XML text itself
    allow_xacro : whether a .xacro file, which is a program, may be run (see xacro_file.py); for paths that the user named
    Raises ModelError at once only where nothing can be read at all.
    """
    root, where = whole(source, allow_xacro)
    if root.tag != "robot":
        raise ModelError(f"the outermost element is <{root.tag}>; a URDF has <robot>", where)
    for tag in ("link", "joint"):
        count = len(root.findall(tag))
        if count > MAX_LINKS:
            raise ModelError(f"{count} {tag}s; at most {MAX_LINKS} are read", where)
    version, problems = _version(root)
    prune = _Prune(version, problems)
    pruned = etree.Element("robot", name=(root.get("name") or "robot")[:MAX_TEXT], version="{}.{}".format(*version))
    for child in root:
        if child.tag in ("link", "joint"):
            prune(child, pruned, f"{child.tag} '{child.get('name', '?')[:MAX_TEXT]}'")
    shaped = frozenset(link.get("name", "") for link in root.findall("link")
                       if link.find("visual") is not None or link.find("collision") is not None)
    return Description(pruned, problems, prune.left_out, where, shaped)


def whole(source: str | bytes | os.PathLike, allow_xacro: bool = False, comments: bool = False) -> tuple[etree._Element, str]:
    """All of a description, and a word for where it came from; ModelError if it cannot be read."""
    data, where = _bytes_of(source, allow_xacro)
    _guard(data, where)
    return _parse(data, where, comments), where


def movable_joints(source: str | bytes) -> set[str]:
    """Return the names of the joints of a robot description that are not fixed. ModelError where nothing can be read."""
    root, _ = whole(source)
    return {joint.get("name", "") for joint in root.findall("joint") if joint.get("type") not in _WITHOUT_AXIS}


def without_mass(source: str | bytes, links: Iterable[str]) -> bytes:
    """XML of a robot description in which these links, and all that hangs on them, have no mass.

    Use it for the links beyond a force-torque sensor whose whole wrench counts as external. Raises ModelError for a
    description that cannot be read.
    """
    root, _ = whole(source)
    light = _with_all_beyond(root, links)
    for element in root.findall("link"):
        if element.get("name") in light:
            for child in [child for child in element if child.tag in ("inertial", "visual", "collision")]:
                element.remove(child)
    return etree.tostring(root)


def links_beyond(source: str | bytes, links: Iterable[str]) -> set[str]:
    """Return these links of a robot description, and all beyond them."""
    return _with_all_beyond(whole(source)[0], links)


def _with_all_beyond(root: etree._Element, links: Iterable[str]) -> set[str]:
    children: dict[str, list[str]] = {}
    for joint in root.findall("joint"):
        parent, child = joint.find("parent"), joint.find("child")
        if parent is not None and child is not None:
            children.setdefault(parent.get("link", ""), []).append(child.get("link", ""))
    found, waiting = set[str](), list(links)
    while waiting:
        if (link := waiting.pop()) not in found:
            found.add(link)
            waiting += children.get(link, [])
    return found


def _version(root: etree._Element) -> tuple[tuple[int, int], list[str]]:
    """Return the version of the format, and its problems. An unknown one is read as the first."""
    text = root.get("version", "1.0")
    found = re.fullmatch(r"\s*\+?([0-9]{1,9})\.\s*\+?([0-9]{1,9})", text)  # as urdfdom reads it
    version = (int(found[1]), int(found[2])) if found else None
    if version in VERSIONS:
        return version, []
    known = ", ".join(f"{major}.{minor}" for major, minor in VERSIONS)
    return VERSIONS[0], [f"<robot version=\"{text[:60]}\">: this version of URDF is not known; known are {known}, and without "
                         "the attribute it is 1.0"]


def known_attributes(tag: str) -> tuple[str, ...]:
    """Return the names of the attributes that an element may have."""
    return tuple(_SCHEMA[tag][0])


def text(robot: etree._Element) -> str:
    """Return the XML of an element."""
    return etree.tostring(robot, encoding="unicode")


def _bytes_of(source: str | bytes | os.PathLike, allow_xacro: bool) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        return source, "URDF text"
    if isinstance(source, str):
        text = source.lstrip("\ufeff \t\r\n")
        if not text:
            raise ModelError("empty text; a path or the XML of a URDF is needed")
        if text.startswith("<"):
            _cap(len(text), "URDF text")
            if text.startswith("<?xml"):  # the encoding it names was that of the bytes which this text once was
                text = text.partition("?>")[2]
            return text.encode("utf-8", "surrogatepass"), "URDF text"
    return _bytes_of_file(source, allow_xacro)


def _bytes_of_file(source: str | os.PathLike, allow_xacro: bool) -> tuple[bytes, str]:
    where = str(source)[:200]
    try:
        path = Path(source)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # regardless of its reported size: some devices never end
    except (OSError, TypeError, ValueError) as error:
        raise ModelError(f"cannot be read ({str(error)[:200]}); a path to a .urdf file or XML text is needed",
                         where) from None
    if path.suffix != ".xacro":
        return data, where
    _guard(data, where)
    if isinstance(source, XacroFile):
        return expanded(path, source.arguments), where
    if not allow_xacro:
        raise ModelError("a .xacro file is a program that runs with your rights; it is not run unless allowed. Expand it "
                         "(xacro robot.xacro > robot.urdf) or, if you trust it, say allow_xacro=True, or with arguments "
                         "XacroFile(path, {'name': 'value'})", where)
    return expanded(path), where


def _cap(size: int, where: str) -> None:
    if size > MAX_BYTES:
        raise ModelError(f"it has more than {MAX_BYTES} bytes, the most that is read", where)


def _guard(data: bytes, where: str) -> None:
    _cap(len(data), where)
    upper = data.upper()
    if b"<!DOCTYPE" in upper or b"<!ENTITY" in upper:
        raise ModelError("it has a document type or entity declaration; a URDF needs none and none is read", where)


def _parse(data: bytes, where: str, comments: bool) -> etree._Element:
    strict, lenient = (etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
                                       remove_comments=not comments, remove_pis=True, recover=recover)
                       for recover in (False, True))
    try:
        try:
            root = etree.fromstring(data.lstrip(), strict)
        except etree.XMLSyntaxError:  # old files have <sensor:camera>, which ROS's parser takes
            if any(entry.domain != etree.ErrorDomains.NAMESPACE for entry in strict.error_log):
                raise
            root = etree.fromstring(data.lstrip(), lenient)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ModelError(f"not well-formed XML: {error}", where) from None
    if root.getroottree().docinfo.internalDTD is not None:  # hidden from the byte search by an odd encoding
        raise ModelError("it has a document type declaration; a URDF needs none and none is read", where)
    if any("xacro" in (uri or "") for uri in root.nsmap.values()) and any(
            isinstance(e.tag, str) and "xacro" in e.tag for e in root.iter()):
        raise ModelError("unexpanded xacro elements; expand it first (xacro robot.xacro > robot.urdf)", where)
    return root


class _Prune:
    """Copies known attributes and children alone, checked; remembers what it left out of elements that carry numbers."""

    def __init__(self, version: tuple[int, int], problems: list[str]):
        self.version = version
        self.problems = problems
        self.left_out: dict[tuple[str, str], list[str]] = {}

    def __call__(self, element: etree._Element, parent: etree._Element, where: str) -> None:
        attributes, children = _SCHEMA[element.tag]
        copy = etree.SubElement(parent, element.tag)
        self.problems += [f"{where}: <{element.tag}> has no attribute '{name}'"
                          for name in _REQUIRED.get(element.tag, ()) if element.get(name) is None]
        names = element.keys()  # not items(): lxml searches all attributes for each value
        for name in names:
            if name not in attributes or self.version < SINCE.get(name, self.version):
                self._leave_out(element.tag, name, where)
            else:
                text = element.get(name)
                self._check(element.tag, name, text, where)
                copy.set(name, text[:MAX_TEXT])
        for name in children:
            if name == "axis" and element.get("type") in _WITHOUT_AXIS:
                continue  # other readers ignore it, and real files have arbitrary content there
            found = element.findall(name)
            if len(found) > 1:
                self.problems.append(f"{where}: {len(found)} <{name}> elements, at most one is allowed")
            if not found and name in _REQUIRED_CHILDREN.get(element.tag, ()):
                self.problems.append(f"{where}: no <{name}> in <{element.tag}>")
            for child in found[:1]:
                self(child, copy, where)

    def _leave_out(self, tag: str, name: str, where: str) -> None:
        """Note an ignored attribute, unless it has a vendor's namespace or its element has no numbers for dynamics."""
        known = len(self.left_out) < MAX_LEFT_OUT or (tag, name) in self.left_out
        if known and any(_SCHEMA[tag][0].values()) and not name.startswith("{"):
            self.left_out.setdefault((tag, name), []).append(where)

    def _check(self, tag: str, name: str, text: str, where: str) -> None:
        count = _SCHEMA[tag][0][name]
        problem = _text_problem(text) or (_number_problem(text, count, tag) if count else None)
        if problem:
            self.problems.append(f"{where}: <{tag} {name}=\"{text[:60]}\">: {problem}")


def _text_problem(text: str) -> str | None:
    return f"{len(text)} characters, at most {MAX_TEXT} are allowed" if len(text) > MAX_TEXT else None


def _number_problem(text: str, count: int, tag: str) -> str | None:
    try:
        if not text.isascii() or "_" in text:  # Python takes such numbers, no other reader of URDFs does
            raise ValueError
        numbers = [float(word) for word in text.split()]
        if any(math.isinf(x) for x in numbers) and any(letter.isdigit() for letter in text):
            return "not finite"  # 1e400 is no way to say that there is no limit
    except ValueError:
        return "not a number" if count == 1 else f"not {count} numbers"
    if len(numbers) != count:
        return f"{len(numbers)} numbers, {count} are needed"
    if any(math.isnan(x) or (math.isinf(x) and tag != _MAY_BE_INFINITE) for x in numbers):
        return "not finite"
    if tag != _MAY_BE_INFINITE and any(abs(x) > MAX_NUMBER for x in numbers):
        return f"larger than {MAX_NUMBER:g}"
    return None

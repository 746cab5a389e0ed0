"""Reading untrusted robot descriptions: guards first, then only what dynamics needs is handed on.

A URDF arrives from a file, a parameter or a topic. No document type, no entities, no mesh is ever opened, and bytes, links
and depth are capped before anything is built. The prune also spares users the failures and the noise of parsers that
choke on materials, transmissions or vendor tags which say nothing about dynamics.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from lxml import etree

from .errors import ModelError

MAX_BYTES = 8_000_000
MAX_LINKS = 2_000

# Every element that dynamics needs: {element: (attributes with the count of their numbers, 0 for a name; children)}
_SCHEMA: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "link": ({"name": 0}, ("inertial",)),
    "inertial": ({}, ("origin", "mass", "inertia")),
    "mass": ({"value": 1}, ()),
    "inertia": (dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1), ()),
    "origin": ({"xyz": 3, "rpy": 3}, ()),
    "joint": ({"name": 0, "type": 0}, ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic")),
    "parent": ({"link": 0}, ()),
    "child": ({"link": 0}, ()),
    "axis": ({"xyz": 3}, ()),
    "limit": ({"lower": 1, "upper": 1, "effort": 1, "velocity": 1}, ()),
    "dynamics": ({"damping": 1, "friction": 1}, ()),
    "mimic": ({"joint": 0, "multiplier": 1, "offset": 1}, ()),
}
_OPTIONAL = {"origin": {"xyz", "rpy"}, "limit": {"lower", "upper", "effort", "velocity"},
             "dynamics": {"damping", "friction"}, "mimic": {"multiplier", "offset"}}
_REQUIRED_CHILDREN = {"inertial": ("mass", "inertia"), "joint": ("parent", "child")}
_MAY_BE_INFINITE = "limit"


def read(source: str | bytes | os.PathLike) -> tuple[etree._Element, list[str], str]:
    """The pruned <robot> element, what is malformed in it, and a word for where it came from.

    source: a path (.urdf, or .xacro where xacro is importable), or the XML text itself.
    Raises ModelError at once only where nothing can be read at all.
    """
    data, where = _bytes_of(source)
    _guard(data, where)
    root = _parse(data, where)
    if root.tag != "robot":
        raise ModelError(f"the outermost element is <{root.tag}>; a URDF has <robot>", where)
    problems: list[str] = []
    pruned = etree.Element("robot", name=root.get("name") or "robot")
    for child in root:
        if child.tag in ("link", "joint"):
            _prune(child, pruned, f"{child.tag} '{child.get('name', '?')}'", problems)
    return pruned, problems, where


def text(robot: etree._Element) -> str:
    """The XML of a pruned element."""
    return etree.tostring(robot, encoding="unicode")


def _bytes_of(source: str | bytes | os.PathLike) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        return source, "URDF text"
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source.encode(), "URDF text"
    if isinstance(source, str) and not source.strip():
        raise ModelError("empty text; a path or the XML of a URDF is needed", "robot description")
    path = Path(source)
    where = str(path)[:200]
    try:
        if path.suffix == ".xacro":
            return _expand_xacro(path), where
        if path.stat().st_size > MAX_BYTES:
            raise ModelError(f"{path.stat().st_size} bytes; at most {MAX_BYTES} are read", where)
        return path.read_bytes(), where
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"cannot be read ({error}); a path to a .urdf or .xacro file or XML text is needed", where) from None


def _expand_xacro(path: Path) -> bytes:
    try:
        import xacro
    except ImportError:
        raise ModelError("this is a xacro file and the Python module 'xacro' is not importable; install it "
                         "(ros-<distro>-xacro, or pip install xacro) or expand the file first", str(path)) from None
    if not path.is_file():
        raise ModelError("no such file", str(path))
    try:
        return xacro.process_file(str(path)).toxml().encode()
    except Exception as error:  # xacro raises many kinds; each is the user's file, none is ours
        raise ModelError(f"xacro: {error}", str(path)) from error


def _guard(data: bytes, where: str) -> None:
    if len(data) > MAX_BYTES:
        raise ModelError(f"{len(data)} bytes; at most {MAX_BYTES} are read", where)
    upper = data.upper()
    if b"<!DOCTYPE" in upper or b"<!ENTITY" in upper:
        raise ModelError("it has a document type or entity declaration; a URDF needs none and none is read", where)
    for tag in (b"<link", b"<joint"):
        if data.count(tag) > 2 * MAX_LINKS:
            raise ModelError(f"{data.count(tag)} elements '{tag.decode()}'; at most {MAX_LINKS} links are read", where)


def _parse(data: bytes, where: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
                             remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(data.lstrip(), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ModelError(f"not well-formed XML: {error}", where) from None
    if root.getroottree().docinfo.internalDTD is not None:  # hidden from the byte search by an odd encoding
        raise ModelError("it has a document type declaration; a URDF needs none and none is read", where)
    if any("xacro" in (uri or "") for uri in root.nsmap.values()) and any(
            isinstance(e.tag, str) and "xacro" in e.tag for e in root.iter()):
        raise ModelError("unexpanded xacro elements; give the .xacro file itself or expand it first", where)
    return root


def _prune(element: etree._Element, parent: etree._Element, where: str, problems: list[str]) -> None:
    """Append a checked copy of `element` to `parent`: known attributes and children only."""
    attributes, children = _SCHEMA[element.tag]
    copy = etree.SubElement(parent, element.tag)
    for name, count in attributes.items():
        text = element.get(name)
        if text is None:
            if name not in _OPTIONAL.get(element.tag, ()):
                problems.append(f"{where}: <{element.tag}> has no attribute '{name}'")
            continue
        problem = _number_problem(text, count, element.tag) if count else None
        if problem:
            problems.append(f"{where}: <{element.tag} {name}=\"{text[:60]}\">: {problem}")
        copy.set(name, text)
    if element.tag == "limit":  # the parser wants both; 0 is read as unknown further on
        for name in ("effort", "velocity"):
            copy.set(name, element.get(name, "0"))
    for name in children:
        found = element.findall(name)
        if len(found) > 1:
            problems.append(f"{where}: {len(found)} <{name}> elements, at most one is allowed")
        if not found and name in _REQUIRED_CHILDREN.get(element.tag, ()):
            problems.append(f"{where}: no <{name}> in <{element.tag}>")
        for child in found[:1]:
            _prune(child, copy, where, problems)


def _number_problem(text: str, count: int, tag: str) -> str | None:
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return "not a number" if count == 1 else f"not {count} numbers"
    if len(numbers) != count:
        return f"{len(numbers)} numbers, {count} are needed"
    if any(math.isnan(x) or (math.isinf(x) and tag != _MAY_BE_INFINITE) for x in numbers):
        return "not finite"
    return None

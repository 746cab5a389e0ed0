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

MAX_BYTES = 3_000_000  # a hostile file takes fifty times its size in memory; real ones stay below a tenth of this
MAX_LINKS = 2_000
MAX_TEXT = 1_000  # characters in an attribute
MAX_NUMBER = 1e9  # nothing on a robot is larger, and products of such numbers stay finite

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
    for tag in ("link", "joint"):
        count = len(root.findall(tag))
        if count > MAX_LINKS:
            raise ModelError(f"{count} {tag}s; at most {MAX_LINKS} are read", where)
    problems: list[str] = []
    pruned = etree.Element("robot", name=(root.get("name") or "robot")[:MAX_TEXT])
    for child in root:
        if child.tag in ("link", "joint"):
            _prune(child, pruned, f"{child.tag} '{child.get('name', '?')[:MAX_TEXT]}'", problems)
    return pruned, problems, where


def text(robot: etree._Element) -> str:
    """The XML of a pruned element."""
    return etree.tostring(robot, encoding="unicode")


def _bytes_of(source: str | bytes | os.PathLike) -> tuple[bytes, str]:
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
    return _bytes_of_file(source)


def _bytes_of_file(source: str | os.PathLike) -> tuple[bytes, str]:
    where = str(source)[:200]
    try:
        path = Path(source)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # whatever its size is said to be: some devices never end
    except (OSError, TypeError, ValueError) as error:
        raise ModelError(f"cannot be read ({str(error)[:200]}); a path to a .urdf or .xacro file or XML text is needed",
                         where) from None
    if path.suffix == ".xacro":
        _guard(data, where)
        return _expand_xacro(path), where
    return data, where


def _expand_xacro(path: Path) -> bytes:
    try:
        import xacro
    except ImportError:
        raise ModelError("this is a xacro file and the Python module 'xacro' is not importable; install it "
                         "(ros-<distro>-xacro, or pip install xacro) or expand the file first", str(path)) from None
    try:
        return xacro.process_file(str(path)).toxml().encode()
    except Exception as error:  # xacro raises many kinds; each is the user's file, none is ours
        raise ModelError(f"xacro: {error}", str(path)) from error


def _cap(size: int, where: str) -> None:
    if size > MAX_BYTES:
        raise ModelError(f"it has more than {MAX_BYTES} bytes, the most that is read", where)


def _guard(data: bytes, where: str) -> None:
    _cap(len(data), where)
    upper = data.upper()
    if b"<!DOCTYPE" in upper or b"<!ENTITY" in upper:
        raise ModelError("it has a document type or entity declaration; a URDF needs none and none is read", where)


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
        problem = _text_problem(text) or (_number_problem(text, count, element.tag) if count else None)
        if problem:
            problems.append(f"{where}: <{element.tag} {name}=\"{text[:60]}\">: {problem}")
        copy.set(name, text[:MAX_TEXT])
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


def _text_problem(text: str) -> str | None:
    return f"{len(text)} characters, at most {MAX_TEXT} are allowed" if len(text) > MAX_TEXT else None


def _number_problem(text: str, count: int, tag: str) -> str | None:
    try:
        if not text.isascii() or "_" in text:  # Python takes such numbers, no other reader of URDFs does
            raise ValueError
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return "not a number" if count == 1 else f"not {count} numbers"
    if len(numbers) != count:
        return f"{len(numbers)} numbers, {count} are needed"
    if any(math.isnan(x) or (math.isinf(x) and tag != _MAY_BE_INFINITE) for x in numbers):
        return "not finite"
    if tag != _MAY_BE_INFINITE and any(abs(x) > MAX_NUMBER for x in numbers):
        return f"larger than {MAX_NUMBER:g}"
    return None

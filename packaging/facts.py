"""What all packages say of themselves, and of the repository: package.xml has it, the other files repeat it.

    python packaging/facts.py                          lists what differs; exit code 1 if anything does
    python packaging/facts.py --version 0.2.0          writes a version into every file that tells it
    python packaging/facts.py --address https://...    writes the address of the repository into every file that should
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("package.xml", "rnea_msgs/package.xml", "rnea_rqt/package.xml")
SETUPS = ("setup.py", "rnea_rqt/setup.py")


class Place(NamedTuple):
    """A line of a file, {} where the fact stands; `after`: the beginning of the line that it follows."""

    file: str
    line: str
    after: str = ""


VERSION = [*(Place(file, "  <version>{}</version>") for file in PACKAGES),
           *(Place(file, '    version="{}",') for file in SETUPS),
           Place("rnea_msgs/pyproject.toml", 'version = "{}"'),
           Place("docs/conf.py", 'project, author, release = "rnea_ros", "rnea_ros maintainers", "{}"'),
           Place("CITATION.cff", "version: {}"),
           Place("packaging/recipe.yaml", "context:\n  version: {}")]
ADDRESS = [*(Place(file, '  <url type="repository">{}</url>', "  <license") for file in PACKAGES),
           *(Place(file, '    url="{}",', "    license=") for file in SETUPS),
           Place("rnea_msgs/pyproject.toml", 'urls = {{ Repository = "{}" }}', "license ="),
           Place("CITATION.cff", "repository-code: {}", "license:"),
           Place("packaging/recipe.yaml", "  repository: {}", "  license:")]


def stated(tag: str) -> str | None:
    """What the package.xml of rnea_ros says; None where it says nothing."""
    return ElementTree.parse(ROOT / PACKAGES[0]).getroot().findtext(tag)


def told(place: Place) -> list[str]:
    """All that a file says in the place of a fact."""
    pattern = re.escape(place.line.format("\0")).replace("\0", "([^\"<>\n]*)")
    return re.findall(rf"^{pattern}$", (ROOT / place.file).read_text(encoding="utf-8"), re.M)


def differing(places: list[Place], fact: str | None) -> list[str]:
    """The files that say anything else."""
    expected = [] if fact is None else [fact]
    return [f"{place.file}: {told(place)}, where package.xml has {expected}" for place in places if told(place) != expected]


def write(places: list[Place], fact: str) -> None:
    """In the place of what was there, or after the line that it belongs to."""
    for place in places:
        path, (line, *old) = ROOT / place.file, (place.line.format(fact), *(place.line.format(old) for old in told(place)))
        text = path.read_text(encoding="utf-8")
        for before in old:
            text = text.replace(f"{before}\n", f"{line}\n", 1)
        if not old:
            text = re.sub(rf"^({re.escape(place.after)}.*\n)", lambda found, line=line: f"{found[1]}{line}\n", text, count=1,
                          flags=re.M)
        path.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", type=str)
    parser.add_argument("--address", type=str)
    given = parser.parse_args(arguments)
    for places, fact in ((VERSION, given.version), (ADDRESS, given.address)):
        if fact:
            write(places, fact)
    problems = differing(VERSION, stated("version")) + differing(ADDRESS, stated("url"))
    print("\n".join(problems) or "all files agree")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

"""Facts that all packages repeat, such as version and repository: package.xml is the source, other files are copies.

python packaging/facts.py                          lists what differs; exit code 1 if anything does
python packaging/facts.py --version 0.2.0          writes a version into every file that has it
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
PACKAGES = ("package.xml", "rnea_msgs/package.xml", "rnea_rqt/package.xml", "rnea_controllers/package.xml",
            "rnea_plugins/package.xml")
SETUPS = ("setup.py", "rnea_rqt/setup.py")
PROJECTS = ("rnea_msgs/pyproject.toml", "lerobot_rnea/pyproject.toml")


class FactLine(NamedTuple):
    """A line of a file, {} where the fact stands; `after`: the beginning of the line that it follows."""

    file: str
    line: str
    after: str = ""


VERSION = [*(FactLine(file, "  <version>{}</version>") for file in PACKAGES),
           *(FactLine(file, '    version="{}",') for file in SETUPS),
           *(FactLine(file, 'version = "{}"') for file in PROJECTS),
           FactLine("docs/conf.py", 'project, author, release = "rnea_ros", "rnea_ros maintainers", "{}"'),
           FactLine("CITATION.cff", "version: {}"),
           FactLine("packaging/recipe.yaml", "context:\n  version: {}")]
ADDRESS = [*(FactLine(file, '  <url type="repository">{}</url>', "  <license") for file in PACKAGES),
           *(FactLine(file, '    url="{}",', "    license=") for file in SETUPS),
           *(FactLine(file, 'urls = {{ Repository = "{}" }}', "license =") for file in PROJECTS),
           FactLine("CITATION.cff", "repository-code: {}", "license:"),
           FactLine("packaging/recipe.yaml", "  repository: {}", "  license:")]


def stated(tag: str) -> str | None:
    """Return the content of a tag in the package.xml of rnea_ros; None without it."""
    return ElementTree.parse(ROOT / PACKAGES[0]).getroot().findtext(tag)


def values(entry: FactLine) -> list[str]:
    """Return the values of a fact in a file."""
    pattern = re.escape(entry.line.format("\0")).replace("\0", "([^\"<>\n]*)")
    return re.findall(rf"^{pattern}$", (ROOT / entry.file).read_text(encoding="utf-8"), re.M)


def differing(entries: list[FactLine], fact: str | None) -> list[str]:
    """Return the files with another value."""
    expected = [] if fact is None else [fact]
    return [f"{entry.file}: {found}, where package.xml has {expected}" for entry in entries
            if (found := values(entry)) != expected]


def write(entries: list[FactLine], fact: str) -> None:
    """Replace the value of a fact in files, or add it after the line that it belongs to."""
    for entry in entries:
        path, line, *old = ROOT / entry.file, entry.line.format(fact), *map(entry.line.format, values(entry))
        text = path.read_text(encoding="utf-8")
        for before in old:
            text = text.replace(f"{before}\n", f"{line}\n", 1)
        if not old:
            text = re.sub(rf"^({re.escape(entry.after)}.*\n)", lambda found, line=line: f"{found[1]}{line}\n", text, count=1,
                          flags=re.M)
        path.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", type=str)
    parser.add_argument("--address", type=str)
    given = parser.parse_args(arguments)
    for entries, fact in ((VERSION, given.version), (ADDRESS, given.address)):
        if fact:
            write(entries, fact)
    problems = differing(VERSION, stated("version")) + differing(ADDRESS, stated("url"))
    print("\n".join(problems) or "all files agree")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

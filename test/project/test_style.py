"""Language and structure of the repository: words, openings of docstrings, class names, private access."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".ci", "benchmark", "config", "docs", "examples", "launch", "lerobot_rnea", "packaging", "rnea_controllers",
           "rnea_msgs", "rnea_plugins", "rnea_ros", "rnea_rqt", "test", "urdf")
LISTS = ("test_style.py", "test_readme.py")  # files with the words and phrases that are not used
SUFFIXES = {".action", ".c", ".cfg", ".cpp", ".h", ".hpp", ".ini", ".md", ".msg", ".py", ".rst", ".srv", ".toml", ".txt",
            ".urdf", ".xml", ".yaml"}
# Words for persons, and words that hide the term of the field, with the meanings in which they are allowed.
WORDS = re.compile(r"""(?<![a-z]) (?:
    told | tell s? (?!\(\)) | telling | heard | hears? | hearing | nobody s? | somebody | someone | anybody | everybody
    | whoever | whatever | doubt (?:s | ed | ing | ful | fully )? | wish (?: es | ed )?
    | look (?:s | ed | ing )? (?! -?[ ]?up | [ ]like ) | (?<! in[ ]) (?<! decimal[ ]) (?<! take[ ]) (?<! takes[ ]) place [sd]?
    | placing | parted | parting | parts[ ]from | comes?[ ]by | came[ ]by | things?
    | of[ ](?:its | their | our)[ ]own | as[ ](?:it | he | they)[ ]likes?
    ) (?![a-z])""", re.I | re.X)
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
DOCUMENTED = (ast.Module, *DEFINED)
NAMED_TUPLE = ("_asdict", "_fields", "_make", "_replace")  # its documented attributes
FRAGMENT = re.compile(r"(?:Of|As|By|The same|What|Whether|Which|Who|Whose|How|Where|That|All that|With|Without|From|For|To"
                      r"|At|On|In|After|Before|Until|They|It|And|Also|Not|So|Beside)\b")


def files(*folders: str, suffixes: frozenset[str] | set[str] = frozenset({".py"})) -> list[Path]:
    """Return the files of folders that are in the repository, sorted."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    ignored = subprocess.run(["git", "check-ignore", "--stdin"], cwd=ROOT, capture_output=True, text=True,
                             input="\n".join(map(str, found)))
    hidden = set(ignored.stdout.split("\n"))
    return sorted(path for path in found if str(path) not in hidden and "__pycache__" not in path.parts)


def words_of(text: str) -> list[str]:
    """Return the words of the list in a text, with the numbers of their lines; names in CamelCase are split."""
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text).replace("_", " ")
    return [f"{split.count(chr(10), 0, found.start()) + 1}: {found[0]}" for found in WORDS.finditer(split)]


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings(path: Path) -> list[tuple[str, str]]:
    """Return the name and docstring of everything that has one."""
    nodes = [node for node in ast.walk(parsed(path)) if isinstance(node, DOCUMENTED)]
    return [(getattr(node, "name", "module"), text) for node in nodes if (text := ast.get_docstring(node))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_text_avoids_the_listed_words(folder):
    found = {path.relative_to(ROOT).as_posix(): words for path in files(folder, suffixes=SUFFIXES)
             if path.name not in LISTS and (words := words_of(path.read_text(encoding="utf-8")))}
    assert not found


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "QUALITY_DECLARATION.md", "Makefile",
                                  "mypy.ini", "ruff.toml", "setup.py"])
def test_files_of_the_root_avoid_the_listed_words(name):
    assert not words_of((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_start_with_a_noun_phrase_or_an_imperative(folder):
    found = [f"{path.relative_to(ROOT)} {name}: {text.splitlines()[0]}" for path in files(folder)
             for name, text in docstrings(path) if FRAGMENT.match(text)]
    assert not found


def test_parameter_descriptions_state_what_they_set():
    from rnea_ros.nodes.common.parameter_table import DYNAMICS_TABLE, QUERY_TABLE, SCALING_TABLE

    openings = re.compile(r"(?:Of|As|By|The same|What|Who|How|Where|If|While)\b")
    entries = [*DYNAMICS_TABLE, *QUERY_TABLE, *SCALING_TABLE]
    assert not [f"{entry.name}: {entry.text}" for entry in entries if openings.match(entry.text)]


def test_class_names_are_unique():
    owners = defaultdict(set)
    for path in files("rnea_ros"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners[node.name].add(path.relative_to(ROOT).as_posix())
    assert not {name: sorted(paths) for name, paths in owners.items() if len(paths) > 1}


def definitions(tree: ast.Module) -> set[str]:
    """Return the private names that a module defines: functions, classes, variables, attributes of self, slots."""
    nodes = list(ast.walk(tree))
    found = {node.name for node in nodes if isinstance(node, DEFINED)}
    found |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    found |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def private_uses(tree: ast.Module) -> list[tuple[str, int]]:
    """Return the private attributes of other objects that a module reads, with their lines."""
    return [(node.attr, node.lineno) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
            and node.attr.startswith("_") and not node.attr.startswith("__") and node.attr not in NAMED_TUPLE
            and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
            and not (isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "super")]


def test_private_attributes_are_used_in_their_module():
    """Copies and comparisons of objects of one class are inside its module; attributes of foreign packages do not count."""
    trees = {path: parsed(path) for path in files("rnea_ros")}
    own = {path: definitions(tree) for path, tree in trees.items()}
    package = set().union(*own.values())
    found = [f"{path.relative_to(ROOT)}:{line}: {name}" for path, tree in trees.items() for name, line in private_uses(tree)
             if name in package and name not in own[path]]
    assert not found


@pytest.mark.parametrize("text, found", [
    ("what nobody told", ["1: nobody", "1: told"]), ("a placeHolder\nno_place", ["1: place", "2: place"]),
    ("in place, look up, looks like, parts, nothing, mistold, stellar", []), ("file.tell()", []), ("Placed", ["1: Placed"]),
    ("KeptPlaces", ["1: Places"]), ("come by", ["1: come by"]), ("doubtful", ["1: doubtful"])])
def test_word_list_matches_words_in_text_and_names(text, found):
    assert words_of(text) == found


def test_parser_finds_private_access():
    text = "class A:\n    def f(self, b):\n        self._x = b._x\n        return super()._y, b.__class__, b._replace()"
    assert private_uses(ast.parse(text)) == [("_x", 3)]

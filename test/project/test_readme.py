"""Everything that the README and the pages of docs/ show is run: Python as it stands, `rnea` lines for real, the rest checked
for what it names.

``python test/project/test_readme.py --update`` writes the parameter tables into their pages.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rnea_ros.model.robot_file_schema import SCHEMA
from support import jax_stand_in, torch_stand_in

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = {page.stem: page for page in sorted((ROOT / "docs").glob("*.md"))}
TASKS = sorted((ROOT / "docs" / "tasks").glob("*.md"))
SYSTEMS = sorted((ROOT / "docs" / "systems").glob("*.md"))
PAGES = [README, ROOT / "CONTRIBUTING.md", *DOCS.values(), *TASKS, *SYSTEMS]
MARK = "<!-- parameters: written by test/project/test_readme.py --update -->"
SCALING_MARK = MARK.replace("parameters", "scaling parameters")
ROBOT_FILE_MARK = MARK.replace("parameters", "keys of the robot file")
END = "<!-- end -->"
EXPECTED = {"index", "install", "dynamics_node", "scaling_node", "query_node", "systems", "library", "command_line",
            "planning", "gait", "correctness_and_speed", "architecture", "glossary", "robot_file", "simulation",
            "identification", "troubleshooting"}


@cache
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def everything() -> str:
    return "\n".join(text(page) for page in PAGES)


def blocks(language: str, page: Path) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text(page), flags=re.DOTALL)


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", text(page), flags=re.DOTALL)


def commands() -> list[str]:
    """Each once, however many pages show it."""
    lines = [line for page in PAGES for block in blocks("bash", page) for line in block.splitlines() if line.strip()]
    assert len(set(lines)) >= 20
    return list(dict.fromkeys(lines))


def library(page: Path) -> list[str]:
    return [block for block in blocks("python", page) if "rnea_msgs" not in block]


def parameter_tables() -> dict[Path, str]:
    from rnea_ros.nodes.common.parameter_table import DYNAMICS_TABLE, SCALING, markdown_table

    tables = (("dynamics_node_parameters", MARK, DYNAMICS_TABLE), ("scaling_node_parameters", SCALING_MARK, SCALING))
    return {DOCS[page]: f"{mark}\n\n{markdown_table(entries)}{END}" for page, mark, entries in tables}


def test_readme_is_short_and_the_index_links_every_page():
    assert len(text(README).splitlines()) <= 120
    assert set(DOCS) >= EXPECTED
    assert set(re.findall(r"\]\((\w+)\.md\)", text(DOCS["index"]))) == set(DOCS) - {"index"}
    assert set(re.findall(r"\]\(tasks/(\w+)\.md\)", text(DOCS["index"]))) == {page.stem for page in TASKS}
    for page in ("index", "systems"):
        assert set(re.findall(r"\]\(systems/(\w+)\.md\)", text(DOCS[page]))) == {page.stem for page in SYSTEMS}


@pytest.mark.parametrize("words", ["computed torque", "gravity compensation", "end effector", "tcp", "payload",
                                   "getting started", "troubleshooting", "faq", "impedance control", "inverse dynamics"])
def test_common_search_terms_occur_on_a_page(words):
    """The search of the site finds words only."""
    assert [page.stem for page in PAGES if re.search(rf"\b{words}\b", " ".join(text(page).lower().split()))]


RIDDLES = (
    "Point it at a robot", "machine code for this one robot", "bases that move", "loses its path with",
    "how it is built, and its words", "doubtful", "moves no mass: no forward", "says that you know",
    "to the last bit", "to look in from", "shows most of a robot", "stands at the first position", "foretold",
    "says little", "shown better", "the motion does not tell", "not quite its model", "are parted by",
    "none has failed", "stamp_stands", "stands for ever", "Files of before", "Robots that are there",
    "Touched robots", "who comes late", "from sluggish", "hangs on where", "harms no other", "the print has wrong",
    "is doubted",
)


def test_pages_and_help_avoid_unclear_phrases(capsys):
    """Each listed phrase has a plain substitute: validation set, errata, external forces, depends on."""
    from rnea_ros.cli import main

    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *PAGES)}
    for command in ([], *([name] for name in main.SUBCOMMANDS)):
        with pytest.raises(SystemExit):
            main.main([*command, "--help"])
        texts[" ".join(("rnea", *command))] = " ".join(capsys.readouterr().out.split())
    found = [(name, phrase) for name, text in texts.items() for phrase in RIDDLES if phrase in " ".join(text.split())]
    assert not found


def test_parameter_files_named_on_a_page_are_shown_there():
    named = [(page, name) for page in PAGES for name in set(re.findall(r"params_file:=([\w.]+)", text(page)))]
    assert len(named) >= 3
    for page, name in named:
        assert any(block.startswith(f"# {name}") for block in blocks("yaml", page)), f"{page.name}: {name}"


def test_node_pages_begin_with_a_quick_start_and_stay_short():
    for name in ("dynamics_node", "scaling_node", "query_node"):
        assert re.findall(r"^## (.*)", text(DOCS[name]), flags=re.MULTILINE)[0] == "Quick start"
        assert len(text(DOCS[name]).split()) < 2000


def test_number_of_python_blocks_per_page_is_as_expected():
    """A block without language marker would not be tested."""
    assert {page.stem: len(library(page)) for page in PAGES if library(page)} == {
        "README": 1, "library": 6, "planning": 4, "robot_file": 1, "identification": 1, "policies": 2, "optimise_motions": 1,
        "learn_dynamics": 2} | dict.fromkeys(
            (page.stem for page in SYSTEMS), 1)


@pytest.mark.parametrize("page", [page for page in PAGES if library(page)], ids=lambda page: page.stem)
def test_python_blocks_run_in_the_order_of_the_page(monkeypatch, page):
    monkeypatch.chdir(ROOT)
    shared: dict = {}
    with ExitStack() as stand_ins:
        for name, stand_in in {"torch": torch_stand_in, "jax": jax_stand_in}.items():
            if f"import {name}" in text(page) and not importlib.util.find_spec(name):
                stand_ins.enter_context(stand_in.installed(monkeypatch))
        for block in library(page):
            exec(compile(block, page.name, "exec"), shared)
    if page.stem in ("README", "library"):
        assert shared["tau"].shape == shared["tau_rate"].shape == (6,)
    if page.stem == "library":
        assert abs(shared["pushed"] - shared["tau"]).max() > 1.0


@pytest.mark.ros
def test_subscriber_examples_of_the_pages_run(capsys):
    messages = pytest.importorskip("rnea_msgs.msg")
    both = [block for page in PAGES for block in blocks("python", page) if "rnea_msgs" in block]
    assert len(both) == 2
    shared: dict = {}
    for block in both:
        exec(compile(block, "docs", "exec"), shared)
    shared["on_motion"](messages.ScaledMotion(joint_names=["a"], position=[1.0], effort=[2.0], phase=4, motion=3, delay=0.5,
                                              utilization=0.9, binding_limit="effort", binding_joint="a"))
    assert capsys.readouterr().out == ("motion 3 ended, 0.50 s late\n"
                                       "a: 1.0000 rad, feed forward 2.000 N m; at 90% of effort of a\n")
    shared["on_dynamics"](messages.JointDynamics(joint_names=["a"], effort=[1.5], effort_rate=[-2.0]))
    assert capsys.readouterr().out == "a: 1.500 N m, -2.000 N m/s\n"


def chosen_commands() -> list[Any]:
    """Return all `rnea` lines; for `make campaign` those that export a robot again, and `rnea margin`.

    test/export, test/controllers and test/trajectory/test_margin.py call the same commands.
    """
    lines = [line for line in commands() if line.startswith("rnea ")]
    again = [line for line in lines if "--shared" in line][1:] + [line for line in lines if line.startswith("rnea margin ")]
    return [pytest.param(line, marks=pytest.mark.campaign) if line in again else line for line in lines]


@pytest.mark.parametrize("line", chosen_commands())
def test_rnea_commands_of_the_pages_run(line, tmp_path, monkeypatch, capsys):
    from rnea_ros.cli import main

    words = [str(ROOT / word) if (ROOT / word).is_file() else word for word in shlex.split(line)[1:]]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # for processes that the command starts
    assert main.main(words) == 0, capsys.readouterr()
    assert capsys.readouterr().out.strip() or "-o" in words
    for word in ("torque.csv", "torque.png", "answer.json", "plan.csv", "plan.png", "fast.csv"):
        assert (word in words) == (tmp_path / word).is_file()


# Tests of their subjects run these examples, with fewer samples, and compare their numbers.
TESTED_EXAMPLES = ("five_bar", "sensitivities", "time_effort_pr")


@pytest.mark.parametrize("line", [
    pytest.param(line, marks=pytest.mark.campaign) if Path(line).stem in TESTED_EXAMPLES else line
    for line in commands() if line.startswith("python examples/")])
def test_examples_of_the_pages_run(line, tmp_path, monkeypatch, capsys):
    (script,) = shlex.split(line)[1:]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script])
    runpy.run_path(str(ROOT / script), run_name="__main__")
    assert capsys.readouterr().out.strip() or list(tmp_path.iterdir())


def test_examples_and_pages_import_public_names_only():
    """Only rnea_ros itself, rnea_ros.sim (robots in MuJoCo) and rnea_ros.interop are public packages."""
    pages = {path: "\n".join(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))
             for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
    pages |= {path: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")}
    imported = {(path.name, module) for path, code in pages.items()
                for module in re.findall(r"^\s*(?:from|import) (rnea_ros[\w.]*)", code, re.MULTILINE)}
    assert len(imported) > 20
    public = ("rnea_ros.sim", "rnea_ros.interop")
    assert not {found for found in imported if found[1] != "rnea_ros" and not found[1].startswith(public)}


def public_names() -> set[str]:
    """Names of the package, the members of its classes, and the parameters of all of them."""
    import rnea_ros

    found = set(rnea_ros.__all__)
    for public in (getattr(rnea_ros, name) for name in rnea_ros.__all__):
        members = [getattr(public, name) for name in dir(public)] if isinstance(public, type) else []
        found |= {*dir(public), *getattr(public, "__annotations__", ())}
        for function in filter(callable, (public, *members)):
            with suppress(TypeError, ValueError):
                found |= set(inspect.signature(function).parameters)
    return found


def test_functions_named_on_the_library_page_are_public():
    named = re.findall(r"`([a-z_]+)(?:\([^`]*\)|=[^`]*)?`", prose(DOCS["library"]))
    assert len(named) > 20 and not set(named) - public_names()


def test_examples_are_short():
    """Each example has less than 80 lines."""
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "examples").glob("*.py")}
    assert not {name for name, length in lengths.items() if length >= 80}


def test_every_example_of_the_pages_exists():
    named = set(re.findall(r"`(?:examples/)?([a-z_]+\.py)`", everything()))
    assert len(named) >= 10 and all((ROOT / "examples" / name).is_file() for name in named)


@pytest.mark.parametrize("page", ["query_node", "systems"])
def test_documented_services_equal_the_offered_services(page):
    from rnea_ros.query import REQUESTS

    named = set(re.findall(r"`~/((?:compute|get)_[a-z_]+)`", text(DOCS[page])))
    assert named == {"get_tree", *(question.service for question in REQUESTS.values())}
    assert set(re.findall(r"`~/((?:compute|get)_[a-z_]+)`", everything())) == named


def test_documented_commands_equal_those_of_the_command_line(capsys):
    from rnea_ros.cli import main

    with pytest.raises(SystemExit):
        main.main(["--help"])
    assert set(re.findall(r"^\| `rnea ([\w-]+)` \|", text(DOCS["command_line"]), flags=re.MULTILINE)) == set(
        re.findall(r"^    ([\w-]+)(?:  |$)", capsys.readouterr().out, flags=re.MULTILINE))


def test_classes_and_functions_on_the_systems_page_exist():
    """A name after a class, as in `Robot.dynamics`, `energy`, may be a method of that class."""
    import rnea_ros

    cells = [line.split("|")[2] for line in text(DOCS["systems"]).splitlines() if line.startswith("| ")][1:]
    assert len(cells) >= 14
    for cell in cells:
        owners: list[object] = [rnea_ros]
        for name in re.findall(r"`([\w.]+)`", cell):
            found = next(filter(None, (resolved(name, owner) for owner in owners)), None) or imported(name)
            assert found is not None, name
            if isinstance(owner := getattr(rnea_ros, name.split(".")[0], None), type):
                owners.append(owner)


def resolved(name: str, owner: object) -> object:
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


def imported(name: str) -> object:
    """Return a module of the package or a name in one; None if neither exists."""
    module, _, last = name.rpartition(".")
    for path, attribute in ((name, ""), (module, last)):
        try:
            found = importlib.import_module(f"rnea_ros.{path}".rstrip("."))
        except ModuleNotFoundError:
            continue
        return getattr(found, attribute, None) if attribute else found
    return None


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("make")])
def test_make_targets_of_the_pages_exist(line):
    done = subprocess.run([*shlex.split(line), "--dry-run"], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("ros2 launch")])
def test_launch_lines_of_the_pages_use_existing_files_and_arguments(line):
    _ros2, _launch, package, file, *arguments = shlex.split(line)
    assert package == "rnea_ros"
    text = (ROOT / "launch" / file).read_text()
    for other in ("scaling.launch.py", "dynamics.launch.py"):  # arguments are passed on
        if other in text:
            text += (ROOT / "launch" / other).read_text()
    for argument in arguments:
        assert re.search(rf'DeclareLaunchArgument\(\s*"{argument.split(":=")[0]}"', text), argument


def test_documented_topics_exist_in_the_nodes():
    nodes = ROOT / "rnea_ros" / "nodes"
    own = ("node", "served_robot", "base_sources", "controller_outputs", "external_effort", "markers", "motion_source")
    names = ("common/robot_description", "common/base", "dynamics/messages", "scaling/node", "scaling/controller",
             "scaling/publishers", *(f"dynamics/{name}" for name in own))
    source = "".join((nodes / f"{name}.py").read_text() for name in names)
    topics = re.findall(r"^\| `([~/a-z_]+)` \| [a-z_]+/[A-Z]", everything(), flags=re.MULTILINE)
    assert len(topics) == 46
    for topic in topics:
        # a suffix names the link where there are several platforms
        assert f'"{topic}"' in source or f'"{topic}{{suffix}}"' in source, topic


NAME_WORDS = {"joint": "JOINT", "any joint": "JOINT", "link": "LINK", None: "NAME"}


def robot_file_keys():
    """Return a table of the keys at the top, then one for each section."""
    properties = SCHEMA["properties"]
    alone = {key: entry for key, entry in properties.items() if entry.get("type") != "object"}
    parts = [_key_table(_rows(alone, ""))]
    parts += [f"### {key}\n\n{entry['description']}\n\n{_key_table(_rows(_inside(entry), _entry(entry)))}"
              for key, entry in properties.items() if key not in alone]
    return "\n".join(parts)


def _key_table(rows):
    lines = [f"| `{key}` | {unit} | {text} |" for key, unit, text in rows]
    return "\n".join(["| key | unit | meaning |", "|---|---|---|", *lines, ""])


def _entry(schema):
    """"Return "JOINT." for a mapping from names of joints."""
    return f"{NAME_WORDS[schema.get('propertyNames', {}).get('format')]}." if "properties" not in schema else ""


def _inside(schema):
    found = schema if "properties" in schema else schema["additionalProperties"]
    return found.get("properties", {})


def _rows(properties, prefix):
    for key, entry in properties.items():
        words, _, unit = entry["description"].rstrip(".]").partition(" [")
        yield prefix + key, unit, f"{words}." + _choice(entry)
        if entry.get("not") != {} and (inside := _inside(entry) if "object" in entry.get("type", ()) else {}):
            yield from _rows(inside, f"{prefix}{key}.{_entry(entry)}")


def _choice(schema):
    words = [f"`{word}`" for word in schema.get("enum", [])]
    return f" {', '.join(words)}." if len(words) > 1 else ""


def robot_file_table() -> tuple[Path, str]:
    return DOCS["robot_file"], f"{ROBOT_FILE_MARK}\n\n{robot_file_keys()}{END}"


def test_documented_robot_file_keys_equal_the_schema():
    page, table = robot_file_table()
    assert table in text(page), "run: python test/project/test_readme.py --update"


@pytest.mark.parametrize("block", blocks("yaml", DOCS["robot_file"]), ids=lambda block: block.splitlines()[0][:40])
def test_robot_files_of_the_page_are_valid(block, tmp_path):
    """A comment names the URDF of each file; the file of the platform is an excerpt."""
    from rnea_ros import load
    from rnea_ros.model import robot_file

    (tmp_path / "page.robot.yaml").write_text(block, encoding="utf-8")
    urdf = re.match(r"# beside (\S+\.urdf)(.*)\n", block)
    if urdf and not urdf[2]:
        load(ROOT / urdf[1], tmp_path / "page.robot.yaml", backend="python")
    else:
        robot_file.read(tmp_path / "page.robot.yaml")


@pytest.mark.ros
def test_documented_parameter_tables_equal_those_of_the_nodes():
    pytest.importorskip("rclpy")
    for page, table in parameter_tables().items():
        assert table in text(page), "run: python test/project/test_readme.py --update"


def test_pictures_and_links_of_the_pages_exist():
    pictures = 0
    for page in PAGES:
        for picture, target in re.findall(r"(!?)\[[^]]*\]\(([^)\s]+)\)", prose(page)):
            if target.startswith("https://"):
                continue
            file, _, anchor = target.partition("#")
            found = page.parent / file if file else page
            assert found.is_file(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(found), f"{page.name}: {target}"
            pictures += bool(picture)
    assert pictures >= 9


def anchors(page: Path) -> set[str]:
    """Return the anchors of headings, as hosts of Markdown make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- architecture and project -----------------------------------------------------------------------------------------


def test_files_named_on_the_pages_exist():
    for page in PAGES:
        for name in re.findall(r"`([\w.]+/[\w./]*)`", text(page)):
            assert (ROOT / name).exists() or (ROOT / "rnea_ros" / name).exists(), f"{page.name}: {name}"


def test_names_in_each_step_of_the_architecture_exist_in_its_files():
    """Three ways of ten steps; each name in a step stands in a file of that step, as a word."""
    steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |^#|\Z)", text(DOCS["architecture"]), flags=re.MULTILINE | re.DOTALL)
    assert len(steps) == 30
    for step in steps:
        quoted = re.findall(r"`([^`]+)`", step)
        files = [name for name in quoted if name.endswith(".py")]
        source = "".join((ROOT / "rnea_ros" / name).read_text(encoding="utf-8") for name in files)
        assert files, step
        for name in set(quoted) - set(files):
            for word in name.split("."):
                assert re.search(rf"\b{word}\b", source), f"{name}: {step}"


def test_each_walkthrough_of_the_architecture_visits_a_file_once():
    for way in re.split(r"^## ", text(DOCS["architecture"]), flags=re.MULTILINE)[2:]:
        steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |\n\n|\Z)", way, flags=re.MULTILINE | re.DOTALL)
        visited = [name for step in steps for name in dict.fromkeys(re.findall(r"`([\w/]+\.py)`", step))]
        assert len(steps) == 10 and len(set(visited)) == len(visited)


def test_packages_of_the_architecture_page_equal_the_layers():
    from test_layers import GROUND, LAYERS, ROBOTS

    faces = {"__init__": "the public face"}
    groups = {"robots and below": ROBOTS, "ground": GROUND}
    special = {(): "nothing", ("*",): "all", ("[!d]*",): "all but demo", ("[!n]*",): "all but nodes"}

    def words(room: str, patterns: tuple[str, ...]) -> str:
        named, left = [], set(patterns) - {room}
        for name, group in groups.items():
            if set(group) <= left:
                named.append(name)
                left -= set(group)
        named += [faces.get(pattern, pattern.removesuffix("/*")) for pattern in left]
        return ", ".join(sorted(named)) or "nothing"

    expected = [f"| {room.removesuffix('/*').replace('*', 'the rest')} | {special.get(patterns) or words(room, patterns)} |"
                for room, patterns in LAYERS.items()]
    rows = re.findall(r"^(\| [\w/ ]+ \| [^|]* \|) [^|]+ \|$", text(DOCS["architecture"]), flags=re.MULTILINE)
    assert rows[1:] == expected


def test_glossary_is_sorted_with_one_sentence_per_word():
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text(DOCS["glossary"]), flags=re.MULTILINE)[1:]
    words = [word.lower() for word, _ in rows]
    assert words == sorted(set(words)) and len(words) >= 40
    assert all(meaning.endswith(".") for _, meaning in rows)


def test_ci_runs_the_commands_and_pythons_of_the_readme():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with ROS 2")
    assert "make test" in (ROOT / ".ci/run").read_text() and "make test" in blocks("bash", README)[0].splitlines()
    (job,) = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    *before, last = [step["run"] for step in job["steps"] if "run" in step]
    assert last == ".ci/run" and all(run.startswith("sudo apt-get") for run in before)
    first, last = re.search(r"Python (3\.\d+) to (3\.\d+)", text(README)).groups()
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(int(first[2:]), int(last[2:]) + 1)]


if __name__ == "__main__" and "--update" in sys.argv:
    sys.path.insert(0, str(ROOT))
    for page, table in [*parameter_tables().items(), robot_file_table()]:
        before, _, after = page.read_text(encoding="utf-8").partition(table.partition("\n")[0])
        page.write_text(before + table + after.partition(END)[2], encoding="utf-8")

"""Everything that the README shows is run: Python as it stands, `rnea` lines for real, the rest checked for what it names.

``python test/test_readme.py --update`` writes the parameter table into the README.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
MARK = "<!-- parameters: written by test/test_readme.py --update -->"
SCALING_MARK = MARK.replace("parameters", "scaling parameters")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), flags=re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("bash") for line in block.splitlines() if line.strip()]
    assert len(lines) >= 8
    return lines


def parameter_tables() -> dict[str, str]:
    from rnea_ros.nodes.parameters import SCALING, TABLE, markdown_table

    return {mark: f"{mark}\n\n{markdown_table(entries)}" for mark, entries in ((MARK, TABLE), (SCALING_MARK, SCALING))}


def test_python_blocks_run_in_the_order_of_the_page(monkeypatch):
    monkeypatch.chdir(ROOT)
    shared: dict = {}
    library = [block for block in blocks("python") if "rnea_msgs" not in block]
    assert len(library) >= 2
    for block in library:
        exec(compile(block, "README.md", "exec"), shared)
    assert shared["tau"].shape == shared["tau_rate"].shape == (6,)
    assert abs(shared["pushed"] - shared["tau"]).max() > 1.0


@pytest.mark.ros
def test_the_subscriber_of_the_page_understands_the_message(capsys):
    messages = pytest.importorskip("rnea_msgs.msg")
    both = [block for block in blocks("python") if "rnea_msgs" in block]
    assert len(both) == 2
    shared: dict = {}
    for block in both:
        exec(compile(block, "README.md", "exec"), shared)
    shared["on_motion"](messages.ScaledMotion(joint_names=["a"], position=[1.0], effort=[2.0], phase=4, motion=3, lateness=0.5,
                                              use=0.9, binding_limit="effort", binding_joint="a"))
    assert capsys.readouterr().out == ("motion 3 ended, 0.50 s late\n"
                                       "a: 1.0000 rad, feed forward 2.000 N m; at 90% of effort of a\n")
    shared["on_dynamics"](messages.JointDynamics(joint_names=["a"], effort=[1.5], effort_rate=[-2.0]))
    assert capsys.readouterr().out == "a: 1.500 N m, -2.000 N m/s\n"


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("rnea ")])
def test_rnea_commands_run(line, tmp_path):
    words = [str(ROOT / word) if (ROOT / word).is_file() else word for word in shlex.split(line)[1:]]
    done = subprocess.run([sys.executable, "-m", "rnea_ros.cli", *words], cwd=tmp_path, capture_output=True, text=True,
                          env=_environment(), timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() or "-o" in words
    for word in ("torque.csv", "torque.png", "answer.json", "plan.csv", "plan.png", "fast.csv"):
        assert (word in words) == (tmp_path / word).is_file()


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("python ")])
def test_examples_run(line, tmp_path):
    (script,) = shlex.split(line)[1:]
    done = subprocess.run([sys.executable, str(ROOT / script)], cwd=tmp_path, capture_output=True, text=True,
                          env=_environment(), timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_example_of_the_page_exists():
    named = set(re.findall(r"`(?:examples/)?([a-z_]+\.py)`", README.read_text()))
    assert named and all((ROOT / "examples" / name).is_file() for name in named)


def test_every_service_of_the_page_is_served():
    source = (ROOT / "rnea_ros/nodes/queries.py").read_text()
    named = set(re.findall(r"`~/((?:compute|get)_[a-z_]+)`", README.read_text()))
    assert named == set(re.findall(r'"((?:compute|get)_[a-z_]+)"', source))


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("make")])
def test_make_targets_exist(line):
    done = subprocess.run([*shlex.split(line), "--dry-run"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("ros2 launch")])
def test_launch_lines_name_files_and_arguments_that_exist(line):
    _ros2, _launch, package, file, *arguments = shlex.split(line)
    assert package == "rnea_ros"
    text = (ROOT / "launch" / file).read_text()
    for other in ("scaling.launch.py", "dynamics.launch.py"):  # arguments are handed on
        if other in text:
            text += (ROOT / "launch" / other).read_text()
    for argument in arguments:
        assert re.search(rf'DeclareLaunchArgument\(\s*"{argument.split(":=")[0]}"', text), argument


def test_colcon_line_builds_the_two_packages_of_this_repository():
    (line,) = [line for line in commands() if line.startswith("colcon")]
    paths = [word.removeprefix("src/rnea_ros") for word in shlex.split(line) if word.startswith("src/")]
    assert [(ROOT / path.lstrip("/") / "package.xml").is_file() for path in paths] == [True, True]


def test_topics_of_the_page_are_the_nodes():
    nodes = ROOT / "rnea_ros" / "nodes"
    names = ("dynamics_node", "description", "speed_scaling", "scaling_node", "scaling_messages")
    source = "".join((nodes / f"{name}.py").read_text() for name in names)
    topics = re.findall(r"^\| `([~/a-z_]+)` \| [a-z_]+/", README.read_text(), flags=re.MULTILINE)
    assert len(topics) == 18
    for topic in topics:
        assert f'"{topic}"' in source, topic


@pytest.mark.ros
def test_parameter_table_is_that_of_the_node():
    pytest.importorskip("rclpy")
    for table in parameter_tables().values():
        assert table in README.read_text(), "run: python test/test_readme.py --update"


def test_pictures_exist():
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README.read_text())
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT)}


if __name__ == "__main__" and "--update" in sys.argv:
    sys.path.insert(0, str(ROOT))
    for mark, table in parameter_tables().items():
        before, _, after = README.read_text().partition(mark)
        README.write_text(before + table + "</details>" + after.partition("</details>")[2])

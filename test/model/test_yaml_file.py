"""YAML files from anywhere: what they cannot do to whoever reads them, in every reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnea_ros import ClosedLoopRobot, ElasticRobot, ModelError, Robot, SpringRobot
from rnea_ros.model import yaml_file
from rnea_ros.recordings import limits_file
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
ARM = Robot.from_urdf(arm({}, {"axis": (0, 1, 0)}), backend="python")
FIVE_BAR = ROOT / "config" / "five_bar.loops.yaml"
READERS = {"loops": lambda path: ClosedLoopRobot.from_urdf(ROOT / "urdf" / "five_bar.urdf", path, backend="python"),
           "elastic joints": lambda path: ElasticRobot(ARM, path), "springs": lambda path: SpringRobot(ARM, path),
           "limits": lambda path: limits_file.read(path, ARM)}
each_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi")) + "active: *i\nloops: *i\n"


@each_reader
@pytest.mark.parametrize(("text", "said"), [
    (BOMB, "aliases"), ("a: &a [*a]\nloops: *a", "aliases"), ("# " + "x" * yaml_file.MAX_BYTES, "more than 1000000 bytes"),
    ("[" * 50_000, "is not YAML"), ("a: !!python/object/apply:os.system [ls]", "is not YAML"), ("a: [1", "is not YAML"),
    ("loops: {}\nloops: {}", "'loops' stands twice"), (b"\xff\xfe\x00", "is not YAML"), ("a: " + "9" * 10_000, "is not YAML")])
def test_what_is_refused(tmp_path, read, text, said):
    file = tmp_path / "given.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelError, match="(?s)given.yaml.*" + said) as refused:
        read(file)
    assert len(str(refused.value)) < 1000


@each_reader
@pytest.mark.parametrize("path", ["missing.yaml", "", "/", "a\0b", 0, 7.5])
def test_what_is_no_file(read, path):
    with pytest.raises(ModelError, match="cannot be read"):
        read(path)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("link: left_forearm,", "link: [left_forearm],", r"link \['left_forearm'\] does not exist"),
    ("[left_motor, right_motor]", "[[left_motor], right_motor]", "does not exist"),
    ("left_motor: 2.0", "left_motor: yes", "joint 'left_motor' is True; a finite number"),
    ("left_motor: 2.0", "left_motor: .inf", "a finite number"), ("left_motor: 2.0", "left_motor: two", "a finite number"),
    ("[0.5, 0, 0]", "[true, 0, 0]", "three finite numbers"), ("[0.5, 0, 0]", "123", "three finite numbers")])
def test_loops_are_told_what_is_wrong(tmp_path, old, new, said):
    text = FIVE_BAR.read_text()
    assert old in text
    (tmp_path / "given.yaml").write_text(text.replace(old, new))
    with pytest.raises(ModelError, match=said):
        READERS["loops"](tmp_path / "given.yaml")


def test_numbers_without_a_dot_are_numbers(tmp_path):
    """YAML 1.1 takes them for strings."""
    text = FIVE_BAR.read_text().replace("left_motor: 2.0", "left_motor: 20e-1").replace("[0.5, 0, 0]", "[5e-1, 0, 0]")
    (tmp_path / "given.yaml").write_text(text)
    (expected, found) = (READERS["loops"](path).start for path in (FIVE_BAR, tmp_path / "given.yaml"))
    assert found.tolist() == expected.tolist()

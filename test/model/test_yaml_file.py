"""Hostile YAML files are rejected by every reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnea_ros import ModelError, Robot, load
from rnea_ros.model import yaml_file
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
ARM = Robot.from_urdf(arm({}, {"axis": (0, 1, 0)}), backend="python")
FIVE_BAR = ROOT / "urdf" / "five_bar.robot.yaml"
READERS = {"loops": lambda path: load(ROOT / "urdf" / "five_bar.urdf", path, backend="python"),
           "elastic joints": lambda path: Robot(ARM, path),
           "robot file": lambda path: load(ROOT / "urdf" / "five_bar.urdf", path)}
each_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi")) + "active: *i\nloops: *i\n"


@each_reader
@pytest.mark.parametrize(("text", "said"), [
    (BOMB, "alias \\*"), ("a: &a [*a]\nloops: *a", "line 1, column 8: alias \\*a is not supported"),
    ("# " + "x" * yaml_file.MAX_BYTES, "more than 1000000 bytes"),
    ("a: " + "x" * 10_000_000, "more than 1000000 bytes"), ("[" * 50_000, "line 1, column 34: more than 32"),
    ("a:\n" + "".join(f"{' ' * k}- \n" for k in range(1, 1000)), "line 3., column 3.: more than 32 lists"),
    ("{a: " * 1000, "line 1, column [0-9]+: more than 32 lists"), ("? " * 1000, "line 1, column [0-9]+: more than 32 lists"),
    ("a: !!python/object/apply:os.system [ls]", "is not YAML"), ("a: [1", "is not YAML"),
    ("loops: {}\nloops: {}", "line 2, column 1: key 'loops' occurs twice; remove one"), (b"\xff\xfe\x00", "is not YAML"),
    (bytes(range(256)), "is not YAML"), (b"\x89PNG\r\n\x1a\n\x00\x00", "is not YAML"),
    ("a: " + "9" * 10_000, "is not YAML|is not known"), ("? [1]\n: 2", "is not YAML"), ("--- 1\n--- 2", "is not YAML")])
def test_unsupported_yaml_is_rejected_with_its_position(tmp_path, read, text, said):
    file = tmp_path / "given.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelError, match="(?s)given.yaml.*" + said) as refused:
        read(file)
    assert len(str(refused.value)) < 1000


@each_reader
@pytest.mark.parametrize("path", ["missing.yaml", "", "/", "a\0b", 0, 7.5])
def test_missing_and_binary_files_are_rejected(read, path):
    with pytest.raises(ModelError, match="cannot be read"):
        read(path)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("link: left_forearm,", "link: [left_forearm],", r"first.link is \['left_forearm'\]; the name of a link is needed"),
    ("[left_motor, right_motor]", "[[left_motor], right_motor]", r"active.0 is \['left_motor'\]; the name of a joint"),
    ("left_motor: 2.0", "left_motor: yes", "start.left_motor is True; a finite number"),
    ("left_motor: 2.0", "left_motor: .inf", "a finite number"), ("left_motor: 2.0", "left_motor: two", "a finite number"),
    ("[0.5, 0, 0]", "[true, 0, 0]", r"first.xyz is \[True, 0, 0\]; three finite numbers"),
    ("[0.5, 0, 0]", "123", "three finite numbers")])
def test_invalid_loop_entries_are_reported(tmp_path, old, new, said):
    text = FIVE_BAR.read_text()
    assert old in text
    (tmp_path / "given.yaml").write_text(text.replace(old, new))
    with pytest.raises(ModelError, match=said):
        READERS["loops"](tmp_path / "given.yaml")


def test_numbers_with_exponents_without_a_dot_are_numbers(tmp_path):
    """YAML 1.1 reads them as strings."""
    text = FIVE_BAR.read_text().replace("left_motor: 2.0", "left_motor: 20e-1").replace("[0.5, 0, 0]", "[5e-1, 0, 0]")
    (tmp_path / "given.yaml").write_text(text)
    (expected, found) = (READERS["loops"](path).start for path in (FIVE_BAR, tmp_path / "given.yaml"))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("text", "value"), [
    ("4e-3", 0.004), ("-1E5", -1e5), (".5", 0.5), ("5.", 5.0), ("+7", 7), ("0", 0), ("-.inf", -float("inf")), ("1e3", 1000.0),
    ("010", "010"), ("1:30", "1:30"), ("1_000", "1_000"), ("0x10", "0x10"), ("1e", "1e"), (".", "."), ("-", [None])])
def test_numbers_are_read_as_in_yaml_1_2(tmp_path, text, value):
    (tmp_path / "given.yaml").write_text(f"a:\n  {text}\n")
    found = yaml_file.read(tmp_path / "given.yaml", "").content["a"]
    assert found == value and type(found) is type(value)


def test_marks_are_the_positions_of_keys_and_entries(tmp_path):
    (tmp_path / "given.yaml").write_text("# a note\nouter:\n  inner: {deep: [1, 2]}\n  'quoted': x\n")
    marks = yaml_file.read(tmp_path / "given.yaml", "").marks
    assert marks == {(): (2, 1), ("outer",): (2, 1), ("outer", "inner"): (3, 3), ("outer", "inner", "deep"): (3, 11),
                     ("outer", "inner", "deep", 0): (3, 18), ("outer", "inner", "deep", 1): (3, 21),
                     ("outer", "quoted"): (4, 3)}


def test_merge_key_is_an_ordinary_key(tmp_path):
    (tmp_path / "given.yaml").write_text("<<: {a: 1}\na: 2\n")
    assert yaml_file.read(tmp_path / "given.yaml", "").content == {"<<": {"a": 1}, "a": 2}


def test_written_files_are_read_unchanged(tmp_path):
    content = {"version": 1, "b": {"c": [1.5, 0, -2e-7], "d": {"e": "1:30", "f": True, "g": "yes", "Ä": "5"}}, "a": {}}
    (tmp_path / "given.yaml").write_text(text := yaml_file.text(content))
    assert yaml_file.read(tmp_path / "given.yaml", "").content == content
    assert text.startswith("version: 1\nb:\n  c: [1.5, 0, -2.0e-07]\n  d: {")

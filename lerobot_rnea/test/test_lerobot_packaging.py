"""Packaging of lerobot_rnea, and the command that edits checkpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lerobot_rnea import checkpoint

ROOT = Path(__file__).resolve().parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def value(name):
    return re.search(rf'^{name} = "([^"]*)"$', PROJECT, re.M)[1]


def test_distribution_has_the_name_prefix_that_lerobot_discovers():
    assert value("name").startswith("lerobot_robot_")
    assert f'py-modules = ["{value("name")}"]' in PROJECT and (ROOT / f"{value('name')}.py").is_file()


def test_version_and_license_match_the_main_package():
    manifest = (ROOT.parent / "package.xml").read_text(encoding="utf-8")
    assert f"<version>{value('version')}</version>" in manifest
    assert (ROOT / "LICENSE").read_bytes() == (ROOT.parent / "LICENSE").read_bytes()


def test_checkpoint_command_adds_processor_steps_once_and_removes_them(tmp_path, capsys):
    originals = {}
    for name in checkpoint.FILES:
        originals[name] = {"name": "x", "steps": [{"registry_name": "device_processor", "config": {}}, {
            "registry_name": "normalizer", "config": {}, "state_file": "step_1.safetensors"}]}
        (tmp_path / name).write_text(json.dumps(originals[name]))
    for _ in range(2):
        assert checkpoint.main([str(tmp_path)]) == 0
    before, after = (json.loads((tmp_path / name).read_text())["steps"] for name in checkpoint.FILES)
    step = {"registry_name": "rnea_protect_chunks", "config": {}}
    assert before == [step, *originals[checkpoint.FILES[0]]["steps"]]
    assert after == [*originals[checkpoint.FILES[1]]["steps"], step]
    assert checkpoint.main(["--remove", str(tmp_path)]) == 0
    assert {name: json.loads((tmp_path / name).read_text()) for name in checkpoint.FILES} == originals
    assert capsys.readouterr().out.startswith("added to")


def test_checkpoint_command_rejects_folders_without_processor_files(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        checkpoint.main([str(tmp_path)])
    assert ended.value.code == 2 and "has no policy_preprocessor.json" in capsys.readouterr().err

"""Common behaviour of commands: JSON and text, tables, progress, checks of outputs, completion; `rnea doctor`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rnea_ros.cli import doctor, inputs, output
from rnea_ros.cli.main import SUBCOMMANDS, main
from rnea_ros.cli.output import CommandResult, format_table, print_outcome, to_json
from rnea_ros.errors import MissingPackage
from rnea_ros.planning import ipopt
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
STANFORD, RR = str(ROOT / "urdf" / "stanford.urdf"), str(ROOT / "urdf" / "rr.urdf")
MOTION, TABLE = str(ROOT / "test" / "data" / "stanford_motion.csv"), str(ROOT / "test" / "data" / "stanford_table.csv")
AS_JSON = {
    "model": ([RR], {"joints", "links", "kind"}),
    "check": ([STANFORD], {"robot", "joints", "warnings"}),
    "robot-file": ([str(ROOT / "urdf" / "ur5.robot.yaml")], {"notes", "content"}),
    "from-dh": ([TABLE], {"convention", "urdf"}),
    "torque": ([STANFORD, MOTION, "-o", "out.csv"], {"samples", "limits", "files"}),
    "query": ([STANFORD, "torque", "--state", MOTION], {"model_id", "effort_rate"}),
    "doctor": ([], {"well", "backend", "packages"}),
}


@pytest.mark.parametrize("command", AS_JSON)
def test_each_command_prints_its_results_as_json(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, keys = AS_JSON[command]
    assert main([command, *words, "--json"]) == 0
    assert keys <= json.loads(capsys.readouterr().out).keys()


def test_every_command_offers_json(capsys):
    for command in SUBCOMMANDS:
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "--json" in capsys.readouterr().out, command


def test_json_writes_nan_and_infinity_as_null(capsys):
    data = {"a": np.array([1.0, np.nan]), "b": (np.float64(np.inf), np.int64(2)), "c": Path("x"), "d": {"e": None}}
    assert json.loads(to_json(data)) == {"a": [1.0, None], "b": [None, 2], "c": "x", "d": {"e": None}}
    assert print_outcome(CommandResult("words", data, 1)) == 1 and capsys.readouterr().out == "words\n"


@pytest.mark.parametrize("width", [30, 44, 60, None])
def test_tables_fit_the_width_of_the_terminal(width):
    row = ("1", "shoulder_lift_joint", "turns about its axis", "-1.5708")
    lines = format_table(("j", "joint", "says", "theta"), [row], "><<>", width)
    assert width is None or max(map(len, lines)) <= width
    assert all(line.split()[0] in "j1" and line.endswith(("theta", "-1.5708")) for line in lines)
    assert ("…" in lines[1]) == (width in (30, 44))


@pytest.mark.parametrize("command, words", [
    ("plan", [RR, "--from", "0", "0", "--to", "1", "1", "-o"]), ("from-dh", [TABLE, "-o"]),
    ("excite", [STANFORD, "-o", "out.csv", "--trajectory"]), ("query", [STANFORD, "torque", "--state", MOTION, "-o"]),
    ("payload", [STANFORD, MOTION, "--link", "link6", "-o"]), ("torque", [STANFORD, MOTION, "-o"]),
])
def test_output_paths_are_checked_before_the_computation(command, words, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ipopt, "solve", lambda *args: pytest.fail("it worked first"), raising=False)
    monkeypatch.setattr(inputs, "read_recording", lambda *args: pytest.fail("it worked first"))
    assert main([command, *words, "no/such/file"]) == 2
    assert "no such folder: mkdir -p no/such" in capsys.readouterr().err


@pytest.mark.parametrize("command, words", [("gait", []), ("identify", [STANFORD, MOTION]), ("export", [STANFORD])])
def test_output_folders_that_are_files_are_rejected(command, words, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main([command, *words, "-o", str(tmp_path / "file")]) == 2
    assert "cannot be written into: it is a file" in capsys.readouterr().err


def test_long_work_reports_progress(monkeypatch, capsys):
    monkeypatch.setattr(output, "QUIET_S", -1.0)
    monkeypatch.setattr(output, "INTERVAL_S", 0.001)
    said, deadline = "", time.monotonic() + 60.0
    with output.show_working("thinking"):
        while "thinking: 0 s" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "thinking: 0 s" in said


def test_errors_suggest_the_next_command(tmp_path, monkeypatch, capsys):
    (tmp_path / "arm.urdf").write_text(arm({}))
    (tmp_path / "wrong.yaml").write_text("version: 1\nlimits: {elbow: {max_effort: 1.0}}\n")
    assert main(["check", str(tmp_path / "arm.urdf"), "--robot-file", str(tmp_path / "wrong.yaml")]) == 2
    assert f"next: `rnea robot-file {tmp_path / 'wrong.yaml'} --urdf {tmp_path / 'arm.urdf'}`" in capsys.readouterr().err

    def missing(*_, **__):
        raise MissingPackage("this needs that", "plot", "leave it out")

    monkeypatch.setattr(inputs, "load_robot", missing)
    assert main(["check", RR]) == 2
    assert "'.[plot]' in a clone of rnea_ros, or leave it out\nnext: `rnea doctor`" in capsys.readouterr().err
    monkeypatch.setattr("rnea_ros.cli.main.subcommand", missing)  # packages are imported before arguments are parsed
    assert main(["demo"]) == 2
    assert capsys.readouterr().err.startswith("rnea demo: this needs that")
    with pytest.raises(SystemExit):
        main(["torqe"])
    assert "did you mean 'torque'?" in capsys.readouterr().err


@pytest.mark.parametrize("line, offered", [
    ("rnea tor", {"torque "}), (f"rnea query {RR} ene", {"energy "}),
    ("rnea torque --format ", {"parquet", "csv", "mcap"}),
])
def test_shell_completion_offers_commands_and_options(line, offered, tmp_path):
    pytest.importorskip("argcomplete")
    words = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9",
             "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "found")}
    subprocess.run([sys.executable, "-m", "rnea_ros.cli.main"], cwd=ROOT, env={**os.environ, **words}, check=True, timeout=240)
    assert set((tmp_path / "found").read_text().split("\n")) == offered


def test_doctor_reports_missing_packages(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "installed", lambda package, module="": "" if package == "mujoco" else "1.0")
    monkeypatch.setattr(doctor, "ros_2", lambda there: f"asked, {there}")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "ROS 2: asked, True" in text
    assert text.endswith("for what is missing:\n  mujoco: pip install '.[sim]' in a clone of rnea_ros\n")
    monkeypatch.setattr(doctor, "self_test", lambda: ("llvm", 1e-3))
    assert main(["doctor"]) == 1 and "FAILED" in capsys.readouterr().out


def test_doctor_names_missing_libraries_that_qt_needs(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "installed", lambda package, module="": "1.0")
    monkeypatch.setattr(doctor, "ros_2", lambda there: "")
    absent = {"libxcb-cursor.so.0"}
    monkeypatch.setattr(doctor, "loading_error", lambda library: "cannot open" if library in absent else "")
    assert main(["doctor"]) == 0 and "sudo apt install libxcb-cursor0\n" in capsys.readouterr().out
    absent.clear()
    assert main(["doctor"]) == 0 and "window: Qt can open windows on X11" in capsys.readouterr().out

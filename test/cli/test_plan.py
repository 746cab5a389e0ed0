"""`rnea plan`: planned motions, options, error messages and progress."""

from __future__ import annotations

import csv
import re
import time

import numpy as np
import pytest

from rnea_ros.cli import main, output
from rnea_ros.cli.motions import BLOCKS
from support.planning_cases import ROOT, RR_OPTIMUM, robot

RR = str(ROOT / "urdf" / "rr.urdf")
ENDS = ["--from", "0", "-2", "--to", "1", "-1"]


def table(path) -> dict[str, np.ndarray]:
    """Return the blocks (samples, n) and t of a CSV."""
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    numbers = np.array(rows, dtype=float)
    found = {block: numbers[:, [k for k, name in enumerate(header) if re.fullmatch(rf"{block}_joint\d", name)]]
             for block in BLOCKS}
    return found | {"t": numbers[:, header.index("t")]}


def run(tmp_path, *words, ends=ENDS):
    out = tmp_path / "plan.csv"
    return main.main(["plan", RR, *ends, "-o", str(out), *map(str, words)]), out


def test_default_plan_of_the_thesis_arm_is_close_to_its_optimum(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plan.png"
    code, out = run(tmp_path, "--plot", picture)
    said = capsys.readouterr()
    assert code == 0, said.err
    found = table(out)
    assert 1.003 * RR_OPTIMUM < found["t"][-1] < 1.0055 * RR_OPTIMUM  # slightly slower than the optimum
    assert found["t"][0] == 0.0
    np.testing.assert_allclose(np.diff(found["t"])[:-1], 1e-3, rtol=1e-9)
    np.testing.assert_allclose(found["q"][[0, -1]], [[0.0, -2.0], [1.0, -1.0]], atol=1e-8)
    tau, rate = robot("rr").torque_and_rate(*(found[block] for block in BLOCKS[:4]))
    np.testing.assert_allclose(found["tau"], tau, atol=1e-9)
    np.testing.assert_allclose(found["tau_rate"], rate, atol=1e-6)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"{len(found['t'])} rows -> {out}, {picture}" in said.out
    assert re.search(r"effort +at most +(100.00|99.\d\d) % of its limit, joint[12]", said.out)
    assert "note: no limits known, hence not enforced: acceleration; jerk; torque rate" in said.err


def test_fastest_motion_has_more_jerk_than_the_default(tmp_path):
    plans = [table(run(tmp_path, "--refinements", 2, *words)[1]) for words in ([], ["--time-tolerance", 0])]
    smooth, fastest = (np.trapezoid(plan["qddd"] ** 2, plan["t"], axis=0) for plan in plans)
    assert plans[1]["t"][-1] < plans[0]["t"][-1] <= 1.005 * plans[1]["t"][-1] + 1e-9 and (fastest > 2.0 * smooth).all()


def test_options_for_limits_weights_duration_and_grid_are_applied(tmp_path, capsys):
    limits = tmp_path / "limits.yaml"
    limits.write_text("version: 1\nlimits:\n"
                      "  joint1: {max_effort_rate: 300.0, max_joint_force: 25.0}\n  joint2: {max_velocity: 6.0}\n")
    code, out = run(tmp_path, "--limits", limits, "--refinements", 1, "--rate", 5000)
    said = capsys.readouterr().out
    found = table(out)
    assert code == 0 and np.abs(found["tau_rate"][:, 0]).max() <= 300.0 * (1.0 + 1e-6)
    assert np.abs(found["qd"][:, 1]).max() <= 6.0 * (1.0 + 1e-6)
    force = np.linalg.norm(robot("rr").joint_wrenches(*(found[b] for b in BLOCKS[:3])).wrench[:, 0, :3], axis=1)
    assert force.max() <= 25.0 * (1.0 + 1e-6)
    assert re.search(r"effort rate +at most +\d+\.\d\d % of its limit, joint1", said)
    assert re.search(r"joint force +at most +\d+\.\d\d % of its limit", said)
    code, out = run(tmp_path, "--weights", 0, 1, "--duration", 0.8, "--refinements", 0, "--degree", 5, "--spans", 5,
                    "--rate", 100)
    assert code == 0 and table(out)["t"][-1] == pytest.approx(0.8, abs=1e-8)
    assert re.search(r"0\.8 s, objective \d\.\d+, 10 control points", capsys.readouterr().out)


@pytest.mark.parametrize(("words", "message"), [
    (["--rate", "0"], "--rate is 0; a number of rows per second above zero"),
    (["--rate", "1e12"], "--rate 1e.12 makes .* rows"),
    (["--degree", "2"], "degree is 2; 3 to 7 is allowed"),
    (["--duration", "0.05", "--spans", "4"], "no motion found"),
    (["--weights", "0", "0"], "one above zero"),
    (["--limits", "nowhere.yaml"], "nowhere.yaml.* cannot be read"),
    (["--plot", "plan.xyz"], "plan.xyz"),
])
def test_invalid_plan_options_are_rejected_with_a_message(tmp_path, capsys, words, message):
    code, out = run(tmp_path, "--refinements", 0, *words)
    said = capsys.readouterr().err
    assert code == 2 and re.search(message, said) and said.splitlines()[-1].startswith("rnea plan: ")
    assert not out.exists()


def test_limits_file_with_other_sections_is_rejected_with_an_example(tmp_path, capsys):
    limits = tmp_path / "limits.yaml"
    limits.write_text("drives: {joint1: {gear_ratio: 100.0}}")
    code, out = run(tmp_path, "--limits", limits)
    said = capsys.readouterr().err
    assert code == 2 and "the file has drives" in said and not out.exists()
    limits.write_text("version: 1\n" + re.findall(r"`(limits: .*?)`", said)[0])
    code, out = run(tmp_path, "--limits", limits, "--refinements", 0, "--duration", 2.0)
    assert code == 0 and out.exists()


@pytest.mark.parametrize(("ends", "message"), [
    (["--from", "0", "--to", "1", "-1"], r"--from: 1 value, 2 needed"),
    (["--from", "nan", "0", "--to", "1", "-1"], r"start q\[0\] is nan"),
    (["--from", "0", "0", "--to", "9", "0"], "goal: position of joint1 is 9 there, outside its limits"),
])
def test_invalid_start_and_goal_are_rejected_with_a_message(tmp_path, capsys, ends, message):
    code, out = run(tmp_path, ends=ends)
    assert code == 2 and re.search(message, capsys.readouterr().err) and not out.exists()


def test_equal_ends_give_one_sample_and_a_note(tmp_path, capsys):
    code, out = run(tmp_path, ends=["--from", "1", "0", "--to", "1", "0"])
    assert code == 0 and "nothing moves" in capsys.readouterr().err
    found = table(out)
    assert found["t"].tolist() == [0.0] and found["q"].tolist() == [[1.0, 0.0]]


def test_negative_numbers_with_exponents_are_accepted(tmp_path, capsys):
    code, out = run(tmp_path, ends=["--from", "-1e-3", "-2.0E0", "--to", "-.001", "-2"])
    assert code == 0, capsys.readouterr().err
    np.testing.assert_array_equal(table(out)["q"], [[-0.001, -2.0]])


@pytest.mark.parametrize("terminal", [True, False])
def test_long_work_shows_its_progress_in_one_line(tmp_path, capsys, monkeypatch, terminal):
    """The line is overwritten on a terminal; elsewhere one line states the time at the end."""
    seconds = iter(np.arange(0.0, 1e6, 0.4))
    monkeypatch.setattr(output.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    assert run(tmp_path, "--refinements", 0)[0] == 0
    line, note = capsys.readouterr().err.split("\n")[:2]
    assert note.startswith("note: no limits known")
    if terminal:
        assert line.count("\r") > 3 and "smoothing: iteration" in line
        assert re.search(r"guess 1: iteration \d+, \d\.\d+ s, 15 control points, limits within \d\.\de[-+]\d\d", line)
    else:
        assert re.fullmatch(r"planning took \d+\.\d s", line)


def test_quick_planning_prints_no_progress(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(output.time, "monotonic", time.monotonic_ns().__float__)  # a clock that stands still
    assert run(tmp_path, "--refinements", 0)[0] == 0
    assert all(line.startswith("note:") for line in capsys.readouterr().err.splitlines())


def test_goal_beyond_the_coordinate_limit_is_rejected(tmp_path, capsys):
    code, _ = run(tmp_path, ends=["--from", "0", "0", "--to", "0", "1e300"])
    assert code == 2 and "goal q is 1e+300 for joint2; motions are planned no further than 1e+09" in capsys.readouterr().err

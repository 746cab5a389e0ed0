"""`rnea` commands: output, exit codes, messages."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import Robot
from rnea_ros.cli import inputs, main, torque
from rnea_ros.cli.output import ProgressLine
from rnea_ros.errors import InputError
from rnea_ros.io import csv_files
from rnea_ros.io.recording import ReadingOptions
from support.motions import encoded, sines
from support.oracles import GOLDEN, worst
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
STANFORD = str(ROOT / "urdf" / "stanford.urdf")
BRANCHED = str(ROOT / "urdf" / "branched.urdf")
MOTION = ROOT / "test" / "data" / "stanford_motion.csv"


def columns(path, prefix):
    names = Path(path).read_text().splitlines()[0].split(",")
    table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return table[:, [k for k, name in enumerate(names) if name.startswith(prefix)]]


def edited_motion(tmp_path, edit):
    """Write a copy of the motion with edited lines (lists of words); return its path."""
    lines = [line.split(",") for line in MOTION.read_text().splitlines()]
    path = tmp_path / "motion.csv"
    path.write_text("\n".join(",".join(line) for line in edit(lines)) + "\n")
    return str(path)


def test_model_table_names_every_joint_and_mimic_joint(capsys):
    assert main.main(["model", BRANCHED]) == 0
    text = capsys.readouterr().out
    robot = Robot.from_urdf(BRANCHED)
    assert all(name in text for name in robot.joint_names)
    assert "follows left_finger" in text
    assert f"{robot.total_mass:.6g} kg" in text


def test_model_lists_the_joints_of_the_urdf_and_names_the_frames_of_platforms(capsys):
    stewart = [str(ROOT / "urdf" / "stewart.urdf"), "--robot-file", str(ROOT / "urdf" / "stewart.robot.yaml")]
    joints = re.findall(r'<joint name="([^"]*)" type="(?!fixed|floating)', Path(stewart[0]).read_text())
    assert main.main(["model", *stewart, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(joint["name"] for joint in found["joints"]) == sorted(joints)
    assert sorted(found["frames"]) == sorted(re.findall(r'<link name="([^"]*)"', Path(stewart[0]).read_text()))
    assert main.main(["model", *stewart]) == 0
    text = capsys.readouterr().out
    assert f"robot stewart: {len(joints)} joints" in text and "platform: rz " in text
    assert "platform_pose" not in text and "are not joints of the URDF" in text


def test_model_as_json_is_complete(capsys):
    assert main.main(["model", STANFORD, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    robot = Robot.from_urdf(STANFORD)
    assert [joint["name"] for joint in found["joints"]] == list(robot.joint_names)
    assert found["model_id"] == robot.model_id
    for row, link in zip(found["links"], robot.model.links, strict=True):
        assert (row["gamma"], row["b"], row["alpha"], row["d"], row["theta"], row["r"]) == tuple(link.geometry)
        assert np.array_equal(row["J"], link.J)


def test_check_prints_warnings_and_accepts_known_ones(tmp_path, capsys):
    assert main.main(["check", STANFORD]) == 0
    suspicious = tmp_path / "suspicious.urdf"
    suspicious.write_text(
        '<robot name="d"><link name="a"/><link name="b"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="c"/>'
        '<joint name="ab" type="revolute"><parent link="a"/><child link="b"/></joint>'
        '<joint name="bc" type="continuous"><parent link="b"/><child link="c"/></joint></robot>')
    assert main.main(["check", str(suspicious)]) == 1
    text = capsys.readouterr().out
    assert "warning: link 'b': inertia breaks the triangle inequality" in text and "note: joint 'ab' has no <limit>" in text
    assert "warning: joint 'bc' moves no inertia" in text and text.endswith("2 warnings\n")
    known = ["--accept", "triangle_inequality"]
    assert main.main(["check", str(suspicious), *known]) == 1
    assert capsys.readouterr().out.endswith("1 warning\n")
    assert main.main(["check", str(suspicious), *known, "--accept", "no_inertia"]) == 0
    assert "accepted: link 'b': inertia" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main.main(["check", str(suspicious), "--accept", "triangle_inequalty"])
    assert "did you mean 'triangle_inequality'?" in capsys.readouterr().err


def test_torque_command_writes_the_torques_of_the_library(tmp_path, capsys):
    out, picture = tmp_path / "out.csv", tmp_path / "out.png"
    assert main.main(["torque", STANFORD, str(MOTION), "-o", str(out), "--plot", str(picture)]) == 0
    motion = [columns(MOTION, f"{block}_joint") for block in ("q", "qd", "qdd", "qddd")]
    tau, tau_rate = Robot.from_urdf(STANFORD).torque_and_rate(*motion)
    assert np.array_equal(columns(out, "tau_joint"), tau)
    assert np.array_equal(columns(out, "tau_rate_joint"), tau_rate)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "201 samples of 6 joints" in capsys.readouterr().out


def test_plot_bands_are_two_standard_deviations_of_estimated_torques(tmp_path, monkeypatch):
    """Deviations are propagated from positions through the sensitivities; a complete motion has no bands."""
    rng, robot, t = np.random.default_rng(3), Robot.from_urdf(STANFORD), np.arange(0.0, 2.0, 0.002)
    motion = sines(rng, t, 6)
    recording, out, drawn = tmp_path / "recording.csv", tmp_path / "out.csv", []
    header = ",".join(["t", *(f"q_{name}" for name in robot.joint_names)])
    np.savetxt(recording, np.column_stack((t, encoded(rng, motion[0]))), delimiter=",", header=header, comments="")
    monkeypatch.setattr(torque.figures, "draw_torques", lambda *given, **rest: drawn.append(given))
    for file in (recording, MOTION):
        assert main.main(["torque", STANFORD, str(file), "-o", str(out), "--plot", "drawn.png"]) == 0
    (_, _, *found, _, _, _, deviations), (*_, none) = drawn
    for ours, exact, std in zip(found, robot.torque_and_rate(*motion), deviations):
        error, std = np.abs(ours - exact)[50:-50], std[50:-50]
        assert np.mean(error < 2.0 * std) > 0.9
        assert (np.sqrt(np.mean(std**2, axis=0)) < 10.0 * np.sqrt(np.mean(error**2, axis=0))).all()  # and are no walls
    assert none is None
    monkeypatch.undo()
    picture = tmp_path / "drawn.png"
    assert main.main(["torque", STANFORD, str(recording), "-o", str(out), "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_torque_command_accepts_any_column_order_and_extra_columns(tmp_path, capsys):
    words = [["note" if k == 0 else "1"] for k in range(202)]
    shuffled = edited_motion(tmp_path, lambda lines: [line[::-1] + word for line, word in zip(lines, words)])
    out, plain = tmp_path / "out.csv", tmp_path / "plain.csv"
    assert main.main(["torque", STANFORD, shuffled, "-o", str(out)]) == 0
    assert "columns not used: 'note'" in capsys.readouterr().err
    assert main.main(["torque", STANFORD, str(MOTION), "-o", str(plain)]) == 0
    assert out.read_text() == plain.read_text()


def computed(path):
    return np.loadtxt(path, delimiter=",", skiprows=1)


FORMS = {
    "semicolons": (lambda lines: [[";".join(word.replace(".", ",") for word in line)] for line in lines], ()),
    "tabs": (lambda lines: [["\t".join(line)] for line in lines], ()),
    "headerless": (lambda lines: lines[1:], ("--columns", *MOTION.read_text().splitlines()[0].split(","))),
    "unstamped": (lambda lines: [line[1:] for line in lines], ("--sample-rate", "100")),
    "milliseconds": (lambda lines: [lines[0]] + [[repr(1e3 * float(line[0])), *line[1:]] for line in lines[1:]],
                     ("--time-unit", "ms")),
    "degrees": (lambda lines: [lines[0]] + [[line[0], *(
        repr(float(np.rad2deg(float(word)))) if name.startswith("q") and not name.endswith("joint3") else word
        for name, word in zip(lines[0][1:], line[1:]))] for line in lines[1:]], ("--unit", "deg")),
}


@pytest.mark.parametrize("form", FORMS)
def test_torques_of_files_in_other_forms_are_the_same(tmp_path, form):
    """Columns q, qd, qdd, qddd are in the file: nothing is estimated, and joint 3 is prismatic."""
    edit, options = FORMS[form]
    out, plain = tmp_path / "out.csv", tmp_path / "plain.csv"
    assert main.main(["torque", STANFORD, str(MOTION), "-o", str(plain)]) == 0
    assert main.main(["torque", STANFORD, edited_motion(tmp_path, edit), "-o", str(out), *options]) == 0
    np.testing.assert_allclose(computed(out), computed(plain), rtol=1e-9, atol=1e-9)


def test_positions_in_degrees_are_rejected_with_the_remedy(tmp_path, capsys):
    t = np.arange(200) * 0.01
    (tmp_path / "arm.urdf").write_text(arm({"axis": (0, 0, 1), "limit": 'lower="-2" upper="2" effort="1" velocity="1"'}))
    np.savetxt(tmp_path / "deg.csv", np.column_stack((t, 90.0 * np.sin(t))), delimiter=",", header="t,q_j1", comments="")
    words = ["torque", str(tmp_path / "arm.urdf"), str(tmp_path / "deg.csv"), "-o", str(tmp_path / "out.csv")]
    assert main.main(words) == 2
    error = capsys.readouterr().err
    assert "positions of joint 'j1' reach" in error and "--unit deg reads degrees" in error
    assert not (tmp_path / "out.csv").exists()
    assert main.main([*words, "--unit", "deg"]) == 0 and main.main([*words, "--unit", "rad"]) == 0


def test_torque_reports_peak_rms_and_the_difference_to_measured_torques(tmp_path, capsys):
    lines = [line.split(",") for line in MOTION.read_text().splitlines()]
    robot = Robot.from_urdf(STANFORD)
    rows = np.array(lines[1:], dtype=float)
    blocks = {name: rows[:, [lines[0].index(f"{name}_{joint}") for joint in robot.joint_names]] for name in ("q", "qd", "qdd")}
    tau = robot.torque_and_rate(*blocks.values(), blocks["qdd"])[0]
    offset = np.arange(1.0, robot.n + 1.0)
    path, picture = tmp_path / "measured.csv", tmp_path / "out.png"
    np.savetxt(path, np.column_stack((rows, tau + offset)), delimiter=",", comments="",
               header=",".join([*lines[0], *(f"tau_{joint}" for joint in robot.joint_names)]))
    words = ["torque", STANFORD, str(path), "-o", str(tmp_path / "out.csv")]
    assert main.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["torques"]
    np.testing.assert_allclose([row["peak"] for row in found], np.abs(tau).max(axis=0), rtol=1e-9)
    np.testing.assert_allclose([row["rms"] for row in found], np.sqrt((tau**2).mean(axis=0)), rtol=1e-9)
    np.testing.assert_allclose([row["rms_difference"] for row in found], offset, rtol=1e-9)
    assert [row["unit"] for row in found] == ["N m", "N m", "N", "N m", "N m", "N m"]
    assert main.main([*words, "--plot", str(picture)]) == 0
    out, err = capsys.readouterr()
    assert "measured - computed, RMS" in out and "tau_joint" not in err


def test_torque_command_writes_deviations_and_rejects_unknown_extensions(tmp_path, capsys):
    t = np.arange(300) * 0.004
    (tmp_path / "arm.urdf").write_text(arm({"axis": (0, 1, 0)}))
    q = np.round(np.sin(3.0 * t) / 1e-4) * 1e-4
    np.savetxt(tmp_path / "run.csv", np.column_stack((t, q)), delimiter=",", header="t,q_j1", comments="", fmt="%.9f")
    words = ["torque", str(tmp_path / "arm.urdf"), str(tmp_path / "run.csv"), "-o"]
    assert main.main([*words, str(tmp_path / "out.csv"), "--deviations"]) == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "t,tau_j1,tau_rate_j1,std_tau_j1,std_tau_rate_j1"
    table = computed(tmp_path / "out.csv")
    exact = Robot.from_urdf(str(tmp_path / "arm.urdf")).torque_and_rate(
        *(np.sin(3.0 * t + k * np.pi / 2.0)[:, None] * 3.0**k for k in range(4)))[0][:, 0]
    assert np.mean(np.abs(table[:, 1] - exact) < 2.0 * table[:, 3]) > 0.9
    capsys.readouterr()
    for name in ("out.xlsx", "out", "out.CSV"):
        assert main.main([*words, str(tmp_path / name)]) == 2
        assert "must end in .parquet, .csv, .mcap" in capsys.readouterr().err
        assert not (tmp_path / name).exists()


def test_csv_variants_of_spreadsheets_are_read(tmp_path):
    """The files have Windows line ends, a BOM, quoted numbers, spaces, an empty row, trailing commas, and an unused column of
    text.
    """
    header, *rows = MOTION.read_text().splitlines()
    rows = ["".join(f'"{word}", ' for word in row.split(",")) + "slow," for row in rows]
    strange = tmp_path / "strange.csv"
    strange.write_bytes("\r\n".join((header.replace(",", ", ") + ",note", *rows[:7], "", *rows[7:])).encode("utf-8-sig"))
    names = Robot.from_urdf(STANFORD, backend="python").joint_names
    found, expected = (csv_files.read_motion(path, names) for path in (strange, MOTION))
    assert found.ignored == ("note",) and not found.estimated
    for field in ("t", "q", "qd", "qdd", "qddd"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


@pytest.mark.parametrize("kept, said", [(7, "qd, qdd, qddd"), (13, "qdd, qddd"), (19, "qddd")])
def test_torque_estimates_missing_derivatives_and_reports_it(tmp_path, capsys, kept, said):
    out = tmp_path / "out.csv"
    motion = edited_motion(tmp_path, lambda lines: [line[:kept] for line in lines])
    assert main.main(["torque", STANFORD, motion, "-o", str(out)]) == 0
    assert f"{said} estimated by polynomials over windows of 0.15 s (15 samples)\n" in capsys.readouterr().out
    exact = Robot.from_urdf(STANFORD).torque_and_rate(*(columns(MOTION, f"{b}_joint") for b in ("q", "qd", "qdd", "qddd")))
    assert np.allclose(columns(out, "tau_joint"), exact[0], atol=1e-6)
    assert np.allclose(columns(out, "tau_rate_joint"), exact[1], atol=1e-4)


def test_recording_of_a_wrapped_continuous_joint_gives_the_same_torques(tmp_path):
    """The joint is wrapped to -pi .. pi or counts its turns, for every command."""
    urdf, out, t = tmp_path / "one.urdf", tmp_path / "out.csv", np.arange(0.0, 4.0, 0.01)
    urdf.write_text(arm({"kind": "continuous", "axis": (0, 1, 0)}))
    counted, answers = 3.0 * t + 0.3 * np.sin(2.0 * t), []
    for name, q in (("counted", counted), ("wrapped", (counted + np.pi) % (2.0 * np.pi) - np.pi)):
        motion, answer = tmp_path / f"{name}.csv", tmp_path / f"{name}.json"
        np.savetxt(motion, np.column_stack((t, q)), delimiter=",", header="t,q_j1", comments="")
        assert main.main(["torque", str(urdf), str(motion), "-o", str(out)]) == 0
        assert main.main(["query", str(urdf), "torque", "--state", str(motion), "-o", str(answer)]) == 0
        reported = json.loads(answer.read_text())
        answers.append((columns(out, "tau_"), reported["effort"], reported["effort_rate"]))
    for one, two in zip(*answers, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_query_reports_estimated_derivatives_on_standard_error(tmp_path, capsys):
    motion = edited_motion(tmp_path, lambda lines: [line[:7] for line in lines])
    for options, used in (((), "0.15 s (15 samples)"), (("--window", "0.1"), "0.1 s (11 samples)")):
        assert main.main(["query", STANFORD, "torque", "--state", motion, "-o", str(tmp_path / "out.json"), *options]) == 0
        assert f"qd, qdd, qddd estimated by polynomials over windows of {used}\n" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(2))
def test_torque_rate_of_an_encoder_log_is_accurate(tmp_path, capsys, seed):
    """The log has 500 Hz and 2^17 encoder counts. Regression: windows of nine samples gave a rate 100 times too large."""
    urdf, step = ROOT / "urdf" / "seven_r.urdf", 2.0 * np.pi / 2**17
    arm, rng, t = Robot.from_urdf(urdf), np.random.default_rng(seed), np.arange(1500) / 500.0
    w, phase = rng.uniform(1.0, 4.0, arm.n), rng.uniform(0.0, 6.0, arm.n)
    exact = [0.7 * w**k * np.sin(np.outer(t, w) + phase + k * np.pi / 2.0) for k in range(4)]
    log, out = tmp_path / "log.csv", tmp_path / "out.csv"
    np.savetxt(log, np.column_stack((t, np.round(exact[0] / step) * step)), fmt="%.9g", delimiter=",", comments="",
               header=",".join(["t", *(f"q_{name}" for name in arm.joint_names)]))
    errors = {}
    for window in (None, 0.25):
        options = [] if window is None else ["--window", str(window)]
        assert main.main(["torque", str(urdf), str(log), "-o", str(out), *options]) == 0
        used = f"polynomials over windows of {window} s (" if window else "Kalman smoothing (500 Hz, position noise 1."
        assert f"estimated by {used}" in capsys.readouterr().out
        found = columns(out, "tau_joint"), columns(out, "tau_rate_joint")
        errors[window] = [np.std(a - b) / np.std(b) for a, b in zip(found, arm.torque_and_rate(*exact), strict=True)]
    assert errors[None][0] < 0.005 and errors[None][1] < 0.06
    assert errors[None][1] < errors[0.25][1]
    assert main.main(["torque", str(urdf), str(log), "-o", str(out), "--window", "0.01"]) == 2
    assert "a window of 0.01 s holds too few samples: degree 5 needs 7 of them, which take 0.012 s" in capsys.readouterr().err


@pytest.mark.parametrize("edit, said", [
    (lambda lines: [line[:3] + line[4:] for line in lines], "no column 'q_joint3'"),
    (lambda lines: [line[1:] for line in lines], "no column 't'"),
    (lambda lines: [["time", *lines[0][1:]], *lines[1:]], "--rename OLD=NEW"),
    (lambda lines: lines[:1], "no rows"),
    (lambda lines: [*lines[:5], ["nan", *lines[5][1:]], *lines[6:]], "row 6, column 't' is 'nan'; a finite number"),
    (lambda lines: [*lines[:5], ["zero", *lines[5][1:]], *lines[6:]], "row 6, column 't' is 'zero'; a finite number"),
    (lambda lines: [*lines[:5], [*lines[5][:3], "", *lines[5][4:]], *lines[6:]], "row 6, column 'q_joint3' is ''"),
    (lambda lines: [*lines[:5], lines[5][:-1], *lines[6:]], "row 6 has 24 values, the header 25 columns"),
    (lambda lines: [["# planned"], *lines], "no column 't', 'q_joint1'"),
    (lambda lines: lines[1:], "the first row holds numbers; name the 25 columns: --columns t q_<joint>"),
    (lambda lines: [line[1:] for line in lines], "A file without times: --sample-rate HZ"),
    (lambda lines: [lines[0]] + [[repr(1e3 * float(line[0])), *line[1:]] for line in lines[1::20]], "--time-unit ms"),
    (lambda lines: [lines[0]] + [[repr(1e9 * float(line[0])), *line[1:]] for line in lines[1::5]], "--time-unit ns"),
    (lambda lines: [["t", *lines[0][1:2], *lines[0][1:-1]], *lines[1:]], "occur twice"),
    (lambda lines: [lines[0][:7], *[line[:7] for line in lines[:0:-1]]], "time must increase"),
    (lambda lines: [line[:7] for line in lines[:4]], "too few"),
])
def test_invalid_motion_files_are_rejected_with_the_reason(tmp_path, capsys, edit, said):
    assert main.main(["torque", STANFORD, edited_motion(tmp_path, edit), "-o", str(tmp_path / "out.csv")]) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


@pytest.mark.parametrize("t", [lambda t: t, lambda t: 1.7e9 + t], ids=["s", "since 1970"])
def test_instants_are_printed_with_all_digits(tmp_path, capsys, t):
    rows = np.loadtxt(MOTION, delimiter=",", skiprows=1)[::5]
    reported = t(rows[:, 0])
    path = edited_motion(tmp_path, lambda lines: [lines[0]] + [[repr(float(time)), *line[1:]]
                                                               for time, line in zip(reported, lines[1::5])])
    assert main.main(["torque", STANFORD, path, "-o", str(tmp_path / "out.csv")]) == 0
    instants = {float(found) for found in re.findall(r"at t = (\S+) s", capsys.readouterr().out)}
    assert instants and instants <= set(reported)


@pytest.mark.parametrize("command", ["torque", "retime"])
def test_times_since_1970_that_do_not_increase_are_printed_with_all_digits(tmp_path, capsys, command):
    times = [f"{1.7e9 + t:.3f}" for t in (0.0, 0.004, 0.012, 0.008, 0.016)]
    path = edited_motion(tmp_path, lambda lines: [lines[0]] + [[t, *line[1:]] for t, line in zip(times, lines[1:])])
    assert main.main([command, STANFORD, path, "-o", str(tmp_path / "out.csv")]) == 2
    error = capsys.readouterr().err
    assert "1700000000.012" in error and "1700000000.008" in error


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_wrong_time_unit_is_rejected_by_identify_and_causes_a_warning_of_retime(tmp_path, capsys, unit):
    size, robot = {"s": 1.0, "ms": 1e3, "ns": 1e9}[unit], Robot.from_urdf(STANFORD)
    path = edited_motion(tmp_path, lambda lines: [[name.replace("qddd_", "tau_") for name in lines[0]]] + [
        [repr(size * float(line[0])), *line[1:]] for line in lines[1:]])
    assert main.main(["retime", STANFORD, path, "-o", str(tmp_path / "out.csv"), "--tolerance", "1e-3"]) == 0
    assert (f"is it in {unit}? --time-unit {unit}" in capsys.readouterr().err) == (unit != "s")
    with nullcontext() if unit == "s" else pytest.raises(InputError, match=f"--time-unit {unit}"):
        inputs.read_measurements(path, robot, ReadingOptions())  # of `rnea identify` and `rnea payload`
    inputs.read_measurements(path, robot, ReadingOptions(time_unit=unit))


@pytest.mark.parametrize("words, said", [
    (["model", "nowhere.urdf"], "nowhere.urdf"),
    (["torque", STANFORD, "nowhere.csv", "-o", "out.csv"], "nowhere.csv"),
    (["torque", STANFORD, str(MOTION), "-o", "no/such/folder/out.csv"], "no/such/folder"),
])
def test_missing_files_are_reported(words, said, capsys):
    assert main.main(words) == 2
    assert said in capsys.readouterr().err


def test_gravity_option_changes_the_torques(tmp_path):
    out = tmp_path / "out.csv"
    assert main.main(["torque", STANFORD, str(MOTION), "-o", str(out), "--gravity", "0", "0", "0", "--backend", "python"]) == 0
    motion = [columns(MOTION, f"{block}_joint") for block in ("q", "qd", "qdd", "qddd")]
    tau = Robot.from_urdf(STANFORD, gravity=(0.0, 0.0, 0.0)).torque_and_rate(*motion)[0]
    assert np.allclose(columns(out, "tau_joint"), tau, rtol=1e-12, atol=1e-13)


def test_progress_appears_only_when_the_work_is_long(capsys, monkeypatch):
    progress = ProgressLine()
    progress.samples("computed", 1, 10)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "start", progress.start - 5.0)
    monkeypatch.setattr(progress, "last", progress.last - 5.0)
    progress.samples("computed", 5, 10)
    assert "5 of 10 samples, 50 %" in capsys.readouterr().err


def test_version_option_prints_the_version_of_the_installed_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"rnea_ros {metadata.version('rnea_ros')}\n"


def test_version_option_states_that_a_source_tree_is_not_installed(capsys, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(SystemExit):
        main.main(["--version"])
    assert "not installed but run from" in capsys.readouterr().out


def test_from_dh_converts_a_modified_table_to_a_urdf(tmp_path, capsys):
    """The published Table I as a CSV gives the published torques and torque rates."""
    out = tmp_path / "arm.urdf"
    assert main.main(["from-dh", str(ROOT / "test" / "data" / "stanford_table.csv"), "-o", str(out)]) == 0
    assert "modified table of 6 joints ->" in capsys.readouterr().out
    robot, state = Robot.from_urdf(out), GOLDEN["stanford_arm"]["states"][1]
    assert robot.name == "stanford_table"
    tau, rate = robot.torque_and_rate(*(state[name] for name in ("q", "qd", "qdd", "qddd")))
    assert worst(tau, state["tau"]) < 1e-12 and worst(rate, state["dtau"]) < 1e-12


def test_from_dh_prints_the_urdf_of_a_standard_table(tmp_path, capsys):
    table = tmp_path / "rr.csv"
    table.write_text("joint,type,a,mass,com_x,ixx,iyy,izz\nq1,R,0.4,0.5,-0.2,.1,.1,.1\nq2,R,0.4,0.5,-0.2,.1,.1,.1\n")
    assert main.main(["from-dh", str(table), "--name", "mine"]) == 0
    robot = Robot.from_urdf(capsys.readouterr().out)
    assert robot.name == "mine" and worst(robot.link_pose("frame2", [0.0, 0.0]).p, [0.8, 0.0, 0.0]) < 1e-15
    assert main.main(["from-dh", str(table), "--convention", "modified"]) == 2
    assert "column 'a' is unknown; known are joint, type, antecedent" in capsys.readouterr().err

"""`rnea plan` with waypoints and obstacles; link positions and torques are checked by Pinocchio."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros.cli import main
from support.oracles import PinocchioOracle
from support.planning_cases import ROOT, robot

RR, ARM = (str(ROOT / "urdf" / name) for name in ("rr.urdf", "seven_r.urdf"))
ENDS = ["--from", "0", "-2", "--to", "1", "-1"]
ARM_ENDS = ["--from", *map(str, (0, 0.6, 0, -1.2, 0, 0.6, 0)), "--to", *map(str, (1.4, 0.6, 0, -1.2, 0, 0.6, 0))]
SHAPE = """
margin: 0.02
spheres:
- {link: base_link, center: [0, 0, 0.1], radius: 0.12}
- {link: link4, center: [0, 0, 0], radius: 0.09}
- {link: link6, center: [0, 0, 0], radius: 0.07}
- {link: flange, center: [0, 0, 0.05], radius: 0.06}
obstacles:
- {center: [0.5, 0.38, 0.55], radius: 0.05}
"""


def run(path, urdf, ends, *words):
    out = path / "plan.csv"
    return main.main(["plan", urdf, *ends, "-o", str(out), *map(str, words)]), out


def motion(path) -> tuple[np.ndarray, np.ndarray]:
    """Return t (samples,), and q, qd, qdd, qddd, tau, tau_rate (6, samples, n) of the CSV."""
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    numbers = np.array(rows, dtype=float)
    blocks = [[k for k, name in enumerate(header) if re.fullmatch(rf"{block}_joint\d", name)]
              for block in ("q", "qd", "qdd", "qddd", "tau", "tau_rate")]
    return numbers[:, header.index("t")], np.stack([numbers[:, block] for block in blocks])


def centers(urdf: str, q: np.ndarray, link: str, center) -> np.ndarray:
    """Return sphere centres (samples, 3) in the root link frame, by Pinocchio."""
    model = pin.buildModelFromUrdf(urdf)
    data, frame, found = model.createData(), model.getFrameId(link), []
    for pose in q:
        pin.framesForwardKinematics(model, data, pose)
        found.append(data.oMf[frame].act(np.array(center, dtype=float)))
    return np.array(found)


def test_planned_motion_avoids_an_obstacle_within_the_torque_limits(tmp_path, capsys):
    file = tmp_path / "shape.yaml"
    file.write_text(SHAPE)
    code, out = run(tmp_path, ARM, ARM_ENDS, "--clearance", file, "--refinements", 1, "--rate", 2000)
    said = capsys.readouterr()
    assert code == 0, said.err
    _, (q, qd, qdd, qddd, tau, rate) = motion(out)
    balls = {"base_link": ((0, 0, 0.1), 0.12), "link4": ((0, 0, 0), 0.09), "link6": ((0, 0, 0), 0.07),
             "flange": ((0, 0, 0.05), 0.06)}
    at = {link: centers(ARM, q, link, center) for link, (center, _) in balls.items()}
    outside = [np.linalg.norm(at[link] - (0.5, 0.38, 0.55), axis=1).min() - balls[link][1] - 0.05 for link in balls]
    pairs = [("base_link", "link4"), ("base_link", "link6"), ("base_link", "flange"), ("link4", "link6"), ("link4", "flange")]
    inside = [np.linalg.norm(at[one] - at[other], axis=1).min() - balls[one][1] - balls[other][1] for one, other in pairs]
    assert min(*outside, *inside) >= 0.02 - 1e-6
    assert float(re.search(r"distance +at least (\S+) m, sphere \d on \w+ from", said.out)[1]) == pytest.approx(
        min(*outside, *inside), abs=1e-5)  # other instants
    oracle, arm = PinocchioOracle(ARM, robot("seven_r")), robot("seven_r")
    truth = np.array([oracle.torque_and_rate(*state) for state in zip(q, qd, qdd, qddd)])
    np.testing.assert_allclose(tau, truth[:, 0], atol=1e-8)
    np.testing.assert_allclose(rate, truth[:, 1], atol=1e-5)
    assert (np.abs(truth[:, 0]) <= arm.limits.effort * (1.0 + 1e-5)).all()
    free = motion(run(tmp_path, ARM, ARM_ENDS, "--refinements", 1)[1])[1][0]
    assert np.linalg.norm(centers(ARM, free, "link6", (0, 0, 0)) - (0.5, 0.38, 0.55), axis=1).min() < 0.13  # of 0.14 apart


def test_planned_motion_passes_waypoints_at_their_time_shares(tmp_path, capsys):
    words = ["--waypoint", 0.3, -1.9, "--waypoint", 0.7, -0.9, "--refinements", 0, "--rate", 10000]
    code, out = run(tmp_path, RR, ENDS, *words, "--shares", 0.25, 0.75)
    assert code == 0, capsys.readouterr().err
    t, (q, *_) = motion(out)
    for share, pose in ((0.25, (0.3, -1.9)), (0.75, (0.7, -0.9))):
        np.testing.assert_allclose([np.interp(share * t[-1], t, column) for column in q.T], pose, atol=1e-6)
    code, out = run(tmp_path, RR, ENDS, *words)
    q = motion(out)[1][0]
    assert code == 0 and all(np.abs(q - pose).max(axis=1).min() < 2e-3 for pose in ((0.3, -1.9), (0.7, -0.9)))


def test_plan_keeps_the_clearance_of_the_packaged_file_and_reports_it_as_json(tmp_path, capsys):
    code, out = run(tmp_path, RR, ENDS, "--clearance", ROOT / "urdf" / "rr.clearance.yaml", "--refinements", 0, "--json",
                    "--guess", 0.3, -1.0)
    found = json.loads(capsys.readouterr().out)
    way = centers(RR, motion(out)[1][0], "link2", (0.4, 0.0, 0.0))
    distance = np.linalg.norm(way - (0.27, -0.22, 0.0), axis=1).min() - 0.1
    assert code == 0 and distance == pytest.approx(0.01, abs=1e-5)
    assert found["clearance"]["distance"] == pytest.approx(distance, abs=5e-6)  # other instants
    assert found["clearance"]["between"] == "sphere 0 on link2 from obstacle 0"


@pytest.mark.parametrize(("text", "message"), [
    ("spheres: [{link: hand, center: [0, 0, 0], radius: 1}]",
     "line 1, column 12: spheres.0.link: link 'hand' does not exist; the links are base_link, link1, link2, tool"),
    ("spheres:\n- {link: tool, centre: [0, 0, 0], radius: 1}", "line 2, column 16: spheres.0.centre is not known; allowed "
                                                               "are link, center, radius; did you mean 'center'?"),
    ("spheres: [{link: tool, center: [0, 0], radius: 1}]", r"center is \[0, 0\]; three numbers from .* are needed \[m\]"),
    ("spheres: [{link: tool, center: [0, 0, 0], radius: -1}]", r"radius is -1; a number not below zero is needed \[m\]"),
    ("margin: 0.1", "spheres is missing; a list is needed, each entry a mapping with link, center, radius"),
    ("spheres: []", "spheres is empty"), ("[1]", "a mapping with margin, spheres, obstacles, pairs is needed"),
    ("{", "is not YAML"),
    ("spheres: [{link: tool, center: [0, 0, 0], radius: 1}]\npairs: [[0, 0.5]]",
     r"pairs has \(0, 0.5\); two different numbers from 0 to 0"),
    ("spheres: [{link: tool, center: [0, 0, 0], radius: 1}]\npairs: [3]", "pairs.0 is 3; two numbers from .* are needed"),
])
def test_invalid_clearance_files_are_rejected_with_a_message(tmp_path, capsys, text, message):
    file = tmp_path / "shape.yaml"
    file.write_text(text)
    code, out = run(tmp_path, RR, ENDS, "--clearance", file)
    said = capsys.readouterr().err
    assert code == 2 and re.search(message, said) and "rnea plan: " in said and not out.exists()


@pytest.mark.parametrize(("words", "message"), [
    (["--waypoint", 0.3], r"waypoints has shape \(1, 1\)"), (["--guess", 1, 2, 3], r"guess has shape \(1, 3\)"),
    (["--waypoint", 0.3, -1.9, "--shares", 0.2, 0.4], "--shares has 2 different numbers, and there are 1 of --waypoint"),
    (["--shares", 0.2], "there are 0 of --waypoint"), (["--waypoint", 0.3, -1.9, "--shares", 1.0], "shares that rise from 0"),
    (["--waypoint", 0.3, -1.9, "--waypoint", 1], "waypoints .*"), (["--clearance", "nowhere.yaml"], "cannot be read"),
])
def test_invalid_waypoints_and_guesses_are_rejected_with_a_message(tmp_path, capsys, words, message):
    code, out = run(tmp_path, RR, ENDS, *words)
    assert code == 2 and re.search(message, capsys.readouterr().err) and not out.exists()

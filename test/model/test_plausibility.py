"""Plausibility of URDFs: common unit errors are reported with their cause, manufacturers' files cause no warning."""

import pickle
from pathlib import Path

import pytest
from lxml import etree

from rnea_ros import load
from rnea_ros.cli import main
from rnea_ros.model import urdf
from rnea_ros.model.urdf_validation import IMPLAUSIBLE
from support.oracles import example_urdfs

ROOT = Path(__file__).resolve().parents[2]
ARM = ROOT / "urdf" / "seven_r.urdf"
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def scaled(path, names, factor):
    """Return the arm with attributes of all elements at a path multiplied by a factor."""
    root = etree.parse(ARM).getroot()
    for element in root.iterfind(path):
        for name in {*names} & {*element.attrib}:
            element.set(name, " ".join(repr(factor * float(word)) for word in element.get(name).split()))
    return etree.tostring(root)


def without_inertial(*links):
    root = etree.parse(ARM).getroot()
    for link in root.iterfind("link"):
        if link.find("inertial") is not None and (link.get("name") in links or not links):
            link.remove(link.find("inertial"))
    return etree.tostring(root)


def placeholders():
    """Return the arm with 1 kg and 1 kg m^2 in every link, as in some manufacturers' files."""
    root = etree.parse(ARM).getroot()
    for inertial in root.iterfind("link/inertial"):
        inertial.find("mass").set("value", "1")
        inertial.find("inertia").attrib.update({name: "01"[name[1] == name[2]] for name in MOMENTS})
    return etree.tostring(root)


FAULTS = {
    "degrees": (scaled("joint/limit", ("lower", "upper"), 57.3), "position_limit", "are they in degrees?"),
    "joints in mm": (scaled("joint/origin", ("xyz",), 1000.0), "reach", "are its lengths in mm?"),
    "grams": (scaled("link/inertial/mass", ("value",), 1000.0), "total_mass", "are masses in grams?"),
    "kg mm^2": (scaled("link/inertial/inertia", MOMENTS, 1e6), "inertia_too_large", "Is it in kg mm^2"),
    "no inertia": (scaled("link/inertial/inertia", MOMENTS, 0.0), "inertia_too_small", "Is the inertia missing"),
    "one link without mass": (without_inertial("link2"), "missing_mass", "no mass in link 'link2'"),
    "one mass for all": (placeholders(), "placeholder", "the same mass of 1 kg and the same moment of inertia of 1 kg m^2"),
    "no mass": (without_inertial(), "massless", "no moving link has a mass")}


@pytest.mark.parametrize(("text", "name", "cause"), FAULTS.values(), ids=FAULTS)
def test_implausible_urdf_is_reported_with_its_likely_cause(text, name, cause):
    found = [warning for warning in urdf.load(text).warnings if warning.name in IMPLAUSIBLE]
    assert [warning.name for warning in found] == [name]
    assert cause in found[0] and found[0].endswith(f"[{name}]")


DEFECTS = {"icub": "inertia_too_small", "icub_reduced": "inertia_too_small", "romeo": "missing_mass"}  # in the files


def test_example_robots_cause_no_unfounded_warnings():
    """The right leg of iCub has masses with inertias of 1e-18 kg m^2, the fingers of Romeo have no mass."""
    found = {path.stem: {warning.name for warning in urdf.load(path).warnings} & {*IMPLAUSIBLE}
             for path in example_urdfs() if path.stem != "ur3"}
    assert {name: names for name, names in found.items() if names} == {name: {one} for name, one in DEFECTS.items()}


def test_warnings_keep_their_names_in_a_copy():
    (warning,) = pickle.loads(pickle.dumps(urdf.load(without_inertial()))).warnings
    assert warning.name == "massless" and warning.count("[massless]") == 1


def test_robot_file_can_accept_warnings(capsys, tmp_path):
    path, file = tmp_path / "arm.urdf", tmp_path / "arm.robot.yaml"
    path.write_bytes(FAULTS["one link without mass"][0])
    assert main.main(["model", str(path)]) == 0 and "[missing_mass]" in capsys.readouterr().out
    assert main.main(["check", str(path)]) == 1
    file.write_text("version: 1\naccepted_warnings: [missing_mass]\n")
    assert main.main(["check", str(path), "--robot-file", str(file)]) == 0
    assert "accepted: no mass in link 'link2'" in capsys.readouterr().out
    robot = load(path, file, backend="python")
    assert not robot.warnings and [warning.name for warning in robot.model.accepted_warnings] == ["missing_mass"]


def test_massless_warning_cannot_be_accepted(capsys, tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_bytes(without_inertial())
    with pytest.raises(SystemExit):
        main.main(["check", str(path), "--accept", "massless"])
    assert "invalid choice: 'massless'" in capsys.readouterr().err
    for more in ([], ["--scaling"]):
        assert main.main(["demo", "--urdf", str(path), *more]) == 2
        assert "no moving link has a mass" in capsys.readouterr().err


def test_massless_legs_of_a_platform_cause_no_warning():
    """Legs without mass are a common idealization: the platform has one."""
    text = (ROOT / "urdf" / "stewart.urdf").read_bytes()
    root = etree.fromstring(text)
    for link in root.iterfind("link"):
        if link.get("name") != "platform" and link.find("inertial") is not None:
            link.remove(link.find("inertial"))
    robot = load(etree.tostring(root), ROOT / "urdf" / "stewart.robot.yaml", backend="python")
    assert robot.tree.total_mass > 0.0 and not [one for one in robot.tree.warnings if one.name == "massless"]

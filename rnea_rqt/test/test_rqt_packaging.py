"""Metadata for pip, colcon, rosdep and rqt are consistent with each other and with the files."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
BY_ROSDEP = {"numpy": "python3-numpy"}


@pytest.fixture(scope="module")
def setup():
    pytest.importorskip("setuptools")
    from distutils.core import run_setup  # Python 3.12 and later: by setuptools

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return run_setup("setup.py", stop_after="config")


def package_xml(folder: Path = ROOT):
    return ElementTree.parse(folder / "package.xml").getroot()


def test_version_and_license_match_the_main_package(setup):
    ours, nodes = package_xml(), package_xml(ROOT.parent)
    assert ours.findtext("version") == nodes.findtext("version") == setup.metadata.version
    assert ours.findtext("license") == nodes.findtext("license") == setup.metadata.license
    assert ours.findtext("name") == setup.metadata.name == "rnea_rqt"


def test_package_xml_lists_all_imported_packages():
    from test_rqt_layers import FILES, imported

    tops = {module.partition(".")[0] for file in FILES.values() for module in imported(file)} - {"rnea_rqt", "PySide6"}
    named = {element.text for element in package_xml() if element.tag == "exec_depend"}
    assert tops | {"python_qt_binding", "rqt_gui", "python3-numpy"} == named


def test_every_package_and_file_is_installed(setup):
    folders = {".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "rnea_rqt").rglob("*.py")}
    assert set(setup.packages) == folders
    installed = {file for _, files in setup.data_files for file in files}
    assert {"package.xml", "plugin.xml", "resource/rnea_rqt", "config/rnea.perspective"} == installed
    assert all((ROOT / file).is_file() for file in installed)


def test_package_xml_and_plugin_xml_lead_to_the_plugin_class():
    """The path in plugin.xml is the folder that rqt adds to sys.path."""
    (export,) = package_xml().findall("export/rqt_gui")
    assert export.get("plugin") == "${prefix}/plugin.xml"
    library = ElementTree.parse(ROOT / "plugin.xml").getroot()
    (found,) = library.findall("class")
    module, _, name = found.get("type").rpartition(".")
    tree = ast.parse((ROOT / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
    (plugin,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert plugin.name == name == found.get("name") and found.get("base_class_type") == "rqt_gui_py::Plugin"
    assert plugin.bases[0].id == "Plugin" and found.findtext("qtgui/label") and found.findtext("qtgui/group/label")


def test_perspective_starts_the_plugin_with_known_settings(app):
    """rqt evaluates each "repr", which must be a literal."""
    from rnea_rqt.widgets.panel import Panel

    def value(entry):
        assert entry["type"] == "repr"
        return ast.literal_eval(entry["repr"])

    manager = json.loads((ROOT / "config/rnea.perspective").read_text(encoding="utf-8"))["groups"]["pluginmanager"]
    (name,) = [plugin.get("name") for plugin in ElementTree.parse(ROOT / "plugin.xml").getroot().iter("class")]
    assert value(manager["keys"]["running-plugins"]) == {f"rnea_rqt/{name}": [1]}
    kept = manager["groups"][f"plugin__rnea_rqt__{name}__1"]["groups"]["plugin"]["keys"]
    panel = Panel()
    panel.restore(settings := json.loads(value(kept["session"])))
    assert settings and {key: panel.settings()[key] for key in settings} == settings
    panel.deleteLater()


def test_console_script_can_be_imported(setup):
    pytest.importorskip("rclpy")
    pytest.importorskip("rnea_rqt.qt", exc_type=ImportError)
    (script,) = setup.entry_points["console_scripts"]
    module, _, function = script.split("=")[1].strip().partition(":")
    assert callable(getattr(importlib.import_module(module), function))

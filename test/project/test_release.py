"""Release metadata are equal in all files, and messages do not change without notice.

``python test/project/test_release.py --update`` writes the digests of the messages.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"rnea_ros": ROOT, "rnea_msgs": ROOT / "rnea_msgs", "rnea_rqt": ROOT / "rnea_rqt",
           "rnea_controllers": ROOT / "rnea_controllers", "rnea_plugins": ROOT / "rnea_plugins"}
INTERFACES = ROOT / "test" / "golden" / "interfaces.json"
SETUP_FACT = r'^ +{}="([^"]*)",$'


def facts():
    """packaging/facts.py."""
    spec = importlib.util.spec_from_file_location("facts", ROOT / "packaging" / "facts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def manifest(name):
    return ElementTree.parse(FOLDERS[name] / "package.xml").getroot()


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def interfaces():
    """Return a digest of each definition without comments and blank lines, which determines its type on the wire."""
    found = {}
    for path in sorted(path for kind in ("msg", "srv", "action") for path in (ROOT / "rnea_msgs" / kind).iterdir()):
        lines = (re.sub(r"\s+", " ", line.partition("#")[0].strip()) for line in path.read_text(encoding="utf-8").splitlines())
        found[path.name] = hashlib.sha256("\n".join(filter(None, lines)).encode()).hexdigest()[:16]
    return found


def test_version_and_address_are_equal_in_all_files():
    module = facts()
    assert not module.differing(module.VERSION, module.stated("version"))
    assert not module.differing(module.ADDRESS, module.stated("url"))


def test_new_version_and_address_are_written_to_every_file(tmp_path):
    module = facts()
    for entry in (*module.VERSION, *module.ADDRESS):
        copy = tmp_path / entry.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(read(entry.file), encoding="utf-8")
    module.ROOT = tmp_path
    for address in ("https://one.example/rnea", "https://two.example/rnea"):
        assert module.main(["--version", "9.8.7", "--address", address]) == 0
        assert module.stated("version") == "9.8.7" and module.stated("url") == address
    assert yaml.safe_load((tmp_path / "CITATION.cff").read_text())["repository-code"] == address
    compile((tmp_path / "setup.py").read_text(), "setup.py", "exec")


def test_maintainer_and_licence_are_equal_in_all_files():
    people = {(person.text, person.get("email")) for name in FOLDERS for tag in ("maintainer", "author")
              for person in manifest(name).findall(tag)}
    ((name, email),) = people
    for file in ("setup.py", "rnea_rqt/setup.py"):
        for fact, value in (("author", name), ("author_email", email), ("maintainer", name), ("maintainer_email", email),
                            ("license", "Apache-2.0")):
            assert re.findall(SETUP_FACT.format(fact), read(file), re.M) == [value], (file, fact)
    for project in map(read, facts().PROJECTS):
        for role in ("authors", "maintainers"):
            assert f'{role} = [{{ name = "{name}", email = "{email}" }}]' in project
    citation, recipe = yaml.safe_load(read("CITATION.cff")), yaml.safe_load(read("packaging/recipe.yaml"))
    assert citation["authors"] == [{"name": name, "email": email}]
    licences = {citation["license"], recipe["about"]["license"], *(manifest(one).findtext("license") for one in FOLDERS)}
    assert licences == {"Apache-2.0"}
    for one, folder in FOLDERS.items():
        assert manifest(one).find("license").get("file") == "LICENSE"
        assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_change_logs_and_citation_have_the_same_version_and_date():
    citation = yaml.safe_load(read("CITATION.cff"))
    for folder in FOLDERS.values():
        newest = re.search(r"^(\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)\n-+$", (folder / "CHANGELOG.rst").read_text(), re.M)
        assert newest.groups() == (citation["version"], str(citation["date-released"]))


def test_conda_recipe_and_pip_dependencies_are_the_same():
    recipe = yaml.safe_load(read("packaging/recipe.yaml"))
    required = re.search(r"install_requires=\[\] if FOR_ROS else \[(.*?)\]", read("setup.py"), re.S)[1]
    assert {need.replace(" ", "") for need in recipe["requirements"]["run"]} - {"python>=3.10"} == set(
        re.findall(r'"([^"]+)"', required))
    assert 'python_requires=">=3.10"' in read("setup.py")


def test_rosdoc2_finds_a_configuration_for_each_package():
    for name, folder in FOLDERS.items():
        _attic, config = yaml.safe_load_all((folder / manifest(name).findtext("export/rosdoc2")).read_text(encoding="utf-8"))
        (builder,) = config["builders"]
        assert builder["sphinx"]["name"] == name


def test_rosdep_and_colcon_find_all_packages_in_a_workspace(tmp_path):
    """Both skip packages inside other packages but follow links, which the page on installation makes."""
    packages = pytest.importorskip("catkin_pkg.packages")
    (tmp_path / "rnea_ros").symlink_to(ROOT)
    (line,) = re.findall(r"^ln -s (.*) src$", read("docs/install.md"), re.M)
    for link in line.split():
        (tmp_path / Path(link).name).symlink_to(ROOT / Path(link).name)
    assert {package.name for package in packages.find_packages(str(tmp_path)).values()} == set(FOLDERS)


def test_message_definitions_equal_their_recorded_digests():
    """See docs/release.md for deliberate changes: describe them in CHANGELOG.rst, then run with --update."""
    assert interfaces() == json.loads(INTERFACES.read_text(encoding="utf-8"))


if __name__ == "__main__":
    if "--update" in sys.argv:
        INTERFACES.write_text(json.dumps(interfaces(), indent=1) + "\n", encoding="utf-8")

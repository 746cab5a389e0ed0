"""Packaging metadata for pip, colcon and rosdep are consistent with each other and with the files."""
import ast
import importlib
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]

# rosdep key: name on PyPI. All others are ROS packages, "ros-..." on PyPI where they are there at all.
PYPI = {
    "python3-argcomplete": "argcomplete",
    "python3-jsonschema": "jsonschema",
    "python3-lxml": "lxml",
    "python3-numpy": "numpy",
    "python3-pytest": "pytest",
    "python3-pytest-timeout": "pytest-timeout",
    "python3-yaml": "pyyaml",
    "xacro": "xacro",
}
NOT_ON_PYPI = {"launch", "launch_ros", "rnea_msgs", "robot_state_publisher"}
NOT_IN_ROSDEP = {"llvmlite"}
INSIDE_ANOTHER = {"mpl_toolkits"}  # comes with matplotlib
WHERE_INSTALLED = {"control_msgs", "controller_manager_msgs"}  # optional features of the nodes


def read_setup(*arguments, folder=ROOT):
    """Return the arguments that `setup.py ARGUMENTS` passes to setuptools, without building."""
    pytest.importorskip("setuptools")
    from distutils.core import run_setup  # Python 3.12 and later: by setuptools

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return run_setup("setup.py", list(arguments), stop_after="config")


@pytest.fixture(scope="module")
def setup():
    return read_setup()


def package_xml(folder=ROOT):
    return ElementTree.parse(folder / "package.xml").getroot()


def depends(*tags):
    return {element.text for element in package_xml() if element.tag in tags}


def names(requirements):
    return {re.match(r"[\w.-]+", requirement).group() for requirement in requirements}


def files_below(*folders):
    return {
        file.relative_to(ROOT).as_posix()
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def imported(folder):
    """Return the top-level names of all imports below a folder, including those inside functions."""
    found = set()
    for file in files_below(folder):
        if file.endswith(".py"):
            for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    found.add(node.module.split(".")[0])
    return found


def test_both_packages_have_one_version_and_licence(setup):
    project = (ROOT / "rnea_msgs/pyproject.toml").read_text(encoding="utf-8")
    versions = [package_xml().findtext("version"), package_xml(ROOT / "rnea_msgs").findtext("version"),
                setup.metadata.version, re.search(r'^version = "(.*)"', project, re.M).group(1)]
    assert len(set(versions)) == 1, versions
    licences = [package_xml().findtext("license"), package_xml(ROOT / "rnea_msgs").findtext("license"),
                setup.metadata.license, re.search(r'^license = .*"(.*)"', project, re.M).group(1)]
    assert set(licences) == {"Apache-2.0"}
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_changelog_names_the_version(setup):
    newest = re.search(r"^(\d+\.\d+\.\d+) \(\d{4}-\d{2}-\d{2}\)$", (ROOT / "CHANGELOG.rst").read_text(), re.M)
    assert newest.group(1) == setup.metadata.version


def test_rosdep_and_pip_dependencies_are_the_same(setup):
    on_pypi = {PYPI.get(key, "ros-" + key.replace("_", "-")) for key in depends("depend", "exec_depend") - NOT_ON_PYPI}
    assert on_pypi == names(setup.install_requires + setup.extras_require["ros"]) - NOT_IN_ROSDEP
    assert {PYPI[key] for key in depends("test_depend")} <= names(setup.extras_require["test"])


def test_colcon_install_has_no_pip_requirements(setup):
    """The scripts of such an install may check every requirement, and rosdep cannot provide all by their pip names."""
    assert setup.install_requires
    assert not read_setup("install", "--prefix", "unused").install_requires


def test_setup_py_works_through_a_symlink_of_colcon(tmp_path):
    """`colcon build --symlink-install` runs a link to it, in a folder that has nothing else."""
    (tmp_path / "setup.py").symlink_to(ROOT / "setup.py")
    assert "URDF" in read_setup(folder=tmp_path).metadata.long_description


def test_build_backend_is_declared_for_old_pip_versions():
    """Otherwise it runs setup.py as colcon does, and no shell finds the commands."""
    assert 'build-backend = "setuptools.build_meta"' in (ROOT / "pyproject.toml").read_text()
    assert "[project]" not in (ROOT / "pyproject.toml").read_text()  # declared in setup.py


def test_package_xml_contains_every_imported_package(setup):
    optional_extras = ("bags", "dask", "jax", "planning", "plot", "sim", "torch")
    extras = [requirement for extra in optional_extras for requirement in setup.extras_require[extra]]
    optional = names(extras) | NOT_IN_ROSDEP | WHERE_INSTALLED | INSIDE_ANOTHER
    rosdep = {pypi.replace("-", "_"): key for key, pypi in PYPI.items()} | {"yaml": "python3-yaml"}
    foreign = (imported("rnea_ros") | imported("launch")) - sys.stdlib_module_names - optional - {"rnea_ros"}
    assert {rosdep.get(name, name) for name in foreign} <= depends("depend", "exec_depend")


def test_console_scripts_import(setup):
    scripts = setup.entry_points["console_scripts"]
    assert scripts
    for script in scripts:
        module, function = script.split("=")[1].strip().split(":")
        if ".nodes." in module:
            pytest.importorskip("rclpy")
        assert callable(getattr(importlib.import_module(module), function)), script


def test_config_launch_and_urdf_files_are_installed(setup):
    installed = {file: folder for folder, files in setup.data_files for file in files}
    assert set(installed) - {"package.xml", "resource/rnea_ros"} == files_below("config", "launch", "urdf")
    for file, folder in installed.items():
        if file.startswith(("config", "launch", "urdf")):
            assert folder == f"share/rnea_ros/{Path(file).parent.as_posix()}"
    assert installed["package.xml"] == "share/rnea_ros"
    assert installed["resource/rnea_ros"] == "share/ament_index/resource_index/packages"


def test_installed_package_equals_the_source():
    """Nodes and commands started by tests use the installed package; the comparison also finds files not packaged."""
    folders = [Path(entry) for entry in sys.path if "packages" in Path(entry).name]
    installed = next((folder / "rnea_ros" for folder in folders if (folder / "rnea_ros").is_dir()), None)
    if installed is None:
        pytest.skip("rnea_ros runs from its source and is not installed")

    def contents(folder):
        return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*")
                if file.is_file() and "__pycache__" not in file.parts}

    source, copy = contents(ROOT / "rnea_ros"), contents(installed)
    differing = sorted(str(name) for name in source.keys() | copy.keys() if source.get(name) != copy.get(name))
    assert not differing, f"installed rnea_ros differs from the source, `make env` installs it again: {differing}"


def test_cmake_builds_every_message():
    built = re.search(r"rosidl_generate_interfaces\((.*?)\)", (ROOT / "rnea_msgs/CMakeLists.txt").read_text(), re.S)
    listed = set(re.findall(r"\S+\.(?:msg|srv|action)", built.group(1)))
    present = {file.relative_to(ROOT / "rnea_msgs").as_posix() for kind in ("msg", "srv", "action")
               for file in (ROOT / "rnea_msgs").glob(f"{kind}/*.{kind}")}
    assert listed == present


def test_pixi_has_a_conda_name_for_every_python_package():
    """Names, versions and all other dependencies come from package.xml."""
    toml = pytest.importorskip("tomllib")
    workspace = toml.loads((ROOT / "pixi.toml").read_text(encoding="utf-8"))
    config = workspace["package"]["build"]["config"]
    mapped = {key: names["conda"] for entry in config["extra-package-mappings"] for key, names in entry.items()}
    assert mapped == {key: [PYPI[key]] for key in depends("exec_depend") if key.startswith("python3-")}
    assert f"llvmlite{workspace['package']['run-dependencies']['llvmlite']}" in read_setup().install_requires
    distribution = config["distro"]
    assert f"https://prefix.dev/robostack-{distribution}" in workspace["workspace"]["channels"]
    assert workspace["dependencies"][f"ros-{distribution}-rnea-ros"] == {"path": "."}
    messages = toml.loads((ROOT / "rnea_msgs/pixi.toml").read_text(encoding="utf-8"))
    assert messages["package"]["build"]["config"]["distro"] == distribution
    assert not {"name", "version"} & {*workspace["package"], *messages["package"]}


def test_packages_workflow_builds_and_tests_what_users_install():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with ROS 2")
    jobs = yaml.safe_load((ROOT / ".github/workflows/packages.yml").read_text(encoding="utf-8"))["jobs"]
    steps = {name: [step.get("run", "") + str(step.get("with", "")) for step in job["steps"]] for name, job in jobs.items()}
    script = (ROOT / ".ci/wheels").read_text(encoding="utf-8")
    matrix = jobs["wheels"]["strategy"]["matrix"]
    for distribution in [*matrix["distribution"], *(entry["distribution"] for entry in matrix["include"])]:
        assert f"{distribution})" in script
    wanted = {"wheels": ("make wheels", "rnea demo"), "image": ("docker build --file packaging/Dockerfile", "rnea demo"),
              "pixi": ("pixi run check", "pixi run demo"), "conda": ("packaging/recipe.yaml",)}
    assert set(steps) == set(wanted)
    for name, lines in wanted.items():
        assert all(any(line in step for step in steps[name]) for line in lines), name


def test_container_image_contains_what_a_node_needs():
    """Both stages use the same base image, the copied folders exist, and the last step starts nodes."""
    lines = (ROOT / "packaging/Dockerfile").read_text(encoding="utf-8").splitlines()
    first, second = (line.split()[1] for line in lines if line.startswith("FROM "))
    assert first == second
    assert [line for line in lines if line.startswith("RUN ")][-1].endswith("rnea demo --seconds 3")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not {"rnea_msgs", "urdf", "README.md", "setup.py", "package.xml"} & set(ignored)

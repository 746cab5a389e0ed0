"""URDFs as untrusted input: each attack is rejected with a reason, without output, within 200 MB of memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from rnea_ros import ModelError, Robot, load
from rnea_ros.cli import main
from rnea_ros.model import urdf, urdf_reader
from rnea_ros.model import xacro_file as xacro_process
from support.robots import arm

TESTED = Path(urdf_reader.__file__).parents[1]  # other processes use the same package as this one
MEGABYTES = 200.0

# Loads files given by their paths, each as path, text or bytes, in a forked process that reports the reason of a rejection and
# the memory that loading took beyond the import and the reading.
PROBE = """
import json, os, resource, sys
from pathlib import Path
from rnea_ros import ModelError, Robot
Robot.from_urdf("<robot><link name='warm'/></robot>")
for line in sys.stdin:
    kind, path = json.loads(line)
    child = os.fork()
    if not child:
        source = {"path": lambda: path, "text": lambda: Path(path).read_bytes().decode("utf-8", "surrogateescape"),
                  "bytes": lambda: Path(path).read_bytes()}[kind]()
        problem, memory = None, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            Robot.from_urdf(source)
        except ModelError as error:
            problem = str(error)
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
        Path(path + ".json").write_text(json.dumps([problem, memory]))
        sys.stdout.flush()
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def loader(tmp_path_factory):
    """Start the process that loads the URDFs of `probe`; return it and its error file."""
    errors = tmp_path_factory.mktemp("probe") / "stderr"
    with errors.open("w") as file, subprocess.Popen([sys.executable, "-c", PROBE], stdin=subprocess.PIPE, cwd=TESTED,
                                                    stdout=subprocess.PIPE, stderr=file, text=True) as process:
        yield process, errors
        process.stdin.close()
        assert process.wait(timeout=120) == 0


@pytest.fixture
def probe(loader, tmp_path):
    """Load a URDF in another process, which must print nothing; return (reason of rejection or None, megabytes)."""
    process, errors = loader

    def probed(content, kind="path", suffix=".urdf"):
        path = tmp_path / f"robot{suffix}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        process.stdin.write(json.dumps([kind, str(path)]) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "0\n", errors.read_text()
        assert errors.read_text() == ""
        return json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))

    return probed


def robot(inside, head=""):
    return f'{head}<robot name="r"><link name="a"/>{inside}</robot>'


def chain(count):
    """Return a kinematic chain as flat XML."""
    links = "".join(f'<link name="l{k}"/>' for k in range(count))
    return links + "".join(f'<joint name="j{k}" type="continuous"><parent link="{f"l{k - 1}" if k else "a"}"/>'
                           f'<child link="l{k}"/></joint>' for k in range(count))


def followers(count, leader):
    """Return parallel joints that mimic each other."""
    links = "".join(f'<link name="l{k}"/>' for k in range(count))
    return links + "".join(f'<joint name="j{k}" type="continuous"><parent link="a"/><child link="l{k}"/>'
                           f'<mimic joint="j{leader(k)}"/></joint>' for k in range(count))


def bomb(levels=9):
    """Return a billion laughs attack."""
    entities = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, levels + 1))
    return f'<!DOCTYPE robot [<!ENTITY a0 "laugh">{entities}]>', f"&a{levels};"


def utf(encoding, text):
    return f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding)


MEGA = 1_000_000
FILE, NET = "file:///etc/passwd", "http://127.0.0.1:9/"
ATTACKS = {
    "DOCTYPE": lambda: (robot("", "<!DOCTYPE robot>"), "document type"),
    "doctype in small letters": lambda: (robot("", "<!doctype robot>"), "document type"),
    "DOCTYPE of a file": lambda: (robot("", f'<!DOCTYPE robot SYSTEM "{FILE}">'), "document type"),
    "entity": lambda: (robot("&e;", '<!DOCTYPE robot [<!ENTITY e "x">]>'), "document type"),
    "external file entity": lambda: (robot("&e;", f'<!DOCTYPE robot [<!ENTITY e SYSTEM "{FILE}">]>'), "document type"),
    "network entity": lambda: (robot("&e;", f'<!DOCTYPE robot [<!ENTITY % e SYSTEM "{NET}"> %e;]>'), "document type"),
    "billion laughs": lambda: (robot(bomb()[1], bomb()[0]), "document type"),
    "DOCTYPE in UTF-16": lambda: (utf("utf-16", robot("", "<!DOCTYPE robot>")), "document type"),
    "DOCTYPE in UTF-32": lambda: (utf("utf-32", robot("", "<!DOCTYPE robot>")), ""),
    "file entity in UTF-16": lambda: (utf("utf-16", robot("&e;", f'<!DOCTYPE r [<!ENTITY e SYSTEM "{FILE}">]>')), ""),
    "laughs in UTF-16, text": lambda: (utf("utf-16", robot(bomb()[1], bomb()[0])), ""),
    "laughs in UTF-16, attribute": lambda: (utf("utf-16", robot(f'<link name="{bomb()[1]}"/>', bomb()[0])), ""),
    "small entities in UTF-16": lambda: (utf("utf-16", robot(f'<link name="{bomb(3)[1]}"/>', bomb(3)[0])), ""),
    "DOCTYPE in UTF-7": lambda: (b'<?xml version="1.0" encoding="UTF-7"?>+ADw-!DOCTYPE r+AD4-+ADw-robot/+AD4-', ""),
    "DOCTYPE in EBCDIC": lambda: ('<?xml version="1.0" encoding="cp037"?><!DOCTYPE r><robot/>'.encode("cp037"), ""),
    "undefined entity": lambda: (robot('<link name="&e;"/>'), "not well-formed"),
    "50 MB": lambda: (robot(" " * 50 * MEGA), "more than 3000000 bytes"),
    "50 MB of zeros": lambda: (b"\0" * 50 * MEGA, "more than 3000000 bytes"),
    "50 MB attribute": lambda: (robot(f'<link name="{"x" * 50 * MEGA}"/>'), "more than 3000000 bytes"),
    "huge attribute": lambda: (robot(f'<link name="{"x" * 2 * MEGA}"/>'), "2000000 characters, at most 1000"),
    "huge number": lambda: (robot(f'<joint name="j" type="fixed"><origin xyz="{"1" * 2 * MEGA}"/></joint>'), "at most 1000"),
    "100000 links": lambda: (robot("".join(f'<link name="{k}"/>' for k in range(100_000))), "100001 links; at most 2000"),
    "100000 joints": lambda: (robot("".join(f'<joint name="{k}"/>' for k in range(100_000))), "100000 joints; at most 2000"),
    "3000 links": lambda: (robot(chain(3000)), "3001 links; at most 2000"),
    "700000 elements": lambda: (f"<robot>{'<a/>' * 700_000}</robot>", "no <link>"),
    "elements and text": lambda: (f"<robot>{'<a/>x' * 590_000}</robot>", "no <link>"),
    "250000 attributes": lambda: ("<robot " + " ".join(f'a{k:x}=""' for k in range(250_000)) + "/>", ""),
    "150000 namespaces": lambda: ("<robot " + " ".join(f'xmlns:a{k:x}="u"' for k in range(150_000)) + "/>", ""),
    "XML nested 1000 deep": lambda: (robot("<a>" * 1000 + "</a>" * 1000), "not well-formed"),
    "XML nested 400000 deep": lambda: (robot("<a>" * 400_000 + "</a>" * 400_000), "not well-formed"),
    "a chain of 1000 joints": lambda: (robot(chain(1000)), "1000 joints in series; at most 256"),
    "a chain of 257 joints": lambda: (robot(chain(257)), "257 joints in series; at most 256"),
    "1900 joints mimic in a circle": lambda: (robot(followers(1900, lambda k: (k + 1) % 1900)), "mimics itself"),
    "binary junk": lambda: (bytes(range(256)) * 10_000, "not well-formed"),
    "binary junk behind a tag": lambda: (b"<robot>" + bytes(range(256)) * 1000, "not well-formed"),
    "empty": lambda: (b"", "not well-formed"),
    "NUL bytes": lambda: (b'<robot name="\0"/>', "not well-formed"),
    "unfinished": lambda: (robot("")[:-3], "not well-formed"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_urdf_file_is_rejected_with_a_reason_and_without_output(probe, attack):
    content, reason = ATTACKS[attack]()
    problem, megabytes = probe(content)
    assert problem is not None, "the URDF was loaded"
    assert "root:" not in problem, "the content of a file came in"
    assert reason in problem and len(problem) < 5000
    assert megabytes < MEGABYTES


@pytest.mark.parametrize("kind", ["text", "bytes"])
@pytest.mark.parametrize("attack", ["DOCTYPE", "entity", "billion laughs", "50 MB", "50 MB attribute", "huge attribute",
                                    "100000 links", "a chain of 1000 joints", "XML nested 1000 deep", "elements and text"])
def test_hostile_urdf_text_is_rejected(probe, attack, kind):
    """Descriptions are also received as text from parameters and topics."""
    problem, megabytes = probe(ATTACKS[attack]()[0], kind)
    assert problem is not None and len(problem) < 5000
    assert megabytes < MEGABYTES


def test_long_text_that_is_not_xml_is_rejected(probe):
    problem, megabytes = probe("x" * 50 * MEGA, "text")
    assert "cannot be read" in problem and len(problem) < 2000
    assert megabytes < MEGABYTES


@pytest.mark.parametrize("content", [
    robot(chain(256)), robot(followers(1900, lambda k: 0)), robot(followers(1900, lambda k: min(k + 1, 1899))),
], ids=["256 in series", "1900 follow one", "1900 follow each other"])
def test_largest_allowed_robots_are_accepted(probe, content):
    """Joint 0 or 1899 would mimic itself: its mimic element is removed."""
    content = content.replace('<child link="l0"/><mimic joint="j0"/>', '<child link="l0"/>')
    content = content.replace('<child link="l1899"/><mimic joint="j1899"/>', '<child link="l1899"/>')
    problem, megabytes = probe(content)
    assert problem is None and megabytes < MEGABYTES


@pytest.mark.parametrize("path", ["/", "/dev/null", "/dev/zero", "no/such/robot.urdf", "no/such/robot.xacro", "robot\0.urdf",
                                  "x" * 5000, "~no-such-user/robot.urdf"])
def test_unreadable_and_oversized_files_are_rejected(path):
    with pytest.raises(ModelError, match=r"cannot be read|not well-formed|more than 3000000 bytes"):
        Robot.from_urdf(path)


def test_file_without_read_permission_is_rejected(tmp_path):
    path = tmp_path / "secret.urdf"
    path.write_text(arm({}), encoding="utf-8")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(ModelError, match="cannot be read"):
        Robot.from_urdf(path)


def test_meshes_are_not_opened(probe, tmp_path):
    """The mesh is a pipe without a writer, which would block when opened."""
    os.mkfifo(tmp_path / "mesh.stl")
    uris = f"file://{tmp_path}/mesh.stl", f"{tmp_path}/mesh.stl", "package://nowhere/mesh.stl", "mesh.stl"
    meshes = "".join(f'<visual><geometry><mesh filename="{uri}"/></geometry></visual>' for uri in uris)
    text = arm({}).replace("</link>", f"{meshes}</link>")
    assert probe(text)[0] is None


def test_unused_elements_print_no_messages(probe):
    noise = ('<gazebo reference="l1"><unknown/></gazebo><transmission name="t"><joint name="j1"/></transmission>'
             '<material name="x"><texture/></material><ros2_control name="x" type="system"/></robot>')
    text = arm({}).replace("</robot>", noise).replace('effort="1"', 'effort="1" jerk="3" lower="-1" upper="1"')
    text = text.replace("<robot ", '<robot version="1.2" ').replace("</joint>", "<safety_controller/><calibration/></joint>")
    assert probe(text)[0] is None


def test_names_are_not_executed_as_code(tmp_path):
    """Names contain injections for generated code, format strings, shells and XML."""
    harm = tmp_path / "harm"
    for name in (f"__import__('os').system('touch {harm}')", f"$(touch {harm})", "{0.__class__}", "%n", "\"; ret void", "]]>"):
        text = arm({}, {}).replace('"l1"', quoteattr(name)).replace('"j1"', quoteattr(name))
        for backend in ("llvm", "python"):
            tau, _ = Robot.from_urdf(text, backend=backend).torque_and_rate(*[[0.1, 0.2]] * 4)
            assert tau.shape == (2,)
        assert not harm.exists()


# ---------------------------------------------------------------------- xacro

XACRO = ('<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="length" value="{length}"/>'
         '<link name="a"/><link name="b"/><joint name="j" type="prismatic"><parent link="a"/><child link="b"/>'
         '<origin xyz="${{2 * length}} 0 0"/></joint></robot>')


EVIL = ("${{(lambda: [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]"
        ".__init__.__globals__['system']('touch {harm}'))()}}")


def xacro_file(tmp_path, length):
    pytest.importorskip("xacro")
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(XACRO.format(length=length), encoding="utf-8")
    return path


def test_xacro_is_expanded_if_allowed(tmp_path):
    path = xacro_file(tmp_path, 0.25)
    robot = Robot.from_urdf(path, allow_xacro=True)
    assert robot.joint_names == ("j",)
    assert robot.model.frame("b").link == 1 and robot.reconstruction_error < 1e-15
    assert Robot.from_urdf(str(path), allow_xacro=True).model_id == robot.model_id


def test_arguments_of_a_xacro_file_are_passed(tmp_path):
    path = xacro_file(tmp_path, "$(arg long)")
    path.write_text(path.read_text().replace("<xacro:property", '<xacro:arg name="long" default="1"/><xacro:property'))
    assert b'xyz="6.0 0 0"' in xacro_process.expanded(path, {"long": "3.0"})
    assert b'xyz="2 0 0"' in xacro_process.expanded(str(path))


def test_packages_named_by_a_xacro_file_are_found_in_its_repository(tmp_path, monkeypatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    for folder, package in (("arm_description", "arm_description"), ("Clone_of_Meshes", "arm_meshes")):
        (tmp_path / folder / "urdf").mkdir(parents=True)
        (tmp_path / folder / "package.xml").write_text(f"<package><name>{package}</name></package>")
    (tmp_path / "Clone_of_Meshes" / "length.xacro").write_text(
        '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="long" value="4.0"/></robot>')
    path = xacro_file(tmp_path / "arm_description" / "urdf", "${long}")
    text = path.read_text()
    included = '<xacro:include filename="$(find arm_meshes)/length.xacro"/>'
    path.write_text(text.replace("<xacro:property", f"{included}<xacro:property"))
    assert b'xyz="8.0 0 0"' in xacro_process.expanded(path)
    path.write_text(path.read_text().replace("arm_meshes", "leg_meshes"))
    with pytest.raises(ModelError, match="package 'leg_meshes' is neither installed nor beside the file: source"):
        xacro_process.expanded(path)


LOADERS = {
    "Robot": Robot.from_urdf, "moving base": partial(load, base="floating"), "urdf": urdf.load,
    "load with a mapping": lambda path, **options: load(path, {}, **options),
    "load": lambda path, **options: load(path, {"version": 1}, **options),
}


@pytest.mark.parametrize("loader", LOADERS)
def test_xacro_file_is_not_executed_without_permission(tmp_path, loader):
    """The file creates another file when it is executed."""
    harm = tmp_path / "harm"
    path = xacro_file(tmp_path, EVIL.format(harm=harm))
    for source in (path, str(path), str(path).encode()):
        with pytest.raises(ModelError) as caught:
            LOADERS[loader](source)
        if not isinstance(source, bytes):
            assert all(part in str(caught.value) for part in ("program", "allow_xacro=True", "arm.urdf.xacro"))
    assert not harm.exists()
    with contextlib.suppress(ModelError):  # some of them want more than a URDF
        LOADERS[loader](path, allow_xacro=True)
    assert harm.exists()


def test_commands_expand_a_xacro_file_with_its_arguments(tmp_path, capsys):
    path = xacro_file(tmp_path, "$(arg long)")
    declared = '<xacro:arg name="long" default="1"/><xacro:arg name="o" default="2"/>'
    text = path.read_text().replace('name="arm"', 'name="$(arg long)"')
    path.write_text(text.replace("<xacro:property", f"{declared}<xacro:property"))
    file, state = str(path), tmp_path / "state.json"
    state.write_text('{"position": [0.1]}', encoding="utf-8")
    for command in (["model", file], ["check", file], ["query", file, "torque", "--state", str(state)]):
        assert main.main([*command, "long:=3.0"]) in (0, 1)
        assert "program" not in capsys.readouterr().err
    demo = ["demo", "--urdf", file, "--no-ros", "--plot", "", "--seconds", "0.5"]
    assert main.main([*demo, "long:=3.0"]) == 2
    assert "robot '3.0': no moving link has a mass" in capsys.readouterr().err
    assert main.main(["check", file]) == 2
    text = capsys.readouterr().err
    assert "  long:=1\n  o:=2\n" in text and f"Type, for instance: {file} long:=1 o:=2" in text
    assert main.main(["check", file, "long:=3.0", "lomg:=1"]) == 2
    assert "it has no argument lomg (lomg; did you mean 'long'?)" in capsys.readouterr().err
    assert main.main(["check", str(Path(__file__).resolve().parents[2] / "urdf" / "rr.urdf"), "a:=1"]) == 2
    assert "a:=1: only a .xacro file has arguments" in capsys.readouterr().err


def test_errors_of_xacro_are_reported_with_the_file(tmp_path):
    path = xacro_file(tmp_path, "${1/0}")
    with pytest.raises(ModelError, match=r"arm\.urdf\.xacro: xacro: .*division by zero"):
        Robot.from_urdf(path, allow_xacro=True)


ASLEEP = EVIL.replace("touch {harm}", "sleep 1000 &amp; echo $! > {harm}; wait")


def test_xacro_expansion_is_stopped_after_a_timeout(tmp_path, monkeypatch):
    harm = tmp_path / "harm"

    def stopped(length, seconds):
        monkeypatch.setattr(xacro_process, "SECONDS", seconds)
        with pytest.raises(ModelError, match=f"stopped after {seconds:g} s"):
            Robot.from_urdf(xacro_file(tmp_path, length), allow_xacro=True)

    stopped("${[k for k in range(10**12) if k == -1]}", 1.0)
    for seconds in (2.0, 8.0, 32.0):  # until it had time to start something
        if not harm.exists() or not harm.read_text():
            stopped(ASLEEP.format(harm=harm), seconds)
    with pytest.raises(ProcessLookupError):  # what it had started has gone with it
        for _ in range(600):
            os.kill(int(harm.read_text()), 0)
            time.sleep(0.1)


@pytest.mark.parametrize(("length", "reason"), [
    ("${'x' * 10**10}", "MemoryError"), ("${'x' * (2 * 10**7)}", "more than 10000000 bytes"),
    ("${'x' * (4 * 10**6)}", "more than 3000000 bytes")])
def test_xacro_expansion_is_limited_in_memory_and_size(tmp_path, length, reason):
    path = xacro_file(tmp_path, length)
    path.write_text(path.read_text().replace("${2 * length}", "${length}"), encoding="utf-8")
    with pytest.raises(ModelError, match=reason) as caught:
        Robot.from_urdf(path, allow_xacro=True)
    assert len(str(caught.value)) < 2000


def test_modules_in_the_current_folder_are_not_imported_by_xacro(tmp_path, monkeypatch):
    xacro_file(tmp_path, 0.25)
    for name in ("xacro", "yaml", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not me')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert Robot.from_urdf("arm.urdf.xacro", allow_xacro=True).n == 1


def test_hostile_xacro_files_are_rejected_before_expansion(probe):
    for attack in ("DOCTYPE", "billion laughs", "50 MB"):
        content, reason = ATTACKS[attack]()
        problem, megabytes = probe(content, suffix=".xacro")
        assert reason in problem and megabytes < MEGABYTES


def test_missing_xacro_package_is_reported(tmp_path, monkeypatch):
    path = xacro_file(tmp_path, 1)
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ModelError, match=r"'xacro' is not importable; install it"):
        Robot.from_urdf(path, allow_xacro=True)


def test_size_limits_are_ten_times_the_largest_example():
    """The largest example robot has 211 kB and 157 links."""
    assert urdf_reader.MAX_BYTES > 10 * 211_000 and urdf_reader.MAX_LINKS > 10 * 157

"""`rnea export`: C code of robots of every kind is compiled and compared with Python; its run time does not depend on data."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnea_ros import InputError, MotorState, Robot, load
from rnea_ros.cli.main import main
from rnea_ros.export import c_library
from rnea_ros.sim.machines import gough_stewart
from support import combined_machines, robot_kinds
from support.ground_machines import tripod, vehicle
from support.machines import polygon
from support.parallel_machines import delta, planar_3rrr
from support.robots import arm, random_tree

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc") or ""
STRICT = ["-Wshadow", "-Wconversion", "-Wold-style-cast", "-Wmissing-braces"]  # those of ros2_control
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off", "-fno-math-errno", "-fPIC"]
JOINTS = ({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}, {"axis": (0.6, 0, 0.8), "xyz": (0, 0.1, 0.4)})


def tree_urdf(seed: int) -> str:
    return random_tree(seed).text()


@cache
def machine(name: str) -> Any:
    """Return the robot of a name, which is kind and number."""
    kind, number = name.split()
    k = int(number)
    urdf = ROOT / "urdf"
    if kind == "loops":
        files = ["five_bar", "palletiser"][k:k + 1]
        return load(urdf / f"{files[0]}.urdf", urdf / f"{files[0]}.robot.yaml") if files else _four_bar()
    if kind == "parallel":
        return (planar_3rrr, delta, gough_stewart)[k]().robot()
    if kind == "elastic":
        return [lambda: load(urdf / "hua_arm.urdf", urdf / "hua_arm.robot.yaml"),
                lambda: robot_kinds.MAKERS["elastic joints"]("llvm").robot, _all_elastic][k]()
    if kind == "springs":
        held = ("j1", "j2", "j3")[k]
        return load(arm(*JOINTS), {"version": 1, "springs": {held: {"stiffness": 30.0 + k, "rest": 0.1, "damping": 0.5 * k}}})
    trees = [urdf / "stanford.urdf", tree_urdf(3), tree_urdf(8)]
    return Robot.from_urdf(trees[k]) if kind == "tree" else load(trees[k], base="floating")


def _four_bar() -> Any:
    return load(*polygon(((0.0, 0.0), (0.1, 0.5), (0.6, 0.6), (0.7, 0.0))).cut_at("j4", active=["j1"]))


def _all_elastic() -> Any:
    springs = {f"j{k}": {"stiffness": 100.0 * k} for k in (1, 2, 3)}
    drives = {f"j{k}": {"gear_ratio": 50.0, "rotor_inertia": 1e-5 * k} for k in (1, 2, 3)}
    return load(arm(*JOINTS), {"version": 1, "elastic_joints": springs, "drives": drives})


ALL = [f"{kind} {k}" for kind in ("tree", "floating", "springs", "elastic", "loops", "parallel") for k in range(3)]
LIGHT = ('<robot name="light"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
         '<child link="b"/><axis xyz="0 0 1"/></joint></robot>')
QUICK = ("tree 1", "springs 0", "elastic 0", "floating 0", "loops 0")  # compile in half a second, with sanitizers
# Compile for seconds: smaller robots of these kinds, and a spatial platform on a carried base, cover the same functions.
LARGE = ("parallel 1", "parallel 2", "tree 2", "floating 2")


def chosen(*kinds: str) -> list[Any]:
    """Return the names of robots of some kinds, the large ones for `make campaign` only."""
    return [pytest.param(name, marks=pytest.mark.campaign) if name in LARGE else name
            for name in ALL if name.split()[0] in kinds]


class Compiled:
    """C library, compiled and loaded into this process."""

    def __init__(self, library: c_library.CLibrary, folder: Path, level: str = "-O0"):
        c_library.write_package(library, folder)
        self.library, self.folder = library, folder
        source, native = [f"src/{library.name}.c"], ["-march=native"]
        build = [COMPILER, "-std=c99", level, *FLAGS, *native, "-Iinclude"]
        subprocess.run([*build, "-shared", "-o", "robot.so", *source, "-lm"], cwd=folder, check=True, timeout=120)
        subprocess.run([*build, "-o", "self_test", "test/self_test.c", "./robot.so", "-lm"], cwd=folder, check=True,
                       timeout=240)
        self._code = ctypes.CDLL(str(folder / "robot.so"))

    def self_test(self) -> str:
        done = subprocess.run(["./self_test"], cwd=self.folder, capture_output=True, text=True, timeout=240)
        return f"{done.returncode} {done.stdout}"

    def __call__(self, function: str, **given: Any) -> dict[str, np.ndarray]:
        traced = next(one for one in self.library.functions if one.function.name == function)
        inputs, outputs = traced.blocks
        arrays = [np.ascontiguousarray(np.ravel(given[block.name]), dtype=float) for block in inputs]
        assert [len(array) for array in arrays] == [block.size for block in inputs]
        found = {block.name: np.full(block.size, np.nan) for block in outputs}
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *found.values())]
        self._code[f"{self.library.name}_{function}"](*addresses)
        return found


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    assert COMPILER, "a C compiler is needed, as make env needs g++"

    @cache
    def made(name: str) -> Compiled:
        word = c_library.identifier(name.replace(" ", "_"))
        return Compiled(c_library.library(machine(name), word), tmp_path_factory.mktemp(word))

    return made


def assert_close(found: np.ndarray, wanted: Any) -> None:
    np.testing.assert_allclose(found, np.ravel(wanted), rtol=1e-9, atol=1e-9 * max(1.0, np.abs(wanted).max(initial=0.0)))


def motion_of(robot: Any, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [robot.home_motion[0] + (0.03 if getattr(robot, "platforms", ()) else 0.1) * rng.normal(size=robot.n),
            *(0.3 * rng.normal(size=robot.n) for _ in range(robot.order))]


SANITIZED = ["-O0", "-g", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-Iinclude"]
IN_THREADS = """
#include <pthread.h>

static void *run(void *failed)
{
    *(int *)failed = self_test();
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    int failed[4], sum = 0;
    for (int k = 0; k < 4; ++k)
        if (pthread_create(threads + k, NULL, run, failed + k))
            return 2;
    for (int k = 0; k < 4; ++k) {
        pthread_join(threads[k], NULL);
        sum += failed[k];
    }
    return sum != 0;
}
"""


def assert_sanitized(library: Compiled, kinds: str, source: str, *options: str) -> None:
    """Compile a self-test with sanitizers, run it, and assert that it passes without a report."""
    name = library.library.name
    command = [COMPILER, "-std=c11", *SANITIZED, f"-fsanitize={kinds}", *options, "-o", "sanitized", f"src/{name}.c", source,
               "-lm"]
    done = subprocess.run(command, cwd=library.folder, capture_output=True, text=True, timeout=500, check=False)
    if "cannot find" in done.stderr and "san" in done.stderr:
        pytest.skip("the compiler lacks the libraries of its sanitizers")
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./sanitized"], cwd=library.folder, capture_output=True, text=True, timeout=240, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer of this compiler does not run on this kernel")
    assert (done.returncode, done.stderr) == (0, "") and "0 wrong" in done.stdout, done.stdout + done.stderr[:4000]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.campaign) for name in ALL])
def test_address_and_undefined_sanitizers_find_no_error_in_exported_code(compiled, name):
    """Inputs and outputs of the self-test have exactly their lengths."""
    assert_sanitized(compiled(name), "address,undefined,float-divide-by-zero,float-cast-overflow", "test/self_test.c")


@pytest.mark.parametrize("name", QUICK[-2:])
def test_thread_sanitizer_finds_no_race_between_calls_of_exported_code(compiled, name):
    """The self-test runs in four threads at once; its own counters become those of each thread."""
    library = compiled(name)
    own = (library.folder / "test" / "self_test.c").read_text(encoding="ascii")
    own = own.replace("static int ", "static _Thread_local int ").replace("int main(void)", "static int self_test(void)")
    (library.folder / "test" / "in_threads.c").write_text(own + IN_THREADS, encoding="ascii")
    assert_sanitized(library, "thread", "test/in_threads.c", "-pthread")


@pytest.mark.parametrize("name", chosen("tree", "floating", "springs", "elastic", "loops", "parallel"))
def test_self_test_reproduces_the_golden_numbers_bit_for_bit(compiled, name):
    found = compiled(name).self_test()
    assert found.startswith("0 all as in the Python library")
    if "fma" in Path("/proc/cpuinfo").read_text() and machine(name).tree.backend == "llvm":
        assert "to the last bit" in found


@pytest.mark.parametrize("name", chosen("tree", "springs", "elastic"))
def test_exported_torques_and_rates_match_the_python_library(compiled, name):
    robot = machine(name)
    names = ["q" + "d" * k for k in range(robot.order + 1)]
    for seed in range(3):
        found = compiled(name)("torque_and_rate", **dict(zip(names, motion_of(robot, seed), strict=True)))
        tau, rate = robot.torque_and_rate(*motion_of(robot, seed))
        assert_close(found["tau"], tau)
        assert_close(found["tau_rate"], rate)


@pytest.mark.parametrize("name", chosen("tree"))
def test_exported_functions_of_trees_match_the_python_library(compiled, name):
    robot, call = machine(name), compiled(name)
    q, qd, qdd, qddd = motion_of(robot, 5)
    assert_close(call("inverse_dynamics", q=q, qd=qd, qdd=qdd)["tau"], robot.inverse_dynamics(q, qd, qdd))
    assert_close(call("gravity", q=q)["tau"], robot.gravity(q))
    assert_close(call("bias", q=q, qd=qd)["tau"], robot.bias(q, qd))
    assert_close(call("mass_matrix", q=q)["M"], robot.mass_matrix(q))
    assert_close(call("forward_dynamics", q=q, qd=qd, tau=qddd)["qdd"], robot.forward_dynamics(q, qd, qddd))
    tables = call("sensitivities", q=q, qd=qd, qdd=qdd).values()
    for found, wanted in zip(tables, robot.sensitivities(q, qd, qdd), strict=True):
        assert_close(found, wanted)


@pytest.mark.parametrize("name", [name for name in ALL if name.startswith("loops")])
def test_exported_loops_close_step_by_step_and_torques_match_the_library(compiled, name):
    robot, call = machine(name), compiled(name)
    q, qd, qdd, qddd = motion_of(robot, 2)
    pose, active = np.array(robot.start), list(robot.loops.active)
    from_q = pose[active]
    for share in (0.25, 0.5, 0.75, 1.0):  # one share per controller cycle
        pose[active] = from_q + share * (q - from_q)
        for _ in range(4):
            pose = call("close_step", q=pose)["q_closed"]
    wanted = robot.motion(q, qd, qdd, qddd)
    assert_close(pose, wanted.q)
    found = call("torque_and_rate", q=pose, qd=qd, qdd=qdd, qddd=qddd)
    for part, expected in zip(found.values(), (*robot.torque_and_rate(q, qd, qdd, qddd), *wanted[1:4]), strict=False):
        assert_close(part, expected)
    assert 1.0 <= found["condition"][0] < 1e7


@pytest.mark.parametrize("name", chosen("parallel")[:2])
def test_exported_platform_torques_match_the_python_library(compiled, name):
    robot, call = machine(name), compiled(name)
    q, qd, qdd, qddd = motion_of(robot, 3)
    platform = robot.platform_motion(q, qd, qdd, qddd)
    pose = robot.loops.platforms[0].coordinates(platform.rotation, platform.position, np.array(robot.start))
    for _ in range(6):
        pose = call("platform_close_step", q=pose)["q_closed"]
    tau, rate = robot.torque_and_rate(motion=platform)
    given = {name: np.asarray(getattr(platform, name)) for name in ("velocity", "acceleration", "jerk")}
    by_actuators = call("torque_and_rate", q=pose, qd=qd, qdd=qdd, qddd=qddd)
    for found in (call("platform_torque_and_rate", q=pose, **given), by_actuators):
        assert_close(found["tau"], tau)
        assert_close(found["tau_rate"], rate)


@pytest.mark.parametrize("name", chosen("floating"))
def test_exported_moving_base_torques_match_the_python_library(compiled, name):
    robot, call, rng = machine(name), compiled(name), np.random.default_rng(4)
    q, qd, qdd, qddd = motion_of(robot, 4)
    base = robot_kinds.BASE
    state = {"base_velocity": base.velocity, "base_gravity": base.into_base(robot.tree.gravity_vector)}
    moved = dict(zip(("base_acceleration", "base_jerk"), rng.normal(size=(2, 6)), strict=True))
    found = call("torque_and_rate", q=q, qd=qd, qdd=qdd, qddd=qddd, **state, **moved)
    solved = robot.solve(q, qd, qdd, qddd, base=base.with_motion(*moved.values()))
    wanted = *solved.torques, solved.base_wrench, solved.base_wrench_rate
    for part, expected in zip(found.values(), wanted, strict=True):
        assert_close(part, expected)


# ---------------------------------------------------------------------- constant run time


def instructions(robot: Compiled, function: str, seeds: Sequence[Any], folder: Path) -> set[int]:
    """Return the numbers of instructions of one call for arguments of several seeds, counted by single steps."""
    traced = next(one for one in robot.library.functions if one.function.name == function)
    prototype = f"{robot.library.name}_{function}"
    blocks = [block for blocks in traced.blocks for block in blocks]
    call = ", ".join(f"a[{k}]" for k in range(len(blocks)))
    (folder / "counted.c").write_text(f'#include "{robot.library.name}/{robot.library.name}.h"\n'
                                      f"void call(double **a) {{ {prototype}({call}); }}\n")
    support = ROOT / "test" / "support" / "count_instructions.c"
    subprocess.run([COMPILER, "-std=gnu99", "-O2", *FLAGS, "-march=native", f"-I{robot.folder / 'include'}", "-shared", "-o",
                    "counted.so", "counted.c", str(support), str(robot.folder / "robot.so"), "-lm"], cwd=folder, check=True,
                   timeout=240)
    code = ctypes.CDLL(str(folder / "counted.so"))
    code.count.restype = ctypes.c_long
    found = set()
    for seed in seeds:
        arrays = [np.full(block.size, seed) if isinstance(seed, float) else np.random.default_rng(seed).normal(size=block.size)
                  for block in blocks]
        addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        found.add(code.count(ctypes.cast(code.call, ctypes.c_void_p), addresses))
    return found


@pytest.mark.parametrize(("name", "function"), [("tree 0", "torque_and_rate"), ("tree 1", "forward_dynamics"),
                                                 ("loops 0", "torque_and_rate"), ("elastic 0", "torque_and_rate")])
def test_instruction_count_does_not_depend_on_arguments(tmp_path, name, function):
    library = c_library.library(machine(name), "counted", wanted=lambda one: one == function)
    optimised = Compiled(library, tmp_path / "optimised", "-O2")
    counts = instructions(optimised, function, [0, 1, 2, 0.0, 1e4, -3e9, float("nan"), float("inf")], tmp_path)
    assert len(counts) == 1 and min(counts) > 100, counts


# ---------------------------------------------------------------------- the package


def test_exported_package_builds_with_cmake_and_passes_its_tests(tmp_path, capsys):
    cmake = shutil.which("cmake") or str(Path(shutil.which("python3") or "").with_name("cmake"))
    folder = tmp_path / "made"
    code = main(["export", str(ROOT / "urdf" / "stanford.urdf"), "-o", str(folder), "--payload", "link6", "--link", "link6",
                 "--name", "arm"])
    assert code == 0 and "arm_torque_and_rate: " in capsys.readouterr().out
    for command in ([cmake, "-S", ".", "-B", "build", "-DCMAKE_C_FLAGS=-Werror",
                     f"-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror {' '.join(STRICT)}"], [cmake, "--build", "build"],
                    [cmake, "--install", "build", "--prefix", "installed"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    assert (folder / "installed" / "include" / "arm" / "arm.hpp").is_file()
    said = subprocess.run([folder / "build" / "self_test"], check=True, capture_output=True, text=True, timeout=240).stdout
    assert said.startswith("all as in the Python library")
    said = subprocess.run([folder / "build" / "update_loop"], check=True, capture_output=True, text=True, timeout=240).stdout
    robot = Robot.from_urdf(ROOT / "urdf" / "stanford.urdf").with_payload("link6", 0.8, (0.0, 0.0, 0.04))
    assert f"{robot.gravity(np.zeros(6))[1]:12.6f}" in said


def test_exported_source_compiles_as_cpp(compiled, tmp_path):
    folder = compiled("tree 1").folder
    subprocess.run([shutil.which("c++") or "g++", "-std=c++17", "-x", "c++", *FLAGS, "-Iinclude", "-c", "src/tree_1.c", "-o",
                    str(tmp_path / "x.o")], cwd=folder, check=True, timeout=240)


@pytest.mark.parametrize("name", ["floating 0", "elastic 0", "loops 0", "parallel 0"])
def test_exported_example_compiles_with_the_warnings_of_ros2_control(compiled, name, tmp_path):
    folder = compiled(name).folder
    subprocess.run([shutil.which("c++") or "g++", "-std=c++17", *FLAGS, *STRICT, "-Iinclude", "-c", "example/update_loop.cpp",
                    "-o", str(tmp_path / "x.o")], cwd=folder, check=True, timeout=240)


def test_payload_argument_changes_the_gravity_torques(tmp_path):
    robot = Robot.from_urdf(ROOT / "urdf" / "stanford.urdf")
    call = Compiled(c_library.library(robot, "arm", "link6", wanted=lambda name: name == "gravity"), tmp_path)
    inertia = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.025]])
    q = np.random.default_rng(0).normal(size=6)
    block = call("payload", mass=1.5, com=(0.1, 0.0, 0.2), inertia=inertia[np.triu_indices(3)])["parameters"]
    assert_close(call("gravity", payloads=block, q=q)["tau"],
                 robot.with_payload("link6", 1.5, (0.1, 0.0, 0.2), inertia).gravity(q))
    assert_close(call("gravity", payloads=np.zeros(10), q=q)["tau"], robot.gravity(q))


# ---------------------------------------------------------------------- combinations


def vehicle_case():
    urdf, file = vehicle()
    robot = load(urdf, file, backend="python")
    rng = np.random.default_rng(1)
    return robot, list(0.3 * rng.normal(size=(4, robot.n))), {"base": robot_kinds.BASE}


def tripod_case():
    urdf, file, _ = tripod()
    robot = load(urdf, file, backend="python")
    rng = np.random.default_rng(1)
    base = robot_kinds.BASE.with_motion(*(0.3 * rng.normal(size=(2, 6))))
    return robot, list(0.3 * rng.normal(size=(4, robot.n))), {"base": base}


def combined_case(name: str):
    made = combined_machines.machine(0, **combined_machines.COMBINATIONS[name])
    truth, robot = combined_machines.MachineOracle(made, 0), load(made.urdf, made.file, backend="python")
    motion, state = truth.inputs(robot)
    return robot, motion, {**state, "guess": truth.guess(robot)}


def carried_stewart_case():
    robot = load(ROOT / "urdf" / "stewart.urdf", ROOT / "urdf" / "stewart.robot.yaml", base="prescribed", backend="python")
    rng = np.random.default_rng(1)
    motion = [robot.home_motion[0] + 0.03 * rng.normal(size=robot.n), *(0.3 * rng.normal(size=(3, robot.n)))]
    return robot, motion, {"base": robot_kinds.BASE.with_motion(*rng.normal(size=(2, 6)))}


EVERY = {**{name: partial(combined_case, name) for name in combined_machines.COMBINATIONS}, "wheels": vehicle_case,
         "standing": tripod_case, "platform on a carried base": carried_stewart_case}
SOME = ("elastic joint, free base, loop, spring", "elastic joint, given base", "standing",
        "wheels", "platform on a carried base")


def arguments(robot: Any, motion: Sequence[Any], state: dict[str, Any]) -> dict[str, Any]:
    """Return motion and state of base and motors by their names in C; the pose has closed loops."""
    found = {"q" + "d" * k: value for k, value in enumerate(motion)} | {k: v for k, v in state.items() if k != "guess"}
    if (base := found.pop("base", None)) is not None:
        found |= {f"base_{name}": value for name, value in vars(base).items() if value is not None}
    if robot.loops is not None:
        found["q"] = robot.close(motion[0], guess=state.get("guess"))
    return found


@pytest.mark.parametrize("name", [name if name in SOME else pytest.param(name, marks=pytest.mark.campaign) for name in EVERY])
def test_exported_combinations_match_the_python_library(tmp_path, name):
    robot, motion, state = EVERY[name]()
    call = Compiled(c_library.library(robot, "robot"), tmp_path)
    given = arguments(robot, motion, state)

    def called(function: str, **more: Any) -> dict[str, np.ndarray]:
        inputs = next(one.function.inputs for one in call.library.functions if one.function.name == function)
        return call(function, **{block: {**given, **more}[block] for block in inputs})

    exact = lambda found, wanted: np.testing.assert_allclose(  # noqa: E731
        found, np.ravel(wanted), rtol=1e-12, atol=1e-12 * max(1.0, np.abs(wanted).max(initial=0.0)))
    found, wanted = called("torque_and_rate"), robot.solve(*motion, **state)
    assert found["indicator"][0] <= 1.0
    exact(found["tau"], wanted.torques[0])
    exact(found["tau_rate"], wanted.torques[1])
    columns = [wanted.positions[joint] for joint in robot.tree.joint_names]
    for order in (1, 2, 3):
        if f"q{'d' * order}_all" in found:
            exact(found[f"q{'d' * order}_all"], [column[order] for column in columns])
    for part, value in (("base_wrench", "base_wrench"), ("base_wrench_rate", "base_wrench_rate"),
                        ("base_acceleration", "base_acceleration"), ("base_jerk", "base_jerk")):
        if part in found:
            exact(found[part], getattr(wanted, value))
    if "multipliers" in found:
        for part, order in (("multipliers", 0), ("multiplier_rates", 1)):
            exact(found[part], [values[order] for values in wanted.multipliers.values()])
    at = {key: value for key, value in state.items() if key in ("base", "guess")}
    motors: dict[str, Any] = {}
    driven = None
    if robot.elastic_joints:
        moved = robot.motor_motion(*motion, **state)
        motors, driven = {"q_motor": moved.q_motor, "qd_motor": moved.qd_motor}, MotorState(moved.q_motor, moved.qd_motor)
        for part, value in (("q_motor", moved.q_motor), ("qdd_motor", moved.qdd_motor), ("tau_link", moved.load),
                            ("tau_link_rate", moved.load_rate)):
            exact(found[part], value)
    tau = np.linspace(-1.0, 1.0, robot.n)
    exact(called("forward_dynamics", tau=tau, **motors)["qdd"],
          robot.forward_dynamics(*motion[:2], tau, **at, motors=driven))
    for ours, theirs in zip(called("gravity_and_rate").values(), robot.gravity_and_rate(*motion[:2], **at), strict=False):
        exact(ours, theirs)
    if not robot.constraints:
        exact(called("mass_matrix")["M"], robot.mass_matrix(motion[0], **at))
    if robot.loops is not None:  # steps close the loops of a pose nearby
        pose = np.array(given["q"])
        pose[robot.closure.passive] += 1e-3
        for _ in range(4):
            closed = call("close_step", q=pose)
            pose = closed["q_closed"]
        np.testing.assert_allclose(pose, given["q"], atol=1e-11)
        assert closed["gap"][0] < 1e-12 and closed["indicator"][0] <= 1.0
    if robot.platforms:
        platform = robot.platform_motion(*motion)
        rates = {part: np.asarray(getattr(platform, part)) for part in ("velocity", "acceleration", "jerk")}
        for part, value in zip(("tau", "tau_rate"), wanted.torques, strict=True):
            np.testing.assert_allclose(called("platform_torque_and_rate", **rates)[part], value, rtol=1e-9)


@pytest.mark.parametrize("name", ["elastic 0", "springs 0", "carried loop"])
def test_payload_argument_matches_with_payload_for_elastic_and_loop_robots(tmp_path, name):
    robot, motion, state = EVERY["given base, loop, spring"]() if name == "carried loop" else (machine(name), [], {})
    motion, link = [*motion] or motion_of(robot), robot.links[-1]
    call = Compiled(c_library.library(robot, "robot", link), tmp_path)
    given = arguments(robot, motion, state)
    inertia = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.025]])
    block = call("payload", mass=1.5, com=(0.1, 0.0, 0.2), inertia=inertia[np.triu_indices(3)])["parameters"]
    inputs = next(one.function.inputs for one in call.library.functions if one.function.name == "torque_and_rate")
    for loaded, payloads in ((robot.with_payload(link, 1.5, (0.1, 0.0, 0.2), inertia), block), (robot, np.zeros(10))):
        found = call("torque_and_rate", **{part: {**given, "payloads": payloads}[part] for part in inputs})
        for part, wanted in zip(("tau", "tau_rate"), loaded.torque_and_rate(*motion, **state), strict=True):
            np.testing.assert_allclose(found[part], wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())


def test_joint_names_with_special_characters_are_escaped_in_the_source(tmp_path):
    urdf = (ROOT / "urdf" / "pr.urdf").read_text()
    name = Robot.from_urdf(urdf).joint_names[0]
    evil = 'a*/ int x; "\\'
    robot = Robot.from_urdf(urdf.replace(f'"{name}"', f'"{evil.replace(chr(34), "&quot;")}"'))
    call = Compiled(c_library.library(robot, "pr", wanted=lambda name: name == "gravity"), tmp_path)
    names = (ctypes.c_char_p * 2).in_dll(call._code, "pr_joint_names")
    assert names[0] == evil.encode() and call.self_test().startswith("0 ")


def test_robots_that_cannot_be_exported_are_rejected_with_the_reason(tmp_path, capsys):
    pr = str(ROOT / "urdf" / "pr.urdf")
    assert main(["export", pr, "-o", str(tmp_path / "x"), "--only", "coriolis"]) == 2
    assert "no function coriolis for a tree on a fixed base" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("all my work")
    assert main(["export", pr, "-o", str(tmp_path / "mine")]) == 2
    assert "nor an earlier export" in capsys.readouterr().err
    assert main(["export", pr, "-o", str(tmp_path / "y"), "--name", "1 robot"]) == 2
    assert "no name of a C function" in capsys.readouterr().err
    with pytest.raises(InputError, match="cannot be exported"):
        c_library.library(load(LIGHT, {"version": 1, "passive": ["j"]}, backend="python"), "x")


def test_functions_that_divide_by_a_missing_mass_are_omitted_and_named(tmp_path, capsys):
    urdf = tmp_path / "light.urdf"
    urdf.write_text(LIGHT)
    assert main(["export", str(urdf), "-o", str(tmp_path / "c")]) == 0
    assert "Omitted, because a joint moves no mass: forward_dynamics" in capsys.readouterr().out
    source, header = (tmp_path / "c" / name for name in ("src/light.c", "include/light/light.h"))
    assert "light_forward_dynamics" not in header.read_text() and "light_gravity" in header.read_text()
    compiled = tmp_path / "light.o"
    subprocess.run([COMPILER, "-std=c99", *FLAGS, "-c", "-I", tmp_path / "c/include", source, "-o", compiled], check=True)
    assert main(["export", str(urdf), "-o", str(tmp_path / "d"), "--only", "forward_dynamics"]) != 0
    assert "a joint moves no mass" in capsys.readouterr().err

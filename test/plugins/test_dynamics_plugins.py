"""Plugins for inverse_dynamics_solver, kinematics_interface and dynamics_interface, compared with Pinocchio."""

from __future__ import annotations

import ctypes
import re
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("pinocchio")

import pinocchio as pin
import yaml

from rnea_ros import load
from rnea_ros.cli.main import main
from support.cpp_build import ROOT, build_library, eigen_include
from support.machines import LoopOracle
from support.oracles import PinocchioOracle

PLUGINS = ROOT / "rnea_plugins"
SOLVER = "rnea_plugins::InverseDynamicsSolver"
KINEMATICS, DYNAMICS = "rnea_plugins::KinematicsInterface", "rnea_plugins::DynamicsInterface"
MAKERS = {"inverse_dynamics_solver": "solver_make", "kinematics_interface": "kinematics_make",
          "dynamics_interface": "dynamics_make"}  # source and package of the base class: how the bench makes a plugin
DOUBLES = ctypes.POINTER(ctypes.c_double)
STANFORD = (ROOT / "urdf" / "stanford.urdf").read_text()
# Finger on link3; the chain to link6 does not contain its joint but carries its weight.
FINGER = """<link name="finger"><inertial><origin xyz="0 0.02 0.05"/><mass value="0.3"/>
  <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="grip" type="prismatic"><parent link="link6"/><child link="finger"/>
  <origin xyz="0 0.1 0"/><axis xyz="0 1 0"/><limit lower="0" upper="0.1" effort="10" velocity="1"/></joint></robot>"""
HELD = STANFORD.replace("</robot>", FINGER)
LINKS = ("link2", "link3", "link6")
FRICTION = """version: 1
friction:
  joint1: {coulomb: 1.5, viscous: 0.3, stribeck: 0.4, asymmetry: 0.1, offset: 0.2}
  joint3: {viscous: 0.8}
drives: {joint2: {rotor_inertia: 1.0e-3, gear_ratio: 20.0}}
"""


class Bench:
    """C++ plugins, called by ctypes with arrays in joint order."""

    def __init__(self, library: ctypes.CDLL):
        self.library = library
        self.n = 0
        self.reset()

    def __call__(self, function: str, *given, out: tuple[int, ...] | None = None):
        code = getattr(self.library, function)
        code.restype = (ctypes.c_int if function.startswith(("kinematics", "dynamics")) else
                        ctypes.c_char_p if function.startswith("solver") or function == "bench_log" else None)
        found = np.full(out or (0,), np.nan, order="F")
        words = [x.encode() if isinstance(x, str) else np.ascontiguousarray(x, float).ctypes.data_as(DOUBLES)
                 if isinstance(x, (list, np.ndarray)) else x for x in given]
        answer = code(*words, found.ctypes.data_as(DOUBLES)) if out else code(*words)
        answer = answer.decode() if isinstance(answer, bytes) else answer
        return (answer, found) if out else answer

    def reset(self):
        self.library.bench_reset()

    def parameters(self, **values):
        for name, value in values.items():
            if isinstance(value, list):
                self("bench_numbers", name, value, len(value))
            else:
                is_text = isinstance(value, str)
                self("bench_text" if is_text else "bench_number", name, value if is_text else ctypes.c_double(value))

    def solve(self, what: str, *given, size=None):
        error, found = self(f"solver_{what}", *given, len(given[0]), out=size or (len(given[0]),))
        assert error == "", error
        return found

    def ask(self, what: str, *given, out):
        done, found = self(what, *given, out=out)
        assert done, self("bench_log")
        return found


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    sources = [PLUGINS / "src" / f"{name}.cpp" for name in MAKERS]
    controllers = ROOT / "rnea_controllers"
    options = (f"-isystem{eigen_include()}", f"-I{controllers / 'include'}", "-ldl")
    sources += [controllers / "src" / "robot_library.cpp", ROOT / "test" / "plugins" / "dynamics_bench.cpp"]
    return build_library(tmp_path_factory.mktemp("plugins") / "plugins.so", *sources, options=options)


@pytest.fixture
def bench(library):
    return Bench(library)


def exported(folder, urdf: str, robot_file: str | None = None, links=()):
    """Return the path of the exported shared library, and the robot."""
    folder.mkdir(exist_ok=True)
    source, file = folder / "robot.urdf", folder / "robot.yaml"
    source.write_text(urdf)
    words = ["export", str(source), "-o", str(folder / "c"), "--shared"]
    if robot_file:
        file.write_text(robot_file)
        words += ["--robot-file", str(file)]
    for link in links:
        words += ["--link", link]
    assert main(words) == 0
    (library,) = (folder / "c").glob("lib*.so")
    return str(library), load(source, file if robot_file else None)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    return exported(tmp_path_factory.mktemp("arm"), STANFORD, links=LINKS)


@pytest.fixture(scope="module")
def holding(tmp_path_factory):
    return exported(tmp_path_factory.mktemp("holding"), HELD, links=LINKS)


def assert_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * max(1.0, np.abs(wanted).max()))


def test_solver_torques_of_a_tree_match_pinocchio(bench, arm):
    library, robot = arm
    bench.parameters(**{"dynamics.library": library})
    assert bench("solver_make", SOLVER) == "" and bench("solver_initialize", "dynamics", STANFORD) == ""
    oracle = PinocchioOracle(STANFORD, robot)
    for q, qd, qdd in np.random.default_rng(0).normal(size=(3, 3, robot.n)):
        M = oracle.mass_matrix(q)
        zero = np.zeros(robot.n)
        still, moving = (oracle.torque_and_rate(q, v, zero, zero)[0] for v in (zero, qd))
        assert_close(bench.solve("inertia", q, size=M.shape), M)
        assert_close(bench.solve("gravity", q), still)
        assert_close(bench.solve("coriolis", q, qd), moving - still)
        assert_close(bench.solve("torques", q, qd, qdd), M @ qdd + moving)
        np.testing.assert_array_equal(bench.solve("friction", qd), np.zeros(robot.n))


def test_solver_returns_friction_and_rotor_terms_separately(bench, tmp_path):
    """All terms add up to the torque by Pinocchio with rotor inertia and friction."""
    library, robot = exported(tmp_path, STANFORD, FRICTION)
    bench.parameters(library=library)
    bench("solver_make", SOLVER)
    assert bench("solver_initialize", "", STANFORD) == ""
    oracle = PinocchioOracle(STANFORD, robot)
    one, two, three = (robot.joint_names.index(f"joint{k}") for k in (1, 2, 3))
    for q, qd, qdd in np.random.default_rng(1).normal(size=(3, 3, robot.n)):
        rotor = np.zeros((robot.n, robot.n))
        rotor[two, two] = 1e-3 * 20.0**2
        friction = bench.solve("friction", qd)
        assert friction[three] == pytest.approx(0.8 * qd[three])
        assert np.count_nonzero(friction) == 2 and abs(friction[one]) > 0.3
        moving = oracle.torque_and_rate(q, qd, np.zeros(robot.n), np.zeros(robot.n))[0]
        gravity = bench.solve("gravity", q)
        assert_close(gravity, oracle.gravity_and_rate(q, qd)[0])
        assert_close(bench.solve("coriolis", q, qd), moving - oracle.gravity_and_rate(q, qd)[0])
        assert_close(bench.solve("inertia", q, size=rotor.shape), oracle.mass_matrix(q) + rotor)
        assert_close(bench.solve("torques", q, qd, qdd), (oracle.mass_matrix(q) + rotor) @ qdd + moving + friction)


def test_solver_rejects_robots_with_joints_driven_by_springs(bench, tmp_path):
    library, _ = exported(tmp_path, STANFORD, "version: 1\nsprings: {joint5: {stiffness: 30.0, rest: 0.1}}\n")
    bench.parameters(library=library)
    bench("solver_make", SOLVER)
    assert "joint 'joint5' of the library of library has no motor" in bench("solver_initialize", "", STANFORD)


def test_solver_vectors_contain_the_joints_from_base_to_tip(bench, holding):
    """The weight of a gripper is included, but its joint is not part of the vectors."""
    library, robot = holding
    n = robot.n - 1
    bench.parameters(**{"dynamics.library": library, "dynamics.tip": "link6"})
    bench("solver_make", SOLVER)
    assert bench("solver_initialize", "dynamics", HELD) == ""
    oracle = PinocchioOracle(HELD, robot)
    arm = [k for k, name in enumerate(robot.joint_names) if name != "grip"]
    q, qd, qdd = np.zeros((3, robot.n))
    q[arm], qd[arm], qdd[arm] = np.random.default_rng(2).normal(size=(3, n))
    assert_close(bench.solve("torques", q[arm], qd[arm], qdd[arm]), oracle.torque_and_rate(q, qd, qdd, qdd)[0][arm])
    assert_close(bench.solve("inertia", q[arm], size=(n, n)), oracle.mass_matrix(q)[np.ix_(arm, arm)])
    error, _ = bench("solver_gravity", q, n + 1, out=(n + 1,))
    assert error == f"a vector has {n + 1} numbers; {n}, one for each joint, are needed"


@pytest.mark.parametrize("name", ["five_bar", "palletiser"])
def test_solver_torques_of_closed_loops_match_pinocchio(bench, tmp_path, name):
    urdf, file = ((ROOT / "urdf" / f"{name}.{kind}").read_text() for kind in ("urdf", "robot.yaml"))
    library, robot = exported(tmp_path, urdf, file)
    bench.parameters(library=library)
    bench("solver_make", SOLVER)
    assert bench("solver_initialize", "", urdf) == ""
    oracle = LoopOracle(urdf, yaml.safe_load(file), robot.tree.joint_names)
    n, rng = robot.n, np.random.default_rng(3)
    start = np.array([robot.start[robot.tree.joint_names.index(joint)] for joint in robot.joint_names])
    zero = np.zeros(n)
    order = [robot.joint_names.index(robot.tree.joint_names[k]) for k in oracle.active]

    def inverse(q, qd, qdd):
        state = robot.motion(q, qd, qdd, zero)
        tau = np.zeros(n)
        tau[order] = oracle.inverse(state.q, state.qd, qdd[order])[0]
        return tau

    for step in range(3):
        q, qd, qdd = start + 0.1 * (step + 1) * rng.normal(size=n), *rng.normal(size=(2, n))
        still = inverse(q, zero, zero)
        M = np.column_stack([inverse(q, zero, column) - still for column in np.eye(n)])
        assert_close(bench.solve("torques", q, qd, qdd), inverse(q, qd, qdd))
        assert_close(bench.solve("inertia", q, size=(n, n)), M)
        assert_close(bench.solve("gravity", q), still)
        assert_close(bench.solve("coriolis", q, qd), inverse(q, qd, zero) - still)
    error, _ = bench("solver_gravity", np.full(n, np.nan), n, out=(n,))
    assert error == "the loops of the robot cannot be closed at these joint positions"
    assert_close(bench.solve("gravity", start), inverse(start, zero, zero))  # a rejected pose has no influence


class Frames:
    """Frame poses by Pinocchio, relative to a base link; joints are in the robot's order."""

    def __init__(self, urdf, robot, base):
        self.model = pin.buildModelFromXML(urdf)
        self.data = self.model.createData()
        self.columns = [self.model.joints[self.model.getJointId(name)].idx_v for name in robot.joint_names]
        self.base = base

    def pose(self, q, link):
        theirs = np.zeros(self.model.nq)
        theirs[self.columns] = q
        pin.framesForwardKinematics(self.model, self.data, theirs)
        base, tip = (self.data.oMf[self.model.getFrameId(name)] for name in (self.base, link))
        return base.actInv(tip)

    def jacobian(self, q, link, h=1e-5):
        """Return the Jacobian by central differences of poses: linear, then angular, along the axes of the base."""
        found = np.zeros((6, len(q)))
        for k, step in enumerate(h * np.eye(len(q))):
            high, low = (self.pose(q + sign * step, link) for sign in (1.0, -1.0))
            found[:3, k] = (high.translation - low.translation) / (2.0 * h)
            found[3:, k] = pin.log3(high.rotation @ low.rotation.T) / (2.0 * h)
        return found


@pytest.mark.parametrize("base", ["", "link2"])
@pytest.mark.parametrize("kind", ["kinematics", "dynamics"])
def test_plugin_poses_and_jacobians_match_pinocchio(bench, arm, base, kind):
    library, robot = arm
    assert bench(f"{kind}_make", KINEMATICS if kind == "kinematics" else DYNAMICS)
    bench.parameters(**{"kinematics.library": library, "kinematics.tip": "link6", "kinematics.base": base,
                        "robot_description": STANFORD})
    assert bench("kinematics_initialize", "", "kinematics"), bench("bench_log")
    frames = Frames(STANFORD, robot, base or robot.links[0])
    chain = [k for k, name in enumerate(robot.joint_names) if not base or name not in ("joint1", "joint2")]
    n, rng = len(chain), np.random.default_rng(4)
    q, qd = np.zeros((2, robot.n))
    for _ in range(3):
        q[chain], qd[chain] = rng.normal(size=(2, n))
        for link in ("link3", "link6"):
            pose, J = frames.pose(q, link), frames.jacobian(q, link)[:, chain]
            found = bench.ask("kinematics_transform", q[chain], n, link, out=(3, 4))
            np.testing.assert_allclose(found, np.column_stack((pose.rotation, pose.translation)), rtol=0, atol=1e-12)
            ours = bench.ask("kinematics_jacobian", q[chain], n, link, n, out=(6, n))
            np.testing.assert_allclose(ours, J, rtol=0, atol=1e-8)
            found = bench.ask("kinematics_to_cartesian", q[chain], qd[chain], n, link, out=(6,))
            np.testing.assert_allclose(found, ours @ qd[chain], rtol=1e-12, atol=1e-12)
            inverse = bench.ask("kinematics_inverse", q[chain], n, link, n, out=(n, 6))
            wanted = np.linalg.solve(ours.T @ ours + 5e-6 * np.eye(n), ours.T)
            np.testing.assert_allclose(inverse, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())
            step = rng.normal(size=6)
            found = bench.ask("kinematics_to_joints", q[chain], step, n, link, out=(n,))
            np.testing.assert_allclose(found, inverse @ step, rtol=0, atol=1e-9 * np.abs(inverse @ step).max())
            if kind == "dynamics":
                rate = (frames.jacobian(q + 1e-4 * qd, link) - frames.jacobian(q - 1e-4 * qd, link))[:, chain] / 2e-4
                found = bench.ask("dynamics_jacobian_derivative", q[chain], qd[chain], n, link, out=(6, n))
                np.testing.assert_allclose(found, rate, rtol=0, atol=1e-5)


def test_dynamics_plugin_matches_pinocchio(bench, arm):
    library, robot = arm
    bench.parameters(library=library, tip="link6", gravity=[0.0, 0.0, -9.81])
    assert bench("dynamics_make", DYNAMICS) and bench("kinematics_initialize", STANFORD, ""), bench("bench_log")
    oracle, n = PinocchioOracle(STANFORD, robot), robot.n
    q, qd = np.random.default_rng(5).normal(size=(2, n))
    gravity, moving = oracle.gravity_and_rate(q, qd)[0], oracle.torque_and_rate(q, qd, np.zeros(n), np.zeros(n))[0]
    assert_close(bench.ask("dynamics_inertia", q, n, out=(n, n)), oracle.mass_matrix(q))
    assert_close(bench.ask("dynamics_gravity", q, n, out=(n,)), gravity)
    assert_close(bench.ask("dynamics_coriolis", q, qd, n, out=(n,)), moving - gravity)


def test_plugin_jacobians_of_closed_loops_match_finite_differences(bench, tmp_path):
    """Poses are from Pinocchio; Jacobian and rate are differenced along the joints with motors."""
    urdf, file = ((ROOT / "urdf" / f"five_bar.{kind}").read_text() for kind in ("urdf", "robot.yaml"))
    library, robot = exported(tmp_path, urdf, file, links=("left_forearm",))
    bench.parameters(library=library, tip="left_forearm")
    assert bench("dynamics_make", DYNAMICS) and bench("kinematics_initialize", urdf, ""), bench("bench_log")
    frames, n = Frames(urdf, robot.tree, robot.links[0]), robot.n
    q, qd = np.array([1.9, 1.1]), np.array([0.6, -0.4])

    def pose(active):
        return frames.pose(robot.motion(active, np.zeros(n), np.zeros(n), np.zeros(n)).q, "left_forearm")

    found = bench.ask("kinematics_transform", q, n, "left_forearm", out=(3, 4))
    np.testing.assert_allclose(found[:, 3], pose(q).translation, rtol=0, atol=1e-9)

    def jacobian(active):
        return bench.ask("kinematics_jacobian", active, n, "left_forearm", n, out=(6, n))

    for k, step in enumerate(1e-5 * np.eye(n)):
        high, low = pose(q + step), pose(q - step)
        wanted = np.concatenate((high.translation - low.translation, pin.log3(high.rotation @ low.rotation.T))) / 2e-5
        np.testing.assert_allclose(jacobian(q)[:, k], wanted, rtol=0, atol=1e-6)
    wanted = (jacobian(q + 1e-5 * qd) - jacobian(q - 1e-5 * qd)) / 2e-5
    found = bench.ask("dynamics_jacobian_derivative", q, qd, n, "left_forearm", out=(6, n))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_kinematics_plugin_frame_difference_matches_pinocchio(bench):
    bench("kinematics_make", KINEMATICS)
    rng = np.random.default_rng(6)
    for _ in range(5):
        first, second = (pin.SE3.Random() for _ in range(2))
        a, b = (np.concatenate((x.translation, sign * pin.Quaternion(x.rotation).coeffs())) for x, sign in
                zip((first, second), rng.choice([-1.0, 1.0], 2)))
        found = bench.ask("kinematics_difference", a, b, ctypes.c_double(0.5), out=(6,))
        assert_close(found[:3], 2.0 * (second.translation - first.translation))
        assert_close(pin.exp3(0.5 * found[3:]) @ first.rotation, second.rotation)
        assert np.linalg.norm(found[3:]) <= 2.0 * np.pi + 1e-9
    for dt in (0.0, -0.1, np.nan):
        assert not bench("kinematics_difference", a, b, ctypes.c_double(dt), out=(6,))[0]


BAD = {
    "no library": ({"library": ""}, "parameter library is '', the path of an exported robot is needed; make the library with: "
                                    "rnea export"),
    "not there": ({"library": "/nowhere.so"}, "parameter library is '/nowhere.so', which cannot be loaded"),
    "tip": ({"tip": "link9"}, "tip is 'link9', which is none of the links of the library (base, link2, link3, link6): export "
                              "the robot with --link link9"),
    "no tip": ({"tip": ""}, "tip is '', which is none of the links"),
    "base": ({"base": "floor"}, "base is 'floor', which is none of the links"),
    "tip is base": ({"base": "link6"}, "tip is 'link6', which no joint moves relative to 'link6'"),
    "gravity": ({"gravity": [0.0, 0.0, 9.81]}, "gravity is not that of the library"),
    "damping": ({"alpha": -1.0}, "alpha is -1.000000; zero or more is needed"),
}


@pytest.mark.parametrize("case", BAD)
def test_plugins_reject_invalid_parameters(bench, arm, case):
    library, robot = arm
    given, words = BAD[case]
    bench.parameters(**{"library": library, "tip": "link6"} | given)
    bench("kinematics_make", KINEMATICS)
    assert not bench("kinematics_initialize", STANFORD, "")
    assert words.replace("(base,", f"({robot.links[0]},") in bench("bench_log")
    assert not bench("kinematics_transform", np.zeros(robot.n), robot.n, "link6", out=(3, 4))[0]
    assert "not initialized" in bench("bench_log")
    if case not in ("no tip", "damping"):
        bench("solver_make", SOLVER)
        assert words.replace("(base,", f"({robot.links[0]},") in bench("solver_initialize", "", STANFORD)


def test_plugins_reject_a_robot_description_of_another_robot(bench, arm):
    bench.parameters(library=arm[0], tip="link6")
    bench("kinematics_make", KINEMATICS)
    assert not bench("kinematics_initialize", STANFORD.replace("joint3", "third"), "")
    assert "robot_description has no joint 'joint3' of the library of library: export the library" in bench("bench_log")
    assert not bench("kinematics_initialize", "", "")
    assert "robot_description is empty" in bench("bench_log")


def test_kinematics_plugin_rejects_wrong_sizes_and_unknown_links(bench, arm):
    library, robot = arm
    bench.parameters(library=library, tip="link6")
    bench("kinematics_make", KINEMATICS)
    assert bench("kinematics_initialize", STANFORD, "")
    q, n = np.zeros(robot.n), robot.n
    for call, out, words in (
            (("kinematics_transform", q, n, "link5"), (3, 4), "link 'link5' is none of the links"),
            (("kinematics_transform", q, n - 1, "link6"), (3, 4), f"joint_pos has size {n - 1} x 1; {n} x 1 is needed"),
            (("kinematics_jacobian", q, n, "link6", n + 1), (6, n + 1), f"jacobian has size 6 x {n + 1}; 6 x {n}"),
            (("kinematics_inverse", q, n, "link6", n - 1), (n - 1, 6), f"inverse has size {n - 1} x 6; {n} x 6")):
        assert not bench(*call, out=out)[0]
        assert words in bench("bench_log")
    found = bench.ask("kinematics_transform", q, n, robot.links[0], out=(3, 4))
    np.testing.assert_array_equal(found, np.eye(4)[:3])


def test_uninitialized_solver_reports_an_error(bench):
    bench("solver_make", SOLVER)
    assert bench("solver_gravity", np.zeros(6), 6, out=(6,))[0] == "Solver is not initialized"


def test_plugin_descriptions_list_loadable_classes(bench):
    """CMakeLists.txt installs every description for the package of its base class."""
    cmake = (PLUGINS / "CMakeLists.txt").read_text()
    for file in sorted(PLUGINS.glob("*.xml")):
        if file.name == "package.xml":
            continue
        (owner,) = re.findall(rf"OF (\w+) DESCRIPTION {file.name}\n", cmake)
        root = ElementTree.parse(file).getroot()
        assert f"add_plugin({root.get('path')}\n" in cmake
        (entry,) = root.iter("class")
        assert entry.get("name") == entry.get("type").replace("::", "/")
        if owner != "moveit_core":
            assert entry.get("base_class_type").split("::")[0] == owner
            assert bench(MAKERS[owner], entry.get("type")) in ("", 1)

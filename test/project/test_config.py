"""Files of config/: displays, topics, joints and parameters exist."""

import ast
import re
from itertools import pairwise, product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rnea_ros import Robot
from rnea_ros.demo import catalogue
from rnea_ros.demo import robot_demo as demo_motion
from rnea_ros.demo.robot_demo import compute_recording
from rnea_ros.demo.scaling import overspeed_task
from rnea_ros.model import robot_file
from rnea_ros.nodes.common.launch_support import aimed, file_parameters
from rnea_ros.nodes.common.parameter_table import (
    DYNAMICS,
    DYNAMICS_TABLE,
    MODEL,
    PROCESS,
    QUERY_TABLE,
    ROBOT_FILE,
    SCALING,
    SCALING_TABLE,
    find,
)
from rnea_ros.nodes.common.parameter_table import (
    NODE as OF_NODES,
)

yaml = pytest.importorskip("yaml", reason="PyYAML comes with ROS 2")

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
NODE = "dynamics_node"
ROBOT = QUERY_TABLE  # parameters of the section for all nodes
TABLES = {"dynamics_node": DYNAMICS_TABLE, "query_node": QUERY_TABLE, "scaling_node": SCALING_TABLE}

# What rviz_default_plugins and rviz_common read from a file, by display; from their sources.
EVERY_DISPLAY = {"Class", "Name", "Enabled", "Value"}
DISPLAY_KEYS = {
    "rviz_default_plugins/Grid": {"Alpha", "Cell Size", "Color", "Line Style", "Normal Cell Count", "Offset", "Plane",
                                  "Plane Cell Count", "Reference Frame"},
    "rviz_default_plugins/RobotModel": {"Alpha", "Collision Enabled", "Description File", "Description Source",
                                        "Description Topic", "Mass Properties", "TF Prefix", "Update Interval",
                                        "Visual Enabled"},
    "rviz_default_plugins/TF": {"Frame Timeout", "Frames", "Marker Scale", "Show Arrows", "Show Axes", "Show Names",
                                "Update Interval"},
    "rviz_default_plugins/Effort": {"Alpha", "Width", "Scale", "History Length", "Robot Description", "TF Prefix", "Topic"},
    "rviz_default_plugins/MarkerArray": {"Namespaces", "Topic"},
}
TOPIC_KEYS = {"Depth", "Durability Policy", "Filter size", "History Policy", "Reliability Policy", "Value"}


def published():
    """Return the topics of the node, relative to its namespace, and their message types, read from the sources."""
    files = [ROOT / "rnea_ros" / "nodes" / "dynamics" / name for name in ("node.py", "messages.py", "markers.py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    pairs = [node.args[:2] for node in nodes if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Attribute) and node.func.attr == "create_publisher"]
    pairs += [node.elts for node in nodes if isinstance(node, ast.Tuple) and len(node.elts) == 2]  # (type, "~/name")
    return {topic.value.replace("~", NODE): kind.id for kind, topic in pairs
            if isinstance(kind, ast.Name) and isinstance(topic, ast.Constant) and str(topic.value).startswith("~/")}


@pytest.fixture(scope="module")
def rviz():
    return yaml.safe_load((CONFIG / "rnea.rviz").read_text())


@pytest.fixture(scope="module")
def displays(rviz):
    return {display["Class"]: display for display in rviz["Visualization Manager"]["Displays"] if display["Name"] != "Path"}


@pytest.fixture(scope="module")
def path(rviz):
    (found,) = [display for display in rviz["Visualization Manager"]["Displays"] if display["Name"] == "Path"]
    return found


# --- RViz -------------------------------------------------------------------------------------------------------------


def test_rviz_shows_robot_poses_torques_and_markers(displays):
    assert set(displays) == set(DISPLAY_KEYS)


def test_rviz_config_has_known_keys_only(displays):
    for name, display in displays.items():
        assert set(display) <= DISPLAY_KEYS[name] | EVERY_DISPLAY, name
        for topic in (display[key] for key in ("Topic", "Description Topic") if key in display):
            assert set(topic) <= TOPIC_KEYS
    assert "Filter size" not in displays["rviz_default_plugins/MarkerArray"]["Topic"]


def test_rviz_displays_subscribe_to_topics_of_their_type(displays, path):
    topics = published()
    assert set(path) == set(displays[path["Class"]]) and path["Topic"]["Value"] == "scaling_node/markers"
    assert topics[displays["rviz_default_plugins/Effort"]["Topic"]["Value"]] == "JointState"
    assert topics[displays["rviz_default_plugins/MarkerArray"]["Topic"]["Value"]] == "MarkerArray"


def test_rviz_enables_the_markers_and_not_the_effort_display(displays):
    """RViz's Effort display reverses the sign on every axis but +z."""
    assert displays["rviz_default_plugins/MarkerArray"]["Enabled"] and displays["rviz_default_plugins/MarkerArray"]["Value"]
    assert not displays["rviz_default_plugins/Effort"]["Enabled"] and not displays["rviz_default_plugins/Effort"]["Value"]


def test_rviz_layout_leaves_space_for_the_3d_view(rviz):
    """The Time panel would take half of the window, and RViz hides docks at random unless they are configured."""
    assert [panel["Class"] for panel in rviz["Panels"]] == ["rviz_common/Displays", "rviz_common/Views"]
    window = rviz["Window Geometry"]
    assert window["Hide Left Dock"] is window["Hide Right Dock"] is False and "QMainWindow State" not in window


@pytest.mark.parametrize("name", ["stanford", "seven_r"])
def test_rviz_view_contains_the_demo_robots_in_every_pose(name):
    text = aimed((CONFIG / "rnea.rviz").read_text(), ROOT / "urdf" / f"{name}.urdf")
    shown = yaml.safe_load(text)["Visualization Manager"]
    view, floor = shown["Views"]["Current"], shown["Displays"][0]["Offset"]["Z"]
    yaw, pitch, focus = view["Yaw"], view["Pitch"], np.array([view["Focal Point"][axis] for axis in "XYZ"])
    back = np.array([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)])
    right = np.cross([0.0, 0.0, 1.0], back) / np.cos(pitch)
    corners = shapes(ROOT / "urdf" / f"{name}.urdf")
    assert corners[:, 2].min() > floor - 0.01  # nothing below the floor
    corners = corners - (focus + view["Distance"] * back)
    depth = -corners @ back
    half = np.tan(np.pi / 8) * depth  # of what is seen, upwards: Ogre's 45 degrees
    assert (depth > 0.0).all()
    assert (np.abs(corners @ np.cross(back, right)) < half).all() and (np.abs(corners @ right) < half).all()
    assert np.ptp(corners @ np.cross(back, right) / half) > 0.5  # and fills the view


def shapes(urdf):
    """Return the corners of the bounding boxes of all shapes in every pose of the demo (m, 3), by Pinocchio."""
    pin = pytest.importorskip("pinocchio")
    robot = Robot.from_urdf(urdf)
    if urdf.stem == "seven_r":
        task = overspeed_task(robot)
        poses = task.plan.path(np.linspace(0.0, task.plan.path.length, 30))[0]
    else:
        there = demo_motion.choose_motion(robot)
        poses = [there(t).q for t in np.linspace(0.0, there.duration, 30)]
    model = pin.buildModelFromUrdf(str(urdf))
    visuals = pin.buildGeomFromUrdf(model, str(urdf), pin.GeometryType.VISUAL)
    data, geometry, found = model.createData(), visuals.createData(), []
    for pose in poses:
        angles = [(np.cos(q), np.sin(q)) if joint.nq == 2 else (q,) for q, joint in zip(pose, model.joints[1:])]
        pin.updateGeometryPlacements(model, data, visuals, geometry, np.concatenate(angles))
        for shape, placement in zip(visuals.geometryObjects, geometry.oMg):
            shape.geometry.computeLocalAABB()
            box = shape.geometry.aabb_local
            found += [placement.act(np.array(corner)) for corner in product(*zip(box.min_, box.max_))]
    return np.array(found)


def test_rviz_receives_a_latched_robot_description(displays):
    topic = displays["rviz_default_plugins/RobotModel"]["Description Topic"]
    assert topic["Durability Policy"] == "Transient Local" and topic["Reliability Policy"] == "Reliable"
    assert topic["Value"] == displays["rviz_default_plugins/Effort"]["Robot Description"] == "robot_description"


def test_rviz_topics_are_relative_to_the_namespace(displays):
    for name, display in displays.items():
        for key in ("Topic", "Description Topic"):
            assert not display.get(key, {}).get("Value", "").startswith("/"), name


# --- PlotJuggler ------------------------------------------------------------------------------------------------------


def test_plotjuggler_plots_torque_and_rate_of_every_joint_of_the_demo_arm():
    root = ElementTree.parse(CONFIG / "plotjuggler.xml").getroot()
    streamer = root.find("previouslyLoaded_Streamer").get("name")
    plugin = root.find(f"Plugins/plugin[@ID='{streamer}']")
    topics = plugin.find("selected_topics").get("value").split(";")
    assert {published()[topic.lstrip("/")] for topic in topics} == {"JointState"}
    joints = Robot.from_urdf(ROOT / "urdf" / "stanford.urdf").joint_names
    curves = sorted(curve.get("name") for curve in root.iter("curve"))
    assert curves == sorted(f"{topic}/{joint}/effort" for topic in topics for joint in joints)


def test_plotjuggler_layout_is_consistent():
    root = ElementTree.parse(CONFIG / "plotjuggler.xml").getroot()
    assert root.tag == "root" and root.find("tabbed_widget").get("parent") == "main_window"
    for splitter in root.iter("DockSplitter"):
        assert splitter.get("orientation") in ("|", "-")
        assert int(splitter.get("count")) == len(splitter) == len(splitter.get("sizes").split(";"))
        assert sum(float(size) for size in splitter.get("sizes").split(";")) == pytest.approx(1.0)


# --- diagnostic_aggregator --------------------------------------------------------------------------------------------

# What GenericAnalyzer and Aggregator read, from their sources: generic_analyzer.cpp, aggregator.cpp.
ANALYZER_KEYS = {"contains": list, "discard_stale": bool, "expected": list, "find_and_remove_prefix": list, "num_items": int,
                 "path": str, "regex": list, "remove_prefix": list, "startswith": list, "timeout": float, "type": str}
AGGREGATOR_KEYS = {"critical": bool, "history_depth": int, "other_as_errors": bool, "path": str, "pub_rate": float}


def tasks():
    """Return the names TASK in "<node>: TASK" on /diagnostics, from the sources of the nodes."""
    source = "".join(file.read_text() for file in (ROOT / "rnea_ros" / "nodes").rglob("*.py"))
    return set(re.findall(r'(?:(?:name=|make_status\()f"\{[^}]*\}: |EventCounter\(node, ")(\w+)"', source))


def test_every_diagnostic_status_matches_exactly_one_aggregator_group():
    (node,) = yaml.safe_load((CONFIG / "diagnostic_aggregator.yaml").read_text()).items()
    assert node[0] == "analyzers"  # the name that aggregator_node gives itself
    values = node[1]["ros__parameters"]
    groups = {name: value for name, value in values.items() if isinstance(value, dict)}
    assert all(isinstance(value, AGGREGATOR_KEYS[key]) for key, value in values.items() if key not in groups)
    for group in groups.values():
        assert {"type", "path"} < set(group) and group["type"] == "diagnostic_aggregator/GenericAnalyzer"
        assert all(isinstance(value, ANALYZER_KEYS[key]) for key, value in group.items())  # other types raise an exception
    assert tasks() == set(groups) == {"dynamics", "scaling", "callbacks", "lock"}
    for task, node in product(tasks(), ("/dynamics_node", "/left/arm/scaling_node")):
        matching = [name for name, group in groups.items()
                    if any(re.fullmatch(pattern, f"{node}: {task}") for pattern in group["regex"])]
        assert matching == [task]


# --- parameters -------------------------------------------------------------------------------------------------------


def parameters(name, node):
    """Return the parameters that a file gives to a node, in any namespace."""
    found = file_parameters(CONFIG / f"{name}.yaml", f"/{node}")
    assert found and found == file_parameters(CONFIG / f"{name}.yaml", f"/left/arm/{node}")
    return found


@pytest.mark.parametrize("name", ["dynamics_node", "scaling_node", "query_node"])
def test_every_parameter_of_a_config_file_has_a_comment(name):
    lines = (CONFIG / f"{name}.yaml").read_text().splitlines()
    for before, line in pairwise(lines):
        if re.match(r"\s+\w+: \S", line):
            assert before.lstrip().startswith("#"), line


@pytest.mark.parametrize("name", ["dynamics_node", "scaling_node", "query_node", "stanford"])
@pytest.mark.parametrize("node", TABLES)
def test_parameters_of_config_files_exist_and_are_valid(name, node):
    for parameter, value in parameters(name, node).items():
        entry = find(parameter, TABLES[node])
        assert entry is not None and not entry.problem(value), parameter


@pytest.mark.parametrize(("node", "entries"), [("dynamics_node", MODEL + OF_NODES + PROCESS + DYNAMICS),
                                               ("query_node", (*MODEL, *OF_NODES, ROBOT_FILE)),
                                               ("scaling_node", MODEL + OF_NODES + PROCESS + SCALING)])
def test_parameter_file_of_a_node_contains_every_default(node, entries):
    assert parameters(node, node) == {entry.name: entry.default for entry in entries}


@pytest.mark.parametrize("name", ["dynamics_node", "scaling_node", "query_node", "stanford"])
def test_robot_parameters_of_a_file_are_in_the_section_for_all_nodes(name):
    """The section for all nodes contains the parameters of the robot and no others."""
    assert parameters(name, "any").keys() == {entry for entry in parameters(name, name) if find(entry, ROBOT)}


def test_stanford_parameters_equal_its_robot_file():
    declared = robot_file.draft(ROOT / "urdf" / "stanford.robot.yaml").content
    expected = {f"joint_dynamics.{name}.rotor_inertia": drive["rotor_inertia"] for name, drive in declared["drives"].items()}
    for name, limit in declared["limits"].items():
        expected |= {f"joint_limits.{name}.has_effort_rate_limits": True,
                     f"joint_limits.{name}.max_effort_rate": limit["max_effort_rate"]}
    assert parameters("stanford", "any") == expected


def test_published_stanford_motion_stays_inside_the_limits_of_the_demo():
    robot = catalogue.tree_demo(None, name="stanford").load()
    motion = demo_motion.stanford_motion()
    recording = compute_recording(robot, motion, 2 * motion.duration, 500.0)
    effort = np.abs(recording.tau).max(axis=0) / robot.limits.effort
    rate = np.abs(recording.tau_rate).max(axis=0) / robot.limits.effort_rate
    for use in (effort, rate):
        assert np.all(use < 0.9) and np.all(use > 0.4)
    assert np.all(np.abs(recording.qd).max(axis=0) < robot.limits.velocity)
    assert np.all((recording.q > robot.limits.lower) & (recording.q < robot.limits.upper))

"""Parameter files: read as the middleware reads them, and rejected if they define different robots for two nodes."""

import math

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

import rclpy

from rnea_ros import RneaError
from rnea_ros.nodes.common.launch_support import check_same_robot, file_parameters
from support.ros_helpers import free_domain

FILES = [
    "/**: {ros__parameters: {a: 1, b: {c: 2.5, d: {e: x}}}}",
    "dynamics_node: {ros__parameters: {a: 1}}",
    "/dynamics_node: {ros__parameters: {a: true}}",
    "/**/dynamics_node: {ros__parameters: {a: [1.0, 2.0]}}",
    "/*/dynamics_node: {ros__parameters: {a: 1}}",
    "/**/dynamics: {ros__parameters: {a: 1}}",
    "/left/dynamics_node: {ros__parameters: {a: 1}}",
    "left: {dynamics_node: {ros__parameters: {a: 1}}, query_node: {ros__parameters: {b: 1}}}",
    "/left: {arm: {dynamics_node: {ros__parameters: {a: 1}}}}",
    "/**: {ros__parameters: {a: 1, b: 1}}\n/**/dynamics_node: {ros__parameters: {a: 2, c: 2}}",
    "/left/dynamics_node: {ros__parameters: {a: 2, c: 2}}\n/**: {ros__parameters: {a: 1, b: 1}}",
    "/**: {ros__parameters: {a.b: 1, a: {c: 2}}}\n/*: {ros__parameters: {a.b: 3}}",
]


@pytest.mark.parametrize("text", FILES)
@pytest.mark.parametrize("namespace", ["", "left", "left/arm"])
def test_file_parameters_equal_those_that_the_middleware_assigns(tmp_path, text, namespace):
    file = tmp_path / "file.yaml"
    file.write_text(text)
    context = rclpy.Context()
    rclpy.init(context=context, args=["--ros-args", "--params-file", str(file)], domain_id=free_domain())
    node = rclpy.create_node("dynamics_node", context=context, namespace=namespace, enable_rosout=False,
                             start_parameter_services=False, automatically_declare_parameters_from_overrides=True)
    try:
        expected = {name: parameter.value for name, parameter in node.get_parameters_by_prefix("").items()
                    if name not in ("use_sim_time", "start_type_description_service")}
        expected = {name: value if isinstance(value, (int, str)) else pytest.approx(value) for name, value in expected.items()}
        assert file_parameters(file, node.get_fully_qualified_name()) == expected
    finally:
        node.destroy_node()
        context.try_shutdown()


NODES = ["/left/dynamics_node", "/left/query_node"]


@pytest.mark.parametrize(("text", "named"), [
    ("", ""),
    ("just text", ""),
    ("/**: {ros__parameters: {payload: {mass: 1.0}, joint_dynamics: {a: {coulomb: 1.0}}}}", ""),
    ("/**/dynamics_node: {ros__parameters: {motion_source: estimated, joint_limits: {a: {max_effort: 1.0}}}}", ""),
    ("/**/dynamics_node: {ros__parameters: {backend: python, robot_description: x}}", ""),
    ("/**/dynamics_node: {ros__parameters: {payload: {mass: 0.0}, gravity: [0.0, 0.0, -9.81], use_friction: false}}", ""),
    ("/**/dynamics_node: {ros__parameters: {payload: {mass: 1.0}}}", "payload.mass differs"),
    ("/**/dynamics_node: {ros__parameters: {joint_dynamics.a.coulomb: 1.0}}", "joint_dynamics.a.coulomb differs"),
    ("/left: {query_node: {ros__parameters: {use_friction: true, payload: {com: [0.0, 0.0, 1.0]}}}}",
     "payload.com, use_friction differ "),
    ("/**: {ros__parameters: {use_friction: true}}\n/**/query_node: {ros__parameters: {use_friction: false}}", "use_friction"),
])
def test_file_with_different_robots_for_two_nodes_is_rejected(tmp_path, text, named):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    check_same_robot(file, NODES[:1])
    if not named:
        check_same_robot(file, NODES)
        return
    with pytest.raises(RneaError, match=named) as caught:
        check_same_robot(file, NODES)
    assert "mine.yaml: /left/dynamics_node, /left/query_node would compute with different robots" in str(caught.value)
    assert "under /**" in str(caught.value)


def test_invalid_yaml_is_reported_with_file_and_line(tmp_path):
    (tmp_path / "mine.yaml").write_text("/**: {ros__parameters")
    with pytest.raises(RneaError, match=r"mine\.yaml: line 1, column 22: is not YAML"):
        file_parameters(tmp_path / "mine.yaml", NODES[0])


def test_nan_parameters_of_a_file_are_equal_for_all_nodes(tmp_path):
    (tmp_path / "mine.yaml").write_text("/**: {ros__parameters: {payload.mass: .nan}}")
    check_same_robot(tmp_path / "mine.yaml", NODES)
    assert math.isnan(file_parameters(tmp_path / "mine.yaml", NODES[0])["payload.mass"])

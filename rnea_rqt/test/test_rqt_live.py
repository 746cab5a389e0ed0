"""The window with real nodes over DDS, offscreen and in a separate process; the plugin without rqt."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="no ROS here")
pytest.importorskip("rnea_msgs")
pytest.importorskip("rnea_rqt.qt", reason="no Qt for Python", exc_type=ImportError)
pytest.importorskip("rnea_ros", reason="the nodes are in another package")

import rqt_stand_in
from rnea_ros import Robot
from rnea_ros.demo.scaling import limit_parameters, overspeed_task
from support.ros_helpers import ros_domain

pytestmark = pytest.mark.ros

HERE = Path(__file__).resolve().parent
URDF = HERE.parents[1] / "urdf" / "rr.urdf"


@pytest.fixture
def ros(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # folder for settings of the window
    with ros_domain(tmp_path) as made:
        yield made


def test_window_shows_torques_and_controls_motion_and_payload(ros, tmp_path):
    robot = Robot.from_urdf(URDF)
    model = {"robot_description": URDF.read_text()}
    limits = limit_parameters(robot, overspeed_task(robot).limits)
    ros.start("dynamics_node", {**model, **limits})
    ros.start("scaling_node", {**model, **limits})
    ros.start("demo_follower", model)
    window = ros.start(HERE / "window_process.py")
    ros.until(lambda: not window.alive, timeout=150.0, what="the window waits for ever", of=window)
    assert window.wait() == 0, window.log
    steps = ["torques of /dynamics_node", "lights", "paused", "resumed", "overridden", "loaded"]
    assert [line for line in window.log.splitlines() if line in steps] == steps, window.log
    ros.until(lambda: ros.get("dynamics_node", "payload.mass") == ros.get("scaling_node", "payload.mass") == 0.05)
    assert list(tmp_path.rglob("rnea_rqt.conf")), "settings were not kept"


def test_rqt_plugin_shows_the_robot_and_restores_its_settings(app, ros, monkeypatch):
    rqt_stand_in.installed(monkeypatch)
    from rnea_rqt.plugin import RneaPlugin

    ros.start("dynamics_node", {"robot_description": URDF.read_text()})
    context = rqt_stand_in.Context(ros.node, serial=2)
    plugin = RneaPlugin(context)
    (panel,) = context.widgets
    assert plugin.name == "RneaPlugin" and panel.windowTitle().endswith("(2)")

    def reported():
        app.processEvents()
        return panel.table.bars.robot.rows and panel.payload.payload().link == "tool"

    ros.until(reported, what="no model came")
    assert panel.dynamics.node == "/dynamics_node" and panel.table.bars.robot.rows == ("joint1", "joint2")
    panel.span.setCurrentIndex(0)
    kept = rqt_stand_in.Settings()
    plugin.save_settings(rqt_stand_in.Settings(), kept)
    names = [name for name in ros.node.get_node_names() if name.startswith("rnea_rqt")]
    plugin.shutdown_plugin()
    assert not plugin.session.bridge._thread.is_alive() and names
    again = RneaPlugin(rqt_stand_in.Context(ros.node))
    again.restore_settings(rqt_stand_in.Settings(), kept)
    assert again.session.panel.chart.span == 5.0 and again.session.panel.dynamics.node == "/dynamics_node"
    again.restore_settings(rqt_stand_in.Settings(), rqt_stand_in.Settings())  # nothing kept
    again.restore_settings(rqt_stand_in.Settings(), rqt_stand_in.Settings(session="no json"))
    ros.until(lambda: (app.processEvents(), again.session.panel.table.bars.robot.rows)[1], what="no model came again")
    again.shutdown_plugin()


def test_buttons_do_not_block_without_a_server(app, ros):
    from rnea_rqt.session import Session

    session = Session(ros.context)
    try:
        session.panel.scaling.choose("/scaling_node")
        session.panel.motion.buttons["pause"].click()
        ros.until(lambda: (app.processEvents(), session.panel.message.text())[1])
        assert session.panel.message.text() == "/scaling_node/pause: not available"
    finally:
        session.close()


def test_nodes_can_be_switched_while_messages_arrive(app, ros):
    """Subscriptions are removed in the spinning thread, since rclpy sometimes fails in another thread."""
    from rnea_rqt.session import Session

    model = {"robot_description": URDF.read_text()}
    for side in ("left", "right"):
        ros.start("dynamics_node", model, side)
    session = Session(ros.context)
    panel, said = session.panel, []
    session.bridge.said.connect(said.append)
    try:
        ros.until(lambda: (app.processEvents(), panel.dynamics.count() == 2)[1], what="two nodes were not found")
        for round_ in range(40):
            panel.dynamics.choose(f"/{('left', 'right')[round_ % 2]}/dynamics_node")
            app.processEvents()
            ros.step(0.01)
        ros.until(lambda: (app.processEvents(), panel.table.bars.robot.rows)[1], what="no model came")
        assert session.bridge._thread.is_alive() and not [text for text in said if "failed" in text]
    finally:
        session.close()

"""Widgets with Qt, offscreen: painted values, emitted requests, and saved settings."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rnea_rqt.data import INDEX, QUANTITIES, Light, Payload, Update

from shown import LIGHTS, MOTION, POLICY, colours, robot, sample

OVER, NEAR, WELL = "#d03a00", "#e69f00", "#0072b2"  # on a light desktop


@pytest.fixture()
def panel(app):
    from rnea_rqt.widgets.panel import Panel

    panel = Panel()
    panel.show()
    yield panel
    panel.close()
    panel.deleteLater()
    app.processEvents()


def shown(panel, arm, *samples, age=0.0, **more):
    panel.show_update(Update(robot=arm, samples=list(samples), age=age, rate=100.0, **more))


def columns(panel):
    return [quantity.key for column, quantity in enumerate(QUANTITIES) if not panel.table.isColumnHidden(column)]


@pytest.mark.parametrize("use, colour", [(0.5, WELL), (0.9, NEAR), (1.1, OVER)])
def test_bar_color_shows_the_utilization(panel, use, colour):
    arm = robot()
    shown(panel, arm, sample(arm, effort=-50.0 * use))
    pixels = colours(panel.table.viewport())
    assert pixels.get(colour, 0) > 500
    others = {WELL, NEAR, OVER} - {colour}
    assert not any(pixels.get(other, 0) > 200 for other in others)


def test_bar_length_shows_the_torque_and_a_mark_its_peak(panel):
    arm = robot(1)
    shown(panel, arm, sample(arm, effort=10.0))
    short = colours(panel.table.viewport())[WELL]
    shown(panel, None, sample(arm, effort=30.0))
    long = colours(panel.table.viewport())[WELL]
    shown(panel, None, sample(arm, effort=0.0))
    held = colours(panel.table.viewport()).get(WELL, 0)
    panel.reset.click()
    assert long > 2 * short > 0 and short > held > 0 and WELL not in colours(panel.table.viewport())


def test_band_of_two_standard_deviations_is_painted(panel):
    from rnea_rqt.widgets.theme import theme

    arm = robot()
    band = theme(panel.palette()).band.name()
    shown(panel, arm, sample(arm, effort=10.0))
    without = colours(panel.table.viewport()).get(band, 0)
    shown(panel, None, sample(arm, effort=10.0, std=5.0))
    assert colours(panel.table.viewport())[band] > without + 200


def test_bars_without_limits_or_recent_data_are_gray(panel):
    from rnea_rqt.widgets.theme import theme

    arm, off = robot(limits=False), theme(panel.palette()).off.name()
    shown(panel, arm, sample(arm, effort=10.0))
    assert colours(panel.table.viewport())[off] > 500 and WELL not in colours(panel.table.viewport())
    assert panel.status.text() == "100 Hz"
    known = robot()
    shown(panel, known, sample(known, effort=60.0))
    assert panel.status.text() == "nearest limit: torque of joint1, 120 %; 100 Hz"
    assert colours(panel.table.viewport())[OVER] > 500
    shown(panel, None, age=3.2)
    pixels = colours(panel.table.viewport())
    assert pixels[off] > 500 and pixels.get(OVER, 0) < 500
    assert panel.status.text() == "no data for 3.2 s"


def test_table_height_fits_all_rows_below_the_header(app):
    """The last row was once half hidden in rqt, since the height was set before the header had titles."""
    from rnea_rqt.qt import QtGui
    from rnea_rqt.widgets.panel import Panel

    arm, font = robot(7), app.font()
    app.setFont(QtGui.QFont(font.family(), 20))
    panel = Panel()
    panel.resize(1600, 1400)
    panel.show()
    for samples in ([], [sample(arm, effort=1.0)]):  # the robot is known first
        shown(panel, arm, *samples)
        app.processEvents()
    app.setFont(font)
    assert panel.table.viewport().height() >= 7 * panel.table.verticalHeader().defaultSectionSize()
    panel.close()


def test_table_has_columns_of_known_quantities_that_are_not_hidden(panel):
    arm = robot(supplies=1)
    shown(panel, arm, sample(arm, effort=1.0, velocity=1.0))
    assert columns(panel) == ["effort", "velocity"]
    shown(panel, None, sample(arm, effort=1.0, power=5.0, current=2.0))
    assert columns(panel) == ["effort", "power"]  # the current is switched off
    panel.table.hide_quantities(["effort"])
    assert columns(panel) == ["current", "power"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("joints", [1, 6, 30])
def test_every_state_is_painted_without_errors(app, panel, joints, dark):
    """Samples have tiny, negative, huge and unknown values."""
    from rnea_rqt.qt import QtGui

    before = app.palette()
    if dark:
        palette = QtGui.QPalette(before)
        palette.setColor(QtGui.QPalette.ColorRole.Base, QtGui.QColor("#1e1e1e"))
        palette.setColor(QtGui.QPalette.ColorRole.Text, QtGui.QColor("#e6e6e6"))
        app.setPalette(palette)
    try:
        panel.grab()
        for arm in (robot(joints, supplies=2), robot(joints, limits=False)):
            for number in (0.0, 1e-9, -3.0, 1e12, np.nan):
                everything = dict.fromkeys(INDEX, number)
                shown(panel, arm, sample(arm, 1.0, std=abs(number), **everything), motion=MOTION, lights=LIGHTS)
                for quantity in range(len(QUANTITIES)):
                    panel.quantity.setCurrentIndex(quantity)
                panel.table.bars._words(0, 0)
                assert not panel.grab().isNull()
    finally:
        app.setPalette(before)


@pytest.mark.parametrize("width", [260, 1200])
def test_chart_legend_shows_all_rows_at_any_width(panel, width):
    shown(panel, robot(6))
    chart = panel.chart
    chart.resize(width, 200)
    entries, height = chart.legend(chart.fontMetrics(), chart.rows)
    assert [text for _, text, index in entries if index is not None] == [f"joint{k}" for k in range(1, 7)]
    assert all(box.right() <= width and box.bottom() <= height for box, *_ in entries)
    assert not any(one.intersects(other) for k, (one, *_) in enumerate(entries) for other, *_ in entries[:k])


def test_chart_shows_the_selected_rows(app, panel):
    arm = robot(8)
    shown(panel, arm, *(sample(arm, time, effort=np.sin(time)) for time in np.arange(0.0, 5.0, 0.01)))
    assert panel.chart.rows == [0, 1, 2, 3, 4, 5]
    panel.table.selectRow(7)
    assert panel.chart.rows == [7] and panel.table.names == ["joint8"]
    assert colours(panel.chart).get(WELL, 0) > 50
    shown(panel, robot(8, limits=False))  # another model of the same rows
    assert panel.chart.rows == [7] and panel.chart.history.curves(INDEX["effort"], 7, 10.0, 500)


@pytest.mark.parametrize("least, most", [(-62.0, 52.0), (0.0, 0.0), (1e-7, 3e-7), (-1e9, 1e9), (99.9999, 100.0)])
def test_axis_ticks_are_few_and_cover_the_values(app, least, most):
    from rnea_rqt.history import Curve
    from rnea_rqt.widgets.chart import bounds, ticks

    low, high = bounds([Curve(np.zeros(2), np.array([least, most]))])
    found = list(ticks(low, high))
    assert low <= least and high >= most and 2 <= len(found) <= 11
    assert all(low <= tick <= high for tick in np.round(found, 12))


def test_motion_buttons_and_slider_emit_requests_if_a_node_is_available(app, panel):
    asked = []
    panel.commanded.connect(asked.append)
    panel.overridden.connect(asked.append)
    panel.motion.buttons["pause"].click()
    assert asked == []  # no node serves it
    panel.offer([], ["/scaling_node"])
    for name in ("pause", "resume", "stop"):
        panel.motion.buttons[name].click()
    panel.motion.slider.setValue(70)
    panel.motion.slider.setValue(30)
    panel.motion._rest.timeout.emit()
    assert asked == ["pause", "resume", "stop", 0.3]


def test_motion_box_shows_phase_speed_delay_and_nearest_limit(panel):
    panel.motion.show_motion(MOTION)
    text = {name: label.text() for name, label in panel.motion.labels.items()}
    assert text == {"phase": "moving", "speed factor": "63 %", "delay": "0.410 s",
                    "nearest limit": "effort rate of joint2, 98 %"}
    assert panel.motion.title() == "Motion 3" and panel.motion.progress.value() == 420 and panel.motion.slider.value() == 80


def test_override_of_other_clients_moves_the_slider_unless_it_is_dragged(panel):
    asked = []
    panel.overridden.connect(asked.append)
    panel.motion.slider.setValue(40)
    panel.motion.show_motion(MOTION)
    assert panel.motion.slider.value() == 40
    panel.motion._rest.stop()
    panel.motion.show_motion(MOTION)
    assert panel.motion.slider.value() == 80 and panel.motion.share.text() == "80 %" and asked == []


def test_payload_form_emits_and_shows_payloads(panel):
    asked = []
    panel.payload_applied.connect(asked.append)
    panel.payload.set_links(("base", "link1", "tool"))
    assert panel.payload.payload() == Payload("tool", 0.0, (0.0, 0.0, 0.0))
    reported = Payload("link1", 1.5, (0.0, -0.02, 0.1))
    panel.payload.show_payload(reported)
    panel.payload.set_links(("base", "link1", "hand"))
    panel.payload.apply.click()
    assert asked == [reported]


def test_diagnostics_are_sorted_by_severity(panel):
    lights = (*LIGHTS, Light("/a: callbacks", 2, "one failed"), Light("/b: old", 3, "gone"))
    panel.show_update(Update(lights=lights))
    texts = [panel.lights.item(row).text() for row in range(panel.lights.count())]
    assert [text.partition(":")[0] for text in texts] == ["/b", "/a", "/scaling_node", "/dynamics_node"]
    panel.show_update(Update(lights=LIGHTS))
    assert panel.lights.count() == 2 and "state: ACTIVE" in panel.lights.item(1).toolTip()


def test_node_choosers_take_the_first_node_and_keep_it_while_it_is_gone(panel):
    chosen = []
    panel.dynamics_chosen.connect(chosen.append)
    panel.offer([], [])
    assert panel.dynamics.currentText() == "none yet" and panel.status.text() == "no dynamics_node to be seen"
    panel.offer(["/b/dynamics_node", "/a/dynamics_node"], [])
    panel.offer(["/a/dynamics_node"], [])
    panel.offer([], [])
    assert chosen == ["/b/dynamics_node"] and panel.dynamics.currentText() == "/b/dynamics_node"
    panel.offer(["/a/dynamics_node"], [])
    panel.dynamics.choose("/a/dynamics_node")
    assert chosen == ["/b/dynamics_node", "/a/dynamics_node"]


def test_settings_are_restored_in_another_window(app, panel):
    from rnea_rqt.widgets.panel import Panel

    arm = robot(8)
    shown(panel, arm, sample(arm, **dict.fromkeys(INDEX, 1.0)))
    panel.dynamics.choose("/left/dynamics_node")
    panel.table.hide_quantities(["velocity"])
    panel.quantity.setCurrentIndex(INDEX["power"])
    panel.span.setCurrentIndex(3)
    panel.table.select(["joint2", "joint7"])
    text = json.dumps(panel.settings())
    other = Panel()
    other.restore(json.loads(text))
    shown(other, arm, sample(arm, **dict.fromkeys(INDEX, 1.0)))
    assert other.chart.rows == [1, 6] and other.chart.span == 60.0 and other.chart.quantity == INDEX["power"]
    assert "velocity" not in columns(other) and "current" in columns(other)
    assert {**other.settings(), "sizes": 0} == {**json.loads(text), "sizes": 0}
    other.deleteLater()


@pytest.mark.parametrize("settings", [
    {}, {"dynamics": 3, "hidden": 5, "rows": 7, "sizes": 9, "chart": "speed", "span": "long"},
    {"sizes": [[1, 2, 3, 4], "x"], "rows": [{}], "hidden": [None], "chart": [], "span": {}, "scaling": None}])
def test_invalid_settings_are_ignored(panel, settings):
    panel.restore(settings)
    assert not panel.grab().isNull() and panel.chart.span == 10.0


def test_policy_box_is_shown_after_the_first_chunks(panel):
    shown(panel, robot())
    assert panel.policy.isHidden()
    shown(panel, None, policy=POLICY)
    texts = {name: label.text() for name, label in panel.policy.labels.items()}
    assert not panel.policy.isHidden() and texts == {
        "chunks": "183 received, 4 Hz", "rejected": "11 step too large, 2 not in time", "slowed": "7 %",
        "binding limit": "effort rate of joint2", "delay": "0.012 s behind the policy", "observation": "0.310 s old"}
    panel.scaling.chosen.emit("/another/scaling_node")
    assert panel.policy.isHidden()

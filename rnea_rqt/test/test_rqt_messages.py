"""Conversion of ROS messages to the displayed data."""

from __future__ import annotations

import numpy as np
import pytest

messages = pytest.importorskip("rnea_msgs.msg", reason="no ROS here")
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue  # noqa: E402
from rnea_rqt.data import INDEX, Light, Motion  # noqa: E402
from rnea_rqt.messages import DRIVES, lights, links, motion, policy, robot, sample  # noqa: E402

NAN = float("nan")


def info(**more):
    """Return a message of two joints; the second is prismatic and has a drive."""
    return messages.ModelInfo(**{
        "robot_name": "arm", "model_id": "abc", "joint_names": ["turn", "slide"], "joint_types": ["continuous", "prismatic"],
        "effort_limit": [10.0, NAN], "effort_rate_limit": [100.0, float("inf")], "velocity_limit": [2.0, 0.5],
        **more})


def drive(**numbers):
    fields = messages.Drive.get_fields_and_field_types()
    unknown = {name: NAN for name, kind in fields.items() if kind == "double"}
    return messages.Drive(**{**unknown, "joint": "slide", **numbers})


def test_robot_without_drives_has_limits_of_its_joints():
    found = robot(info())
    assert found.rows == ("turn", "slide") and found.joints == 2
    assert [found.unit(INDEX["effort_rate"], row) for row in (0, 1)] == ["N m/s", "N/s"]
    np.testing.assert_array_equal(found.high[INDEX["effort"]], [10.0, NAN])
    np.testing.assert_array_equal(found.low[INDEX["velocity"]], [-2.0, -0.5])
    assert np.isnan(found.high[INDEX["effort_rate"], 1])  # infinite is no limit either
    assert np.isnan(found.high[INDEX["voltage"]]).all() and (found.high[INDEX["thermal_load"]] == 1.0).all()


def test_limits_of_drives_and_supplies_are_converted():
    supply = messages.Supply(name="bus", joints=["slide"], max_power=500.0, max_braking_power=NAN)
    found = robot(info(drives=[drive(supply_voltage=48.0, max_current=6.0, max_power=90.0, max_braking_power=20.0)],
                       supplies=[supply]))
    assert found.rows == ("turn", "slide", "bus") and found.joints == 2
    assert [found.high[INDEX[key], 1] for key in DRIVES][:2] == [48.0, 6.0]
    np.testing.assert_array_equal(found.high[INDEX["power"]], [NAN, 90.0, 500.0])
    np.testing.assert_array_equal(found.low[INDEX["power"]], [NAN, -20.0, NAN])


def test_payload_links_are_read_from_the_robot_description():
    text = """<robot name="r"><link name="base"/><joint name="j" type="fixed"/>
              <link  name='tool 1'><inertial/></link><linkage name="no"/></robot>"""
    assert links(text) == ("base", "tool 1") and links("") == links("no <robot>") == ()


def test_sample_has_all_values_of_the_message():
    of = robot(info(supplies=[messages.Supply(name="bus", joints=["slide"], max_power=500.0, max_braking_power=100.0)]))
    message = messages.JointDynamics(
        joint_names=["turn", "slide"], effort=[5.0, -3.0], effort_rate=[1.0, float("inf")], velocity=[1.0, 0.25],
        effort_utilization=[0.5, NAN], velocity_utilization=[0.5, 0.5], effort_std=[0.1, NAN], power=[5.0, -0.75],
        thermal_load=[0.25, NAN], supply_power=[4.25], supply_utilization=[0.0085])
    message.header.stamp.sec, message.header.stamp.nanosec = 3, 500_000_000
    found = sample(message, of)
    assert found.stamp == 3.5 and found.rows == of.rows
    np.testing.assert_array_equal(found.value[INDEX["effort"]], [5.0, -3.0, NAN])
    np.testing.assert_array_equal(found.value[INDEX["effort_rate"]], [1.0, NAN, NAN])  # what is not finite cannot be drawn
    np.testing.assert_array_equal(found.value[INDEX["power"]], [5.0, -0.75, 4.25])
    np.testing.assert_array_equal(found.use[INDEX["power"]], [NAN, NAN, 0.0085])
    np.testing.assert_array_equal(found.use[INDEX["thermal_load"]], [0.25, NAN, NAN])
    np.testing.assert_array_equal(found.std[INDEX["effort"]], [0.1, NAN, NAN])
    assert np.isnan(found.value[INDEX["voltage"]]).all()


def test_sample_of_another_model_is_ignored():
    assert sample(messages.JointDynamics(joint_names=["turn"]), robot(info())) is None


def test_scaled_motion_and_diagnostics_are_converted():
    scaled = messages.ScaledMotion(phase=messages.ScaledMotion.PAUSED, motion=4, progress=0.5, delay=1.5, override_share=0.8,
                                   speed_scaling=0.0, utilization=0.9, binding_joint="slide", binding_limit="effort")
    assert motion(scaled) == Motion(4, "paused, until resumed", 0.5, 0.0, 1.5, 0.8, 0.9, "slide", "effort")
    values = [KeyValue(key="k", value="v")]
    status = DiagnosticStatus(name="/n: dynamics", level=DiagnosticStatus.WARN, message="m", values=values)
    (light,) = lights(DiagnosticArray(status=[status]))
    assert light == ("/n: dynamics", 1, "m", (("k", "v"),))


def test_policy_status_is_read_from_diagnostics():
    values = (("chunk.received", "12"), ("chunk.rate_hz", "4.9"), ("chunk.last_drop", "busy: so"), ("dropped.chunk.busy", "2"),
              ("dropped.chunk.stopped", "3"), ("policy.slowed_share", "0.25"), ("policy.delay_s", "0.1"))
    found = policy(Light("/scaling_node: scaling", 0, "", values))
    assert found[:5] == (12, 4.9, (("stopped", 3), ("busy", 2)), 0.25, "") and found.delay == 0.1 and np.isnan(found.age)
    assert policy(Light("/scaling_node: scaling", 0, "", (("chunk.received", "0"),))) is None

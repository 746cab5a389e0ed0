"""Writing bodies into a URDF: read back by us and by Pinocchio; other elements are unchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import Robot
from rnea_ros.model import urdf

TEXT = """<?xml version="1.0"?>
<robot name="two"><!-- kept --><link name="base"><inertial><mass value="9"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<link name="a"><visual><geometry><box size="1 1 1"/></geometry></visual><inertial><origin xyz="0.1 0 0" rpy="0 0 1"/>
<mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.15"/></inertial></link>
<link name="tool"><inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
</link><joint name="j" type="revolute"><parent link="base"/><child link="a"/><origin xyz="0 0 0.3" rpy="0.4 0 0"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="2"/></joint>
<joint name="f" type="fixed"><parent link="a"/><child link="tool"/><origin xyz="0 0.2 0" rpy="0 0.3 0"/></joint></robot>"""


def test_written_urdf_has_the_same_dynamics():
    robot = Robot.from_urdf(TEXT)
    same = urdf.with_bodies(TEXT, robot.model)
    assert "<!-- kept -->" in same and "<visual>" in same and 'effort="9"' in same
    assert same.count("<inertial>") == 2, "the tool is in its link's body"
    links = (replace(link, m=1.5 * link.m, ms=1.2 * link.ms, J=1.8 * link.J) if link.joint else link
             for link in robot.model.links)
    heavier = replace(robot.model, links=tuple(links))
    for model in (robot.model, heavier):
        text = urdf.with_bodies(TEXT, model)
        back = Robot.from_urdf(text).model
        for one, other in zip(model.links, back.links, strict=True):
            assert other.m == pytest.approx(one.m) and other.ms == pytest.approx(one.ms, abs=1e-12)
            assert np.abs(other.J - one.J).max() < 1e-12
        q, qd, qdd = 0.3, 0.7, -1.1
        oracle = pin.buildModelFromXML(text)
        expected = pin.rnea(oracle, oracle.createData(), *(np.array([x]) for x in (q, qd, qdd)))
        assert Robot.from_model(model).inverse_dynamics([q], [qd], [qdd]) == pytest.approx(expected, rel=1e-12)

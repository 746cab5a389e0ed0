"""Data to show, and checks of the painted pixels."""

from __future__ import annotations

import numpy as np
from rnea_rqt.data import INDEX, Light, Motion, PolicyStatus, Robot, Sample, unknown, utilization

LIMITS = {"effort": 50.0, "effort_rate": 400.0, "velocity": 2.0, "voltage": 48.0, "power": 100.0}


def robot(joints: int = 6, limits: bool = True, supplies: int = 0) -> Robot:
    """Return a robot whose third joint is prismatic."""
    rows = (*(f"joint{k + 1}" for k in range(joints)), *(f"supply{k + 1}" for k in range(supplies)))
    high = unknown(len(rows))
    if limits:
        for key, limit in LIMITS.items():
            high[INDEX[key], :joints] = limit
        high[INDEX["power"], joints:] = 300.0
    rotary = tuple(k != 2 for k in range(len(rows)))
    return Robot("arm", rows, rotary, joints, -high, high, "abc")


def sample(of: Robot, stamp: float = 0.0, std: float = np.nan, **values: float) -> Sample:
    """Return a sample with one value for all rows of each quantity."""
    value, deviation = unknown(len(of.rows)), unknown(len(of.rows))
    for key, number in values.items():
        value[INDEX[key]] = number
    deviation[INDEX["effort"]] = std
    return Sample(stamp, of.rows, value, deviation, utilization(value, of.low, of.high))


MOTION = Motion(3, "moving", 0.42, 0.63, 0.41, 0.8, 0.98, "joint2", "effort_rate")
POLICY = PolicyStatus(183, 4.0, (("step_too_large", 11), ("not_in_time", 2)), 0.07, "effort rate of joint2", 0.012, 0.31,
                      "step_too_large: the chunk is 0.99 from the motion")
LIGHTS = (Light("/dynamics_node: dynamics", 0, "joint torques are computed", (("state", "ACTIVE"),)),
          Light("/scaling_node: scaling", 1, "moving; limits are unknown"))


def colours(widget) -> dict[str, int]:
    """Count the pixels of each colour in a widget, by '#rrggbb'."""
    from rnea_rqt.qt import QtGui

    image = widget.grab().toImage().convertToFormat(QtGui.QImage.Format.Format_RGB32)
    bits = image.constBits()
    bits = bits.asarray(image.sizeInBytes()) if hasattr(bits, "asarray") else bits  # PyQt5
    values, counts = np.unique(np.frombuffer(bytes(bits), dtype=np.uint32) & 0xFFFFFF, return_counts=True)
    return {f"#{value:06x}": int(count) for value, count in zip(values, counts)}

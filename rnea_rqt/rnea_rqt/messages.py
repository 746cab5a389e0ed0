"""ROS messages become the data that widgets show."""

from __future__ import annotations

import re
from math import nan

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray

from rnea_msgs.msg import JointDynamics, ModelInfo, ScaledMotion
from rnea_rqt.data import INDEX, QUANTITIES, Light, Motion, PolicyStatus, Robot, Sample, unknown

PHASES = {ScaledMotion.MOVING: "moving", ScaledMotion.PAUSED: "paused, until resumed", ScaledMotion.STOPPING: "stopping",
          ScaledMotion.ENDED: "ended", ScaledMotion.SETTLING: "settling"}
LIMITS = ("effort", "effort_rate", "velocity")  # ModelInfo has them joint by joint
DRIVES = {"voltage": "supply_voltage", "current": "max_current", "motor_velocity": "max_motor_velocity"}
SHARES = [quantity.key for quantity in QUANTITIES if quantity.share]
MEASURED = [quantity.key for quantity in QUANTITIES if not quantity.share]
POWER = INDEX["power"]


def robot(info: ModelInfo) -> Robot:
    """Rows and limits."""
    joints = list(info.joint_names)
    rows = (*joints, *(supply.name for supply in info.supplies))
    low, high = unknown(len(rows)), unknown(len(rows))
    for key in LIMITS:
        high[INDEX[key], :len(joints)] = getattr(info, f"{key}_limit")
    for drive in info.drives:
        row = joints.index(drive.joint)
        for key, name in DRIVES.items():
            high[INDEX[key], row] = getattr(drive, name)
    high[~np.isfinite(high)] = np.nan
    low[:] = -high
    for row, source in [*((joints.index(drive.joint), drive) for drive in info.drives),
                        *enumerate(info.supplies, start=len(joints))]:
        low[POWER, row], high[POWER, row] = -source.max_braking_power, source.max_power
    for key in SHARES:
        low[INDEX[key]], high[INDEX[key]] = 0.0, 1.0
    rotary = (*(kind != "prismatic" for kind in info.joint_types), *(True for _ in info.supplies))
    return Robot(info.robot_name, rows, rotary, len(joints), low, high, info.model_id)


def links(urdf: str) -> tuple[str, ...]:
    """Names of links, to choose from; the nodes are who reads a URDF."""
    return tuple(re.findall(r"""<link\s[^>]*?\bname\s*=\s*["']([^"']+)["']""", urdf))


def sample(message: JointDynamics, of: Robot) -> Sample | None:
    """None, if the message is of another model: its information follows."""
    if tuple(message.joint_names) != of.rows[:of.joints]:
        return None
    value, std, use = (unknown(len(of.rows)) for _ in range(3))
    for key in (*MEASURED, *SHARES):
        _fill(value[INDEX[key], :of.joints], getattr(message, key))
    for key in MEASURED:
        _fill(use[INDEX[key], :of.joints], getattr(message, f"{key}_utilization"))
    for key in SHARES:
        use[INDEX[key]] = value[INDEX[key]]
    for key in ("effort", "effort_rate"):
        _fill(std[INDEX[key], :of.joints], getattr(message, f"{key}_std"))
    _fill(value[POWER, of.joints:], message.supply_power)
    _fill(use[POWER, of.joints:], message.supply_utilization)
    return Sample(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec, of.rows, value, std, use)


def _fill(cells: np.ndarray, numbers) -> None:
    """Arrays of drives are empty if none is known; what is not finite cannot be drawn."""
    if len(numbers) == len(cells):
        cells[:] = numbers
        cells[~np.isfinite(cells)] = np.nan


def motion(message: ScaledMotion) -> Motion:
    return Motion(message.motion, PHASES.get(message.phase, "unknown"), message.progress, message.speed_scaling, message.delay,
                  message.override_share, message.utilization, message.binding_joint, message.binding_limit)


def lights(message: DiagnosticArray) -> list[Light]:
    """Return the lights of a diagnostics message; in rclpy a level is one byte."""
    return [Light(status.name, int.from_bytes(status.level, "little") & 3, status.message,
                  tuple((pair.key, pair.value) for pair in status.values)) for status in message.status]


def policy(light: Light) -> PolicyStatus | None:
    """Return the status of a policy from the diagnostics of scaling_node; None where no chunk was received."""
    values = dict(light.values)
    received = int(values.get("chunk.received", 0))
    if not received:
        return None
    head = "dropped.chunk."
    counts = [(key.removeprefix(head), int(count)) for key, count in light.values if key.startswith(head)]
    rejected = tuple(sorted(counts, key=lambda pair: -pair[1]))
    share, delay, age = (float(values.get(f"policy.{name}", nan)) for name in ("slowed_share", "delay_s", "observation_age_s"))
    return PolicyStatus(received, float(values.get("chunk.rate_hz", nan)), rejected, share, values.get("policy.binding", ""),
                        delay, age, values.get("chunk.last_drop", ""))

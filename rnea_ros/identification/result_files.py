"""What an identification leaves: a URDF, a robot file, a report page with pictures, and all numbers as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms.joint_dynamics import joint_dynamics
from ..model import urdf_writer
from ..model.robot_file.robot_file import RobotFile
from ..output.figures import picture
from ..robots.robot import Robot
from . import knowledge
from .fitting import Fit

URDF, ROBOT_FILE, REPORT, NUMBERS = "identified.urdf", "identified.robot.yaml", "report.md", "parameters.json"
TORQUES, FRICTION = "torques.png", "friction.png"
MOST_POINTS = 3000
PAIRS = (("stribeck", "stribeck_velocity"), ("asymmetry",), ("load_dependent", "load_smoothing"))  # nothing without the first
TERMS = ("coulomb", "viscous", "offset", "smoothing", "stribeck", "stribeck_velocity", "asymmetry", "load_dependent",
         "load_smoothing")


def write(folder: str | os.PathLike[str], found: Fit, urdf: str, given: Mapping[str, Any], summary: str,
          pictures: bool = True) -> list[str]:
    """Into a folder, which is made; returns the names. urdf: path or text; given: the content of the robot file before."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    texts = {URDF: urdf_writer.with_bodies(urdf, found.robot.model),
             ROBOT_FILE: robot_file(found, given).text(), REPORT: report(found, summary, pictures),
             NUMBERS: json.dumps(as_json(found), indent=1) + "\n"}
    for name, text in texts.items():
        (place / name).write_text(text, encoding="utf-8")
    if pictures:
        torques(place / TORQUES, found)
        friction(place / FRICTION, found)
    return [*texts, *([TORQUES, FRICTION] if pictures else [])]


def robot_file(found: Fit, given: Mapping[str, Any]) -> RobotFile:
    """The robot file of before with drives and friction as found, and gains, by which efforts are read from then on;
    payloads are in the bodies now."""
    robot = found.robot
    content = {"version": 1, "robot": robot.name, **given}
    content.pop("payloads", None)
    drives, frictions = ({name: dict(entry) for name, entry in content.get(section, {}).items()}
                         for section in ("drives", "friction"))
    terms = {link.joint: link.term for link in robot.model.links if link.joint}
    for joint in (robot.joint_names[k] for k in found.joints):
        term = terms[joint]
        drive = {key: value for key, value in drives.get(joint, {}).items() if key not in ("coulomb", "viscous")}
        drives[joint] = drive | {"gear_ratio": term.gear_ratio, "rotor_inertia": _short(term.rotor_inertia)}
        unused = [key for keys in PAIRS if not getattr(term, keys[0]) for key in keys]
        frictions[joint] = {key: _short(getattr(term, key)) for key in TERMS if key not in unused}
    if found.gains:
        content["measured_effort"] = _currents(robot, drives)
    gravity = [] if robot.gravity_vector.tolist() == [0.0, 0.0, -9.81] else [("gravity", robot.gravity_vector.tolist())]
    return RobotFile({**content, **dict(gravity), "drives": drives, "friction": frictions}, ROBOT_FILE)


def _currents(robot: Robot, drives: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What efforts mean whose gains were found; torque constants go into the drives. What was not measured is a torque."""
    measured = robot.model.efforts.measured
    for joint, gain in zip(robot.joint_names, measured.per_unit, strict=True):
        drive = drives.setdefault(joint, {"gear_ratio": 1.0})
        drive["torque_constant"] = _short(abs(gain) / abs(drive["gear_ratio"] * drive.get("efficiency", 1.0)))
    turned = [joint for joint, gain in zip(robot.joint_names, measured.per_unit, strict=True)
              if gain * drives[joint]["gear_ratio"] < 0.0]
    return {"contains": measured.contains, "quantity": measured.quantity, **({"reversed": turned} if turned else {})}


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def report(found: Fit, summary: str, pictures: bool = True) -> str:
    """A page in Markdown."""
    names = [found.robot.joint_names[k] for k in found.joints]
    parts = [f"# {found.robot.name}, identified\n\n```\n{summary}\n```\n"]
    if pictures:
        parts.append(f"![Torques, measured and of the robot found]({TORQUES})\n\n![Friction of each joint]({FRICTION})\n")
    terms = {link.joint: link.term for link in found.robot.model.links if link.joint}
    parts.append("## Friction and rotors\n\n" + _table(
        ("joint", "model", *TERMS, "rotor at the joint"),
        [(name, model.words, *(f"{getattr(terms[name], key):.4g}" for key in TERMS), f"{terms[name].armature:.3g}")
         for name, model in zip(names, found.friction, strict=True)]))
    parts.append("## Bodies\n\nIn the frame of each URDF link; what fixed joints tie to it is part of it. One robot of many: "
                 "only the base parameters below are measured, what they leave open is as near to the URDF as they allow.\n\n"
                 + _table(
                     ("link", "mass [kg]", "centre of mass [m]", "ixx ixy ixz iyy iyz izz about it [kg m^2]"),
                     [(name, f"{body.mass:.4g}", _row(body.com), _row(body.inertia))
                      for name, body in urdf_writer.bodies(found.robot.model).items()]))
    parts.append("## Base parameters\n\nValue and standard deviation by least squares; *robot* is the possible one that was "
                 "written. Marked ones say little: the standard deviation is above 30 %.\n\n" + _table(
                     ("parameter", "value", "std", "URDF", "robot", "unit", ""),
                     [(row.name, *("" if np.isnan(x) else f"{x:.4g}" for x in row[2:]), row.unit,
                       "says little" if row.doubtful else "") for row in knowledge.rows(found)]))
    parts.append(f"## What this recording cannot tell\n\n{_open(found)}")
    return "\n".join(parts)


def _open(found: Fit) -> str:
    directions, unseen = knowledge.open_directions(found), found.base.unseen()
    text = "No torque of this robot depends on: " + (", ".join(unseen) or "nothing is unseen") + ".\n"
    if not directions:
        return text + "\nEvery direction of the base parameters was shown better than by its own size.\n"
    told = "\n".join(f"* {direction}" for direction in directions)
    return (text + "\nOf the base parameters, measured in their sizes, these sums were not shown better than by their size; "
            f"the URDF decides them. A motion that excites more (`rnea excite`) tells more.\n\n{told}\n")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _row(values: list[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def as_json(found: Fit) -> dict[str, Any]:
    """For programs."""
    robot = found.robot
    terms = {link.joint: link.term for link in robot.model.links if link.joint}
    errors = zip(found.signal, found.trained, found.foretold, found.unbound, strict=True)
    return {
        "robot": robot.name, "gravity": robot.gravity_vector.tolist(), "equations": found.equations,
        "explained": found.explained, "at_the_edge": list(found.thin),
        "gains": dict(zip([robot.joint_names[k] for k in found.joints], found.gains.values.tolist(), strict=True))
        if found.gains else None,
        "derivatives": found.prepared.how.method if found.prepared.how else None, "notes": list(found.prepared.notes),
        "joints": {robot.joint_names[k]: dict(zip(("rms", "error", "error_held_out", "error_held_out_least_squares"),
                                                  (_known(x) for x in row), strict=True))
                   | {"friction": model.words, "rotor_inertia_at_joint": terms[robot.joint_names[k]].armature,
                      **{key: getattr(terms[robot.joint_names[k]], key) for key in TERMS}}
                   for k, row, model in zip(found.joints, errors, found.friction, strict=True)},
        "base_parameters": [{**row._asdict(), "before": _known(row.before), "relation": relation} for row, relation
                            in zip(knowledge.rows(found), found.base.relations(17), strict=True)],
        "not_seen_by_any_torque": list(found.base.unseen()), "not_shown": knowledge.open_directions(found),
        "links": {name: body._asdict() for name, body in urdf_writer.bodies(robot.model).items()}}


def _known(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


def torques(path: str | os.PathLike[str], found: Fit) -> None:
    """Measured torques and those of the robot found; what was left out of the fit is shaded."""
    data, joints = found.prepared, list(found.joints)
    step = max(1, len(data.t) // MOST_POINTS)
    tau = found.robot.inverse_dynamics(data.q, data.qd, data.qdd)
    with picture(path, (12, 1.0 + 1.7 * len(joints))) as figure:
        axes = figure.subplots(len(joints), 1, sharex=True, squeeze=False)[:, 0]
        for axis, k in zip(axes, joints, strict=True):
            axis.plot(data.t[::step], data.tau[::step, k], color="0.55", linewidth=1.6, label="measured")
            axis.plot(data.t[::step], tau[::step, k], color="tab:blue", linewidth=1.0, label="robot found")
            axis.plot(data.t[::step], (data.tau - tau)[::step, k], color="tab:red", linewidth=0.8, label="difference")
            if found.split < len(data.t):
                axis.axvspan(data.t[found.split], data.t[-1], color="tab:green", alpha=0.1, linewidth=0.0, label="foretold")
            axis.set_title(found.robot.joint_names[k], loc="left", fontsize=9)
            axis.set_ylabel("N" if found.robot.joint_types[k] == "prismatic" else "N m")
            axis.grid(alpha=0.3)
            axis.margins(x=0.005)
        axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=8, frameon=False)
        axes[-1].set_xlabel("time [s]")


def friction(path: str | os.PathLike[str], found: Fit) -> None:
    """Measured torque less that of the bodies, over speed, and the friction found."""
    data, joints = found.prepared, list(found.joints)
    step = max(1, len(data.t) // MOST_POINTS)
    tau = found.robot.inverse_dynamics(data.q, data.qd, data.qdd)
    columns = min(4, len(joints))
    with picture(path, (3.6 * columns, 2.9 * -(-len(joints) // columns))) as figure:
        axes = figure.subplots(-(-len(joints) // columns), columns, squeeze=False).ravel()
        terms = {link.joint: link.term for link in found.robot.model.links if link.joint}
        for axis, k, model in zip(axes, joints, found.friction, strict=False):
            name, unit = found.robot.joint_names[k], "m/s" if found.robot.joint_types[k] == "prismatic" else "rad/s"
            own = joint_dynamics(terms[name], data.qd[:, k], 0.0, 0.0)[0]
            axis.plot(data.qd[::step, k], (data.tau[:, k] - tau[:, k] + own)[::step], ".", color="0.6", markersize=2)
            speed = np.linspace(data.qd[:, k].min(), data.qd[:, k].max(), 801)
            axis.plot(speed, joint_dynamics(terms[name], speed, 0.0, 0.0)[0], color="tab:blue", linewidth=1.6)
            axis.set_title(f"{name}: {model.words}", loc="left", fontsize=8)
            axis.set_xlabel(unit, fontsize=8)
            axis.grid(alpha=0.3)
        for axis in axes[len(joints):]:
            axis.remove()

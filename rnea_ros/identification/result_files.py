"""Output files of an identification: a URDF, a robot file, a report with pictures, and all numbers as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.joint_dynamics import joint_dynamics
from ..io.figures import picture
from ..model.robot_file import RobotFile
from ..model.urdf import bodies, with_bodies
from ..robots.robot import Robot
from .fitting import ROTOR, Fit

URDF, ROBOT_FILE, REPORT, NUMBERS = "identified.urdf", "identified.robot.yaml", "report.md", "parameters.json"
TORQUES, FRICTION = "torques.png", "friction.png"
MAX_POINTS = 3000  # most points of a curve in a picture
# friction terms that are omitted if the first one of the group is zero
OPTIONAL_TERMS = (("stribeck", "stribeck_velocity"), ("asymmetry",), ("load_dependent", "load_smoothing"))
TERMS = ("coulomb", "viscous", "offset", "smoothing", "stribeck", "stribeck_velocity", "asymmetry", "load_dependent",
         "load_smoothing")
MOTOR_TERMS = ("rotor_inertia", "coulomb", "viscous", "smoothing")
POORLY_DETERMINED = 0.3  # relative standard deviation
MIN_COEFFICIENT_SHARE = 0.3  # smallest named coefficient of a direction, relative to the largest one
MAX_NAMES = 4  # most parameters named for a direction


# ---------------------------------------------------------------------- parameters that the recordings determine

class BaseParameterRow(NamedTuple):
    """Base parameter or friction term.

    value : least-squares estimate; std: its standard deviation
    urdf  : value of the URDF; NaN for friction
    robot : value of the identified robot
    """

    name: str
    unit: str
    value: float
    std: float
    urdf: float
    robot: float

    @property
    def poorly_determined(self) -> bool:
        return self.std > POORLY_DETERMINED * abs(self.value)


def base_parameter_rows(fit: Fit) -> list[BaseParameterRow]:
    """Return all base parameters and friction terms."""
    columns = (fit.estimate.tolist(), fit.std.tolist(), fit.prior.tolist(), fit.values.tolist())
    return [BaseParameterRow(*row) for row in zip(fit.base.names, fit.base.units, *columns, strict=True)]


def undetermined_directions(fit: Fit) -> list[str]:
    """Return the linear combinations of parameters with a standard deviation above their scale, the most uncertain first.

    The scale of a parameter is the largest of its estimate, its value in the URDF, and a tenth of the largest scale of its
    unit.
    """
    size = np.fmax(np.abs(fit.estimate), np.abs(fit.prior))
    for unit in set(fit.base.units):
        same_unit = np.array([other == unit for other in fit.base.units])
        size[same_unit] = np.maximum(size[same_unit], 0.1 * size[same_unit].max())
    scale = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(fit.information * np.multiply.outer(scale, scale))
    return [_direction(vector, fit.base.names) for value, vector in zip(values, vectors.T, strict=True) if value < 1.0]


def _direction(vector: np.ndarray, names: tuple[str, ...]) -> str:
    """Return a linear combination of parameters as text, the largest coefficients first."""
    order = np.argsort(-np.abs(vector))
    named = [k for k in order[:MAX_NAMES].tolist() if abs(vector[k]) > MIN_COEFFICIENT_SHARE * abs(vector[order[0]])]
    sign = np.sign(vector[named[0]])
    parts = [f"{'+' if sign * vector[k] > 0.0 else '-'} {abs(vector[k]):.2f} {names[k]}" for k in named]
    return " ".join(parts).removeprefix("+ ").removeprefix("1.00 ")


def inseparable_rotors(fit: Fit) -> tuple[str, ...]:
    """Return the joints whose rotor inertia no motion can separate from the inertia of the links."""
    grouping, rotors = fit.base.grouping, []
    for k, parameter in enumerate(fit.base.parameters):
        if parameter.kind == ROTOR and grouping[:, k].any():
            unit = np.eye(grouping.shape[1])[k]
            rest = unit - np.linalg.lstsq(grouping.T, unit, rcond=None)[0] @ grouping
            rotors += [parameter.owner] * bool(np.linalg.norm(rest) > 1e-6)
    return tuple(rotors)


# ---------------------------------------------------------------------- files

def write(folder: str | os.PathLike[str], fit: Fit, urdf: str, content: Mapping[str, Any], summary: str,
          pictures: bool = True) -> list[str]:
    """Write all files into a folder, which is created, and return their names.

    urdf     : path or text of the URDF
    content  : content of the robot file before the fit
    summary  : text at the start of the report
    pictures : whether to draw torques and friction (requires matplotlib)
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    texts = {URDF: with_bodies(urdf, fit.robot.model),
             ROBOT_FILE: robot_file(fit, content).text(), REPORT: report(fit, summary, pictures),
             NUMBERS: json.dumps(as_json(fit), indent=1) + "\n"}
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    if pictures:
        draw_torques(path / TORQUES, fit)
        draw_friction(path / FRICTION, fit)
    return [*texts, *([TORQUES, FRICTION] if pictures else [])]


def robot_file(fit: Fit, original: Mapping[str, Any]) -> RobotFile:
    """Return the robot file with identified drives, friction and convention of measured efforts.

    Payloads are removed: the identified bodies include them. original: content of the robot file before the fit
    """
    robot = fit.robot
    content = {"version": 1, "robot": robot.name, **original}
    content.pop("payloads", None)
    drives, frictions = ({name: dict(entry) for name, entry in content.get(section, {}).items()}
                         for section in ("drives", "friction"))
    terms = {link.joint: link.term for link in robot.model.links if link.joint}
    for joint in fit.names:
        term = terms[joint]
        drive = {key: value for key, value in drives.get(joint, {}).items() if key not in ("coulomb", "viscous")}
        drives[joint] = drive | {"gear_ratio": term.gear_ratio, "rotor_inertia": _six_digits(term.rotor_inertia)}
        unused = [key for keys in OPTIONAL_TERMS if not getattr(term, keys[0]) for key in keys]
        frictions[joint] = {key: _six_digits(getattr(term, key)) for key in TERMS if key not in unused}
    if robot.model.coupled_motors:
        content["couplings"] = _couplings(robot, content["couplings"])
    if fit.gains:
        content["measured_effort"] = _currents(robot, drives)
    elif fit.reversed:
        measured = dict(content.get("measured_effort", {}))
        content["measured_effort"] = measured | {"reversed": sorted(set(measured.get("reversed", ())) ^ set(fit.reversed))}
    gravity = [] if robot.gravity_vector.tolist() == [0.0, 0.0, -9.81] else [("gravity", robot.gravity_vector.tolist())]
    return RobotFile({**content, **dict(gravity), "drives": drives, "friction": frictions}, ROBOT_FILE)


def _couplings(robot: Robot, original: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section `couplings` with identified inertia and friction."""
    motors, section = iter(robot.model.coupled_motors), {}
    for name, coupling in original.items():
        section[name] = {"joints": list(coupling["joints"]), "motors": {
            motor: {"ratios": list(entry["ratios"]), **{key: _six_digits(getattr(next_term, key)) for key in MOTOR_TERMS}}
            for (motor, entry), next_term in zip(coupling["motors"].items(), (one.term for one in motors))}}
    return section


def _currents(robot: Robot, drives: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the section `measured_effort` for the identified gains, and add torque constants to `drives` in place.

    The measured efforts of joints without a gain remain torques.
    """
    measured = robot.model.efforts.measured
    for joint, gain in zip(robot.joint_names, measured.per_unit, strict=True):
        drive = drives.setdefault(joint, {"gear_ratio": 1.0})
        drive["torque_constant"] = _six_digits(abs(gain) / abs(drive["gear_ratio"] * drive.get("efficiency", 1.0)))
    reversed_joints = [joint for joint, gain in zip(robot.joint_names, measured.per_unit, strict=True)
                       if gain * drives[joint]["gear_ratio"] < 0.0]
    section = {"contains": measured.contains, "quantity": measured.quantity}
    return section | ({"reversed": reversed_joints} if reversed_joints else {})


def _six_digits(value: float) -> float:
    return float(f"{value:.6g}")


def report(fit: Fit, summary: str, pictures: bool = True) -> str:
    """Return the report as Markdown."""
    parts = [f"# {fit.robot.name}, identified\n\n```\n{summary}\n```\n"]
    if pictures:
        parts.append(f"![Measured torques, and those of the URDF and of the identified robot]({TORQUES})\n\n"
                     f"![Friction of each joint]({FRICTION})\n")
    parts.append("## Torque errors\n\nRMS over the validation set, which was not used in the fit; *fit*: over the other "
                 "samples.\n\n"
                 + _markdown(ERROR_COLUMNS, error_rows(fit)))
    terms = {link.joint: link.term for link in fit.robot.model.links if link.joint}
    parts.append("## Friction and rotors\n\nForces in N m (N for prismatic joints), speeds in rad/s (m/s), rotor inertia "
                 "reflected to the joint in kg m^2 (kg).\n\n" + _markdown(
                     ("joint", "model", *TERMS, "rotor inertia at the joint"),
                     [(name, model.description, *(f"{getattr(terms[name], key):.4g}" for key in TERMS),
                       f"{terms[name].armature:.3g}") for name, model in zip(fit.names, fit.friction, strict=True)]))
    if motors := fit.robot.model.coupled_motors:
        parts.append("## Coupled motors\n\nAt the motor: rotor inertia in kg m^2, friction in N m and N m s/rad, smoothing in "
                     "rad/s. A motor that turns with one joint only is listed above as the rotor of that "
                     "joint.\n\n" + _markdown(
                         ("motor", *MOTOR_TERMS),
                         [(motor.name, *(f"{getattr(motor.term, key):.4g}" for key in MOTOR_TERMS)) for motor in motors]))
    before, after = bodies(fit.before.model), bodies(fit.robot.model)
    parts.append("## Bodies\n\nIn the frame of each URDF link, including bodies attached by fixed joints. The recordings "
                 "determine "
                 "the base parameters below, not each mass: of all bodies that agree with the base parameters, these are "
                 f"nearest to those of the URDF. Total mass {fit.robot.total_mass:.4g} kg, URDF {fit.before.total_mass:.4g} "
                 f"kg.\n\n" + _markdown(
                     ("link", "mass [kg]", "mass in the URDF [kg]", "centre of mass [m]",
                      "ixx ixy ixz iyy iyz izz about it [kg m^2]"),
                     [(name, f"{body.mass:.4g}", f"{before[name].mass:.4g}" if name in before else "", _numbers(body.com),
                       _numbers(body.inertia)) for name, body in after.items()]))
    parts.append("## Base parameters\n\nLeast-squares estimate and standard deviation; *robot*: the physically consistent "
                 f"robot that was written. *Poorly determined*: the standard deviation is above {100 * POORLY_DETERMINED:.0f} "
                 "%.\n\n"
                 + _markdown(("parameter", "estimate", "std", "URDF", "robot", "unit", ""),
                             [(row.name, *("" if np.isnan(x) else f"{x:.4g}" for x in row[2:]), row.unit,
                               "poorly determined" if row.poorly_determined else "") for row in base_parameter_rows(fit)]))
    parts.append(f"## Undetermined parameters\n\n{_undetermined(fit)}")
    return "\n".join(parts)


def _undetermined(fit: Fit) -> str:
    text = "No torque depends on: " + (", ".join(fit.unobservable) or "(none)") + ". Their values are those of the URDF.\n"
    if rotors := inseparable_rotors(fit):
        text += ("\nNo motion separates the rotor inertia of these joints from the inertia of the links about the same axis: "
                 f"{', '.join(rotors)}. Only the sum is determined; the bodies stay near those of the URDF, and the "
                 "rotor inertia is the difference.\n")
    if not (directions := undetermined_directions(fit)):
        return text + "\nAll base parameters were excited.\n"
    listed = "\n".join(f"* {direction}" for direction in directions)
    return (text + "\nThe standard deviation of these sums of base parameters exceeds their scale; their values are near "
                   "those of "
            f"the URDF. Record a motion that excites them (`rnea excite`).\n\n{listed}\n")


ERROR_COLUMNS = ("joint", "unit", "RMS torque", "URDF error", "identified error", "of torque", "fit error")


def error_rows(fit: Fit) -> list[tuple[str, ...]]:
    """Return one row for each joint, with the columns ERROR_COLUMNS.

    Errors are RMS values over the validation set, or over all samples if there is none.
    """
    validated = np.isfinite(fit.validation_error).all()
    errors = fit.validation_error if validated else fit.fit_error
    rows = zip(fit.joints, fit.names, fit.rms, fit.urdf_error, errors, fit.fit_error, strict=True)
    return [(name, _force_unit(fit.robot, k), f"{rms:.4g}", f"{urdf:.3g}", f"{error:.3g}",
             f"{100.0 * error / max(rms, 1e-300):.3g} %", f"{fit_error:.3g}") for k, name, rms, urdf, error, fit_error in rows]


def _force_unit(robot: Robot, joint: int) -> str:
    return "N" if robot.joint_types[joint] == "prismatic" else "N m"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def as_json(fit: Fit) -> dict[str, Any]:
    """Return all results as content of a JSON file."""
    robot = fit.robot
    terms = {link.joint: link.term for link in robot.model.links if link.joint}
    keys = ("rms", "error_urdf", "error_fit", "error_validation", "error_validation_least_squares")
    errors = zip(fit.rms, fit.urdf_error, fit.fit_error, fit.validation_error, fit.least_squares_error, strict=True)
    return {
        "robot": robot.name, "gravity": robot.gravity_vector.tolist(), "equations": fit.equations,
        "explained": fit.explained, "at_boundary": list(fit.at_boundary),
        "excluded": [{"joint": one.joint, "relative_error": one.error, "error_factor_of_others": one.others[0],
                      "joint_most_affected": one.others[1]} for one in fit.excluded],
        "reversed": list(fit.reversed),
        "gains": dict(zip(fit.names, fit.gains.values.tolist(), strict=True)) if fit.gains else None,
        "recordings": [{"derivatives": recording.data.how.method if recording.data.how else None,
                        "notes": list(recording.data.notes), "samples": len(recording.data.t),
                        "validation_from": recording.split, "payloads": list(recording.payloads)}
                       for recording in fit.recordings],
        "joints": {name: dict(zip(keys, (_finite(x) for x in row), strict=True))
                   | {"unit": _force_unit(robot, k), "friction": model.description,
                      "rotor_inertia_at_joint": terms[name].armature, **{key: getattr(terms[name], key) for key in TERMS}}
                   for k, name, row, model in zip(fit.joints, fit.names, errors, fit.friction, strict=True)},
        "suspected_couplings": [one._asdict() for one in fit.suspected],
        "coupled_motors": {motor.name: {key: getattr(motor.term, key) for key in MOTOR_TERMS}
                           for motor in robot.model.coupled_motors},
        "base_parameters": [{**row._asdict(), "urdf": _finite(row.urdf), "relation": relation} for row, relation
                            in zip(base_parameter_rows(fit), fit.base.relations(17), strict=True)],
        "no_torque_depends_on": list(fit.unobservable), "undetermined": undetermined_directions(fit),
        "rotors_inseparable_from_links": list(inseparable_rotors(fit)),
        "total_mass": robot.total_mass, "total_mass_urdf": fit.before.total_mass,
        "links": {name: body._asdict() for name, body in bodies(robot.model).items()}}


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


# ---------------------------------------------------------------------- pictures

def draw_torques(path: str | os.PathLike[str], fit: Fit) -> None:
    """Draw the measured torques and those of the URDF and the identified robot; validation sets are shaded."""
    joints = list(fit.joints)
    with picture(path, (12, 1.0 + 1.7 * len(joints))) as figure:
        axes = figure.subplots(len(joints), 1, sharex=True, squeeze=False)[:, 0]
        begin = 0.0
        for number, recording in enumerate(fit.recordings):
            data = recording.data
            step = max(1, len(data.t) * len(fit.recordings) // MAX_POINTS)
            t = begin + data.t - data.t[0]
            payloads = list(recording.payloads.items())
            tau, urdf = (_torque(robot, payloads, data) for robot in (fit.robot, fit.before))
            for axis, k in zip(axes, joints, strict=True):
                curves = ((data.tau, "0.55", 1.6, "-", "measured"), (urdf, "tab:orange", 0.9, ":", "URDF"),
                          (tau, "tab:blue", 1.0, "-", "identified"),
                          (data.tau - tau, "tab:red", 0.8, "-", "measured - identified"))
                for values, color, width, style, label in curves:
                    axis.plot(t[::step], values[::step, k], color=color, linewidth=width, linestyle=style,
                              label=None if number else label)
                if recording.split < len(t):
                    axis.axvspan(t[recording.split], t[-1], color="tab:green", alpha=0.1, linewidth=0.0,
                                 label=None if number else "validation set")
            begin = float(t[-1]) + 0.02 * float(t[-1] - t[0])
        for axis, k in zip(axes, joints, strict=True):
            axis.set_title(fit.robot.joint_names[k], loc="left", fontsize=9)
            axis.set_ylabel(f"torque [{_force_unit(fit.robot, k)}]" if _force_unit(fit.robot, k) == "N m" else "force [N]")
            axis.grid(alpha=0.3)
            axis.margins(x=0.005)
        axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5, fontsize=8, frameon=False)
        axes[-1].set_xlabel("time [s]")


def _torque(robot: Robot, payloads: Sequence[tuple[str, tuple[Any, ...]]], data: Any) -> np.ndarray:
    for link, payload in payloads:
        robot = robot.with_payload(link, *payload)
    return robot.inverse_dynamics(data.q, data.qd, data.qdd)


def draw_friction(path: str | os.PathLike[str], fit: Fit) -> None:
    """Draw measured torque minus torque of the bodies, and the identified friction, over velocity."""
    joints = list(fit.joints)
    columns = min(4, len(joints))
    qd = np.concatenate([recording.data.qd for recording in fit.recordings])
    remaining = np.concatenate([recording.data.tau - _torque(fit.robot, list(recording.payloads.items()), recording.data)
                                for recording in fit.recordings])
    step = max(1, len(qd) // MAX_POINTS)
    with picture(path, (3.6 * columns, 2.9 * -(-len(joints) // columns))) as figure:
        axes = figure.subplots(-(-len(joints) // columns), columns, squeeze=False).ravel()
        terms = {link.joint: link.term for link in fit.robot.model.links if link.joint}
        for axis, k, model in zip(axes, joints, fit.friction, strict=False):
            name, speed_unit = fit.robot.joint_names[k], "m/s" if fit.robot.joint_types[k] == "prismatic" else "rad/s"
            friction_torque = joint_dynamics(terms[name], qd[:, k], 0.0, 0.0)[0]
            axis.plot(qd[::step, k], (remaining[:, k] + friction_torque)[::step], ".", color="0.6", markersize=2,
                      label="measured - bodies")
            speed = np.linspace(qd[:, k].min(), qd[:, k].max(), 801)
            axis.plot(speed, joint_dynamics(terms[name], speed, 0.0, 0.0)[0], color="tab:blue", linewidth=1.6,
                      label="identified friction")
            axis.set_title(f"{name}: {model.description}", loc="left", fontsize=8)
            axis.set_xlabel(f"velocity [{speed_unit}]", fontsize=8)
            axis.set_ylabel(f"[{_force_unit(fit.robot, k)}]", fontsize=8)
            axis.grid(alpha=0.3)
        axes[0].legend(loc="upper left", fontsize=7, frameon=False)
        for axis in axes[len(joints):]:
            axis.remove()

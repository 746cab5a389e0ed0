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
MAX_POINTS = 3000
# terms that are unused where the first one is zero
DEPENDENT = (("stribeck", "stribeck_velocity"), ("asymmetry",), ("load_dependent", "load_smoothing"))
TERMS = ("coulomb", "viscous", "offset", "smoothing", "stribeck", "stribeck_velocity", "asymmetry", "load_dependent",
         "load_smoothing")
OF_MOTOR = ("rotor_inertia", "coulomb", "viscous", "smoothing")
POORLY_DETERMINED = 0.3  # relative standard deviation
INVOLVED, MAX_NAMES = 0.3, 4  # parameters of a direction: smallest share of the largest one, and how many are named


# ---------------------------------------------------------------------- what the recordings determine

class BaseParameterRow(NamedTuple):
    """Base parameter or friction term: estimate, standard deviation, value in the URDF (NaN for friction), value in `robot`.
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


def base_parameter_rows(found: Fit) -> list[BaseParameterRow]:
    """Return all base parameters and friction terms."""
    columns = (found.estimate.tolist(), found.std.tolist(), found.prior.tolist(), found.values.tolist())
    return [BaseParameterRow(*row) for row in zip(found.base.names, found.base.units, *columns, strict=True)]


def undetermined_directions(found: Fit) -> list[str]:
    """Return the combinations of parameters that the recordings determine no better than their size, the least known first.

    The size of a parameter is the largest of its estimate, the URDF's value, and a tenth of the largest one of its unit.
    """
    size = np.fmax(np.abs(found.estimate), np.abs(found.prior))
    for unit in set(found.base.units):
        alike = np.array([other == unit for other in found.base.units])
        size[alike] = np.maximum(size[alike], 0.1 * size[alike].max())
    scale = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(found.information * np.multiply.outer(scale, scale))
    return [_direction(vector, found.base.names) for value, vector in zip(values, vectors.T, strict=True) if value < 1.0]


def _direction(vector: np.ndarray, names: tuple[str, ...]) -> str:
    order = np.argsort(-np.abs(vector))
    named = [k for k in order[:MAX_NAMES].tolist() if abs(vector[k]) > INVOLVED * abs(vector[order[0]])]
    sign = np.sign(vector[named[0]])
    parts = [f"{'+' if sign * vector[k] > 0.0 else '-'} {abs(vector[k]):.2f} {names[k]}" for k in named]
    return " ".join(parts).removeprefix("+ ").removeprefix("1.00 ")


def inseparable_rotors(found: Fit) -> tuple[str, ...]:
    """Return the joints whose rotor inertia no motion can separate from the inertia of the links."""
    grouping, rotors = found.base.grouping, []
    for k, parameter in enumerate(found.base.parameters):
        if parameter.kind == ROTOR and grouping[:, k].any():
            unit = np.eye(grouping.shape[1])[k]
            rest = unit - np.linalg.lstsq(grouping.T, unit, rcond=None)[0] @ grouping
            rotors += [parameter.owner] * bool(np.linalg.norm(rest) > 1e-6)
    return tuple(rotors)


# ---------------------------------------------------------------------- files

def write(folder: str | os.PathLike[str], found: Fit, urdf: str, given: Mapping[str, Any], summary: str,
          pictures: bool = True) -> list[str]:
    """Write all files into a folder, which is created, and return their names.

    urdf: path or text; given: content of the robot file before the fit
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    texts = {URDF: with_bodies(urdf, found.robot.model),
             ROBOT_FILE: robot_file(found, given).text(), REPORT: report(found, summary, pictures),
             NUMBERS: json.dumps(as_json(found), indent=1) + "\n"}
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    if pictures:
        torques(path / TORQUES, found)
        friction(path / FRICTION, found)
    return [*texts, *([TORQUES, FRICTION] if pictures else [])]


def robot_file(found: Fit, given: Mapping[str, Any]) -> RobotFile:
    """Return the given robot file with identified drives and friction, and the convention of the measured efforts.

    Payloads are part of the bodies.
    """
    robot = found.robot
    content = {"version": 1, "robot": robot.name, **given}
    content.pop("payloads", None)
    drives, frictions = ({name: dict(entry) for name, entry in content.get(section, {}).items()}
                         for section in ("drives", "friction"))
    terms = {link.joint: link.term for link in robot.model.links if link.joint}
    for joint in found.names:
        term = terms[joint]
        drive = {key: value for key, value in drives.get(joint, {}).items() if key not in ("coulomb", "viscous")}
        drives[joint] = drive | {"gear_ratio": term.gear_ratio, "rotor_inertia": _six_digits(term.rotor_inertia)}
        unused = [key for keys in DEPENDENT if not getattr(term, keys[0]) for key in keys]
        frictions[joint] = {key: _six_digits(getattr(term, key)) for key in TERMS if key not in unused}
    if robot.model.coupled_motors:
        content["couplings"] = _couplings(robot, content["couplings"])
    if found.gains:
        content["measured_effort"] = _currents(robot, drives)
    elif found.reversed:
        measured = dict(content.get("measured_effort", {}))
        content["measured_effort"] = measured | {"reversed": sorted(set(measured.get("reversed", ())) ^ set(found.reversed))}
    gravity = [] if robot.gravity_vector.tolist() == [0.0, 0.0, -9.81] else [("gravity", robot.gravity_vector.tolist())]
    return RobotFile({**content, **dict(gravity), "drives": drives, "friction": frictions}, ROBOT_FILE)


def _couplings(robot: Robot, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section couplings with identified inertia and friction; the order of motors is that of the model."""
    motors, section = iter(robot.model.coupled_motors), {}
    for name, coupling in given.items():
        section[name] = {"joints": list(coupling["joints"]), "motors": {
            motor: {"ratios": list(entry["ratios"]), **{key: _six_digits(getattr(next_term, key)) for key in OF_MOTOR}}
            for (motor, entry), next_term in zip(coupling["motors"].items(), (one.term for one in motors))}}
    return section


def _currents(robot: Robot, drives: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return measured_effort for the identified gains, and add torque constants to the drives.

    Joints without a gain stay torques.
    """
    measured = robot.model.efforts.measured
    for joint, gain in zip(robot.joint_names, measured.per_unit, strict=True):
        drive = drives.setdefault(joint, {"gear_ratio": 1.0})
        drive["torque_constant"] = _six_digits(abs(gain) / abs(drive["gear_ratio"] * drive.get("efficiency", 1.0)))
    turned = [joint for joint, gain in zip(robot.joint_names, measured.per_unit, strict=True)
              if gain * drives[joint]["gear_ratio"] < 0.0]
    return {"contains": measured.contains, "quantity": measured.quantity, **({"reversed": turned} if turned else {})}


def _six_digits(value: float) -> float:
    return float(f"{value:.6g}")


def report(found: Fit, summary: str, pictures: bool = True) -> str:
    """Return the report as Markdown."""
    parts = [f"# {found.robot.name}, identified\n\n```\n{summary}\n```\n"]
    if pictures:
        parts.append(f"![Measured torques, and those of the URDF and of the identified robot]({TORQUES})\n\n"
                     f"![Friction of each joint]({FRICTION})\n")
    parts.append("## Torque errors\n\nRMS over the validation set, which was not used in the fit; *fit*: over the rest.\n\n"
                 + _markdown(ERROR_COLUMNS, error_rows(found)))
    terms = {link.joint: link.term for link in found.robot.model.links if link.joint}
    parts.append("## Friction and rotors\n\nForces in N m (N for prismatic joints), speeds in rad/s (m/s), rotor inertia "
                 "reflected to the joint in kg m^2 (kg).\n\n" + _markdown(
                     ("joint", "model", *TERMS, "rotor inertia at the joint"),
                     [(name, model.description, *(f"{getattr(terms[name], key):.4g}" for key in TERMS),
                       f"{terms[name].armature:.3g}") for name, model in zip(found.names, found.friction, strict=True)]))
    if motors := found.robot.model.coupled_motors:
        parts.append("## Coupled motors\n\nAt the motor: rotor inertia in kg m^2, friction in N m and N m s/rad, smoothing in "
                     "rad/s. A motor that one joint alone turns is the rotor of that joint above.\n\n" + _markdown(
                         ("motor", *OF_MOTOR),
                         [(motor.name, *(f"{getattr(motor.term, key):.4g}" for key in OF_MOTOR)) for motor in motors]))
    before, after = bodies(found.before.model), bodies(found.robot.model)
    parts.append("## Bodies\n\nIn the frame of each URDF link, including what fixed joints attach to it. The recordings "
                 "determine the "
                 "base parameters below, not each mass: these bodies are the nearest to the URDF's that agree with the base "
                 f"parameters. Total mass {found.robot.total_mass:.4g} kg, URDF {found.before.total_mass:.4g} "
                 f"kg.\n\n" + _markdown(
                     ("link", "mass [kg]", "mass in the URDF [kg]", "centre of mass [m]",
                      "ixx ixy ixz iyy iyz izz about it [kg m^2]"),
                     [(name, f"{body.mass:.4g}", f"{before[name].mass:.4g}" if name in before else "", _numbers(body.com),
                       _numbers(body.inertia)) for name, body in after.items()]))
    parts.append("## Base parameters\n\nLeast-squares estimate and standard deviation; *robot*: the physically consistent "
                 "robot that "
                 f"was written. *Poorly determined*: the standard deviation is above {100 * POORLY_DETERMINED:.0f} %.\n\n"
                 + _markdown(("parameter", "estimate", "std", "URDF", "robot", "unit", ""),
                             [(row.name, *("" if np.isnan(x) else f"{x:.4g}" for x in row[2:]), row.unit,
                               "poorly determined" if row.poorly_determined else "") for row in base_parameter_rows(found)]))
    parts.append(f"## What the recordings do not determine\n\n{_undetermined(found)}")
    return "\n".join(parts)


def _undetermined(found: Fit) -> str:
    text = "No torque depends on: " + (", ".join(found.unobservable) or "(none)") + ". These parameters are the URDF's.\n"
    if rotors := inseparable_rotors(found):
        text += ("\nNo motion separates the rotor inertia of these joints from the inertia of the links about the same axis: "
                 f"{', '.join(rotors)}. Only the sum is determined; the bodies stay near the URDF's and the rotors take the "
                 f"rest.\n")
    if not (directions := undetermined_directions(found)):
        return text + "\nAll base parameters were excited.\n"
    listed = "\n".join(f"* {direction}" for direction in directions)
    return (text + "\nThese sums of base parameters are known to no better than their own size; the URDF determines them. "
            f"A motion that excites more (`rnea excite`) helps.\n\n{listed}\n")


ERROR_COLUMNS = ("joint", "unit", "RMS torque", "URDF error", "identified error", "of torque", "fit error")


def error_rows(found: Fit) -> list[tuple[str, ...]]:
    """Return one row for each joint: errors of the URDF and of the robot over the validation set, and the fit error."""
    validated = np.isfinite(found.validation_error).all()
    errors = found.validation_error if validated else found.fit_error
    rows = zip(found.joints, found.names, found.rms, found.urdf_error, errors, found.fit_error, strict=True)
    return [(name, _force_unit(found.robot, k), f"{rms:.4g}", f"{urdf:.3g}", f"{error:.3g}",
             f"{100.0 * error / max(rms, 1e-300):.3g} %", f"{fit_error:.3g}") for k, name, rms, urdf, error, fit_error in rows]


def _force_unit(robot: Robot, joint: int) -> str:
    return "N" if robot.joint_types[joint] == "prismatic" else "N m"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def as_json(found: Fit) -> dict[str, Any]:
    """Return all results for programs."""
    robot = found.robot
    terms = {link.joint: link.term for link in robot.model.links if link.joint}
    keys = ("rms", "error_urdf", "error_fit", "error_validation", "error_validation_least_squares")
    errors = zip(found.rms, found.urdf_error, found.fit_error, found.validation_error, found.least_squares_error, strict=True)
    return {
        "robot": robot.name, "gravity": robot.gravity_vector.tolist(), "equations": found.equations,
        "explained": found.explained, "at_boundary": list(found.at_boundary),
        "excluded": [{"joint": one.joint, "relative_error": one.error, "error_factor_of_others": one.others[0],
                      "joint_most_affected": one.others[1]} for one in found.excluded],
        "reversed": list(found.reversed),
        "gains": dict(zip(found.names, found.gains.values.tolist(), strict=True)) if found.gains else None,
        "recordings": [{"derivatives": of.data.how.method if of.data.how else None, "notes": list(of.data.notes),
                        "samples": len(of.data.t), "validation_from": of.split, "payloads": list(of.payloads)}
                       for of in found.recordings],
        "joints": {name: dict(zip(keys, (_finite(x) for x in row), strict=True))
                   | {"unit": _force_unit(robot, k), "friction": model.description,
                      "rotor_inertia_at_joint": terms[name].armature, **{key: getattr(terms[name], key) for key in TERMS}}
                   for k, name, row, model in zip(found.joints, found.names, errors, found.friction, strict=True)},
        "suspected_couplings": [one._asdict() for one in found.suspected],
        "coupled_motors": {motor.name: {key: getattr(motor.term, key) for key in OF_MOTOR}
                           for motor in robot.model.coupled_motors},
        "base_parameters": [{**row._asdict(), "urdf": _finite(row.urdf), "relation": relation} for row, relation
                            in zip(base_parameter_rows(found), found.base.relations(17), strict=True)],
        "no_torque_depends_on": list(found.unobservable), "undetermined": undetermined_directions(found),
        "rotors_inseparable_from_links": list(inseparable_rotors(found)),
        "total_mass": robot.total_mass, "total_mass_urdf": found.before.total_mass,
        "links": {name: body._asdict() for name, body in bodies(robot.model).items()}}


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


# ---------------------------------------------------------------------- pictures

def torques(path: str | os.PathLike[str], found: Fit) -> None:
    """Draw measured torques, and those of the URDF and of the identified robot; validation sets are shaded."""
    joints = list(found.joints)
    with picture(path, (12, 1.0 + 1.7 * len(joints))) as figure:
        axes = figure.subplots(len(joints), 1, sharex=True, squeeze=False)[:, 0]
        begin = 0.0
        for number, of in enumerate(found.recordings):
            data = of.data
            step = max(1, len(data.t) * len(found.recordings) // MAX_POINTS)
            t = begin + data.t - data.t[0]
            carried = list(of.payloads.items())
            tau, urdf = (_torque(robot, carried, data) for robot in (found.robot, found.before))
            for axis, k in zip(axes, joints, strict=True):
                curves = ((data.tau, "0.55", 1.6, "-", "measured"), (urdf, "tab:orange", 0.9, ":", "URDF"),
                          (tau, "tab:blue", 1.0, "-", "identified"),
                          (data.tau - tau, "tab:red", 0.8, "-", "measured - identified"))
                for values, color, width, style, label in curves:
                    axis.plot(t[::step], values[::step, k], color=color, linewidth=width, linestyle=style,
                              label=None if number else label)
                if of.split < len(t):
                    axis.axvspan(t[of.split], t[-1], color="tab:green", alpha=0.1, linewidth=0.0,
                                 label=None if number else "validation set")
            begin = float(t[-1]) + 0.02 * float(t[-1] - t[0])
        for axis, k in zip(axes, joints, strict=True):
            axis.set_title(found.robot.joint_names[k], loc="left", fontsize=9)
            axis.set_ylabel(f"torque [{_force_unit(found.robot, k)}]" if _force_unit(found.robot, k) == "N m" else "force [N]")
            axis.grid(alpha=0.3)
            axis.margins(x=0.005)
        axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5, fontsize=8, frameon=False)
        axes[-1].set_xlabel("time [s]")


def _torque(robot: Robot, carried: Sequence[tuple[str, tuple[Any, ...]]], data: Any) -> np.ndarray:
    for link, payload in carried:
        robot = robot.with_payload(link, *payload)
    return robot.inverse_dynamics(data.q, data.qd, data.qdd)


def friction(path: str | os.PathLike[str], found: Fit) -> None:
    """Draw measured torque less that of the bodies over velocity, and the identified friction."""
    joints = list(found.joints)
    columns = min(4, len(joints))
    qd = np.concatenate([of.data.qd for of in found.recordings])
    left = np.concatenate([of.data.tau - _torque(found.robot, list(of.payloads.items()), of.data) for of in found.recordings])
    step = max(1, len(qd) // MAX_POINTS)
    with picture(path, (3.6 * columns, 2.9 * -(-len(joints) // columns))) as figure:
        axes = figure.subplots(-(-len(joints) // columns), columns, squeeze=False).ravel()
        terms = {link.joint: link.term for link in found.robot.model.links if link.joint}
        for axis, k, model in zip(axes, joints, found.friction, strict=False):
            name, speed_unit = found.robot.joint_names[k], "m/s" if found.robot.joint_types[k] == "prismatic" else "rad/s"
            own = joint_dynamics(terms[name], qd[:, k], 0.0, 0.0)[0]
            axis.plot(qd[::step, k], (left[:, k] + own)[::step], ".", color="0.6", markersize=2, label="measured - bodies")
            speed = np.linspace(qd[:, k].min(), qd[:, k].max(), 801)
            axis.plot(speed, joint_dynamics(terms[name], speed, 0.0, 0.0)[0], color="tab:blue", linewidth=1.6,
                      label="identified friction")
            axis.set_title(f"{name}: {model.description}", loc="left", fontsize=8)
            axis.set_xlabel(f"velocity [{speed_unit}]", fontsize=8)
            axis.set_ylabel(f"[{_force_unit(found.robot, k)}]", fontsize=8)
            axis.grid(alpha=0.3)
        axes[0].legend(loc="upper left", fontsize=7, frameon=False)
        for axis in axes[len(joints):]:
            axis.remove()

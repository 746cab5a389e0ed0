"""What the values of a robot file need of each other and of the URDF, beyond the schema: each rule yields problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import shown, some
from ..drive_limits import outside_of_convex
from ..tree import Limits, Model
from .problem import Path, Problem

Content = Mapping[str, Any]
DRIVE_LIMITS = ("supply_voltage", "max_current", "max_motor_velocity", "max_power", "max_braking_power", "speed_torque_curve",
                "continuous_current", "continuous_torque")
WORDS = {"effort": "torque", "velocity": "velocity"}
THIN = 1e-12  # relative: of a body without thickness, in rounding


def problems(content: Content, models: Sequence[Model], wrong: Sequence[Problem]) -> list[Problem]:
    """models: of the tree, or of the legs, and that of the platform; wrong: sections with problems are left out."""
    if any(not problem.path for problem in wrong):
        return []
    skipped = {problem.path[0] for problem in wrong}
    return [problem for sections, rule in RULES if not skipped & set(sections)
            for problem in rule({section: content.get(section, {}) for section in sections}, models)]


def _robot(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    if content["robot"] and content["robot"] != models[0].name:
        yield Problem(("robot",), f"is {shown(content['robot'])}, but the URDF is of robot '{models[0].name}'")


def _loops(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    loops = content["loops"]
    twice = [name for name, count in Counter(loops.get("active", ())).items() if count > 1]
    if twice:
        yield Problem(("loops", "active"), f"names a joint twice: {some(twice)}")
    bodies = {name: (number, frame.link) for number, model in enumerate(models) for name, frame in model.frames.items()}
    for name, cut in loops.get("cut_joints", {}).items():
        first, second = (cut[end] if isinstance(cut[end], str) else cut[end]["link"] for end in ("first", "second"))
        if bodies[first] == bodies[second]:
            yield Problem(("loops", "cut_joints", name), f": links '{first}' and '{second}' are one rigid body; a cut joint "
                                                         "connects two")


def _motors(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    drives = content["drives"]
    for name in content["elastic_joints"]:
        if not drives.get(name, {}).get("rotor_inertia"):
            yield Problem(("drives", name, "rotor_inertia"), "is missing or zero; an elastic joint needs one above zero, for "
                                                             "nothing else holds its motor back [kg m^2]")
    for name, motor in content["motors"].items():
        if not np.any(motor["axis"]):
            yield Problem(("motors", name, "axis"), f"is {shown(motor['axis'])}; a direction is needed")
        inertia, across = drives.get(name, {}).get("rotor_inertia", 0.0), motor.get("transverse_inertia", np.inf)
        if inertia > 2.0 * across:
            yield Problem(("motors", name, "transverse_inertia"), f"is {across:g}, less than half of rotor_inertia, "
                                                                  f"{inertia:g}; no body is like that")


def _springs(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    for joint in content["springs"]:
        number = models[0].joint_names.index(joint)
        followers = [link.joint for link in models[0].links if link.coordinate == number and link.joint != joint]
        if followers:
            yield Problem(("springs", joint), f": is followed by {some(followers)}: mimic joints on a spring joint are not "
                                              "supported")


def _payloads(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    for link, payload in content["payloads"].items():
        xx, xy, xz, yy, yz, zz = payload.get("inertia", np.zeros(6))
        least, middle, most = np.linalg.eigvalsh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float))
        if least < -THIN * abs(most) or most > (least + middle) + THIN * most:
            yield Problem(("payloads", link, "inertia"), f"has the principal values {least:.4g}, {middle:.4g}, {most:.4g}; a "
                                                         "body has none below zero, and none above the sum of the others")


def _limits(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    for joint, given in content["limits"].items():
        model = next(model for model in models if any(link.joint == joint for link in model.links))
        path: Path = ("limits", joint)
        if joint not in model.joint_names:
            if set(given) - {"max_joint_force", "has_joint_force_limits"}:
                yield Problem(path, f": joint '{joint}' follows another one (mimic); only max_joint_force can be given for it")
            continue
        lower, upper = position_range(given, model.limits, model.joint_names.index(joint))
        if np.isnan(lower) != np.isnan(upper):
            yield Problem(path, ": of min_position and max_position only one is known; give both")
        elif lower > upper:
            yield Problem(path, f": min_position {lower:g} is above max_position {upper:g}")
        for quantity, unit in (("effort", "[N m, N]"), ("velocity", "[rad/s, m/s]")):
            yield from _two_sided(path, quantity, unit, given, getattr(model.limits, quantity)[model.joint_names.index(joint)])
        zone = given.get("velocity_by_position", {})
        if zone and not zone["lower_position_limit"] < zone["upper_position_limit"]:
            yield Problem((*path, "velocity_by_position"), ": lower_position_limit is not below upper_position_limit")


def _two_sided(path: Path, quantity: str, unit: str, given: Mapping[str, Any], declared: float) -> Iterator[Problem]:
    """A limit the other way, or by position, needs the one this way."""
    needing = [key for key in (f"min_{quantity}", f"{quantity}_by_position") if key in given]
    most = given.get(f"max_{quantity}", declared)
    if needing and (given.get(f"has_{quantity}_limits") is False or np.isnan(most)):
        yield Problem((*path, f"max_{quantity}"), f"is missing, which {needing[0]} needs: the {WORDS[quantity]} the one way "
                                                  f"{unit}")


def position_range(given: Mapping[str, Any], limits: Limits, k: int) -> tuple[float, float]:
    """Of coordinate k, the limits of a robot file over those of the URDF; NaN where unknown."""
    if given.get("has_position_limits") is False:
        return np.nan, np.nan
    return float(given.get("min_position", limits.lower[k])), float(given.get("max_position", limits.upper[k]))


def _drives(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    names = [name for model in models for name in model.joint_names]
    for joint, drive in content["drives"].items():
        path: Path = ("drives", joint)
        if joint not in names and (limiting := [key for key in DRIVE_LIMITS if key in drive]):
            yield Problem(path, f": joint '{joint}' follows another one (mimic); give {some(limiting)} for that one")
        if "velocity_constant" in drive and "back_emf_constant" in drive:
            yield Problem((*path, "velocity_constant"), "is 1 / back_emf_constant, which is given too; give one of them")
        if "continuous_current" in drive and "continuous_torque" in drive:
            yield Problem((*path, "continuous_torque"), "says the same as continuous_current, which is given too; give one of "
                                                        "them")
        if "thermal_time_constant" in drive and not {"continuous_current", "continuous_torque"} & set(drive):
            yield Problem((*path, "thermal_time_constant"), "needs continuous_current [A] or continuous_torque [N m, N]: what "
                                                            "the motor stands for ever")
        three_phase = drive.get("current_convention") in ("peak", "rms")
        if "supply_voltage" in drive and three_phase and not {"velocity_constant", "back_emf_constant"} & set(drive):
            yield Problem((*path, "back_emf_constant"), f"is missing; with current_convention {drive['current_convention']} "
                                                        "it is another number than torque_constant [V s/rad]")
        if drive.get("speed_torque_curve") and (inside := outside_of_convex(drive["speed_torque_curve"])) is not None:
            yield Problem((*path, "speed_torque_curve"), f": {inside}; the corners of a convex region around zero speed and "
                                                         "torque are needed [rad/s, N m]")


def _friction(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    terms = {link.joint: link.term for model in models for link in model.links}
    for joint, given in content["friction"].items():
        drive, term = content["drives"].get(joint, {}), terms[joint]
        coulomb, viscous = (given.get(key, getattr(term, key)) + drive.get(key, 0.0) for key in ("coulomb", "viscous"))
        if given.get("stribeck", 0.0) < -coulomb:
            yield Problem(("friction", joint, "stribeck"), f"is {given['stribeck']:g}; friction near rest would drive: at "
                                                           f"least -coulomb, {-coulomb:g}, is needed [N m, N]")
        if abs(given.get("asymmetry", 0.0)) > viscous:
            yield Problem(("friction", joint, "asymmetry"), f"is {given['asymmetry']:g}; friction would drive one way: at "
                                                            f"most viscous, {viscous:g}, either way [N m s/rad, N s/m]")


def _efforts(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    drives = content["drives"]
    for section in ("commanded_effort", "measured_effort"):
        quantity = content[section].get("quantity", "joint_torque")
        needed = {"motor_torque": ("gear_ratio",), "current": ("gear_ratio", "torque_constant")}.get(quantity, ())
        of = content[section].get("joints", [joint for model in models for joint in model.joint_names])
        for joint in of:
            for key in needed:
                if key not in drives.get(joint, {}):
                    yield Problem((section, "quantity"), f"is {quantity}, which needs drives.{joint}.{key}")


def _supplies(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    for name, supply in content["supplies"].items():
        if not {"max_power", "max_braking_power"} & set(supply):
            yield Problem(("supplies", name), ": has neither max_power nor max_braking_power; give one of them, or both [W]")
        twice = [joint for joint, count in Counter(supply.get("joints", ())).items() if count > 1]
        if twice:
            yield Problem(("supplies", name, "joints"), f"names a joint twice: {some(twice)}")


RULES: tuple[tuple[Sequence[str], Callable[[Content, Sequence[Model]], Iterator[Problem]]], ...] = (
    (("robot",), _robot), (("loops",), _loops), (("elastic_joints", "motors", "drives"), _motors), (("springs",), _springs),
    (("payloads",), _payloads), (("limits",), _limits), (("drives",), _drives), (("friction", "drives"), _friction),
    (("supplies",), _supplies), (("commanded_effort", "measured_effort", "drives"), _efforts))

"""Checks of a robot file: `schema_problems` compares it with the schema, `rule_problems` with the URDF and with itself.

jsonschema finds what differs from the schema; here each difference becomes a sentence with its path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..errors import near, shown, some
from .drives import convexity_problem
from .robot_file_schema import LARGEST, SCHEMA, Schema
from .tree import Limits, Model

Path = tuple[str | int, ...]  # keys and numbers of entries, from the whole file to the value
Content = Mapping[str, Any]

MAX_PROBLEMS = 50  # reported at once
COUNTS = {2: "two", 3: "three", 6: "six"}
DRIVE_LIMITS = ("supply_voltage", "max_current", "max_motor_velocity", "max_power", "max_braking_power", "speed_torque_curve",
                "continuous_current", "continuous_torque")
WORDS = {"effort": "torque", "velocity": "velocity"}
THIN = 1e-12  # relative: rounding of the inertia of a body without thickness


class Problem(NamedTuple):
    """One error in a robot file. text follows the path: ("limits", "elbow"), ": joint 'elbow' does not exist"."""

    path: Path
    text: str

    def sentence(self, position: tuple[int, int] | None) -> str:
        """Return position, path and text: line 7, column 3: limits.elbow: joint 'elbow' does not exist."""
        keys = [str(key) if re.fullmatch(r"[\w-]{1,80}", str(key)) else repr(str(key))[:82] for key in self.path]
        at = f"line {position[0]}, column {position[1]}: " if position else ""
        space = "" if self.text.startswith(":") else " "
        return at + (".".join(keys) or "the file") + space + self.text


class Names(NamedTuple):
    """Names of a URDF. joints: those with a coordinate; followers: {mimic joint: joint that it follows}."""

    joints: Sequence[str]
    followers: Mapping[str, str]
    links: Sequence[str]


# --- schema -----------------------------------------------------------------------------------------------------------------


def schema_problems(content: Any, names: Names | None, schema: Schema = SCHEMA) -> list[Problem]:
    """Return where the content differs from the schema, at most MAX_PROBLEMS. names None: names are not compared with a URDF.

    A problem with an empty path means that the file was not checked to its end.
    """
    odd = list(islice(_odd_keys(content, ()), MAX_PROBLEMS))
    if odd:
        return [*odd, Problem((), "is not checked further until this is corrected")]
    errors = list(islice(_validator(schema, names).iter_errors(content), MAX_PROBLEMS + 1))
    found = dict.fromkeys(Problem(*problem) for error in errors[:MAX_PROBLEMS]
                          for problem in _sentences(error, content, schema))
    more = [Problem((), f"has more problems than the first {MAX_PROBLEMS}")] if len(errors) > MAX_PROBLEMS else []
    return [*found, *more]


def _odd_keys(value: Any, path: Path) -> Iterator[Problem]:
    """Yield keys that are not text: YAML reads `on:` as a boolean and `7:` as a number."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if not isinstance(key, str):
                yield Problem(path, f"has the key {shown(key, 40)}, which is no text; names that look like numbers, dates or "
                                    "yes, no, on, off need quotes")
            else:
                yield from _odd_keys(entry, (*path, key))
    elif isinstance(value, list):
        for k, entry in enumerate(value):
            yield from _odd_keys(entry, (*path, k))


def is_number(value: Any) -> bool:
    """Return whether the value is a finite number: no boolean, no text."""
    try:
        return not isinstance(value, bool | np.bool_ | str | bytes) and bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False


def _validator(schema: Schema, names: Names | None) -> Any:
    import jsonschema  # type: ignore[import-untyped]  # 0.1 s, which commands without a robot file do not spend

    checker = jsonschema.FormatChecker(formats=())
    if names is not None:
        for kind, check in _checks(names).items():
            checker.checkers[kind] = (check, ValueError)
    return _validator_class()(schema, format_checker=checker)


@cache
def _validator_class() -> Any:
    """Return the validator in which numbers are finite; jsonschema takes 2 ms to make a class."""
    import jsonschema

    types = jsonschema.Draft7Validator.TYPE_CHECKER.redefine("number", lambda _, value: is_number(value))
    return jsonschema.validators.extend(jsonschema.Draft7Validator, type_checker=types)


def _checks(names: Names) -> dict[str, Callable[[Any], bool]]:
    """Return, by kind of name, a function that raises ValueError for a name that the URDF does not have."""
    joints, followers, links = set(names.joints), names.followers, set(names.links)

    def joint(name: Any) -> bool:
        if isinstance(name, str) and name in followers:
            raise ValueError(f"joint '{name}' only follows '{followers[name]}' (mimic); name that one")
        return not isinstance(name, str) or name in joints or unknown("joint", name, names.joints)

    def any_joint(name: Any) -> bool:
        known = name in joints or name in followers
        return not isinstance(name, str) or known or unknown("joint", name, [*names.joints, *followers])

    def link(name: Any) -> bool:
        return not isinstance(name, str) or name in links or unknown("link", name, names.links)

    def unknown(kind: str, name: str, known: Sequence[str]) -> bool:
        raise ValueError(f"{kind} {shown(name)} does not exist; the {kind}s are {some(known) or 'none'}{near(name, known)}")

    return {"joint": joint, "any joint": any_joint, "link": link}


def _sentences(error: Any, content: Any, whole: Schema) -> Iterator[tuple[Path, str]]:
    """Yield path and sentence of one error of jsonschema."""
    path, value, schema = tuple(error.absolute_path), error.instance, error.schema
    steps = list(error.absolute_schema_path)
    if steps[-2:-1] == ["items"] and schema.get("type") == "number":  # a vector is reported as a whole
        path, schema = path[:-1], _at(whole, steps[:-2])
        yield path, f"is {shown(_at(content, path), 60)}; {needed(schema, None)}"
    elif error.validator == "additionalProperties":
        for key in value:
            if key not in schema["properties"]:
                allowed = _live(schema)
                yield (*path, key), f"is not known; allowed are {', '.join(allowed)}{near(key, allowed)}"
    elif error.validator in ("required", "dependencies"):
        yield from _missing(error, path, value, schema)
    elif error.validator == "format":
        yield (*path, value) if "propertyNames" in steps else path, f": {error.cause}"
    elif error.validator == "not" and "const" not in error.validator_value:
        yield path, f": {schema['description'][0].lower()}{schema['description'][1:]}"
    elif error.validator == "minProperties" or (error.validator == "minItems" and not value):
        yield path, "is empty; at least one entry is needed"
    else:
        yield path, f"is {shown(value, 60)}; {needed(schema, value)}"


def _missing(error: Any, path: Path, value: Mapping, schema: Schema) -> Iterator[tuple[Path, str]]:
    properties = schema["properties"]
    if error.validator == "required":
        for key in schema["required"]:
            if key not in value:
                yield (*path, key), f"is missing; {needed(properties[key], None)}"
        return
    for key, others in schema["dependencies"].items():
        for other in others:
            if key in value and other not in value:
                yield (*path, other), f"is missing, which {key} needs; {needed(properties[other], None)}"


def _at(inside: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        inside = inside[step]
    return inside


def needed(schema: Schema, value: Any) -> str:
    """Return what a value must be, with its unit."""
    text = schema.get("description", "")
    unit = f" {text[text.index('['):].rstrip('.')}" if "[" in text else ""
    if "enum" in schema:
        allowed = [str(word) for word in schema["enum"]]
        return f"allowed are {', '.join(allowed)}{near(value, allowed) if isinstance(value, str) else ''}"
    kind = schema.get("type")
    if kind == "array":
        return _list_in_words(schema, unit)
    if kind == "number":
        return f"{_number_in_words(schema, value)} is needed{unit}"
    name = f"the name of a {schema.get('format', 'robot').removeprefix('any ')}"
    return {"string": name, "boolean": "true or false"}.get(
        kind if isinstance(kind, str) else "", _mapping_in_words(schema)) + " is needed"


def _list_in_words(schema: Schema, unit: str) -> str:
    items, least, most = schema["items"], schema.get("minItems"), schema.get("maxItems")
    if "enum" in items:
        once = ", each at most once" if schema.get("uniqueItems") else ""
        return f"a list is needed{once}; allowed are {', '.join(items['enum'])}"
    if items["type"] == "string":
        return "a list of names is needed"
    if items["type"] != "number":
        each = needed(items, None).removesuffix(" is needed").replace(" are needed", "")
        return f"a list is needed, each entry {each}"
    kind = f"numbers from {items['minimum']:g} to {items['maximum']:g}" if items["maximum"] < LARGEST else "finite numbers"
    if most is None:
        count = "one for each joint: " if least else ""
    else:
        count = f"{COUNTS[most]} " if least == most else f"{least} to {most} "
    return f"{count}{kind} are needed{unit}"


def _number_in_words(schema: Schema, value: Any) -> str:
    if is_number(value) and abs(value) > schema["maximum"]:
        return f"a number up to {schema['maximum']:g}"
    if schema.get("exclusiveMinimum") == 0:
        return "a number above zero"
    if schema.get("minimum") == 0:
        return "a number not below zero"
    return "a number other than zero" if "not" in schema else "a finite number"


def _mapping_in_words(schema: Schema) -> str:
    if "properties" in schema:
        return f"a mapping with {', '.join(_live(schema))}"
    return "a mapping from names to entries"


def _live(schema: Schema) -> list[str]:
    """Return the keys that are implemented."""
    return [key for key, entry in schema["properties"].items() if entry.get("not") != {}]


# --- rules beyond the schema ------------------------------------------------------------------------------------------------


def rule_problems(content: Content, models: Sequence[Model], wrong: Sequence[Problem]) -> list[Problem]:
    """Return what the sections need of each other and of the URDF.

    models : of the tree, or of the legs and of the platform
    wrong  : problems of the schema; sections that have some are not checked here
    """
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
    """Yield the missing upper limit of a lower limit, or of a limit by position."""
    needing = [key for key in (f"min_{quantity}", f"{quantity}_by_position") if key in given]
    most = given.get(f"max_{quantity}", declared)
    if needing and (given.get(f"has_{quantity}_limits") is False or np.isnan(most)):
        yield Problem((*path, f"max_{quantity}"), f"is missing, which {needing[0]} needs: the {WORDS[quantity]} the one way "
                                                  f"{unit}")


def position_range(given: Mapping[str, Any], limits: Limits, k: int) -> tuple[float, float]:
    """Return the position limits of coordinate k: those of the robot file, else those of the URDF; NaN where unknown."""
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
            yield Problem((*path, "thermal_time_constant"), "needs continuous_current [A] or continuous_torque [N m, N], "
                                                            "which the motor can supply continuously")
        three_phase = drive.get("current_convention") in ("peak", "rms")
        if "supply_voltage" in drive and three_phase and not {"velocity_constant", "back_emf_constant"} & set(drive):
            yield Problem((*path, "back_emf_constant"), f"is missing; with current_convention {drive['current_convention']} "
                                                        "it is another number than torque_constant [V s/rad]")
        if drive.get("speed_torque_curve") and (inside := convexity_problem(drive["speed_torque_curve"])) is not None:
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


def _couplings(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    for name, coupling in content["couplings"].items():
        path, joints = ("couplings", name), coupling["joints"]
        if twice := [joint for joint, count in Counter(joints).items() if count > 1]:
            yield Problem((*path, "joints"), f"names a joint twice: {some(twice)}")
        for motor, given in coupling["motors"].items():
            ratios, of_motor = given["ratios"], (*path, "motors", motor, "ratios")
            if len(ratios) != len(joints):
                yield Problem(of_motor, f"is {shown(ratios)}; {len(joints)} numbers are needed, one for each of "
                                        f"{some(joints)} [-, rad/m]")
            elif not any(ratios):
                yield Problem(of_motor, "is zero for every joint; the motor needs a joint that turns it, with a ratio "
                                        "other than zero [-, rad/m]")
        if loaded := [joint for joint in joints if content["friction"].get(joint, {}).get("load_dependent")]:
            yield Problem(("friction", loaded[0], "load_dependent"), f"is given for a joint of couplings.{name}; friction by "
                                                                     "load needs a separate motor. Remove it")
        for section in ("commanded_effort", "measured_effort"):
            effort = content[section]
            meant = [joint for joint in joints if joint in effort.get("joints", joints)]
            if meant and effort.get("quantity", "joint_torque") not in ("joint_torque", "unknown"):
                yield Problem((section, "quantity"), f"is {effort['quantity']} for {some(meant)} of couplings.{name}, whose "
                                                     "motors turn with several joints; only joint_torque can be converted. "
                                                     f"Name the other joints in {section}.joints")


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


def _fluid(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    for link, body in content["fluid"].get("links", {}).items():
        for key in ("added_mass", "added_inertia", "linear_drag", "quadratic_drag", "angular_drag"):
            if min(body.get(key, (0.0,))) < 0.0:
                yield Problem(("fluid", "links", link, key), f"is {shown(body[key])}; no number below zero: a fluid resists")


def _wheels(content: Content, models: Sequence[Model]) -> Iterator[Problem]:
    for name, wheel in content["wheels"].items():
        path, holds = ("wheels", name), wheel.get("holds", ())
        if wheel.get("shape") == "sphere":
            if wrong := [key for key in ("roller_angle", "axis") if key in wheel]:
                yield Problem((*path, wrong[0]), "is of a disc; a sphere has none. Leave it out")
        elif "axis" not in wheel or not np.any(wheel["axis"]):
            yield Problem((*path, "axis"), "is missing or zero; a disc turns about an axis [-]")
        if ("roller" in holds) != ("roller_angle" in wheel) and holds:
            yield Problem((*path, "roller_angle"), "and holds: [roller] belong together: give both [rad]")
        if "roller" in holds and {"along", "across"} & set(holds):
            yield Problem((*path, "holds"), f"is {shown(holds)}; a wheel with rollers holds roller and normal only")


RULES: tuple[tuple[Sequence[str], Callable[[Content, Sequence[Model]], Iterator[Problem]]], ...] = (
    (("robot",), _robot), (("loops",), _loops), (("elastic_joints", "motors", "drives"), _motors), (("springs",), _springs),
    (("payloads",), _payloads), (("limits",), _limits), (("drives",), _drives), (("friction", "drives"), _friction),
    (("wheels",), _wheels), (("fluid",), _fluid),
    (("couplings", "friction", "commanded_effort", "measured_effort"), _couplings),
    (("supplies",), _supplies), (("commanded_effort", "measured_effort", "drives"), _efforts))

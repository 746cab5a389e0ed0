"""Schema of robot files, as JSON Schema (draft 7): every section with its keys, units, signs and bounds.

Keys that are not implemented yet are declared with `_later`: a file that contains one is rejected with that description. A
description ends with the unit in brackets. `format` states which name of the URDF a string must be: "joint" (a joint with its
own coordinate), "any joint" (mimic joints included) or "link".
"""

from __future__ import annotations

from typing import Any

from . import urdf_validation
from .drives import CONTENTS, UNKNOWN
from .drives import QUANTITIES as EFFORT_QUANTITIES

Schema = dict[str, Any]

MAX_MODES = 4
LARGEST = 1e12  # upper bound of every number: the product of three numbers stays finite
RPY = "as roll, pitch and yaw of a URDF"
ROOT_AXES = "expressed in the frame of the root link; with a moving base, in the world frame"


def _number(text: str, **bounds: Any) -> Schema:
    return {"type": "number", **({"minimum": -LARGEST} if not {"minimum", "exclusiveMinimum"} & set(bounds) else {}),
            "maximum": LARGEST, **bounds, "description": text}


def _positive(text: str, **bounds: Any) -> Schema:
    return _number(text, exclusiveMinimum=0, **bounds)


def _not_negative(text: str) -> Schema:
    return _number(text, minimum=0)


def _numbers(text: str, count: int) -> Schema:
    number = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
    return {"type": "array", "items": number, "minItems": count, "maxItems": count, "description": text}


def _name(kind: str, text: str) -> Schema:
    return {"type": "string", "format": kind, "description": text}


def _word(text: str, *allowed: str) -> Schema:
    return {"enum": [*allowed], "description": text}


def _object(text: str, properties: dict[str, Schema], required: tuple[str, ...] = (), **rest: Any) -> Schema:
    return {"type": "object", "description": text, "properties": properties, "additionalProperties": False,
            **({"required": list(required)} if required else {}), **rest}


def _each(kind: str, text: str, entry: Schema, least: int = 0) -> Schema:
    """Return the schema of a mapping from names of joints or links to entries of one form."""
    names = {"propertyNames": {"format": kind}} if kind else {}
    return {"type": "object", "description": text, **names, "additionalProperties": entry,
            **({"minProperties": least} if least else {})}


def _later(text: str) -> Schema:
    """Return the schema of a reserved key without an implementation."""
    return {"not": {}, "description": f"Not yet: {text}"}


def _frame(text: str) -> Schema:
    frame = _object(f"{text}: {{link, xyz, rpy}}, or only the name of a link.", {
        "link": _name("link", "Link to which the frame is attached."),
        "xyz": _numbers("Origin of the frame in the frame of the link; default 0 0 0 [m].", 3),
        "rpy": _numbers(f"Orientation of the frame relative to the link, {RPY}; default 0 0 0 [rad].", 3)}, ("link",))
    return frame | {"type": ["object", "string"], "format": "link"}


def _switch(quantity: str) -> Schema:
    return {"type": "boolean", "description": f"false: the {quantity} limit of the URDF is ignored; the {quantity} is "
                                              "unlimited."}


CUT_JOINT_TYPES = ("fixed", "revolute", "prismatic", "cylindrical", "planar", "spherical", "point_on_axis")
MJCF = {"weld": "fixed", "connect": "spherical"}  # MuJoCo's names of two types

LOOPS = _object("Closed loops. The URDF describes the spanning tree, which remains when the loops are cut.", {
    "active": {"type": "array", "items": _name("joint", "A joint with a motor."), "minItems": 1,
               "description": "Joints with motors; all other joints are passive."},
    "cut_joints": _each("", "Joints at which the loops are cut, under names of your choice. They have no friction and no "
                            "motor.", _object(
        "One cut joint. Its two frames coincide when the loop is closed; their z axis is the joint axis.", {
            "type": _word("Type of the joint; weld and connect are MuJoCo's names for fixed and spherical.",
                          *CUT_JOINT_TYPES, *MJCF),
            "first": _frame("Frame of the joint on one of its links"),
            "second": _frame("Frame of the joint on the other link")}, ("type", "first", "second")), least=1),
    "start": _each("joint", "Joint positions near a closed pose, from which the solver of the loops starts; default 0 each "
                            "[rad, m].",
                   _number("Position of the joint [rad, m]."))}, ("active", "cut_joints"))

HOME = _object("Pose of the platform at `loops.start`, at which the legs reach it; default: the origin of its floating "
               "joint.", {
    "xyz": _numbers("Origin of the platform link in the frame of the root link [m].", 3),
    "rpy": _numbers(f"Orientation of the platform link relative to the root link, {RPY} [rad].", 3)}, ("xyz", "rpy"))

PLATFORM = _object("Platform of a parallel robot: the branches of the URDF are its legs, and `loops` attaches them to the "
                   "platform.", {
    "link": _name("link", "Platform link; in the URDF the child link of a floating joint on the root link."),
    "home": HOME}, ("link",))

PLATFORMS = _each("link", "Several platforms, for instance of parallel robots in series: child links of floating joints on "
                          "the root link in the URDF, attached to the legs by "
                          "`loops`.", _object("One platform.", {"home": HOME}), least=1)

ELASTIC_JOINTS = _each("joint", "Joints with a spring between motor and link; each requires `rotor_inertia` in "
                                "`drives`.", _object(
    "One elastic joint.", {
        "stiffness": _positive("Stiffness of the spring at the joint (after the gear) [N m/rad, N/m]."),
        "damping": _later("damping of the spring [N m s/rad, N s/m]."),
        "motor_joint": {"type": "string", "minLength": 1, "description":
                        "Name of the motor in joint states. The reported position is that of the rotor divided by gear_ratio "
                        "[rad, m]."}}, ("stiffness",)), least=1)

MOTORS = _each("joint", "Motors mounted on moving links. Motors that are not listed are mounted on the base.", _object(
    "The motor of one joint.", {
        "link": _name("link", "Link on which the motor is mounted."),
        "axis": _numbers("Axis of the rotor, expressed in the frame of that link; any length except zero [-].", 3),
        "mass": _positive("Mass of the rotor, only if the mass of the link in the URDF does not include it [kg]."),
        "transverse_inertia": _positive("Moment of inertia of the rotor about an axis through its centre of mass, "
                                        "perpendicular to the rotor axis [kg m^2]."),
        "position": _numbers("Centre of mass of the rotor in the frame of the link; default 0 0 0 [m].", 3)},
    ("link", "axis"), dependencies={"mass": ["transverse_inertia"], "transverse_inertia": ["mass"], "position": ["mass"]}))

SPRINGS = _each("joint", "Joints with a spring instead of a motor. The torque of the spring is -stiffness (q - "
                         "rest).", _object(
    "One spring joint.", {
        "stiffness": _positive("Stiffness of the spring [N m/rad, N/m]."),
        "rest": _number("Position at which the spring is relaxed; default 0 [rad, m]."),
        "damping": _not_negative("Damping coefficient of a damper parallel to the spring; default 0 [N m s/rad, N s/m].")},
    ("stiffness",)), least=1)

PASSIVE = {"type": "array", "items": _name("joint", "A joint without motor and spring."), "minItems": 1,
           "description": "Joints without motor and spring: their accelerations are computed from their positions and "
                          "velocities and the motion of the other joints [rad, m]."}

ACTUATION_WEIGHTS = _each("joint", "Weights of redundant motors: their torques minimize the sum of weight * torque^2; "
                                   "default 1 each. For an elastic joint, torque is that of the spring.",
                          _positive("Weight of one motor [1/(N m)^2, 1/N^2]."), least=1)

GROUND_CONTACTS = _each("", "Contacts that fix a link to the ground while the robot stands, under names of your choice. The "
                            "motion of the base is then an input.", _object("One contact.", {
    "link": _name("link", "Link in contact with the ground."),
    "type": _word("Type of the joint between link and ground, for instance fixed (no motion) or spherical (rotation about "
                  "the origin).", *CUT_JOINT_TYPES),
    "xyz": _numbers("Origin of the contact frame in the frame of the link; default 0 0 0 [m].", 3),
    "rpy": _numbers(f"Orientation of the contact frame relative to the link, {RPY}; default 0 0 0 [rad].", 3)},
    ("link", "type")), least=1)

WHEELS = _each("", "Wheels that roll without slipping on the plane z = 0 of the world, under names of your choice. The "
                   "velocity of the base is computed from them, or is an input if they do not determine it (a bicycle that "
                   "leans).", _object("One wheel.", {
        "link": _name("link", "Link of the wheel."),
        "shape": _word("disc (default): a thin disc; sphere: a ball.", "disc", "sphere"),
        "axis": _numbers("Axis of a disc, expressed in the frame of the link; any length except zero [-].", 3),
        "center": _numbers("Center of the wheel in the frame of the link; default 0 0 0 [m].", 3),
        "radius": _positive("Radius of the wheel [m]."),
        "roller_angle": _number("Angle about the ground normal from the wheel axis to the axis of the roller in contact: "
                                "+-0.785 for mecanum wheels, 1.571 for omni wheels [rad].", minimum=-1.6, maximum=1.6),
        "holds": {"type": "array", "items": {"enum": ["along", "across", "normal", "roller"]}, "minItems": 1,
                  "uniqueItems": True, "description":
                  "Directions in which the contact point has zero velocity. along: rolling direction of a disc; across: the "
                  "horizontal direction perpendicular to it; normal: ground normal; roller: axis of the roller. For a sphere, "
                  "along and across are x and y of the world. Default: along and across; roller if roller_angle is set [-]."},
        "friction": _positive("Friction coefficient between wheel and ground, used for the slip margin; default: unknown "
                              "[-].")},
    ("link", "radius")), least=1)

TABLE = _object("Mode shapes from a measurement or a finite element model; replaces `shapes`.", {
    "positions": {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 3, "maxItems": 200,
                  "description": "Positions along the beam, from 0 at its start to 1 at its end [-]."},
    "deflections": {"type": "array", "minItems": 1, "maxItems": MAX_MODES, "description": "One list for each mode: "
                    "deflections at these positions, in any scale; deflection and slope are zero at the start [-].",
                    "items": {"type": "array", "items": {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
                              "description": "Deflections of one mode [-]."}}}, ("positions", "deflections"))


def _count(text: str, least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": text}


FLEXIBLE_LINKS = _each("link", "Links that bend, modelled as a beam from `start` to `end`. Joints that the URDF attaches to "
                               "the link move with the nearest point of the beam.", _object("One beam.", {
    "start": _numbers("Start of the beam in the frame of the link; default 0 0 0 [m].", 3),
    "end": _numbers("End of the beam in the frame of the link [m].", 3),
    "mass": _positive("Mass of the beam, uniform along its length; the remaining mass of the link is rigid at its start; "
                      "default: the mass of the link [kg]."),
    "damping": _not_negative("Damping ratio of each mode of the clamped beam without attached links; default 0 [-]."),
    "bending": _each("", "Bending in one or two directions, under names of your choice. The coordinates LINK.NAME1, "
                         "LINK.NAME2, ... are the contributions of the modes to the deflection of the end "
                         "[m].",
                     _object("Bending in one direction.", {
                         "direction": _numbers("Direction in which the beam bends, perpendicular to the beam, in the frame "
                                               "of the link [-].", 3),
                         "stiffness": _positive("Bending stiffness E I [N m^2]."),
                         "modes": _count(f"Number of modes, 1 to {MAX_MODES}; default 3.", 1, MAX_MODES),
                         "shapes": _word("Shapes of the modes. polynomial (default): exact under forces and moments at the "
                                         "end; clamped_free: eigenfunctions of a beam clamped at its start.", "polynomial",
                                         "clamped_free"),
                         "table": TABLE,
                         "section_modulus": _positive("Section modulus: stress at the start is bending moment / "
                                                      "section_modulus [m^3].")},
                         ("direction", "stiffness")), least=1),
    "twist": _object("Torsion of the beam. The coordinates LINK.twist1, ... are the contributions of the modes to the "
                     "rotation of the end [rad].", {
        "stiffness": _positive("Torsional stiffness G J [N m^2]."),
        "modes": _count(f"Number of modes, 1 to {MAX_MODES}; default 1.", 1, MAX_MODES),
        "section_modulus": _positive("Torsional section modulus: shear stress at the start is moment / section_modulus "
                                     "[m^3].")}, ("stiffness",)),
    "slices": _count("Number of rigid slices into which the mass of the beam is divided; default: modes + 4.", 2, 40)},
    ("end",)), least=1)

FLUID = _object("Fluid at rest around the robot, which exerts forces on submerged links. The axes of a body are those of its "
                "link, rotated by rpy.", {
    "density": _positive("Density of the fluid, for buoyancy; default 1000 [kg/m^3]."),
    "smoothing": _positive("Speed below which quadratic drag becomes linear; default 0.001 [m/s, rad/s]."),
    "links": _each("link", "Submerged bodies, keyed by link.", _object("Submerged body of one link.", {
        "center": _numbers("Centre of the body in the frame of the link; default 0 0 0 [m].", 3),
        "rpy": _numbers(f"Orientation of the axes of the body relative to the link, {RPY}; default 0 0 0 [rad].", 3),
        "added_mass": _numbers("Added mass along each axis; default 0 [kg].", 3),
        "added_inertia": _numbers("Added moment of inertia about each axis; default 0 [kg m^2].", 3),
        "linear_drag": _numbers("Coefficient of the drag proportional to the velocity along each axis; default 0 [N s/m].", 3),
        "quadratic_drag": _numbers("Coefficient of the drag proportional to the squared velocity along each axis; default 0 "
                                   "[N s^2/m^2].", 3),
        "angular_drag": _numbers("Coefficient of the drag moment proportional to the squared angular velocity about each "
                                 "axis; default 0 [N m s^2].", 3),
        "volume": _not_negative("Displaced volume, for buoyancy; default 0 [m^3].")}), least=1)}, ("links",))

PAYLOADS = _each("link", "Rigid bodies attached to links, in addition to the links of the URDF.", _object(
    "Payload of one link.", {
        "mass": _positive("Mass [kg]."),
        "com": _numbers("Centre of mass in the frame of the link; default 0 0 0 [m].", 3),
        "inertia": _numbers("ixx ixy ixz iyy iyz izz about the centre of mass, along the axes of the link; default 0 [kg "
                            "m^2].", 6)},
    ("mass",)))

CONVENTIONS = {"dc": (1.0,), "q_axis": (1.0,), "peak": (1.5,), "rms": (3.0, 3.0**0.5)}  # k_t / k_e; rms: phase, line to line
POWER = {"max_power": _positive("Largest mechanical power delivered to the joints (torque times velocity); default: "
                                "unlimited [W]."),
         "max_braking_power": _positive("Largest power returned by the joints while braking; default: unlimited [W].")}

DRIVES = _each("any joint", "Motor and gear of each joint, with the values of their data sheets.", _object(
    "The drive of one joint.", {
        "gear_ratio": _number("Rotor velocity divided by joint velocity; for a prismatic joint, rotor angle per metre. "
                              "Negative if the rotor turns in the opposite direction; default 1 [-, "
                              "rad/m].", **{"not": {"const": 0}}),
        "rotor_inertia": _not_negative("Moment of inertia of the rotor about its axis, on the motor side of the gear; "
                                       "default 0 [kg m^2]."),
        "viscous": _not_negative("Viscous friction of motor and gear, on the joint side; default 0 [N m s/rad, N s/m]."),
        "coulomb": _not_negative("Coulomb friction of motor and gear, on the joint side; default 0 [N m, N]."),
        "efficiency": _positive("Efficiency of the gear, at most 1; default 1 [-].", maximum=1),
        "torque_constant": _positive("k_t: motor torque per motor current [N m/A, N/A]."),
        "back_emf_constant": _positive("k_e: back-EMF voltage per motor speed; default for dc and q_axis: torque_constant [V "
                                       "s/rad]."),
        "velocity_constant": _positive("k_v = 1 / k_e: no-load speed per voltage; instead of back_emf_constant [rad/(s V)]."),
        "current_convention": _word("Meaning of currents, voltages and both constants. dc (default): direct current; q_axis: "
                                    "quadrature axis, power-invariant; peak, rms: amplitude or RMS value of one of three "
                                    "phases.", *CONVENTIONS),
        "resistance": _positive("Resistance R of the winding [ohm]."),
        "inductance": _not_negative("Inductance L of the winding; default 0 [H]."),
        "supply_voltage": _positive("Largest absolute motor voltage; requires torque_constant and resistance [V]."),
        "max_current": _positive("Largest absolute motor current; requires torque_constant [A]."),
        "max_motor_velocity": _positive("Largest absolute rotor speed [rad/s]."),
        "transmission_stiffness": _positive("Stiffness between rotor and link, on the joint side, used for "
                                            "max_motor_velocity; default: that of elastic_joints, or rigid [N m/rad, N/m]."),
        **POWER,
        "speed_torque_curve": {
            "type": "array", "minItems": 2, "maxItems": 64,
            "items": _numbers("Speed and torque at the joint [rad/s, N m].", 2),
            "description": "Corners of the convex region of permitted speed and torque at the joint, in any order. Corners "
                           "without negative values describe the first quadrant and are mirrored into the others [rad/s, N "
                           "m]."},
        "continuous_current": _positive("Largest continuous motor current; requires torque_constant [A]."),
        "continuous_torque": _positive("Largest continuous joint torque; instead of continuous_current [N m, N]."),
        "thermal_time_constant": _positive("Thermal time constant of the winding [s]."),
        "thermal_resistance": _later("thermal resistance from the winding to the environment [K/W].")},
    dependencies={"continuous_current": ["torque_constant"],
                  "supply_voltage": ["torque_constant", "resistance"], "max_current": ["torque_constant"],
                  "velocity_constant": ["torque_constant"], "back_emf_constant": ["torque_constant"]}))

QUANTITIES = {"velocity": "[rad/s, m/s]", "acceleration": "[rad/s^2, m/s^2]", "jerk": "[rad/s^3, m/s^3]", "effort": "[N m, N]",
              "effort_rate": "[N m/s, N/s]", "commanded_effort_rate": "[N m/s, N/s]", "joint_force": "[N]"}
TEXTS = {"effort": "Largest absolute joint torque",
         "effort_rate": "Largest absolute rate of the whole joint torque, gravity and friction included; not part of a URDF",
         "commanded_effort_rate": "Largest absolute rate of the commanded joint torque, without the terms that the robot's "
         "controller adds (see commanded_effort)",
         "joint_force": "Largest norm of the force that the joint transmits (internal force)"}
LIMITS = _each("any joint", "Limits of each joint, which replace those of the URDF; the keys are those of "
                            "ros2_control.", _object(
    "Limits of one joint; unknown limits are not enforced.", {
        "min_position": _number("Smallest position [rad, m]."),
        "max_position": _number("Largest position [rad, m]."),
        **{f"max_{quantity}": _positive(f"{TEXTS.get(quantity, f'Largest absolute {quantity}')} {unit}.")
           for quantity, unit in QUANTITIES.items()},
        **{f"has_{quantity}_limits": _switch(quantity.replace("_", " ")) for quantity in ("position", *QUANTITIES)},
        "min_effort": _number("Smallest joint torque, below zero; default: -max_effort [N m, N].",
                              exclusiveMaximum=0, minimum=-LARGEST),
        "min_velocity": _number("Smallest velocity, below zero; default: -max_velocity [rad/s, m/s].",
                                exclusiveMaximum=0, minimum=-LARGEST),
        "velocity_by_position": _object(
            "Velocity limit near the position limits: qd <= sqrt(2 deceleration_limit (upper_position_limit - q)) - "
            "velocity_offset, and correspondingly towards the lower limit; applies in addition to max_velocity, which is "
            "required.", {
                "velocity_offset": _not_negative("Velocity subtracted in this formula; default 0 [rad/s, m/s]."),
                "deceleration_limit": _positive("Deceleration available to stop before the position limit [rad/s^2, m/s^2]."),
                "lower_position_limit": _number("Lower position limit in this formula [rad, m]."),
                "upper_position_limit": _number("Upper position limit in this formula [rad, m].")},
            ("deceleration_limit", "lower_position_limit", "upper_position_limit"))}))

SUPPLIES = _each("", "Power supplies shared by several joints, under names of your choice.", _object(
    "One supply; at least one of its two limits is required.", {
        "joints": {"type": "array", "items": _name("joint", "A joint connected to the supply."), "minItems": 1,
                   "description": "Joints connected to the supply; default: all."},
        **POWER}))

FRICTION = _each("any joint", "Friction of each joint, in addition to that of its drive; replaces `<dynamics>` of the "
                              "URDF.", _object(
    "Friction of one joint. Its torque is s (coulomb + stribeck (1 - tanh^2(qd / stribeck_velocity))) + (viscous + asymmetry "
    "s) qd + offset + load_dependent s sqrt(X^2 + load_smoothing^2), where s = tanh(qd / smoothing) and X is the torque due "
    "to links and rotor.", {
        "coulomb": _not_negative("Coulomb friction [N m, N]."),
        "viscous": _not_negative("Viscous friction [N m s/rad, N s/m]."),
        "offset": _number("Constant additional torque of the motor [N m, N]."),
        "smoothing": _positive("Velocity scale of the sign change of Coulomb friction; default 0.01 [rad/s, m/s]."),
        "stribeck": _number("Additional Coulomb friction near zero velocity (Stribeck effect), at least -coulomb; default 0 "
                            "[N m, N]."),
        "stribeck_velocity": _positive("Velocity scale of the Stribeck term; default 0.1 [rad/s, m/s]."),
        "asymmetry": _number("Half the difference between the viscous friction coefficients of positive and negative "
                             "velocity; from -viscous to viscous; default 0 [N m s/rad, N s/m]."),
        "load_dependent": _number("Load-dependent friction as a share of the transmitted torque X, below 1; only for trees "
                                  "on a fixed base; default 0 [-].", minimum=0, maximum=0.999),
        "load_smoothing": _positive("Torque scale that smooths the absolute value of X; default 0.1 [N m, N].")}))

COUPLED_MOTOR = _object("One motor; its values are those on the motor side of the gear.", {
    "ratios": {"type": "array", "items": {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}, "minItems": 2,
               "description": "Rotor velocity per velocity of each joint, in the order of `joints`; negative if the rotor "
                              "turns in the opposite direction, 0 if the joint does not turn it [-, rad/m]."},
    "rotor_inertia": _not_negative("Moment of inertia of the rotor about its axis; default 0 [kg m^2]."),
    "coulomb": _not_negative("Coulomb friction on the motor side; default 0 [N m]."),
    "viscous": _not_negative("Viscous friction on the motor side; default 0 [N m s/rad]."),
    "smoothing": _positive("Motor velocity scale of the sign change of Coulomb friction; default 0.01 times the largest "
                           "ratio [rad/s].")}, ("ratios",))
COUPLING = _object("One coupled transmission. The velocity of each motor is the sum of its ratios times the joint "
                   "velocities.", {
    "joints": {"type": "array", "items": _name("joint", "A joint."), "minItems": 2, "description": "Joints of the "
                                                                                                   "transmission, two or "
                                                                                                   "more."},
    "motors": _each("", "Motors, under names of your choice. A joint may also have its own motor in "
                        "`drives`.", COUPLED_MOTOR, least=1)},
    ("joints", "motors"))
COUPLINGS = _each("", "Coupled transmissions, under names of your choice: motors that turn with several joints, for example "
                      "in wrists.",
                  COUPLING, least=1)

CONTACT = _each("joint", "Contact thresholds, as written by `rnea contact` and dynamics_node after free motion.", _object(
    "Error of the modelled effort of one joint in free motion, and its contact threshold.", {
        "offset": _number("Constant error; default 0 [N m, N]."),
        "coulomb": _number("Error proportional to the sign of the velocity, in addition to `friction` and `drives`; default "
                           "0 [N m, N]."),
        "viscous": _number("Error proportional to the velocity, in addition to `friction` and `drives`; default 0 [N m "
                           "s/rad, N s/m]."),
        "threshold": _positive("External effort above which a contact is reported, in standard deviations of the model "
                               "error; default: that of the contact observer [-].")}))

ADDED = ("the whole joint torque (default), or the joint torque without the terms that the controller of the robot adds "
         "(gravity, friction).")


def _effort(text: str, note: str = "", *others: str) -> Schema:
    return _object(f"Meaning of {text}.", {
        "contains": _word("Overrides effort_convention for these efforts.", *CONTENTS),
        "quantity": _word("joint_torque (default), or a quantity on the motor side of the gear: motor_torque or current. "
                          f"These require drives.<joint>.gear_ratio; current also requires torque_constant.{note}",
                          *EFFORT_QUANTITIES, *others),
        "joints": {"type": "array", "items": _name("joint", "A joint."), "minItems": 1,
                   "description": "Joints whose effort is `quantity`; efforts of the other joints are joint torques. "
                                  "Default: all joints."},
        "reversed": {"type": "array", "items": _name("joint", "A joint."),
                     "description": "Joints whose effort is positive against the axis of the URDF."}})


SCHEMA: Schema = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "rnea_ros robot file",
    **_object("Properties of a robot that a URDF cannot express. Units: kg, m, rad, s, N, N m; m and N for prismatic "
              "joints.", {
        "version": {"enum": [1], "description": "Version of the format: 1."},
        "robot": {"type": "string", "description": "Name of the robot in the URDF; a file with another name is rejected."},
        "base": _word("fixed (default): fixed to the world; floating: unsupported; prescribed: follows a given motion.",
                      "fixed", "floating", "prescribed"),
        "gravity": _numbers(f"Acceleration of free fall (it points down), {ROOT_AXES}; default 0 0 -9.81 [m/s^2].", 3),
        "effort_convention": _word(f"Content of efforts: {ADDED}", *CONTENTS),
        "commanded_effort": _effort("the efforts that are sent to the controller of the robot"),
        "measured_effort": _effort("the efforts in joint states",
                                   " unknown: drivers of this robot differ; its efforts are rejected.", UNKNOWN),
        "urdf_friction": {"type": "boolean", "description": "true: use `<dynamics damping= friction=>` of the URDF as "
                                                            "friction; default false: many URDFs contain simulator settings "
                                                            "there."},
        "loops": LOOPS, "platform": PLATFORM, "platforms": PLATFORMS, "elastic_joints": ELASTIC_JOINTS, "motors": MOTORS,
        "springs": SPRINGS,
        "passive": PASSIVE, "flexible_links": FLEXIBLE_LINKS, "actuation_weights": ACTUATION_WEIGHTS,
        "ground_contacts": GROUND_CONTACTS, "wheels": WHEELS, "fluid": FLUID, "payloads": PAYLOADS,
        "drives": DRIVES, "couplings": COUPLINGS,
        "supplies": SUPPLIES, "limits": LIMITS,
        "friction": FRICTION,
        "accepted_warnings": {
            "type": "array", "items": {"type": "string", "enum": [*urdf_validation.ACCEPTABLE]},
            "description": "Names of warnings that `rnea check` and the nodes do not report; each warning contains its name "
                           "in brackets."},
        "contact": CONTACT,
        "sensors": _later("encoders, torque sensors, force-torque sensors, IMUs: their frames, quantities and signs.")},
        ("version",))}

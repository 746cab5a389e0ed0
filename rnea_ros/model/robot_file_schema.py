"""The schema of robot files, as JSON Schema (draft 7): every section, its keys, units, signs and bounds, once.

What is not served yet is declared by `later`: a file that uses its name is rejected with that reason. A description ends with
the unit in brackets. `format` says which names of the URDF a string must be: "joint" (one with its own coordinate),
"any joint" (also one that only follows another, mimic) or "link".
"""

from __future__ import annotations

from typing import Any

from . import urdf_validation
from .drives import CONTENTS, UNKNOWN
from .drives import QUANTITIES as EFFORT_QUANTITIES

Schema = dict[str, Any]

MAX_MODES = 4
LARGEST = 1e12  # of any number: products of three stay finite
ROOT_AXES = "in the root link's frame; with a base that moves, in the world's"


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
    found = _object(f"{text}: {{link, xyz, rpy}}, or the name of a link alone.", {
        "link": _name("link", "Link that it belongs to."),
        "xyz": _numbers("Its origin in the frame of the link; default 0 0 0 [m].", 3),
        "rpy": _numbers("Its turn, as in a URDF; default 0 0 0 [rad].", 3)}, ("link",))
    return found | {"type": ["object", "string"], "format": "link"}


def _switch(quantity: str) -> Schema:
    return {"type": "boolean", "description": f"false: the {quantity} limit of the URDF is not believed, and not enforced."}


CUT_JOINT_TYPES = ("fixed", "revolute", "prismatic", "cylindrical", "planar", "spherical", "point_on_axis")
MJCF = {"weld": "fixed", "connect": "spherical"}  # MuJoCo's words for two of them

LOOPS = _object("Closed loops: the URDF is the tree that is left when they are cut.", {
    "active": {"type": "array", "items": _name("joint", "A joint with a motor."), "minItems": 1,
               "description": "Joints with motors; all others are passive and follow."},
    "cut_joints": _each("", "Joints at which the loops are cut, by any name. They have no friction and no motor.", _object(
        "One cut joint: its two frames meet when the loop is closed; z is its axis.", {
            "type": _word("What it leaves free; weld and connect are MuJoCo's words for fixed and spherical.",
                          *CUT_JOINT_TYPES, *MJCF),
            "first": _frame("Its frame on one link"),
            "second": _frame("Its frame on the other")}, ("type", "first", "second")), least=1),
    "start": _each("joint", "Joint positions near a closed pose, to start from; default 0 each [rad, m].",
                   _number("Position of the joint [rad, m]."))}, ("active", "cut_joints"))

HOME = _object("Pose of the platform where the legs meet it at `loops.start`; default: the origin of that joint.", {
    "xyz": _numbers("Origin of its link in the root link's frame [m].", 3),
    "rpy": _numbers("Its turn, as in a URDF [rad].", 3)}, ("xyz", "rpy"))

PLATFORM = _object("A parallel robot: the branches of the URDF are its legs, `loops` joins them to the platform.", {
    "link": _name("link", "Link of the platform, in the URDF the child of a floating joint on the root link."),
    "home": HOME}, ("link",))

PLATFORMS = _each("link", "Several platforms, as of parallel robots in series: links that are children of floating joints on "
                  "the root link in the URDF, joined by `loops`.", _object("One platform.", {"home": HOME}), least=1)

ELASTIC_JOINTS = _each("joint", "Joints with a spring between motor and link; each needs rotor_inertia in `drives`.", _object(
    "One elastic joint.", {
        "stiffness": _positive("Torque of the spring by its deflection, at the joint [N m/rad, N/m]."),
        "damping": _later("torque of the spring by the rate of its deflection [N m s/rad, N s/m]."),
        "motor_joint": {"type": "string", "minLength": 1, "description":
                        "Name under which joint states report the motor: its position behind the gear, that is, divided by "
                        "gear_ratio [rad, m]."}}, ("stiffness",)), least=1)

MOTORS = _each("joint", "Motors that ride on links and turn with them. A motor that is not named sits in the base.", _object(
    "The motor of one joint.", {
        "link": _name("link", "Link that carries the motor."),
        "axis": _numbers("Axis of the rotor in the frame of that link; any length but zero [-].", 3),
        "mass": _positive("Mass of the rotor, only if the link's own mass does not hold it already [kg]."),
        "transverse_inertia": _positive("Inertia of that rotor about the axes across its own [kg m^2]."),
        "position": _numbers("Centre of mass of that rotor in the frame of the link; default 0 0 0 [m].", 3)},
    ("link", "axis"), dependencies={"mass": ["transverse_inertia"], "transverse_inertia": ["mass"], "position": ["mass"]}))

SPRINGS = _each("joint", "Joints without a motor, held by a spring alone. Its torque is -stiffness (q - rest).", _object(
    "One spring joint.", {
        "stiffness": _positive("Torque by deflection [N m/rad, N/m]."),
        "rest": _number("Position at which the spring is relaxed; default 0 [rad, m]."),
        "damping": _not_negative("Torque of a damper beside the spring by velocity; default 0 [N m s/rad, N s/m].")},
    ("stiffness",)), least=1)

PASSIVE = {"type": "array", "items": _name("joint", "A joint without motor and spring."), "minItems": 1,
           "description": "Joints without motor and spring: their motion follows from position and velocity [rad, m]."}

ACTUATION_WEIGHTS = _each("joint", "Weights of redundant motors: their torques minimise the sum of weight torque^2; default 1 "
                          "each. Of an elastic joint, the torque of its spring counts.",
                          _positive("Weight of one motor [1/(N m)^2, 1/N^2]."), least=1)

GROUND_CONTACTS = _each("", "Contacts that hold a link in the world while the robot stands, by any name; the motion of "
                        "the base is given then.", _object("One contact.", {
    "link": _name("link", "Link that is held."),
    "type": _word("What the ground leaves free: fixed holds the whole frame, spherical its origin.", *CUT_JOINT_TYPES),
    "xyz": _numbers("Origin of the contact's frame in the frame of the link; default 0 0 0 [m].", 3),
    "rpy": _numbers("Its turn, as in a URDF; default 0 0 0 [rad].", 3)}, ("link", "type")), least=1)

WHEELS = _each("", "Wheels that roll on the plane z = 0 of the world without slipping, by any name; the velocity of the base "
               "follows. It is an input where the base may lean or turn freely, as of a bicycle.", _object("One wheel.", {
        "link": _name("link", "Link of the wheel."),
        "shape": _word("disc (default): a thin disc; sphere: a ball.", "disc", "sphere"),
        "axis": _numbers("Axis of a disc in the frame of the link; any length but zero [-].", 3),
        "center": _numbers("Center of the wheel in the frame of the link; default 0 0 0 [m].", 3),
        "radius": _positive("Radius of the wheel [m]."),
        "roller_angle": _number("Angle from the axis of the wheel to that of the roller that touches the ground, about the "
                                "normal: +-0.785 for mecanum wheels, 1.571 for omni wheels [rad].", minimum=-1.6, maximum=1.6),
        "holds": {"type": "array", "items": {"enum": ["along", "across", "normal", "roller"]}, "minItems": 1,
                  "uniqueItems": True, "description":
                  "Directions in which the lowest point has no velocity: along the track of a disc, across it, normal to the "
                  "ground, along the axis of a roller. Along and across of a sphere are x and y of the world. Default along, "
                  "across; with roller_angle roller [-]."},
        "friction": _positive("Friction coefficient between wheel and ground, for the slip margin; default: unknown [-].")},
    ("link", "radius")), least=1)

TABLE = _object("Shapes as measured or from a finite element model, instead of `shapes`.", {
    "positions": {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 3, "maxItems": 200,
                  "description": "Points of the beam, from 0 at its start to 1 at its end [-]."},
    "deflections": {"type": "array", "minItems": 1, "maxItems": MAX_MODES, "description": "A list for each mode: deflections "
                    "at these points, of any size; 0, and without slope, at the start [-].",
                    "items": {"type": "array", "items": {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
                              "description": "Deflections of one mode [-]."}}}, ("positions", "deflections"))


def _count(text: str, least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": text}


FLEXIBLE_LINKS = _each("link", "Links that bend: a beam from `start` to `end`. What the URDF attaches to the link moves with "
                       "the point of the beam that it is nearest to.", _object("One beam.", {
    "start": _numbers("Where the beam begins in the frame of the link; default 0 0 0 [m].", 3),
    "end": _numbers("Where it ends [m].", 3),
    "mass": _positive("Mass of the beam, evenly along its length; the rest of the link stays rigid at its start; default: the "
                      "whole link [kg]."),
    "damping": _not_negative("Damping ratio of each mode of the beam alone; default 0 [-]."),
    "bending": _each("", "Bending in one direction or two, by any name: the coordinates are LINK.NAME1, LINK.NAME2, ..., each "
                     "its share of the deflection of the end [m].", _object("Bending in one direction.", {
                         "direction": _numbers("Direction across the beam in which it bends, in the link's frame [-].", 3),
                         "stiffness": _positive("E I [N m^2]."),
                         "modes": _count(f"Number of modes, 1 to {MAX_MODES}; default 3.", 1, MAX_MODES),
                         "shapes": _word("Shapes of the modes. polynomial (default): exact under forces and moments at the "
                                         "end; clamped_free: eigenfunctions of the beam alone.", "polynomial", "clamped_free"),
                         "table": TABLE,
                         "section_modulus": _positive("Stress at the start is bending moment / section_modulus [m^3].")},
                         ("direction", "stiffness")), least=1),
    "twist": _object("Twist about the beam: coordinates LINK.twist1, ..., each its share of the angle of the end [rad].", {
        "stiffness": _positive("G J [N m^2]."),
        "modes": _count(f"Number of modes, 1 to {MAX_MODES}; default 1.", 1, MAX_MODES),
        "section_modulus": _positive("Shear stress at the start is moment / section_modulus [m^3].")}, ("stiffness",)),
    "slices": _count("Number of slices of the beam; default: modes + 4.", 2, 40)}, ("end",)), least=1)

FLUID = _object("Fluid at rest around the robot: forces on links that swim. Axes of a body are those of its link, turned by "
                "rpy.", {
    "density": _positive("Density of the fluid, for buoyancy; default 1000 [kg/m^3]."),
    "smoothing": _positive("Speed below which quadratic drag becomes linear; default 0.001 [m/s, rad/s]."),
    "links": _each("link", "Wetted bodies by their link.", _object("Wetted body of one link.", {
        "center": _numbers("Its centre in the frame of the link; default 0 0 0 [m].", 3),
        "rpy": _numbers("Turn of its axes, as in a URDF; default 0 0 0 [rad].", 3),
        "added_mass": _numbers("Mass of the fluid that moves with it along each axis; default 0 [kg].", 3),
        "added_inertia": _numbers("Inertia of the fluid that turns with it about each axis; default 0 [kg m^2].", 3),
        "linear_drag": _numbers("Drag by the velocity along each axis; default 0 [N s/m].", 3),
        "quadratic_drag": _numbers("Drag by the square of the velocity along each axis; default 0 [N s^2/m^2].", 3),
        "angular_drag": _numbers("Moment by the square of the angular velocity about each axis; default 0 [N m s^2].", 3),
        "volume": _not_negative("Volume that it displaces, for buoyancy; default 0 [m^3].")}), least=1)}, ("links",))

PAYLOADS = _each("link", "Rigid bodies that links carry beside what the URDF says.", _object(
    "What one link carries.", {
        "mass": _positive("Mass [kg]."),
        "com": _numbers("Centre of mass in the frame of the link; default 0 0 0 [m].", 3),
        "inertia": _numbers("ixx ixy ixz iyy iyz izz about the centre of mass, the link's axes; default 0 [kg m^2].", 6)},
    ("mass",)))

CONVENTIONS = {"dc": (1.0,), "q_axis": (1.0,), "peak": (1.5,), "rms": (3.0, 3.0**0.5)}  # k_t / k_e; rms: phase, line to line
POWER = {"max_power": _positive("Largest power that is taken up, torque times speed of the joints; default: no limit [W]."),
         "max_braking_power": _positive("Largest power that is given back; default: no limit [W].")}

DRIVES = _each("any joint", "Motor and gear of each joint, as on their data sheets.", _object(
    "The drive of one joint.", {
        "gear_ratio": _number("Turns of the rotor for one turn of the joint, in a prismatic joint per metre; negative if it "
                              "turns the other way; default 1 [-, rad/m].", **{"not": {"const": 0}}),
        "rotor_inertia": _not_negative("Inertia of the rotor about its own axis, before the gear; default 0 [kg m^2]."),
        "viscous": _not_negative("Viscous friction of motor and gear, as the joint feels it; default 0 [N m s/rad, N s/m]."),
        "coulomb": _not_negative("Coulomb friction of motor and gear, as the joint feels it; default 0 [N m, N]."),
        "efficiency": _positive("Of the gear, at most 1; default 1 [-].", maximum=1),
        "torque_constant": _positive("k_t: torque of the motor by its current [N m/A, N/A]."),
        "back_emf_constant": _positive("k_e: voltage of the motor by its speed; default for dc and q_axis: torque_constant "
                                       "[V s/rad]."),
        "velocity_constant": _positive("k_v = 1 / k_e: speed of the motor by its voltage; instead of back_emf_constant "
                                       "[rad/(s V)]."),
        "current_convention": _word("Of currents, voltages and both constants: dc (default); q_axis: scaled so that power is "
                                    "voltage times current; peak or rms of one of three phases.", *CONVENTIONS),
        "resistance": _positive("R of the winding [ohm]."),
        "inductance": _not_negative("L of the winding; default 0 [H]."),
        "supply_voltage": _positive("Largest voltage of the motor, either way; needs torque_constant and resistance [V]."),
        "max_current": _positive("Largest current of the motor, either way; needs torque_constant [A]."),
        "max_motor_velocity": _positive("Largest speed of the rotor, either way [rad/s]."),
        "transmission_stiffness": _positive("Between rotor and link, as the joint feels it, for max_motor_velocity; default: "
                                            "that of elastic_joints, or rigid [N m/rad, N/m]."),
        **POWER,
        "speed_torque_curve": {
            "type": "array", "minItems": 2, "maxItems": 64,
            "items": _numbers("Speed and torque at the joint [rad/s, N m].", 2),
            "description": "Corners of the convex region of speed and torque at the joint, in any order. Without a negative "
                           "number: of the first quadrant, and the others are like it [rad/s, N m]."},
        "continuous_current": _positive("Largest continuous current; needs torque_constant [A]."),
        "continuous_torque": _positive("Largest continuous torque of the joint; instead of continuous_current "
                                       "[N m, N]."),
        "thermal_time_constant": _positive("Of the winding: how fast a load that lasts warms it [s]."),
        "thermal_resistance": _later("from winding to surroundings [K/W].")},
    dependencies={"continuous_current": ["torque_constant"],
                  "supply_voltage": ["torque_constant", "resistance"], "max_current": ["torque_constant"],
                  "velocity_constant": ["torque_constant"], "back_emf_constant": ["torque_constant"]}))

QUANTITIES = {"velocity": "[rad/s, m/s]", "acceleration": "[rad/s^2, m/s^2]", "jerk": "[rad/s^3, m/s^3]", "effort": "[N m, N]",
              "effort_rate": "[N m/s, N/s]", "commanded_effort_rate": "[N m/s, N/s]", "joint_force": "[N]"}
TEXTS = {"effort": "Torque of the joint",
         "effort_rate": "Rate of the whole torque of the joint, gravity and friction included; no URDF has it",
         "commanded_effort_rate": "Rate of the torque of the joint without what the robot's controller adds by itself (see "
         "commanded_effort)",
         "joint_force": "Norm of the force that the joint transmits inside"}
LIMITS = _each("any joint", "Limits of each joint over those of the URDF, named as in ros2_control.", _object(
    "Limits of one joint; unknown ones are not enforced.", {
        "min_position": _number("Smallest position [rad, m]."),
        "max_position": _number("Largest position [rad, m]."),
        **{f"max_{quantity}": _positive(f"{TEXTS.get(quantity, quantity.capitalize())}, either way {unit}.")
           for quantity, unit in QUANTITIES.items()},
        **{f"has_{quantity}_limits": _switch(quantity.replace("_", " ")) for quantity in ("position", *QUANTITIES)},
        "min_effort": _number("Torque of the joint the other way, where it differs from max_effort: below zero [N m, N].",
                              exclusiveMaximum=0, minimum=-LARGEST),
        "min_velocity": _number("Velocity the other way, where it differs from max_velocity: below zero [rad/s, m/s].",
                                exclusiveMaximum=0, minimum=-LARGEST),
        "velocity_by_position": _object(
            "Near its ends the joint must be slower: qd <= sqrt(2 deceleration_limit (upper_position_limit - q)) - "
            "velocity_offset, and the same towards the lower end; beside max_velocity, which is needed.", {
                "velocity_offset": _not_negative("Taken off that velocity; default 0 [rad/s, m/s]."),
                "deceleration_limit": _positive("Deceleration that stops the joint before its end [rad/s^2, m/s^2]."),
                "lower_position_limit": _number("The lower end [rad, m]."),
                "upper_position_limit": _number("The upper end [rad, m].")},
            ("deceleration_limit", "lower_position_limit", "upper_position_limit"))}))

SUPPLIES = _each("", "Sources of power that joints share, by any name.", _object(
    "One supply; at least one of its two limits is needed.", {
        "joints": {"type": "array", "items": _name("joint", "A joint that it drives."), "minItems": 1,
                   "description": "Joints that it drives; default all."},
        **POWER}))

FRICTION = _each("any joint", "What acts at each joint beside links and drives, over the URDF's `<dynamics>`.", _object(
    "Friction of one joint; its torque is s (coulomb + stribeck (1 - tanh^2(qd / stribeck_velocity))) + (viscous + asymmetry "
    "s) qd + offset + load_dependent s sqrt(X^2 + load_smoothing^2), with s = tanh(qd / smoothing), and X the torque of links "
    "and rotor.", {
        "coulomb": _not_negative("Coulomb friction [N m, N]."),
        "viscous": _not_negative("Viscous friction [N m s/rad, N s/m]."),
        "offset": _number("Constant torque that the motor needs beside everything else [N m, N]."),
        "smoothing": _positive("Speed within which Coulomb friction changes its sign; default 0.01 [rad/s, m/s]."),
        "stribeck": _number("Coulomb friction near rest above that at speed, or below it: at least -coulomb; default 0 "
                            "[N m, N]."),
        "stribeck_velocity": _positive("Speed within which stribeck counts; default 0.1 [rad/s, m/s]."),
        "asymmetry": _number("Viscous friction forwards above that backwards, half the difference: at most viscous, either "
                             "way; default 0 [N m s/rad, N s/m]."),
        "load_dependent": _number("Friction as a share of the torque that the joint transmits, below 1; default 0, "
                                  "in fixed trees only [-].", minimum=0, maximum=0.999),
        "load_smoothing": _positive("Torque below which that share is taken of this torque rather; default 0.1 [N m, N].")}))

COUPLED_MOTOR = _object("One motor, seen at its shaft.", {
    "ratios": {"type": "array", "items": {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}, "minItems": 2,
               "description": "Turns of the rotor for one turn of each of the joints, in their order; negative if it turns "
                              "the other way, 0 if the joint does not turn it [-, rad/m]."},
    "rotor_inertia": _not_negative("Inertia of the rotor about its own axis; default 0 [kg m^2]."),
    "coulomb": _not_negative("Coulomb friction at the motor; default 0 [N m]."),
    "viscous": _not_negative("Viscous friction at the motor; default 0 [N m s/rad]."),
    "smoothing": _positive("Speed of the motor within which Coulomb friction changes its sign; default 0.01 times the "
                           "largest ratio [rad/s].")}, ("ratios",))
COUPLING = _object("Motors of some joints. The speed of each is the sum of its ratios times the velocities of the joints.", {
    "joints": {"type": "array", "items": _name("joint", "A joint."), "minItems": 2, "description": "The joints, two or more."},
    "motors": _each("", "Motors, by any name. A joint may also have its own motor in `drives`.", COUPLED_MOTOR, least=1)},
    ("joints", "motors"))
COUPLINGS = _each("", "Coupled transmissions, by any name: motors that turn with several joints, as in wrists and ankles.",
                  COUPLING, least=1)

CONTACT = _each("joint", "Contact thresholds, as `rnea contact` and dynamics_node learn them from free motion.", _object(
    "Effort that the model leaves unexplained at one joint in free motion, and the threshold beside it.", {
        "offset": _number("Constant part; default 0 [N m, N]."),
        "coulomb": _number("Part with the sign of the velocity, beside `friction` and `drives`; default 0 [N m, N]."),
        "viscous": _number("Part proportional to the velocity, beside `friction` and `drives`; default 0 [N m s/rad, N s/m]."),
        "threshold": _positive("External effort that counts as a contact, in standard deviations of the model's error; "
                               "default: the observer's [-].")}))

ADDED = "all that the motor does (default), or all but what the robot's own controller adds to it."


def _effort(text: str, note: str = "", *others: str) -> Schema:
    return _object(f"{text}: what they mean.", {
        "contains": _word("As effort_convention, which is the default, where this one differs.", *CONTENTS),
        "quantity": _word("joint_torque (default), or what the motor does before the gear: its torque or its current. These "
                          f"need drives.<joint>.gear_ratio, a current also torque_constant.{note}",
                          *EFFORT_QUANTITIES, *others),
        "joints": {"type": "array", "items": _name("joint", "A joint."), "minItems": 1,
                   "description": "Joints whose effort is that quantity; efforts of others are joint torques. Default: all "
                                  "joints."},
        "reversed": {"type": "array", "items": _name("joint", "A joint."),
                     "description": "Joints whose effort counts the other way than the URDF's axis."}})


SCHEMA: Schema = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "rnea_ros robot file",
    **_object("What a URDF cannot say of a robot. Units: kg, m, rad, s, N, N m; of prismatic joints m and N.", {
        "version": {"enum": [1], "description": "Of this format: 1."},
        "robot": {"type": "string", "description": "Name of the robot in the URDF; a file for another one is refused."},
        "base": _word("fixed (default): held by the world; floating: held by nothing; prescribed: it follows a given motion.",
                      "fixed", "floating", "prescribed"),
        "gravity": _numbers(f"Acceleration of free fall, {ROOT_AXES}: it points down; default 0 0 -9.81 [m/s^2].", 3),
        "effort_convention": _word(f"What efforts contain: {ADDED}", *CONTENTS),
        "commanded_effort": _effort("Torques that the robot's controller is given"),
        "measured_effort": _effort("Efforts that its joint states report",
                                   " unknown: its drivers differ, and efforts are refused.", UNKNOWN),
        "urdf_friction": {"type": "boolean", "description": "Whether `<dynamics damping= friction=>` of the URDF counts; "
                                                            "default false: many URDFs hold settings of simulators there."},
        "loops": LOOPS, "platform": PLATFORM, "platforms": PLATFORMS, "elastic_joints": ELASTIC_JOINTS, "motors": MOTORS,
        "springs": SPRINGS,
        "passive": PASSIVE, "flexible_links": FLEXIBLE_LINKS, "actuation_weights": ACTUATION_WEIGHTS,
        "ground_contacts": GROUND_CONTACTS, "wheels": WHEELS, "fluid": FLUID, "payloads": PAYLOADS,
        "drives": DRIVES, "couplings": COUPLINGS,
        "supplies": SUPPLIES, "limits": LIMITS,
        "friction": FRICTION,
        "accepted_warnings": {
            "type": "array", "items": {"type": "string", "enum": [*urdf_validation.ACCEPTABLE]},
            "description": "Names of warnings that `rnea check` and the nodes no longer report; they print the name in "
                           "brackets."},
        "contact": CONTACT,
        "sensors": _later("encoders, torque sensors, force-torque sensors, IMUs: where they sit, what they measure, which "
                          "way.")}, ("version",))}

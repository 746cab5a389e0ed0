"""Six arms for chunks.py: their URDF, robot file and limits, and what a motion uses of every limit by Pinocchio.

    so101      SO-101 with its gripper, URDF of example-robot-data, profile so101: STS3215 servos (voltage, rotors, friction)
    koch       arm of two XL430 and four XL330 servos, generated here: link lengths 108, 100 and 58 mm as in low_cost_robot,
               masses of the servos and of printed links; profile koch: XL430 with their linear speed-torque curves,
               XL330 with voltage, rotors and friction
    ur5e       generated here from the maker's published Denavit-Hartenberg table, masses and centres of mass; inertias are
               those of rods; profile ur5e
    panda      URDF of example-robot-data, its fingers fixed
    xarm7      URDF of example-robot-data, profile xarm7: power of the supply
    z1         Unitree Z1 with its gripper, URDF of example-robot-data

Torque and velocity limits are those of the manufacturer. If these are larger or unknown, the torque limit is 1.3 times the
largest gravity torque plus the torque for 6 rad/s^2 and 4 times the Coulomb friction (at least 2 % of the arm's largest), and
the velocity limit 2 rad/s. Limits of torque rate (the torque limit in 60 ms), acceleration (14 rad/s^2) and jerk (700 rad/s^3)
are assumed: no manufacturer publishes all three.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin

import rnea_ros
from rnea_ros.demo import arms as timings
from rnea_ros.sim.plant import track
from support.chunk_streams import INSTANT, Arm, utilization
from support.scaling_cases import urdf

ARMS = ("so101", "koch", "ur5e", "panda", "xarm7", "z1")
MAX_VELOCITY, MAX_ACCELERATION, MAX_JERK, RISE = 2.0, 14.0, 700.0, 0.06
LEAST_SHARE = 0.02  # of the largest torque limit, which a joint without a load has at least
SUPPLY = 499.2  # W, of the xArm's control box
BRAKING = 10.0  # times the supply's power, where a robot file has no limit of braking power


class Servo(NamedTuple):
    """Servo of a joint at its output: rotor inertia [kg m^2], Coulomb [N m] and viscous friction [N m s/rad], torque constant
    [N m/A = V s/rad], resistance [ohm], voltage [V]; stall torque [N m] and speed without load [rad/s] of a straight curve.
    """

    rotor: float = 0.0
    coulomb: float = 0.0
    viscous: float = 0.0
    constant: float = 1.0
    resistance: float = 0.0
    voltage: float = math.inf
    stall: float = math.inf
    free: float = math.inf


STS3215 = Servo(0.0284, 0.0524, 0.0591, 1.2116, 2.676, 7.178)
XL430, XL330 = Servo(stall=1.5, free=6.3879), Servo(0.00181, 0.0128, 0.00366, 0.3867, 4.017, 5.0)
SERVOS = {"so101": (STS3215,) * 6, "koch": (XL430, XL430, XL330, XL330, XL330, XL330)}


class Plant(NamedTuple):
    """Arm with its servos, one for each joint or none, and the power of its supply [W]."""

    arm: Arm
    servos: tuple[Servo, ...] = ()
    supply: float = math.inf


def _link(name: str, mass: float, centre: np.ndarray, along: np.ndarray, radius: float) -> str:
    """Return a link with the inertia of a rod along a vector."""
    length = float(np.linalg.norm(along))
    axis = along / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    inertia = across * np.eye(3) + (0.5 * mass * radius**2 - across) * np.outer(axis, axis)
    moments = " ".join(f'i{"xyz"[a]}{"xyz"[b]}="{inertia[a, b]:.9g}"' for a in range(3) for b in range(a, 3))
    at = " ".join(f"{x:.9g}" for x in centre)
    return f'<link name="{name}"><inertial><origin xyz="{at}"/><mass value="{mass}"/><inertia {moments}/></inertial></link>'


def _joint(name: str, parent: str, child: str, at: str, rpy: str, axis: str, lower: float, upper: float) -> str:
    return (f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{at}" rpy="{rpy}"/><axis xyz="{axis}"/>'
            f'<limit lower="{lower}" upper="{upper}" effort="1000" velocity="1000"/></joint>')


def ur5e_urdf() -> str:
    """Return a UR5e by the maker's table: a, d [m], alpha [rad], mass [kg] and centre of mass [m] in the link's own frame."""
    table = ((0.0, 0.1625, math.pi / 2, 3.761, (0.0, -0.02561, 0.00193)), (-0.425, 0.0, 0.0, 8.058, (0.2125, 0.0, 0.11336)),
             (-0.3922, 0.0, 0.0, 2.846, (0.15, 0.0, 0.0265)), (0.0, 0.1333, math.pi / 2, 1.37, (0.0, -0.0018, 0.01634)),
             (0.0, 0.0997, -math.pi / 2, 1.3, (0.0, 0.0018, 0.01634)), (0.0, 0.0996, 0.0, 0.365, (0.0, 0.0, -0.001159)))
    names = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
    parts, at, rpy, parent = ['<link name="base"/>'], "0 0 0", "0 0 0", "base"
    for name, (a, d, alpha, mass, com) in zip(names, table, strict=True):
        turn = pin.rpy.rpyToMatrix(alpha, 0.0, 0.0)
        centre = np.array([a, 0.0, d]) + turn @ np.array(com)
        along = np.array([a, 0.0, d]) if a or d else np.array([0.0, 0.0, 0.1])
        parts += [_joint(f"{name}_joint", parent, name, at, rpy, "0 0 1", -2.0 * math.pi, 2.0 * math.pi),
                  _link(name, mass, centre, along, 0.05)]
        at, rpy, parent = f"{a} 0 {d}", f"{alpha} 0 0", name
    return f'<robot name="ur5e">{"".join(parts)}</robot>'


def koch_urdf() -> str:
    """Return an arm with the kinematics of a Koch v1.1: pan about z, three pitch joints, roll and gripper."""
    x, z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    rows = (("shoulder_pan", "0 0 0.041", "0 0 1", -2.2, 2.2, 0.075, 0.015 * z, 0.03 * z),
            ("shoulder_lift", "0 0 0.015", "0 1 0", -1.5, 1.5, 0.078, 0.072 * z, 0.108 * z),
            ("elbow_flex", "0 0 0.108", "0 1 0", -1.5, 1.5, 0.064, 0.055 * x, 0.1 * x),
            ("wrist_flex", "0.1 0 0", "0 1 0", -1.8, 1.8, 0.03, 0.027 * x, 0.045 * x),
            ("wrist_roll", "0.045 0 0", "1 0 0", -3.0, 3.0, 0.039, 0.02 * x, 0.05 * x),
            ("gripper", "0.013 0.01 0", "0 0 1", -1.5, 0.3, 0.013, 0.025 * x, 0.05 * x))
    parts, parent = ['<link name="base"/>'], "base"
    for name, at, axis, lower, upper, mass, centre, along in rows:
        parts += [_joint(name, parent, f"{name}_link", at, "0 0 0", axis, lower, upper),
                  _link(f"{name}_link", mass, centre, along, 0.012)]
        parent = f"{name}_link"
    return f'<robot name="koch">{"".join(parts)}</robot>'


def text_of(name: str) -> str:
    """Return the URDF of one of ARMS."""
    if name in ("ur5e", "koch"):
        return {"ur5e": ur5e_urdf, "koch": koch_urdf}[name]()
    path = urdf(name)
    if path is None:
        raise SystemExit(f"{name}.urdf is not here: install example-robot-data")
    text = path.read_text(encoding="utf-8")
    return text.replace('type="prismatic"', 'type="fixed"') if name == "panda" else text


@cache
def plant(name: str) -> Plant:
    """Return one of ARMS."""
    text = text_of(name)
    profile = name if name in ("so101", "koch", "xarm7") else None
    robot = rnea_ros.load(text, profile)
    model = pin.buildModelFromXML(text)
    if tuple(model.names)[1:] != robot.joint_names:
        raise SystemExit(f"joints of {name} are {robot.joint_names} here and {tuple(model.names)[1:]} in Pinocchio")
    own = robot.limits if name != "ur5e" else rnea_ros.load(text, "ur5e").limits
    lower, upper = np.fmax(own.lower, -2.5), np.fmin(own.upper, 2.5)
    rng = np.random.default_rng(1)
    at = rng.uniform(lower, upper, (500, robot.n))
    gravity = np.abs(robot.gravity(at)).max(axis=0)
    inertia = np.diagonal(robot.mass_matrix(at[:50]), axis1=1, axis2=2).max(axis=0)
    servos = SERVOS.get(name, ())
    friction = np.array([servo.coulomb for servo in servos]) if servos else np.zeros(robot.n)
    wanted = 1.3 * gravity + 6.0 * inertia + 4.0 * friction
    effort = np.fmin(own.effort, np.maximum(wanted, LEAST_SHARE * wanted.max()))
    n = robot.n
    limits = replace(robot.limits, lower=lower, upper=upper, effort=effort, effort_rate=effort / RISE,
                     velocity=np.fmin(own.velocity, MAX_VELOCITY), acceleration=np.full(n, MAX_ACCELERATION),
                     jerk=np.full(n, MAX_JERK))
    one = Arm(robot, limits, model, 0.5 * (lower + upper), 0.5 * (upper - lower))
    return Plant(one, servos, SUPPLY if name == "xarm7" else math.inf)


def used(plant: Plant, motion: np.ndarray, step: float = INSTANT) -> dict[str, float]:
    """Return the largest share of every limit that a motion (4, samples, n) uses, drives and supply included."""
    one = plant.arm
    if plant.servos:
        return _servo_shares(plant, motion, step)
    found = utilization(one, motion, step)
    if math.isfinite(plant.supply):
        power = (one.efforts(*motion[:3]) * motion[1]).sum(axis=1)
        found["drive"] = float(np.maximum(power / plant.supply, -power / (BRAKING * plant.supply)).max())
    return found


def _servo_shares(plant: Plant, motion: np.ndarray, step: float) -> dict[str, float]:
    """Return the shares of an arm of servos: its torques are those of the motors, with rotors and friction.

    Friction of a joint at rest is anything up to Coulomb's: the torque rate is that of the rest, as a step has none.
    """
    one = plant.arm
    rotor, coulomb, viscous, constant, resistance, supply, stall, free = np.array(plant.servos).T
    q, qd, qdd, _ = motion
    smooth = one.efforts(q, qd, qdd) + rotor * qdd + viscous * qd
    tau = smooth + coulomb * np.sign(qd)
    found = utilization(one, motion, step)
    found["effort"] = float(np.abs(tau / one.limits.effort).max())
    found["effort_rate"] = float(np.abs((smooth[2:] - smooth[:-2]) / (2.0 * step) / one.limits.effort_rate).max())
    voltage = resistance / constant * tau + constant * qd
    found["drive"] = float(max(np.abs(voltage / supply).max(), (np.abs(tau / stall) + np.abs(qd / free)).max()))
    return found


SLEWING = ("panda", "ur5")  # arms of rnea_ros.demo.arms: drives with a slew limit, wrong masses, friction
SHARE = 0.9  # of torque and torque rate for the motion; the rest is for feedback


@cache
def slewing_arm(name: str) -> tuple[timings.Arm, Arm]:
    """Return an arm of the demo of timings, and the same with limits for chunks."""
    demo = timings.Arm(timings.ARM_SOURCES[name])
    own = demo.robot.limits.share(SHARE, SHARE)
    lower, upper = np.fmax(own.lower, -3.0), np.fmin(own.upper, 3.0)
    n = demo.robot.n
    limits = replace(own, lower=lower, upper=upper, velocity=np.fmin(own.velocity, MAX_VELOCITY),
                     acceleration=np.full(n, MAX_ACCELERATION), jerk=np.full(n, MAX_JERK))
    middle = np.clip(np.array(timings.ARM_SOURCES[name].rest), lower, upper)
    model = pin.buildModelFromXML(demo.urdf.decode())
    return demo, Arm(demo.robot, limits, model, middle, np.minimum(0.5 * (upper - lower), 1.2))


def tracked(name: str, motion: np.ndarray, step: float, seed: int) -> tuple[bool, float]:
    """Return whether a drive with a slew limit loses a motion (3 or 4, samples, n), and the largest error [rad]."""
    demo, _ = slewing_arm(name)
    plant = demo.plant(demo.masses(np.random.default_rng(seed)))
    count = motion.shape[1]

    def at(t: np.ndarray) -> tuple[np.ndarray, ...]:
        k = np.minimum(np.rint(t / step).astype(int), count - 1)
        return motion[0][k], motion[1][k], motion[2][k]

    found = track(plant, at, (count - 1) * step)
    return found.lost, float(np.abs(found.reference - found.q).max())

"""Robots in MuJoCo: are the torques of the package those of MuJoCo's motors, by leg and phase, and what do rotors, friction,
softness of the ground and estimated motion make of them?

    python benchmark/plants.py [--seconds 4]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import BaseState, load
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.nodes.common.base import from_imu
from rnea_ros.sim import scene as scenes
from rnea_ros.sim.machines import QUADRUPEDS, SimulatedMachine, machine
from rnea_ros.sim.plant import (
    CHANGE,
    STANCE,
    SWING,
    TYPICAL_NOISE,
    Instant,
    Noise,
    Sensors,
    phases,
    torques,
    with_rates,
)
from support.leg_errors import errors_by_leg_and_phase, torque_rates

URDF = Path(__file__).resolve().parents[1] / "urdf"
PHASES = (STANCE, SWING, CHANGE)
LAG = 0.03  # s, of the estimator
TICK = 2  # timesteps between joint states


def played(device: SimulatedMachine, seconds: float, every: int = 1) -> list[Instant]:
    return list(islice(device.instants(every), round(seconds / device.plant.timestep / every)))


def rows(robot, device: SimulatedMachine, instants: Sequence[Instant], whole: Sequence[Instant] | None = None):
    """Return rows by leg and phase; whole : true motion, where `instants` is an estimate."""
    whole = instants if whole is None else whole
    truth = np.array([instant.tau for instant in whole])
    found = np.array([torques(robot, instant, device.motors) for instant in instants])
    forces = np.array([[np.linalg.norm(six[:3]) for six in instant.wrenches.values()] for instant in whole])
    phase = phases(np.array([instant.t for instant in whole]), forces)
    legs = [(foot, np.arange(3 * leg, 3 * leg + 3)) for leg, foot in enumerate(whole[0].wrenches)]
    return errors_by_leg_and_phase(found, truth, phase, legs)


def by_phase(table) -> list[str]:
    """Worst, and root mean square, over all legs."""
    cells = []
    for phase in PHASES:
        of = [row for row in table if row.phase == phase]
        rms = np.sqrt(np.average([row.rms**2 for row in of], weights=[row.samples for row in of])) if of else np.nan
        cells.append(f"{max((row.worst for row in of), default=np.nan):.1e} ({rms:.1e})")
    return cells


def rate_rows(robot, device: SimulatedMachine, instants: Sequence[Instant]):
    """Return rows of the torque rates, beside the slopes of the motors' torques."""
    rates = list(with_rates(instants))
    forces = np.array([[np.linalg.norm(six[:3]) for six in one.instant.wrenches.values()] for one in rates])
    phase = phases(np.array([one.instant.t for one in rates]), forces)
    found = np.array([torque_rates(robot, one, device.motors) for one in rates])
    slopes = np.array([one.tau_rate for one in rates])
    legs = [(foot, np.arange(3 * leg, 3 * leg + 3)) for leg, foot in enumerate(instants[0].wrenches)]
    return errors_by_leg_and_phase(found, slopes, phase, legs)


def line(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*cells: str) -> None:
    print()
    line(*cells)
    line(*["---"] * len(cells))


def quadrupeds(seconds: float) -> None:
    head("robot", "leg", *PHASES, "peak torque [N m]")
    for name in QUADRUPEDS:
        device = machine(name)
        instants = played(device, seconds)
        peak = np.abs([instant.tau for instant in instants]).max(axis=0)
        table = rows(device.plant.robot, device, instants)
        for leg, foot in enumerate(instants[0].wrenches):
            worst = {row.phase: row.worst for row in table if row.leg == foot}
            line(name, foot, *(f"{worst.get(phase, np.nan):.1e}" for phase in PHASES),
                 ", ".join(f"{value:.1f}" for value in peak[3 * leg:3 * leg + 3]))


def differences(seconds: float) -> None:
    """Return the effects that only the plant has, and the plant."""
    head("solo12: difference", *PHASES)
    device, urdf = machine("solo12"), QUADRUPEDS["solo12"].urdf
    instants, file = played(device, seconds), QUADRUPEDS["solo12"].robot_file
    line("none", *by_phase(rows(device.plant.robot, device, instants)))
    for what, left in (("no armature in the package's model",
                        "rotor_inertia"), ("no damping in the package's model", "viscous")):
        drives = {joint: {**drive, left: 0.0} for joint, drive in file["drives"].items()}
        line(what, *by_phase(rows(load(urdf, {**file, "drives": drives}), device, instants)))
    lifted = [instant._replace(wrenches={}) for instant in instants]
    line("no foot forces", *by_phase(rows(device.plant.robot, device, lifted, instants)))
    touch = scenes.FOOT_SOLIMP
    for what, impedance in (("ground ten times softer", [0.5, 0.9, 0.01, 0.5, 2.0]), ("hard ground", scenes.LOOP_SOLIMP)):
        scenes.FOOT_SOLIMP = impedance
        other = machine("solo12")
        line(what, *by_phase(rows(device.plant.robot, other, played(other, seconds))))
    scenes.FOOT_SOLIMP = touch
    for timestep in (5e-4, 2e-3):
        other = machine("solo12", timestep=timestep)
        line(f"timestep {1e3 * timestep:g} ms", *by_phase(rows(device.plant.robot, other, played(other, seconds))))
    head("solo12: torque rates", *PHASES)
    for timestep in (1e-3, 2.5e-4):
        other = machine("solo12", timestep=timestep)
        table = rate_rows(device.plant.robot, other, played(other, min(seconds, 2.5)))
        line(f"compared with slopes over {2e3 * timestep:g} ms", *by_phase(table))


def sensed(seconds: float) -> None:
    """Motion estimated from sensors, by the estimator of dynamics_node; the feet's forces at the estimate's own instant."""
    head("solo12: motion", *PHASES)
    device = machine("solo12")
    robot, instants = device.plant.robot, played(device, seconds, TICK)
    rate, encoders = 1.0 / (TICK * device.plant.timestep), Noise(2.0 * np.pi / 2**17)
    line("exact", *by_phase(rows(robot, device, instants)))
    for what, noise, imu in (("joints from 17-bit encoders, base exact", encoders, False),
                             ("base from its IMU too, otherwise exact", encoders, True),
                             ("the same, with noise of IMU and foot sensors", TYPICAL_NOISE, True)):
        found, true = zip(*estimated(robot, instants, Sensors(noise), round(LAG * rate), imu))
        line(f"{what}; {1e3 * LAG:g} ms late, {rate:g} Hz", *by_phase(rows(robot, device, found, true)))


def estimated(robot, instants: Sequence[Instant], sensors: Sensors, behind: int, imu: bool):
    """Instants as they are estimated, so many samples late, and as they were."""
    measured = [sensors(instant) for instant in instants]
    joints, base = (MotionEstimator(size, LAG) for size in (robot.n, 6))
    gravity = np.concatenate((robot.robot.gravity_vector, np.zeros(3)))
    for k, one in enumerate(measured):
        joints.push(round(one.t * 1e9), one.q)
        base.push(round(one.t * 1e9), np.concatenate((one.accelerometer, one.gyro)))
        if k >= behind and joints.ready and base.ready:
            true = instants[k - behind]
            q, qd, qdd, _ = joints.estimate(round(true.t * 1e9)).motion
            found = true._replace(q=q, qd=qd, qdd=qdd, wrenches=measured[k - behind].wrenches)
            if imu:  # in a world that has the base's axes
                motion = from_imu(np.zeros(3), base.estimate(round(true.t * 1e9)).motion[:3])
                state = BaseState(velocity=np.concatenate((np.zeros(3), motion.velocity[3:])),
                                  acceleration=motion.acceleration + gravity)
                found = found._replace(base=state)
            yield found, true


def loops(seconds: float) -> None:
    head("robot", "worst error of its motors", "peak torques [N m]", "distance of the joints from the closed pose [rad]")
    for name in ("five_bar", "touched"):
        device = machine(name, *((URDF / f"{name}.urdf", URDF / f"{name}.robot.yaml") if name == "five_bar" else ()))
        robot, instants = device.plant.robot, played(device, seconds)[50:]
        truth = np.array([instant.tau for instant in instants])
        peak = np.abs(truth).max(axis=0)
        found = np.array([torques(robot, instant, device.motors) for instant in instants])
        gaps = [np.abs(robot.close(one.q[device.motors], guess=one.q) - one.q).max() for one in instants[::20]
                if name == "five_bar"]
        line(name, f"{(np.abs(found - truth) / peak).max():.1e}", ", ".join(f"{value:.2f}" for value in peak),
             f"{max(gaps):.1e}" if gaps else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each robot moves")
    seconds = parser.parse_args().seconds
    quadrupeds(seconds)
    differences(seconds)
    sensed(seconds)
    loops(seconds)


if __name__ == "__main__":
    main()

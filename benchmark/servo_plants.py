"""SO-101 and Koch in MuJoCo with their servos: what a position servo, its friction and its supply make of commands.

The links are those of chunk_plants.py. A servo converts a position error to a voltage, limited by its supply, and this to a
torque:

    duty = gain (command - q), at most `most`      tau = constant (duty supply - constant qd) / resistance

The torque acts on a gear with rotor inertia, Coulomb and viscous friction. There is no other feedback, so the arm is soft.
The parameters are those of Rhoban's better-actuator-models (Apache-2.0, commit 060af88: gains measured with an oscilloscope,
others fitted to swings of a pendulum):

    STS3215   gain 32 * 0.166 1/rad, 7.4 V, duty up to 0.97; others as in profile so101
    XL330     gain 400 * 0.00246 1/rad, 5 V; others as in profile koch
    XL430     gain 800 * 0.00246 1/rad, 12 V; constant and resistance from stall torque and no-load speed (e-manual);
              rotor (0.005 kg m^2) and friction (0.045 N m, 0.01 N m s/rad) are assumed, because they are not published;
              the executor does not know them

400 and 800 are the default gains of these Dynamixels. Commands arrive at 100 Hz and are held in between. The gear torque is
the torque that moves the links, without rotor inertia and friction of the servo.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import mujoco
import numpy as np
from chunk_plants import STS3215, XL330, plant, text_of

ARMS = ("so101", "koch")
TIMESTEP, EVERY = 0.5e-3, 20  # s, steps from one command to the next
SATURATED = 0.999  # share of the largest duty from which a servo is at its limit
SMOOTHING_S = 0.01  # s over which the rate of a gear's torque is averaged


class PositionServo(NamedTuple):
    """Position servo at its output: gain [1/rad], largest duty, supply [V], constant [N m/A = V s/rad], resistance [ohm],
    rotor [kg m^2], Coulomb [N m] and viscous friction [N m s/rad].
    """

    gain: float
    most: float
    supply: float
    constant: float
    resistance: float
    rotor: float
    coulomb: float
    viscous: float


def _of(gain: float, most: float, supply: float, servo: Any) -> PositionServo:
    return PositionServo(gain, most, supply, servo.constant, servo.resistance, servo.rotor, servo.coulomb, servo.viscous)


STALL, FREE, XL430_V = 1.5, 6.3879, 12.0  # N m, rad/s, V of an XL430-W250
XL430 = PositionServo(800 * 0.00246, 1.0, XL430_V, XL430_V / FREE, XL430_V**2 / (FREE * STALL), 0.005, 0.045, 0.01)
SERVOS = {"so101": (_of(32 * 0.166, 0.97, 7.4, STS3215),) * 6,
          "koch": (XL430, XL430, *(_of(400 * 0.00246, 1.0, 5.0, XL330),) * 4)}


class Followed(NamedTuple):
    """Motion of servos that follow commands.

    q            : positions (samples, n) [rad], 0.5 ms apart
    torque, rate : largest share of its stall torque that a gear transmitted, and largest rate of that share [1/s]
    saturated    : share of time in which a servo had all of its supply
    acceleration : largest of a joint [rad/s^2]
    """

    q: np.ndarray
    torque: float
    rate: float
    saturated: float
    acceleration: float


@cache
def _model(name: str) -> Any:
    """Return the arm in MuJoCo, its shapes left out, with rotors and friction of its servos."""
    text = re.sub(r"<(visual|collision)\b.*?</\1>", "", text_of(name), flags=re.DOTALL)
    text = re.sub(r"<(visual|collision)\b[^>]*/>", "", text)
    text = text.replace("</robot>", '<mujoco><compiler fusestatic="true" balanceinertia="true"/></mujoco></robot>')
    model = mujoco.MjModel.from_xml_string(text)
    names = tuple(model.joint(k).name for k in range(model.njnt))
    if names != plant(name).arm.robot.joint_names:
        raise SystemExit(f"joints of {name} are {names} in MuJoCo")
    model.opt.timestep = TIMESTEP
    for k, servo in enumerate(SERVOS[name]):
        model.dof_armature[k], model.dof_frictionloss[k], model.dof_damping[k] = servo.rotor, servo.coulomb, servo.viscous
    model.jnt_limited[:] = 0
    return model


def followed(name: str, commands: np.ndarray) -> Followed:
    """Let the servos follow commands (count, n) of 100 Hz, from rest at the first one."""
    model = _model(name)
    data = mujoco.MjData(model)
    gain, most, supply, constant, resistance, *_ = np.array(SERVOS[name]).T
    stall = constant * most * supply / resistance
    count = len(commands) * EVERY
    q, qd, qdd = (np.empty((count, model.nv)) for _ in range(3))
    duties = np.empty((count, model.nv))
    hold = plant(name).arm.robot.gravity(commands[0])
    data.qpos[:] = commands[0] - hold * resistance / (constant * gain * supply)  # where the servos carry the arm
    for k in range(count):
        duty = np.clip(gain * (commands[k // EVERY] - data.qpos), -most, most)
        data.qfrc_applied[:] = constant * (duty * supply - constant * data.qvel) / resistance
        q[k], qd[k], duties[k] = data.qpos, data.qvel, duty
        mujoco.mj_step(model, data)
        qdd[k] = data.qacc
    load = plant(name).arm.efforts(q, qd, qdd)
    width = round(SMOOTHING_S / TIMESTEP)
    rate = (load[width:] - load[:-width]) / SMOOTHING_S
    return Followed(q, float(np.abs(load / stall).max()), float(np.abs(rate / stall).max()),
                    float((np.abs(duties) >= SATURATED * most).any(axis=1).mean()), float(np.abs(qdd).max()))

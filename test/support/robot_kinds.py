"""One robot of every kind, with motions and loads for tests of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from rnea_ros import (
    BaseState,
    Loads,
    MotorState,
    Robot,
    load,
)
from support.parallel_machines import planar_3rrr
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
GRAVITY = (1.0, -2.0, -9.0)
ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}, {"kind": "prismatic", "axis": (1, 0, 0)})
FIVE_BAR = (ROOT / "urdf" / "five_bar.urdf", ROOT / "urdf" / "five_bar.robot.yaml")
HEAVY = ('<link name="base_link"><inertial><mass value="3.0"/><inertia ixx="0.05" iyy="0.04" izz="0.03" ixy="0" ixz="0" '
         'iyz="0"/></inertial></link>')
BASE = BaseState((0.1, 0.2, 0.3), (0.0, 0.6, 0.0, 0.8), (0.3, -0.2, 0.1, 0.5, -0.4, 0.2))


class Case(NamedTuple):
    """Robot of one kind, and the other arguments of its calls.

    state : keywords of nearly every call; motors : keywords with the state of motors for a motion
    first : rows of the base before those of the joints; last : rows of motors after them
    at    : where q lies
    over_held : planar, with revolute cut joints
    """

    robot: Any
    link: str
    at: Any
    state: Mapping[str, Any] = MappingProxyType({})
    motors: Callable[..., dict[str, Any]] = lambda *motion: {}
    first: int = 0
    last: int = 0
    over_held: bool = False


def _floating(backend: str) -> Case:
    robot = load(ARM, base="floating", backend=backend, gravity=GRAVITY)
    return Case(robot, "l3", np.zeros(3), {"base": BASE}, first=6)


def _elastic(backend: str) -> Case:
    motors = {"elastic_joints": {"j2": {"stiffness": 90.0}}, "motors": {"j2": {"link": "l1", "axis": [0, 0, 1]}},
              "drives": {"j2": {"gear_ratio": 20.0, "rotor_inertia": 1e-4}}}
    robot = load(ARM, {"version": 1, **motors}, backend=backend, gravity=GRAVITY)

    def state(*motion: Any) -> dict[str, Any]:
        found = robot.motor_motion(*motion[:robot.order])
        return {"motors": MotorState(found.q_motor, found.qd_motor)}

    return Case(robot, "l3", np.zeros(3), motors=state, last=1)


def _springs(backend: str) -> Case:
    springs = {"version": 1, "springs": {"j2": {"stiffness": 40.0, "rest": 0.1}}}
    return Case(load(ARM, springs, backend=backend, gravity=GRAVITY), "l3", np.zeros(3))


def _loops(backend: str) -> Case:
    return Case(load(*FIVE_BAR, backend=backend, gravity=GRAVITY), "left_forearm", [1.9, 1.0],
                over_held=True)


def _floating_loops(backend: str) -> Case:
    text = FIVE_BAR[0].read_text()
    end = text.index("</link>", begin := text.index('<link name="base_link"'))
    urdf = text[:begin] + HEAVY + text[end + len("</link>"):]
    robot = load(urdf, FIVE_BAR[1], base="floating", backend=backend, gravity=GRAVITY)
    return Case(robot, "left_forearm", [1.9, 1.0], {"base": BASE}, first=6, over_held=True)


def _parallel(backend: str) -> Case:
    return Case(planar_3rrr().robot(backend=backend, gravity=GRAVITY), "platform", np.zeros(3), over_held=True)


MAKERS = {"Robot": lambda backend: Case(Robot.from_urdf(ARM, backend=backend, gravity=GRAVITY), "l3", np.zeros(3)),
          "moving base": _floating, "elastic joints": _elastic, "springs": _springs, "loops": _loops,
          "moving loops": _floating_loops, "platform": _parallel}
each_kind = pytest.mark.parametrize("kind", MAKERS)


@cache
def case(kind: str) -> Case:
    return MAKERS[kind]("python")


def motion_of(case: Case, seed: int = 0) -> list[np.ndarray]:
    """Return q and the derivatives that the torque rate needs, small enough for loops to follow."""
    rng = np.random.default_rng(seed)
    return [np.asarray(case.at) + 0.1 * rng.normal(size=case.robot.n),
            *(0.3 * rng.normal(size=case.robot.n) for _ in range(case.robot.order))]


def loads_on(case: Case, seed: int = 1) -> Loads:
    return Loads(*({case.link: six} for six in np.random.default_rng(seed).normal(size=(3, 6))))


def steady(loads: Loads) -> Loads:
    """Return the loads without rates."""
    return Loads(loads.wrenches, world_wrenches=loads.world_wrenches)


def after(loads: Loads, t: float) -> Loads:
    """Return the loads at time t, with wrenches that grow by their rates."""
    grown = {link: six + t * loads.wrench_rates[link] for link, six in loads.wrenches.items()}
    return Loads(grown, loads.wrench_rates, loads.world_wrenches)


def base_acceleration(case: Case, *motion: Any, loads: Loads | None = None) -> np.ndarray:
    """Return the acceleration (6,) of a free base during a motion of the joints."""
    return case.robot.solve(*motion[:3], stages=1, **case.state, loads=loads).base_acceleration


def whole_motion(case: Case, *motion: Any, loads: Loads | None = None) -> list[np.ndarray]:
    """Return the motion up to jerks, with dependent accelerations and jerks of spring joints."""
    if case.robot.is_fixed_tree or not case.robot.state_joints:
        return list(motion)
    found = case.robot.solve(*motion[:4], stages=2 if len(motion) > 3 else 1, **case.state, loads=loads)
    return [np.array([found.positions[name][k] for name in case.robot.joint_names]) for k in range(len(motion))]

"""Exact joint torques and torque rates of robots from their URDF."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .algorithms.kinematics import Pose
from .errors import InputError, ModelError, RneaError
from .model.tree import JointDynamics, Limits, Model
from .robots.closed_loops import ClosedLoopRobot
from .robots.elastic import ElasticRobot
from .robots.floating import FloatingRobot
from .robots.floating_closed_loops import FloatingLoopRobot
from .robots.inputs.base_state import BaseState
from .robots.inputs.platform_motion import PlatformMotion
from .robots.load import load
from .robots.parallel import ParallelRobot
from .robots.protocol import AnyRobot
from .robots.robot import Dynamics, Robot
from .robots.springs import SpringRobot

if TYPE_CHECKING:
    from .identification.payload import estimate_payload
    from .motion.margin import limits_share
    from .motion.plan import plan_motion
    from .motion.retime import retime_motion
    from .sensing.external_effort import ExternalEffortObserver

__all__ = [
    "AnyRobot",
    "BaseState",
    "ClosedLoopRobot",
    "Dynamics",
    "ElasticRobot",
    "ExternalEffortObserver",
    "FloatingLoopRobot",
    "FloatingRobot",
    "InputError",
    "JointDynamics",
    "Limits",
    "Model",
    "ModelError",
    "ParallelRobot",
    "PlatformMotion",
    "Pose",
    "RneaError",
    "Robot",
    "SpringRobot",
    "estimate_payload",
    "limits_share",
    "load",
    "plan_motion",
    "retime_motion",
]
# A node that does not plan starts without.
_ON_DEMAND = {"plan_motion": ".motion.plan", "retime_motion": ".motion.retime", "limits_share": ".motion.margin",
              "estimate_payload": ".identification.payload", "ExternalEffortObserver": ".sensing.external_effort"}


def __getattr__(name: str) -> Any:
    """What is imported when it is first asked for."""
    if name not in _ON_DEMAND:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(_ON_DEMAND[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

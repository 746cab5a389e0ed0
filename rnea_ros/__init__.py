"""Exact joint torques and torque rates of robots from their URDF."""

from .errors import InputError, ModelError, RneaError
from .model.tree import JointDynamics, Model
from .motion.plan import plan_motion
from .motion.retime import retime_motion
from .robots.closed_loops import ClosedLoopRobot
from .robots.elastic import ElasticRobot
from .robots.floating import FloatingRobot
from .robots.floating_closed_loops import FloatingLoopRobot
from .robots.inputs.base_state import BaseState
from .robots.load import load
from .robots.parallel import ParallelRobot
from .robots.robot import Dynamics, Robot
from .robots.springs import SpringRobot

__all__ = [
    "BaseState",
    "ClosedLoopRobot",
    "Dynamics",
    "ElasticRobot",
    "FloatingLoopRobot",
    "FloatingRobot",
    "InputError",
    "JointDynamics",
    "Model",
    "ModelError",
    "ParallelRobot",
    "RneaError",
    "Robot",
    "SpringRobot",
    "load",
    "plan_motion",
    "retime_motion",
]

"""Exact joint torques and torque rates of robots from their URDF."""

from .errors import InputError, ModelError, RneaError
from .model import JointTerm, Model
from .robot import Dynamics, Robot
from .robot_planning import plan_motion
from .robot_retiming import retime_motion
from .systems.base_state import BaseState
from .systems.elastic import ElasticRobot
from .systems.floating import FloatingRobot
from .systems.loops import ClosedLoopRobot
from .systems.parallel import ParallelRobot
from .systems.springs import SpringRobot

__all__ = [
    "BaseState",
    "ClosedLoopRobot",
    "Dynamics",
    "ElasticRobot",
    "FloatingRobot",
    "InputError",
    "JointTerm",
    "Model",
    "ModelError",
    "ParallelRobot",
    "RneaError",
    "Robot",
    "SpringRobot",
    "plan_motion",
    "retime_motion",
]

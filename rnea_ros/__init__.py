"""Exact joint torques and torque rates of robots from their URDF."""

from .errors import InputError, ModelError, RneaError
from .model import JointTerm, Model
from .robot import Dynamics, Robot

__all__ = ["Dynamics", "InputError", "JointTerm", "Model", "ModelError", "RneaError", "Robot"]

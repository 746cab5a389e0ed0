"""Exact joint torques and torque rates of robots from their URDF."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .algebra.taylor import derivatives_of_time, smooth_step
    from .algorithms.inertial_parameters import parameters as inertial_parameters
    from .algorithms.inertial_parameters import values as parameter_values
    from .algorithms.inertial_parameters import with_values as with_parameter_values
    from .algorithms.kinematics import Pose
    from .algorithms.screws import inverse_dynamics as screw_inverse_dynamics
    from .algorithms.screws import screws
    from .demo.elastic_control import InverseDynamicsController, simulate_elastic_arm
    from .errors import InputError, ModelError, RneaError
    from .estimation.external_effort import ExternalEffortObserver
    from .estimation.smoothing import RecordingEstimate, smooth
    from .identification.excitation import excite
    from .identification.fitting import fit
    from .identification.identification import Measurements, identify
    from .identification.payload import estimate_payload
    from .identification.physical_consistency import nearest_physical
    from .io.figures import STYLE, color_scale, draw_stills, picture
    from .io.files import read_recording
    from .io.recording import RecordedMotion
    from .model.tree import JointDynamics, Limits, Model
    from .planning import Cost, EndState, PlannedMotion, PlanningProblem, PlanSettings
    from .planning import plan as solve_plan
    from .robots.base_state import BaseState, base_motion
    from .robots.conditions import Loads, MotorState
    from .robots.load import load
    from .robots.platform_motion import PlatformMotion
    from .robots.results import Dynamics
    from .robots.robot import Robot
    from .robots.rolling import WheelLoad, WheelOdometry, tip_over_margin, wheel_loads
    from .sim.free_base import simulate_free_base
    from .sim.machines import gough_stewart
    from .trajectory import Constraints, PathLimits, TrajectoryScaler, plan_from_waypoints
    from .trajectory.chunk_executor import ChunkExecutor, ChunkOptions, ChunkResult
    from .trajectory.clearance import Clearance, Obstacle, Sphere
    from .trajectory.margin import ModelUncertainty, limits_share
    from .trajectory.path_dynamics import PathDynamics
    from .trajectory.plan_motion import plan_motion
    from .trajectory.plan_motion import torque as torque_limits
    from .trajectory.retiming import retime_motion
    from .trajectory.vibration import (
        FlexiblePredictor,
        InputShaper,
        driven_joints,
        free_vibration,
        input_shaper,
        predict_deflection,
        residual_vibration,
        root_loads,
        tip_deflection,
    )

__all__ = [
    "STYLE",
    "BaseState",
    "ChunkExecutor",
    "ChunkOptions",
    "ChunkResult",
    "Clearance",
    "Constraints",
    "Cost",
    "Dynamics",
    "EndState",
    "ExternalEffortObserver",
    "FlexiblePredictor",
    "InputError",
    "InputShaper",
    "InverseDynamicsController",
    "JointDynamics",
    "Limits",
    "Loads",
    "Measurements",
    "Model",
    "ModelError",
    "ModelUncertainty",
    "MotorState",
    "Obstacle",
    "PathDynamics",
    "PathLimits",
    "PlanSettings",
    "PlannedMotion",
    "PlanningProblem",
    "PlatformMotion",
    "Pose",
    "RecordedMotion",
    "RecordingEstimate",
    "RneaError",
    "Robot",
    "Sphere",
    "TrajectoryScaler",
    "WheelLoad",
    "WheelOdometry",
    "base_motion",
    "color_scale",
    "derivatives_of_time",
    "draw_stills",
    "driven_joints",
    "estimate_payload",
    "excite",
    "fit",
    "free_vibration",
    "gough_stewart",
    "identify",
    "inertial_parameters",
    "input_shaper",
    "limits_share",
    "load",
    "nearest_physical",
    "parameter_values",
    "picture",
    "plan_from_waypoints",
    "plan_motion",
    "predict_deflection",
    "read_recording",
    "residual_vibration",
    "retime_motion",
    "root_loads",
    "screw_inverse_dynamics",
    "screws",
    "simulate_elastic_arm",
    "simulate_free_base",
    "smooth",
    "smooth_step",
    "solve_plan",
    "tip_deflection",
    "tip_over_margin",
    "torque_limits",
    "wheel_loads",
    "with_parameter_values",
]
# Nothing is imported before it is asked for: a node that does not plan starts without what plans, and commands can say what an
# interrupt does before they wait for numpy.
_MODULES = {
    ".algebra.taylor": ("derivatives_of_time", "smooth_step"),
    ".algorithms.kinematics": ("Pose",),
    ".algorithms.screws": ("screws",),
    ".demo.elastic_control": ("InverseDynamicsController", "simulate_elastic_arm"),
    ".errors": ("InputError", "ModelError", "RneaError"),
    ".estimation.external_effort": ("ExternalEffortObserver",),
    ".estimation.smoothing": ("RecordingEstimate", "smooth"),
    ".identification.excitation": ("excite",),
    ".identification.fitting": ("fit",),
    ".identification.identification": ("Measurements", "identify"),
    ".identification.payload": ("estimate_payload",),
    ".identification.physical_consistency": ("nearest_physical",),
    ".io.figures": ("STYLE", "color_scale", "draw_stills", "picture"),
    ".io.files": ("read_recording",),
    ".io.recording": ("RecordedMotion",),
    ".model.tree": ("JointDynamics", "Limits", "Model"),
    ".planning": ("Cost", "EndState", "PlanSettings", "PlannedMotion", "PlanningProblem"),
    ".robots.base_state": ("BaseState", "base_motion"),
    ".robots.conditions": ("Loads", "MotorState"),
    ".robots.load": ("load",),
    ".robots.platform_motion": ("PlatformMotion",),
    ".robots.robot": ("Robot",),
    ".robots.results": ("Dynamics",),
    ".robots.rolling": ("WheelLoad", "WheelOdometry", "tip_over_margin", "wheel_loads"),
    ".sim.machines": ("gough_stewart",),
    ".sim.free_base": ("simulate_free_base",),
    ".trajectory": ("Constraints", "PathLimits", "TrajectoryScaler", "plan_from_waypoints"),
    ".trajectory.chunk_executor": ("ChunkExecutor", "ChunkOptions", "ChunkResult"),
    ".trajectory.clearance": ("Clearance", "Obstacle", "Sphere"),
    ".trajectory.margin": ("ModelUncertainty", "limits_share"),
    ".trajectory.path_dynamics": ("PathDynamics",),
    ".trajectory.plan_motion": ("plan_motion",),
    ".trajectory.retiming": ("retime_motion",),
    ".trajectory.vibration": ("FlexiblePredictor", "InputShaper", "driven_joints", "free_vibration", "input_shaper",
                              "predict_deflection", "residual_vibration", "root_loads", "tip_deflection"),
}
_RENAMED = {  # names that are too general outside of their module
    "inertial_parameters": (".algorithms.inertial_parameters", "parameters"),
    "parameter_values": (".algorithms.inertial_parameters", "values"),
    "screw_inverse_dynamics": (".algorithms.screws", "inverse_dynamics"),
    "solve_plan": (".planning", "plan"),
    "torque_limits": (".trajectory.plan_motion", "torque"),
    "with_parameter_values": (".algorithms.inertial_parameters", "with_values"),
}
_HOME = {name: (module, name) for module, names in _MODULES.items() for name in names} | _RENAMED


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    module, attribute = _HOME[name]
    found = globals()[name] = getattr(import_module(module, __name__), attribute)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

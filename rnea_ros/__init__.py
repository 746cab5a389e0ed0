"""Exact joint torques and torque rates of robots from their URDF."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .algorithms.kinematics import Pose
    from .errors import InputError, ModelError, RneaError
    from .estimation.external_effort import ExternalEffortObserver
    from .estimation.smoothing import RecordingEstimate, smooth
    from .identification.payload import estimate_payload
    from .io.files import read_recording
    from .io.recording import RecordedMotion
    from .model.tree import JointDynamics, Limits, Model
    from .robots.inputs.base_state import BaseState
    from .robots.inputs.platform_motion import PlatformMotion
    from .robots.load import load
    from .robots.robot import Robot
    from .robots.tree import Dynamics
    from .trajectory.chunk_executor import ChunkExecutor, ChunkOptions, ChunkResult
    from .trajectory.margin import limits_share
    from .trajectory.plan_motion import plan_motion
    from .trajectory.retiming import retime_motion

__all__ = [
    "BaseState",
    "ChunkExecutor",
    "ChunkOptions",
    "ChunkResult",
    "Dynamics",
    "ExternalEffortObserver",
    "InputError",
    "JointDynamics",
    "Limits",
    "Model",
    "ModelError",
    "PlatformMotion",
    "Pose",
    "RecordedMotion",
    "RecordingEstimate",
    "RneaError",
    "Robot",
    "estimate_payload",
    "limits_share",
    "load",
    "plan_motion",
    "read_recording",
    "retime_motion",
    "smooth",
]
# Nothing is imported before it is asked for: a node that does not plan starts without what plans, and commands can say what an
# interrupt does before they wait for numpy.
_MODULES = {
    ".algorithms.kinematics": ("Pose",),
    ".errors": ("InputError", "ModelError", "RneaError"),
    ".estimation.smoothing": ("RecordingEstimate", "smooth"),
    ".identification.payload": ("estimate_payload",),
    ".model.tree": ("JointDynamics", "Limits", "Model"),
    ".trajectory.chunk_executor": ("ChunkExecutor", "ChunkOptions", "ChunkResult"),
    ".trajectory.margin": ("limits_share",),
    ".trajectory.plan_motion": ("plan_motion",),
    ".trajectory.retiming": ("retime_motion",),
    ".io.files": ("read_recording",),
    ".io.recording": ("RecordedMotion",),
    ".robots.inputs.base_state": ("BaseState",),
    ".robots.inputs.platform_motion": ("PlatformMotion",),
    ".robots.load": ("load",),
    ".robots.robot": ("Robot",),
    ".robots.tree": ("Dynamics",),
    ".estimation.external_effort": ("ExternalEffortObserver",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(_HOME[name], __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

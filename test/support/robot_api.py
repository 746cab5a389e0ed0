"""ctypes binding of the C ABI of exported robots, written by hand from rnea_robot_api.h."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

TEXT, INT, DOUBLES = ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_double)
INTS, TEXTS = ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_char_p)


def _function(count: int) -> Any:
    return ctypes.CFUNCTYPE(None, *[DOUBLES] * count)


class Effort(ctypes.Structure):
    """rnea_effort."""

    _fields_ = [("contains", INT), ("quantity", INT), ("per_unit", DOUBLES)]


class Link(ctypes.Structure):
    """rnea_link."""

    _fields_ = [("name", TEXT), ("pose", _function(3)), ("jacobian", _function(2)), ("jacobian_rate", _function(3))]


ARGUMENTS = {"torque_and_rate": 8, "inverse_dynamics": 5, "gravity": 3, "gravity_and_rate": 5, "bias": 4, "friction": 4,
             "mass_matrix": 3, "forward_dynamics": 5, "sensitivities": 7, "rate_sensitivities": 9, "close_step": 4,
             "tree_motion": 7}


class RobotApi(ctypes.Structure):
    """rnea_robot_api, version 1."""

    _fields_ = [
        ("abi", ctypes.c_uint32), ("size", ctypes.c_uint32), ("robot_name", TEXT), ("model_id", TEXT), ("exporter", TEXT),
        ("payload_link", TEXT), ("root_link", TEXT), ("n", INT), ("n_q", INT), ("link_count", INT), ("has_loops", INT),
        ("joint_names", TEXTS), ("tree_joint_names", TEXTS), ("joint_types", INTS), ("active", INTS), ("start_pose", DOUBLES),
        ("gravity_vector", DOUBLES), ("links", ctypes.POINTER(Link)),
        *((name, DOUBLES) for name in ("lower", "upper", "velocity", "acceleration", "jerk", "effort", "effort_rate",
                                       "commanded_effort_rate")),
        ("commanded", Effort), ("measured", Effort),
        ("payload_parameters", ctypes.CFUNCTYPE(None, ctypes.c_double, DOUBLES, DOUBLES, DOUBLES)),
        *((name, _function(count)) for name, count in ARGUMENTS.items())]


class LoadedRobot:
    """An exported robot in this process: `call` takes arrays, None for no payload, and sizes of the outputs."""

    def __init__(self, path: Path):
        self._library = ctypes.CDLL(str(path))
        self._library.rnea_robot.restype = ctypes.POINTER(RobotApi)
        self.api: RobotApi = self._library.rnea_robot().contents

    def call(self, function: str | Any, given: Sequence[Any], *sizes: int) -> list[np.ndarray]:
        """Return the outputs of a function of the ABI."""
        arrays = [None if x is None else np.ascontiguousarray(x, dtype=float) for x in given]
        found = [np.full(size, np.nan) for size in sizes]
        code = getattr(self.api, function) if isinstance(function, str) else function
        code(*(None if x is None else x.ctypes.data_as(DOUBLES) for x in (*arrays, *found)))
        return found

    def payload(self, mass: float, com: Sequence[float], inertia: np.ndarray) -> np.ndarray:
        """Return the ten numbers of a payload."""
        found = np.zeros(10)
        given = [np.ascontiguousarray(x, dtype=float) for x in (com, inertia[np.triu_indices(3)])]
        self.api.payload_parameters(mass, *(x.ctypes.data_as(DOUBLES) for x in (*given, found)))
        return found

"""LeRobot robot around another one: commands are points of a motion that keeps every limit of a robot.

A thread sends commands at `rate` until `disconnect`, which brakes to rest first. `send_action` hands an action to the motion
and returns at once; a chunk that `processor.ProtectChunks` passes on is executed without the delay of single actions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from lerobot.robots.robot import Robot
from lerobot.robots.utils import make_robot_from_config

from rnea_ros import ChunkExecutor, ChunkOptions, InputError, Limits, load

from .config_protected_robot import TYPE, ProtectedRobotConfig
from .joint_mapping import JointMapping, MappingOptions, assign, motor_units
from .stream import ActionStream

LIMITS = ("effort", "effort_rate", "velocity", "acceleration", "jerk")
MAX_ERRORS = 5  # commands in a row that the arm does not take, before its error is raised
connected: list[ProtectedRobot] = []
logger = logging.getLogger(__name__)


class ProtectedRobot(Robot):
    """Arm whose actions are executed inside the limits of a robot."""

    config_class = ProtectedRobotConfig
    name = TYPE
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, config: ProtectedRobotConfig):
        """Read the URDF and the robot file, and compile the equations. InputError where motors and joints do not agree."""
        super().__init__(config)
        self.config = config
        self.arm = make_robot_from_config(config.arm)
        self.robot_type = self.arm.robot_type
        self._options = MappingOptions(config.joints, config.unprotected, config.units, config.offsets, config.reversed_motors)
        robot = load(config.urdf, config.robot_file)
        assign(robot, self.arm.action_features, self._options)
        options = ChunkOptions(lead=config.lead, max_step=config.max_step, tolerance=config.tolerance)
        self._executor = ChunkExecutor(robot, _limited(robot.limits, config.limits), options)
        self._stream: ActionStream | None = None
        self._arm_lock = threading.Lock()
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._observed = self._marked = -np.inf
        self._overruns = 0

    # ------------------------------------------------------------------ what LeRobot calls

    @property
    def observation_features(self) -> dict:
        """Return those of the arm."""
        return self.arm.observation_features

    @property
    def action_features(self) -> dict:
        """Return those of the arm."""
        return self.arm.action_features

    @property
    def cameras(self) -> dict:
        """Return those of the arm."""
        return getattr(self.arm, "cameras", {})

    @property
    def is_connected(self) -> bool:
        """True if the arm is connected."""
        return self.arm.is_connected

    @property
    def is_calibrated(self) -> bool:
        """True if the arm is calibrated."""
        return self.arm.is_calibrated

    def calibrate(self) -> None:
        """Calibrate the arm; while it is connected by this class, that moves it."""
        if self._thread is not None:
            raise RuntimeError("the arm is in motion: disconnect it, and calibrate it by its own type")
        self.arm.calibrate()

    def configure(self) -> None:
        """Configure the arm."""
        self.arm.configure()

    def connect(self, calibrate: bool = True) -> None:
        """Connect the arm and hold it where it is."""
        self.arm.connect(calibrate)
        try:
            values = self.arm.get_observation()
            mapping = JointMapping(self._executor.robot, list(self.arm.action_features), motor_units(self.arm), self._options)
            stream = ActionStream(self._executor, mapping, 1.0 / self.config.fps, self.config.delay, self.config.margin)
            stream.start(values, self.clock())
        except BaseException:
            self.arm.disconnect()
            raise
        logger.info("Compare with the arm: %s", mapping.describe(values))
        self._stream, self._error, self._overruns = stream, None, 0
        self._ends.clear()
        self._thread = threading.Thread(target=self._send_commands, name="rnea_protected", daemon=True)
        self._thread.start()
        connected.append(self)

    def get_observation(self) -> dict[str, Any]:
        """Return the observation of the arm."""
        self._raise_error()
        with self._arm_lock:
            observation = self.arm.get_observation()
        self._observed = self.clock()
        return observation

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Execute an action `delay` later, as far as the limits allow; return the last command."""
        stream = self._connected_stream()
        stream.push_action(action, self.clock())
        return dict(stream.sent)

    def disconnect(self) -> None:
        """Brake to rest, then disconnect the arm."""
        if self._stream is not None and self._thread is not None:
            self._stream.stop(self.clock())
            while self._thread.is_alive() and self._stream.diagnostics()["time_to_rest"] > 0.0:
                time.sleep(0.01)
            self._ends.set()
            self._thread.join()
            self._thread = None
            if self in connected:
                connected.remove(self)
            logger.info("Actions: %s", self.diagnostics())
        self.arm.disconnect()

    # ------------------------------------------------------------------ what processor steps call

    def mark_observation(self) -> None:
        """Take the last observation for that of the next chunk."""
        self._marked = self._observed

    def push_chunk(self, values: Any, names: list[str] | None = None) -> Any:
        """Execute a chunk (count, motors) from the time of its observation, if that was marked, or from now on."""
        stream, t = self._connected_stream(), self.clock()
        stamp = self._marked if np.isfinite(self._marked) else t
        self._marked = -np.inf
        return stream.push_chunk(stamp, values, t, names)

    def diagnostics(self) -> dict[str, Any]:
        """Return counts of actions and chunks by outcome, the binding limit, delays [s], and late commands."""
        return {} if self._stream is None else self._stream.diagnostics() | {"late_commands": self._overruns}

    # ------------------------------------------------------------------ how

    def _connected_stream(self) -> ActionStream:
        self._raise_error()
        if self._stream is None or self._thread is None:
            raise ConnectionError(f"{self} is not connected: call connect first")
        return self._stream

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _send_commands(self) -> None:
        """Send commands at the given rate until `disconnect`, or until the arm does not take them."""
        stream, period, errors = self._stream, 1.0 / self.config.rate, 0
        assert stream is not None
        due = self.clock()
        while not self._ends.is_set():
            try:
                with self._arm_lock:
                    self.arm.send_action(stream.command(self.clock()))
                errors = 0
            except Exception as error:
                errors += 1
                if errors >= MAX_ERRORS:
                    logger.exception("The arm did not take %d commands in a row; no further ones are sent", errors)
                    self._error = error
                    return
            due += period
            wait = due - self.clock()
            if wait < -period:
                self._overruns += 1
                due = self.clock()
            elif wait > 0.0:
                self._ends.wait(wait)


def _limited(limits: Limits, given: dict[str, float]) -> Limits:
    """Return the smaller of limits and given ones, the same for all joints."""
    unknown = sorted(set(given) - set(LIMITS))
    if unknown or not all(value > 0.0 for value in given.values()):
        raise InputError(f"limits are {given}; numbers above zero for some of {', '.join(LIMITS)} are needed")
    return replace(limits, **{name: np.fmin(getattr(limits, name), value) for name, value in given.items()})

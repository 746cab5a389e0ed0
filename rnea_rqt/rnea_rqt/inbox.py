"""Messages that the window has not shown yet: filled by one thread, emptied by another."""

from __future__ import annotations

import threading
import time
from collections import deque

from rnea_rqt.data import Light, Motion, PolicyStatus, Robot, Sample, Update

MOST = 4000  # samples that are kept while the window does not read
WINDOW = 1.0  # s over which the rate is counted
LATE = 5.0  # s after which a diagnostic status is stale


class Inbox:
    """Messages with their arrival times by a monotonic clock."""

    def __init__(self, clock=time.monotonic):
        self._clock, self._lock = clock, threading.Lock()
        self.clear_samples()
        self._motion: Motion | None = None
        self._policy: PolicyStatus | None = None
        self._lights: dict[str, tuple[float, Light]] = {}

    def clear_samples(self) -> None:
        """Another node is watched."""
        with self._lock:
            self.robot: Robot | None = None
            self._fresh = False  # whether the robot has not been taken yet
            self._samples: deque[Sample] = deque(maxlen=MOST)
            self._arrivals: deque[float] = deque(maxlen=MOST)

    def put_robot(self, robot: Robot) -> None:
        with self._lock:
            self.robot, self._fresh = robot, True
            self._samples.clear()

    def put_sample(self, sample: Sample) -> None:
        with self._lock:
            self._samples.append(sample)
            self._arrivals.append(self._clock())

    def put_motion(self, motion: Motion) -> None:
        """Store a message; the newest one counts."""
        with self._lock:
            self._motion = motion

    def put_light(self, light: Light) -> None:
        with self._lock:
            self._lights[light.name] = self._clock(), light

    def put_policy(self, policy: PolicyStatus | None) -> None:
        """Store the status of a policy."""
        with self._lock:
            self._policy = policy

    def keep_lights(self, nodes: set[str]) -> None:
        """Keep the lights of these nodes; the others are no longer watched."""
        with self._lock:
            self._lights = {name: light for name, light in self._lights.items() if name.partition(":")[0] in nodes}

    def take(self) -> Update:
        """Everything since the last call."""
        with self._lock:
            now = self._clock()
            update = Update(self.robot if self._fresh else None, list(self._samples), self._motion)
            self._samples.clear()
            self._fresh, self._motion = False, None
            if self._arrivals:
                update.age = now - self._arrivals[-1]
            while self._arrivals and now - self._arrivals[0] > WINDOW and len(self._arrivals) > 1:
                self._arrivals.popleft()
            update.rate = len(self._arrivals) / WINDOW
            update.policy, self._policy = self._policy, None
            update.lights = tuple(light if now - arrived <= LATE else light._replace(level=3)
                                  for arrived, light in self._lights.values())
        return update

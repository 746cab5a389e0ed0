"""Bench of dynamics_node with a moving robot of any kind; it fails if a sample gets no result."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped

from rnea_msgs.msg import BaseDynamics, BaseStateStamped, JointDynamics
from rnea_ros import BaseState, PlatformMotion
from support.live_bench import LiveBench, fresh
from support.moving_robots import MovingLoops, MovingRobot, MovingTouched
from support.ros_helpers import RosDomain, stamp

TOUCHED = {"wrenches.names": ["wrist"], "wrenches.wrist.timeout": 10.0}


class MovingBench(LiveBench):
    """Bench whose stamps are the time of the motion. sent: number of samples; repeated: number of samples sent again, a step
    later, since their result or its inputs were lost.
    """

    def __init__(self, ros: RosDomain, moving: MovingRobot, folder: Path, step: float = 1e-3, passive: bool = False,
                 **parameters: Any):
        """Start the node. step: of the motion [s]; passive: whether passive joints are measured."""
        given = {"robot_description": moving.urdf, "robot_file": moving.file(folder), "base.timeout": 5.0}
        given |= moving.parameters
        if isinstance(moving, MovingTouched):
            given |= TOUCHED | {"wrenches.wrist.link": moving.link}
        super().__init__(ros, "seven_r", moving.joints, **given | parameters)
        self.moving, self.dt, self.sent, self.repeated, self._began, self._ticks = moving, step, 0, 0, self.clock, 0
        self._others, self._passive = self._publishers(), passive

    def _publishers(self) -> list[Any]:
        create = self.ros.node.create_publisher
        if self.moving.base:
            self._reported: list[BaseDynamics] = self.ros.listen(BaseDynamics, f"{self.node}/base_dynamics")
            return [create(BaseStateStamped, f"{self.node}/base_state", 10)]
        return [create(WrenchStamped, f"{self.node}/wrench/wrist", 10)] if isinstance(self.moving, MovingTouched) else []

    def met(self) -> MovingBench:
        """Wait for the model and the discovery of all publishers and subscriptions."""
        self.prepared()
        self.ros.until(lambda: all(publisher.get_subscription_count() for publisher in self._others))
        self.ros.until(self._once, what="no answer to the first state", of=self.process)
        return self

    def next(self) -> tuple[float, JointDynamics]:
        """Return the next time of the motion with a result, and the result; fail if there is none after several attempts."""
        before = self._ticks
        found = self.ros.until(self._once, what=f"no answer to samples from {before * self.dt} s on", of=self.process)
        self.sent += 1
        self.repeated += self._ticks - before - 1
        return self._ticks * self.dt, found

    def tick(self) -> float:
        self._ticks += 1
        self.clock = self._began + self._ticks * self.dt
        return self.clock

    def prepared_at(self, t: float) -> list[tuple[Any, Any]]:
        """Return publishers and messages of the sample at a time; the joint state is last."""
        moving, when = self.moving, stamp(self._began + t)
        beside = moving.beside(t)
        if self._passive and isinstance(moving, MovingLoops):
            beside = moving.passive(t)
        first: list[Any] = []
        if isinstance(moving, MovingTouched):
            first.append(touch(moving, t, when))
        elif moving.base:
            first.append(base_state(moving, t, when))
        return [*zip(self._others, first), *zip((self.desired, self.states), self.messages(moving.motion(t), beside, when))]

    def feed(self, pairs: list[tuple[Any, Any]]) -> None:
        """Publish a sample of any time at the next stamp and process received messages."""
        when = stamp(self.tick())
        for publisher, message in pairs:
            message.header.stamp = when
            publisher.publish(message)
        self.ros.step(0.0)

    def _once(self) -> JointDynamics | None:
        """Return the result, or None if it or its inputs were lost or late."""
        *before, (states, state) = self.prepared_at((self._ticks + 1) * self.dt)
        for publisher, message in before:
            publisher.publish(message)
        self.ros.spin(0.001)
        self.tick()
        states.publish(state)
        found, (_, wanted) = self.answer(state.header.stamp, timeout=2.0), before[-1]
        count = len(self.joints)
        if found is None or not fresh(found, wanted.acceleration[:count], wanted.jerk[:count]):
            return None
        if isinstance(self.moving, MovingTouched) and any(found.input_age):
            return None
        return found if not self.moving.base or self._reported_about(before[0][1]) else None

    def _reported_about(self, given: BaseStateStamped) -> bool:
        """Return whether the reported base motion is this state."""
        end = time.monotonic() + 1.0
        while not (self._reported and self._reported[-1].header.stamp == given.header.stamp) and time.monotonic() < end:
            self.ros.step(0.005)
        return bool(self._reported) and self._reported[-1].header.stamp == given.header.stamp and \
            (self._reported[-1].state == given.state or self.moving.parameters.get("base.motion_source") == "free")


class PlatformsBench(MovingBench):
    """Bench that publishes the motion of all platforms instead of joint states."""

    moving: Any  # with `platforms` and `robot`, as of moving_mechanisms.MovingMechanism

    def _publishers(self) -> list[Any]:
        links = self.moving.robot.platforms
        names = ["platform_state"] if len(links) == 1 else [f"platform_state/{link}" for link in links]
        return [self.ros.node.create_publisher(BaseStateStamped, f"{self.node}/{name}", 10) for name in names]

    def prepared_at(self, t: float) -> list[tuple[Any, Any]]:
        """Publishers and messages of the sample at a time."""
        platforms, when = self.moving.platforms(t), stamp(self._began + t)
        messages = [platform_state(platforms[link], when) for link in self.moving.robot.platforms]
        return list(zip(self._others, messages, strict=True))

    def _once(self) -> JointDynamics | None:
        pairs = self.prepared_at((self._ticks + 1) * self.dt)
        self.tick()
        for publisher, message in pairs:
            publisher.publish(message)
        return self.answer(pairs[-1][1].header.stamp, timeout=2.0)


def platform_state(platform: PlatformMotion, when: Time) -> BaseStateStamped:
    """Motion of a platform, with its twist and what follows along its axes."""
    R = np.asarray(platform.rotation)
    base = BaseState(platform.position, pin.Quaternion(R).coeffs(), *(
        np.concatenate((R.T @ six[:3], R.T @ six[3:])) for six in platform[2:]))
    return base_message(base, when)


def touch(moving: MovingTouched, t: float, when: Time) -> WrenchStamped:
    found = WrenchStamped()
    found.header.stamp = when
    fill(found.wrench.force, found.wrench.torque, moving.wrench(t))
    return found


def base_state(moving: MovingRobot, t: float, when: Time) -> BaseStateStamped:
    assert moving.base
    return base_message(moving.base(t), when)


def base_message(base: BaseState, when: Time) -> BaseStateStamped:
    found = BaseStateStamped()
    found.header.stamp = when
    p, o, state = found.state.pose.position, found.state.pose.orientation, found.state
    p.x, p.y, p.z = map(float, base.position)
    o.x, o.y, o.z, o.w = map(float, base.quaternion)
    for part, six in ((state.twist, base.velocity), (state.acceleration, base.acceleration), (state.jerk, base.jerk)):
        fill(part.linear, part.angular, six)
    return found


def fill(first: Any, second: Any, six: np.ndarray) -> None:
    """Set two vectors of a message."""
    first.x, first.y, first.z, second.x, second.y, second.z = map(float, six)

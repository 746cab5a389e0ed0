"""Peers of ChunkExecutor: how chunks of a policy become commands of a controller at 1 kHz elsewhere, re-implemented.

Each is a function of (stream, arm) -> commands (samples, n), STEP apart from time 0, and processor time [s] per chunk. A chunk
that is not finite or of another length is left out: every peer has that check here. Points of passed time are skipped.

    per-step clamp      LeRobot's ensure_safe_goal_position: in each period of the policy, the present action of the newest
                        chunk, at most MAX_STEP from the last command; a straight line between two commands
    EMA and clamp       the same of an exponential mean (lerobot#3794)
    clamp of a chunk    bounds, step and change of step along each chunk (lerobot#4241)
    JTC upsampling      a cubic spline from the present command through the chunk, at rest at both ends (ros2_controllers#2573)
    Ruckig              tracks the present action of the newest chunk with limits of velocity, acceleration and jerk
    TOPP-RA             slows each chunk, from the present command and velocity, for limits of velocity, acceleration, torque
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

from support.chunk_streams import Arm, ArrivingChunk, Stream

STEP = 1e-3  # s
MAX_STEP = 0.05  # rad in a period of the policy; a value of LeRobot's examples
SMOOTHING = 0.4  # weight of the newest action in the mean
Peer = Callable[[Stream, Arm], tuple[np.ndarray, list[float]]]


def _instants(stream: Stream) -> np.ndarray:
    return np.arange(0.0, stream.duration, STEP)


def _is_usable(sent: ArrivingChunk, n: int) -> bool:
    return sent.positions.shape[1] == n and bool(np.isfinite(sent.positions).all())


def _arrivals(stream: Stream, until: float, waiting: list[ArrivingChunk], n: int) -> Iterator[ArrivingChunk]:
    """Yield usable chunks that have arrived."""
    while waiting and waiting[0].arrival <= until:
        sent = waiting.pop(0)
        if _is_usable(sent, n):
            yield sent


def _action(sent: ArrivingChunk, t: float) -> np.ndarray:
    """Return what a chunk says for a time: the last point behind its end."""
    return sent.positions[min(max(round((t - sent.stamp) / sent.period), 0), len(sent.positions) - 1)]


def _by_period(stream: Stream, arm: Arm, command: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[np.ndarray, list]:
    """Return straight lines between commands, one in each period: command(last, action)."""
    period, waiting, newest, costs = stream.chunks[0].period, [*stream.chunks], None, []
    times, points = [0.0], [stream.start]
    for k in range(1, int(stream.duration / period) + 2):
        began = time.thread_time()
        for sent in _arrivals(stream, k * period, waiting, len(stream.start)):
            newest = sent
            costs.append(0.0)
        points.append(command(points[-1], points[-1] if newest is None else _action(newest, k * period)))
        times.append(k * period)
        if costs:
            costs[-1] += time.thread_time() - began
    t = _instants(stream)
    return np.stack([np.interp(t, times, column) for column in np.array(points).T], axis=1), costs


def as_sent(stream: Stream, arm: Arm) -> tuple[np.ndarray, list[float]]:
    """Return straight lines between the present actions of the newest chunk, without any limit; not one of PEERS."""
    return _by_period(stream, arm, lambda last, action: action)


def per_step_clamp(stream: Stream, arm: Arm) -> tuple[np.ndarray, list[float]]:
    return _by_period(stream, arm, lambda last, action: last + np.clip(action - last, -MAX_STEP, MAX_STEP))


def ema_and_clamp(stream: Stream, arm: Arm) -> tuple[np.ndarray, list[float]]:
    return _by_period(stream, arm, lambda last, action: last + np.clip(SMOOTHING * (action - last), -MAX_STEP, MAX_STEP))


def _replaced(stream: Stream, arm: Arm, prepare: Callable[[ArrivingChunk, float, np.ndarray, np.ndarray], Callable]
              ) -> tuple[np.ndarray, list[float]]:
    """Return commands by functions of time that each chunk replaces: prepare(chunk, now, position, velocity)."""
    t, waiting, costs = _instants(stream), [*stream.chunks], []
    found = np.empty((len(t), len(stream.start)))
    current: Callable = lambda times: np.broadcast_to(stream.start, (len(times), len(stream.start)))  # noqa: E731
    filled = 0
    for k, now in enumerate(t.tolist()):
        for sent in _arrivals(stream, now, waiting, len(stream.start)):
            found[filled:k + 1], filled = current(t[filled:k + 1]), k
            velocity = (found[k] - found[k - 1]) / STEP if k else np.zeros(len(stream.start))
            began = time.thread_time()
            if sent.stamp + (len(sent.positions) - 2) * sent.period > now:
                current = prepare(sent, now, found[k].copy(), velocity)
            costs.append(time.thread_time() - began)
    found[filled:] = current(t[filled:])
    return found, costs


def _ahead(sent: ArrivingChunk, now: float) -> tuple[np.ndarray, np.ndarray]:
    """Return times and positions of the points that have not passed, half a period ahead at least."""
    times = sent.stamp + sent.period * np.arange(len(sent.positions))
    ahead = times > now + 0.5 * sent.period
    return times[ahead], sent.positions[ahead]


def clamp_of_a_chunk(stream: Stream, arm: Arm) -> tuple[np.ndarray, list[float]]:
    def prepare(sent: ArrivingChunk, now: float, q: np.ndarray, qd: np.ndarray) -> Callable:
        times, positions = _ahead(sent, now)
        most = arm.limits.velocity * sent.period
        change = arm.limits.acceleration * sent.period**2
        points, last, step = [q], q, qd * sent.period
        for point in np.clip(positions, arm.limits.lower, arm.limits.upper):
            step = np.clip(np.clip(point - last, -most, most), step - change, step + change)
            last = last + step
            points.append(last)
        knots, made = np.concatenate(([now], times)), np.array(points)
        return lambda t: np.stack([np.interp(t, knots, column) for column in made.T], axis=1)

    return _replaced(stream, arm, prepare)


def jtc_upsampling(stream: Stream, arm: Arm) -> tuple[np.ndarray, list[float]]:
    def prepare(sent: ArrivingChunk, now: float, q: np.ndarray, qd: np.ndarray) -> Callable:
        times, positions = _ahead(sent, now)
        spline = CubicSpline(np.concatenate(([now], times)), np.concatenate((q[None], positions)), bc_type="clamped")
        return lambda t: spline(np.minimum(t, times[-1]))

    return _replaced(stream, arm, prepare)


def ruckig_tracking(stream: Stream, arm: Arm) -> tuple[np.ndarray, list[float]]:
    import ruckig

    n = len(stream.start)
    online, given, made = ruckig.Ruckig(n, STEP), ruckig.InputParameter(n), ruckig.OutputParameter(n)
    given.current_position, given.current_velocity, given.current_acceleration = stream.start.tolist(), [0.0] * n, [0.0] * n
    limits = [getattr(arm.limits, name) for name in ("velocity", "acceleration", "jerk")]
    given.max_velocity, given.max_acceleration, given.max_jerk = (limit.tolist() for limit in limits)
    waiting, newest, costs, found = [*stream.chunks], None, [], []
    given.target_position, given.target_velocity = stream.start.tolist(), [0.0] * n
    for now in _instants(stream).tolist():
        found.append(list(given.current_position))
        began = time.thread_time()
        for sent in _arrivals(stream, now, waiting, n):
            newest = sent
            costs.append(0.0)
        if newest is not None:
            x = (now - newest.stamp) / newest.period
            k = min(max(int(x), 0), len(newest.positions) - 2)
            step = newest.positions[k + 1] - newest.positions[k]
            over = x >= len(newest.positions) - 1
            velocity = np.clip(step / newest.period, -0.95 * arm.limits.velocity, 0.95 * arm.limits.velocity)
            given.target_position = (newest.positions[k] + min(x - k, 1.0) * step).tolist()
            given.target_velocity = [0.0] * n if over else velocity.tolist()
        try:
            online.update(given, made)
            made.pass_to_input(given)
        except ruckig.RuckigError:  # a state that rounding put beyond a limit: it goes on without a new plan
            given.target_velocity = [0.0] * n
            given.current_velocity = np.clip(given.current_velocity, -limits[0], limits[0]).tolist()
            given.current_acceleration = np.clip(given.current_acceleration, -limits[1], limits[1]).tolist()
        if costs:
            costs[-1] += time.thread_time() - began
    return np.array(found), costs


def toppra_of_a_chunk(stream: Stream, arm: Arm) -> tuple[np.ndarray, list[float]]:
    import toppra

    logging.getLogger("toppra").setLevel(logging.CRITICAL)
    n, data, limits = len(stream.start), arm.model.createData(), arm.limits

    def torque(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return np.append(pin.rnea(arm.model, data, q[:n], qd[:n], qdd[:n]), 0.0)

    def both(limit: np.ndarray, more: float) -> np.ndarray:
        limit = np.append(limit, more)
        return np.stack((-limit, limit), axis=1)

    def prepare(sent: ArrivingChunk, now: float, q: np.ndarray, qd: np.ndarray) -> Callable:
        """One more joint, with a velocity limit of 1, is the policy's time: no path is faster than it."""
        times, positions = _ahead(sent, now)
        knots = np.concatenate(([now], times)) - now
        points = np.concatenate((np.concatenate((q[None], positions)), knots[:, None]), axis=1)
        path = toppra.SplineInterpolator(knots, points)
        start = path(0.0, 1)[:n]
        speed = float(np.clip(qd @ start / max(start @ start, 1e-9), 0.0, 1.0))
        constraints = [toppra.constraint.JointVelocityConstraint(both(limits.velocity, 1.0)),
                       toppra.constraint.JointAccelerationConstraint(both(limits.acceleration, 1e3)),
                       toppra.constraint.JointTorqueConstraint(torque, both(limits.effort, 1e6), np.zeros(n + 1))]
        solver = toppra.algorithm.TOPPRA(constraints, path, gridpoints=np.linspace(0.0, knots[-1], 61),
                                         parametrizer="ParametrizeConstAccel")
        for first in (speed, 0.0):
            law = solver.compute_trajectory(first, 0.0)
            if law is not None:
                return lambda t: law(np.clip(t - now, 0.0, law.duration))[:, :n]
        return lambda t: np.broadcast_to(q, (len(t), n))  # infeasible: it stops

    return _replaced(stream, arm, prepare)


PEERS: dict[str, Peer] = {"per-step clamp": per_step_clamp, "EMA and clamp": ema_and_clamp,
                          "clamp of a chunk": clamp_of_a_chunk, "JTC upsampling": jtc_upsampling, "Ruckig": ruckig_tracking,
                          "TOPP-RA": toppra_of_a_chunk}

"""Monitors of an executed motion: does the robot, and does its controller, follow the references?

`TrackingMonitor` compares measured joint states with the references. A robot is behind its references: its controller needs a
moment, and joint states are older still. A measured position is therefore compared with the references of the last `lag`
seconds before its stamp, and the tracking error is the distance from the nearest of them, joint by joint: a robot that merely
lags has no error. Above `watch.tolerance` the monitor reduces the speed in steps of a tenth, down to one tenth near the path
tolerance, beyond which the motion is stopped. It also reduces the speed by one step whenever a motor is saturated and its
joint loses tracking. Speed returns one step at a time, within `watch.recovery` from nothing to all: what a motor could not
do a moment ago it cannot do in the next bend either. After the last reference it waits until the robot is inside the goal's
tolerances, or the goal time is over.

`SentTrajectoryMonitor` and `SentReferenceMonitor` compare the reference that a controller reports with what it was sent:
trajectories, or single points.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..model.drives import utilizations
from ..model.tree import Limits
from ..robots.robot import Robot
from ..trajectory.trajectory_scaler import Reference
from .controller import TrajectorySpline
from .goal import TOLERANCE_FIELDS, Goal, Outcome, resolve_tolerances
from .joint_states import MAX_LAG_S, Measurement, PositionHistory, continuous_joints, unwrap_to

GOAL_TOLERANCE = "goal_tolerance"  # reason of a motion whose robot did not reach its goal


@dataclass(frozen=True)
class MonitorOptions:
    """Options of a TrackingMonitor.

    tolerance         : tracking error from which the motion is slowed; 0 disables it [rad, m]
    lag_s             : time by which the robot may be behind the references [s]
    recovery_s        : time in which the speed returns from nothing to all [s]
    effort_share      : share of the effort limits that motions are planned with; the rest is a reserve for feedback
    change_delay_s    : time until a change of the speed is effective [s]
    period_ns         : time between two comparisons [ns]
    speed_steps       : number of steps in which the speed is changed
    min_speed_steps   : steps that remain until the motion is stopped
    max_error_ratio   : error as a multiple of the tolerance at which the least speed is reached, if the path tolerance is not
                        nearer
    saturation_ns     : time for which a motor must be saturated [ns]
    lost_share        : share of the tolerance, or of the lag, by which a saturated joint loses tracking within that time
    prediction_s      : time over which the error is extrapolated [s]
    smoothing_s       : time constant of the error's rate [s]
    max_stamp_lead_ns : time by which a stamp may be later than now [ns]
    max_stamp_age_ns  : time by which a stamp may be earlier than now [ns]
    """

    tolerance: float
    lag_s: float
    recovery_s: float
    effort_share: float = 1.0
    change_delay_s: float = 0.0
    period_ns: int = 4_000_000
    speed_steps: int = 10
    min_speed_steps: int = 1
    max_error_ratio: float = 4.0
    saturation_ns: int = 50_000_000
    lost_share: float = 0.1
    prediction_s: float = 0.1
    smoothing_s: float = 0.01
    max_stamp_lead_ns: int = 50_000_000
    max_stamp_age_ns: int = 1_000_000_000

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], change_delay_s: float = 0.0) -> MonitorOptions:
        """Return the options that the node's parameters set."""
        return cls(parameters["watch.tolerance"], parameters["watch.lag"], parameters["watch.recovery"],
                   parameters.get("limits_share.effort", 1.0), change_delay_s)

    @property
    def recovery_step_ns(self) -> float:
        """Time between two steps in which the speed returns [ns]."""
        return self.recovery_s * 1e9 / self.speed_steps


# -------------------------------------------------------------------------------------------------- references that were sent


class TrackingError(NamedTuple):
    """Deviation of a robot from its references.

    position : nearest reference minus measured position (n,), NaN where not measured [rad, m]
    lag      : time between the nearest reference and the stamp [s]
    velocity : velocity of the nearest reference minus measured velocity (n,), NaN where not measured
    """

    position: np.ndarray
    lag: float
    velocity: np.ndarray


class SentReferences:
    """Ring of the last references of n joints, with the times at which they were sent."""

    CAPACITY = 2048  # references that are kept at least: a second at 2 kHz
    LAG_SAMPLES = 16  # number of straight segments by which the references within the lag are approximated
    MAX_GAP_S = 0.2  # longest time between two references for an interpolation

    def __init__(self, n: int):
        self._times, self._motion = np.zeros(2 * self.CAPACITY, dtype=np.int64), np.zeros((2, 2 * self.CAPACITY, n))
        self._count = 0
        self._set_back_at = -math.inf  # time to which the clock was set back last [ns]

    def add(self, now: int, q: np.ndarray, qd: np.ndarray) -> None:
        """Append a reference sent at time now [ns]. Those before are dropped where the clock has been set back."""
        if self._count and now <= self._times[self._count - 1]:
            self._count, self._set_back_at = 0, now
        if self._count == len(self._times):
            half = self.CAPACITY
            self._times[:half], self._motion[:, :half] = self._times[half:], self._motion[:, half:]
            self._count = half
        self._times[self._count], self._motion[:, self._count] = now, (q, qd)
        self._count += 1

    @property
    def begin(self) -> int:
        """Time of the oldest reference [ns]; the largest integer if there is none."""
        return int(self._times[0]) if self._count else np.iinfo(np.int64).max

    def at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return q and qd (m, n) at times (m, n) [ns] of each joint, by cubic interpolation, constant beyond the ends.

        None if two references are more than MAX_GAP_S apart there.
        """
        if self._count < 2:
            return None
        known, joints = self._times[:self._count], np.arange(times.shape[1])
        k = np.clip(known.searchsorted(times, side="right"), 1, self._count - 1)
        h = (known[k] - known[k - 1]) * 1e-9
        if h.max() > self.MAX_GAP_S:
            return None
        x = np.clip((times - known[k - 1]) * 1e-9 / h, 0.0, 1.0)
        (a, va), (b, vb) = (self._motion[:, index, joints] for index in (k - 1, k))
        c2, c3 = 3.0 * (b - a) - h * (2.0 * va + vb), 2.0 * (a - b) + h * (va + vb)  # cubic Hermite coefficients
        return a + x * (h * va + x * (c2 + x * c3)), va + x * (vb - va)

    def tracking_error(self, stamps: np.ndarray, q: np.ndarray, qd: np.ndarray, lag: float,
                       continuous: np.ndarray) -> TrackingError | None:
        """Return the error of a robot that was at q with qd at stamps [ns], (n,) each, NaN where unknown.

        None if the references do not cover these stamps.

        lag        : time by which the robot may be behind its references [s]
        continuous : joints (n,) that may be wrapped
        """
        known = np.isfinite(q)
        if not known.any() or (first := stamps[known].min()) < self.begin or first - lag * 1e9 < self._set_back_at:
            return None
        stamps = np.where(known, stamps, stamps.max())
        delays = np.linspace(0.0, lag, self.LAG_SAMPLES + 1)
        found = self.at(stamps - np.round(delays * 1e9).astype(np.int64)[:, None])
        if found is None:
            return None
        positions, velocities = found
        difference = positions - unwrap_to(q, positions[0], continuous)
        # nearest point on each of the straight segments between the sampled references
        start, segment = np.nan_to_num(difference), np.where(known, np.diff(positions, axis=0), 0.0)
        x = np.clip(-(start[:-1] * segment).sum(axis=1) / np.maximum((segment * segment).sum(axis=1), 1e-300), 0.0, 1.0)
        error = start[:-1] + x[:, None] * segment
        k = int((error * error).sum(axis=1).argmin())
        return TrackingError(np.where(known, error[k], np.nan), float(delays[k] + x[k] * delays[1]), velocities[k] - qd)


class SaturationDetector:
    """Detector of saturated motors: measured efforts against the limits of joints and their drives.

    Call with a measurement; returns a mask (n,) of the joints whose motor is at a limit of its torque, current, voltage or
    speed.
    """

    SATURATED = 0.98  # share of a limit at which a motor counts as saturated

    def __init__(self, robot: Robot, limits: Limits, effort_share: float = 1.0):
        """effort_share: share of the motors' efforts that `limits` are."""
        self._robot, self._effort = robot, limits.effort / effort_share
        self._drives = [limit for limit in robot.drive_limits if len(limit.joints) == 1 and limit.effort]
        self._joints = np.array([limit.joints[0] for limit in self._drives], dtype=int)
        self._convention = robot.tree.model.efforts.measured

    def __call__(self, measured: Measurement) -> np.ndarray:
        torque = self._motor_torque(measured)
        with np.errstate(invalid="ignore"):
            saturated = np.abs(torque) >= self.SATURATED * self._effort
        if self._drives and np.isfinite(torque).any():
            tau, qd = np.nan_to_num(torque), np.nan_to_num(measured.qd)
            used = utilizations(self._drives, tau, np.zeros_like(tau), qd)
            np.logical_or.at(saturated, self._joints, used >= self.SATURATED)
        return saturated

    def _motor_torque(self, measured: Measurement) -> np.ndarray:
        """Return the whole torque of the motors (n,), NaN where unknown."""
        if self._convention.plain:
            return measured.effort
        if not self._robot.is_fixed_tree or not np.isfinite(measured[1:]).all():
            return np.full(len(measured.q), np.nan)
        return self._robot.measured_torque(measured.effort, measured.q, measured.qd)


# ------------------------------------------------------------------------------------------------------ does the robot follow


class TrackingStatus(NamedTuple):
    """Reported tracking: the joint with the largest error, this error [rad, m], and the lag of the robot [s]."""

    error: float = math.nan
    joint: str = ""
    lag: float = math.nan


class _Saturation(NamedTuple):
    """Time since which motors are saturated [ns], errors (n,) and lag [s] then."""

    since: int
    error: np.ndarray
    lag: float


class TrackingMonitor:
    """Tracking monitor for one executed motion.

    status    : newest tracking error
    violation : why the motion must stop; empty if it may go on
    outcome   : outcome once the last reference is sent: the robot is inside the goal's tolerances, or was not in time; None
                while it may still come
    problem   : why the robot cannot be monitored; empty if it can, or is not to be
    """

    def __init__(self, robot: Robot, limits: Limits, goal: Goal, parameters: Mapping[str, Any],
                 change_delay: float = 0.0):
        """change_delay: time until a change of the speed is effective [s]."""
        n, self._names = len(robot.joint_names), robot.joint_names
        self._units = ["m" if kind == "prismatic" else "rad" for kind in robot.joint_types]
        self.options = options = MonitorOptions.from_parameters(parameters, change_delay)
        self._tolerances = resolve_tolerances(goal.tolerances, n, parameters)
        path_tolerance = self._tolerances.path[0]
        # the speed falls from all to the least between these two errors
        self._slow_error = (np.minimum(options.tolerance, 0.5 * path_tolerance) if options.tolerance else np.full(n, np.inf))
        self._max_error = np.minimum(path_tolerance, options.max_error_ratio * self._slow_error)
        self._sent, self.status = SentReferences(n), TrackingStatus()
        self._speed_steps, self._changed_at, self._compared_at = options.speed_steps, 0, 0
        self._error, self._error_rate = np.zeros((2, n))  # rad, m; rad/s, m/s
        self._saturated: _Saturation | None = None
        self._peak_error, self._worst = 0.0, (0, 0.0, 0.0)  # worst: joint, its error now and as predicted
        self._updated_at = self._last_sent_at = 0  # time of the last update, time at which the last reference was sent [ns]
        self.violation = self.problem = ""
        self.outcome: Outcome | None = None
        self.set_robot(robot, limits)

    def set_robot(self, robot: Robot, limits: Limits) -> None:
        """Use another payload or other limits from now on."""
        self._continuous = continuous_joints(robot.joint_types, limits)
        self._saturation = SaturationDetector(robot, limits, self.options.effort_share)

    @property
    def speed_share(self) -> float:
        """Share of the speed that the motion may have."""
        return self._speed_steps / self.options.speed_steps

    def diagnostics(self) -> dict[str, object]:
        """Return values for /diagnostics."""
        return {"tracking.error": f"{self.status.error:.5f}", "tracking.joint": self.status.joint,
                "tracking.lag_s": f"{self.status.lag:.4f}", "tracking.peak": f"{self._peak_error:.5f}",
                "tracking.share": f"{self.speed_share:g}"}

    def update(self, reference: Reference, measured: Measurement, now: int) -> Iterator[tuple[bool, str]]:
        """Compare a reference sent at time now [ns] with the latest joint states. Yields (is_ok, message) of each change."""
        before, all_steps = self._speed_steps, self.options.speed_steps
        if now < self._updated_at:  # the clock was set back
            self._compared_at = self._changed_at = self._last_sent_at = 0
        self._updated_at = now
        self._sent.add(now, reference.q, reference.qd)
        self._compare(measured, now)
        if before == all_steps > self._speed_steps:
            yield False, f"is slowed: {self._slowing_cause()}"
        if before < all_steps == self._speed_steps:
            yield True, "has its full speed again"
        if reference.done:
            self._check_goal(reference, measured, now)

    # ---------------------------------------------------------------- during the motion

    def _compare(self, measured: Measurement, now: int) -> None:
        newest = int(measured.stamps.max(initial=0))
        self.problem = self._stamp_problem(newest, now)
        if self.problem or newest < max(self._compared_at + self.options.period_ns, self._sent.begin):
            return
        tracking = self._sent.tracking_error(*measured[:3], self.options.lag_s, self._continuous)
        if tracking is None:
            return
        error = np.abs(np.nan_to_num(tracking.position))
        predicted = self._predict(error, newest)
        worst = int(error.argmax())
        self._peak_error = max(self._peak_error, float(error[worst]))
        self.status = TrackingStatus(float(error[worst]), self._names[worst], tracking.lag)
        self._check_path_tolerance(error, np.abs(np.nan_to_num(tracking.velocity)))
        with np.errstate(invalid="ignore"):  # joints without tolerances
            excess = np.fmax((predicted - self._slow_error) / (self._max_error - self._slow_error), 0.0)
        joint, wanted = int(excess.argmax()), self.options.speed_steps * (1.0 - float(excess.max()))
        self._worst = joint, float(error[joint]), float(predicted[joint])
        if self._is_losing_tracking(error, measured, newest):
            wanted = min(wanted, self._speed_steps - 1)
        self._set_speed(max(math.floor(wanted), self.options.min_speed_steps), newest)

    def _predict(self, error: np.ndarray, newest: int) -> np.ndarray:
        """Return the errors (n,) extrapolated by their smoothed rates; falling errors are not extrapolated."""
        dt, options = (newest - self._compared_at) * 1e-9, self.options
        self._error_rate += ((error - self._error) / dt - self._error_rate) * dt / (dt + options.smoothing_s)
        self._compared_at, self._error = newest, error
        return error + (options.prediction_s + options.change_delay_s) * np.maximum(self._error_rate, 0.0)

    def _slowing_cause(self) -> str:
        """Return why the motion was slowed just now."""
        joint, error, predicted = self._worst
        unit, allowed = self._units[joint], self._slow_error[joint]
        if predicted <= allowed:
            return "a motor is saturated, and its joint loses tracking"
        return (f"the tracking error of {self._names[joint]} is {error:.4g} {unit} and will soon be {predicted:.4g} {unit}, "
                f"{allowed:.4g} are allowed (watch.tolerance)")

    def _stamp_problem(self, newest: int, now: int) -> str:
        """Return what is wrong with the stamp of the newest joint state [ns], 0 if there is none."""
        ahead = newest - now
        if not newest or -self.options.max_stamp_age_ns < ahead < self.options.max_stamp_lead_ns:
            return ""
        side = "ahead of" if ahead > 0 else "behind"
        return f"joint states are stamped {abs(ahead) * 1e-9:.3f} s {side} this node's clock: the robot is not monitored"

    def _check_path_tolerance(self, *errors: np.ndarray) -> None:
        """Set `violation` if errors (n,) of positions, velocities exceed the path tolerance."""
        for row, error, per in zip(range(len(errors)), errors, ("", "/s")):
            allowed = self._tolerances.path[row]
            joint = int((error / allowed).argmax())
            if error[joint] > allowed[joint]:
                unit = self._units[joint] + per
                self.violation = self.violation or (
                    f"the {TOLERANCE_FIELDS[row]} of {self._names[joint]} is {error[joint]:.4g} {unit} off its path, "
                    f"{allowed[joint]:.4g} {unit} allowed (path_tolerance), and the robot {self.status.lag:.3f} s behind")

    def _is_losing_tracking(self, error: np.ndarray, measured: Measurement, now: int) -> bool:
        """Return whether, while a motor was saturated for `saturation_ns`, its error grew, or the lag of the robot."""
        saturated, lag, options = self._saturation(measured), self.status.lag, self.options
        if not saturated.any():
            self._saturated = None
        elif self._saturated is None:
            self._saturated = _Saturation(now, error, lag)
        elif now - self._saturated.since >= options.saturation_ns:
            growth, lag_growth = error - self._saturated.error, lag - self._saturated.lag
            lost = ((saturated & (growth > options.lost_share * self._slow_error)).any()
                    or lag_growth > options.lost_share * options.lag_s)
            self._saturated = _Saturation(now, error, lag)
            return bool(lost)
        return False

    def _set_speed(self, wanted: int, now: int) -> None:
        """Reduce the speed to the wanted steps at once, or raise it by one step when it is time."""
        if now - self._changed_at < 0.5e9 * self.options.change_delay_s:
            return
        if wanted < self._speed_steps:
            self._speed_steps, self._changed_at = wanted, now
        elif wanted > self._speed_steps and now - self._changed_at >= self.options.recovery_step_ns:
            self._speed_steps, self._changed_at = self._speed_steps + 1, now

    # ---------------------------------------------------------------- after the last reference

    def _check_goal(self, reference: Reference, measured: Measurement, now: int) -> None:
        """Set `outcome` once the robot is inside the goal tolerances, or the goal time is over."""
        self._last_sent_at = self._last_sent_at or now
        allowed = self._tolerances.goal
        with np.errstate(invalid="ignore"):
            error = np.abs(np.stack((unwrap_to(measured.q, reference.q, self._continuous) - reference.q, measured.qd)))
            outside = np.isfinite(allowed[:2]) & ~((error <= allowed[:2]) & (measured.stamps > self._last_sent_at))
        if not outside.any():
            self.outcome = Outcome()
        if self.outcome is not None or now - self._last_sent_at < self._tolerances.time * 1e9:
            return
        row, joint = np.argwhere(outside)[0].tolist()
        value, unit = error[row, joint], self._units[joint] + ("", "/s")[row]
        state = "is unknown" if math.isnan(value) else f"is {value:.4g} {unit} off"
        self.outcome = Outcome(GOAL_TOLERANCE, f"{self._tolerances.time:g} s after the last reference the "
                               f"{TOLERANCE_FIELDS[row]} of {self._names[joint]} {state}, {allowed[row, joint]:.4g} {unit} "
                               "allowed (goal_tolerance)")


# ------------------------------------------------------------------------------------------------- does the controller follow


class _SentTrajectory:
    """Trajectory that was sent, and the time at which it leaves the one before [s]."""

    def __init__(self, splice_time: float, times: np.ndarray, *motion: np.ndarray):
        self.splice_time, self.begin, self._points = splice_time, float(times[0]), (times, *motion)

    @cached_property
    def _spline(self) -> TrajectorySpline:
        return TrajectorySpline(*self._points)

    def at(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return position and velocity (n,)."""
        q, qd = self._spline(t, 2)
        return q, qd


class PlaybackReport(NamedTuple):
    """Playback of a controller: time for which it has lacked the trajectory that it should play [s]; whether it plays none."""

    late: float = 0.0
    off_trajectory: bool = False


class SentTrajectoryMonitor:
    """Monitor of a controller that executes trajectories: which of those that were sent does it play?

    Each trajectory continues the one before up to its splice time. The controller plays the newest that it has. If it still
    plays an older one after the splice time, the newer one arrived too late, and the controller jumps when it takes it over.
    If it plays none, it rejected a trajectory, or is commanded by another sender.

    A controller reports where it will be a moment after the stamp, mostly one update later. This lead and its variation are
    estimated while all trajectories agree.
    """

    KEPT = 8  # trajectories
    LEAD_SAMPLES, MIN_LEAD_SAMPLES = 16, 4  # that are stored, and needed for an estimate of the lead
    MAX_LEAD_S, MIN_LEAD_VARIATION_S = 0.02, 1e-3
    SETTLING_S = 0.2  # after a splice, within which the lead is not estimated
    ON_TRAJECTORY_TOL, OFF_TRAJECTORY_TOL = 1e-4, 1e-3  # rad, m
    MIN_SPEED = 1e-3  # rad/s, m/s; of a reference for an estimate of the lead

    def __init__(self, q: np.ndarray):
        """Monitor a motion that begins at rest at q (n,); times are from its beginning [s]."""
        self._sent: tuple[_SentTrajectory, ...] = (
            _SentTrajectory(-math.inf, np.array([-1.0, 0.0]), np.stack((q, q))),)
        self._leads: deque[float] = deque(maxlen=self.LEAD_SAMPLES)
        self._lead, self._variation = 0.0, self.MAX_LEAD_S
        self._received = self._reported = -math.inf  # splice times of the newest one received in time, and reported as late

    def add_trajectory(self, splice_time: float, times: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        """Add points (samples,), (samples, n) that leave the trajectory before at a time [s].

        May be called by another thread than `on_controller_state`.
        """
        self._sent = (*self._sent[1 - self.KEPT:], _SentTrajectory(splice_time, times, q, qd, qdd))

    def on_controller_state(self, t: float, q: np.ndarray) -> PlaybackReport:
        """Judge the reference q (n,), NaN where unknown, that the controller reports at time t [s].

        Lateness is reported once.
        """
        sent = self._sent
        newest = sent[-1]
        if t < max(newest.begin, 0.0):
            return PlaybackReport()
        error, allowed = self._error(newest, t, q)
        if error <= self.ON_TRAJECTORY_TOL + allowed:
            if self._received < newest.splice_time and not self._fits(sent[-2], t, q):
                self._received = newest.splice_time
            if not newest.splice_time < t < newest.splice_time + self.SETTLING_S:
                self._update_lead(newest, t, q)
            return PlaybackReport()
        for old, missing in zip(sent[-2::-1], sent[:0:-1]):
            if missing.splice_time <= self._received:
                break
            if t > missing.splice_time and self._fits(old, t, q):
                late = t - missing.splice_time if missing.splice_time > self._reported else 0.0
                self._reported = max(missing.splice_time, self._reported)
                return PlaybackReport(late)
        off_trajectory = error > self.OFF_TRAJECTORY_TOL + allowed
        # a controller that crosses an old trajectory on its way back is not late
        self._received = newest.splice_time if off_trajectory else self._received
        return PlaybackReport(off_trajectory=off_trajectory)

    def _fits(self, trajectory: _SentTrajectory, t: float, q: np.ndarray) -> bool:
        error, allowed = self._error(trajectory, t, q)
        return error <= self.ON_TRAJECTORY_TOL + allowed

    def _error(self, trajectory: _SentTrajectory, t: float, q: np.ndarray) -> tuple[float, float]:
        """Return the distance of a reference from a trajectory, and how much the variation of the lead explains."""
        position, velocity = trajectory.at(t + self._lead)
        return _norm(q - position), self._variation * max(_norm(velocity), _norm(trajectory.at(t)[1]))

    def _update_lead(self, trajectory: _SentTrajectory, t: float, q: np.ndarray) -> None:
        position, velocity = trajectory.at(t)
        square = float(velocity @ velocity)
        if square < self.MIN_SPEED * self.MIN_SPEED:
            return
        self._leads.append(float(np.nan_to_num(q - position) @ velocity) / square)
        if len(self._leads) >= self.MIN_LEAD_SAMPLES:
            leads = np.array(self._leads)
            self._lead = float(np.median(leads))
            self._variation = min(float(np.abs(leads - self._lead).max()) + self.MIN_LEAD_VARIATION_S, self.MAX_LEAD_S)


def _norm(x: np.ndarray) -> float:
    return float(np.linalg.norm(np.nan_to_num(x)))


class SentReferenceMonitor:
    """Monitor of a controller that executes single references: is the reference that it reports one that was sent?

    problem : message once its reference has been elsewhere for TIMEOUT_S; empty while it is not
    """

    MAX_LEAD_S = 0.02  # by which a controller may be ahead: it reports one update later
    TIMEOUT_S = 0.5  # covers references that are on their way

    def __init__(self) -> None:
        self._sent = PositionHistory()
        self.restart(())

    def restart(self, joint_names: Sequence[str]) -> None:
        """Begin a motion of these joints."""
        self.problem = ""
        self._joint_names = tuple(joint_names)
        self._sent.clear()
        self._off_since: int | None = None  # [ns]
        self._pending: tuple[int, np.ndarray] | None = None  # reported reference that is not judged yet
        self._distance: tuple[int, float] | None = None  # newest stamp, distance from the last reference beyond the tolerance

    def add_reference(self, q: np.ndarray, now: int) -> None:
        """Record a reference q (n,) sent at time now [ns]. May be called by another thread than the others."""
        self._sent.add(q, now)

    @property
    def last(self) -> np.ndarray | None:
        """Reference that was sent last."""
        return self._sent.last

    def on_controller_state(self, joint_names: Sequence[str], positions: Sequence[float], stamp: int,
                            tolerance: float) -> None:
        """Judge the reference that the controller reports at a stamp [ns]; other joints are ignored.

        A report is judged when the next one arrives: all references of its time have been sent by then.
        """
        by_name = dict(zip(joint_names, positions))
        q = np.array([by_name.get(name, np.nan) for name in self._joint_names])
        pending, self._pending = self._pending, (stamp, q)
        if (last := self._sent.last) is not None:
            self._distance = stamp, float(np.fmax.reduce(np.abs(q - last), initial=0.0) - tolerance)
        if pending is not None:
            self._judge(*pending, tolerance)

    def _judge(self, stamp: int, q: np.ndarray, tolerance: float) -> None:
        sent = self._sent.entries()
        times = np.array([when for when, _ in sent])
        if not sent or not times[0] < stamp < times[-1]:
            return
        first = max(int(times.searchsorted(stamp - MAX_LAG_S * 1_000_000_000, side="right")) - 1, 0)
        stop = int(times.searchsorted(stamp + self.MAX_LEAD_S * 1_000_000_000, side="right"))
        band = np.array([position for _, position in sent[first:stop]])
        outside = np.maximum(band.min(axis=0) - q, q - band.max(axis=0)) - tolerance
        outside = np.nan_to_num(outside, nan=-np.inf)
        worst = int(outside.argmax())
        if outside[worst] <= 0.0:
            self._off_since = None
        elif self._off_since is None:
            self._off_since = stamp
        elif stamp - self._off_since > self.TIMEOUT_S * 1_000_000_000:
            self.problem = (f"its reference of {self._joint_names[worst]} is {outside[worst] + tolerance:.3g} off what it was "
                            f"sent, for {(stamp - self._off_since) / 1_000_000_000:.2f} s")

    def has_reached_last(self, since: int) -> bool:
        """Return whether the controller has reported the last reference since a time [ns]."""
        return self._distance is not None and self._distance[0] >= since and self._distance[1] <= 0.0

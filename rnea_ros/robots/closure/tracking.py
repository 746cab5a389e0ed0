"""Robots with loops along a stream of samples: each pose is found from the last one.

They are followed from pose to pose and never through a singular one, so they stay on the branch on which they began. The
branch is determined by the sensors of passive joints, if there are any: the first pose is the one closest to them. Later
poses are compared with them; if they differ by more than a tolerance, for example after a gap in the stream, the pose
closest to the measurements is used instead, if it agrees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...errors import InputError, PoseError, Rejected, shown, some
from ..inputs import validation
from .loop_closure import LoopClosure, LoopMotion

Found = TypeVar("Found")
TOLERANCE = 0.1  # rad, or shares of the machine's unit of length
FOLLOWED, RESTARTED, BAD_INPUT = "followed", "restarted", "bad input"  # counted beside the reasons of a PoseError


class TrackedMotion(NamedTuple):
    """Motion of all joints of the tree, and how its passive ones differ from what was measured.

    disagreement : (P,), found less measured position of each passive joint [rad, m], angles by the shorter way round; NaN
                   where nothing was measured
    agrees       : whether no joint differs by more than the tolerance
    restarted    : this pose was found from the measured ones, not from the last
    """

    motion: LoopMotion
    disagreement: np.ndarray
    agrees: bool
    restarted: bool


class TrackedPose(NamedTuple):
    """Positions (n,) of all joints of the tree on closed loops; the other fields as of TrackedMotion."""

    pose: np.ndarray
    disagreement: np.ndarray
    agrees: bool
    restarted: bool


class LoopTracker:
    """Tracker of the loops of a robot along one stream of samples. Threads that share one take turns.

    tolerance : by how much a passive joint may differ from its sensor [rad, or shares of the machine's unit of length]
    counts    : samples by result: "followed", "restarted" (these count as followed too), or the reason of the refusal
    """

    def __init__(self, closure: LoopClosure, tolerance: float = TOLERANCE):
        self._lock = Lock()
        self.counts: Counter[str] = Counter()
        self._closure = closure
        names, types = closure.model.joint_names, [joint.type for joint in closure.model.joints]
        self._passive = np.setdiff1d(closure.passive, closure.loops.virtual)
        self.passive_joints = tuple(names[k] for k in self._passive)
        self._turns = np.array([types[k] != "prismatic" for k in self._passive], dtype=bool)
        self._tolerances = tolerance * closure.units.unknowns[self._passive]
        self._nothing = np.full(len(self.passive_joints), np.nan)
        self._last: np.ndarray | None = None
        self._agreed = True

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Handle one sample: errors are counted by reason, and raised as errors.Rejected."""
        with self._lock:
            try:
                yield
            except InputError as error:
                reason = error.reason if isinstance(error, PoseError) else BAD_INPUT
                self.counts[reason] += 1
                raise Rejected(reason, str(error)) from None
            self.counts[FOLLOWED] += 1

    @property
    def last(self) -> np.ndarray | None:
        """Pose (n,) of the last accepted sample: an initial guess for further requests about it."""
        return self._last

    def forget(self) -> None:
        """Begin anew, as with the first sample."""
        with self._lock:
            self._last, self._agreed = None, True

    def follow(self, q: Any, qd: Any, qdd: Any, qddd: Any, measured: Any = None) -> TrackedMotion:
        """One sample: motion of the active joints, (N,) each, and positions (P,) of the passive ones, NaN where not measured.

        Raises errors.Rejected, with a reason to count by; the last pose stays what it was.
        """
        with self._turn():
            found = self._sample((q, qd, qdd, qddd), measured)
            if found.restarted:
                self.counts[RESTARTED] += 1
            self._last, self._agreed = found.motion.q, found.agrees
        return found

    def locate(self, q: Any, measured: Any = None) -> TrackedPose:
        """Return the closed pose of one sample; arguments and errors as of `follow`."""
        with self._turn():
            found = self._located(_one_sample((q,), self._closure.active_joints)[0], measured)
            if found.restarted:
                self.counts[RESTARTED] += 1
            self._last, self._agreed = found.pose, found.agrees
        return found

    def move(self, function: Callable[[np.ndarray], tuple[Found, np.ndarray]]) -> Found:
        """Return what a function finds that closes the loops itself, from a pose (n,) near the closed one.

        function(guess) returns its result and the closed pose. Poses that it refuses (PoseError) are counted and raised as by
        `follow`, its other errors as they are.
        """
        with self._lock:
            try:
                result, pose = function(self._begin)
                self._last = self._closure.regular(pose)
            except PoseError as error:
                self.counts[error.reason] += 1
                raise Rejected(error.reason, str(error)) from None
            self.counts[FOLLOWED] += 1
        return result

    def _sample(self, motion: tuple[Any, ...], measured: Any) -> TrackedMotion:
        qa, *rates = _one_sample(motion, self._closure.active_joints)
        found = self._located(qa, measured)
        return TrackedMotion(self._closure.motion(found.pose, *rates), *found[1:])

    def _located(self, qa: np.ndarray, measured: Any) -> TrackedPose:
        if measured is None:
            return TrackedPose(self._closure.close(qa, self._begin), self._nothing, True, False)
        seen = self._seen(measured)
        pose, restarted = self._compared(qa, seen)
        disagreement = self._disagreement(pose, seen)
        return TrackedPose(pose, disagreement, self._within(disagreement), restarted)

    # ------------------------------------------------------------------ with sensors of passive joints

    @property
    def _begin(self) -> np.ndarray:
        return self._closure.start if self._last is None else self._last

    def _seen(self, measured: Any) -> np.ndarray:
        array = validation.numbers("measured", measured)
        if array.shape != self._nothing.shape or np.isinf(array).any():
            raise InputError(f"measured is {shown(measured)}; ({len(self._nothing)},) numbers are needed, for "
                             f"{some(self.passive_joints)}, NaN where none is known")
        return array

    def _compared(self, qa: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the closed pose, and whether it was found from the measurements."""
        if self._last is None and not np.isnan(seen).any() and (pose := self._next_to(qa, seen)) is not None:
            return pose, True
        try:
            pose = self._closure.close(qa, self._begin)
        except PoseError:
            if (pose := self._next_to(qa, seen)) is not None:
                return pose, True
            raise
        if self._agreed and not self._within(self._disagreement(pose, seen)):
            found = self._next_to(qa, seen)
            return (pose, False) if found is None else (found, True)
        return pose, False

    def _next_to(self, qa: np.ndarray, seen: np.ndarray) -> np.ndarray | None:
        """Return the closed pose nearest to the measurements, if it agrees; other joints start from the last pose."""
        if np.isnan(seen).all():
            return None
        guess, passive = self._begin.copy(), self._passive
        guess[self._closure.active], guess[passive] = qa, np.where(np.isnan(seen), guess[passive], seen)
        try:
            pose = self._closure.close(qa, guess)
        except PoseError:
            return None
        return pose if self._within(self._disagreement(pose, seen)) else None

    def _disagreement(self, pose: np.ndarray, seen: np.ndarray) -> np.ndarray:
        difference = pose[self._passive] - seen
        return np.where(self._turns, np.remainder(difference + np.pi, 2.0 * np.pi) - np.pi, difference)

    def _within(self, disagreement: np.ndarray) -> bool:
        return not (np.abs(disagreement) > self._tolerances).any()


def _one_sample(motion: tuple[Any, ...], names: Sequence[str]) -> list[np.ndarray]:
    arrays = [validation.coordinates(name, value, names)
              for name, value in zip(("q", "qd", "qdd", "qddd"), motion, strict=False)]
    if validation.samples(arrays) is not None:
        raise InputError(f"a tracker takes one sample at a time, arrays ({len(names)},)")
    return arrays

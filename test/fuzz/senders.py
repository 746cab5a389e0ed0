"""Target `estimator`: joint states of random senders through the live motion estimator, compared with the true motion.

A sender reads a moving robot and publishes what it read: at some rate, with jitter, stalls and bursts, losses, duplicates,
reordering, clocks that are set, drift or alternate, restarts, wrapped and quantised positions. Every estimate must lie inside
the cone that the received positions and the speed of the joints allow, and no standard deviation may be less than a tenth of
the error. An estimate is for an instant of the sender's clock. Where stamps are late or the clock was set, that instant is
known to within the errors of the stamps received lately: the error is the distance from the range of the true values then.

Streams are short, and estimates are made at a few instants only: they do not depend on each other.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fuzz.target import Target, Try, WrongNumber
from rnea_ros.errors import Rejected
from rnea_ros.estimation.motion_estimator import MotionEstimator

JOINTS = 3
RATES = (20.0, 50.0, 100.0, 125.0, 200.0, 250.0, 500.0, 1000.0)  # Hz
SHARES = (0.1, 0.15, 0.15, 0.15, 0.15, 0.2, 0.07, 0.03)  # of the senders
MESSAGES, SHORTEST, LONGEST = 130, 0.65, 5.0  # of a stream, and seconds that it takes
SLOWEST = 0.1  # s; readings further apart do not determine the motion of a joint at 1.5 Hz
LONG = 0.03  # of the streams take 3 times as long
EPOCH = 1_700_000_000_000_000_000  # ns
CHECKED = 14  # instants of a stream at which estimates are checked, after the first quarter
START = 0.5  # s; deviations are checked from then on
LATELY = 0.35  # s; stamps of messages received since then, and of the one before, say which instants an estimate may be of
APART = 0.1  # s; errors of stamps that differ by more are those of two clocks
TENTH = 10.0  # errors may be so many standard deviations
UNLIMITED = 3.0  # times the largest speed of a joint
ROUNDING = 1e-9


@dataclass
class Motion:
    """Sums of sines, or jerk that jumps, of JOINTS joints. Called with instants (k,) [s]: (4, k, n)."""

    rng: np.random.Generator
    sizes: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        rng = self.rng
        self.rates = 2.0 * np.pi * rng.uniform(0.1, rng.choice((0.5, 1.5)), (3, JOINTS))
        self.sizes = rng.uniform(0.1, 1.0, (3, JOINTS)) * rng.choice((0.0, 0.02, 0.3, 1.0), JOINTS, p=(0.1, 0.1, 0.3, 0.5))
        self.sizes /= self.rates
        self.phases = rng.uniform(0.0, 2.0 * np.pi, (3, JOINTS))
        self.speed = rng.choice((0.0, 0.0, 2.0, -4.0), JOINTS)  # rad/s, of joints that turn on and on
        self.limits = np.abs(self.sizes * self.rates).sum(axis=0) + np.abs(self.speed)

    def __call__(self, t: np.ndarray) -> np.ndarray:
        angles = t[:, None, None] * self.rates + self.phases
        found = np.array([(self.sizes * self.rates**k * np.sin(angles + 0.5 * k * np.pi)).sum(axis=1) for k in range(4)])
        found[0] += self.speed * t[:, None]
        found[1] += self.speed
        return found


@dataclass
class Sender:
    """Stream of a sender in the order of arrival: instants read [s], arrivals [s], stamps [ns], positions (m, n)."""

    motion: Motion
    read: np.ndarray
    arrival: np.ndarray
    stamps: np.ndarray
    positions: np.ndarray
    noise: float  # largest error of a position [rad]
    period: float
    kinds: tuple[str, ...]


def sender(rng: np.random.Generator) -> Sender:
    """Choose a sender."""
    kinds: list[str] = []

    def does(kind: str, share: float) -> bool:
        chosen = bool(rng.random() < share)
        if chosen:
            kinds.append(kind)
        return chosen

    motion, period = Motion(rng), 1.0 / float(rng.choice(RATES, p=SHARES))
    most = min(8, round(SLOWEST / period))
    times = int(rng.integers(2, most + 1)) if does("repeated readings", 0.1) else 1
    seconds = float(np.clip(MESSAGES * period, SHORTEST, LONGEST)) * (3.0 if rng.random() < LONG else 1.0) * times
    read = np.arange(0.0, seconds, period)
    if does("drift", 0.2):
        read = read * (1.0 + rng.choice((-1.0, 1.0)) * 10.0 ** rng.uniform(-5.0, -2.0))
    if does("wander", 0.1):
        read = read + period * rng.uniform(0.1, 2.0) * np.sin(read * rng.uniform(0.3, 3.0))
    if does("uneven reading", 0.1):
        read = np.sort(read + rng.normal(0.0, period * 10.0 ** rng.uniform(-3.0, 0.0), len(read)))
    sent = read.copy()
    if does("jitter", 0.4):
        size = period * 10.0 ** rng.uniform(-3.0, 0.5)
        sent = sent + (rng.uniform(0.0, size, len(sent)) if rng.random() < 0.5 else rng.exponential(size, len(sent)))
    if does("stalls", 0.3):
        sent = _stalled(rng, sent, float(rng.uniform(0.005, 0.1)), float(rng.choice((0.03, 0.1, 0.3, 1.0))))
    sent = _in_order(sent, period * 10.0 ** float(rng.uniform(-3.0, -0.5)))
    positions = _encoded(rng, motion(read)[0])
    noise = float(np.abs(positions - motion(read)[0]).max())
    if does("wraps", 0.15):
        positions = (positions + np.pi) % (2.0 * np.pi) - np.pi
    stamps = (sent if does("stamped when sent", 0.6) else read).copy()
    if times > 1:
        first = np.arange(len(read)) // times * times
        positions, read = positions[first], read[first]
    for _ in range(int(rng.integers(1, 4)) if does("clock steps", 0.3) else 0):
        size = float(rng.choice((0.03, 1.0, 10.0, 3600.0), p=(0.55, 0.25, 0.1, 0.1)))
        stamps[sent > rng.uniform(0.2, seconds)] += rng.choice((-1.0, 1.0)) * max(1e-3, size * 10.0 ** rng.uniform(-1.5, 0.0))
    if does("two clocks", 0.08):
        stamps[rng.random(len(stamps)) < rng.choice((0.02, 0.3, 0.5))] += 10.0 ** rng.uniform(-4.0, 2.0)
    if does("restart", 0.1):
        at = float(rng.uniform(0.3, seconds))
        stamps[sent > at] += float(rng.choice((0.0, -at, -1e6)))
        kept = (sent < at) | (sent > at + rng.uniform(0.0, 0.4))
    else:
        kept = np.ones(len(read), dtype=bool)
    if does("losses", 0.3):
        kept &= rng.random(len(read)) >= rng.choice((0.01, 0.1, 0.3, 0.5))
    order = np.flatnonzero(kept)
    if does("duplicates", 0.15):
        order = np.repeat(order, 1 + (rng.random(len(order)) < rng.choice((0.01, 0.1, 0.5))))
    if does("reordering", 0.15):
        late = rng.random(len(order)) < rng.choice((0.01, 0.1))
        order = order[np.argsort(np.arange(len(order)) + late * rng.uniform(1.0, 4.0, len(order)), kind="stable")]
    arrival = np.maximum.accumulate(sent[order])
    nanoseconds = EPOCH + np.round(stamps[order] * 1e9).astype(np.int64)
    return Sender(motion, read[order], arrival, nanoseconds, positions[order], noise, period, tuple(kinds))


def _stalled(rng: np.random.Generator, sent: np.ndarray, longest: float, every: float) -> np.ndarray:
    """Messages that wait for the end of a stall."""
    begin = 0.0
    while (begin := begin + float(rng.exponential(every))) < sent[-1]:
        end = begin + float(rng.uniform(0.003, longest))
        sent = np.where((sent > begin) & (sent < end), end, sent)
    return sent


def _in_order(sent: np.ndarray, least: float) -> np.ndarray:
    """Messages that do not overtake each other, and are this much apart at least [s]."""
    ramp = least * np.arange(len(sent))
    return np.maximum.accumulate(sent - ramp) + ramp


def _encoded(rng: np.random.Generator, q: np.ndarray) -> np.ndarray:
    bits = int(rng.choice((13, 15, 17, 20, 24)))
    step = 2.0 * np.pi / 2.0**bits
    noisy = q + (rng.normal(0.0, 1e-4, q.shape) if rng.random() < 0.2 else 0.0)
    phase = rng.uniform(size=JOINTS)
    return (np.round(noisy / step + phase) - phase) * step if rng.random() < 0.9 else noisy


@dataclass
class Verdict:
    """Result of a stream. outside: largest distance of estimates from the cone, in its widths, at most 1; deviations: largest
    error of position, velocity, acceleration and jerk in standard deviations.
    """

    messages: int
    estimates: int
    refused: int
    outside: float
    deviations: np.ndarray
    when: np.ndarray  # s, of the largest ones


def judge(stream: Sender, rng: np.random.Generator, lag: float) -> Verdict:
    """Push a stream, and compare."""
    turning = tuple(range(JOINTS)) if "wraps" in stream.kinds and len(stream.stamps) % 2 else ()
    revolute = tuple(range(JOINTS)) if not turning else ()  # unwrapped where they wrap, and left alone where they do not
    estimator = MotionEstimator(JOINTS, lag, turning=turning, revolute=revolute)
    messages = len(stream.stamps)
    checked = set(rng.choice(np.arange(messages // 4, messages), min(CHECKED, messages // 2), replace=False).tolist())
    accepted, refused, rows = [], 0, []
    for k, (stamp, q) in enumerate(zip(stream.stamps.tolist(), stream.positions)):
        if not estimator.push(stamp, q):
            continue
        accepted.append(k)
        if k in checked and estimator.ready:
            try:
                rows.append((k, len(accepted), *estimator.estimate(stamp - round(lag * 1e9))))
            except Rejected:
                refused += 1
    verdict = Verdict(messages, len(rows), refused, 0.0, np.zeros(4), np.zeros(4))
    kept = np.array(accepted)
    late = (stream.stamps - EPOCH) * 1e-9 - stream.read
    for k, count, motion, deviation in rows:
        since = np.searchsorted(stream.arrival[kept[:count]], stream.arrival[k] - LATELY - lag)
        recent = kept[max(since - 1, 0):count]  # an estimate between two messages may be of the clock of either
        instant = (stream.stamps[k] - EPOCH) * 1e-9 - lag
        error = _error(stream, motion, instant - late[recent], recent)
        if error[0].any():  # a position that the robot had is inside of any cone
            moved = np.abs(np.diff(stream.positions[recent], axis=0)).max(axis=0, initial=0.0)
            verdict.outside = max(verdict.outside, _outside(stream, motion[0], instant, recent, late[recent], moved))
        if stream.arrival[k] > stream.arrival[0] + START:
            off = (error / (deviation + ROUNDING)).max(axis=1)
            verdict.when = np.where(off > verdict.deviations, stream.arrival[k], verdict.when)
            verdict.deviations = np.maximum(verdict.deviations, off)
    return verdict


def _error(stream: Sender, motion: np.ndarray, instants: np.ndarray, recent: np.ndarray) -> np.ndarray:
    """(4, n) distance of a motion from the range of the true ones over these instants."""
    instants = np.sort(instants)
    nearest = np.full(motion.shape, np.inf)
    for cluster in np.split(instants, np.flatnonzero(np.diff(instants) > APART) + 1):
        true = stream.motion(np.linspace(cluster[0], cluster[-1], 9) if np.ptp(cluster) > 1e-6 else cluster[:1])
        away = np.maximum(true.min(axis=1) - motion, motion - true.max(axis=1))
        if "wraps" in stream.kinds:
            turns = (motion[0] - true[0]) / (2.0 * np.pi)
            away[0] = np.abs((turns - np.round(turns)) * 2.0 * np.pi).min(axis=0) - 0.5 * np.ptp(true[0], axis=0)
        nearest = np.minimum(nearest, np.maximum(away, 0.0))
    resting = np.ptp(stream.positions[recent], axis=0) < 3.0 * stream.noise  # their encoders' steps cannot be known
    nearest[0, resting] = np.maximum(nearest[0, resting] - 2.0 * stream.noise, 0.0)
    return nearest


def _outside(stream: Sender, q: np.ndarray, instant: float, recent: np.ndarray, late: np.ndarray,
             moved: np.ndarray) -> float:
    """Return how far positions are outside the cone, over its width there: UNLIMITED times the speed of the joint, and what
    positions `moved` at most from one message to the next.
    """
    stamps = (stream.stamps[recent] - EPOCH) * 1e-9
    near = int(np.abs(stamps - instant).argmin())
    around = np.abs(stamps - stamps[near]) < APART
    unsure = float(np.ptp(late[around])) + 3.0 * stream.period
    away = np.abs(q - stream.positions[recent[near]])
    if "wraps" in stream.kinds:
        away = np.abs((away + np.pi) % (2.0 * np.pi) - np.pi)
        moved = np.minimum(moved, 2.0 * np.pi - moved)
    width = UNLIMITED * stream.motion.limits * (abs(stamps[near] - instant) + unsure) + 3.0 * stream.noise + 1e-6 + moved
    return float(np.max(away / width))


def make(_folder: Path) -> Try:
    def attempt(data: bytes) -> str:
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(data).digest()[:8], "little"))
        stream, lag = sender(rng), float(rng.choice((0.0, 0.03, 0.05)))
        verdict = judge(stream, rng, lag)
        if verdict.outside > 1.0:
            raise WrongNumber(f"{verdict.outside:.3g} of the cone; {', '.join(stream.kinds)}; lag {lag} s")
        if (verdict.deviations > TENTH).any():
            raise WrongNumber(f"errors of {verdict.deviations.round(1)} deviations; {', '.join(stream.kinds)}; lag {lag} s")
        return "refused in part" if verdict.refused else "estimated" if verdict.estimates else "nothing estimated"

    return attempt


# Found by campaigns: a clock that a restart set back by the length of the pause before it; one set by 235 s and 374 s while
# the period was being learnt from stamps that jitter.
FOUND = ("62435508b7415fbe", "c40cd3fb93d5f5f8")


def seeds() -> list[bytes]:
    return [*map(bytes.fromhex, FOUND), *(k.to_bytes(4, "little") for k in range(64))]


TARGETS = (Target("estimator", seeds, make, generate=lambda rng: rng.randbytes(8)),)

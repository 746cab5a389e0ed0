"""Accuracy of torque and torque rate when the motion is estimated from joint states, and the cost of a message.

    python benchmark/estimation.py [NUMBER OF SEEDS] [FIRST SEED]

Writes estimation.md beside this file: UR5 and Panda in simulation, random motions of 5 s, every sensor of SENSORS; all with
default settings. Errors are RMS errors as shares of the RMS of the true signal.
"""

from __future__ import annotations

import itertools
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from fuzz.senders import sender

from rnea_ros import Robot
from rnea_ros.errors import Rejected
from rnea_ros.estimation import filter_bank
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.estimation.smoothing import estimate_recording
from support.joint_state_streams import EPOCH, Sensor, TorqueErrors, estimates, joint_states, torque_errors
from support.motions import fast_sines, jumping, minimum_jerk, resting_s_curves, septics, slow_sines, smooth
from support.scaling_cases import urdf

HERE = Path(__file__).resolve().parent
Kind = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]
ARMS = ("ur5_robot", "panda")
KINDS = {"smooth": smooth, "S-curves": jumping}
# Robots and motions that were not used to tune the standard deviations
CHECK_ARMS = ("xarm7", "z1")
CHECK_KINDS = {"sines up to 0.4 Hz": slow_sines, "sines up to 2.5 Hz": fast_sines, "minimum jerk, rests": minimum_jerk,
               "degree 7, rests": septics, "S-curves, rests": resting_s_curves}
CHECK_SENSORS = ("2^-17", "2^-17, 125 Hz")
LAGS = (0.0, 0.02, 0.03, 0.05)
SENSORS = {
    "encoder 2^-13 turn, 500 Hz": Sensor(13),
    "2^-15": Sensor(15),
    "2^-17": Sensor(17),
    "2^-20": Sensor(20),
    "2^-17 and 1e-4 rad noise": Sensor(noise=1e-4),
    "2^-17, stamps off by up to 0.1 ms, 1 % lost": Sensor(jitter=1e-4, lost=0.01),
    "the same, 0.5 ms": Sensor(jitter=5e-4, lost=0.01),
    "the same, 1 ms": Sensor(jitter=1e-3, lost=0.01),
    "the same, normally distributed, 0.5 ms": Sensor(jitter=5e-4, lost=0.01, bell=True),
    "2^-17, 125 Hz": Sensor(rate=125.0),
    "2^-17, 1 kHz": Sensor(rate=1000.0),
    "2^-17, 125 Hz published at 1 kHz": Sensor(rate=1000.0, repeated=8),
}


def trial(robot: Robot, seed: int, kind: Kind, sensor: Sensor) -> list[TorqueErrors]:
    """Return the errors at each lag, and of the recording."""
    stream = joint_states(np.random.default_rng(seed), kind, robot.n, sensor)
    live = estimates(MotionEstimator(robot.n, max(LAGS)), stream, LAGS)
    order = np.argsort(stream.stamps)  # a recorder may sort what came out of order
    t, q = stream.stamps[order], stream.q[order]
    advances = np.append(True, np.diff(t) > 0.0)
    t, q = t[advances], q[advances]
    found = estimate_recording(t, q)
    motion = np.array([found.q, found.qd, found.qdd, found.qddd])
    offline = t, motion, np.zeros_like(motion) if found.deviation is None else found.deviation
    return [torque_errors(robot, stream, *each) for each in (*live, offline)]


def trials(robots: list[Robot], seeds: range, kind: Kind, sensor: Sensor) -> np.ndarray:
    """Return the errors (trials, lags and recording, 6) of all robots and seeds."""
    return np.array([trial(robot, seed, kind, sensor) for robot, seed in itertools.product(robots, seeds)])


def coverage(errors: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return cells on the shares within two deviations of rate and torque, 30 ms late and of the recording, and the shares."""
    cells, shares = [], []
    for at in (LAGS.index(0.03), -1):
        tau, rate = 100.0 * errors[:, at, 2:4].mean(axis=0)
        of_tau, of_rate = np.median(errors[:, at, 4:6], axis=0)
        cells.append(f"{rate:.0f}, {tau:.0f} ({of_rate:.2f}, {of_tau:.2f})")
        shares += [rate, tau]
    return cells, np.round(shares)


def row(robots: list[Robot], seeds: range, kind: str, name: str) -> tuple[str, np.ndarray]:
    """Median and largest error of the rate at each lag; of the torque at the default; shares within two deviations."""
    errors = trials(robots, seeds, KINDS[kind], SENSORS[name])
    rates, default = 100.0 * errors[:, :, 1], errors[:, LAGS.index(0.03)]
    cells = [f"{np.median(column):.3g} ({column.max():.3g})" for column in rates.T]
    within, shares = coverage(errors)
    return " | ".join(("", kind, name, *cells, f"{100.0 * np.median(default[:, 0]):.2g}", *within, "")).strip(), shares


def summary(shares: np.ndarray) -> str:
    """Return a sentence on how many shares are inside 92 to 98 %."""
    return (f"Of {shares.size} shares, {np.count_nonzero((shares >= 92) & (shares <= 98))} are 92 to 98 %, "
            f"{np.count_nonzero(shares < 92)} are lower (lowest {shares.min():.0f}), {np.count_nonzero(shares > 98)} higher "
            f"(highest {shares.max():.0f}).")


def paths(name: str, streams: list[tuple[np.ndarray, np.ndarray]]) -> str:
    """Return a row on the difference between the gains of even steps and those of every step."""
    options, off, ratio = filter_bank.OPTIONS, [], []
    for stamps, positions in streams:
        found = []
        for tested in (options, replace(options, equal_step_s=-1.0, max_uneven_share=-1.0)):
            filter_bank.OPTIONS = tested
            estimator, each = MotionEstimator(positions.shape[1], 0.03), {}
            for k, (stamp, q) in enumerate(zip(stamps.tolist(), positions)):
                with suppress(Rejected):
                    if estimator.push(stamp, q) and k % 5 == 0 and estimator.ready:
                        each[k] = estimator.estimate()
            found.append(each)
        filter_bank.OPTIONS = options
        for k in found[0].keys() & found[1].keys():
            fast, slow = found[0][k], found[1][k]
            off.append(np.abs(fast.motion - slow.motion) / slow.deviation)
            ratio.append(fast.deviation / slow.deviation)
    low, high = np.quantile(ratio, [0.01, 0.99])
    return (f"| {name} | {np.max(off):.2g} ({np.quantile(off, 0.99):.2g}) | {np.min(ratio):.3g} to {np.max(ratio):.3g} "
            f"({low:.3g} to {high:.3g}) |")


def compared_paths() -> str:
    """Return the table of fast and slow paths."""
    def states(sensor: Sensor) -> tuple[np.ndarray, np.ndarray]:
        stream = joint_states(np.random.default_rng(3), smooth, 3, sensor, 3.0)
        return EPOCH + np.round(stream.stamps * 1e9).astype(np.int64), stream.q

    random = [sender(np.random.default_rng(seed)) for seed in range(100, 130)]
    even = [states(Sensor(rate=rate)) for rate in (125.0, 500.0, 1000.0)]
    return "\n".join([PATHS.rstrip(), paths("even steps (125 Hz, 500 Hz, 1 kHz)", even),
                      paths("1 % lost, stamps off by up to 0.5 ms", [states(SENSORS["the same, 0.5 ms"])]),
                      paths("30 random senders of the fuzzer", [(each.stamps, each.positions) for each in random])])


def cost(n: int, rate: float, messages: int = 3000) -> tuple[float, float]:
    """Return the median cost of a message [us]: the estimate alone, and with the robot's torques."""
    robot, t = Robot.from_urdf(urdf("seven_r")), np.arange(messages) / rate
    q = np.round(np.sin(t[:, None] + np.arange(n)) / 4.8e-5) * 4.8e-5
    estimator, took = MotionEstimator(n), []
    for seconds, positions in zip(t, q):
        start = time.perf_counter()
        estimator.push(EPOCH + round(1e9 * seconds), positions)
        found = estimator.estimate().motion if estimator.ready else np.zeros((4, n))
        estimated = time.perf_counter()
        robot.dynamics(*found)
        took.append((estimated - start, time.perf_counter() - start))
    alone, both = 1e6 * np.median(took[messages // 4:], axis=0)
    return float(alone), float(both)


HEAD = """# Torque rate from joint states

`python benchmark/estimation.py {seeds} {first}`, {machine}, Python {python}, UR5 and Panda, {seeds} random motions of 5 s
each (seeds from {first}), default settings. The table gives the error of the torque rate [%], live and for a recording:
median (largest) of the RMS errors relative to the RMS torque rate, after the first second. Torque: median error of the
torque [%], 30 ms late. Within 2 std: shares of the errors of rate and torque within two of the reported standard deviations
[%], 30 ms late and for the recording; in parentheses the factors with which the standard deviations would contain 95.4 %
(median).

| motion | joint states | {lags} | recording | torque | within 2 std | within 2 std, recording |
|---|---|{columns}
"""

CHECK = """
## Standard deviations of other motions

Robots that were not used for tuning: {arms}, {seeds} random motions of 5 s each; shares and factors as above.

| motion | joint states | within 2 std | within 2 std, recording |
|---|---|---|---|
"""

PATHS = """
## Fast and slow path

While steps are even, filters have constant gains; after an uneven step, those of a Kalman filter for each step until their
covariances agree to a tenth. Difference of the estimates 30 ms late from those with the gains of each step throughout, in
standard deviations, and ratio of the standard deviations: extremes (99 % of them).

| joint states | difference | ratio of the standard deviations |
|---|---|---|"""

NOTES = """
Further results (in simulation, with seeds other than those of the table):

* **Standard deviations** were tuned with smooth motion, S-curves and minimum-jerk moves of UR5 and Panda, with the seeds 0, 1,
  100 and 101; the tables above have other seeds. The kinds of motion of the second table were compared, not tuned. Of a
  recording they consist of noise and bias. The noise is the part of the filters' variance that is due to the positions (0.13
  of the variance of the jerk with 4 states, 0.42 with 6); the remainder of that variance assumes white noise in the highest
  derivative, which smooth motion does not have. The bias is estimated from what the filters change if they are applied to
  the smoothed motion again. Before, the whole variance and the disagreement of the filters were used: two standard
  deviations contained 99 to 100 % of the errors of smooth motion, 91 to 97 % of those of S-curves. Live, a fifth of the
  difference between stamps and evenly spaced times was added (99 to 100 % with jitter); now the share that is uncertain is
  estimated from block to block.
* **What stays outside.** No constant factor brings all rows inside: the factors in parentheses differ from row to row. Of the
  first table, shares were inside in 53 of 96 cases before, with 41 above 98 % and two at 91 %. Shares above 98 % remain live
  with jitter and for coarse encoders: the scale is calibrated at zero delay. In moves with rests, errors at rest are far
  smaller than near the jumps on either side. At 125 Hz, jumps of the jerk in moves with rests are within a few samples: 91 %.
  Shares are means of a few motions: they differ by 2 to 4 % between seeds.
* **The two low rows** (recordings of S-curves at 125 Hz, 90 and 91 %; 90 and 91 % also with seeds from 40 and for xarm7 and
  z1). The errors of the jerk outside of two standard deviations are next to the jumps: 26 % of the samples at a jump and 50 %
  of their neighbours are inside, and these are 6 % of all samples at 125 Hz but 1.5 % at 500 Hz (32 and 39 % inside); 94 %
  are inside from the fifth sample on. Three trials with seeds from 60, shares of the jerk: the factor of jumps for all
  filters gives 93 instead of 91 %; twice the reach of the bias (`bias_reach` 8, about three decay lengths of the ringing of a
  smoother with 4 states, whose slowest poles decay with 0.38 of the bandwidth) 93 %, for minimum-jerk moves with rests 95
  instead of 90 %, and at 500 Hz 96.5 instead of 95.9 %; half of the bandwidth when smoothing again (`bias_bandwidth` 0.5) 98
  %. None is adopted yet: the last two increase the shares of rows that are at 98 % already, and the whole tables have to be
  measured with them. The reach has a physical reason and is the first to try. The tables above were measured before
  innovations without evidence counted less (first moves, see the changelog). Measured since: S-curves at 125 Hz 23.6 % 30 ms
  late (25.4 % before) and 25.8 % for recordings (26.8 %), with the same shares; for joints alone, smooth motion, S-curves and
  minimum-jerk moves with seven sensors, shares differ by less than 1 %.
* **Safety**: the gains are those of a Kalman filter for the time between two samples, estimates outside of the cone of the
  received positions are rejected, and the fuzzer compares standard deviations with the true errors for random publishers
  (`make fuzz TARGET=estimator`). After uneven steps the weights of later samples are those of even steps, as a function of
  time.
* **Cost** (10th percentile of the thread's time on a loaded machine, seven joints, 500 Hz, without torques): 119 us before
  the last change of the filters, 85 us after it, and about 40 us more after an uneven step. With the present standard
  deviations, at 1 kHz on a loaded machine: 106 to 113 us with even steps and 118 to 122 us with jitter (111 to 112 and 104 to
  118 us before).
* **S-curves at 500 Hz, 2^-17, 30 ms late**: in 12 random motions the error of the jerk was 19 to 23.5 %. The best single
  filter of the bank for each joint, chosen with knowledge of the true motion, has 20 to 25 %. Forgetting times of the
  innovations of 20 to 90 ms, and a prior weight that is equal or doubled, change this by less than one percentage point, and
  short forgetting times increase the error of smooth motion by a third (3.2 % to 4.3 %). No other weighting is therefore
  better: at a jump every linear filter is wrong by half of the jump, and the remaining error follows from noise. A choice of
  the best filter at each sample would leave 10 %, but the innovations do not indicate that filter in time.
"""


def main() -> None:
    count, first = (int(text) for text in (*sys.argv[1:], *("5", "0")[len(sys.argv) - 1:]))
    seeds = range(first, first + count)
    robots = [Robot.from_urdf(urdf(name)) for name in ARMS]
    lags = " | ".join(f"{1000.0 * lag:.0f} ms late" for lag in LAGS)
    text = HEAD.format(seeds=count, first=first, machine=platform.machine(), python=platform.python_version(), lags=lags,
                       columns="---|" * (len(LAGS) + 4))
    all_shares = []
    for kind, name in itertools.product(KINDS, SENSORS):
        line, shares = row(robots, seeds, kind, name)
        text += line + "\n"
        all_shares.append(shares)
        print(line, flush=True)
    text += "\n" + summary(np.array(all_shares)) + "\n" + CHECK.format(arms=" and ".join(CHECK_ARMS), seeds=count)
    robots, all_shares = [Robot.from_urdf(urdf(name)) for name in CHECK_ARMS], []
    for kind, name in itertools.product(CHECK_KINDS, CHECK_SENSORS):
        cells, shares = coverage(trials(robots, seeds, CHECK_KINDS[kind], SENSORS[name]))
        text += " | ".join(("", kind, name, *cells, "")).strip() + "\n"
        all_shares.append(shares)
        print(text.splitlines()[-1], flush=True)
    text += "\n" + summary(np.array(all_shares)) + "\n" + compared_paths() + "\n"
    costs = "; ".join("{:.0f} Hz: {:.0f} and {:.0f} us".format(rate, *cost(7, rate)) for rate in (125.0, 500.0, 1000.0))
    text += f"\nA message of seven joints, estimate alone and with torque and torque rate, median: {costs}.\n"
    (HERE / "estimation.md").write_text(text + NOTES, encoding="utf-8")


if __name__ == "__main__":
    main()

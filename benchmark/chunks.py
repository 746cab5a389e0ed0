"""Action chunks of learned policies: ChunkExecutor beside clamps, filters, interpolation, Ruckig and TOPP-RA.

    python benchmark/chunks.py -o benchmark/chunks.md
    python benchmark/chunks.py --seeds 20 --arms panda ur5_robot xarm7 seven_r stanford random

Streams and limits are those of test/support/chunk_streams.py, peers those of chunk_peers.py. Torques are Pinocchio's; motions
are evaluated at 0.1 ms instants, commands of peers at 1 ms with differences as derivatives.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from chunk_peers import PEERS, STEP

from rnea_ros import ChunkExecutor, ChunkOptions
from support.chunk_streams import INSTANT, KINDS, Arm, Stream, arm, played, stream, utilization

SHIFTS = np.arange(0.0, 1.2, 0.01)  # s, among which the delay is
RATES = (30.0, 10.0, 50.0)  # Hz, one seed after the other
OURS = "ChunkExecutor"
FAST = "too fast"
HEAD = """# Action chunks of learned policies

Written by benchmark/chunks.py: {arms}; {seeds} seeds of each kind of stream; {runs} streams of {duration:g} s with 50 points
at 30, 10 or 50 Hz every 0.2 s, 0.1 s old when they arrive. Kinds: smooth; noisy (0.5 to 5 mrad); late (0.1 to 0.8 s,
constant or random); disagreeing (each chunk 20 to 70 mrad off in every joint); lost (half of them); disordered (late, twice,
in another order); faulty (NaN, a joint missing, a radian off, beyond a limit); ending (the policy stops). "{fast}" is
smooth, but goes on beyond the velocity limits.

Excess is the largest share of a limit that was used, and of which: torque, torque rate, velocity, acceleration, jerk,
position. Deviation is the distance from the policy's intent (without noise) at the same time; delay the shift in time for
which it is least, and distance what is left (RMS over joints and time). Cost is processor time per chunk. Peers command at 1
kHz, and derivatives are differences: a step of a command is a large acceleration there, as it is for a robot that follows
it. Peers leave out chunks with NaN or of another length, and nothing else. Commands that are interpolated linearly have
excesses that depend on this rate; those of Ruckig and TOPP-RA do not.
"""


class Row(NamedTuple):
    """What one motion used and how far it was from the policy's intent."""

    excess: float
    quantity: str
    rms: float
    largest: float
    delay: float
    distance: float
    costs: list[float]


def row(arm_: Arm, sent: Stream, motion: np.ndarray, step: float, costs: list[float]) -> Row:
    used = utilization(arm_, motion, step)
    quantity = max(used, key=used.__getitem__)
    coarse = slice(None, None, max(1, round(0.005 / step)))
    q = motion[0, coarse]
    t = np.arange(len(motion[0]))[coarse] * step
    during = t <= sent.duration - 1.0
    q, t = q[during], t[during]
    errors = [float(np.sqrt(((q - sent.intent(np.maximum(t - shift, 0.0))) ** 2).mean())) for shift in SHIFTS]
    best = int(np.argmin(errors))
    return Row(used[quantity], quantity, errors[0], float(np.abs(q - sent.intent(t)).max()), float(SHIFTS[best]), errors[best],
               costs)


def ours(arm_: Arm, sent: Stream) -> tuple[Row, ChunkExecutor, list]:
    executor, costs = ChunkExecutor(arm_.robot, arm_.limits, ChunkOptions(time_limit=10.0)), []
    push = executor.push

    def timed(*given, **options):
        began = time.thread_time()
        result = push(*given, **options)
        costs.append(time.thread_time() - began)
        return result

    executor.push = timed  # type: ignore[method-assign]
    _, motion, results = played(executor, sent)
    return row(arm_, sent, motion, INSTANT, costs), executor, results


def peer(name: str, arm_: Arm, sent: Stream) -> Row:
    q, costs = PEERS[name](sent, arm_)
    motion = [q]
    for _ in range(3):
        motion.append(np.gradient(motion[-1], STEP, axis=0))
    return row(arm_, sent, np.array(motion), STEP, costs)


def sampling(executor: ChunkExecutor) -> float:
    """Return processor time of a sample [s]."""
    times = np.linspace(executor.end_time - 1.0, executor.end_time, 5000).tolist()
    began = time.thread_time()
    for t in times:
        executor.sample(t)
    return (time.thread_time() - began) / len(times)


def line(name: str, rows: list[Row]) -> str:
    worst = max(rows, key=lambda one: one.excess)
    costs = np.concatenate([one.costs for one in rows if one.costs] or [np.zeros(1)])
    mean = [np.mean([getattr(one, field) for one in rows]) for field in ("rms", "delay", "distance")]
    return (f"| {name} | {worst.excess:.3f} ({worst.quantity.replace('_', ' ')}) | {1e3 * mean[0]:.1f} | "
            f"{1e3 * max(one.largest for one in rows):.0f} | {1e3 * mean[1]:.0f} | {1e3 * mean[2]:.1f} | "
            f"{1e3 * np.median(costs):.2f} | {1e3 * np.percentile(costs, 99):.2f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arms", nargs="+", default=["panda", "ur5_robot"])
    parser.add_argument("--duration", type=float, default=4.0)
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("-o", type=Path)
    given = parser.parse_args()
    kinds = [*KINDS, FAST]
    rows: dict[str, dict[str, list[Row]]] = {kind: {name: [] for name in (OURS, *given.peers)} for kind in kinds}
    shares: dict[str, list] = {kind: [] for kind in kinds}
    samples = []
    for kind in kinds:
        for name in given.arms:
            for seed in range(given.seeds):
                one = arm(name)
                sent = stream("smooth" if kind == FAST else kind, seed, one, rate=RATES[seed % 3], duration=given.duration,
                              speed=2.5 if kind == FAST else 0.7)
                found, executor, results = ours(one, sent)
                rows[kind][OURS].append(found)
                shares[kind] += results
                samples.append(sampling(executor))
                for other in given.peers:
                    rows[kind][other].append(peer(other, one, sent))
        for name, found in rows[kind].items():
            print(kind, line(name, found), flush=True)
    page = HEAD.format(arms=", ".join(given.arms), seeds=given.seeds, duration=given.duration, fast=FAST,
                       runs=len(kinds) * len(given.arms) * given.seeds)
    head = ("| | excess | deviation [mrad] | largest [mrad] | delay [ms] | distance [mrad] | cost [ms] | 99 % |\n"
            "|---|---|---|---|---|---|---|---|\n")
    together = {name: [one for kind in KINDS for one in rows[kind][name]] for name in (OURS, *given.peers)}
    page += "\n## All kinds but the last\n\n" + head + "\n".join(line(name, found) for name, found in together.items()) + "\n"
    page += f"\nA sample of {OURS} takes {1e6 * np.median(samples):.1f} us (median), {1e6 * max(samples):.1f} at most.\n"
    page += f"\n## {OURS}: results of the chunks\n\n| stream | chunks | accepted | slowed | rejected | binding |\n"
    page += "|---|---|---|---|---|---|\n"
    for kind, results in shares.items():
        accepted = [result for result in results if result.accepted]
        reasons = sorted({result.reason for result in results} - {"accepted"})
        counted = ", ".join(f"{reason} {sum(result.reason == reason for result in results)}" for reason in reasons)
        binding = [result.binding.rpartition(" of ")[0] for result in results if result.binding]
        named = sorted(set(binding), key=lambda word: -binding.count(word))[:2]
        slowed = sum(result.stretch > 1.0 + 1e-9 for result in accepted)
        page += f"| {kind} | {len(results)} | {len(accepted)} | {slowed} | {counted or '-'} | {', '.join(named) or '-'} |\n"
    for kind in kinds:
        page += f"\n## {kind.capitalize()}\n\n{head}" + "\n".join(line(*item) for item in rows[kind].items()) + "\n"
    if given.o:
        given.o.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

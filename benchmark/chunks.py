"""Action chunks of learned policies: ChunkExecutor beside clamps, filters, interpolation, Ruckig and TOPP-RA.

    python benchmark/chunks.py --seeds 2 -o benchmark/chunks.md
    python benchmark/chunks.py --seeds 20 --rows build/chunks.jsonl -o benchmark/chunks.md

Streams are those of test/support/chunk_streams.py, arms those of chunk_plants.py, peers those of chunk_peers.py. Torques are
Pinocchio's; motions are evaluated at 0.1 ms instants, commands of peers at 1 ms with differences as derivatives. With --rows,
each stream's figures are appended to a file as they are found, and figures that are in it are not repeated: a campaign can be
interrupted, and its page written from what there is (--page). Remove those of ChunkExecutor after a change of it, and its are
found again; with --peers and no name only its are.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

import servo_plants
from chunk_peers import PEERS, STEP, as_sent
from chunk_plants import ARMS, SLEWING, Plant, plant, slewing_arm, tracked, used

from rnea_ros import ChunkExecutor, ChunkOptions
from support.chunk_streams import INSTANT, KINDS, Stream, played, stream

SHIFTS = np.arange(0.0, 1.2, 0.01)  # s, among which the delay is
RATES = (30.0, 10.0, 50.0)  # Hz, one seed after the other
OURS = "ChunkExecutor"
FAST, FEASIBLE = "too fast", "feasible"
SPEEDS = {FAST: 2.5, FEASIBLE: 0.4}  # of a smooth stream
MOVING, STOPPED = 0.2, 0.2  # rad/s of the intent, and share of its speed below which a motion is at a stop
CONTINUAL = ("smooth", "noisy", FEASIBLE)  # streams in which no chunk is missing and each continues the one before
ROW = dict[str, Any]


def figures(one: Plant, sent: Stream, motion: np.ndarray, step: float, costs: list[float]) -> ROW:
    """Return what a motion (4, samples, n) used of the limits, and how far it was from the policy's intent."""
    every, fine = max(1, round(0.005 / step)), max(1, round(STEP / step))
    during = slice(0, round((sent.duration - 1.0) / step) + 1)
    q, qd = motion[0, during][::every], motion[1, during][::fine]
    t = np.arange(len(q)) * step * every
    errors = [float(np.sqrt(((q - sent.intent(np.maximum(t - shift, 0.0))) ** 2).mean())) for shift in SHIFTS]
    best = int(np.argmin(errors))
    instants = np.arange(len(qd)) * step * fine
    wanted = np.abs(np.gradient(sent.intent(np.maximum(instants - SHIFTS[best], 0.0)), step * fine, axis=0)).max(axis=1)
    rests = (wanted > MOVING) & (np.abs(qd).max(axis=1) < STOPPED * wanted) & (instants > 0.6)
    return {"used": used(one, motion, step), "rms": errors[0], "largest": float(np.abs(q - sent.intent(t)).max()),
            "delay": float(SHIFTS[best]), "distance": errors[best], "costs": [round(1e6 * cost) for cost in costs],
            "stops": int(((~rests[:-1]) & rests[1:]).sum())}


def ours(one: Plant, sent: Stream, kind: str) -> ROW:
    executor, costs = ChunkExecutor(one.arm.robot, one.arm.limits, ChunkOptions(time_limit=10.0)), []
    push = executor.push

    def timed(*given: Any, **options: Any) -> Any:
        began = time.thread_time()
        result = push(*given, **options)
        costs.append(time.thread_time() - began)
        return result

    executor.push = timed  # type: ignore[method-assign]
    times, motion, results = played(executor, sent)
    found = figures(one, sent, motion, INSTANT, costs)
    accepted = [result for result in results if result.accepted]
    found |= {"results": Counter(result.reason for result in results), "sample": sampling(executor),
              "slowed": sum(result.stretch > 1.0 + 1e-9 for result in accepted),
              "binding": Counter(result.binding.rpartition(" of ")[0] for result in results if result.binding),
              "lead": max((result.splice_time - sent_.arrival for result, sent_ in zip(results, sent.chunks, strict=True)
                           if result.accepted), default=0.0)}
    if kind == FEASIBLE:
        period = sent.chunks[0].period
        points = np.arange(np.ceil(0.6 / period), np.floor((sent.duration - 1.1) / period)) * period
        at = np.rint(points / INSTANT).astype(int)
        passed = motion[0, at] + motion[1, at] * (points - times[at])[:, None]
        found["error"] = float(np.abs(passed - sent.intent(points)).max())
        found["changed"] = sum(result.stretch > 1.0 or result.delay > 1e-9 for result in accepted)
    return found


def peer(name: str, one: Plant, sent: Stream) -> ROW:
    q, costs = PEERS[name](sent, one.arm)
    motion = [q]
    for _ in range(3):
        motion.append(np.gradient(motion[-1], STEP, axis=0))
    return figures(one, sent, np.array(motion), STEP, costs)


def sampling(executor: ChunkExecutor) -> float:
    """Return processor time of a sample [s]."""
    times = np.linspace(executor.end_time - 1.0, executor.end_time, 2000).tolist()
    began = time.thread_time()
    for t in times:
        executor.sample(t)
    return (time.thread_time() - began) / len(times)


def played_stream(kind: str, name: str, seed: int, duration: float, names: list[str]) -> ROW:
    """Return the figures of these names: of ChunkExecutor or a peer."""
    one = plant(name)
    sent = stream(kind if kind in KINDS else "smooth", seed, one.arm, rate=RATES[seed % 3], duration=duration,
                  speed=SPEEDS.get(kind, 0.7))
    row: ROW = {"kind": kind, "arm": name, "seed": seed, "duration": duration}
    for other in names:
        row[other] = ours(one, sent, kind) if other == OURS else peer(other, one, sent)
    return row


TRACKED = ("disagreeing", "faulty", FAST)  # streams that drives with a slew limit follow, in MuJoCo


def tracked_stream(kind: str, name: str, seed: int, duration: float, names: list[str]) -> ROW:
    """Return for each name whether the arm was lost, and the largest tracking error [rad]."""
    _, one = slewing_arm(name)
    sent = stream(kind if kind in KINDS else "smooth", seed, one, rate=RATES[seed % 3], duration=duration,
                  speed=SPEEDS.get(kind, 0.7))
    row: ROW = {"tracked": kind, "arm": name, "seed": seed}
    for other in names:
        if other == OURS:
            motion = list(played(ChunkExecutor(one.robot, one.limits, ChunkOptions(time_limit=10.0)), sent, STEP)[1])
        else:
            motion = [PEERS[other](sent, one)[0]]
            motion += [np.gradient(motion[0], STEP, axis=0)]
            motion += [np.gradient(motion[1], STEP, axis=0)]
        row[other] = tracked(name, np.array(motion), STEP, seed)
    return row


def lost_arms(rows: list[ROW]) -> str:
    """Return the table of arms that were lost."""
    text = "| method | " + " | ".join(f"{kind}: lost, error [mrad]" for kind in TRACKED) + " |\n"
    text += "|---|" + "---|" * len(TRACKED) + "\n"
    for name in (OURS, *PEERS):
        cells = []
        for kind in TRACKED:
            found = [row[name] for row in rows if row["tracked"] == kind and name in row]
            lost = sum(is_lost for is_lost, _ in found)
            cells.append(f"{lost} of {len(found)}, {1e3 * max((error for _, error in found), default=0.0):.0f}")
        text += f"| {name} | " + " | ".join(cells) + " |\n"
    return text


SERVO_KINDS = ("noisy", "disagreeing", "late", "faulty", FAST)  # streams that arms of servos follow, in MuJoCo
SERVO_PEERS = {"as sent": as_sent, **{name: PEERS[name] for name in ("per-step clamp", "EMA and clamp", "clamp of a chunk")}}
COMMAND_S = 0.01  # s from one command of a servo to the next


def servo_stream(kind: str, name: str, seed: int, duration: float, names: list[str]) -> ROW:
    """Return for each name what the servos of an arm made of its commands."""
    one = plant(name)
    sent = stream(kind if kind in KINDS else "smooth", seed, one.arm, rate=RATES[seed % 3], duration=duration,
                  speed=SPEEDS.get(kind, 0.7))
    row: ROW = {"servos": kind, "arm": name, "seed": seed}
    for other in names:
        if other == OURS:
            executor = ChunkExecutor(one.arm.robot, one.arm.limits, ChunkOptions(time_limit=10.0))
            commands = played(executor, sent, COMMAND_S)[1][0]
        else:
            commands = SERVO_PEERS[other](sent, one.arm)[0][::round(COMMAND_S / STEP)]
        found = servo_plants.followed(name, commands)
        q = found.q[::servo_plants.EVERY]
        during = slice(0, round((sent.duration - 1.0) / COMMAND_S))
        intent = sent.intent(COMMAND_S * np.arange(len(q)))
        row[other] = {"torque": found.torque, "rate": found.rate, "saturated": found.saturated,
                      "acceleration": found.acceleration, "off": float(np.abs(q - commands).max()),
                      "rms": float(np.sqrt(((q - intent)[during] ** 2).mean()))}
    return row


def servo_table(rows: list[ROW]) -> str:
    """Return the table of what servos made of commands."""
    text = ("| arm | stream | method | gear torque [% of stall] | rate of the gear torque [stall torques/s] | acceleration "
            "[rad/s^2] | time at full duty [%] | distance from the command [mrad] | RMS distance from the intended motion "
            "[mrad] |\n|---|---|---|---|---|---|---|---|---|\n")
    for name in servo_plants.ARMS:
        for kind in SERVO_KINDS:
            for other in (OURS, *SERVO_PEERS):
                found = [row[other] for row in rows if (row["servos"], row["arm"]) == (kind, name) and other in row]
                if found:
                    most = {field: max(one[field] for one in found) for field in found[0]}
                    text += (f"| {name} | {kind} | {other} | {100 * most['torque']:.0f} | {most['rate']:.1f} | "
                             f"{most['acceleration']:.0f} | {100 * most['saturated']:.1f} | {1e3 * most['off']:.0f} | "
                             f"{1e3 * np.mean([one['rms'] for one in found]):.0f} |\n")
    return text


# ---------------------------------------------------------------------- page

HEAD = """# Action chunks of learned policies

Written by benchmark/chunks.py: {arms}; {runs} streams of {duration:g} s ({seeds} of each kind and arm). A chunk has 50
points at 30, 10 or 50 Hz; one arrives every 0.2 s and is 0.1 s old on arrival. Kinds: smooth; noisy (0.5 to 5 mrad); late (0.1
to 0.8 s, constant or random); disagreeing (each chunk 20 to 70 mrad off in every joint); lost (half of the chunks); disordered
(late, repeated, in another order); faulty (NaN, a missing joint, a radian off, beyond a limit); ending (the policy stops).
"too fast" is smooth but exceeds the velocity limits; "feasible" is smooth and within all limits.

Arms: {plants}

* Excess: the largest utilization of a limit, and its kind: torque, torque rate, velocity, acceleration, jerk, position, drive
  (voltage, speed-torque curve, power of the supply).
* Deviation: the distance from the policy's intended motion (without noise) at the same time, RMS over joints and time.
* Delay: the time shift for which the deviation is smallest. Distance: the deviation after this shift.
* Stops: instants at which the policy's speed is above 0.2 rad/s and that of the motion below a fifth of it, in streams without
  a gap (smooth, noisy, feasible).
* Cost: processor time per chunk.

The compared methods command at 1 kHz, and derivatives are differences: a step of a command is a large acceleration, as for a
robot that tracks it. They skip chunks with NaN or of another length, and no others. The excess of linearly interpolated
commands depends on this rate; that of Ruckig and TOPP-RA does not. The arms are kinematic: the commanded motion is evaluated.
"""
TABLE = ("| method | excess | deviation [mrad] | largest deviation [mrad] | delay [ms] | distance [mrad] | stops | cost [ms] "
         "| cost, 99 % [ms] |\n|---|---|---|---|---|---|---|---|---|\n")


def line(label: str, found: list[ROW], stops: str) -> str:
    worst, quantity = max((share, quantity) for one in found for quantity, share in one["used"].items())
    costs = 1e-3 * np.concatenate([one["costs"] for one in found if one["costs"]] or [np.zeros(1)])
    mean = {field: 1e3 * np.mean([one[field] for one in found]) for field in ("rms", "delay", "distance")}
    return (f"| {label} | {worst:.3f} ({quantity.replace('_', ' ')}) | {mean['rms']:.1f} | "
            f"{1e3 * max(one['largest'] for one in found):.0f} | {mean['delay']:.0f} | {mean['distance']:.1f} | {stops} | "
            f"{np.median(costs):.2f} | {np.percentile(costs, 99):.2f} |")


def table(rows: list[ROW]) -> str:
    names = [name for name in (OURS, *PEERS) if any(name in row for row in rows)]
    lines = []
    for name in names:
        continual = [row[name]["stops"] for row in rows if row["kind"] in CONTINUAL and name in row]
        lines.append(line(name, [row[name] for row in rows if name in row], str(sum(continual)) if continual else "-"))
    return TABLE + "\n".join(lines) + "\n"


def outcomes(rows: list[ROW], kinds: list[str]) -> str:
    text = "| stream | chunks | accepted | slowed | rejected | binding |\n|---|---|---|---|---|---|\n"
    for kind in kinds:
        found = [row[OURS] for row in rows if row["kind"] == kind]
        results, binding = Counter(), Counter()
        for one in found:
            results.update(one["results"])
            binding.update(one["binding"])
        rejected = ", ".join(f"{reason} {count}" for reason, count in sorted(results.items()) if reason != "accepted")
        named = ", ".join(quantity for quantity, _ in binding.most_common(2))
        text += (f"| {kind} | {sum(results.values())} | {results['accepted']} | {sum(one['slowed'] for one in found)} | "
                 f"{rejected or '-'} | {named or '-'} |\n")
    return text


def page(rows: list[ROW], note: str = "") -> str:
    import chunk_plants

    on_plants, on_servos, rows = ([row for row in rows if field in row and OURS in row]
                                  for field in ("tracked", "servos", "kind"))
    kinds = [kind for kind in (*KINDS, FEASIBLE, FAST) if any(row["kind"] == kind for row in rows)]
    arms = [name for name in ARMS if any(row["arm"] == name for row in rows)]
    per = Counter((row["kind"], row["arm"]) for row in rows)
    seeds = str(min(per.values())) if min(per.values()) == max(per.values()) else f"{min(per.values())} to {max(per.values())}"
    _, _, described = (chunk_plants.__doc__ or "").partition("\n\n")
    text = HEAD.format(arms=", ".join(arms), runs=len(rows), seeds=seeds, duration=rows[0]["duration"],
                       plants="\n\n```text\n" + described.rstrip() + "\n```")
    beside = sum(any(name in row for name in PEERS) for row in rows)
    if beside < len(rows):
        text += f"\nThe compared methods received {beside} of these streams.\n"
    text += f"\n{note}\n" if note else ""
    own = [row[OURS] for row in rows]
    samples, leads = [one["sample"] for one in own], [one["lead"] for one in own]
    text += "\n## All streams except too fast\n\n" + table([row for row in rows if row["kind"] != FAST])
    text += (f"\nA sample of {OURS} takes {1e6 * np.median(samples):.1f} us (median; {1e6 * max(samples):.1f} in the slowest "
             f"stream). The time from the arrival of a chunk to its splice is {1e3 * max(leads):.0f} ms at most: the lead "
             "time of 50 ms, or up to one period more if the motion passes through the chunk's next point anyway.\n")
    feasible = [row[OURS] for row in rows if row["kind"] == FEASIBLE]
    if feasible:
        unchanged, exact = (sum(one[name] < limit for one in feasible) for name, limit in (("changed", 1), ("error", 1e-6)))
        text += (f"\nOf {len(feasible)} feasible streams {unchanged} are executed without a stretch or a delay, and {exact} "
                 "within 1e-6 rad of all points (after the first 0.6 s, in which the motion reaches the chunks); the largest "
                 f"distance from a point is {max(one['error'] for one in feasible):.1e} rad.\n")
    text += f"\n## {OURS}: results of the chunks\n\n" + outcomes(rows, kinds)
    if on_plants:
        text += (f"\n## Lost arms\n\n{', '.join(SLEWING)} in MuJoCo, as in saturation.md: drives with a slew limit, masses of "
                 "all links up to 5 % wrong, unknown friction, inverse dynamics and a PD of 42 rad/s at 1 kHz. An arm is "
                 "lost when the error of a joint reaches 0.25 rad. Motions use 90 % of torque and torque rate.\n\n"
                 + lost_arms(on_plants))
    if on_servos:
        count = 1 + max(row["seed"] for row in on_servos)
        _, _, described = (servo_plants.__doc__ or "").partition("\n\n")
        text += (f"\n## Arms with servos\n\n{described}\nThe table gives the largest values of seeds 0 to {count - 1}, and "
                 "the mean of the RMS. A soft arm lags behind any command and sags under its weight, so the distance from "
                 "the command is similar for all methods; the load of the gears differs.\n\n" + servo_table(on_servos))
    text += f"\n## {OURS} by arm\n\n" + "| arm | " + " | ".join(kinds) + " |\n|---|" + "---|" * len(kinds) + "\n"
    for name in arms:
        cells = [max((share, quantity) for row in rows if (row["arm"], row["kind"]) == (name, kind)
                     for quantity, share in row[OURS]["used"].items()) for kind in kinds]
        text += f"| {name} | " + " | ".join(f"{share:.3f} {quantity.replace('_', ' ')}" for share, quantity in cells) + " |\n"
    for kind in kinds:
        text += f"\n## {kind.capitalize()}\n\n" + table([row for row in rows if row["kind"] == kind])
    return text


RUNS = {"tracked": tracked_stream, "servos": servo_stream, "kind": played_stream}


def key(row: ROW) -> tuple[object, ...]:
    """Return what distinguishes the stream of a row from others."""
    field = next(name for name in ("tracked", "servos", "kind") if name in row)
    return field, row[field], row["arm"], row["seed"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--kinds", nargs="+", default=[*KINDS, FEASIBLE, FAST])
    parser.add_argument("--duration", type=float, default=4.0)
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--rows", type=Path, help="file that figures are appended to")
    parser.add_argument("--plants", type=int, default=0, help="seeds of streams that arms in MuJoCo follow, before the others")
    parser.add_argument("--servos", type=int, default=0, help="seeds of streams that arms of servos follow, before the others")
    parser.add_argument("--page", action="store_true", help="write the page of what is in --rows, without another stream")
    parser.add_argument("--note", default="", help="sentences about the run, for the page")
    parser.add_argument("-o", type=Path)
    given = parser.parse_args()
    rows: dict[tuple[object, ...], ROW] = {}
    if given.rows and given.rows.exists():
        for text in given.rows.read_text(encoding="utf-8").splitlines():
            row = json.loads(text)
            rows.setdefault(key(row), {}).update(row)
    wanted = [("tracked", kind, name, seed) for seed in range(given.plants) for kind in TRACKED for name in SLEWING]
    wanted += [("servos", kind, name, seed) for seed in range(given.servos) for kind in SERVO_KINDS
               for name in servo_plants.ARMS]
    wanted += [("kind", kind, name, seed) for seed in range(given.seeds) for kind in given.kinds for name in given.arms]
    for one in [] if given.page else wanted:
        peers = SERVO_PEERS if one[0] == "servos" else given.peers
        names = [name for name in (OURS, *peers) if name not in rows.get(one, {})]
        if not names:
            continue
        row = RUNS[one[0]](*one[1:], given.duration, names)
        rows.setdefault(one, {}).update(row)
        print(*one, str({name: row[name]["used"] if "used" in row[name] else row[name] for name in names})[:160], flush=True)
        if given.rows:
            with given.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    if given.o:
        given.o.write_text(page(list(rows.values()), given.note), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

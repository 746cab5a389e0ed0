"""MoveIt's time laws beside the response adapter, on paths of a Panda and a UR5.

    python benchmark/moveit_adapter.py --rows build/moveit_adapter.jsonl --seconds 280     # again until all is done
    python benchmark/moveit_adapter.py --rows build/moveit_adapter.jsonl --report > benchmark/moveit_adapter.md

The peers are implemented here from the paper and the documentation, in Python; MoveIt itself does not run. What is compared is
what a joint_trajectory_controller at 1 kHz makes of the points of a trajectory: quintic polynomials through positions,
velocities and accelerations, at rest before and after it. Each arm carries its rated payload.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rnea_ros import Robot, load
from rnea_ros.demo.arms import ARM_SOURCES, EFFORT_SWING_S
from rnea_ros.demo.arms import Arm as DemoArm
from rnea_ros.query import retime

PATHS = 50  # of each arm
RATED_PAYLOADS = {"panda": 3.0, "ur5": 5.0}  # kg, 0.1 m before the tool's frame
CORNERS = (0, 1, 2, 3)  # of the paths, in turn
SPACING, FEWEST = 0.1, 10  # of waypoints on straight segments [rad], and number of waypoints of a path: as OMPL's in MoveIt
TOLERANCE, RESAMPLE = 0.1, 0.1  # path_tolerance [rad] and resample_dt [s] of AddTimeOptimalParameterization
GRIDPOINTS = 600
DECREMENT, ITERATIONS = 0.1, 10  # of acceleration limits, and at most, in the torque scheme of MoveIt 1
EXTENSION, MOST_EXTENSION = 1.1, 50.0  # of a segment's duration where Ruckig fails
CYCLE = 1e-3  # s
NAMES = ("duration", "torque", "torque rate", "velocity", "acceleration", "jerk")


PREFACE = """# Comparison of the response adapter with MoveIt's time laws

Written by benchmark/moveit_adapter.py: {count} random paths each of a Panda and a UR5, with 0 to 3 corners, as
waypoints on straight segments. Each arm carries its rated payload (3 and 5 kg). The limits of the Panda are those of
libfranka. The UR5 has the torque and velocity limits of its URDF, 15 rad/s^2, 500 rad/s^3, and the torque rate with which the
strongest joint changes from its lower to its upper torque limit in 0.174 s.

The other time laws are Python implementations in this benchmark; MoveIt did not run.

* TOTG: circular blends as in Kunz and Stilman (RSS 2012), `path_tolerance` 0.1, the fastest law within velocity and
  acceleration limits (by TOPP-RA), sampled every 0.1 s (`resample_dt`).
* Ruckig: ruckig 0.19.4 between these points, as MoveIt's documentation describes its smoothing: only the durations of the last
  segment and of segments that Ruckig rejects are changed.
* Torque scheme: as described for MoveIt 1, TOTG is repeated at most ten times with lower acceleration limits for joints whose
  torque is too large at a point.
* Adapter: the result of query_node that the adapter writes into the plan, either for the waypoints or for the points of TOTG,
  which lie on its blended path.

The table evaluates the commands of a joint_trajectory_controller at 1 kHz: quintic polynomials between the points. Rates and
jerks are differences between cycles, including the rest before and after the motion. Each cell contains the median and the
worst value, as shares of the limits. "Cycles above" is the share of cycles in which a torque rate exceeds its limit by more
than 1 %. "Off the segments" is the distance from the straight segments in joint space. Processor time is that of the whole
time law on one processor.
"""


class Arm(NamedTuple):
    """Robot with all limits, and the middle of its paths with their reach (n,) [rad]."""

    robot: Robot
    rest: np.ndarray
    reach: np.ndarray


class Points(NamedTuple):
    """Trajectory as MoveIt sends it: t (count,), q, qd, qdd (count, n)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


def arm(name: str) -> Arm:
    """Return the arm: the Panda with the limits of libfranka, the UR5 with those of its URDF and generic ones.

    A UR5 has no published limits of acceleration, jerk and torque rate: 15 rad/s^2, 500 rad/s^3 and, as the demos of this
    package, the rate that takes the strongest joint from end to end in 0.174 s.
    """
    source = DemoArm(ARM_SOURCES[name])
    bare = load(source.urdf)
    if name == "panda":
        accelerations = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
        limits = {joint: {"max_acceleration": a, "max_jerk": 500.0 * a, "max_effort_rate": 1000.0}
                  for joint, a in zip(bare.joint_names, accelerations, strict=True)}
    else:
        rate = 2.0 * float(bare.limits.effort.max()) / EFFORT_SWING_S
        limits = {joint: {"max_acceleration": 15.0, "max_jerk": 500.0, "max_effort_rate": rate} for joint in bare.joint_names}
    payload = RATED_PAYLOADS[name]
    inertia = 0.4 * payload * 0.05**2 * np.eye(3)  # of a ball
    robot = load(source.urdf, {"version": 1, "limits": limits}).with_payload(source.tool, payload, (0.0, 0.0, 0.1), inertia)
    lower = np.where(np.isfinite(bare.limits.lower), bare.limits.lower, -np.pi)
    upper = np.where(np.isfinite(bare.limits.upper), bare.limits.upper, np.pi)
    return Arm(robot, np.array(ARM_SOURCES[name].rest), np.minimum(0.3 * (upper - lower), 1.2))


def corners(of: Arm, seed: int) -> np.ndarray:
    """Return start, corners and goal of a random path (count, n)."""
    rng = np.random.default_rng(seed)
    return of.rest + of.reach * rng.uniform(-1.0, 1.0, (2 + CORNERS[seed % len(CORNERS)], of.robot.n))


def waypoints(points: np.ndarray) -> np.ndarray:
    """Return waypoints on the straight segments between points, equally spaced on each."""
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    spacing = min(SPACING, lengths.sum() / (FEWEST - 1))
    pieces = [np.linspace(a, b, max(1, math.ceil(length / spacing)), endpoint=False)
              for a, b, length in zip(points[:-1], points[1:], lengths)]
    return np.vstack([*pieces, points[-1:]])


# ------------------------------------------------------------------------------------------------------------------ peers


class BlendedPath:
    """Straight segments with circular blends at the corners (Kunz and Stilman, RSS 2012, section III).

    A blend leaves a corner by at most the tolerance, and covers at most half of each segment. Has what TOPP-RA asks of a path.
    """

    def __init__(self, points: np.ndarray, tolerance: float):
        pieces: list[tuple[float, Callable[[float], tuple[np.ndarray, np.ndarray, np.ndarray]]]] = []
        directions = np.diff(points, axis=0)
        lengths = np.linalg.norm(directions, axis=1)
        directions /= lengths[:, None]
        free_start = 0.0
        for k, (start, direction, length) in enumerate(zip(points[:-1], directions, lengths)):
            cut, arc = 0.0, None
            if k + 1 < len(directions):
                following, corner = directions[k + 1], points[k + 1]
                angle = math.acos(float(np.clip(direction @ following, -1.0, 1.0)))
                if angle > 1e-6:
                    leaving = tolerance * math.sin(0.5 * angle) / (1.0 - math.cos(0.5 * angle))
                    cut = min(0.5 * length, 0.5 * lengths[k + 1], leaving)
                    radius = cut / math.tan(0.5 * angle)
                    bisector = following - direction
                    centre = corner + bisector / np.linalg.norm(bisector) * radius / math.cos(0.5 * angle)
                    arc = self._arc(centre, (corner - cut * direction - centre) / radius, direction, radius), radius * angle
            pieces.append((length - cut - free_start, self._line(start + free_start * direction, direction)))
            if arc:
                pieces.append((arc[1], arc[0]))
            free_start = cut
        self._pieces = [piece for piece in pieces if piece[0] > 1e-12]
        self.joins = np.concatenate(([0.0], np.cumsum([length for length, _ in self._pieces])))
        self.dof = points.shape[1]

    @staticmethod
    def _line(start: np.ndarray, direction: np.ndarray) -> Callable[[float], tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return lambda s: (start + s * direction, direction, np.zeros_like(direction))

    @staticmethod
    def _arc(centre: np.ndarray, x: np.ndarray, y: np.ndarray,
             radius: float) -> Callable[[float], tuple[np.ndarray, np.ndarray, np.ndarray]]:
        def at(s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            cos, sin = math.cos(s / radius), math.sin(s / radius)
            return centre + radius * (x * cos + y * sin), y * cos - x * sin, -(x * cos + y * sin) / radius
        return at

    @property
    def path_interval(self) -> np.ndarray:
        return self.joins[[0, -1]]

    def __call__(self, s: Any, order: int = 0) -> np.ndarray:
        if np.ndim(s):
            return np.array([self(float(one), order) for one in s])
        k = int(np.clip(np.searchsorted(self.joins, s, side="right") - 1, 0, len(self._pieces) - 1))
        return self._pieces[k][1](float(s) - self.joins[k])[order]


def totg(points: np.ndarray, robot: Robot, accelerations: np.ndarray | None = None) -> Points:
    """Time law of TOTG: the fastest one inside limits of velocity and acceleration on the blended path, every 0.1 s.

    The law is TOPP-RA's, which is the same optimum as that of Kunz and Stilman's integration.
    """
    from toppra.algorithm import TOPPRA
    from toppra.constraint import DiscretizationType, JointAccelerationConstraint, JointVelocityConstraint

    path = BlendedPath(points, TOLERANCE)
    velocity, acceleration = robot.limits.velocity, robot.limits.acceleration if accelerations is None else accelerations
    bounds = [JointVelocityConstraint(np.column_stack((-velocity, velocity))),
              JointAccelerationConstraint(np.column_stack((-acceleration, acceleration)),
                                          discretization_scheme=DiscretizationType.Interpolation)]
    grid = np.union1d(np.linspace(*path.path_interval, GRIDPOINTS), path.joins)
    law = TOPPRA(bounds, path, gridpoints=grid, parametrizer="ParametrizeConstAccel").compute_trajectory(0, 0)
    duration = float(law.duration)
    t = np.append(np.arange(math.ceil(duration / RESAMPLE - 1e-9)) * RESAMPLE, duration)
    return Points(t, *(law(t, order) for order in range(3)))


def totg_and_ruckig(points: np.ndarray, robot: Robot) -> Points:
    """TOTG, then Ruckig from each point to the next one, as the documentation of MoveIt's Ruckig smoothing describes it.

    A segment that Ruckig refuses takes longer by steps of 10 %: its last velocity is divided by the factor, its last
    acceleration is the quotient of differences. The last segment takes the time that Ruckig needs. All others keep their time.
    """
    import ruckig

    first, limits, n = totg(points, robot), robot.limits, robot.n
    steps, qd, qdd = np.diff(first.t), first.qd.copy(), first.qdd.copy()
    otg, found = ruckig.Ruckig(n), ruckig.Trajectory(n)
    factor, k = 1.0, 0
    while k < len(steps) and factor <= MOST_EXTENSION:
        given = ruckig.InputParameter(n)
        for name in ("velocity", "acceleration", "jerk"):
            setattr(given, f"max_{name}", getattr(limits, name).tolist())
        for end, row in (("current", k), ("target", k + 1)):
            setattr(given, f"{end}_position", first.q[row].tolist())
            for name, table in (("velocity", qd), ("acceleration", qdd)):
                bound = getattr(limits, name)
                setattr(given, f"{end}_{name}", np.clip(table[row], -bound, bound).tolist())
        try:
            reached = otg.calculate(given, found) in (ruckig.Result.Working, ruckig.Result.Finished)
        except ruckig.RuckigError:
            reached = False
        if reached:
            k += 1
            continue
        factor *= EXTENSION
        steps, qd, qdd = np.diff(first.t), first.qd.copy(), first.qdd.copy()
        steps[k] *= factor
        qd[k + 1] /= factor
        qdd[k + 1] = (qd[k + 1] - qd[k]) / steps[k]
    if k == len(steps):
        steps[-1] = found.duration
    return Points(np.concatenate(([0.0], np.cumsum(steps))), first.q, qd, qdd)


def iterative_torque(points: np.ndarray, robot: Robot) -> Points:
    """Time law of MoveIt 1's torque scheme: TOTG, at most ten times, with lower acceleration limits of the joints whose torque
    is too large at a point.
    """
    limits = robot.limits.acceleration.copy()
    for _ in range(ITERATIONS):
        found = totg(points, robot, limits)
        tau = robot.inverse_dynamics(found.q, found.qd, found.qdd)
        rows = np.flatnonzero((np.abs(tau) > robot.limits.effort).any(axis=1))
        if not len(rows):
            break
        row = rows[0]
        for joint in np.flatnonzero(np.abs(tau[row]) > robot.limits.effort):
            more = found.qdd[row].copy()
            more[joint] *= 1.0 + DECREMENT
            helps = abs(robot.inverse_dynamics(found.q[row], found.qd[row], more)[joint]) < abs(tau[row, joint])
            limits[joint] *= (1.0 + DECREMENT if helps else 1.0 - DECREMENT) * (1.0 - DECREMENT)
    return found


# ------------------------------------------------------------------------------------------------------------------ ours


def adapter(points: np.ndarray, robot: Robot, rate: float = 100.0) -> Points:
    """Answer of query_node to the request of AddTorqueRateParameterization; rate: its parameter [Hz]."""
    path = {"joint_names": list(robot.joint_names), "positions": points.tolist()}
    request = {"trajectory": path, "tolerance": 1e-6, "rate": rate}
    answer = retime(robot, request, robot.limits)["trajectory"]
    t = np.round(answer["times"], 9)  # of the messages
    return Points(t, answer["positions"], answer["velocities"], answer["accelerations"])


LAWS: dict[str, Callable[[np.ndarray, Robot], Points]] = {
    "TOTG": totg, "TOTG and Ruckig": totg_and_ruckig, "TOTG with MoveIt 1's torque scheme": iterative_torque,
    "adapter, 100 Hz": adapter, "adapter, 500 Hz": lambda points, robot: adapter(points, robot, 500.0),
    "adapter after TOTG, 500 Hz": lambda points, robot: adapter(totg(points, robot).q, robot, 500.0)}


# ------------------------------------------------------------------------------------------------------------------ judged


def commanded(points: Points) -> Points:
    """Return what the controller commands in each cycle: quintic polynomials between the points."""
    t = np.arange(0.0, points.t[-1], CYCLE)
    k = np.clip(np.searchsorted(points.t, t, side="right") - 1, 0, len(points.t) - 2)
    h = np.diff(points.t)[k][:, None]
    x = (t - points.t[k])[:, None] / h
    a, b, c = points.q[k], h * points.qd[k], 0.5 * h**2 * points.qdd[k]
    p = points.q[k + 1] - a - b - c
    v = h * points.qd[k + 1] - b - 2.0 * c
    w = h**2 * points.qdd[k + 1] - 2.0 * c
    d, e, f = 10.0 * p - 4.0 * v + 0.5 * w, -15.0 * p + 7.0 * v - w, 6.0 * p - 3.0 * v + 0.5 * w
    q = a + x * (b + x * (c + x * (d + x * (e + x * f))))
    qd = (b + x * (2.0 * c + x * (3.0 * d + x * (4.0 * e + x * 5.0 * f)))) / h
    qdd = (2.0 * c + x * (6.0 * d + x * (12.0 * e + x * 20.0 * f))) / h**2
    return Points(t, q, qd, qdd)


def largest_use(robot: Robot, points: Points) -> dict[str, float]:
    """Return the duration, the largest value of each quantity as a share of its limit, and the share of cycles in which a
    torque rate is more than 1 % above its limit. Rates are differences from cycle to cycle, with rest before and after.
    """
    limits, made = robot.limits, commanded(points)
    zero = np.zeros((1, robot.n))
    qdd = np.vstack((zero, made.qdd, zero))
    rest = [robot.inverse_dynamics(end, zero[0], zero[0])[None] for end in points.q[[0, -1]]]
    tau = np.vstack((rest[0], robot.inverse_dynamics(made.q, made.qd, made.qdd), rest[1]))
    rate = np.abs(np.diff(tau, axis=0)) / CYCLE / limits.effort_rate
    return {"duration": float(points.t[-1]), "torque": float(np.abs(tau / limits.effort).max()),
            "torque rate": float(rate.max()),
            "velocity": float(np.abs(made.qd / limits.velocity).max()),
            "acceleration": float(np.abs(qdd / limits.acceleration).max()),
            "jerk": float((np.abs(np.diff(qdd, axis=0)) / CYCLE / limits.jerk).max()),
            "cycles": float((rate > 1.01).any(axis=1).mean())}


def deviation(points: np.ndarray, made: Points) -> float:
    """Return the largest distance of a trajectory from straight segments between points [rad]."""
    q = commanded(made).q[::5]
    starts, along = points[:-1], np.diff(points, axis=0)
    share = np.clip(((q[:, None] - starts) * along).sum(axis=2) / (along**2).sum(axis=1), 0.0, 1.0)
    distances = np.linalg.norm(q[:, None] - starts - share[:, :, None] * along, axis=2)
    return float(distances.min(axis=1).max())


def run(rows: Path, seconds: float) -> bool:
    """Add rows that are missing in the file, for a time; return whether all are there."""
    done = {(row["arm"], row["seed"], row["law"]) for row in read(rows)}
    end = time.monotonic() + seconds
    rows.parent.mkdir(parents=True, exist_ok=True)
    arms = {name: arm(name) for name in ("panda", "ur5")}
    for seed in range(PATHS):
        for name, of in arms.items():
            missing = [law for law in LAWS if (name, seed, law) not in done]
            if not missing:
                continue
            ends = corners(of, seed)
            for law in missing:
                if time.monotonic() > end:
                    return False
                start = time.process_time()
                row: dict[str, Any] = {"arm": name, "seed": seed, "law": law}
                try:
                    made = LAWS[law](waypoints(ends), of.robot)
                    row["seconds"] = time.process_time() - start
                    row |= {**largest_use(of.robot, made), "deviation": deviation(ends, made)}
                except (ValueError, RuntimeError, AttributeError) as error:
                    row["error"] = f"{type(error).__name__}: {error}"
                with rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    return True


def read(rows: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, each path and time law once."""
    found = map(json.loads, rows.read_text(encoding="utf-8").splitlines()) if rows.is_file() else ()
    return list({(row["arm"], row["seed"], row["law"]): row for row in found}.values())


def report(rows: list[dict[str, Any]]) -> str:
    """Return the tables of all rows."""
    lines = [PREFACE.format(count=PATHS).rstrip()]
    for name, title in (("panda", "Panda"), ("ur5", "UR5")):
        lines += ["", f"## {title}", "", "| time law | rejected | duration [s] | torque | torque rate | cycles above "
                  "| velocity | acceleration | jerk | off the segments [rad] | processor [s] |", "|---" * 11 + "|"]
        for law in LAWS:
            mine = [row for row in rows if row["arm"] == name and row["law"] == law]
            good = [row for row in mine if "error" not in row]
            if not good:
                continue
            column = {key: np.array([row[key] for row in good]) for key in (*NAMES, "cycles", "deviation", "seconds")}
            uses = [f"{np.median(column[key]):.0%}, {column[key].max():.0%}" for key in NAMES[1:]]
            cells = [law, f"{len(mine) - len(good)} of {len(mine)}", f"{np.median(column['duration']):.2f}", *uses[:2],
                     f"{column['cycles'].mean():.1%}", *uses[2:],
                     f"{np.median(column['deviation']):.3f}, {column['deviation'].max():.3f}",
                     f"{np.median(column['seconds']):.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True, help="file of one JSON object for each path and time law")
    parser.add_argument("--seconds", type=float, default=280.0, help="time for more rows [s]")
    parser.add_argument("--report", action="store_true", help="print the tables instead")
    given = parser.parse_args()
    if given.report:
        print(report(read(given.rows)))
        return 0
    finished = run(given.rows, given.seconds)
    print(f"{len(read(given.rows))} rows; " + ("all done" if finished else "run again for more"))
    return 0


if __name__ == "__main__":
    sys.exit(main())

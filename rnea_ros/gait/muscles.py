"""Muscles: the largest torque of a joint by its angle and angular velocity, and fatigue of repeated or sustained work.

Strength: D. E. Anderson, M. L. Madigan, M. A. Nussbaum, J. Biomechanics 40 (2007) 3105-3113, torque of hip, knee and ankle in
flexion and extension, of men and women in three age groups, as fractions of body weight times stature. With the angle theta
[rad] (flexion and dorsiflexion positive) and the velocity w [rad/s], positive where the muscles shorten,

    T = C1 m g H cos(C2 (theta - C3)) r(|w|) (1 + C6 max(-w, 0))
    r(s) = (2 C4 C5 + s (C5 - 3 C4)) / (2 C4 C5 + s (2 C5 - 4 C4))

C4 and C5 are the velocities at which three quarters and half of the isometric torque remain. A cosine or a ratio below zero
counts as zero. At w = 0 the curve has a kink; |w| is smoothed by SMOOTHING, which costs at most 1.5 % of the isometric torque.

The passive terms of the same paper are not used: that of the hip was fitted within the range of its measurements, and grows
to 65 kN m at 115 degrees of flexion.

Fatigue of repeated or sustained work: the three-compartment model, driven by joint torques over strength.

T. Xia, L. A. Frey-Law, J. Biomechanics 41 (2008) 3046-3052. The motor units of a joint are active, resting or fatigued. Active
ones fatigue at the rate F, fatigued ones recover at the rate R, at r R while the joint rests (J. M. Looft, N. Herkert,
L. Frey-Law, J. Biomechanics 77 (2018) 16-25). With the load L (torque over strength, 0 to 1) the fatigued share obeys

    dM/dt = F L - R M under load,   dM/dt = -r R M at rest,   capacity = 1 - M

and the work fails where the load exceeds the capacity. The published controller activates units at 10 per second; here they
follow the load at once, which makes a cycle of work an affine map of M, and any number of cycles a closed formula.

Rates from constant loads: L. A. Frey-Law, J. M. Looft, J. Heitsman, J. Biomechanics 45 (2012) 1803-1808, table 1. They have
no hip: its rates are the general ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import InputError, shown, some
from ..model.dh_table import read_cells
from ..planning.problem import Quantity
from .skeleton import SIDES, Human

# ------------------------------------------------------------------ strength


GRAVITY = 9.81  # [m/s^2]
SMOOTHING = 0.02  # of the velocity's kink [rad/s]
AGE_GROUPS = ("young", "middle", "senior")  # 18 to 25, 55 to 65, over 65 years
DIRECTIONS = ("positive", "negative")  # of the coordinate, in which the muscles act
MIN_SPEED, MAX_COEFFICIENT = 0.01, 1000.0  # of C4 [rad/s], and of all: torques and their derivatives stay finite
MAX_PROBLEMS = 20  # of a file that are reported
COLUMNS = ("joint", "direction", "c1", "c2", "c3", "c4", "c5", "c6")


class StrengthCurve(NamedTuple):
    """Coefficients of one joint and direction: C1 [-], C2 [-], C3 [rad], C4, C5 [rad/s], C6 [s/rad]."""

    c1: float
    c2: float
    c3: float
    c4: float
    c5: float
    c6: float

    def share(self, angle: np.ndarray, speed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return T / (m g H) and its derivatives by angle and by the speed of shortening."""
        turn = self.c2 * (angle - self.c3)
        posture, by_angle = np.cos(turn), -self.c2 * np.sin(turn)
        posture, by_angle = (np.where(posture > 0.0, x, 0.0) for x in (posture, by_angle))
        size = np.sqrt(speed**2 + SMOOTHING**2)
        sign, lengthening = speed / size, (size - speed) / 2.0
        top, bottom = (2.0 * self.c4 * self.c5 + size * factor
                       for factor in (self.c5 - 3.0 * self.c4, 2.0 * self.c5 - 4.0 * self.c4))
        ratio = top / bottom
        slope = (self.c5 - 3.0 * self.c4 - ratio * (2.0 * self.c5 - 4.0 * self.c4)) / bottom * sign
        ratio, slope = (np.where(top > 0.0, x, 0.0) for x in (ratio, slope))
        eccentric, by_speed = 1.0 + self.c6 * lengthening, self.c6 * (sign - 1.0) / 2.0
        moving = slope * eccentric + ratio * by_speed
        return (self.c1 * posture * ratio * eccentric, self.c1 * by_angle * ratio * eccentric, self.c1 * posture * moving)


# Table 3 of the paper, means, as the public torque muscles of RBDL reprint it: C1 to C6 of young, middle, senior.
HIP, KNEE, ANKLE = "hip_flexion", "knee_flexion", "ankle_dorsiflexion"
STRENGTH_TABLE: dict[str, dict[tuple[str, str], tuple[StrengthCurve, StrengthCurve, StrengthCurve]]] = {
    "male": {
        (HIP, "negative"): (StrengthCurve(0.161, 0.958, 0.932, 1.578, 3.190, 0.242),
                            StrengthCurve(0.171, 0.922, 1.176, 1.601, 3.236, 0.320),
                            StrengthCurve(0.144, 0.896, 1.125, 1.561, 3.152, 0.477)),
        (HIP, "positive"): (StrengthCurve(0.113, 0.738, -0.214, 2.095, 4.267, 0.218),
                            StrengthCurve(0.107, 0.712, -0.192, 2.038, 4.145, 0.206),
                            StrengthCurve(0.101, 0.762, -0.269, 1.875, 3.819, 0.296)),
        (KNEE, "negative"): (StrengthCurve(0.163, 1.258, 1.133, 1.517, 3.952, 0.095),
                             StrengthCurve(0.156, 1.225, 1.173, 1.518, 3.954, 0.266),
                             StrengthCurve(0.137, 1.310, 1.067, 1.141, 3.152, 0.386)),
        (KNEE, "positive"): (StrengthCurve(0.087, 0.869, 0.522, 2.008, 5.233, 0.304),
                             StrengthCurve(0.081, 0.986, 0.523, 1.830, 4.777, 0.230),
                             StrengthCurve(0.069, 0.838, 0.437, 1.718, 4.476, 0.414)),
        (ANKLE, "negative"): (StrengthCurve(0.095, 1.391, 0.408, 0.987, 3.558, 0.295),
                              StrengthCurve(0.114, 1.444, 0.551, 0.593, 2.128, 0.350),
                              StrengthCurve(0.106, 1.465, 0.498, 0.490, 1.767, 0.571)),
        (ANKLE, "positive"): (StrengthCurve(0.033, 1.510, -0.187, 0.699, 1.940, 0.828),
                              StrengthCurve(0.028, 1.293, -0.284, 0.634, 1.759, 0.999),
                              StrengthCurve(0.029, 1.419, -0.174, 0.561, 1.558, 1.198)),
    },
    "female": {
        (HIP, "negative"): (StrengthCurve(0.181, 0.697, 1.242, 1.567, 3.164, 0.164),
                            StrengthCurve(0.140, 0.830, 1.241, 1.444, 2.919, 0.317),
                            StrengthCurve(0.138, 0.707, 1.542, 1.613, 3.256, 0.360)),
        (HIP, "positive"): (StrengthCurve(0.127, 0.650, -0.350, 2.136, 4.349, 0.156),
                            StrengthCurve(0.091, 0.812, -0.196, 2.145, 4.366, 0.186),
                            StrengthCurve(0.081, 0.625, -0.422, 2.084, 4.245, 0.196)),
        (KNEE, "negative"): (StrengthCurve(0.159, 1.187, 1.274, 1.393, 3.623, 0.173),
                             StrengthCurve(0.128, 1.286, 1.141, 1.332, 3.469, 0.233),
                             StrengthCurve(0.124, 1.347, 1.140, 1.066, 2.855, 0.464)),
        (KNEE, "positive"): (StrengthCurve(0.080, 0.873, 0.635, 1.698, 4.412, 0.175),
                             StrengthCurve(0.060, 0.967, 0.402, 1.693, 4.410, 0.349),
                             StrengthCurve(0.060, 0.897, 0.445, 1.121, 2.922, 0.389)),
        (ANKLE, "negative"): (StrengthCurve(0.104, 1.399, 0.424, 0.862, 3.109, 0.189),
                              StrengthCurve(0.093, 1.504, 0.381, 0.860, 3.126, 0.349),
                              StrengthCurve(0.125, 1.299, 0.580, 0.587, 1.819, 0.348)),
        (ANKLE, "positive"): (StrengthCurve(0.027, 1.079, -0.302, 0.864, 2.399, 0.771),
                              StrengthCurve(0.024, 1.308, -0.254, 0.596, 1.654, 1.006),
                              StrengthCurve(0.022, 1.096, -0.369, 0.458, 1.242, 1.401)),
    },
}


@dataclass(frozen=True)
class MuscleStrength:
    """Strength of a person's joints by angle and velocity.

    curves: by (coordinate without its side, direction of the torque); others keep their constant strength
    unit  : body weight times stature [N m], the unit of C1
    """

    curves: Mapping[tuple[str, str], StrengthCurve]
    unit: float

    @classmethod
    def of(cls, human: Human, source: str) -> MuscleStrength:
        """Return the strength of a person from an age group of the published table, or from a CSV file (see `read_curves`)."""
        unit = human.mass * GRAVITY * human.stature
        if source in AGE_GROUPS:
            group = AGE_GROUPS.index(source)
            return cls({key: curves[group] for key, curves in STRENGTH_TABLE[human.sex].items()}, unit)
        if not Path(source).is_file():
            raise InputError(f"muscles are '{source}'; {', '.join(AGE_GROUPS)} or an existing CSV file is needed")
        return cls(read_curves(source, human.all_axes), unit)

    def torque(self, joint: str, direction: str, angle: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the largest torque [N m], not negative, and its derivatives by angle and velocity of the coordinate."""
        sign = 1.0 if direction == "positive" else -1.0
        value, by_angle, by_speed = self.curves[joint, direction].share(angle, sign * velocity)
        return self.unit * value, self.unit * by_angle, sign * self.unit * by_speed

    def acting(self, joint_names: Sequence[str]) -> list[tuple[int, str, str]]:
        """Return (column, joint without its side, direction) of every curve that limits one of these coordinates."""
        sides = tuple(f"{side}_" for side in SIDES)
        plain = [name.split("_", 1)[1] if name.startswith(sides) else name for name in joint_names]
        return [(k, joint, direction) for k, joint in enumerate(plain) for direction in DIRECTIONS
                if (joint, direction) in self.curves]

    def available(self, joint_names: Sequence[str], q: np.ndarray, qd: np.ndarray, tau: np.ndarray,
                  constant: np.ndarray) -> np.ndarray:
        """Return the torque (samples, n) available in the direction of tau; `constant` (n,) where there is no curve [N m]."""
        found = np.tile(constant, (len(q), 1))
        for k, joint, direction in self.acting(joint_names):
            at = (tau[:, k] >= 0.0) == (direction == "positive")
            found[at, k] = self.torque(joint, direction, q[at, k], qd[at, k])[0]
        return found

    def limits(self, torque: Quantity, strength: np.ndarray) -> Quantity:
        """Return the quantity that keeps torques below the curves: torque beyond the curve, over strength, at most zero.

        torque: q, qd, qdd -> share of `strength` (n,) of each coordinate, with its derivatives
        """
        acting = self.acting(torque.labels)
        columns = [k for k, _, _ in acting]
        signs = np.array([1.0 if direction == "positive" else -1.0 for _, _, direction in acting])
        size = strength[columns]

        def curves(q, qd):
            return [self.torque(joint, direction, q[:, k], qd[:, k]) for k, joint, direction in acting]

        def value(q, qd, qdd):
            available = np.column_stack([found[0] for found in curves(q, qd)])
            return signs * torque.value(q, qd, qdd)[:, columns] - available / size

        def slope(q, qd, qdd):
            tables = [signs[:, None] * table[:, columns] for table in torque.slope(q, qd, qdd)]
            for row, (k, found) in enumerate(zip(columns, curves(q, qd))):
                tables[0][:, row, k] -= found[1] / size[row]
                tables[1][:, row, k] -= found[2] / size[row]
            return tables

        labels = [f"{torque.labels[k]} {direction}" for k, _, direction in acting]
        nothing = np.full(len(acting), -np.inf)
        return Quantity(f"muscles, {torque.name}", labels, 2, value, slope, nothing, np.zeros(len(acting)),
                        windows=torque.windows)


def read_curves(path: str, known: Sequence[str]) -> dict[tuple[str, str], StrengthCurve]:
    """Return the curves of a CSV file with the columns COLUMNS.

    joint is a coordinate without its side, direction that of the torque on it; c1 is in body weight times stature. Raises
    ModelError if the file cannot be read, InputError with everything that is wrong in it.
    """
    rows, joints = read_cells(path), {name.removeprefix("right_").removeprefix("left_") for name in known}
    names = tuple(str(name) for name in rows[0] if name is not None) if rows else ()
    if names != COLUMNS:
        raise InputError(f"{path}: columns are {some(names)}; {', '.join(COLUMNS)} are needed, and a row below them")
    found: dict[tuple[str, str], StrengthCurve] = {}
    problems: list[str] = []
    for number, row in enumerate(rows, 2):
        key, values = (row["joint"], row["direction"]), {name: _number(row[name]) for name in COLUMNS[2:]}
        wrong = [f"{name} is {shown(row[name] or '')}; a number is needed, at most {MAX_COEFFICIENT:g} either way"
                 for name, value in values.items() if np.isnan(value)]
        if key[0] not in joints or key[1] not in DIRECTIONS:
            wrong.append(f"{f'{key[0]} {key[1]}':.80} is not a coordinate of the skeleton without its side and a direction, "
                         "positive or negative")
        found[key] = StrengthCurve(*values.values())
        problem = "" if wrong else _curve_problem(found[key])
        problems += [f"line {number}: {text}" for text in (*wrong, problem) if text]
    if problems:
        more = f"; and {len(problems) - MAX_PROBLEMS} more" if len(problems) > MAX_PROBLEMS else ""
        raise InputError(f"{path}, {'; '.join(problems[:MAX_PROBLEMS])}{more}")
    return found


def _number(text: str | None) -> float:
    """Return the number in a cell; NaN if there is none, or a too large one."""
    try:
        value = float(text or "")
    except ValueError:
        return np.nan
    return value if abs(value) <= MAX_COEFFICIENT else np.nan


def _curve_problem(curve: StrengthCurve) -> str:
    if curve.c1 <= 0.0 or curve.c2 < 0.0 or curve.c6 < 0.0:
        return f"c1, c2 and c6 are {curve.c1:g}, {curve.c2:g} and {curve.c6:g}; c1 > 0, c2 >= 0 and c6 >= 0 are needed"
    if not MIN_SPEED <= curve.c4 <= 0.5 * curve.c5:
        return (f"c4 and c5 are {curve.c4:g} and {curve.c5:g}; {MIN_SPEED:g} <= c4 and 2 c4 <= c5 are needed: otherwise the "
                "curve has a pole")
    return ""


# ------------------------------------------------------------------ fatigue


REST_MULTIPLIER = 15.0  # r, best for ankle, knee, elbow (2018) and shoulder (2020)


class FatigueRates(NamedTuple):
    """Rates of fatigue and recovery [1/s]."""

    F: float
    R: float


RATES = {"ankle": FatigueRates(0.00589, 0.00058), "knee": FatigueRates(0.01500, 0.00149),
         "trunk": FatigueRates(0.00755, 0.00075), "shoulder": FatigueRates(0.01820, 0.00168),
         "elbow": FatigueRates(0.00912, 0.00094), "grip": FatigueRates(0.00980, 0.00064),
         "general": FatigueRates(0.00970, 0.00091)}
REGIONS = {"ankle": "ankle", "subtalar": "ankle", "toe": "ankle", "knee": "knee", "shoulder": "shoulder",
           "clavicle": "shoulder", "elbow": "elbow", "forearm": "elbow", "wrist": "grip", "l5s1": "trunk", "l4l3": "trunk",
           "t12l1": "trunk", "t9t8": "trunk"}


def fatigue_region(joint: str) -> str:
    """Return the region of a coordinate of the skeleton, a key of RATES."""
    words = joint.removeprefix("right_").removeprefix("left_").split("_")
    return REGIONS.get(words[0], "general")


def sustained_endurance(load: np.ndarray | float, rates: FatigueRates) -> np.ndarray:
    """Return the time [s] for which a constant load can be held; infinite at or below the load R / (F + R)."""
    load = np.asarray(load, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        remaining = 1.0 - rates.R * (1.0 - load) / (rates.F * load)
        return np.where(load >= 1.0, 0.0, np.where(remaining > 0.0, -np.log(remaining) / rates.R, np.inf))


@dataclass(frozen=True, eq=False)
class RepeatedWork:
    """Work that is repeated with rest after it.

    t     : instants (samples,) of the work, from 0 [s]
    load  : (samples, k) torque over strength of each joint, of either sign
    period: time from one start to the next [s]; what the work leaves of it is rest
    rates : of each joint
    """

    t: np.ndarray
    load: np.ndarray
    period: float
    rates: Sequence[FatigueRates]
    rest_multiplier: float = REST_MULTIPLIER

    def __post_init__(self) -> None:
        if not self.period >= self.t[-1]:
            raise InputError(f"period is {self.period:g} s; it must be at least the duration of the work, {self.t[-1]:g} s")

    @cached_property
    def _map(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Decay and growth (samples, k) of the fatigued share since the start, and those of a period (k,)."""
        F, R = np.array(self.rates).T
        size, step = np.abs(self.load), np.diff(self.t)[:, None]
        decay, rise = np.ones_like(size), np.zeros_like(size)
        keep = np.exp(-R * step)
        gain = F / R * (1.0 - keep) * (size[1:] + size[:-1]) / 2.0
        for k in range(len(step)):
            decay[k + 1], rise[k + 1] = keep[k] * decay[k], keep[k] * rise[k] + gain[k]
        rest = np.exp(-self.rest_multiplier * R * (self.period - self.t[-1]))
        return decay, rise, rest * decay[-1], rest * rise[-1]

    def capacity(self, cycles: float) -> np.ndarray:
        """Return the capacity (k,) left after so many periods: share of the strength. Not below that where the work fails."""
        _, _, decay, rise = self._map
        return 1.0 - rise / (1.0 - decay) * (1.0 - decay ** np.minimum(cycles, self.cycles))

    @cached_property
    def cycles(self) -> np.ndarray:
        """Number (k,) of complete cycles before the load exceeds the capacity; infinite if it never does."""
        along_decay, along_rise, decay, rise = self._map
        bearable = ((1.0 - np.abs(self.load) - along_rise) / along_decay).min(axis=0)  # largest fatigued share at a start
        final = rise / (1.0 - decay)
        with np.errstate(divide="ignore", invalid="ignore"):
            number = np.floor(np.log(1.0 - bearable / final) / np.log(decay)) + 1.0
        return np.where(bearable < 0.0, 0.0, np.where(bearable >= final, np.inf, number))

    @property
    def endurance(self) -> np.ndarray:
        """Time (k,) that the complete cycles take [s]."""
        return self.cycles * self.period

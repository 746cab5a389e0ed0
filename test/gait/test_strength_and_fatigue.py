"""Muscle strength by angle and velocity, and fatigue: published figures, differences, integration of the model's equations."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import InputError, ModelError
from rnea_ros.gait.muscles import (
    AGE_GROUPS,
    COLUMNS,
    DIRECTIONS,
    RATES,
    SMOOTHING,
    STRENGTH_TABLE,
    MuscleStrength,
    RepeatedWork,
    StrengthCurve,
    fatigue_region,
    sustained_endurance,
)
from rnea_ros.gait.skeleton import LOWER_BODY, Human
from rnea_ros.gait.walk import StepConditions, WalkingStep
from rnea_ros.gait.walker import Walker

CURVES = [(sex, group, *key, curves[k]) for sex, table in STRENGTH_TABLE.items() for key, curves in table.items()
          for k, group in enumerate(AGE_GROUPS)]
# Frey-Law et al. 2012, table 1, as evaluated by MyoSuite's validation: endurance [s] at 20, 50 and 80 % of the strength
ENDURANCE = {"ankle": (863, 179, 43.0), "knee": (340, 70.3, 16.9), "trunk": (675, 140, 33.6), "shoulder": (274, 57.7, 13.9),
             "elbow": (566, 116, 27.8), "grip": (473, 106, 25.8), "general": (517, 108, 26.1)}
# Frey-Law and Avin 2010: measured endurance b0 load^b1 [s]
MEASURED = {"ankle": (34.71, -2.06), "knee": (19.38, -1.88), "trunk": (22.69, -2.27), "shoulder": (14.86, -1.83)}


def test_table_has_every_sex_group_joint_and_direction():
    assert len(CURVES) == 36
    assert all({key[1] for key in table} == set(DIRECTIONS) for table in STRENGTH_TABLE.values())


@pytest.mark.parametrize("sex, group, joint, direction, curve", CURVES)
def test_curves_have_the_meaning_of_their_coefficients(sex, group, joint, direction, curve):
    """C1 is the isometric peak, at C3; three quarters of it remain at C4, half at C5; no torque is negative."""
    peak, at = curve.c1, np.array([curve.c3])
    assert abs(curve.share(at, np.zeros(1))[0][0] / peak - 1.0) < 0.015
    for speed, left in ((curve.c4, 0.75), (curve.c5, 0.5)):
        assert abs(curve.share(at, np.array([speed]))[0][0] / peak - left) < 1e-3
    angles, speeds = np.meshgrid(np.linspace(-1.5, 2.5, 30), np.linspace(-12.0, 12.0, 49))
    assert (curve.share(angles, speeds)[0] >= 0.0).all()
    assert (np.diff(curve.share(at, np.linspace(0.0, 12.0, 50))[0]) <= 0.0).all()  # the faster, the weaker
    lengthening = curve.share(at, np.array([-curve.c4]))[0][0] / peak
    assert np.isclose(lengthening, 0.75 * (1.0 + curve.c6 * curve.c4), rtol=0.03)


def test_strength_of_young_men():
    """73 kg and 1.741 m: hip, knee and ankle extension of 201, 203 and 118 N m; women of the same size are weaker."""
    strength = MuscleStrength.of(Human(), "young")
    peaks = {joint: strength.torque(joint, "negative", np.array([curves[0].c3]), np.zeros(1))[0][0]
             for (joint, direction), curves in STRENGTH_TABLE["male"].items() if direction == "negative"}
    assert np.allclose(list(peaks.values()), (201.0, 203.0, 118.0), rtol=0.02)
    assert peaks["knee_flexion"] > MuscleStrength.of(Human(), "senior").torque(
        "knee_flexion", "negative", np.array([1.1]), np.zeros(1))[0][0]


def test_slopes_of_strength_equal_differences():
    rng, h = np.random.default_rng(1), 1e-5
    angle, velocity = rng.uniform(-0.5, 1.5, 200), rng.uniform(-5.0, 5.0, 200)
    strength = MuscleStrength.of(Human(), "middle")
    for key in strength.curves:
        _, by_angle, by_velocity = strength.torque(*key, angle, velocity)
        numeric = [(strength.torque(*key, angle + a, velocity + b)[0] - strength.torque(*key, angle - a, velocity - b)[0])
                   / (2.0 * h) for a, b in ((h, 0.0), (0.0, h))]
        smooth = np.abs(velocity) > 4 * SMOOTHING  # the second derivative is large at the kink
        np.testing.assert_allclose(by_angle, numeric[0], atol=2e-4)
        np.testing.assert_allclose(by_velocity[smooth], numeric[1][smooth], atol=2e-4)


def test_muscles_limit_the_torques_of_the_walk():
    human = Human(frozen=LOWER_BODY)
    muscles = MuscleStrength.of(human, "young")
    walker = Walker(human, muscles=muscles)
    torque, limits = StepConditions(walker, WalkingStep()).torques()[:2]
    assert len(limits.labels) == 12 and (limits.upper == 0.0).all() and limits.windows == torque.windows
    rng = np.random.default_rng(2)
    motion = rng.uniform(-0.2, 0.2, (3, 2, walker.n))
    motion[0, :, walker.joint_names.index("up")] = 0.9
    k = walker.joint_names.index("left_knee_flexion")
    available = muscles.torque("knee_flexion", "negative", motion[0][:, k], motion[1][:, k])[0]
    expected = -torque.value(*motion)[:, k] - available / walker.strength[k]
    found = limits.value(*motion)[:, limits.labels.index("left_knee_flexion negative")]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    way = rng.normal(size=motion.shape)
    numeric = (limits.value(*(motion + 1e-6 * way)) - limits.value(*(motion - 1e-6 * way))) / 2e-6
    found = sum(np.einsum("kij,kj->ki", table, x) for table, x in zip(limits.slope(*motion), way))
    assert np.abs(found - numeric).max() < 1e-6 * np.abs(numeric).max()


def test_curves_from_a_file(tmp_path):
    path = tmp_path / "strength.csv"
    path.write_text(",".join(COLUMNS) + "\nelbow_flexion,positive,0.06,0.9,1.5,2.0,5.0,0.2\n")
    strength = MuscleStrength.of(Human(), str(path))
    assert strength.curves == {("elbow_flexion", "positive"): StrengthCurve(0.06, 0.9, 1.5, 2.0, 5.0, 0.2)}
    assert [column for column, *_ in strength.acting(("up", "left_elbow_flexion", "right_elbow_flexion"))] == [1, 2]


@pytest.mark.parametrize("line, said", [
    ("tail,positive,1,1,1,1,2,0", "line 2: tail positive is not a coordinate"), ("elbow_flexion,up,1,1,1,1,2,0", "direction"),
    ("elbow_flexion,positive,x,1,1,1,2,0", "c1 is 'x'"), ("elbow_flexion,positive,1,1,1,2,3,0", "c4 and c5 are 2 and 3"),
    ("elbow_flexion,positive,-1,1,1,1,2,0", "c1, c2 and c6 are -1"),
    ("elbow_flexion,positive,1,1e308,1,1,2,0", "c2 is '1e308'"),
    ("elbow_flexion,positive,1,1,1,1e-300,2,0", "c4 and c5 are 1e-300 and 2; 0.01 <= c4")])
def test_invalid_files_are_rejected(tmp_path, line, said):
    path = tmp_path / "strength.csv"
    path.write_text(",".join(COLUMNS) + f"\n{line}\n")
    with pytest.raises(InputError, match=said):
        MuscleStrength.of(Human(), str(path))
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="joint, direction, c1, c2, c3, c4, c5, c6 are needed"):
        MuscleStrength.of(Human(), str(path))


def test_message_about_a_file_of_many_problems_is_short(tmp_path):
    """Regression (fuzzing): 18 000 characters."""
    path = tmp_path / "strength.csv"
    path.write_text(",".join(COLUMNS) + "\n" + f"{'x' * 400},up,,,,,,\n" * 60)
    with pytest.raises(InputError, match=r"line 2: c1 is '';.*; and 400 more") as error:
        MuscleStrength.of(Human(), str(path))
    assert len(str(error.value)) < 4000


def test_all_problems_of_a_file_are_reported_at_once(tmp_path):
    path = tmp_path / "strength.csv"
    lines = "elbow_flexion,up,x,1,1,1,2,0", "elbow_flexion,positive,1,1,1,2,3,0", "tail,positive,1"
    path.write_text("\n".join([",".join(COLUMNS), *lines]))
    with pytest.raises(InputError, match=r"line 2: c1 is 'x'.*line 2: .*direction.*line 3: c4 and c5.*line 4: c2 is ''.*tail"):
        MuscleStrength.of(Human(), str(path))
    path.write_bytes(b"\x00\xff\xfe")
    with pytest.raises(ModelError, match="it cannot be read"):
        MuscleStrength.of(Human(), str(path))


def compartments(load, until, rates, rest=15.0, controller=10.0, step=0.02):
    """Return (t, active, resting, fatigued) by the published equations and their controller, by Heun's method."""
    def slope(active, resting, fatigued, wanted):
        change = controller * (min(wanted - active, resting) if active < wanted else wanted - active)
        recovery = rates.R * (rest if wanted <= 0.0 else 1.0) * fatigued
        return change - rates.F * active, recovery - change, rates.F * active - recovery

    state, rows = (0.0, 1.0, 0.0), [(0.0, 0.0, 1.0, 0.0)]
    for k in range(int(until / step)):
        wanted = load((k + 0.5) * step)
        first = slope(*state, wanted)
        second = slope(*(x + step * d for x, d in zip(state, first)), wanted)
        state = tuple(x + step * (d + e) / 2.0 for x, d, e in zip(state, first, second))
        rows.append(((k + 1) * step, *state))
    return np.array(rows).T


@pytest.mark.parametrize("region", RATES)
def test_endurance_of_constant_loads_is_the_published_one(region):
    found = sustained_endurance(np.array([0.2, 0.5, 0.8]), RATES[region])
    np.testing.assert_allclose(found, ENDURANCE[region], rtol=0.02)
    t, active, resting, _ = compartments(lambda t: 0.5, 1.2 * found[1], RATES[region], step=0.04)
    failed = t[np.flatnonzero((active + resting < 0.5) & (t > 1.0))[0]]
    assert abs(failed / found[1] - 1.0) < 0.02


@pytest.mark.parametrize("region", MEASURED)
def test_endurance_resembles_measured_curves(region):
    """Between 20 and 70 % within 30 %: the model's known deviation; it is too short above."""
    b0, b1 = MEASURED[region]
    load = np.linspace(0.2, 0.7, 6)
    assert np.abs(sustained_endurance(load, RATES[region]) / (b0 * load**b1) - 1.0).max() < 0.3


def test_limits_of_constant_loads():
    rates = RATES["knee"]
    border = rates.R / (rates.F + rates.R)
    assert np.isinf(sustained_endurance(np.array([0.0, 0.99 * border]), rates)).all()
    assert np.isfinite(sustained_endurance(1.01 * border, rates)) and sustained_endurance(1.0, rates) == 0.0


def test_repeated_work_equals_the_integrated_model():
    """Work of 4 s with a varying load and 6 s of rest."""
    rates, period, t = RATES["shoulder"], 10.0, np.linspace(0.0, 4.0, 161)
    load = 0.35 + 0.25 * np.sin(t)
    work = RepeatedWork(t, np.column_stack((load, -load)), period, [rates] * 2)
    fatigued = compartments(lambda now: np.interp(now % period, t, load) if now % period < 4.0 else 0.0, 200.0, rates)
    for cycles in (3, 10, 20):
        expected = 1.0 - np.interp(cycles * period, fatigued[0], fatigued[3])
        assert np.allclose(work.capacity(cycles), expected, atol=0.01)
    assert 0.5 < work.capacity(20)[0] < 0.95


def test_work_fails_in_the_cycle_in_which_the_load_exceeds_the_capacity():
    rates, t = RATES["knee"], np.linspace(0.0, 20.0, 201)
    load = np.where(t < 19.0, 0.3, 0.45)
    work = RepeatedWork(t, load[:, None], 21.0, [rates])
    fatigued, cycle = 0.0, 0
    while True:  # step by step
        start = fatigued
        for k in range(200):
            keep = np.exp(-rates.R * 0.1)
            fatigued = keep * fatigued + rates.F / rates.R * (1.0 - keep) * (load[k] + load[k + 1]) / 2.0
            if 1.0 - fatigued < load[k + 1]:
                break
        else:
            cycle, fatigued = cycle + 1, fatigued * np.exp(-15.0 * rates.R)
            continue
        break
    assert cycle > 1 and work.cycles[0] == cycle and work.endurance[0] == 21.0 * cycle
    assert np.isclose(work.capacity(1e6)[0], 1.0 - start)


def test_light_work_lasts_and_too_heavy_work_does_not_begin():
    t = np.linspace(0.0, 1.0, 11)
    work = RepeatedWork(t, np.tile([0.1, 0.0, 1.2], (11, 1)), 10.0, [RATES["ankle"]] * 3)
    assert np.isinf(work.cycles[:2]).all() and work.cycles[2] == 0.0
    assert work.capacity(1e5)[1] == 1.0 and work.capacity(1e5)[2] == 1.0
    with pytest.raises(InputError, match=r"period is 0\.5 s"):
        RepeatedWork(t, work.load, 0.5, work.rates)


@pytest.mark.parametrize("joint, region", [("left_knee_flexion", "knee"), ("l5s1_extension", "trunk"), ("up", "general"),
                                           ("right_hip_flexion", "general"), ("right_wrist_flexion", "grip")])
def test_regions_of_joints(joint, region):
    assert fatigue_region(joint) == region

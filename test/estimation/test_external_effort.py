"""Contact detection on a Panda with wrong masses and friction, with declared and with learned friction."""

import numpy as np
import pytest

from rnea_ros import InputError, Loads, load
from rnea_ros.estimation.external_effort import (
    LEARNING,
    ContactLearner,
    EffortUncertainty,
    ExternalEffortObserver,
    contact_section,
    different_states,
    enough_states,
    external_wrench,
    find_contacts,
    learn_from_motion,
    margin_growth,
)
from support.plant import COULOMB, RANGE, VISCOUS, Motion, Plant, follow, motion, panda
from support.scaling_cases import ROOT

JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
FRICTION = {name: {"coulomb": float(c), "viscous": float(v)} for name, c, v in zip(JOINTS, COULOMB, VISCOUS)}
PUSH = 1.0  # s
FOUND = 0.02  # s, within which a push of 15 N is to be found


@pytest.fixture(scope="module")
def robot():
    return load(panda(), {"version": 1, "friction": FRICTION})


def wrong(rng):
    return Plant(panda(), 1.0 + 0.05 * rng.choice([-1.0, 1.0], 7), COULOMB * (1.0 + 0.2 * rng.choice([-1.0, 1.0], 7)), VISCOUS)


def watched(robot, seed, seconds, force=None, **options):
    """Yield samples, external efforts and the observer of a seeded motion with a push on the hand from time PUSH."""
    rng = np.random.default_rng(seed)
    plant, wanted = wrong(rng), motion(rng)
    observer = ExternalEffortObserver(robot, **options)

    def push(t, q):
        return 0.0 if force is None or t < PUSH else plant.jacobian("panda_hand", q)[:3].T @ force

    for s in follow(plant, robot, wanted, seconds, effort_noise=0.1, push=push, rng=rng):
        yield s, observer.push(s.t, s.q, s.qd, s.effort, wanted(s.t)[2]), observer


@pytest.mark.parametrize("seed", range(3))
def test_push_is_detected_and_free_motion_is_not(robot, seed):
    direction = np.random.default_rng(100 + seed).standard_normal(3)
    force, begun = 15.0 * direction / np.linalg.norm(direction), []
    for sample in watched(robot, seed, PUSH + 0.2, force):
        s, found, observer = sample
        begun += [event for event in observer.events if event.active]
    assert PUSH <= begun[0].time <= PUSH + FOUND
    wrench = external_wrench(robot, "panda_hand", s.q, found)
    turned = robot.link_pose("panda_hand", s.q).R @ wrench[:3]
    assert np.linalg.norm(turned - force) < 0.25 * 15.0
    assert (wrench[3:] == 0.0).all()


REST = np.array([0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8])


def still(robot, effort_at, samples=1000, **options):
    """Return the events of an arm at rest whose efforts differ from the holding efforts by effort_at(k) (7,)."""
    observer, rng, events = ExternalEffortObserver(robot, **options), np.random.default_rng(0), []
    holding = robot.gravity(REST)
    for k in range(samples):
        observer.push(2e-3 * k, REST, np.zeros(7), holding - effort_at(k) + 0.05 * rng.standard_normal(7))
        events.extend(observer.events)
    return events, observer


def test_contact_ends_when_the_force_ends(robot):
    events, _ = still(robot, lambda k: np.where(300 <= k < 600, 10.0, 0.0) * np.eye(7)[1])
    assert [(event.active, event.joint) for event in events] == [(True, "panda_joint2"), (False, "panda_joint2")]
    assert 0.6 < events[0].time < 0.62 and 1.3 < events[1].time < 1.45
    assert events[0].effort > 0.0


def test_contact_ends_while_another_joint_stays_near_its_threshold(robot):
    level = 0.0
    _, observer = still(robot, lambda k: np.zeros(7), 100)
    level = 0.92 * observer.push(0.2, REST, np.zeros(7), robot.gravity(REST)).threshold[3]  # model error, no contact

    def effort(k):
        return np.where(300 <= k < 600, 10.0, 0.0) * np.eye(7)[1] + np.where(k >= 100, level, 0.0) * np.eye(7)[3]

    events, observer = still(robot, effort)
    assert [(event.active, event.joint) for event in events] == [(True, "panda_joint2"), (False, "panda_joint2")]
    assert not observer.in_contact.any()


def test_coulomb_friction_raises_the_threshold_at_rest():
    thresholds = []
    for coulomb in (0.0, 20.0):
        robot = load(panda(), {"version": 1, "friction": {name: {"coulomb": coulomb} for name in JOINTS}})
        observer = still(robot, lambda k: np.zeros(7), 100, uncertainty=EffortUncertainty(friction=0.0))[1]
        thresholds.append(observer.push(0.2, REST, np.zeros(7), robot.gravity(REST)).threshold)
    assert np.allclose(thresholds[1] - thresholds[0], 20.0, atol=0.1)


@pytest.fixture(scope="module")
def learnt():
    """Return thresholds of a Panda without declared friction, learned from 12 s of free motion with wrong masses."""
    robot, rng = load(panda()), np.random.default_rng(5)
    model = load(panda(), {"version": 1, "friction": FRICTION})  # of its controller
    plant, wanted = wrong(rng), motion(rng)
    learner = ContactLearner(ExternalEffortObserver(robot))
    for s in follow(plant, model, wanted, 12.0, rate=250.0, effort_noise=0.1, rng=rng):
        found = learner.observer.push(s.t, s.q, s.qd, s.effort, wanted(s.t)[2])
        learner.push(s.t, found.effort, s.qd)
    return robot, model, plant, learner.result()


def test_undeclared_friction_is_learned(learnt):
    _robot, _model, plant, found = learnt
    for k, name in enumerate(JOINTS):
        assert abs(found.calibration[name].coulomb - plant.coulomb[k]) < 0.1, name
    assert not found.warnings


def test_learned_thresholds_detect_a_push_but_not_free_motion(learnt):
    robot, model, plant, found = learnt
    again = load(panda(), contact_section(found))  # as from a robot file
    wanted, force, begun = motion(np.random.default_rng(77)), np.array([0.0, 12.0, 9.0]), {"learnt": [], "none": []}
    observers = {"learnt": ExternalEffortObserver(again), "none": ExternalEffortObserver(robot)}

    def push(t, q):
        return plant.jacobian("panda_hand", q)[:3].T @ force if t >= PUSH else 0.0

    for s in follow(plant, model, wanted, PUSH + 0.1, effort_noise=0.1, push=push, rng=np.random.default_rng(78)):
        for name, observer in observers.items():
            observer.push(s.t, s.q, s.qd, s.effort, wanted(s.t)[2])
            begun[name] += [event.time for event in observer.events if event.active]
    assert PUSH <= begun["learnt"][0] <= PUSH + FOUND
    assert begun["none"][0] < PUSH  # friction is detected as contact
    assert observers["none"].without_friction == tuple(JOINTS) and observers["learnt"].without_friction == ()


def sweep(rng):
    """Return a motion of all joints at one frequency: one line in joint space."""
    return Motion(REST, RANGE * rng.uniform(0.3, 0.6, (1, 7)), np.full((1, 7), rng.uniform(0.8, 1.4)),
                  rng.uniform(0.0, 2.0 * np.pi) + rng.choice([0.0, np.pi], (1, 7)))


@pytest.mark.parametrize("kind", [sweep, motion])
def test_threshold_margin_grows_for_repetitive_motion(kind):
    for seed in range(60, 64):
        wanted = kind(np.random.default_rng(seed))
        qd = {seconds: np.array([wanted(t)[1] for t in np.arange(0.0, seconds, 0.004)]).T for seconds in (20.0, 60.0)}
        states = [different_states(speeds, np.full(7, 0.05)) for speeds in qd.values()]
        growth = [margin_growth(count, enough_states(7)) for count in states]
        if kind is sweep:
            assert max(states) < 6 and growth[1] > 1.3
        else:
            assert growth == [1.0, 1.0]


def test_margin_growth_follows_students_t():
    stats = pytest.importorskip("scipy.stats")
    for states in (5, 8, 12):
        expected = stats.t.ppf(0.995, states) / stats.t.ppf(0.995, 20)
        assert margin_growth(states, 20) == pytest.approx(expected, rel=0.02)
    assert margin_growth(1, 20) == 2.0 and margin_growth(30, 20) == 1.0
    assert enough_states(1) == 3 and enough_states(7) == 20


def test_thresholds_learned_from_one_sweep_do_not_detect_contacts_in_other_motions():
    """A constant margin would report a contact before the push in the first push motion."""
    robot, model, rng = load(panda()), load(panda(), {"version": 1, "friction": FRICTION}), np.random.default_rng(4)
    plant, wanted = wrong(rng), sweep(rng)
    learner = ContactLearner(ExternalEffortObserver(robot))
    for s in follow(plant, model, wanted, 15.0, rate=250.0, effort_noise=0.1, rng=rng):
        found = learner.observer.push(s.t, s.q, s.qd, s.effort, wanted(s.t)[2])
        learner.push(s.t, found.effort, s.qd)
    learned = learner.result()
    assert any("few speeds and poses" in line and "panda_joint2" in line for line in learned.warnings)
    assert min(one.threshold for one in learned.calibration.values()) > 1.3 * LEARNING.min_threshold
    again, peaks = load(panda(), contact_section(learned)), []
    for seed in (80, 9040):
        observer, other = ExternalEffortObserver(again), motion(np.random.default_rng(seed))
        for s in follow(plant, model, other, 15.0, rate=250.0, effort_noise=0.1, rng=np.random.default_rng(seed)):
            observer.push(s.t, s.q, s.qd, s.effort, other(s.t)[2])
            peaks += [event.time for event in observer.events if event.active]
    assert not peaks
    for seed in range(3):
        rng, begun = np.random.default_rng(80 + seed), []
        force, other, observer = rng.standard_normal(3), motion(rng), ExternalEffortObserver(again)
        force *= 15.0 / np.linalg.norm(force)

        def push(t, q, force=force):
            return plant.jacobian("panda_hand", q)[:3].T @ force if t >= PUSH else 0.0

        for s in follow(plant, model, other, PUSH + 0.1, effort_noise=0.1, push=push, rng=rng):
            observer.push(s.t, s.q, s.qd, s.effort, other(s.t)[2])
            begun += [event.time for event in observer.events if event.active]
        assert PUSH <= begun[0] <= PUSH + FOUND


def test_too_little_free_motion_is_rejected(robot):
    with pytest.raises(InputError, match="at least 10 s are needed"):
        ContactLearner(ExternalEffortObserver(robot)).result()


def test_stamp_before_the_last_one_restarts_the_observer(robot):
    _, observer = still(robot, lambda k: 10.0 * np.eye(7)[1], 200)
    assert observer.in_contact[1]
    found = observer.push(0.1, REST, np.zeros(7), robot.gravity(REST))
    assert (found.effort == 0.0).all() and np.isinf(found.std).all() and not observer.in_contact.any()


@pytest.fixture(scope="module")
def recorded():
    """Return a robot of two joints, and 14 s of its free motion with friction at joint 1; joint 2 does not move."""
    robot, rng = load(ROOT / "urdf" / "rr.urdf"), np.random.default_rng(3)
    t = np.arange(0.0, 14.0, 0.01)
    w, size = 2.0 * np.pi * rng.uniform(0.1, 0.6, 5), rng.uniform(0.1, 0.4, 5)
    waves = [(size * w**k * np.sin(t[:, None] * w + k * np.pi / 2.0)).sum(axis=1) for k in range(3)]
    q, qd, qdd = (np.stack([wave, 0.0 * wave], axis=1) for wave in waves)
    q[:, 1] = 0.5
    friction = np.stack([0.8 * np.tanh(qd[:, 0] / 1e-3) + 0.3 * qd[:, 0] + 0.2, np.zeros(len(t))], axis=1)
    effort = robot.inverse_dynamics(q, qd, qdd) + friction + 0.02 * rng.standard_normal(q.shape)
    return robot, t, q, effort, qd, qdd


def test_friction_and_offset_are_learned_from_a_recording(recorded):
    robot, *data = recorded
    found = learn_from_motion(robot, *data)
    first, still_joint = (found.calibration[name] for name in robot.joint_names)
    assert (first.coulomb, first.viscous, first.offset) == pytest.approx((0.8, 0.3, 0.2), abs=0.03)
    assert (still_joint.coulomb, still_joint.viscous) == (0.0, 0.0)
    assert any(f"{robot.joint_names[1]}: moved too little" in line for line in found.warnings)


def test_contacts_of_a_recording_are_found_and_suspected_while_learning(recorded):
    robot, t, q, effort, qd, qdd = recorded
    calibration = learn_from_motion(robot, t, q, effort, qd, qdd).calibration
    assert not find_contacts(robot, t, q, effort, qd, qdd, calibration=calibration)
    pushed = effort - np.where((t > 6.0) & (t < 6.06), 5.0, 0.0)[:, None] * [1.0, 0.0]
    begin, end = find_contacts(robot, t, q, pushed, qd, qdd, calibration=calibration)
    assert (begin.active, end.active, begin.joint, end.joint) == (True, False, *2 * (robot.joint_names[0],))
    assert 6.0 < begin.time < 6.1 < end.time < 7.0 and begin.effort > 0.0
    warnings = learn_from_motion(robot, t, q, pushed, qd, qdd).warnings
    assert any(line.startswith(robot.joint_names[0]) and "if the robot was touched" in line for line in warnings)


def test_efforts_without_gravity_and_friction_give_the_same_result(robot):
    per_unit = np.array([8.0, -8.0, 8.0, 8.0, 8.0, 8.0, 8.0])
    drives = {name: {"gear_ratio": 80.0, "torque_constant": 0.1} for name in JOINTS}
    other = load(panda(), {"version": 1, "friction": FRICTION, "drives": drives, "measured_effort": {
        "contains": "without_gravity_and_friction", "quantity": "current", "reversed": ["panda_joint2"]}})
    whole, lacking = ExternalEffortObserver(robot), ExternalEffortObserver(other)
    rng = np.random.default_rng(8)
    wanted = motion(rng)
    for s in follow(wrong(rng), robot, wanted, 0.3, rng=rng):
        tau = s.effort - robot.gravity(s.q) - robot.friction(s.qd)[0]
        a, b = whole.push(s.t, s.q, s.qd, s.effort), lacking.push(s.t, s.q, s.qd, tau / per_unit)
        assert np.allclose(a.effort, b.effort, rtol=0.0, atol=1e-9)
    assert np.allclose(whole.torque, lacking.torque)


def test_external_wrench_needs_a_full_rank_jacobian(robot):
    q = np.array([0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8])
    six = np.array([3.0, -2.0, 15.0, 0.4, -0.5, 0.6])
    effort = -(robot.inverse_dynamics(q, q * 0, q * 0, loads=Loads({"panda_hand": six})) - robot.gravity(q))
    found = ExternalEffortObserver(robot).push(0.0, q, q * 0, q)._replace(effort=effort, std=np.ones(7))
    assert np.allclose(external_wrench(robot, "panda_hand", q, found, moment=True), six, atol=1e-9)
    assert external_wrench(robot, "panda_link2", q, found) is None  # two joints do not determine three forces
    assert external_wrench(robot, "panda_hand", q, found._replace(std=np.full(7, np.inf))) is None

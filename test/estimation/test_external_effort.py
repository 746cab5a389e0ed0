"""Contacts of a Panda whose masses and friction are not those of the model, with declared and with learnt friction."""

import numpy as np
import pytest

from rnea_ros import InputError, load
from rnea_ros.estimation.contact_thresholds import ContactLearner, contact_section
from rnea_ros.estimation.external_effort import EffortUncertainty, ExternalEffortObserver, external_wrench
from support.plant import COULOMB, VISCOUS, Plant, follow, motion, panda

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
    """Samples, external efforts, and the observer, of a seeded motion with a push at the hand from PUSH on."""
    rng = np.random.default_rng(seed)
    plant, wanted = wrong(rng), motion(rng)
    observer = ExternalEffortObserver(robot, **options)

    def push(t, q):
        return 0.0 if force is None or t < PUSH else plant.jacobian("panda_hand", q)[:3].T @ force

    for s in follow(plant, robot, wanted, seconds, effort_noise=0.1, push=push, rng=rng):
        yield s, observer.push(s.t, s.q, s.qd, s.effort, wanted(s.t)[2]), observer


@pytest.mark.parametrize("seed", range(3))
def test_push_is_detected_and_free_motion_is_no_contact(robot, seed):
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
    """Events of an arm that stands, whose efforts differ from those that hold it by effort_at(k) (7,)."""
    observer, rng, events = ExternalEffortObserver(robot, **options), np.random.default_rng(0), []
    holding = robot.gravity(REST)
    for k in range(samples):
        observer.push(2e-3 * k, REST, np.zeros(7), holding - effort_at(k) + 0.05 * rng.standard_normal(7))
        events.extend(observer.events)
    return events, observer


def test_a_contact_ends(robot):
    events, _ = still(robot, lambda k: np.where(300 <= k < 600, 10.0, 0.0) * np.eye(7)[1])
    assert [(event.active, event.joint) for event in events] == [(True, "panda_joint2"), (False, "panda_joint2")]
    assert 0.6 < events[0].time < 0.62 and 1.3 < events[1].time < 1.45
    assert events[0].effort > 0.0


def test_a_contact_ends_while_another_joint_stays_near_its_threshold(robot):
    level = 0.0
    _, observer = still(robot, lambda k: np.zeros(7), 100)
    level = 0.92 * observer.push(0.2, REST, np.zeros(7), robot.gravity(REST)).threshold[3]  # model error, no contact

    def effort(k):
        return np.where(300 <= k < 600, 10.0, 0.0) * np.eye(7)[1] + np.where(k >= 100, level, 0.0) * np.eye(7)[3]

    events, observer = still(robot, effort)
    assert [(event.active, event.joint) for event in events] == [(True, "panda_joint2"), (False, "panda_joint2")]
    assert not observer.in_contact.any()


def test_friction_at_rest_raises_a_threshold_by_coulomb_friction_alone():
    thresholds = []
    for coulomb in (0.0, 20.0):
        robot = load(panda(), {"version": 1, "friction": {name: {"coulomb": coulomb} for name in JOINTS}})
        observer = still(robot, lambda k: np.zeros(7), 100, uncertainty=EffortUncertainty(friction=0.0))[1]
        thresholds.append(observer.push(0.2, REST, np.zeros(7), robot.gravity(REST)).threshold)
    assert np.allclose(thresholds[1] - thresholds[0], 20.0, atol=0.1)


@pytest.fixture(scope="module")
def learnt():
    """Thresholds of a Panda without declared friction, learnt from 12 s of free motion of a plant with wrong masses."""
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


def test_learned_thresholds_detect_a_push_and_no_free_motion(learnt):
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
    assert begun["none"][0] < PUSH  # friction looks like a contact
    assert observers["none"].without_friction == tuple(JOINTS) and observers["learnt"].without_friction == ()


def test_too_little_free_motion_is_rejected(robot):
    with pytest.raises(InputError, match="at least 10 s are needed"):
        ContactLearner(ExternalEffortObserver(robot)).result()


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
    effort = -(robot.inverse_dynamics(q, q * 0, q * 0, wrenches={"panda_hand": six}) - robot.gravity(q))
    found = ExternalEffortObserver(robot).push(0.0, q, q * 0, q)._replace(effort=effort, std=np.ones(7))
    assert np.allclose(external_wrench(robot, "panda_hand", q, found, moment=True), six, atol=1e-9)
    assert external_wrench(robot, "panda_link2", q, found) is None  # two joints tell no three forces
    assert external_wrench(robot, "panda_hand", q, found._replace(std=np.full(7, np.inf))) is None

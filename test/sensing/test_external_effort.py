"""Pushes on a Panda whose masses and friction are not those of the model, found in its efforts."""

import numpy as np
import pytest

from rnea_ros import load
from rnea_ros.sensing.external_effort import ExternalEffortObserver, external_wrench
from support.plant import COULOMB, VISCOUS, Plant, follow, motion, panda

JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
FRICTION = {name: {"coulomb": float(c), "viscous": float(v)} for name, c, v in zip(JOINTS, COULOMB, VISCOUS)}
PUSH = 2.0  # s
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
def test_a_push_is_found_and_free_motion_is_none(robot, seed):
    direction = np.random.default_rng(100 + seed).standard_normal(3)
    force = 15.0 * direction / np.linalg.norm(direction)
    for sample in watched(robot, seed, PUSH + 0.2, force):
        s, found, observer = sample
        contact = observer.contact
        assert contact is None or s.t >= PUSH, f"false alarm at {s.t}: {contact}"
    assert contact.active and contact.time - PUSH <= FOUND
    wrench = external_wrench(robot, "panda_hand", s.q, found)
    turned = robot.link_pose("panda_hand", s.q).R @ wrench[:3]
    assert np.linalg.norm(turned - force) < 0.25 * 15.0
    assert (wrench[3:] == 0.0).all()


def test_a_contact_ends(robot):
    observer, rest = ExternalEffortObserver(robot), np.array([0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8])
    holding, rng, events = robot.gravity(rest), np.random.default_rng(0), []
    for k in range(1000):
        pushed = np.where(300 <= k < 600, 10.0, 0.0) * np.eye(7)[1]
        observer.push(2e-3 * k, rest, np.zeros(7), holding - pushed + 0.05 * rng.standard_normal(7))
        if observer.contact is not None and observer.contact not in events:
            events.append(observer.contact)
    assert [(event.active, event.joint) for event in events] == [(True, "panda_joint2"), (False, "panda_joint2")]
    assert 0.6 < events[0].time < 0.62 and 1.3 < events[1].time < 1.45
    assert events[0].effort > 0.0


def test_efforts_that_lack_gravity_and_friction_say_the_same(robot):
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


def test_a_wrench_only_where_the_jacobian_tells_it(robot):
    q = np.array([0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8])
    six = np.array([3.0, -2.0, 15.0, 0.4, -0.5, 0.6])
    effort = -(robot.inverse_dynamics(q, q * 0, q * 0, wrenches={"panda_hand": six}) - robot.gravity(q))
    found = ExternalEffortObserver(robot).push(0.0, q, q * 0, q)._replace(effort=effort, std=np.ones(7))
    assert np.allclose(external_wrench(robot, "panda_hand", q, found, moment=True), six, atol=1e-9)
    assert external_wrench(robot, "panda_link2", q, found) is None  # two joints tell no three forces
    assert external_wrench(robot, "panda_hand", q, found._replace(std=np.full(7, np.inf))) is None

"""Effort commands with a plant simulated by Pinocchio: gravity compensation, and rate limits for any input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import InputError, Robot, load
from rnea_ros.execution.effort_commands import TUNING, CommandOptions, EffortCommander
from rnea_ros.model.drives import EffortConvention
from support.plant import COULOMB, REST, VISCOUS, Plant, motion, panda
from support.robots import seeds

JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
LIMIT = np.array([87.0] * 4 + [12.0] * 3)
FRICTION = {name: {"coulomb": float(c), "viscous": float(v)} for name, c, v in zip(JOINTS, COULOMB, VISCOUS)}
GRAVITY, DT = CommandOptions("gravity"), 2e-3


@pytest.fixture(scope="module")
def robot():
    return load(panda(), {"version": 1, "friction": FRICTION})


@pytest.fixture(scope="module")
def loaded(robot):
    return robot.with_payload("panda_hand", 1.5, [0.02, 0.0, 0.1])


def gravity(q, mass=0.0):
    """Return the gravity torques by Pinocchio."""
    plant = Plant(panda())
    if mass:
        plant.carry("panda_hand", mass, np.array([0.02, 0.0, 0.1]))
    return pin.computeGeneralizedGravity(plant.model, plant.data, q)


def commander(robot, options=GRAVITY, convention=EffortConvention(), limits=None):
    made = EffortCommander()
    made.configure(robot, limits or robot.limits, options, convention)
    return made


def run(made, states, start=0.0):
    """Return the commands for states (q, qd) that arrive every DT."""
    return [made.compensate(start + DT * k, q, qd) for k, (q, qd) in enumerate(states)]


def rest(seconds):
    return [(REST, np.zeros(7))] * round(seconds / DT)


def test_gravity_compensation_ramps_up_and_down_smoothly(robot):
    made = commander(robot)
    found = run(made, rest(1.1))
    efforts = np.array([command.effort for command in found])
    assert (efforts[0] == 0.0).all() and np.allclose(efforts[-1], gravity(REST), rtol=1e-9, atol=1e-9)
    share = efforts[:, 1] / efforts[-1, 1]
    assert (np.diff(share) >= 0.0).all() and abs(share[round(0.5 / DT)] - 0.5) < 0.01
    assert np.array_equal(found[-1].position, REST) and not found[-1].velocity.any()
    made.configure(robot, robot.limits, replace(GRAVITY, mode="none"))
    falling = run(made, rest(1.2), 1.1)
    last = next(k for k, command in enumerate(falling) if command is None)
    assert 0.9 < last * DT < 1.1 and not falling[last - 1].effort.any() and not made.is_active
    assert all(command is None for command in falling[last:])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e300, 1e3])
def test_friction_at_an_impossible_velocity_is_not_compensated(robot, bad):
    """Regression: an infinite velocity of a driver commanded all joints to their effort limits."""
    made, qd = commander(robot, CommandOptions("gravity_friction")), np.where(np.arange(7) == 1, bad, 0.0)
    efforts = np.array([command.effort for command in run(made, [(REST, qd)] * 700)])
    np.testing.assert_allclose(efforts[-1], gravity(REST), rtol=1e-9, atol=1e-9)
    assert not made.rejected and not made.limited


def test_compensated_arm_stays_where_it_is_guided(robot):
    """The plant has the friction of a Panda; guided by hand to another pose it stays there. Without commands it falls."""
    plant, goal = Plant(panda(), 1.0, COULOMB, VISCOUS), REST + np.array([0.3, 0.2, -0.3, 0.3, 0.2, -0.2, 0.4])
    made, unit, positions = commander(robot, CommandOptions("gravity_friction")), 2.0 * np.pi / 2**17, []
    run(made, rest(1.1))
    q, v = REST, np.zeros(7)
    for k in range(round(6.0 / DT)):
        t = DT * k
        command = made.compensate(1.1 + t, np.round(q / unit) * unit, v)
        hand = LIMIT / 87.0 * (100.0 * (goal - q) - 20.0 * v) if 2.0 <= t < 3.0 else 0.0
        q, v = plant.step(DT, q, v, command.effort + hand)
        positions.append(q)
    at = np.array(positions)
    assert np.abs(at[round(2.0 / DT) - 1] - REST).max() < 1e-3
    assert np.abs(at[round(3.0 / DT)] - REST).max() > 0.1
    assert np.abs(at[-1] - at[round(4.0 / DT)]).max() < 5e-3
    q, v = REST, np.zeros(7)
    for _ in range(round(1.0 / DT)):
        q, v = plant.step(DT, q, v, np.zeros(7))
    assert np.abs(q - REST).max() > 0.5


def test_drift_of_a_frictionless_arm_is_small(robot):
    plant, made, q, v = Plant(panda()), commander(robot), REST, np.zeros(7)
    run(made, rest(1.1))
    for k in range(round(5.0 / DT)):
        command = made.compensate(1.1 + DT * k, np.round(q / 4e-5) * 4e-5, v)
        q, v = plant.step(DT, q, v, command.effort)
    assert np.abs(q - REST).max() < 2e-3


@pytest.mark.parametrize("contains", ["without_gravity", "without_gravity_and_friction"])
def test_gravity_that_the_controller_adds_is_not_commanded(robot, contains):
    """Commands without gravity are zero in mode gravity; with friction only friction is commanded."""
    made = commander(robot, GRAVITY, EffortConvention(contains))
    assert not np.array([command.effort for command in run(made, rest(1.2))]).any()
    made = commander(robot, CommandOptions("gravity_friction"), EffortConvention(contains))
    moving = [(REST, np.full(7, 0.5))] * 600
    found = run(made, moving)[-1].effort
    expected = 0.8 * (COULOMB + 0.5 * VISCOUS) if contains == "without_gravity" else np.zeros(7)
    assert np.allclose(found, expected, rtol=1e-3)


def test_feedforward_excludes_the_terms_that_the_robot_adds(robot):
    q, qd, qdd = REST, 0.3 * np.ones(7), np.linspace(-1.0, 1.0, 7)
    tau = robot.inverse_dynamics(q, qd, qdd)
    friction = COULOMB * np.tanh(qd / 0.01) + VISCOUS * qd
    wanted = {"total": tau, "without_gravity": tau - gravity(q), "without_gravity_and_friction": tau - gravity(q) - friction}
    for contains, expected in wanted.items():
        made = commander(robot, CommandOptions("feedforward"), EffortConvention(contains))
        for k in range(600):
            found = made.feed_forward(DT * k, q, qd, tau, is_measured=False)
        assert np.allclose(found.effort, expected, rtol=1e-9, atol=1e-9), contains
        assert np.array_equal(found.position, q) and np.array_equal(found.velocity, qd)


def test_commands_are_converted_to_currents(robot):
    per_unit = tuple(np.linspace(2.0, -8.0, 7))
    made = commander(robot, GRAVITY, EffortConvention("total", "current", per_unit))
    assert np.allclose(run(made, rest(1.2))[-1].effort * per_unit, gravity(REST), atol=1e-9)


def test_gravity_compensation_includes_the_payload(robot, loaded):
    made = commander(loaded)
    assert np.allclose(run(made, rest(1.2))[-1].effort, gravity(REST, 1.5), rtol=1e-9, atol=1e-9)


def test_commands_ramp_down_with_stale_states_and_resume_with_new_ones(robot):
    made = commander(robot)
    run(made, rest(1.2))
    full, found = made.torque, []
    assert made.elapse(1.25) is None
    for k in range(200):
        found.append(made.elapse(1.3 + 0.01 * k))
    assert np.abs(found[0].effort - full).max() < 0.02 * np.abs(full).max()
    last = next(k for k, command in enumerate(found) if command is None)
    assert 0.9 < 0.01 * last < 1.2 and not found[last - 1].effort.any()
    assert not made.compensate(4.0, REST, np.zeros(7)).effort.any()
    run(made, rest(1.2), 4.0)
    assert np.allclose(made.torque, full)


def test_states_that_jump_or_are_not_finite_are_rejected(robot):
    made = commander(robot)
    run(made, rest(1.2))
    full = made.torque
    assert made.compensate(1.2, REST + 0.6, np.zeros(7)) is None and made.rejected["jump"] == 1
    assert made.compensate(1.202, np.full(7, np.nan), np.zeros(7)) is None and made.rejected["not_finite"] == 1
    assert np.allclose(made.compensate(1.204, REST, np.zeros(7)).effort, full)
    turned = REST + 2.0 * np.pi * np.eye(7)[6]  # the same position after a whole turn
    assert np.allclose(made.compensate(1.206, turned, np.zeros(7)).effort, full)


def test_effort_limits_apply_to_the_command_and_the_total_torque(robot):
    limits = replace(robot.limits, effort=np.full(7, 5.0))
    made = commander(robot, GRAVITY, limits=limits)
    assert np.abs(run(made, rest(1.2))[-1].effort).max() == 5.0 and made.limited > 0
    tau = gravity(REST) + 3.0
    made = commander(robot, CommandOptions("feedforward"), EffortConvention("without_gravity"), limits)
    for k in range(600):
        found = made.feed_forward(DT * k, REST, np.zeros(7), tau, is_measured=False)
        assert (np.abs(found.effort) <= 5.0).all()
        whole = np.abs(found.effort + gravity(REST))
        assert (whole <= np.maximum(5.0, np.abs(gravity(REST))) + 1e-9).all()


def test_commands_require_effort_limits_and_a_fixed_tree(robot):
    effort = np.array(robot.limits.effort)
    effort[2] = np.nan
    with pytest.raises(InputError, match=r"panda_joint3 is unknown; effort commands require"):
        commander(robot, limits=replace(robot.limits, effort=effort))
    with pytest.raises(InputError, match="a tree on a fixed base"):
        free = Robot.from_urdf(panda(), base="floating", backend="python")
        commander(free, limits=robot.limits)
    commander(robot, CommandOptions("none"), limits=replace(robot.limits, effort=effort))


CONVENTIONS = (EffortConvention(), EffortConvention("without_gravity"),
               EffortConvention("total", "current", tuple(np.linspace(1.0, 7.0, 7))))


@pytest.mark.parametrize("seed", seeds(3))
def test_random_inputs_never_exceed_the_command_rate_limit(robot, loaded, seed):
    """States are late, lost, jumping or not finite; payload, convention, mode and limits change at any time."""
    rng, made, now = np.random.default_rng(seed), EffortCommander(), 0.0
    way, robots = motion(rng, 2.0), (robot, loaded)
    at = {"robot": robot, "convention": CONVENTIONS[0], "rise": 0.2, "mode": "gravity", "limit": 1.0}
    sent, before, active, kinds = np.zeros(7), 0.0, False, set()

    def configure():
        limits = replace(robot.limits, effort=at["limit"] * LIMIT)
        made.configure(at["robot"], limits, CommandOptions(at["mode"], 0.3, at["rise"]), at["convention"])

    configure()
    used = dict(at)  # of the commands; a new convention is used from the first command after a zero one
    for _ in range(6000):
        now += rng.choice([1e-4, 1e-3, 4e-3, 0.05, 0.3], p=[0.1, 0.5, 0.37, 0.02, 0.01])
        if rng.random() < 0.01:
            what = rng.choice(list(at))
            at[what] = {"robot": robots[rng.integers(2)], "convention": CONVENTIONS[rng.integers(3)],
                        "rise": rng.choice([0.05, 0.2, 1.0]), "limit": rng.choice([0.6, 1.0]),
                        "mode": rng.choice(["none", "gravity", "gravity_friction", "feedforward"])}[what]
            configure()
            kinds.add(str(what))
            if not made.is_active or (at["mode"] != "none" and at["convention"] == used["convention"]):
                used = dict(at)
        q, qd, qdd, _ = way(now)
        kind = rng.choice(["good", "jump", "nan", "fast", "none"], p=[0.9, 0.02, 0.02, 0.02, 0.04])
        q = q + (rng.standard_normal(7) if kind == "jump" else rng.choice([np.nan, 0.0]) if kind == "nan" else 0.0)
        qd = qd + (np.nan if kind == "nan" else 30.0 * rng.standard_normal(7) if kind == "fast" else 0.0)
        if kind == "none":
            command = made.elapse(now)
        elif at["mode"] == "feedforward":
            with np.errstate(all="ignore"):
                tau = at["robot"].inverse_dynamics(np.nan_to_num(q), np.nan_to_num(qd), qdd)
            command = made.feed_forward(now, q, qd, tau, bool(rng.integers(2)))
        else:
            command = made.compensate(now, q, qd if kind == "nan" else np.nan_to_num(qd))
        if command is None:
            assert not made.is_active or np.allclose(sent, made.torque, atol=1e-12)
            continue
        if not active:
            used = dict(at)
        torque = command.effort * np.array(used["convention"].per_unit or np.ones(7))
        most = used["limit"] * LIMIT / used["rise"] * (min(now - before, TUNING.max_step_s) if active else 0.0)
        assert (np.abs(torque - sent) <= most * (1.0 + 1e-9) + 1e-12).all(), (kind, now)
        assert (np.abs(torque) <= LIMIT * (1.0 + 1e-12)).all()
        sent, before, active = torque, now, made.is_active
    assert kinds == set(at) and made.rejected["jump"] and made.rejected["not_finite"]

"""Closed loops on a moving base against Pinocchio with a free-flyer and multipliers, and the robot on a fixed base."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pinocchio")

import pinocchio as pin

from rnea_ros import BaseState, InputError, JointDynamics, Loads, Robot, load
from rnea_ros.query import REQUESTS, answer_request
from rnea_ros.robots.tree import TreeDynamics
from support.free_flyer import random_base
from support.machines import Body, LoopOracle, bennett, constraint, polygon, solve
from support.oracles import deviation

GRAVITY = (0.3, -0.5, -9.7)
HEAVY = ('<link name="base"><inertial><origin xyz="0.1 -0.05 0.2"/><mass value="3.0"/>'
         '<inertia ixx="0.05" iyy="0.04" izz="0.03" ixy="0.002" ixz="-0.003" iyz="0.001"/></inertial></link>')


def made(machine, *cuts, active):
    urdf, loops = machine.cut_at(*cuts, active=active)
    return urdf.replace('<link name="base"/>', HEAVY), loops


MACHINES = {
    "four_bar": made(polygon(((0.0, 0.0), (0.1, 0.25), (0.55, 0.4), (0.5, 0.0))), "j4", active=["j1"]),
    "slide": made(polygon(((0.0, 0.0), (0.12, 0.16), (0.55, 0.05), (0.55, 0.05)), sliders=(4,)), "j2", active=["j1"]),
    "bennett": made(bennett(1.0)[0], "j4", active=["j2"]),
    "five_bar": made(polygon(((0.0, 0.0), (-0.1, 0.3), (0.2, 0.5), (0.5, 0.3), (0.4, 0.0))), "j3", active=["j1", "j5"]),
}


class FloatingLoopOracle(LoopOracle):
    """Loops on a free-flyer, whose six equations and unknowns come first; the base's acceleration is spatial."""

    def __init__(self, urdf: str, loops: dict, joint_names):
        super().__init__(urdf, loops, joint_names)
        self.body = Body(urdf, free=True)
        self.order = [*range(6), *(self.body.number[name] for name in joint_names)]
        self.active = [6 + k for k in self.active]
        self.cuts = [(cut["type"], self.body.frame(cut["first"]), self.body.frame(cut["second"]))
                     for cut in loops["loops"]["cut_joints"].values()]

    def equations(self, base, q, qd):
        """Return M, h, J, drift."""
        theirs = pin.integrate(self.body.model, np.concatenate((base.position, base.quaternion, np.zeros(len(q)))),
                               self._theirs(np.concatenate((np.zeros(6), q))))
        v = self._theirs(np.concatenate((base.velocity, qd)))
        data = self.body.state(theirs, v)
        found = [(kind, constraint(kind, self.body.motion(data, first), self.body.motion(data, second)))
                 for kind, first, second in self.cuts]
        J = np.vstack([(one + two)[:, self.order] for _, ((one, two), _) in found])
        h = self.body.rnea(theirs, v, np.zeros(self.body.model.nv))[self.order]
        M = self.body.mass_matrix(theirs)[np.ix_(self.order, self.order)]
        return M, h, J, np.concatenate([drift for _, (_, drift) in found])

    def inverse(self, base, q, qd, qdd):
        """Return (base acceleration, tau of the active joints) for accelerations qdd that keep the loops closed."""
        M, h, J, drift = self.equations(base, q, qd)
        n = len(M)
        assert np.abs(J[:, 6:] @ qdd + drift + J[:, :6] @ base.spatial(np.zeros(6))).max() < 1e-9 * np.abs(drift).max()
        unknown = np.hstack((-M[:, :6], np.eye(n)[:, self.active], J.T))
        found = solve(unknown, M[:, 6:] @ qdd + h)
        return base.classical(found[:6]), found[6:6 + len(self.active)]

    def forward(self, base, q, qd, tau):
        """Return (base acceleration, qdd of all joints)."""
        M, h, J, drift = self.equations(base, q, qd)
        push = np.zeros(len(M))
        push[self.active] = tau
        zero = np.zeros((len(J), len(J)))
        found = solve(np.block([[M, -J.T], [J, zero]]), np.concatenate((push - h, -drift)))[:len(M)]
        return base.classical(found[:6]), found[6:]


def robot(name, **options):
    urdf, loops = MACHINES[name]
    return Robot(TreeDynamics.from_urdf(urdf, "floating", gravity=GRAVITY, **options), loops)


@pytest.mark.parametrize("name", MACHINES)
def test_dynamics_of_loops_on_a_free_base_match_pinocchio(name):
    machine = robot(name)
    oracle = FloatingLoopOracle(*MACHINES[name], machine.tree.joint_names)
    oracle.body.model.gravity.linear = np.array(GRAVITY)
    rng = np.random.default_rng(4)
    N = len(machine.joint_names)
    for _ in range(3):
        base, (qa, qad, qadd) = random_base(rng), rng.normal(size=(3, N)) * [[0.2], [1.0], [1.0]]
        motion = machine.motion(qa, qad, qadd, np.zeros(N))
        acceleration = base.classical(machine.solve(qa, qad, qadd, stages=1, base=base).base[1])
        tau = machine.inverse_dynamics(qa, qad, qadd, base=base)
        expected = oracle.inverse(base, motion.q, motion.qd, motion.qdd)
        assert deviation(acceleration, expected[0]) < 1e-9 and deviation(tau, expected[1]) < 1e-9
        push = 5.0 * rng.normal(size=N)
        moved = machine.response(qa, qad, push, base=base)
        expected = oracle.forward(base, motion.q, motion.qd, push)
        assert deviation(base.classical(moved.base[1]), expected[0]) < 1e-8
        assert deviation([moved.positions[name][2] for name in machine.joint_names],
                         expected[1][[k - 6 for k in oracle.active]]) < 1e-8
        total = machine.mass_matrix(qa) @ np.concatenate((acceleration, qadd)) + machine.bias(qa, qad, base=base)
        assert deviation(total, np.concatenate((np.zeros(6), tau))) < 1e-9


@pytest.mark.parametrize("name", MACHINES)
def test_base_at_rest_gives_the_torques_of_a_fixed_base(name):
    urdf, loops = MACHINES[name]
    terms = {"j1": JointDynamics(rotor_inertia=1e-4, gear_ratio=50.0, viscous=0.3, coulomb=0.2)} if "j1" in urdf else None
    payload = ("b2", 1.5, (0.1, 0.0, 0.05))
    machine = robot(name, joint_dynamics=terms).with_payload(*payload)
    fixed = load(urdf, loops, gravity=GRAVITY).with_joint_dynamics(terms).with_payload(*payload)
    motion = np.random.default_rng(1).normal(size=(4, 5, len(machine.joint_names))) * 0.2
    loads, rates = {"b1": [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]}, {"b1": [3.0, -2.0, 1.0, 0.3, 0.2, -0.1]}
    found = machine.torque_and_rate(*motion, base=BaseState(acceleration=np.zeros(6)), loads=Loads(loads, rates))
    expected = fixed.torque_and_rate(*motion, loads=Loads(loads, rates))
    assert deviation(found[0], expected[0]) < 1e-11 and deviation(found[1], expected[1]) < 1e-11


def test_torque_rates_of_loops_on_a_free_base_match_differences():
    """Base and joints are integrated along the motion for a difference quotient."""
    machine, rng = robot("five_bar"), np.random.default_rng(5)
    base, (qa, qad, qadd, qaddd) = random_base(rng), rng.normal(size=(4, 2)) * [[0.2], [1.0], [2.0], [5.0]]
    rate = machine.torque_and_rate(qa, qad, qadd, qaddd, base=base)[1]

    def tau(t):
        x, steps = base.vector(), 8
        for k in range(steps):  # of the base, under the accelerations that it follows
            def slope(x, s):
                there = BaseState.from_vector(x)
                motion = qa + qad * s + qadd * s**2 / 2 + qaddd * s**3 / 6, qad + qadd * s + qaddd * s**2 / 2, qadd + qaddd * s
                return there.vector_rate(there.classical(machine.solve(*motion, stages=1, base=there).base[1]))
            h, s = t / steps, k * t / steps
            a = slope(x, s)
            x = x + h * slope(x + 0.5 * h * a, s + 0.5 * h)
        motion = qa + qad * t + qadd * t**2 / 2 + qaddd * t**3 / 6, qad + qadd * t + qaddd * t**2 / 2, qadd + qaddd * t
        return machine.inverse_dynamics(*motion, base=BaseState.from_vector(x))

    h = 1e-3
    assert deviation((8 * (tau(h) - tau(-h)) - (tau(2 * h) - tau(-2 * h))) / (12 * h), rate) < 1e-7


def test_vectorized_results_equal_single_samples_and_unequal_counts_are_rejected():
    machine, rng = robot("five_bar"), np.random.default_rng(6)
    motion = rng.normal(size=(4, 3, 2)) * 0.1
    whole = machine.torque_and_rate(*motion, base=BaseState())
    for k in range(3):
        for part, one in zip(whole, machine.torque_and_rate(*motion[:, k], base=BaseState()), strict=True):
            assert deviation(part[k], one) < 1e-11
    assert machine.forward_dynamics(*motion[:3], base=BaseState()).shape == (3, 2)
    with pytest.raises(InputError, match=r"different numbers of samples: \[2, 3\]"):
        machine.forward_dynamics(*motion[:2], motion[0, :2], base=BaseState())


def test_query_requests_for_free_base_and_loops_match_pinocchio():
    machine, rng = robot("slide"), np.random.default_rng(7)
    oracle = FloatingLoopOracle(*MACHINES["slide"], machine.tree.joint_names)
    oracle.body.model.gravity.linear = np.array(GRAVITY)
    base, (q, qd, qdd, qddd) = random_base(rng), rng.normal(size=(4, 2, machine.n)) * 0.2
    samples = [{"position": q[k].tolist(), "velocity": qd[k].tolist(), "acceleration": qdd[k].tolist(),
                "jerk": qddd[k].tolist(), "effort": qddd[k].tolist()} for k in range(2)]
    state = {"position": base.position.tolist(), "orientation": base.quaternion.tolist(), "velocity": base.velocity.tolist()}
    found, pushed, loops = (answer_request(machine, REQUESTS[name], {"samples": samples, "base": [state, state]})
                            for name in ("floating", "floating-forward", "loops"))
    given = answer_request(machine, REQUESTS["floating"], {"samples": samples, "base": [
        {**state, "acceleration": found["base_acceleration"][k].tolist(), "jerk": found["base_jerk"][k].tolist()}
        for k in range(2)]})
    for k in range(2):
        motion = [loops[name][k] for name in ("all_positions", "all_velocities", "all_accelerations")]
        acceleration, tau = oracle.inverse(base, *motion)
        assert deviation(found["base_acceleration"][k], acceleration) < 1e-9 and deviation(found["effort"][k], tau) < 1e-9
        assert deviation(pushed["base_acceleration"][k], oracle.forward(base, *motion[:2], qddd[k])[0]) < 1e-8
    assert deviation(given["effort_rate"], found["effort_rate"]) < 1e-9
    assert max(np.abs(given[name]).max() for name in ("base_wrench", "base_wrench_rate")) < 1e-8

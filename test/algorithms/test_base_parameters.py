"""Base parameters against Pinocchio's regressor, textbook tables and published counts; regrouped models."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, ModelError
from rnea_ros.algorithms import component_rate, torque_rate
from rnea_ros.algorithms.inertial_parameters import (
    INERTIAL,
    TERMS,
    base_parameters,
    from_regressor,
    has_independent_joints,
    parameters,
    regrouped,
    sampled_regressor,
    ten,
    values,
)
from rnea_ros.algorithms.torque_rate import RootMotion, dynamics, kinematics
from rnea_ros.codegen.program import trace
from rnea_ros.robots.tree import TreeDynamics
from support.golden_models import from_table
from support.oracles import GOLDEN, example_urdfs, worst
from support.regressor_oracle import RegressorOracle
from support.robots import arm, random_state, random_tree, seeds

SAME_TWICE = ("_box", "_limited", "_corrected", "_collision", "continuous", "right_hand", "_dual")
GRAVITY = np.array([0.0, 0.0, -9.81])
SEEDS = seeds(35)


@cache
def examples():
    """Return (path, robot) of one robot of each kind."""
    found = []
    for path in example_urdfs():
        if not any(word in path.stem for word in SAME_TWICE):
            with contextlib.suppress(ModelError):
                found.append((path, TreeDynamics.from_urdf(path, backend="python")))
    return found


def rank(W):
    """Return the numerical rank by singular values, with columns scaled to length one."""
    lengths = np.linalg.norm(W, axis=0)
    there = lengths > 1e-10 * lengths.max(initial=0.0)
    sizes = np.linalg.svd(W[:, there] / lengths[there], compute_uv=False)
    return int(np.sum(sizes > 1e-8 * sizes.max(initial=0.0)))


@cache
def tree(seed):
    """Return a random tree whose axes are exactly or clearly not parallel: nearly parallel ones make the rank ambiguous."""
    robot = TreeDynamics.from_urdf(random_tree(seed).text(), backend="python")
    nearly = any(1e-14 < abs(np.sin(link.alpha)) < 1e-3 for link in robot.model.links)
    return None if nearly or not robot.n or any("/frame" in link.name for link in robot.model.links) else robot


def trees(seeds=SEEDS):
    return [seed for seed in seeds if tree(seed) is not None]


# ---------------------------------------------------------------------- number and selection

def test_base_parameters_of_example_robots_match_pinocchios_regressor():
    """Rank, selected parameters and grouping are compared; mimic joints are included."""
    seen = mimics = 0
    for path, robot in examples():
        if 0 < len(parameters(robot.model)) <= 330:
            listed, oracle = parameters(robot.model), RegressorOracle(path, robot)
            W = np.linalg.qr(oracle.stacked(int(1.2 * len(listed) / robot.n) + 3), mode="r")
            found, numeric = base_parameters(robot.model), from_regressor(W, listed)
            assert len(found) == rank(W), path
            assert found.kept == numeric.kept, path
            assert worst(found.grouping, numeric.grouping) < 1e-7, path  # axes of URDF files are rounded
            seen, mimics = seen + 1, mimics + (not has_independent_joints(robot.model))
    assert seen > 40 and mimics > 3


@pytest.mark.parametrize("terms", [(), TERMS], ids=["bodies", "bodies and joints"])
def test_base_parameters_of_random_trees_match_qr_decomposition(terms):
    for seed in trees():
        model = tree(seed).model
        listed = parameters(model, terms)
        W = sampled_regressor(model, listed, seed=seed)
        found, numeric = base_parameters(model, terms=terms), from_regressor(W, listed)
        assert len(found) == rank(W), seed
        if has_independent_joints(model):
            assert found.kept == numeric.kept and worst(found.grouping, numeric.grouping) < 1e-6, seed
        assert worst(W[:, found.kept] @ found.grouping, W) < 1e-9, seed
        assert worst(found.grouping[:, found.kept], np.eye(len(found))) < 1e-12, seed


def test_random_trees_contain_every_case_of_the_rule():
    links = [link for seed in trees() for link in tree(seed).model.links if link.joint]
    assert {link.sigma for link in links} == {0, 1} and any(link.gamma for link in links)
    assert any(link.alpha in (0.0, np.pi) for link in links) and any(link.alpha not in (0.0, np.pi) for link in links)
    assert 5 < sum(not has_independent_joints(tree(seed).model) for seed in trees()) < len(trees()) - 5


@pytest.mark.parametrize("direction", [(0.0, 0.0, -9.81), (0.0, 0.0, 0.0), (3.0, -2.0, -8.0)], ids=["down", "none", "tilted"])
def test_gravity_along_an_axis_reduces_the_base_parameters(direction):
    """The axes are vertical or horizontal; with tilted gravity neither."""
    robot = TreeDynamics.from_urdf(arm({"axis": (0, 0, 1)}, {"axis": (1, 0, 0)}, {"axis": (0, 0, 1), "kind": "prismatic"}))
    listed, found = parameters(robot.model), base_parameters(robot.model, direction)
    assert len(found) == rank(sampled_regressor(robot.model, listed, direction))
    assert len([name for name in found.names if "(l1)" in name]) == {0.0: 1, -9.81: 1, -8.0: 3}[direction[2]]


@pytest.mark.parametrize("seed", trees(range(15)))
def test_number_of_base_parameters_of_a_free_root_follows_from_joint_types(seed):
    """The root has ten, a revolute joint seven, a prismatic joint four base parameters for any geometry."""
    model = tree(seed).model
    found = base_parameters(model, free_root=True)
    if has_independent_joints(model):
        assert len(found) == 10 + sum(7 if link.sigma == 0 else 4 for link in model.links if link.joint)
    listed = parameters(model, root=True)
    assert len(found) == rank(sampled_regressor(model, listed, free_root=True))
    assert len(base_parameters(replace(model, base="floating"))) == len(found)


# ---------------------------------------------------------------------- textbooks

def chain(rows):
    """Return a Model from rows (sigma, alpha, d, theta, r) with random bodies."""
    rng, table = np.random.default_rng(0), []
    for k, (sigma, alpha, d, theta, r) in enumerate(rows):
        I = rng.normal(size=(3, 3))
        table.append({"type": "RP"[sigma], "parent": k, "gamma": 0.0, "b": 0.0, "alpha_prev": alpha, "a_prev": d,
                      "theta0": theta, "d0": r, "m": rng.uniform(1, 3), "c": rng.normal(size=3), "I": I @ I.T})
    return from_table("chain", table)


def table_of_the_book(model):
    """Return grouped values by the general formulas of Gautier and Khalil (Khalil and Dombre 2002, 9.4.2), tip first."""
    XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M = (np.array(column) for column in zip(*(
        (link.J[0, 0], link.J[0, 1], link.J[0, 2], link.J[1, 1], link.J[1, 2], link.J[2, 2], *link.ms, link.m)
        for link in model.links)))
    for j in range(len(model.links) - 1, 0, -1):
        link, i = model.links[j], j - 1
        C, S, d, r, th = np.cos(link.alpha), np.sin(link.alpha), link.d, link.r, link.theta
        if link.sigma == 0:
            yy, mz, m = YY[j], MZ[j], M[j]
            XX[j], YY[j], MZ[j], M[j] = XX[j] - yy, 0.0, 0.0, 0.0
            XX[i] += yy + 2 * r * mz + r * r * m
            XY[i] += d * S * (mz + r * m)
            XZ[i] -= d * C * (mz + r * m)
            YY[i] += C * C * yy + 2 * r * C * C * mz + (d * d + r * r * C * C) * m
            YZ[i] += C * S * (yy + 2 * r * mz + r * r * m)
            ZZ[i] += S * S * yy + 2 * r * S * S * mz + (d * d + r * r * S * S) * m
            MX[i], MY[i], MZ[i], M[i] = MX[i] + d * m, MY[i] - S * (mz + r * m), MZ[i] + C * (mz + r * m), M[i] + m
        else:
            ct, st = np.cos(th), np.sin(th)
            R = np.array([[ct, -st, 0], [C * st, C * ct, -S], [S * st, S * ct, C]])
            J = R @ np.array([[XX[j], XY[j], XZ[j]], [XY[j], YY[j], YZ[j]], [XZ[j], YZ[j], ZZ[j]]]) @ R.T
            XX[j] = XY[j] = XZ[j] = YY[j] = YZ[j] = ZZ[j] = 0.0
            for values_, (a, b) in zip((XX, XY, XZ, YY, YZ, ZZ), np.transpose(np.triu_indices(3))):
                values_[i] += J[a, b]
    return np.column_stack((M, MX, MY, MZ, XX, XY, XZ, YY, YZ, ZZ))


@pytest.mark.parametrize("sigmas", ["RRRRRR", "RPRRPR", "PPPRRR"])
def test_grouping_matches_the_formulas_of_khalil_and_dombre(sigmas):
    rng = np.random.default_rng(len(set(sigmas)))
    model = chain([("RP".index(s), *rng.uniform(-1.5, 1.5, 4)) for s in sigmas])
    found = base_parameters(model, free_root=True)
    assert worst(found.spread(found.values_in(model)), table_of_the_book(model).ravel()) < 1e-12


def test_base_parameters_of_the_staubli_rx90_equal_the_published_table():
    """Khalil and Dombre 2002, example 9.3 and table 9.4: 40 base parameters with rotors, and some groups."""
    D3, RL4, q = 0.45, 0.45, np.pi / 2
    model = chain([(0, 0, 0, 0, 0), (0, q, 0, 0, 0), (0, 0, D3, 0, 0), (0, -q, 0, 0, RL4), (0, q, 0, 0, 0), (0, -q, 0, 0, 0)])
    found = base_parameters(model, terms=("Ia",))
    assert len(found) == 40
    groups = {name: {p.name: round(float(x), 9) for p, x in zip(found.parameters, row) if x}
              for name, row in zip(found.names, found.grouping)}
    beyond = {f"m(l{k})": 1.0 for k in (3, 4, 5, 6)}
    assert groups["JzzR(l1)"] == {"Jzz(l1)": 1, "Ia(j1)": 1, "Jyy(l2)": 1, "Jyy(l3)": 1} | {k: round(D3**2, 9) for k in beyond}
    assert groups["JzzR(l2)"] == {"Jzz(l2)": 1, "Ia(j2)": 1} | {k: round(D3**2, 9) for k in beyond}
    assert groups["msxR(l2)"] == {"msx(l2)": 1} | dict.fromkeys(beyond, D3)
    assert groups["JxzR(l2)"] == {"Jxz(l2)": 1, "msz(l3)": -D3}
    arm_ = {"Jyy(l4)": 1, "msz(l4)": 2 * RL4} | {f"m(l{k})": round(RL4**2, 9) for k in (4, 5, 6)}
    assert groups["JzzR(l3)"] == {"Jzz(l3)": 1} | arm_
    assert groups["msyR(l3)"] == {"msy(l3)": 1, "msz(l4)": 1, "m(l4)": RL4, "m(l5)": RL4, "m(l6)": RL4}
    assert groups["msyR(l5)"] == {"msy(l5)": 1, "msz(l6)": 1}
    assert {"Ia(j3)", "Ia(j4)", "Ia(j5)", "Ia(j6)"} < set(found.names)


@pytest.mark.parametrize(("name", "count"), [("ur5_robot", 36), ("ur10_robot", 36), ("xarm7", 43), ("kinova", 36)])
def test_number_of_base_parameters_of_usual_arms_is_36_or_43(name, count):
    """Common arms with six revolute joints have 36, with seven 43: 1 for the first joint, 7 for each other."""
    assert len(base_parameters(TreeDynamics.from_urdf(next(p for p in example_urdfs() if p.stem == name)).model)) == count


def test_names_relations_and_unobservable_parameters_of_a_two_link_arm():
    found = base_parameters(TreeDynamics.from_urdf(arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.5, 0, 0)})).model)
    assert found.names[0] == "JzzR(l1)"
    assert found.relations()[0] == "JzzR(l1) = Jzz(l1) + 0.25 m(l2) + Jyy(l2)"
    assert found.units[0] == "kg m^2" and found.units[found.names.index("msx(l2)")] == "kg m"
    assert set(found.unobservable()) == {f"{kind}(l1)" for kind in INERTIAL if kind != "Jzz"} | {"msz(l2)"}
    assert len(base_parameters(TreeDynamics.from_urdf('<robot name="stone"><link name="a"/></robot>').model)) == 0


def test_tolerance_decides_whether_nearly_parallel_axes_are_parallel():
    text = arm({"axis": (0, 1, 0)}, {"axis": (0, 1, 0), "xyz": (0.5, 0, 0), "rpy": (1e-7, 0, 0)})
    model = TreeDynamics.from_urdf(text).model
    assert len(base_parameters(model, tolerance=1e-6)) == 6 < len(base_parameters(model, tolerance=1e-8))


# ---------------------------------------------------------------------- regrouped models

def everything(model, seed, gravity=GRAVITY):
    """Return tau, tau_rate, bias, gravity torque and M qdd of one state."""
    q, qd, qdd, qddd = random_state(np.random.default_rng(seed), model.n)
    zero = np.zeros(model.n)
    states = ((q, qd, qdd, qddd), (q, qd, zero, zero), (q, zero, zero, zero), (q, zero, qdd, zero))
    return np.concatenate([np.concatenate(torque_rate.torque_and_rate(model, *state, gravity)) for state in states])


def numbers(model, second_moments=False):
    """Return the number of nonzero inertial values."""
    return sum(np.count_nonzero(ten(link.m, link.ms, np.eye(3) * np.trace(link.J) / 2 - link.J if second_moments else link.J))
               for link in model.links[1:])


@pytest.mark.parametrize("second_moments", [False, True])
def test_regrouped_examples_have_the_same_torques(second_moments):
    for path, robot in examples():
        if 0 < robot.n < 40:
            fewer = regrouped(robot.model, GRAVITY, second_moments)
            assert worst(everything(fewer, 1), everything(robot.model, 1)) < 1e-12, path
            assert numbers(fewer, second_moments) <= numbers(robot.model, second_moments), path


@pytest.mark.parametrize("second_moments", [False, True])
def test_regrouped_random_trees_have_the_same_torques(second_moments):
    """Nearly parallel axes are included, which use the general rule."""
    for seed in range(100):
        robot = TreeDynamics.from_urdf(random_tree(seed).text(), backend="python")
        term = JointDynamics(0.01, 20.0, 0.3, 0.2, 0.1)
        model = robot.model.with_joint_dynamics({link.joint: term for link in robot.model.links if link.joint})
        fewer = regrouped(model, GRAVITY, second_moments)
        assert worst(everything(fewer, seed), everything(model, seed)) < 1e-12, seed
        assert all(a.term == b.term and a.geometry == b.geometry for a, b in zip(fewer.links, model.links))


def test_regrouped_model_has_as_few_nonzero_values_as_base_parameters():
    robot = next(robot for path, robot in examples() if path.stem == "talos_reduced")
    assert numbers(regrouped(robot.model)) <= len(base_parameters(robot.model)) < 0.65 * numbers(robot.model)


def test_regrouping_depends_on_gravity():
    model = TreeDynamics.from_urdf(arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.5, 0, 0)})).model
    sideways = np.array([9.81, 0.0, 0.0])
    assert worst(everything(regrouped(model), 0, sideways), everything(model, 0, sideways)) > 1e-3
    assert worst(everything(regrouped(model, sideways), 0, sideways), everything(model, 0, sideways)) < 1e-12


@pytest.mark.parametrize("seed", trees(range(20)))
def test_regrouped_floating_robots_have_the_same_base_wrench(seed):
    model, rng = replace(tree(seed).model, base="floating"), np.random.default_rng(seed)
    state, base = random_state(rng, model.n), RootMotion(*rng.normal(size=(5, 3)))
    answers = []
    for each in (model, regrouped(model), regrouped(model, second_moments=True)):
        forces = dynamics(each, kinematics(each, *state, base), *state[1:])
        answers.append(np.concatenate((forces.f[0], forces.n[0], forces.fd[0], forces.nd[0], forces.tau, forces.tau_rate)))
    assert worst(answers[1], answers[0]) < 1e-12 and worst(answers[2], answers[0]) < 1e-12


def test_regrouped_robots_support_payloads():
    robot = tree(trees()[0])
    link = list(robot.model.frames)[-1]
    state = random_state(np.random.default_rng(0), robot.n)
    loaded, fewer = (each.with_payload(link, 2.0, (0.1, 0.2, 0.3), np.eye(3) * 0.02)
                     for each in (robot, TreeDynamics(regrouped(robot.model), "python")))
    assert worst(fewer.torque_and_rate(*state), loaded.torque_and_rate(*state)) < 1e-12


def test_second_moments_are_exact_zeros_and_save_operations():
    model = from_table("stanford", GOLDEN["stanford_arm"]["links"])

    def count(model):
        program = trace(lambda **m: component_rate.torque_and_rate(model, *m.values(), gravity=GRAVITY),
                        dict.fromkeys(("q", "qd", "qdd", "qddd"), 6))
        return program.operation_counts["mul"] + program.operation_counts["add"] + program.operation_counts["sub"]

    fewer = regrouped(model, second_moments=True)
    for link in fewer.links[1:]:
        assert (np.trace(link.J) / 2 * np.eye(3) - link.J)[2, 2] == 0.0
    assert count(fewer) < count(regrouped(model)) < 0.8 * count(model)
    assert values(fewer, parameters(fewer)).shape == (60,)


def test_inconsistent_regressors_and_unknown_terms_are_rejected():
    robot = TreeDynamics.from_urdf(arm({}))
    listed = parameters(robot.model)
    with pytest.raises(InputError, match=r"\(5, 10\); 10 columns are needed, and at least as many rows"):
        from_regressor(np.zeros((5, 10)), listed)
    with pytest.raises(InputError, match="do not exist"):
        base_parameters(robot.model, terms=("backlash",))

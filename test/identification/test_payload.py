"""Payload of a Panda, estimated from recordings of a simulated robot that differs from its model."""

import numpy as np
import pytest

from rnea_ros import InputError, load
from rnea_ros.cli.main import main
from rnea_ros.identification.identification import Measurements
from rnea_ros.identification.payload import NAMES, UPPER, estimate_payload
from support.plant import COULOMB, VISCOUS, Plant, follow, motion, panda

LINK = "panda_hand"
JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
INERTIA = np.array([[4e-3, 1e-4, 0.0], [1e-4, 5e-3, -2e-4], [0.0, -2e-4, 3e-3]])
COM = np.array([0.03, -0.05, 0.12])


@pytest.fixture(scope="module")
def robot():
    return load(panda())


def recording(robot, seed, mass, seconds=12.0, other=None):
    """Return a recording of a robot whose masses are 5 % wrong, with friction. other: seed of another motion."""
    rng = np.random.default_rng(seed)
    plant = Plant(panda(), 1.0 + 0.05 * rng.choice([-1.0, 1.0], 7), COULOMB, VISCOUS)
    if mass:
        plant.carry(LINK, mass, COM, INERTIA)
    wanted = motion(rng if other is None else np.random.default_rng(other), 1.2)
    samples = list(follow(plant, robot, wanted, seconds, effort_noise=0.1, rng=rng))
    return Measurements(*(np.array([getattr(s, name) for s in samples]) for name in ("t", "q", "effort")))


@pytest.fixture(scope="module")
def recorded(robot):
    """Return recordings: loaded, tare on the same motion, tare on another motion."""
    return recording(robot, 3, 1.0), recording(robot, 3, 0.0), recording(robot, 3, 0.0, other=17)


def test_payload_estimate_with_a_tare_is_accurate_and_physical(robot, recorded):
    found = estimate_payload(robot, LINK, *recorded[:2])
    assert abs(found.mass - 1.0) < 0.02 and np.linalg.norm(found.com - COM) < 5e-3
    truth = np.array([1.0, *COM, *INERTIA[UPPER]])
    assert (np.abs(found.values - truth) < 4.0 * found.std).all()
    sizes = np.linalg.eigvalsh(found.inertia)
    assert sizes[0] > 0.0 and sizes[2] < sizes[0] + sizes[1] + 1e-12
    assert robot.with_payload(LINK, found.mass, found.com, found.inertia).total_mass > robot.total_mass


def test_payload_standard_deviations_cover_mass_errors_of_the_model(robot, recorded):
    for tare in (None, recorded[2]):
        found = estimate_payload(robot, LINK, recorded[0], tare)
        off = np.abs(found.values - np.array([1.0, *COM, *INERTIA[UPPER]]))
        assert (off[:4] < 3.5 * found.std[:4]).all()
        assert found.std[0] > 3e-3


def exact(robot, seconds=4.0, slow=False, mass=1.5):
    """Return motion and torques without error, optionally so slow that only gravity matters."""
    t = np.linspace(0.0, seconds, 400)
    q, qd, qdd, _ = np.moveaxis(np.array([motion(np.random.default_rng(1), 2.0)(x) for x in t]), 1, 0)
    if slow:
        qd, qdd = 0.0 * qd, 0.0 * qdd
    carrying = robot.with_payload(LINK, mass, COM, INERTIA) if mass else robot
    return Measurements(t, q, carrying.inverse_dynamics(q, qd, qdd), qd, qdd)


def test_exact_recording_gives_the_exact_payload(robot):
    found = estimate_payload(robot, LINK, exact(robot), masses=0.0)
    assert np.allclose(found.values, [1.5, *COM, *INERTIA[UPPER]], rtol=0.0, atol=1e-4) and not found.unknown
    some = exact(robot)
    some.tau[:, [0, 6]] = np.nan  # not measured
    found = estimate_payload(robot, LINK, some, masses=0.0)
    assert np.allclose(found.values[:4], [1.5, *COM], rtol=0.0, atol=1e-3)


def test_undetermined_payload_values_are_reported(robot):
    found = estimate_payload(robot, LINK, exact(robot, slow=True), masses=0.0)
    assert set(found.unknown) == set(NAMES[4:])
    assert abs(found.mass - 1.5) < 0.01 and np.allclose(found.com, COM, atol=2e-3)
    assert np.linalg.eigvalsh(found.inertia)[0] > 0.0


def test_payloads_that_cannot_be_estimated_are_rejected(robot):
    with pytest.raises(InputError, match="no payload detected on link 'panda_hand'"):
        estimate_payload(robot, LINK, exact(robot, mass=0.0))
    with pytest.raises(InputError, match="link 'elbow' is not in robot"):
        estimate_payload(robot, "elbow", exact(robot))
    few = exact(robot)
    with pytest.raises(InputError, match="50 samples"):
        estimate_payload(robot, LINK, Measurements(*(getattr(few, x)[:50] for x in ("t", "q", "tau", "qd", "qdd"))))


def test_payload_command_writes_the_identified_payload(robot, tmp_path, capsys):
    (tmp_path / "panda.urdf").write_text(panda())
    data = exact(robot)
    columns = [("t", data.t[:, None])] + [(block, getattr(data, block)) for block in ("q", "qd", "qdd", "tau")]
    header = ",".join(block if block == "t" else f"{block}_{name}" for block, table in columns
                      for name in (JOINTS if block != "t" else [""]))
    np.savetxt(tmp_path / "motion.csv", np.hstack([table for _, table in columns]), delimiter=",", header=header, comments="")
    out = tmp_path / "payload.robot.yaml"
    assert main(["payload", str(tmp_path / "panda.urdf"), str(tmp_path / "motion.csv"), "--link", LINK, "-o", str(out),
                 "--mass-uncertainty", "0"]) == 0
    assert "without a tare" in capsys.readouterr().out
    loaded = load(panda(), out)
    assert loaded.payloads[LINK].mass == pytest.approx(1.5, abs=1e-3)

"""Upsets of InverseDynamicsController in MuJoCo: lost states, references that begin elsewhere, wrong models, weak motors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnea_ros.sim.plant import Plant
from rnea_ros.sim.scene import UnmodelledDynamics, scene
from support.controller_harness import SUCCESS, Controller

PERIOD = 1e-3
# Centres of motions, and links that carry the payload.
CENTRES = {"panda": np.array([0.3, -0.5, 0.2, -1.8, 0.1, 1.5, 0.4]), "ur5": np.array([0.4, -1.7, 1.9, -1.6, 1.2, 0.3])}
LINKS = {"panda": "panda_link7", "ur5": "wrist_3_link"}


class Upset(NamedTuple):
    """Upset of one arm.

    speed           : peak velocity of the reference as a share of the limit
    begin, duration : of the loss of positions and velocities, each ok, stale or missing [s]
    jump            : distance of the first trajectory from the arm [rad]
    masses, payload : largest relative error of masses; mass that the controller does not know [kg]
    effort          : share of the motors' torque
    hold, noise     : cycles between readings; standard deviation of velocities [rad/s], a tenth of it of positions [rad]
    """

    speed: float = 0.5
    begin: float = 2.0
    duration: float = 0.0
    positions: str = "ok"
    velocities: str = "ok"
    jump: float = 0.0
    masses: float = 0.0
    payload: float = 0.0
    effort: float = 1.0
    hold: int = 1
    noise: float = 0.0
    seed: int = 0


class Result(NamedTuple):
    """Course of a run, one row a cycle: reference, position, velocity (cycles, n), efforts; errors that update() returned."""

    q_ref: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    effort: np.ndarray
    returned: np.ndarray
    log: str

    @property
    def error(self) -> np.ndarray:
        return np.abs(self.q_ref - self.q)

    def final_error(self, seconds: float = 0.5) -> float:
        return float(self.error[-round(seconds / PERIOD):].max())

    def final_speed(self, seconds: float = 0.5) -> float:
        return float(np.abs(self.qd[-round(seconds / PERIOD):]).max())


def reference(name: str, velocity: np.ndarray, upset: Upset, seconds: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities, accelerations (cycles, n) of sines about the centre that begin and end at rest."""
    rng = np.random.default_rng(upset.seed + 1000)
    centre, n = CENTRES[name], len(CENTRES[name])
    t = np.arange(round(seconds / PERIOD)) * PERIOD
    w = rng.uniform(2.0, 3.5, n)
    size = np.minimum(0.9, upset.speed * velocity / w) * rng.uniform(0.5, 1.0, n)
    size[rng.integers(n)] = 0.0
    fastest = rng.integers(n)
    size[fastest] = upset.speed * velocity[fastest] / w[fastest]
    x = np.clip(np.minimum(t, t[-1] - 2.0 - t), 0.0, 1.0)  # two seconds at rest in the end
    share = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    q = centre + share[:, None] * size * np.sin(w * t[:, None] + rng.uniform(0.0, 6.0, n))
    qd = np.gradient(q, PERIOD, axis=0)
    return q, qd, np.gradient(qd, PERIOD, axis=0)


def plant(urdf: Path, robot_file: Any, name: str, upset: Upset) -> Plant:
    rng = np.random.default_rng(upset.seed)
    masses = 1.0 + upset.masses * rng.uniform(-1.0, 1.0, len(CENTRES[name]))
    made = scene(urdf, robot_file, unmodelled=UnmodelledDynamics(masses=masses), timestep=PERIOD)
    made.model.body(LINKS[name]).mass[0] += upset.payload
    return Plant(made)


def run(code: Any, library: str, device: Plant, name: str, upset: Upset, seconds: float = 8.0, **parameters: Any) -> Result:
    """Run a controller of the harness `code` on the plant; parameters as for the controller ("__" for a dot)."""
    rng = np.random.default_rng(upset.seed + 2000)
    robot, n = device.robot, device.robot.n
    q_ref, qd_ref, qdd_ref = reference(name, robot.limits.velocity, upset, seconds)
    way = rng.choice([-1.0, 1.0], n) * rng.uniform(0.3, 1.0, n)
    way *= upset.jump / np.abs(way).max()
    weak = {"max_effort": upset.effort * robot.limits.effort} if upset.effort < 1.0 else {}
    given = {"robot_library": library, "activation_time": 0.1, "state_timeout": 0.0, **weak, **parameters}
    controller = Controller(code, {key.replace("__", "."): value for key, value in given.items()})
    try:
        assert [controller.transition(word) for word in ("init", "configure")] == [SUCCESS, SUCCESS], controller.log
        controller.chain()
        device.set_state(q_ref[0] + way)
        course, returned = [], []
        for cycle in range(len(q_ref)):
            q, qd = (x.copy() for x in device.joints)
            if cycle % upset.hold == 0 or cycle == 0:
                seen = [q + 0.1 * upset.noise * rng.standard_normal(n), qd + upset.noise * rng.standard_normal(n)]
            lost = 0 <= cycle * PERIOD - upset.begin < upset.duration
            if not lost or cycle == 0:
                kept = [x.copy() for x in seen]
            else:
                for k, kind in enumerate((upset.positions, upset.velocities)):
                    kept[k] = {"ok": seen[k], "stale": kept[k], "missing": np.full(n, np.nan)}[kind]
            given_reference = None if cycle == 0 else np.column_stack((q_ref[cycle], qd_ref[cycle], qdd_ref[cycle])).ravel()
            controller.write(np.column_stack(kept).ravel(), given_reference)
            if cycle == 0:
                assert controller.transition("activate") == SUCCESS, controller.log
            returned.append(controller.update(PERIOD))
            effort = controller.read()[0]
            device.exert(effort)
            device.advance()
            course.append((q_ref[cycle], q, qd, effort))
        columns = (np.array(x) for x in zip(*course, strict=True))
        return Result(*columns, np.array(returned), controller.log)
    finally:
        controller.close()


KINDS = ("both stale", "positions stale", "velocities stale", "both missing", "positions missing", "velocities missing",
         "begins elsewhere")


def random_upset(seed: int) -> tuple[str, Upset, dict[str, Any]]:
    """Return one of KINDS in turn, a random upset of it, and parameters of the controller."""
    rng = np.random.default_rng(seed + 3000)
    kind = KINDS[seed % len(KINDS)]
    lost = {"stale": "stale", "missing": "missing"}.get(kind.rpartition(" ")[2], "ok")
    noisy = rng.random() < 0.3
    upset = Upset(speed=rng.uniform(0.2, 1.0), duration=np.exp(rng.uniform(np.log(0.05), 0.0)) if lost != "ok" else 0.0,
                  positions=lost if kind.split()[0] in ("both", "positions") else "ok",
                  velocities=lost if kind.split()[0] in ("both", "velocities") else "ok",
                  jump=rng.uniform(0.1, 1.5) if lost == "ok" else 0.0, masses=rng.choice([0.0, 0.05]),
                  payload=rng.choice([0.0, rng.uniform(0.3, 2.0)]), effort=rng.choice([1.0, 0.5], p=[0.7, 0.3]),
                  hold=int(rng.choice([1, 2, 4])) if noisy else 1, noise=0.01 if noisy else 0.0, seed=seed)
    parameters = {"max_effort_rate": [1000.0]} if rng.random() < 0.7 else {}
    mode = str(rng.choice(["computed_torque", "joint_impedance", "feedforward"], p=[0.6, 0.2, 0.2]))
    return kind, upset, {"mode": mode, **parameters}

"""Answers that are not ours: Pinocchio on a URDF, with its joints mapped to ours by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin


def example_urdfs() -> list[Path]:
    """Every URDF that comes with the package example-robot-data."""
    prefix = Path(pin.__file__).parents[4]
    found = sorted(prefix.glob("share/example-robot-data/robots/**/*.urdf"))
    assert len(found) > 60, f"example-robot-data is not installed under {prefix}"
    return found


class PinocchioOracle:
    """tau and tau_rate by Pinocchio; arrays in the order of `robot.joint_names`, mimic joints folded by virtual work.

    Raises ValueError where Pinocchio does not load the file.
    """

    def __init__(self, urdf, robot):
        self.model = pin.buildModelFromXML(urdf) if str(urdf).lstrip().startswith("<") else pin.buildModelFromUrdf(str(urdf))
        self.data = self.model.createData()
        self.model.gravity.linear = robot.gravity_vector
        links = [link for link in robot.model.links if link.joint]
        assert {name for name in self.model.names[1:]} == {link.joint for link in links}
        self.fold = np.zeros((self.model.nv, robot.n))  # v_pinocchio = fold @ qd
        self.offset = np.zeros(self.model.nv)
        for link in links:
            row = self.model.joints[self.model.getJointId(link.joint)].idx_v
            self.fold[row, link.coordinate] = link.multiplier
            self.offset[row] = link.offset

    def configuration(self, q):
        return pin.integrate(self.model, pin.neutral(self.model), self.fold @ q + self.offset)

    def torque_and_rate(self, q, qd, qdd, qddd):
        q, v, a, j = self.configuration(q), self.fold @ qd, self.fold @ qdd, self.fold @ qddd
        tau = pin.rnea(self.model, self.data, q, v, a).copy()
        dq, dv, M = pin.computeRNEADerivatives(self.model, self.data, q, v, a)
        M = np.triu(M) + np.triu(M, 1).T
        return self.fold.T @ tau, self.fold.T @ (dq @ v + dv @ a + M @ j)

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.data, self.configuration(q))
        return self.fold.T @ (np.triu(M) + np.triu(M, 1).T) @ self.fold


def deviation(ours, truth) -> float:
    """Largest error relative to the largest entry of the truth, or to one."""
    ours, truth = np.asarray(ours), np.asarray(truth)
    return float(np.abs(ours - truth).max(initial=0.0) / max(1.0, np.abs(truth).max(initial=0.0)))

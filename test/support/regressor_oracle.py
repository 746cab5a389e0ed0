"""Pinocchio's joint torque regressor with columns converted to MDH frames and mimic joints folded."""

from __future__ import annotations

import numpy as np

from rnea_ros.algorithms.inertial_parameters import INERTIAL, parameters
from support.oracles import PinocchioOracle, pin

PIN_ORDER = ("m", "msx", "msy", "msz", "Jxx", "Jxy", "Jyy", "Jxz", "Jyz", "Jzz")  # Inertia.toDynamicParameters()


def moved(ten, R, p):
    """Return the ten inertial parameters of a body in a frame that has the old one at (R, p), by homogeneous coordinates."""
    given = dict(zip(INERTIAL, ten))
    J = np.array([[given["J" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
    ms = np.array([given[f"ms{a}"] for a in "xyz"])
    H, S = np.eye(4), np.zeros((4, 4))
    H[:3, :3], H[:3, 3] = R, p
    S[:3, :3], S[:3, 3], S[3, :3], S[3, 3] = np.trace(J) / 2 * np.eye(3) - J, ms, ms, given["m"]
    S = H @ S @ H.T
    J = np.trace(S[:3, :3]) * np.eye(3) - S[:3, :3]
    return np.concatenate(([S[3, 3]], S[:3, 3], J[np.triu_indices(3)]))


class RegressorOracle(PinocchioOracle):
    """Regressor Y (n, p) for parameters(robot.model); with free_root (6 + n, p) for parameters(robot.model, root=True).

    Joints inside a planar joint have no link in the URDF, hence no frame to compare with: ValueError.
    """

    def __init__(self, urdf, robot, free_root=False):
        super().__init__(urdf, robot)
        if free_root:
            build = pin.buildModelFromXML if str(urdf).lstrip().startswith("<") else pin.buildModelFromUrdf
            self.model = build(str(urdf), pin.JointModelFreeFlyer())
            self.data = self.model.createData()
            self.model.gravity.linear = robot.gravity_vector
            self.fold = np.block([[np.eye(6), np.zeros((6, robot.n))], [np.zeros((self.model.nv - 6, 6)), self.fold]])
        self.into = np.zeros((10 * (self.model.njoints - 1), len(parameters(robot.model, root=free_root))))
        kinds = [INERTIAL.index(kind) for kind in PIN_ORDER]
        column = 0
        for k, link in enumerate(robot.model.links):
            if link.joint or (free_root and k == 0):
                if link.name not in robot.model.frames:
                    raise ValueError(link.name)
                frame = robot.model.frames[link.name]
                joint = self.model.getJointId(link.joint) if k else 1
                columns = [moved(unit, frame.R.T, -frame.R.T @ frame.P)[kinds] for unit in np.eye(10)]
                self.into[10 * (joint - 1):10 * joint, column:column + 10] = np.array(columns).T
                column += 10

    def regressor(self, q, qd, qdd):
        state = self.configuration(q), self.fold @ qd, self.fold @ qdd
        return self.fold.T @ pin.computeJointTorqueRegressor(self.model, self.data, *state) @ self.into

    def free_regressor(self, base, q, v, a):
        """Return the regressor. base: quaternion xyzw; v, a (6 + n,): twist and spatial acceleration of the base first."""
        start = np.concatenate((np.zeros(3), base, pin.neutral(self.model)[7:]))
        state = pin.integrate(self.model, start, np.concatenate((np.zeros(6), self.fold[6:, 6:] @ q + self.offset)))
        Y = pin.computeJointTorqueRegressor(self.model, self.data, state, self.fold @ v, self.fold @ a)
        return self.fold.T @ Y @ self.into

    def stacked(self, states, seed=0):
        """Return stacked regressors of random states."""
        rng, n = np.random.default_rng(seed), self.fold.shape[1]
        return np.concatenate([self.regressor(rng.uniform(-np.pi, np.pi, n), *rng.normal(size=(2, n))) for _ in range(states)])

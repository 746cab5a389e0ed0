"""Bench of query_node: service calls, and a batch of states for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Accel, Point, Pose, Quaternion, Twist, Vector3, Wrench

from rnea_msgs import srv
from rnea_msgs.msg import BaseState, JointSample, LinkWrench, ModelInfo
from rnea_ros import Loads
from rnea_ros.robots import base_state
from support.node_bench import NAMES
from support.ros_helpers import LATCHED, RosDomain

NODE = "/query_node"
REQUESTED_JOINTS = ["not_ours", "slide", "follow", "turn", "spin"]  # any order, with a mimic joint and an unknown joint
IN_MODEL = ["slide", "turn", "spin"]  # those in the response
FIELDS = ("position", "velocity", "acceleration", "jerk", "effort")
SERVICES = {
    "get_tree": srv.GetTree,
    "compute_coriolis_matrix": srv.ComputeCoriolisMatrix,
    "compute_forward_kinematics": srv.ComputeForwardKinematics,
    "compute_jacobians": srv.ComputeJacobians,
    "compute_joint_wrench_sensitivities": srv.ComputeJointWrenchSensitivities,
    "compute_loop_closure": srv.ComputeLoopClosure,
    "compute_motor_motion": srv.ComputeMotorMotion,
    "compute_platform_forward_kinematics": srv.ComputePlatformForwardKinematics,
    "compute_platform_inverse_kinematics": srv.ComputePlatformInverseKinematics,
    "compute_regressor": srv.ComputeRegressor,
    "compute_inverse_dynamics": srv.ComputeInverseDynamics,
    "compute_forward_dynamics": srv.ComputeForwardDynamics,
    "compute_mass_matrix": srv.ComputeMassMatrix,
    "compute_sensitivities": srv.ComputeSensitivities,
    "compute_joint_wrenches": srv.ComputeJointWrenches,
    "compute_energy": srv.ComputeEnergy,
    "compute_floating_inverse_dynamics": srv.ComputeFloatingInverseDynamics,
    "compute_floating_forward_dynamics": srv.ComputeFloatingForwardDynamics,
}


def six(kind: Any, values: Any, first: str = "linear", second: str = "angular") -> Any:
    parts = (Vector3(**dict(zip("xyz", map(float, part), strict=True))) for part in np.split(np.asarray(values), 2))
    return kind(**dict(zip((first, second), parts, strict=True)))


def wrench(values: Any) -> Wrench:
    return six(Wrench, values, "force", "torque")


def numbers(message: Any) -> np.ndarray:
    """Return Accel, Wrench, Point, Vector3 or Matrix as an array."""
    if hasattr(message, "orientation"):
        return np.array([getattr(part, x) for part, axes in ((message.position, "xyz"), (message.orientation, "xyzw"))
                         for x in axes])
    if hasattr(message, "rows"):
        return np.array(message.data).reshape(message.rows, message.columns)
    if hasattr(message, "x"):
        return np.array([message.x, message.y, message.z])
    pair = (message.linear, message.angular) if hasattr(message, "linear") else (message.force, message.torque)
    return np.concatenate([numbers(part) for part in pair])


def table(messages: Any) -> np.ndarray:
    return np.array([numbers(message) for message in messages])


class Batch:
    """Three states of the arm and its base with wrenches on two links, as arrays and as request fields."""

    def __init__(self, seed: int = 5, samples: int = 3):
        rng = np.random.default_rng(seed)
        self.q, self.qd, self.qdd, self.qddd, self.tau = rng.uniform(-2.0, 2.0, (5, samples, len(NAMES)))
        self.motion = self.q, self.qd, self.qdd, self.qddd
        orientation = rng.normal(size=(samples, 4))
        orientation /= np.linalg.norm(orientation, axis=1, keepdims=True)
        self.base = base_state.BaseState(rng.normal(size=(samples, 3)), orientation, rng.normal(size=(samples, 6)))
        self.base_acceleration, self.base_jerk = rng.normal(size=(2, samples, 6))
        self.wrenches = {"tool": rng.normal(size=(samples, 6)), "fore": rng.normal(size=6)}
        self.rates = {"tool": rng.normal(size=(samples, 6))}
        self.held = {"wrist": rng.normal(size=6)}
        self.samples = [self._sample(k) for k in range(samples)]
        self.bases = [self._base(k) for k in range(samples)]
        self.loads = [LinkWrench(link=link, wrench=[wrench(row) for row in np.atleast_2d(rows)],
                                 rate=[wrench(row) for row in self.rates.get(link, ())])
                      for link, rows in self.wrenches.items()]
        self.loads_held = [LinkWrench(link=link, frame="root", wrench=[wrench(row)]) for link, row in self.held.items()]

    @property
    def given(self) -> Loads:
        """Return all loads as Robot takes them."""
        return Loads(self.wrenches, self.rates, self.held)

    def __len__(self) -> int:
        return len(self.samples)

    def _sample(self, k: int) -> JointSample:
        rows = ([dict(zip(NAMES, row[k])).get(name, 99.0) for name in REQUESTED_JOINTS] for row in (*self.motion, self.tau))
        return JointSample(**dict(zip(FIELDS, rows)))

    def _base(self, k: int) -> BaseState:
        point, turn = self.base.position[k].tolist(), self.base.quaternion[k].tolist()
        pose = Pose(position=Point(**dict(zip("xyz", point))), orientation=Quaternion(**dict(zip("xyzw", turn))))
        return BaseState(pose=pose, twist=six(Twist, self.base.velocity[k]),
                         acceleration=six(Accel, self.base_acceleration[k]), jerk=six(Accel, self.base_jerk[k]))

    def base_at(self, k: int) -> base_state.BaseState:
        return base_state.BaseState(self.base.position[k], self.base.quaternion[k], self.base.velocity[k])

    def wrenches_at(self, k: int) -> dict[str, np.ndarray]:
        return {link: rows[k] if rows.ndim == 2 else rows for link, rows in self.wrenches.items()}


class QueryBench:
    """ROS domain with one query_node, and clients of its services."""

    def __init__(self, ros: RosDomain, **parameters: Any):
        self.ros = ros
        self.process = ros.start("query_node", parameters)
        self.info: list[ModelInfo] = ros.listen(ModelInfo, f"{NODE}/model_info", LATCHED)

    def ready(self) -> QueryBench:
        self.ros.until(lambda: self.info, what=f"no model: {self.process.log}")
        return self

    def __call__(self, service: str, **fields: Any) -> Any:
        return self.ros.call(SERVICES[service], f"{NODE}/{service}", SERVICES[service].Request(**fields))

    def ask(self, service: str, batch: Batch, **fields: Any) -> dict[str, Any]:
        """Return the response to a batch as arrays in the model's joint order; fail if the request is rejected."""
        response = self(service, joint_names=REQUESTED_JOINTS, samples=batch.samples, **fields)
        assert response.success, response.message
        assert list(response.joint_names) == IN_MODEL and not response.message
        assert response.model_id == self.info[-1].model_id
        order = [IN_MODEL.index(name) for name in NAMES]
        answer = {}
        for name, kind in response.get_fields_and_field_types().items():
            value = getattr(response, name)
            if kind == "rnea_msgs/Matrix":
                answer[name] = numbers(value)[:, order]
            elif kind == "sequence<rnea_msgs/Matrix>":
                square = value and value[0].rows == value[0].columns == len(NAMES)
                answer[name] = np.array([numbers(m)[np.ix_(order, order)] if square else numbers(m) for m in value])
            elif kind.startswith("sequence<geometry_msgs"):
                answer[name] = table(value)
            else:
                answer[name] = list(value) if kind.startswith("sequence") else value
        return answer

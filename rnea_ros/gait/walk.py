"""A predicted step, and the stride that it makes with its mirror image: what is drawn, written and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..planning.result import PlannedMotion
from . import ground, support
from .normative import ANGLES, likeness
from .skeleton import SIDES
from .step import Conditions, Step
from .support import BETWEEN, DOUBLE, SINGLE
from .walker import Walker

MIRROR = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # of a force and a moment, left and right
JOINTS = {"hip": "hip_flexion", "knee": "knee_flexion", "ankle": "ankle_dorsiflexion"}
LOOKS = 300  # at the step: more than ten times the instants that it is planned at


@dataclass(frozen=True, eq=False)
class Stride:
    """Two steps, from one strike of the right heel to the next; samples first.

    share     : of the stride, 0 to 1; t [s]
    q, qd, qdd, tau : (samples, n); the torques of the global coordinates are what is left over
    floor     : F and M (samples, 2, 6) on the right and on the left foot, about the world's origin [N, N m]
    toes      : (samples, 2) what of it the toes bear, a moment about y [N m]
    pressure  : zero-moment point (samples, 2), x and y [m]
    transmitted : {hip, knee, ankle: (samples,)} norm of the force through the right leg's joint [N]
    """

    share: np.ndarray
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    floor: np.ndarray
    toes: np.ndarray
    pressure: np.ndarray
    transmitted: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Walk:
    walker: Walker
    step: Step
    plan: PlannedMotion

    def stride(self, samples: int = 201) -> Stride:
        """At evenly spread instants of each step; where the two meet there are two, for what jumps there."""
        walker, u = self.walker, np.linspace(0.0, 1.0, samples // 2 + 1)
        motion = self.plan(u * self.plan.duration)[:3]
        tau, floor, toes, right, left = self._loaded(u, motion)
        mirror, ahead = mirrored(walker.joint_names), np.zeros(walker.n)
        ahead[walker.joint_names.index("forward")] = self.step.length
        total = floor.sum(axis=1)
        pressure = np.array([ground.zero_moment_point(wrench[:3], wrench[3:]) for wrench in total])
        second = floor[:, ::-1] * MIRROR
        second[..., 3:] += np.cross([self.step.length, 0.0, 0.0], second[..., :3])
        q, qd, qdd = (np.concatenate((x, x @ mirror.T)) for x in motion)
        q[len(u):] += ahead
        return Stride(np.append(u / 2, 0.5 + u / 2), np.append(u, 1.0 + u) * self.plan.duration, q, qd, qdd,
                      np.concatenate((tau, tau @ mirror.T)), np.concatenate((floor, second)),
                      np.concatenate((toes, toes[:, ::-1])),
                      np.concatenate((pressure, pressure * (1.0, -1.0) + (self.step.length, 0.0))),
                      {name: np.append(right[name], left[name]) for name in JOINTS})

    def _loaded(self, u, motion):
        """Torques, loads of both feet and of their toes, joint forces of the right and of the left leg, along the step."""
        tau, floor, toes = np.zeros_like(motion[0]), np.zeros((len(u), 2, 6)), np.zeros((len(u), 2))
        norms = [{name: np.zeros(len(u)) for name in JOINTS} for _ in SIDES]
        double = u <= self.step.toe_off
        for bearing, at in ((DOUBLE, np.flatnonzero(double)), (SINGLE, np.flatnonzero(~double))):
            q, qd, qdd = part = [x[at] for x in motion]
            tau[at] = self.walker.torque(bearing, part)
            loads = self.walker.loads(bearing, part)
            found = self.walker.robot.joint_wrenches(q, qd, qdd, world_wrenches=loads)
            toes[at] = np.column_stack([loads[f"{side}_toes"][:, 4] for side in SIDES])
            for side, table in zip(SIDES, norms):
                for name, joint in JOINTS.items():
                    wrench = found.wrench[:, found.joints.index(f"{side}_{joint}")]
                    table[name][at] = np.linalg.norm(wrench[:, :3], axis=1)
            if bearing is SINGLE:
                floor[at, 0] = self.walker.needed(part).value
            else:
                floor[at] = self.walker.of_ground(support.forces, BETWEEN, part).value.reshape(-1, 2, 6)
        return tau, floor, toes, *norms

    # ------------------------------------------------------------------ what it is worth

    def excess(self, at: Sequence[float] | None = None) -> dict[str, float]:
        """Quantity -> by how much it is beyond its limits anywhere, in its own unit: rad, m, m^2, or a share of strength or
        load. Negative: what is left. at: shares of the step; default many, and where phases meet."""
        events = self.step.toe_off, self.step.heel_off, self.step.mid_swing
        u = np.unique(np.append(np.linspace(0.0, 1.0, LOOKS + 1), events)) if at is None else np.asarray(at)
        motion = np.stack(self.plan(u * self.plan.duration), axis=1)
        worst: dict[str, float] = {}
        for quantity in Conditions(self.walker, self.step).all():
            beyond = quantity.excess(motion, u) * quantity.scale
            worst[quantity.name] = max(float(beyond.max()), worst.get(quantity.name, -np.inf))
        return worst

    def report(self) -> dict[str, float]:
        """The figures by which walking is judged."""
        stride, names = self.stride(), self.walker.joint_names
        found: dict[str, float] = {"effort": self.effort()}
        for joint in ANGLES:
            angle = np.degrees(stride.q[:, names.index(f"right_{joint}")])
            found[f"{joint} correlation"], found[f"{joint} difference [deg]"] = likeness(joint, stride.share, angle)
            found[f"{joint} least [deg]"], found[f"{joint} most [deg]"] = float(angle.min()), float(angle.max())
        force = stride.floor[:, 0, :3] / self.walker.weight
        stance = np.flatnonzero(force[:, 2] > 0.0)
        vertical = force[stance, 2]
        first, last = np.array_split(vertical, 2)
        low = int(first.argmax()), len(first) + int(last.argmax())
        found |= {"first peak [weight]": float(first.max()), "valley [weight]": float(vertical[low[0]:low[1] + 1].min()),
                  "second peak [weight]": float(last.max()), "braking [weight]": float(-force[:, 0].min()),
                  "pushing [weight]": float(force[:, 0].max()), "sideways [weight]": float(np.abs(force[:, 1]).max()),
                  "left at the root [N, N m]": float(np.abs(stride.tau[:, :6]).max()), "excess": max(self.excess().values())}
        return found

    def effort(self) -> float:
        """(5.1) alone, by Simpson's rule on many samples."""
        u = np.linspace(0.0, 1.0, 401)
        motion = np.stack(self.plan(u * self.plan.duration), axis=1)
        double, single = (quantity.values(motion) for quantity in Conditions(self.walker, self.step).torques())
        shares = np.where(u[:, None] <= self.step.toe_off, double, single)
        weights = np.tile([2.0, 4.0], 201)[:401]
        weights[[0, -1]] = 1.0
        return float(weights @ (shares**2).sum(axis=1) * self.plan.duration / 1200.0)


def mirrored(joint_names: tuple[str, ...]) -> np.ndarray:
    """(n, n): coordinates of the mirrored posture. Right and left change places; what leads aside changes its sign."""
    matrix = np.zeros((len(joint_names),) * 2)
    for k, name in enumerate(joint_names):
        if name.startswith(("right_", "left_")):
            side, rest = name.split("_", 1)
            matrix[k, joint_names.index(("left_" if side == "right" else "right_") + rest)] = 1.0
        else:
            aside = name in ("sideways", "pelvis_rotation", "pelvis_list") or name.endswith(("_bending", "_rotation"))
            matrix[k, k] = -1.0 if aside else 1.0
    return matrix

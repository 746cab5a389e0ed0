"""Terms along a path of robots whose other joints follow the active ones: closed loops, platforms on legs.

They are followed along the path once, from end to end, so they stay on the branch on which they begin. Any place of the path
is then closed from the nearest pose that is known; and at a closed pose the five evaluations of scaling.terms are kernels that
take all samples at once.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..codegen.kernel import MANY
from ..errors import InputError
from ..robots.followed import Followed
from .constraints import TorqueTerms, torque_terms
from .path import Path

LOOKS = 201  # along a path, where it is followed first


class FollowedTerms:
    """Of a robot that is followed, Coulomb friction left out: call with q, q', q'', q''' (samples, n) each.

    friction : (n,) what Coulomb friction can take of each torque, anywhere on the path
    """

    def __init__(self, followed: Followed):
        self._followed = followed
        q, pose = followed.start()
        self._q, self._poses = q[None], pose[None]  # that are known
        self.friction = followed.friction(pose)

    def along(self, path: Path) -> FollowedTerms:
        s = np.union1d(np.linspace(0.0, path.length, LOOKS), path.breaks)
        found = copy.copy(self)
        found._q, poses, pose = path(s)[0], [], self._poses[0]
        for place, q in zip(s, found._q, strict=True):
            try:
                poses.append(pose := self._followed.pose(q, pose))
            except InputError as error:
                raise InputError(f"the robot cannot follow the path beyond s = {place:.4g} of {path.length:.4g}: "
                                 f"{error}") from None
        found._poses = np.array(poses)
        found.friction = np.max([self._followed.friction(pose) for pose in poses], axis=0)
        return found

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
        nearest = [int(((self._q - one) ** 2).sum(axis=1).argmin()) for one in q]
        poses = np.array([self._followed.pose(one, self._poses[k]) for one, k in zip(q, nearest, strict=True)])
        return torque_terms(lambda q, *rates: self._followed.torque_and_rate(poses, *rates), q, q1, q2, q3)

    def compile(self) -> None:
        still = np.zeros((MANY, self._followed.n))
        self(np.broadcast_to(self._q[0], still.shape), still, still, still)

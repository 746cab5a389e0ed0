"""Terms along a path of a robot whose motors ride on its links, from its exact torques and rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen.kernel import MANY
from ..robots.coulomb import coulomb_with_motors, without_coulomb
from ..robots.robot import Robot
from ..robots.shared import Shared
from .constraints import TorqueTerms, torque_terms
from .path import Path


class RiddenTerms(Shared):
    """Terms of a tree with motors on links and without springs, Coulomb friction left out.

    Call with q, q', q'', q''' (samples, n) each.


    friction : (n,) what Coulomb friction can take of each torque
    """

    def __init__(self, robot: Robot):
        self.robot, self.friction = without_coulomb(robot), coulomb_with_motors(robot)

    def along(self, path: Path) -> RiddenTerms:
        return self

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
        return torque_terms(self.robot.torque_and_rate, q, q1, q2, q3)

    def compile(self) -> None:
        self(*np.zeros((4, MANY, self.robot.n)))

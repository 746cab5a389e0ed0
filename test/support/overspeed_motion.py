"""Motion of the 7R arm whose planned times are too short for its limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from support.scaling_cases import dynamics

DYNAMICS = dynamics("seven_r")
ROBOT = DYNAMICS.robot
START = np.array([0.0, 0.5, 0.0, -1.5, 0.0, 1.0, 0.0])
POINTS = START + np.array([[0.0] * 7, [0.6, 0.3, -0.4, 0.4, 0.7, 0.6, 0.5], [1.0, -0.3, 0.2, -0.5, -0.2, 0.9, -0.6],
                           [0.2, 0.4, 0.5, 0.3, 0.5, 0.3, 0.4]])
DURATION = 0.8  # [s]; planned twice too fast
EFFORT = np.array([40.0, 75.0, 40.0, 45.0, 8.0, 8.0, 4.0])
LIMITS = replace(ROBOT.limits, effort=EFFORT, effort_rate=20.0 * EFFORT)

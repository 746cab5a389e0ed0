"""Measured walking to hold a prediction against: M. Schwartz, A. Rozumalski, J. Trost, J. Biomechanics 41 (2008) 1639-1650.

Free speed, typically developing children; angles in degrees at 0, 10, .. 100 % of a stride that begins with the foot's strike.
The clinical pelvis leans forward by about 12 degrees more than ours, so the hip's level means nothing; its course does.
"""

from __future__ import annotations

import numpy as np

SHARE = np.linspace(0.0, 1.0, 11)
ANGLES = {
    "hip_flexion": (35.8, 32.8, 22.5, 11.4, 1.6, -5.3, -0.9, 17.9, 32.0, 36.7, 35.5),
    "knee_flexion": (5.6, 18.6, 16.5, 10.1, 6.2, 11.6, 33.9, 58.2, 49.8, 18.7, 5.4),
    "ankle_dorsiflexion": (-2.1, -2.1, 5.2, 8.6, 11.1, 10.4, -13.8, -11.2, 1.1, 1.0, -2.3),
}
SPREAD = {"hip_flexion": 6.0, "knee_flexion": 6.0, "ankle_dorsiflexion": 5.0}  # standard deviation, about [deg]
LEAN = 12.0  # of the clinical pelvis [deg]
# of body weight, at 1.2 to 1.4 m/s
PEAKS, VALLEY, FORE_AFT = (1.0, 1.3), (0.7, 0.95), 0.25


def likeness(joint: str, share: np.ndarray, angle: np.ndarray) -> tuple[float, float]:
    """Correlation and root mean square difference [deg] of an angle [deg] over the stride; the hip's less its mean."""
    measured, found = np.array(ANGLES[joint]), np.interp(SHARE, share, angle)
    difference = found - measured
    if joint == "hip_flexion":
        difference = difference - difference.mean()
    return float(np.corrcoef(found, measured)[0, 1]), float(np.sqrt((difference**2).mean()))

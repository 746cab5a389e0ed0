"""Continuous joints: places whole turns apart are one place, and nobody's count of turns is another's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..model.tree import Limits

TURN = 2.0 * math.pi


def turning(joint_types: Sequence[str], limits: Limits) -> np.ndarray:
    """Which joints turn without end (n,): one that was given position limits counts its turns."""
    continuous = np.array([kind == "continuous" for kind in joint_types], dtype=bool)
    return continuous & np.isnan(limits.lower) & np.isnan(limits.upper)


def nearest(q: np.ndarray, place: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """q (n,) with the joints `turns` by whole turns as near as can be to a place (n,). NaN of either: as it is."""
    away = (place - q) / TURN
    return q + TURN * np.where(turns & np.isfinite(away), np.round(away), 0.0)

"""Selected cases of benchmark/instants.py: every motion keeps its limits, also between control cycles."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pinocchio")
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmark"))

import instants


@pytest.mark.parametrize("seed", [1, 8, 147, 202])
def test_scaled_motions_keep_every_limit_at_every_instant(seed):
    """Regression: utilization 1.0056 when transitions were checked at samples only. Two robots, and joints without a robot."""
    used, _, _ = instants.checked(seed)
    assert 0.5 < used.max() <= 1.0

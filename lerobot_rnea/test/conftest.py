"""Installs the stand-in for LeRobot, so that the tests do not depend on the version that may be installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import lerobot_stand_in

sys.modules.update(lerobot_stand_in.modules())

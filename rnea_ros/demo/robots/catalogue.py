"""The demos that have a name, for `rnea demo --robot`, for demo_robot and for launch files."""

from __future__ import annotations

from ..robot_demo import RobotDemo
from . import combinations, elastic, palletiser, quadruped, stewart, touched

DEMOS: dict[str, RobotDemo] = {demo.name: demo for demo in (
    palletiser.DEMO, stewart.DEMO, elastic.DEMO, quadruped.DEMO, touched.DEMO, *combinations.COMBINATIONS)}
PLAYERS = {name: demo.player for name, demo in DEMOS.items() if demo.player is not None}  # what demo_robot plays

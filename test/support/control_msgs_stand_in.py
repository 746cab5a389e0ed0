"""Stand-in for control_msgs: messages of other packages carry its fields.

    python control_msgs_stand_in.py -m rnea_ros.node_commands scaling_node ...

runs a node that finds them. A JointTrajectoryControllerState is a JointTrajectory, whose points are its PARTS. The
action FollowJointTrajectory is rnea_msgs/PlanMotion: its goal, result and feedback carry the fields of the other, written out,
in one of their texts.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from builtin_interfaces.msg import Duration
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.action import PlanMotion

CODES = {"SUCCESSFUL": 0, "INVALID_GOAL": -1, "INVALID_JOINTS": -2, "OLD_HEADER_TIMESTAMP": -3, "PATH_TOLERANCE_VIOLATED": -4,
         "GOAL_TOLERANCE_VIOLATED": -5}
GOAL = {"trajectory": JointTrajectory, "multi_dof_trajectory": lambda: SimpleNamespace(points=[]), "path_tolerance": list,
        "component_path_tolerance": list, "goal_tolerance": list, "component_goal_tolerance": list,
        "goal_time_tolerance": Duration}
RESULT = {"error_code": int, "error_string": str}
PARTS = ("reference", "feedback", "error", "output")
FEEDBACK = {"header": Header, "joint_names": list, "desired": JointTrajectoryPoint, "actual": JointTrajectoryPoint,
            "error": JointTrajectoryPoint, "index": int}


def replace_fields(kind: Any, text: str, fields: dict[str, Any], listed: bool = False) -> None:
    """Replace a string field of a message type, or the only entry of a string array, by these fields."""
    slot, made = f"_{text}", kind.__init__

    def given(message: Any) -> dict[str, Any]:
        kept = getattr(message, slot)
        if not isinstance(kept, dict):
            sent = kept[0] if listed and kept else kept
            kept = pickle.loads(bytes.fromhex(sent)) if sent else {name: make() for name, make in fields.items()}
            setattr(message, slot, kept)
        return kept

    def written(message: Any) -> Any:
        sent = pickle.dumps(given(message)).hex()
        return [sent] if listed else sent

    setattr(kind, text, property(written, lambda message, value: setattr(message, slot, value)))
    for name in fields:
        setattr(kind, name, property(lambda message, name=name: given(message)[name],
                                     lambda message, value, name=name: given(message).__setitem__(name, value)))

    def init(message: Any, **values: Any) -> None:
        made(message)
        for name, value in values.items():
            setattr(message, name, value)

    kind.__init__ = init


def _list_entry(number: int) -> property:
    def get(message: JointTrajectory) -> JointTrajectoryPoint:
        return message.points[number] if len(message.points) > number else JointTrajectoryPoint()

    def put(message: JointTrajectory, point: JointTrajectoryPoint) -> None:
        points = [*message.points, *(JointTrajectoryPoint() for _ in range(number + 1 - len(message.points)))]
        message.points = [*points[:number], point, *points[number + 1:]]

    return property(get, put)


def install() -> None:
    """Replace PlanMotion and JointTrajectory in this process."""
    replace_fields(PlanMotion.Goal, "joint_names", GOAL, listed=True)
    replace_fields(PlanMotion.Result, "message", RESULT)
    replace_fields(PlanMotion.Feedback, "stage", FEEDBACK)
    for name, code in CODES.items():
        setattr(PlanMotion.Result, name, code)
    for number, name in enumerate(PARTS):
        setattr(JointTrajectory, name, _list_entry(number))
    package, messages, actions = map(ModuleType, ("control_msgs", "control_msgs.msg", "control_msgs.action"))
    messages.JointTrajectoryControllerState, messages.JointTolerance = JointTrajectory, SimpleNamespace
    actions.FollowJointTrajectory = PlanMotion
    sys.modules |= {"control_msgs": package, "control_msgs.msg": messages, "control_msgs.action": actions}


if __name__ == "__main__":
    install()
    sys.argv = sys.argv[2:]
    sys.exit(importlib.import_module(sys.argv[0]).main())

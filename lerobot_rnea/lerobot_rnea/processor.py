"""LeRobot processor step that passes action chunks of a policy on to the protected robot.

In the preprocessor of a policy it marks the observation that the policy gets, in the postprocessor it passes on the chunk that
the policy returns. LeRobot's inference engine `rtc` processes whole chunks; `sync` processes single actions, which this step
leaves to `ProtectedRobot.send_action`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from lerobot.processor import ProcessorStep, ProcessorStepRegistry

NAME = "rnea_protect_chunks"


@ProcessorStepRegistry.register(NAME)
@dataclass
class ProtectChunks(ProcessorStep):
    """Processor step that executes chunks on the connected `rnea_protected` robot; data pass through unchanged.

    robot_id     : id of the robot; none: the only one
    action_names : keys of a chunk's columns; none: the robot's actions in their order
    """

    robot_id: str | None = None
    action_names: list[str] | None = None

    def __call__(self, transition: Any) -> Any:
        """Mark the observation, or execute the chunk, of a transition; return the transition."""
        action = transition.get("action")
        if transition.get("observation") is not None:
            self._robot().mark_observation()
        elif getattr(action, "ndim", 0) >= 2:
            values = np.asarray(action.detach().cpu() if hasattr(action, "detach") else action, dtype=float)
            if values.ndim == 3 and len(values) != 1:
                raise ValueError(f"{len(values)} chunks in a batch; one robot executes one chunk")
            values = values[0] if values.ndim == 3 else values
            if len(values) > 1:
                self._robot().push_chunk(values, self.action_names)
        return transition

    def get_config(self) -> dict[str, Any]:
        """Return the options, for JSON."""
        return {"robot_id": self.robot_id, "action_names": self.action_names}

    def transform_features(self, features: Any) -> Any:
        """Return the features unchanged."""
        return features

    def _robot(self) -> Any:
        from .protected_robot import connected

        found = [robot for robot in connected if self.robot_id in (None, robot.id)]
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} robots of type rnea_protected are connected with id {self.robot_id or 'any'}; "
                               "one is needed: use --robot.type=rnea_protected, or `lerobot-rnea --remove` for this policy")
        return found[0]

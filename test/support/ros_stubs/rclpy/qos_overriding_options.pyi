from collections.abc import Callable, Iterable
from typing import Any

from rclpy.qos import QoSPolicyKind as QoSPolicyKind

class QoSOverridingOptions:
    def __init__(self, policy_kinds: Iterable[QoSPolicyKind], *, callback: Callable[..., Any] | None = None,
                 entity_id: str | None = None) -> None: ...
    @classmethod
    def with_default_policies(cls, callback: Callable[..., Any] | None = None, entity_id: str | None = None
                              ) -> QoSOverridingOptions: ...

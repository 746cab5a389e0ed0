from collections.abc import Callable
from typing import Any

HUMBLE: bool

class Service:
    srv_type: Any
    srv_name: str
    callback: Callable[[Any, Any], Any]
    if not HUMBLE:
        @property
        def service_name(self) -> str: ...

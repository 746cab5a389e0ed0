from typing import Any

from rclpy.task import Future

class Client:
    srv_type: Any
    srv_name: str
    def call_async(self, request: Any) -> Future: ...
    def service_is_ready(self) -> bool: ...
    def remove_pending_request(self, future: Future) -> None: ...

"""What rnea_ros uses of rclpy, in our own words: Humble's 3.3.15 where HUMBLE is true, Lyrical's 10.0.10 where it is false.

What neither has is left out; where they differ an `if` says so. test/nodes/test_other_distributions.py checks the nodes
against it.
"""

from collections.abc import Sequence

from rclpy.context import Context as Context
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import ok as ok
from rclpy.utilities import try_shutdown as try_shutdown

HUMBLE: bool

if HUMBLE:
    def init(*, args: Sequence[str] | None = None, context: Context | None = None, domain_id: int | None = None,
             signal_handler_options: SignalHandlerOptions | None = None) -> None: ...
else:
    class InitContextManager:
        def __enter__(self) -> InitContextManager: ...
        def __exit__(self, *raised: object) -> None: ...

    def init(*, args: Sequence[str] | None = None, context: Context | None = None, domain_id: int | None = None,
             signal_handler_options: SignalHandlerOptions | None = None) -> InitContextManager: ...

def create_node(node_name: str, *, context: Context | None = None, cli_args: Sequence[str] | None = None,
                namespace: str | None = None, use_global_arguments: bool = True, enable_rosout: bool = True,
                start_parameter_services: bool = True) -> Node: ...

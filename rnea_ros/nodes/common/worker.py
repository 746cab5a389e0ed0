"""A thread beside the executor, for what takes long; callbacks await what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from rnea_ros.nodes.fastpath.executor import trigger


class Worker:
    """One thread; what is asked of it waits its turn."""

    def __init__(self, node: Node, name: str):
        self._node = node
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._wake = node.create_guard_condition(lambda: None)  # executors do not notice what other threads finish

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns, or raises."""
        job, done = self._thread.submit(function, *arguments), Future(executor=self._node.executor)

        def tell(_job: Any) -> None:
            done.set_result(None)
            trigger(self._wake)

        job.add_done_callback(tell)
        await done
        error = job.exception()
        if error is not None and not isinstance(error, Exception):  # nobody above would hear of it, but the node would end
            raise RuntimeError(repr(error)) from error
        return job.result()

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

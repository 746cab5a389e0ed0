"""Answers that others give later: whoever asked hears of each, or why there is none.

rclpy's futures keep what goes wrong to themselves until somebody looks, and pass over what their callbacks raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rnea_ros.errors import in_words


def heard(future: Any, take: Callable[[Any], None], fail: Callable[[str], None]) -> None:
    """Once it is done, call take(answer); or fail(why), also where take fails."""

    def done(answered: Any) -> None:
        try:
            if answered.cancelled():
                raise RuntimeError("the question was cancelled")
            take(answered.result())
        except Exception as error:
            fail(in_words(error))

    future.add_done_callback(done)

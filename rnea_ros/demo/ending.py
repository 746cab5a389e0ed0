"""How a demo ends: what was checked, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import RneaError
from .checks import Verdict


def ended(how: str, verdicts: Sequence[Verdict], picture: str, draw: Callable[[str], None]) -> int:
    """Print how it went and draw, if a picture is named. Exit code 0 if every check passed."""
    print(f"\n{how}")
    for verdict in verdicts:
        print(f"  {'ok    ' if verdict.passed else 'FAILED'}  {verdict.text}")
    if picture:
        try:
            draw(picture)
        except (RneaError, OSError, ValueError) as error:  # no matplotlib, no such folder: the checks count, this is an extra
            print(f"  no picture: {error}")
        else:
            print(f"  picture: {picture}")
    return 0 if all(verdict.passed for verdict in verdicts) else 1

"""How a demo ends: what was checked, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..cli.outcome import Outcome
from ..errors import RneaError
from .checks import Verdict


def ended(how: str, verdicts: Sequence[Verdict], picture: str, draw: Callable[[str], None],
          data: Mapping[str, Any] = {}, next_commands: Mapping[str, str] = {}) -> Outcome:
    """Return the result of a demo; draw the picture if one is named. Exit code 0 if every check passed.

    data : further items of --json; next_commands : {command: what it does}, printed last
    """
    lines = [f"\n{how}", *(f"  {'ok    ' if verdict.passed else 'FAILED'}  {verdict.text}" for verdict in verdicts)]
    drawn = None
    if picture:
        try:
            draw(picture)
        except (RneaError, OSError, ValueError) as error:  # no matplotlib, say: the checks count, this is an extra
            lines.append(f"  no picture: {error}")
        else:
            drawn = picture
            lines.append(f"  picture: {picture}")
    if next_commands:
        width = max(map(len, next_commands))
        lines += ["\nnext:", *(f"  {command:<{width}}  {effect}" for command, effect in next_commands.items())]
    checks = [{"passed": verdict.passed, "text": verdict.text} for verdict in verdicts]
    return Outcome("\n".join(lines), {"how": how, **data, "checks": checks, "picture": drawn},
                   0 if all(verdict.passed for verdict in verdicts) else 1)

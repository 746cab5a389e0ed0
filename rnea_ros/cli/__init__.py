"""Entry point of the `rnea` command, without imports that take time: Ctrl-C during imports prints no traceback."""

from __future__ import annotations

import signal


def rnea() -> int:
    """Run the command; until its main function handles interrupts, Ctrl-C ends the process at once."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # false if the parent process ignores it
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .main import main

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()

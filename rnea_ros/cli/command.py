"""The `rnea` command. Who interrupts it while it imports gets no traceback."""

from __future__ import annotations

import signal


def rnea() -> int:
    """Until main runs, which knows what an interrupt leaves to be done, Ctrl-C ends the process at once."""
    python_s = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where who started us has it ignored
    if python_s:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .main import main

    if python_s:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()

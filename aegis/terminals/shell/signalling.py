"""A signal to the foreground process group of a terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable

import trio

from actors import Reply
from aegis.errors import NotFound, Unavailable
from aegis.processes.process_host import ShellProcess
from aegis.protocol.terminals import Done
from aegis.terminals.command_key import CommandKey
from aegis.terminals.messages import SendSignal


def not_running(terminal: str) -> NotFound:
    """Return the error for a signal to a command that does not run."""
    return NotFound(
        f"that command does not run on terminal {terminal!r} (any more); nothing was signalled: "
        "read its record with aegis_term_read"
    )


def signal_front(
    process: ShellProcess,
    request: SendSignal,
    terminal: str,
    runs: Callable[[CommandKey], bool],
    reply: Reply[Done],
) -> bool:
    """Signal the foreground process group and answer ``reply``; return whether it was signalled.

    A request for one command signals only while that command ``runs``.
    """
    if request.command is not None and not runs(request.command):
        reply.fail(not_running(terminal))
        return False
    try:
        is_sent = process.signal_foreground(signal.Signals[f"SIG{request.signal}"])
    except (PermissionError, trio.ClosedResourceError):
        is_sent = False
    if is_sent:
        reply.send(Done())
        return True
    reply.fail(
        Unavailable(
            f"no process that the daemon may signal is in the foreground of terminal {terminal!r}; "
            "nothing was signalled: look with aegis_term_list, or send Ctrl-C with aegis_term_keys"
        )
    )
    return False

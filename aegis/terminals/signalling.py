"""A signal to who is in front of a terminal."""

from __future__ import annotations

import signal

import trio

from actors import Reply
from aegis.errors import Unavailable
from aegis.protocol.terminals import Done
from aegis.terminals.process_host import ShellProcess


def signal_front(process: ShellProcess, name: str, terminal: str, reply: Reply[Done]) -> None:
    """Send the signal ``name`` (``INT``) to the process group in front, and say so."""
    try:
        is_sent = process.signal_foreground(signal.Signals[f"SIG{name}"])
    except (PermissionError, trio.ClosedResourceError):
        is_sent = False
    if is_sent:
        reply.send(Done())
        return
    reply.fail(
        Unavailable(
            f"nobody whom the daemon may signal is in front of terminal {terminal!r}; nothing was "
            "signalled: look with aegis_term_list, or send Ctrl-C with aegis_term_keys"
        )
    )

"""What goes wrong for a client, each one sentence for people. Standard library only. Pure.

ClientError
├─ NoDaemon          nobody serves this root or address (any more)
├─ ConnectionLost    the connection ended during a call, or none came about in time
├─ ProtocolMismatch  what came does not fit the protocol: the daemon is of another version
└─ CommandFailed     the daemon refused or failed; ``code`` is stable
"""

from __future__ import annotations


class ClientError(Exception):
    """Base of what a client raises; the text is one sentence."""


class NoDaemon(ClientError):
    """No daemon runs there, or it is gone; the sentence says how to start one."""


class ConnectionLost(ClientError):
    """The connection ended, or did not come about in time.

    ``command`` is the call that it cost, empty if it was none. ``maybe_done``: the daemon may have
    carried that call out. ``may_repeat``: to call again does no harm, whatever became of it.
    ``reason`` is what happened to the connection, where that is known.
    """

    def __init__(
        self,
        sentence: str,
        *,
        command: str = "",
        maybe_done: bool = True,
        may_repeat: bool = False,
        reason: str = "",
    ) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.command = command
        self.maybe_done = maybe_done
        self.may_repeat = may_repeat


class ProtocolMismatch(ClientError):
    """An answer that this client cannot read; what was asked for was carried out or refused."""


class CommandFailed(ClientError):
    """The daemon's error: ``code`` as in ``aegis.errors``, and its sentence."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code

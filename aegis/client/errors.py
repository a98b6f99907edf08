"""The errors that a client raises; the text of each is one sentence. Standard library only. Pure.

ClientError
├─ NoDaemon          no daemon serves this root or address
│  └─ NotServing     none listens; one may be starting
├─ ConnectionLost    the connection ended during a call, or could not be opened in time
├─ ProtocolMismatch  an answer does not fit the protocol: the daemon is of another version
└─ CommandFailed     the daemon refused or failed; ``code`` is stable
"""

from __future__ import annotations


class ClientError(Exception):
    """The base class of the errors of a client; the text is one sentence."""


class NoDaemon(ClientError):
    """No daemon is running for this root or address; the sentence says how to start one."""


class NotServing(NoDaemon):
    """No daemon listens for this root: none runs, or one is starting."""


class ConnectionLost(ClientError):
    """The connection ended, or could not be opened in time.

    ``command`` is the call that was lost, or empty. ``maybe_done``: the daemon may have executed
    the call. ``may_repeat``: the call can be repeated safely even then. ``reason`` is the reason
    that the connection ended, or empty.
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
    """The answer cannot be parsed; the daemon has executed or refused the command."""


class CommandFailed(ClientError):
    """The daemon refused the command, or it failed; ``code`` is a code of ``aegis.errors``."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code

"""The errors of aegis; the message of each is one sentence that says what to do.

AegisError (a Refusal: the actor that raised it continues)
├─ InvalidRequest        an argument is missing, unknown, of a wrong type or out of range
├─ NotFound              no such terminal, handle, command …; names the nearest
├─ AlreadyExists         the name is taken
├─ Busy                  a command or typed input of another caller occupies the terminal
├─ IncompleteInput       the shell could not finish reading the command
├─ Unavailable           the thing exists but cannot serve now (failed, closed, stopping)
│  └─ LimitReached       no thread, process, descriptor or PTY is free; also a StorageError
├─ Forbidden             the caller may not do this, or not under that handle
└─ StorageError          the disk refused; nothing was acknowledged
DaemonError              (not a refusal: ends or prevents a process)
├─ StartupError          the daemon cannot start
└─ ConnectError          a client finds no daemon, or lost it
"""

from __future__ import annotations

from typing import ClassVar

from actors.errors import Refusal


class AegisError(Refusal):
    """Base of all refusals. ``code`` is stable and travels on the wire beside the sentence."""

    code: ClassVar[str] = "error"


class InvalidRequest(AegisError):
    """The request does not fit its schema; the sentence names the argument and what is allowed."""

    code = "invalid_request"


class NotFound(AegisError):
    """Nothing has that name; the sentence lists the nearest existing names."""

    code = "not_found"


class AlreadyExists(AegisError):
    """The name is taken."""

    code = "already_exists"


class Busy(AegisError):
    """Another caller occupies the terminal; the sentence names the caller and its command."""

    code = "busy"


class IncompleteInput(AegisError):
    """The shell waited for more input (an open quote, an open ``if``) and was interrupted."""

    code = "incomplete_input"


class Unavailable(AegisError):
    """The thing exists but cannot serve now; the sentence says why and what to do."""

    code = "unavailable"


class Forbidden(AegisError):
    """The caller may not do this, or not under the handle it gave."""

    code = "forbidden"


class StorageError(AegisError):
    """The disk refused a write or a sync; what was asked for was not acknowledged."""

    code = "storage"


class LimitReached(Unavailable, StorageError, OSError):
    """No thread, process, file descriptor or PTY is free; the sentence names the limit.

    Also a ``StorageError`` and an ``OSError``: callers of the disk, which works in threads, handle
    it like a refusal of the disk. So a start is tried again, and what was written is written again.
    """

    code = "unavailable"

    def __str__(self) -> str:
        # One that arrived from another process has its sentence alone, and no number.
        return str(self.args[0] if self.strerror is None else self.strerror)


class StartupError(Exception):
    """The daemon cannot start; the sentence says why and what to do."""

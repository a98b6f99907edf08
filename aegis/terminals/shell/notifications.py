"""Notifications of a shell's actor to its front about commands, and a log of the recent ones.

The front can crash: each notification is kept until the record of its command is in the ledger,
and sent again to a new front.
"""

from __future__ import annotations

from aegis.errors import Unavailable
from aegis.protocol.terminals import CommandRecord
from aegis.terminals import messages as msg
from aegis.terminals.messages import CommandKey
from aegis.terminals.output.command_progress import CommandProgress, progress_of

MAX_KEPT = 256
"""The most notifications that are kept; a front has at most so many unrecorded commands."""


class NotificationLog:
    """The notifications about commands that may not be in the ledger yet, oldest first."""

    def __init__(self) -> None:
        self._kept: list[msg.CommandNotification] = []

    def keep(self, notification: object) -> None:
        """Keep ``notification`` if a restarted front would need it."""
        if isinstance(notification, msg.CommandNotification):
            self._kept.append(notification)
            del self._kept[:-MAX_KEPT]

    def recorded(self, raw_end: int) -> None:
        """Drop the notifications up to the command that ended at ``raw_end``: it is recorded."""
        done = 0
        for index, notification in enumerate(self._kept, start=1):
            if _position(notification) > raw_end:
                break
            if not isinstance(notification, msg.SubmissionRefused | msg.SubmissionFailed):
                done = index
        del self._kept[:done]

    def progress_of(self, command: CommandKey, submitted: int | None) -> CommandProgress:
        """Return how far ``command``, which is not recorded, has come.

        ``submitted`` is the call whose text is with the shell and did not begin yet. Raises
        ``Unavailable`` if the command is unknown: it was lost with an earlier incarnation.
        """
        progress = progress_of(command, self._kept)
        is_waiting = submitted is not None and submitted == command.call
        if progress == CommandProgress(command=command) and not is_waiting:
            raise Unavailable(
                "the command that was asked for ended as its shell was lost, and is about to be "
                "recorded: ask again"
            )
        return progress

    def runs(self, command: CommandKey) -> bool:
        """Whether ``command`` has begun and not ended, as far as is known."""
        return progress_of(command, self._kept).runs

    def all(self) -> tuple[msg.CommandNotification, ...]:
        """Return the kept notifications."""
        return tuple(self._kept)


def _position(notification: msg.CommandNotification) -> int:
    """Return the cursor at which this happened; 0 if the notification has none."""
    match notification:
        case msg.CommandStarted(raw_start=position):
            return position
        case msg.CommandEnded(raw_end=position) | msg.NothingRan(raw_end=position):
            return position
        case msg.ShellEnded(raw_end=position):
            return position
        case _:
            return 0


def notified_up_to(last: CommandRecord | None) -> int:
    """Return where the newest recorded command of this shell's incarnation began; else -1.

    ``last`` is the newest record.
    """
    # A record without a duration was recovered, not notified: it is older than every notification
    # of this incarnation. After a loss of power, which takes raw bytes, its cursor may be one that
    # the output has not reached again.
    return -1 if last is None or last.duration_s is None else last.raw_start

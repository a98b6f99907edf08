"""What a shell's actor has told its front and may have to tell again: the front can crash.

Kept until the front says that the record is in the ledger. Pure.
"""

from __future__ import annotations

from aegis.errors import Unavailable
from aegis.protocol.terminals import CommandRecord
from aegis.terminals import messages as msg
from aegis.terminals.command_key import CommandKey
from aegis.terminals.output.command_progress import CommandProgress, progress_of

MAX_KEPT = 256
"""News kept at most; a front has at most so many commands that are not recorded."""


class NewsLog:
    """The news about commands that may not be in the ledger yet, oldest first."""

    def __init__(self) -> None:
        self._news: list[msg.CommandNews] = []

    def keep(self, news: object) -> None:
        """Remember ``news``, if a front that begins anew would need it."""
        if isinstance(news, msg.CommandNews):
            self._news.append(news)
            del self._news[:-MAX_KEPT]

    def recorded(self, raw_end: int) -> None:
        """The command that ended at ``raw_end`` is recorded: forget it, and what was before it."""
        done = 0
        for index, news in enumerate(self._news, start=1):
            if _position(news) > raw_end:
                break
            if not isinstance(news, msg.SubmissionRefused | msg.SubmissionFailed):
                done = index
        del self._news[:done]

    def progress_of(self, command: CommandKey, submitted: int | None) -> CommandProgress:
        """How far ``command``, which is not recorded, has come.

        ``submitted`` is the call whose text is with the shell and did not begin yet. Raises
        ``Unavailable`` if nothing is known of it: it was lost with an earlier life of the actor.
        """
        progress = progress_of(command, self._news)
        is_waiting = submitted is not None and submitted == command.call
        if progress == CommandProgress(command=command) and not is_waiting:
            raise Unavailable(
                "the command that was asked for ended as its shell was lost, and is about to be "
                "recorded: ask again"
            )
        return progress

    def runs(self, command: CommandKey) -> bool:
        """Whether ``command`` has begun and not ended, as far as is known."""
        return progress_of(command, self._news).runs

    def all(self) -> tuple[msg.CommandNews, ...]:
        """What is kept."""
        return tuple(self._news)


def _position(news: msg.CommandNews) -> int:
    """Up to where the output of the terminal had come when this happened, as far as it tells."""
    match news:
        case msg.CommandStarted(raw_start=position):
            return position
        case msg.CommandEnded(raw_end=position) | msg.NothingRan(raw_end=position):
            return position
        case msg.ShellEnded(raw_end=position):
            return position
        case _:
            return 0


def heard_up_to(last: CommandRecord | None) -> int:
    """Where the output of the last command began of which this life of the shell's actor told.

    ``last`` is the newest record. One without a duration was found, not told of: it is older than
    everything that this life tells, and after a loss of power, which takes raw bytes, it may name
    a place that the output has not reached again.
    """
    return -1 if last is None or last.duration_s is None else last.raw_start

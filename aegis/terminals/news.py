"""What a shell's actor has told its front and may have to tell again: the front can crash.

Kept until the front says that the record is in the ledger. Pure.
"""

from __future__ import annotations

from aegis.terminals import messages as msg

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

"""The progress of a command, by the messages that its shell's actor sent about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from aegis.terminals import messages as msg
from aegis.terminals.messages import CommandKey


@attrs.frozen(kw_only=True)
class CommandProgress:
    """The cursors at which the output of ``command`` began and ended; None: not reported yet."""

    command: CommandKey
    began_at: int | None = None
    ended_at: int | None = None

    @property
    def runs(self) -> bool:
        """Whether the command has begun and not ended."""
        return self.began_at is not None and self.ended_at is None

    def updated(self, news: object) -> CommandProgress:
        """Return the progress after the message ``news``, which may be about another command."""
        match news:
            case msg.CommandStarted() if self.began_at is None and self._is_start(news):
                return attrs.evolve(self, began_at=news.raw_start)
            case msg.CommandEnded(raw_start=begun) if begun == self.began_at:
                return attrs.evolve(self, ended_at=news.raw_end)
            case msg.NothingRan(call=call) if self._was_submitted(call):
                return attrs.evolve(self, ended_at=news.raw_end)
            case msg.SubmissionFailed(call=call) if self._was_submitted(call):
                return attrs.evolve(self, ended_at=self.command.raw_start)
            case msg.ShellEnded(shell=shell) if shell == self.command.shell:
                if self.ended_at is not None:
                    return self
                return attrs.evolve(self, ended_at=news.raw_end)
            case _:
                return self

    def _is_start(self, news: msg.CommandStarted) -> bool:
        command = self.command
        if news.shell != command.shell:
            return False
        if command.began_at is None:
            return news.call is not None and news.call == command.call
        return news.raw_start == command.began_at

    def _was_submitted(self, call: int) -> bool:
        return self.began_at is None and self.command.began_at is None and call == self.command.call


def progress_of(command: CommandKey, news: Iterable[object]) -> CommandProgress:
    """Return the progress of ``command`` after all messages of ``news``, the oldest first."""
    progress = CommandProgress(command=command)
    for each in news:
        progress = progress.updated(each)
    return progress

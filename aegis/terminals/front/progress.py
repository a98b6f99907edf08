"""``ProgressRequests``: the progress of a command, for callers that wait for it.

Until the command is typed, the progress names the writer that holds the terminal; then it is the
newest line of the command's output, which the shell returns.
"""

from __future__ import annotations

import attrs

from actors import AskError, Ref, Reply
from aegis.errors import Busy
from aegis.protocol.output import FollowCommand, Progress
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.front.terminal_state import TerminalState
from aegis.terminals.messages import FetchLine
from aegis.terminals.record import writer_tag
from aegis.terminals.sentences import occupied_by

MAX_FOLLOWERS = 256
"""The most callers of one terminal that may wait for progress at a time."""


@attrs.frozen
class _ProgressReader:
    request: FollowCommand
    reply: Reply[Progress]


class ProgressRequests:
    """The requests for progress on one terminal that are not answered yet."""

    def __init__(
        self, current: CurrentCommand, state: TerminalState, shell: Ref[FetchLine]
    ) -> None:
        self._command = current
        self._state = state
        self._shell = shell
        self._followers: list[_ProgressReader] = []

    def add(self, request: FollowCommand, reply: Reply[Progress]) -> None:
        """Answer the request as soon as there is new progress. Raises ``Busy``."""
        if len(self._followers) >= MAX_FOLLOWERS:
            self.changed()
        if len(self._followers) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} callers are shown progress of this terminal already")
        self._followers.append(_ProgressReader(request, reply))
        self.changed()

    def changed(self) -> None:
        """Check the requests again: the terminal state may have changed."""
        if self._followers:
            self._followers = [each for each in self._followers if not self._is_answered(each)]

    def _is_answered(self, follower: _ProgressReader) -> bool:
        """Answer the request or pass it on, if possible; return whether that was done."""
        if follower.reply.is_settled:
            return True
        if self._runs_for(follower.request):
            self._pass_on(follower)
            return True
        line = occupied_by(self._command.command, self._state.typing)
        seen = follower.request.seen
        if line is None or (seen is not None and seen.line == line):
            return False
        follower.reply.send(Progress(line=line, cursor=0))
        return True

    def _runs_for(self, request: FollowCommand) -> bool:
        command = self._command.command
        if command is None or request.cmd is None:
            return command is not None
        return command.cmd == request.cmd and command.writer == writer_tag(request.writer)

    def _pass_on(self, follower: _ProgressReader) -> None:
        seen = follower.request.seen
        after = 0 if seen is None else seen.cursor
        try:
            self._shell.forward(FetchLine(after=after), follower.reply)
        except AskError as error:
            follower.reply.fail(error)

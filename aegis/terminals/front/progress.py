"""``Following``: who is shown how a command gets on while its caller waits.

Before the command is typed that is who holds the terminal; then it is the newest line of its
output, which the shell tells.
"""

from __future__ import annotations

import attrs

from actors import AskError, Ref, Reply
from aegis.errors import Busy
from aegis.protocol.output import FollowCommand, Progress
from aegis.terminals.front.flight import Flight
from aegis.terminals.front.standing import Standing
from aegis.terminals.messages import FetchLine
from aegis.terminals.record import writer_tag
from aegis.terminals.sentences import held_by

MAX_FOLLOWERS = 256
"""Callers of one terminal that may be shown progress at a time."""


@attrs.frozen
class _Follower:
    request: FollowCommand
    reply: Reply[Progress]


class Following:
    """Those of one terminal whose turn to be told has not come."""

    def __init__(self, flight: Flight, standing: Standing, shell: Ref[FetchLine]) -> None:
        self._flight = flight
        self._standing = standing
        self._shell = shell
        self._followers: list[_Follower] = []

    def add(self, request: FollowCommand, reply: Reply[Progress]) -> None:
        """Tell as soon as there is something new. Raises ``Busy``."""
        if len(self._followers) >= MAX_FOLLOWERS:
            self.changed()
        if len(self._followers) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} callers are shown progress of this terminal already")
        self._followers.append(_Follower(request, reply))
        self.changed()

    def changed(self) -> None:
        """How the terminal stands may have changed."""
        if self._followers:
            self._followers = [each for each in self._followers if not self._is_told(each)]

    def _is_told(self, follower: _Follower) -> bool:
        """Whether nothing is left to do for this one here."""
        if follower.reply.is_settled:
            return True
        if self._runs_for(follower.request):
            self._pass_on(follower)
            return True
        held = held_by(self._flight.command, self._standing.typing)
        seen = follower.request.seen
        if held is None or (seen is not None and seen.line == held):
            return False
        follower.reply.send(Progress(line=held, cursor=0))
        return True

    def _runs_for(self, request: FollowCommand) -> bool:
        command = self._flight.command
        if command is None or request.cmd is None:
            return command is not None
        return command.cmd == request.cmd and command.writer == writer_tag(request.writer)

    def _pass_on(self, follower: _Follower) -> None:
        seen = follower.request.seen
        after = 0 if seen is None else seen.cursor
        try:
            self._shell.forward(FetchLine(after=after), follower.reply)
        except AskError as error:
            follower.reply.fail(error)

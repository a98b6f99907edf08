"""``Board``: the states of all sessions, and the streams that follow their changes. Pure.

The state of a session replaces the one before: a reader that was slow gets the newest only.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import attrs

from actors import Reply
from aegis.errors import Busy
from aegis.protocol.agents import AgentInfo
from aegis.protocol.feeds import AgentsNews, AgentsPlace
from aegis.protocol.terminals import AgentCommand

MAX_FOLLOWERS = 256
"""Streams that may wait for changes."""

AT_ONCE = 64
"""Changed sessions in one answer to a stream."""

MAX_CLOSED = 256
"""Closed sessions that are kept for streams that have not seen their end."""

Sees = Callable[[str], bool]
"""Whether a reader may see the session with this id."""


@attrs.frozen
class _BoardFollower:
    place: AgentsPlace
    sees: Sees
    reply: Reply[AgentsNews]


class Board:
    """The states of the sessions of a daemon, by their ids, in the order of their last changes.

    ``on_put`` is called with each change.
    """

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        self._infos: dict[str, tuple[int, AgentInfo]] = {}
        self._closed: dict[str, int] = {}
        self._count = 0
        self._dropped_at = 0
        self._waiting: list[_BoardFollower] = []
        self.on_put: Callable[[AgentInfo], None] = lambda info: None

    @property
    def infos(self) -> list[AgentInfo]:
        """The states of all sessions that are known."""
        return [info for _, info in self._infos.values()]

    def put(self, info: AgentInfo) -> None:
        """Note the state of a session, and answer the streams that wait."""
        known = self._infos.pop(info.id, None)
        if known is not None and known[1] == info:
            self._infos[info.id] = known
            return
        self.on_put(info)
        self._count += 1
        self._closed.pop(info.id, None)  # a closed session can be opened again
        self._infos[info.id] = self._count, info
        if info.state == "closed":
            self._closed[info.id] = self._count
            self._drop_closed()
        self._waiting = [each for each in self._waiting if not self._is_answered(each)]

    def has_closed(self, id_: str) -> bool:
        """Return whether this session has reported that it is closed."""
        return id_ in self._closed

    def conversation_of(self, id_: str) -> str | None:
        """Return the agent's id of the conversation of a session; None if it has none yet."""
        known = self._infos.get(id_)
        return None if known is None else known[1].conversation

    def has_exited(self, id_: str) -> bool:
        """Return whether the program of this session, a terminal agent, has ended."""
        known = self._infos.get(id_)
        return known is not None and known[1].state == "exited"

    @property
    def commands(self) -> list[AgentCommand]:
        """The commands that agents have their sessions run, by agent."""
        infos = sorted((info for _, info in self._infos.values()), key=lambda info: info.handle)
        return [
            AgentCommand(agent=info.handle, id=each.id, command=each.command)
            for info in infos
            for each in info.terminals
        ]

    def take(self, place: AgentsPlace | None, sees: Sees, reply: Reply[AgentsNews]) -> None:
        """Answer now, or once there is a change. Raises ``Busy``."""
        is_known = place is not None and place.board == self._name
        if place is None or not is_known or place.change < self._dropped_at:
            reply.send(self._all(sees))
            return
        follower = _BoardFollower(place, sees, reply)
        if not self._is_answered(follower):
            self._make_room()
            self._waiting.append(follower)

    def _all(self, sees: Sees) -> AgentsNews:
        shown = [
            info for _, info in self._infos.values() if info.state != "closed" and sees(info.id)
        ]
        return AgentsNews(
            agents=sorted(shown, key=lambda each: each.handle),
            place=AgentsPlace(board=self._name, change=self._count),
            is_all=True,
        )

    def _is_answered(self, follower: _BoardFollower) -> bool:
        """Answer the stream if there are changes; return whether it is answered."""
        if follower.reply.is_settled:
            return True
        changed = []
        for id_, (number, info) in reversed(self._infos.items()):
            if number <= follower.place.change:
                break
            if follower.sees(id_):
                changed.append((number, info))
        if not changed:
            return False
        changed = changed[: -AT_ONCE - 1 : -1]  # the oldest first
        place = AgentsPlace(board=self._name, change=changed[-1][0])
        follower.reply.send(AgentsNews(agents=[info for _, info in changed], place=place))
        return True

    def _drop_closed(self) -> None:
        while len(self._closed) > MAX_CLOSED:
            oldest = next(iter(self._closed))
            self._dropped_at = max(self._dropped_at, self._closed.pop(oldest))
            del self._infos[oldest]

    def _make_room(self) -> None:
        if len(self._waiting) >= MAX_FOLLOWERS:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} streams follow the sessions already; close one first")

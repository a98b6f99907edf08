"""``Followers``: the streams that follow the states of things by name. Pure.

The state of a thing replaces the one before: a reader that was slow gets the newest only.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

from actors import Reply
from aegis.errors import Busy
from aegis.protocol.feeds import StatesPlace

N = TypeVar("N")

MAX_FOLLOWERS = 256
"""Streams that may wait for changes."""

MakeNews = Callable[["list[str] | None", StatesPlace], N]
"""Makes the news of the things with these names, of all if None, at a place."""


@attrs.frozen
class _StatesFollower(Generic[N]):
    place: StatesPlace
    reply: Reply[N]


class Followers(Generic[N]):
    """The streams that follow ``subject`` ("the queues"); ``make`` makes their news."""

    def __init__(self, subject: str, make: MakeNews[N]) -> None:
        self._subject = subject
        self._make = make
        self._name = uuid.uuid4().hex
        self._changes: dict[str, int] = {}
        self._count = 0
        self._waiting: list[_StatesFollower[N]] = []

    def changed(self, name: str) -> None:
        """Note that a thing has changed."""
        self._count += 1
        self._changes[name] = self._count

    def remove(self, name: str) -> None:
        """Remove a thing that is gone."""
        self._changes.pop(name, None)

    def begin_anew(self) -> None:
        """Have each stream get all things again, also such as have no name to be gone under."""
        self._name = uuid.uuid4().hex
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.reply.send(self._news(None))

    def take(self, place: StatesPlace | None, reply: Reply[N]) -> None:
        """Answer now, or once there is a change. Raises ``Busy``."""
        if place is None or place.desk != self._name:
            reply.send(self._news(None))
            return
        follower = _StatesFollower(place, reply)
        if not self._is_answered(follower):
            self._make_room()
            self._waiting.append(follower)

    def look(self) -> None:
        """Answer the streams for which there are changes now."""
        if self._waiting:
            self._waiting = [each for each in self._waiting if not self._is_answered(each)]

    def _is_answered(self, follower: _StatesFollower[N]) -> bool:
        if follower.reply.is_settled:
            return True
        since = follower.place.change
        changed = [name for name, at in self._changes.items() if at > since]
        if changed:
            follower.reply.send(self._news(sorted(changed)))
        return bool(changed)

    def _news(self, names: list[str] | None) -> N:
        return self._make(names, StatesPlace(desk=self._name, change=self._count))

    def _make_room(self) -> None:
        if len(self._waiting) >= MAX_FOLLOWERS:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} streams follow {self._subject} already; close one first")

"""``GroupState``: all groups by their ids and names. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from aegis.errors import AlreadyExists, NotFound, StorageError
from aegis.groups.events import Loaded
from aegis.groups.group import Broadcast, Group
from aegis.groups.views import Shown, group_info, unreadable
from aegis.names import nearest, shorten
from aegis.protocol.groups import GroupInfo
from aegis.protocol.naming import name_key

MAX_GONE = 256
"""Dissolved groups that are still shown to streams that are behind."""


@attrs.define
class GroupState:
    """The groups of a daemon; ``shown`` returns the current handles of sessions.

    ``problems`` say why ledgers could not be read, by the first names of their groups. ``reserved``
    are new names that are being written, by the ids of their groups.
    """

    shown: Shown = str
    groups: dict[str, Group] = attrs.field(factory=dict)
    problems: dict[str, str] = attrs.field(factory=dict)
    reserved: dict[str, str] = attrs.field(factory=dict)
    _gone: dict[str, GroupInfo] = attrs.field(factory=dict)

    def load(self, loaded: Loaded) -> None:
        """Add the stored groups of one ledger."""
        if loaded.problem:
            self.problems[loaded.address] = loaded.problem
        for group in loaded.groups:
            self.groups[group.id] = group

    def put(self, group: Group) -> None:
        """Add or replace a group; drop one that is gone."""
        if group.is_gone:
            self.groups.pop(group.id, None)
            self._gone[group.id] = group_info(attrs.evolve(group, phase="dissolved"), self.shown)
            if len(self._gone) > MAX_GONE:
                del self._gone[next(iter(self._gone))]
        else:
            self.groups[group.id] = group

    def find(self, name: str) -> Group | None:
        """Return the group with this name or alias, ignoring case. Raises ``StorageError``."""
        key = name_key(name)
        for group in self.groups.values():
            if group.phase != "dissolved" and key in _keys(group):
                return group
        for address, problem in self.problems.items():
            if name_key(address) == key:
                raise StorageError(problem)
        return None

    def get(self, name: str) -> Group:
        """Return the group with this name or alias. Raises ``NotFound``, ``StorageError``."""
        group = self.find(name)
        if group is None:
            known = [each.name for each in self.groups.values() if each.phase != "dissolved"]
            close = nearest(name, known)
            there = f"there are: {', '.join(sorted(known)[:20])}" if known else "there is none"
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else there
            raise NotFound(
                f"there is no group {shorten(name)!r}; {hint}; aegis_group_spawn creates one"
            )
        return group

    def check_name(self, name: str, *, of: str = "") -> None:
        """Raise ``AlreadyExists`` if another group than the one with the id ``of`` has a name."""
        taken = self.find(name)
        key = name_key(name)
        reserved = any(name_key(each) == key for id_, each in self.reserved.items() if id_ != of)
        if reserved or (taken is not None and taken.id != of):
            raise AlreadyExists(
                f"the name {name!r} is or was that of another group; choose another one"
            )

    def broadcast(self, group: Group, id_: str | None) -> Broadcast:
        """Return a broadcast of a group, the newest by default. Raises ``NotFound``."""
        found = group.newest if id_ is None else group.broadcasts.get(id_)
        if found is None and id_ is None:
            raise NotFound(
                f"group {group.name!r} has had no broadcast; aegis_group_broadcast first"
            )
        if found is None:
            raise NotFound(f"group {group.name!r} has no broadcast {id_}, or keeps it no more")
        return found

    def info(self, id_: str) -> GroupInfo | None:
        """Return a group by its id as clients see it, also one that is gone; None: unknown."""
        group = self.groups.get(id_)
        return self._gone.get(id_) if group is None else group_info(group, self.shown)

    def infos(self) -> Iterator[GroupInfo]:
        """Yield all groups as clients see them, in the order of their names."""
        found = [
            *(group_info(each, self.shown) for each in self.groups.values()),
            *(unreadable(address, problem) for address, problem in self.problems.items()),
        ]
        yield from sorted(found, key=lambda each: (name_key(each.group), each.id))


def _keys(group: Group) -> set[str]:
    return {name_key(each) for each in (group.name, group.address, *group.aliases)}

"""``Roster``: the sessions of a root, their handles and their spawners. Pure.

The ledger has a row for each session, by its immutable id, and rows with the handles of sessions
that are not kept. A handle is never given twice: not after a rename, and not after a close.

Of sessions that are closed only the newest are kept. An older one is dropped: its row is moved to
the archive, its handles stay taken, and its files stay where they are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.agents.directory.handles import SessionNames
from aegis.agents.drivers.harness import Permission
from aegis.errors import NotFound
from aegis.names import did_you_mean
from aegis.path_text import path_after_moves, path_of_stored, stored_path
from aegis.protocol.naming import name_key

SET = ("model", "effort", "thinking", "permission", "budget_usd")
"""The fields of a session that a person has set; None: the profile's."""

GONE = "gone/"
"""The beginning of the ids of rows that are no session."""

_NUMBERED = re.compile(r"(.+)-([1-9][0-9]{0,14}|0)")
"""A stem and a number. One with a leading zero is another handle than one without."""


@attrs.frozen(kw_only=True)
class Member:
    """One session. ``parent`` is the id of the session that spawned it; None: a person or client.

    ``spawned_by`` is the spawner's handle at that time. ``place`` is its directory, relative to the
    root if it is below it. ``fork_of`` is the agent's id of the conversation that it began with a
    copy of, and ``forked_from`` the session of that one; ``began_with`` is the one that it took
    over from another program. ``reopened`` counts how often it was
    opened again after a close, and ``changed`` orders all sessions by their last opening or close.
    ``head`` is the commit that was checked out in its directory when it began; None: there was
    none. ``is_purged``: its files are deleted, and only its handles are kept. ``cmd`` is the
    program of a terminal agent, which runs in the terminal ``address``; None: a driven session.
    ``after_plan`` is the permission that it had before it was to plan, and has after that.
    """

    tag: ClassVar[str] = "session"

    id: str
    handle: str
    profile: str
    provider: str
    place: str
    spawned_by: str
    parent: str | None
    at: str
    workspace: str | None = None
    fork_of: str | None = None
    forked_from: str | None = None
    began_with: str | None = None
    reopened: int = 0
    changed: int = 0
    head: str | None = None
    cmd: str | None = None
    model: str | None = None
    effort: str | None = None
    thinking: str | None = None
    permission: Permission | None = None
    budget_usd: float | None = None
    after_plan: Permission | None = None
    aliases: tuple[str, ...] = ()
    is_closed: bool = False
    is_purged: bool = False

    @property
    def address(self) -> str:
        """The first handle, which never changes."""
        return self.aliases[0] if self.aliases else self.handle

    def renamed(self, handle: str) -> Member:
        """Return the session with another handle; the one before is an alias."""
        aliases = tuple(dict.fromkeys((*self.aliases, self.handle)))
        return attrs.evolve(self, handle=handle, aliases=aliases)

    def closed(self, changed: int) -> Member:
        """Return the session once it is closed; a closed one as it is."""
        return self if self.is_closed else attrs.evolve(self, is_closed=True, changed=changed)

    def reopen(self, changed: int) -> Member:
        """Return the closed session once it is opened again."""
        count = self.reopened + 1
        return attrs.evolve(self, is_closed=False, reopened=count, changed=changed)

    def purged(self, changed: int) -> Member:
        """Return the session once its files are to be deleted."""
        return attrs.evolve(self, is_closed=True, is_purged=True, changed=changed)

    def with_settings_of(self, other: Member) -> Member:
        """Return the session with what a person has set for another version of it."""
        names = (*SET, "after_plan")
        return attrs.evolve(self, **{name: getattr(other, name) for name in names})


@attrs.frozen(kw_only=True)
class GoneHandles:
    """Handles of sessions that are not kept: one of its name, and those with a number after it.

    The workers of a queue have numbered handles, such as ``build-17``. Of these only the ranges
    are kept, as pairs of a first and a last number that do not touch, in order: as many as ever
    need the space of one, while there is no gap between them.
    """

    tag: ClassVar[str] = "gone"

    id: str
    is_taken: bool = False
    ranges: tuple[tuple[int, int], ...] = ()

    def with_number(self, number: int | None) -> GoneHandles:
        """Return the row with one more handle: the name itself, or one with this number."""
        if number is None:
            return attrs.evolve(self, is_taken=True)
        before = [each for each in self.ranges if each[1] < number - 1]
        after = [each for each in self.ranges if each[0] > number + 1]
        touching = self.ranges[len(before) : len(self.ranges) - len(after)]
        first = min([number, *(each for each, _ in touching)])
        last = max([number, *(each for _, each in touching)])
        return attrs.evolve(self, ranges=(*before, (first, last), *after))

    def has(self, number: int | None) -> bool:
        """Return whether the name itself, or the one with this number, is among the handles."""
        if number is None:
            return self.is_taken
        at = bisect_right(self.ranges, number, key=lambda each: each[0]) - 1
        return at >= 0 and number <= self.ranges[at][1]


RosterRow = Member | GoneHandles


def unless_purged(member: Member) -> Member:
    """Return the session. Raises ``NotFound`` if it was purged."""
    if member.is_purged:
        raise NotFound(f"the session {member.handle!r} was purged; its files are deleted")
    return member


def gone_place(handle: str) -> tuple[str, int | None]:
    """Return the id of the row, and the number, under which a handle is kept once it is gone."""
    key = name_key(handle)
    numbered = _NUMBERED.fullmatch(key)
    if numbered is None:
        return f"{GONE}{key}", None
    return f"{GONE}{numbered[1]}", int(numbered[2])


class Roster:
    """The sessions of ``root``, a text, as clients see them; ``names`` are their names."""

    def __init__(self, root: str = "", names: SessionNames | None = None) -> None:
        self.by_id: dict[str, Member] = {}
        self.names = names or SessionNames()
        self._root = root
        self._ids: dict[str, str] = {}
        self._gone: dict[str, GoneHandles] = {}
        self._open: dict[str, None] = {}
        self._closed: dict[str, None] = {}
        self._changed = 0

    def begin(self, rows: Iterable[RosterRow]) -> None:
        """Take the rows of the ledger, in place of all that were here."""
        members = [each for each in rows if isinstance(each, Member)]
        read = Roster(self._root)
        for each in sorted(members, key=attrgetter("changed")):
            read.put(each)
        # The names are known to others, and were those of the last incarnation until now.
        self.names.replace(read.names)
        self.by_id = {each.id: each for each in members}
        self._ids, self._changed = read._ids, read._changed
        self._open, self._closed = read._open, read._closed
        self._gone = {each.id: each for each in rows if isinstance(each, GoneHandles)}

    def put(self, member: Member) -> None:
        """Add or replace a session."""
        before = self.by_id.get(member.id)
        self.by_id[member.id] = member
        self._ids |= dict.fromkeys(map(name_key, (member.handle, *member.aliases)), member.id)
        for handle in (*member.aliases, member.handle):
            self.names.put(member.address, handle)
        self._changed = max(self._changed, member.changed)
        if before is None or before.changed != member.changed:  # it is the newest now
            self._open.pop(member.id, None)
            self._closed.pop(member.id, None)
            (self._closed if member.is_closed else self._open)[member.id] = None

    def change(self, id_: str, change: Callable[[Member], Member]) -> None:
        """Replace a session, if it is kept, by what a function makes of it."""
        if id_ in self.by_id:
            self.put(change(self.by_id[id_]))

    def next_change(self) -> int:
        """Return the number of an opening or a close that happens now."""
        self._changed += 1
        return self._changed

    def drop(self, id_: str) -> None:
        """Remove a session, whose handles were put as gone."""
        member = self.by_id.pop(id_)
        self._closed.pop(id_, None)
        handles = (member.handle, *member.aliases)
        for handle in handles:
            self._ids.pop(name_key(handle), None)
        self.names.drop(member.address, handles)

    def put_gone(self, gone: GoneHandles) -> None:
        """Add or replace handles of sessions that are not kept."""
        self._gone[gone.id] = gone

    def spawners(self) -> set[str]:
        """Return the ids of the sessions above open ones, which have their rights and limits."""
        return {above.id for each in self.open for above in self.ancestors(each.id)}

    def has(self, name: str) -> bool:
        """Return whether a session is known by this handle, alias or id."""
        return name_key(name) in self._ids or name in self.by_id

    def cwd(self, member: Member) -> str:
        """Return the directory of a session, as an absolute path."""
        return path_of_stored(member.place, self._root)

    def was_dropped(self, handle: str) -> bool:
        """Return whether a session had this handle that is not kept any more."""
        id_, number = gone_place(handle)
        return id_ in self._gone and self._gone[id_].has(number)

    def has_had(self, handle: str) -> bool:
        """Return whether a session has or had this handle."""
        return name_key(handle) in self._ids or self.was_dropped(handle)

    @property
    def has_dropped(self) -> bool:
        """Whether there were sessions that are not kept any more."""
        return bool(self._gone)

    @property
    def kept(self) -> list[Member]:
        """The sessions whose files are kept, in the order of their spawning."""
        return [each for each in self.by_id.values() if not each.is_purged]

    @property
    def open(self) -> list[Member]:
        """The sessions that are not closed, in the order in which they were opened."""
        return [self.by_id[each] for each in self._open]

    @property
    def closed(self) -> list[str]:
        """The ids of the sessions that are closed and known, in the order of their ends."""
        return [*self._closed]

    def of_workspace(self, workspace: str) -> list[Member]:
        """Return the open sessions that were spawned in this workspace."""
        key = name_key(workspace)
        return [each for each in self.open if each.workspace and name_key(each.workspace) == key]

    @property
    def workspace_agents(self) -> dict[str, str]:
        """The handle of the terminal agent of each workspace that has one, by its key."""
        return {
            name_key(each.workspace): each.handle
            for each in self.open
            if each.workspace is not None and each.cmd is not None
        }

    def find(self, handle: str) -> Member | None:
        """Return the session with this handle or alias, ignoring case."""
        found = self._ids.get(name_key(handle))
        return None if found is None else self.by_id[found]

    def get(self, handle: str) -> Member:
        """Return the session with this handle, alias or id. Raises ``NotFound`` with a hint."""
        member = self.find(handle) or self.by_id.get(handle)
        if member is None and self.was_dropped(handle):
            raise NotFound(
                f"the session {handle!r} is closed, and so many after it that it is not kept any "
                "more; its transcript is still in the archive, or in the directory of agents"
            )
        if member is None:
            known = [each.handle for each in self.open]
            there = f"there are: {', '.join(sorted(known)[:20]) or 'none'};"
            hint = did_you_mean(handle, known, there)
            raise NotFound(f"there is no agent {handle!r}; {hint} aegis_spawn starts one")
        return unless_purged(member)

    def ancestors(self, id_: str) -> Iterator[Member]:
        """Yield the sessions that spawned this one, the nearest first."""
        seen = {id_}
        parent = self.by_id[id_].parent if id_ in self.by_id else None
        while parent is not None and parent in self.by_id and parent not in seen:
            seen.add(parent)
            yield self.by_id[parent]
            parent = self.by_id[parent].parent

    def parents(self) -> dict[str, str | None]:
        """Return the handle of each session, mapped to its parent's; None for a person."""
        return {
            each.handle: self.by_id[each.parent].handle if each.parent in self.by_id else None
            for each in self.by_id.values()
        }


# Ledgers of a version before tables.


class LinesBeforeTables:
    """Returns the lines of a version before tables as lines of today's form.

    ``root`` and its ``earlier`` paths are texts: such a version may have written the absolute
    directory of a session.
    """

    def __init__(self, root: str, earlier: tuple[str, ...]) -> None:
        self._root, self._earlier = root, earlier
        self._changed = 0

    def __call__(
        self, line: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        id_ = str(line.get("id"))
        fields = self._opened(line) if line["kind"] == "opened" else {}
        if id_ in rows:
            fields = self._changes(line, rows[id_])
        try:
            structure(Member, {**rows.get(id_, {}), "id": id_, **fields})
        except CodecError:
            return []
        return [{"id": id_, "set": fields}] if fields else []

    def _opened(self, line: Mapping[str, Any]) -> dict[str, Any]:
        known = {each.name for each in attrs.fields(Member)} - {"id", "aliases", "is_closed"}
        fields = {name: value for name, value in line.items() if name in known}
        if "place" not in fields:
            cwd = path_after_moves(str(line.get("cwd")), self._root, self._earlier)
            fields["place"] = stored_path(cwd, self._root)
        return {"type": Member.tag, **fields, "changed": self._next()}

    def _changes(self, line: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
        match line:
            case {"kind": "renamed", "handle": str(handle)}:
                aliases = dict.fromkeys((*row.get("aliases", ()), row["handle"]))
                return {"handle": handle, "aliases": [*aliases]}
            case {"kind": "set"}:
                return {name: line.get(name) for name in SET}
            case {"kind": "closed"}:
                return {"is_closed": True, "changed": self._next()}
            case {"kind": "purged"}:
                return {"is_closed": True, "is_purged": True, "changed": self._next()}
            case {"kind": "reopened"} if not row.get("is_purged"):
                times = row.get("reopened", 0) + 1
                return {"is_closed": False, "reopened": times, "changed": self._next()}
        return {}

    def _next(self) -> int:
        self._changed += 1
        return self._changed

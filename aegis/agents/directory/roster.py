"""``Roster``: the sessions of a root, their handles and their spawners. Pure.

The lines of its ledger, each with its ``kind``:

    opened   id, handle, profile, provider, place, spawned_by, parent, at, workspace, head; of a
             fork fork_of, forked_from and the fields of set; of a terminal agent cmd. place is its
             directory, relative to the root if it is below it; an older version wrote the absolute
             cwd instead
    renamed  id, handle
    set      id, model, permission, budget_usd
    closed   id
    reopened id
    purged   id

``id`` is immutable. A handle is never given twice: not after a rename, and not after a close.

Of sessions that are closed only the newest are kept. An older one is dropped: its handles stay
taken, and its files stay where they are.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.agents.directory.session_names import SessionNames
from aegis.agents.directory.taken_handles import TakenHandles
from aegis.agents.drivers.harness import Permission
from aegis.errors import NotFound
from aegis.names import nearest
from aegis.path_text import path_after_moves, path_of_stored, stored_path
from aegis.protocol.naming import name_key

SET = ("model", "permission", "budget_usd")
"""The fields of a session that a person has set; None: the profile's."""

MAX_CLOSED = 4_096
"""Closed sessions that are kept, beside the spawners of open ones."""


@attrs.frozen(kw_only=True)
class Member:
    """One session. ``parent`` is the id of the session that spawned it; None: a person or client.

    ``spawned_by`` is the spawner's handle at that time. ``fork_of`` is the agent's id of the
    conversation that it began with a copy of, and ``forked_from`` the session of that one.
    ``reopened`` counts how often it was opened again after a close. ``head`` is the commit that was
    checked out in its directory when it began; None: there was none. ``is_purged``: its files are
    deleted, and only its handles are kept. ``cmd`` is the program of a terminal agent, which runs
    in the terminal ``address``; None: a driven session.
    """

    id: str
    handle: str
    profile: str
    provider: str
    cwd: str
    spawned_by: str
    parent: str | None
    at: str
    workspace: str | None = None
    fork_of: str | None = None
    forked_from: str | None = None
    reopened: int = 0
    head: str | None = None
    cmd: str | None = None
    model: str | None = None
    permission: Permission | None = None
    budget_usd: float | None = None
    aliases: tuple[str, ...] = ()
    is_closed: bool = False
    is_purged: bool = False

    @property
    def address(self) -> str:
        """The first handle, which never changes."""
        return self.aliases[0] if self.aliases else self.handle


@attrs.define
class Roster:
    """The fold of the ledger of ``root``, whose ``earlier`` paths are known; texts."""

    root: str = ""
    earlier: tuple[str, ...] = ()
    by_id: dict[str, Member] = attrs.field(factory=dict)
    names: SessionNames = attrs.field(factory=SessionNames)
    taken: TakenHandles = attrs.field(factory=TakenHandles)
    """Every handle that is or was used by a session."""
    skipped: int = 0
    _ids: dict[str, str] = attrs.field(factory=dict)
    _open: dict[str, None] = attrs.field(factory=dict)
    _closed: dict[str, None] = attrs.field(factory=dict)

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line; one of an unknown kind, or of another form, is ignored."""
        match line:
            case {"kind": "opened", **fields}:
                try:
                    given = {**self._directory(fields), "aliases": [], "is_closed": False}
                    member = structure(Member, given)
                except CodecError:
                    self.skipped += 1
                else:
                    self._add(member)
                    self._open[member.id] = None
            case {"kind": "renamed", "id": str(id_), "handle": str(handle)} if id_ in self.by_id:
                member = self.by_id[id_]
                aliases = tuple(dict.fromkeys((*member.aliases, member.handle)))
                self._add(attrs.evolve(member, handle=handle, aliases=aliases))
            case {"kind": "set", "id": str(id_), **changed} if id_ in self.by_id:
                self._set(self.by_id[id_], changed)
            case {"kind": "closed", "id": str(id_)} if id_ in self.by_id:
                self._close(attrs.evolve(self.by_id[id_], is_closed=True))
            case {"kind": "purged", "id": str(id_)} if id_ in self.by_id:
                self._close(attrs.evolve(self.by_id[id_], is_closed=True, is_purged=True))
            case {"kind": "reopened", "id": str(id_)} if id_ in self.by_id:
                member = self.by_id[id_]
                if not member.is_purged:
                    count = member.reopened + 1
                    self.by_id[id_] = attrs.evolve(member, is_closed=False, reopened=count)
                    self._closed.pop(id_, None)
                    self._open[id_] = None

    def _directory(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        match fields:
            case {"place": str(place), **others}:
                return {**others, "cwd": path_of_stored(place, self.root)}
            case {"cwd": str(cwd), **others}:
                return {**others, "cwd": path_after_moves(cwd, self.root, self.earlier)}
        return dict(fields)

    def take_over(self, read: Roster) -> None:
        """Take over all of another roster; this one and its names are known to others."""
        self.by_id, self.taken, self.skipped = read.by_id, read.taken, read.skipped
        self._ids, self._open, self._closed = read._ids, read._open, read._closed
        self.names.replace(read.names)

    def _set(self, member: Member, changed: Mapping[str, Any]) -> None:
        fields = {name: changed.get(name) for name in SET}
        with contextlib.suppress(CodecError):
            self.by_id[member.id] = structure(Member, {**unstructure(member), **fields})

    def _add(self, member: Member) -> None:
        self.by_id[member.id] = member
        self._ids[name_key(member.handle)] = member.id
        self.names.put(member.address, member.handle)
        self.taken.add(member.handle)

    def _close(self, member: Member) -> None:
        """Note a session that is closed, and drop the oldest such ones beyond the limit."""
        self.by_id[member.id] = member
        self._open.pop(member.id, None)
        self._closed.pop(member.id, None)
        self._closed[member.id] = None
        if len(self._closed) <= MAX_CLOSED:
            return
        # An open session has the rights and limits of those above it.
        spawners = {above.id for each in self.open for above in self.ancestors(each.id)}
        over = len(self._closed) - len(spawners & self._closed.keys()) - MAX_CLOSED
        oldest = (each for each in self._closed if each not in spawners)
        for id_ in [*itertools.islice(oldest, max(0, over))]:
            self._drop(id_)

    def _drop(self, id_: str) -> None:
        del self._closed[id_]
        member = self.by_id.pop(id_)
        for handle in (member.handle, *member.aliases):
            self._ids.pop(name_key(handle), None)
        self.names.drop(member.address, (member.handle, *member.aliases))

    def was_dropped(self, handle: str) -> bool:
        """Return whether a session had this handle that is not kept any more."""
        return handle in self.taken and self.find(handle) is None

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
        if member is not None and member.is_purged:
            raise NotFound(f"the session {member.handle!r} was purged; its files are deleted")
        if member is None and handle in self.taken:
            raise NotFound(
                f"the session {handle!r} is closed, and so many after it that it is not kept any "
                "more; its transcript is still in the archive, or in the directory of agents"
            )
        if member is None:
            known = [each.handle for each in self.open]
            close = nearest(handle, known)
            hint = (
                f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"there are: {', '.join(sorted(known)[:20]) or 'none'};"
            )
            raise NotFound(f"there is no agent {handle!r}; {hint} aegis_spawn starts one")
        return member

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


def renamed_line(member: Member, handle: str) -> dict[str, Any]:
    """Return the line of a new handle of ``member``."""
    return {"kind": "renamed", "id": member.id, "handle": handle}


def purged_line(member: Member) -> dict[str, Any]:
    """Return the line of a session whose files are deleted from now on."""
    return {"kind": "purged", "id": member.id}


def reopened_line(member: Member) -> dict[str, Any]:
    """Return the line of a closed session that is opened again."""
    return {"kind": "reopened", "id": member.id}


def opened_line(member: Member, root: str = "") -> dict[str, Any]:
    """Return the line of a new session of ``root``.

    A fork has the changes that a person made to its origin.
    """
    fields = unstructure(member)
    unset = [name for name in (*SET, "cmd") if fields[name] is None]
    for name in ("aliases", "is_closed", "is_purged", "reopened", *unset):
        del fields[name]
    return {"kind": "opened", **fields, "place": stored_path(fields.pop("cwd"), root)}


def set_line(member: Member) -> dict[str, Any]:
    """Return the line of the changes that a person has made to a session."""
    return {"kind": "set", "id": member.id, **{name: getattr(member, name) for name in SET}}

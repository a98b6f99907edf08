"""``RosterTable``: the durable rows of the roster; their file is made with the first session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import attrs

from actors import ActorError, Context, Reply, System
from aegis.agents.directory.handles import SessionNames, check_handle
from aegis.agents.directory.roster import (
    GoneHandles,
    LinesBeforeTables,
    Member,
    Roster,
    RosterRow,
    gone_place,
    unless_purged,
)
from aegis.errors import AegisError, NotFound, StorageError
from aegis.journal.archive import Archive, Keep
from aegis.journal.archiver import Archiver, Leaving
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.table import Table
from aegis.protocol.agents import AgentInfo, RenameAgent
from aegis.protocol.naming import name_key
from aegis.protocol.requests import RenameRequests

NAME = "sessions.jsonl"

MAX_CLOSED = 4_096
"""Closed sessions that are kept, beside the spawners of open ones."""

KIND = "sessions"
"""The kind of the archived rows of sessions that are not kept."""

Change = Callable[[Member], Member]


def _name_of(handle: str) -> str:
    return f"@{name_key(handle)}"


@attrs.frozen
class HandlesInUse:
    """The handles of sessions, and those with the keys ``inboxes``, without those of ``but``."""

    roster: Roster
    inboxes: Collection[str]
    but: Collection[str] = ()

    def __contains__(self, handle: object) -> bool:
        key = name_key(str(handle))
        return key not in self.but and (key in self.inboxes or self.roster.has_had(key))


class RosterTable:
    """The rows of ``roster`` in ``directory``, and those in the ``archive``. The owner closes it.

    The roster has a change once it is durable, and a fact at once: the disk cannot refuse it.
    ``root`` and its ``earlier`` paths are texts.
    """

    def __init__(
        self,
        directory: Path,
        archive: Path,
        keep: Keep,
        flusher: Flusher,
        context: Context,
        names: SessionNames | None = None,
        root: str = "",
        earlier: tuple[str, ...] = (),
    ) -> None:
        self._directory = directory
        self.flusher = flusher
        self.roster = Roster(root, names)
        self._is_read = False
        self._archiver = Archiver(
            Archive(archive, KIND, flusher.disk, keep.archive_bytes),
            Keep(newest=MAX_CLOSED, days=0),
            flusher,
            context,
            find=self._leaving,
            leave=self._keep_handles,
            left=self.roster.drop,
        )
        self._table: Table[RosterRow] = Table(
            directory / NAME,
            RosterRow,
            flusher,
            context,
            lost=self._look,
            upgrade=LinesBeforeTables(root, earlier),
        )

    async def load(self) -> bool:
        """Read the roster; return whether there is one. Raises ``StorageError``."""
        if not self._is_read and NAME in stored_names(self.flusher.disk, self._directory):
            await self._open()
        return self._is_read

    async def _open(self) -> None:
        """Open or create the file, or use it again if the disk has refused it."""
        await self._table.open()
        if self._table.problem:
            raise StorageError(self._table.refusal)
        if not self._is_read:
            self._is_read = True
            self.roster.begin(self._table.rows.values())
            self._look()

    def close(self) -> None:
        """Close the file."""
        self._table.close()

    # Changes.

    async def add(self, member: Member) -> None:
        """Add a session; return once it is durable. Raises ``StorageError``."""
        await self._open()
        reply: Reply[None] = Reply()
        self._put(member, partial(self._added, member, reply), reply)
        await reply.wait()

    def _added(self, member: Member, reply: Reply[None]) -> None:
        self.roster.put(member)
        reply.send(None)

    async def change(self, id_: str, change: Change) -> None:
        """Change a session; return once that is durable. Raises ``NotFound``, ``StorageError``."""
        await self._open()
        row = self._table.rows.get(id_)
        if not isinstance(row, Member):
            raise NotFound("the session is closed, and is not kept any more")
        reply: Reply[None] = Reply()
        self._put(change(row), partial(self._changed, id_, change, reply), reply)
        await reply.wait()

    def _changed(self, id_: str, change: Change, reply: Reply[None]) -> None:
        self._archiver.remove(id_)
        self.roster.change(id_, change)
        self._look()
        reply.send(None)

    def _put(self, member: Member, then: Callable[[], None], reply: Reply[None]) -> None:
        try:
            self._table.put(member, then, reply)
        except Exception as error:
            # The line may be in the file. The next incarnation reads it; this one must write no
            # other line, and end even if its caller expects errors of actors.
            self._table.close()
            raise RuntimeError("a line of the roster was written in part") from error

    def note(self, id_: str, change: Change) -> None:
        """Change a session by what has happened outside already."""
        if id_ in self._table.rows:

            def changed(row: RosterRow) -> RosterRow:
                assert isinstance(row, Member), f"{id_} is the id of a session"
                return change(row)

            self._archiver.remove(id_)
            self.roster.change(id_, change)
            self._table.fact(id_, changed, self._look)

    # Sessions that are not kept.

    def _look(self) -> None:
        """Have the oldest closed sessions dropped if there are too many."""
        if len(self.roster.closed) > MAX_CLOSED:
            spawners = self.roster.spawners()
            for each in self.roster.closed:
                if each not in spawners:
                    self._archiver.add(each, self.roster.by_id[each].changed)

    def _leaving(self, id_: str) -> Leaving | None:
        member = self._table.rows.get(id_)
        if not isinstance(member, Member) or not member.is_closed or id_ in self.roster.spawners():
            return None
        names = (id_, *map(_name_of, (member.handle, *member.aliases)))
        return Leaving(self._table, (member,), {each: {"id": id_} for each in names})

    def _keep_handles(self, id_: str) -> None:
        # Before the session is dropped: no crash leaves one that is gone without its handles.
        member = self.roster.by_id[id_]
        for handle in (member.handle, *member.aliases):
            gone_id, number = gone_place(handle)
            gone = self._table.rows.get(gone_id) or GoneHandles(id=gone_id)
            assert isinstance(gone, GoneHandles), f"{gone_id} is no session"
            gone = gone.with_number(number)
            self._table.put(gone, partial(self.roster.put_gone, gone))

    async def find(self, name: str) -> Member:
        """Return the session with this handle, alias or id, also one that was dropped.

        Raises ``NotFound``, ``StorageError``.
        """
        for each in () if self.roster.has(name) else (_name_of(name), name):
            entry = await self._archiver.entry(each)
            found = None if entry is None else await self._archiver.row(Member, entry, entry["id"])
            if found is not None:
                return unless_purged(found)
        return self.roster.get(name)

    # Handles.

    def handles_in_use(self, inboxes: Path) -> HandlesInUse:
        """Return every handle in use: of sessions, and of files in ``inboxes``."""
        return HandlesInUse(self.roster, {name_key(each) for each in self.inboxes(inboxes)})

    def inboxes(self, directory: Path) -> list[str]:
        """Return the handles that have an inbox in ``directory``."""
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = self.flusher.disk.list_directory(directory)
        return [each.removesuffix(".jsonl") for each in names]


async def rename(
    request: RenameAgent,
    reply: Reply[AgentInfo],
    table: RosterTable,
    inboxes: Path,
    check_reach: Callable[[RenameAgent, Member], None],
) -> Member | None:
    """Rename a session, durably, and return it; fail ``reply`` and return None if it cannot be.

    ``check_reach`` raises ``Forbidden`` if the caller may not. The caller of this function holds
    the lock of new handles. A session can get its own former handles again.
    """
    try:
        member = table.roster.get(request.old_handle)
        check_reach(request, member)
        own = {name_key(each) for each in (member.handle, *member.aliases)}
        taken = attrs.evolve(table.handles_in_use(inboxes), but=own)
        check_handle("aegis_rename", request.new_handle, taken)
        if request.new_handle != member.handle:
            renamed = partial(Member.renamed, handle=request.new_handle)
            await table.change(member.id, renamed)
    except AegisError as error:
        reply.fail(error)
        return None
    return table.roster.by_id[member.id]


def show_renamed(member: Member, system: System) -> None:
    """Have the requests of a session show its new handle."""
    desk = system.registry.find("service", "requests")
    if desk is not None:
        with contextlib.suppress(ActorError):
            desk.tell(RenameRequests(session=member.id, handle=member.handle))

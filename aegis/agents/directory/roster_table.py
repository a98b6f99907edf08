"""``RosterTable``: the durable rows of the roster; their file is made with the first session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import attrs
import trio

from actors import Context, Reply
from aegis.agents.directory.roster import (
    GoneHandles,
    LinesBeforeTables,
    Member,
    Roster,
    RosterRow,
    gone_place,
)
from aegis.agents.directory.session_names import SessionNames
from aegis.errors import NotFound, StorageError
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.table import Table
from aegis.protocol.naming import name_key

NAME = "sessions.jsonl"

DROPPED_AT_ONCE = 50
"""Sessions that are dropped without a pause for others."""

Change = Callable[[Member], Member]


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
    """The rows of ``roster`` in ``directory``. The owner closes it.

    The roster has a change once it is durable, and a fact at once: the disk cannot refuse it.
    ``root`` and its ``earlier`` paths are texts.
    """

    def __init__(
        self,
        directory: Path,
        flusher: Flusher,
        context: Context,
        names: SessionNames | None = None,
        root: str = "",
        earlier: tuple[str, ...] = (),
    ) -> None:
        self._directory = directory
        self.flusher = flusher
        self.roster = Roster(root, names)
        self._start_soon = context.start_soon
        self._is_read = False
        self._table: Table[RosterRow] = Table(
            directory / NAME,
            RosterRow,
            flusher,
            context,
            changed=lambda: None,
            lost=self._drop_superfluous_soon,
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
            self._drop_superfluous_soon()

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
        self.roster.change(id_, change)
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

            self.roster.change(id_, change)
            self._table.fact(id_, changed, self._drop_superfluous_soon)

    # Sessions that are not kept.

    def _drop_superfluous_soon(self) -> None:
        if self.roster.superfluous():
            self._start_soon(self._drop_superfluous)

    async def _drop_superfluous(self) -> None:
        """Drop sessions; those that the disk refuses to drop are dropped later."""
        for count, member in enumerate(self.roster.superfluous()):
            if self._table.is_at_rest(member.id):
                for handle in (member.handle, *member.aliases):
                    self._put_gone(handle)
                # After its handles: no crash leaves a session that is gone without them.
                self._table.drop(member.id, partial(self.roster.drop, member.id))
            if count % DROPPED_AT_ONCE == DROPPED_AT_ONCE - 1:
                await trio.lowlevel.checkpoint()

    def _put_gone(self, handle: str) -> None:
        id_, number = gone_place(handle)
        gone = self._table.rows.get(id_) or GoneHandles(id=id_)
        assert isinstance(gone, GoneHandles), f"{id_} is no session"
        gone = gone.with_number(number)
        self._table.put(gone, partial(self.roster.put_gone, gone))

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

"""``HistoryDesk``: the actor that searches what has ended, for any number of clients.

A page ends once it has enough entries, or when the search has read for a while; the search then
waits for the request of the next page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Protocol

import attrs
import trio
from ulid import ULID

from actors import Actor, Reply
from aegis.clock import moment_of, utc_text
from aegis.errors import AegisError, InvalidRequest, StorageError
from aegis.history.sources import (
    LATEST,
    ArchivedRows,
    Commands,
    EndedKind,
    LiveRows,
    Search,
    SentMessages,
    Source,
    StoredEntries,
    Wanted,
    ask_service,
)
from aegis.history.transcripts import TranscriptSource
from aegis.journal.archive import Archive
from aegis.journal.disk import Disk, stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.segments import UnpackedSegments
from aegis.protocol.history import HistoryEntry, HistoryPage, ListTranscripts, SearchHistory
from aegis.protocol.naming import is_name, is_persons_terminal, name_key
from aegis.protocol.requests import Answerer
from aegis.turns.services import Services, find_answerer

LEDGER = "ledger.jsonl"
INBOX_SUFFIX = ".jsonl"
MESSAGES = "messages"
"""The name of the archive of all inboxes."""

PAGE_S = 0.5
"""Seconds after which a page is sent with what was found."""

KEPT_S = 60.0
MAX_KEPT = 16
"""Searches that wait for the request of a next page, and for how long."""


class Handles(Protocol):
    """The handles of agent sessions; every other handle is its own address."""

    def address_of(self, handle: str) -> str:
        """Return the immutable first handle of the session with this handle or alias."""
        ...

    def shown(self, address: str) -> str:
        """Return the current handle of the session at ``address``."""
        ...


class HistoryDesk(Actor[SearchHistory]):
    """The searches of terminals, inboxes, transcripts and the archive, and of all ``kinds``.

    ``messages_in`` returns the messages of an inbox, by its file and the handle to show;
    ``archived_message`` that of a line of their archive, with its first handle.
    """

    def __init__(
        self,
        *,
        terminals: Path,
        inboxes: Path,
        archive: Path,
        kinds: Sequence[EndedKind],
        messages_in: Callable[[Disk, Path, str], StoredEntries],
        archived_message: Callable[[Mapping[str, Any]], HistoryEntry | None],
        handles: Handles,
        flusher: Flusher,
    ) -> None:
        self._terminals, self._inboxes, self._archive = terminals, inboxes, archive
        self._kinds, self._messages_in, self._handles = kinds, messages_in, handles
        self._archived_message = archived_message
        self._flusher = flusher
        self._kept: dict[str, tuple[str | None, Search]] = {}

    async def setup(self) -> None:
        """Register the desk."""
        self.context.register("service", "history")
        self._services = Services(self.context.system)

    async def receive(self, message: SearchHistory) -> None:
        """Begin or continue a search."""
        search = None
        if message.more is not None:
            by, search = self._kept.get(message.more, ("", Search([])))
            if message.more not in self._kept or by != message.from_handle:
                raise InvalidRequest("this search is over: search again, with until")
            del self._kept[message.more]
        self.context.start_soon(self._answer, message, search, self.defer(message))

    async def _answer(
        self, request: SearchHistory, search: Search | None, reply: Reply[HistoryPage]
    ) -> None:
        try:
            if search is None:
                search = await self._search(request)
            found, may_have_more = await search.page(request.limit, PAGE_S)
        except AegisError as error:
            reply.fail(error)
            return
        more = self._keep(request, search) if may_have_more else None
        reply.send(HistoryPage(result=found, more=more, problems=search.take_problems()))

    def _keep(self, request: SearchHistory, search: Search) -> str:
        token = str(ULID())
        self._kept[token] = (request.from_handle, search)
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self.context.start_soon(self._forget, token)
        return token

    async def _forget(self, token: str) -> None:
        await trio.sleep(KEPT_S)
        self._kept.pop(token, None)

    async def _caller(self, request: SearchHistory) -> Answerer | None:
        """Return the caller, None for a person, with its rights only if they matter."""
        by, kinds = request.from_handle, (None, "request")
        known = self.context.system.registry.find("service", "sessions")
        if by is None:
            return None
        if known is None or request.kind not in kinds:
            return Answerer(handle=by)
        return await find_answerer(known, by)

    async def _search(self, request: SearchHistory) -> Search:
        """Begin a search. Raises ``AegisError``."""
        wanted = Wanted(
            name=request.name,
            word=None if request.word is None else request.word.lower(),
            exit=request.exit_code,
            since="" if request.since is None else _utc("since", request.since),
            until=LATEST if request.until is None else _utc("until", request.until),
        )
        sources = self._sources(request, wanted, await self._caller(request))
        problems: list[str] = []
        # Only if asked for: a turn has many texts, and the search of an agent would find itself.
        if request.kind == "transcript" and request.exit_code is None:
            try:
                sources += await self._transcripts(request, wanted)
            except StorageError as error:
                problems.append(str(error))
        return Search(sources, problems)

    async def _transcripts(self, request: SearchHistory, wanted: Wanted) -> list[Source]:
        """Return the transcripts that the caller may read. Raises ``StorageError``."""
        if self.context.system.registry.find("service", "sessions") is None:
            return []
        ask = ListTranscripts(name=request.name, from_handle=request.from_handle)
        places = await ask_service(self._services, "sessions", ask)
        return [
            TranscriptSource(self._flusher, Path(each.path), self._archive, each.handle, wanted)
            for each in places
        ]

    def _sources(self, request: SearchHistory, wanted: Wanted, by: Answerer | None) -> list[Source]:
        """Return what is to be read, without transcripts."""
        sources: list[Source] = []
        unpacked = UnpackedSegments()
        if request.kind in (None, "command"):
            is_agent = request.from_handle is not None
            for name in stored_names(self._flusher.disk, self._terminals):
                is_named = request.name is None or name_key(request.name) == name_key(name)
                if is_named and not (is_agent and is_persons_terminal(name)):
                    path = self._terminals / name / LEDGER
                    sources.append(Commands(self._flusher, path, name, wanted, unpacked))
        # Only if asked for: most messages repeat a command or a task.
        if request.kind == "message" and request.exit_code is None:
            sources += self._inboxes_for(request, wanted)
        for each in self._kinds if request.exit_code is None else ():
            if request.kind in (None, each.kind):
                archive = Archive(self._archive, each.archive, self._flusher.disk, 0)
                sources.append(LiveRows(self._services, each.service, wanted, by))
                sources.append(ArchivedRows(self._flusher, archive, wanted, each.entry_of, by))
        return sources

    def _inboxes_for(self, request: SearchHistory, wanted: Wanted) -> list[Source]:
        """Return the inboxes that the caller reads: a person all, as any handle; others theirs."""
        keys = set() if request.from_handle is None else {name_key(request.from_handle)}
        if request.name is not None:
            keys.add(name_key(self._handles.address_of(request.name)))
            wanted = attrs.evolve(wanted, name=None)
        sources: list[Source] = []
        for file in stored_names(self._flusher.disk, self._inboxes):
            address = file.removesuffix(INBOX_SUFFIX)
            if address != file and is_name(address) and keys <= {name_key(address)}:
                path, shown = self._inboxes / file, self._handles.shown(address)
                stored = self._messages_in(self._flusher.disk, path, shown)
                sources.append(SentMessages(self._flusher, stored, wanted))

        def entry_of(line: Mapping[str, Any], _: object) -> HistoryEntry | None:
            entry = self._archived_message(line)
            if entry is None or not keys <= {name_key(entry.name)}:
                return None
            return attrs.evolve(entry, name=self._handles.shown(entry.name))

        archive = Archive(self._archive, MESSAGES, self._flusher.disk, 0)
        return [*sources, ArchivedRows(self._flusher, archive, wanted, entry_of, None)]


def _utc(name: str, text: str) -> str:
    try:
        return utc_text(moment_of(text).astimezone(UTC))
    except ValueError as error:
        raise InvalidRequest(f"{name}: {error}") from error

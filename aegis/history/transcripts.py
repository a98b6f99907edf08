"""The transcripts of sessions as a search of the history reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from aegis.clock import moment_text
from aegis.history.sources import LATEST, STEP_BYTES, STEP_LINES, Wanted
from aegis.journal.flusher import Flusher
from aegis.journal.packed_ledger import TRANSCRIPTS, LedgerPart, PackedLedger
from aegis.journal.reader import LedgerReader
from aegis.journal.rotation import previous_of
from aegis.protocol.history import MAX_TEXT_CHARS, HistoryEntry

MAX_MESSAGE_CHARS = 64 * 1024
"""The part of a message in which a word is found whose chunks are entries of their own."""

MAX_MOMENT = 253_402_300_799
"""The last second of the year 9999: what another program has written may have any."""

BEFORE_CHARS = 200
"""The text before a word that is shown with it."""


@attrs.frozen
class Said:
    """The text of an entry: what it is, and by whom.

    ``message`` is the id of the message that it is a chunk of; None: it is whole.
    """

    what: str
    text: str
    by: str = ""
    message: str | None = None


def said_in(entry: Mapping[str, Any]) -> Said | None:
    """Return the text of an entry of a transcript; None if it has none that is looked for."""
    match entry:
        case {"kind": "turn_opened", "text": str(text), "messages": list(messages)}:
            senders = (each.get("sender") for each in messages if isinstance(each, dict))
            return Said("message", text, ", ".join(dict.fromkeys(map(str, senders))))
        case {"kind": "turn_ended", "outcome": str(outcome)} if outcome != "completed":
            return Said(outcome, str(entry.get("reason") or ""))
        case {"kind": "event", "event": dict(event)}:
            return _said_by(event)
    return None


def _said_by(event: Mapping[str, Any]) -> Said | None:
    match event:
        case {"type": "assistant_text", "text": str(text)}:
            return Said("text", text, message=str(event.get("message", "")))
        case {"type": "tool_use", "name": str(name)}:
            given = event.get("input")
            shown = json.dumps(given, ensure_ascii=False) if given else ""
            return Said("tool", f"{name or event.get('title', '')} {shown}".strip())
        case {"type": "tool_result", "text": str(text)}:
            return Said("failed" if event.get("is_error") else "result", text)
        case {"type": "terminal_ended", "command": str(command), "output": str(output)}:
            return Said("result", f"$ {command}\n{output}")
    return None


@attrs.define
class _Message:
    """Chunks of one message, the newest first, and the moment of its end."""

    id: str
    at: str
    seq: int
    chunks: list[str]
    chars: int = 0

    def continues(self, said: Said, seq: int) -> bool:
        """Return whether an entry is the chunk before those that it has."""
        is_same = said.message == self.id and (bool(self.id) or seq == self.seq - 1)
        return is_same and self.chars < MAX_MESSAGE_CHARS

    def take(self, said: Said, seq: int) -> None:
        self.chunks.append(said.text)
        self.chars += len(said.text)
        self.seq = seq


class TranscriptEntries:
    """The entries that are looked for in the transcript of ``handle``, taken the newest first."""

    def __init__(self, handle: str, wanted: Wanted) -> None:
        self._handle, self.archived = handle, False
        # The sessions of the name were looked up, also by a former handle.
        self._wanted = attrs.evolve(wanted, name=None, word=None)
        self._word = wanted.word
        self._message: _Message | None = None
        self.reached = LATEST
        self.is_over = False
        """Whether all older entries are too old."""

    def take(self, records: Iterable[Mapping[str, Any]]) -> list[HistoryEntry]:
        """Take the next entries, the newest first; return those that are looked for."""
        found: list[HistoryEntry | None] = []
        for record in records:
            said, seq, at = said_in(record), int(record["seq"]), _moment(record)
            if self._message is None:
                self.reached = min(self.reached, at)
            if said is None:
                continue
            message = self._message
            if message is not None and message.continues(said, seq):
                message.take(said, seq)
                continue
            found.append(self._ended())
            self.reached = min(self.reached, at)
            if at < self._wanted.since:
                self.is_over = True
                break
            if said.message is None:
                found.append(self._entry(at, seq, said))
            else:
                self._message = _Message(said.message, at, seq, [said.text], len(said.text))
        return [each for each in found if each is not None]

    def end(self) -> list[HistoryEntry]:
        """Return the entries that were not complete before there are no more."""
        entry = self._ended()
        return [] if entry is None else [entry]

    def _ended(self) -> HistoryEntry | None:
        message, self._message = self._message, None
        if message is None:
            return None
        said = Said("text", "".join(reversed(message.chunks)))
        return self._entry(message.at, message.seq, said)

    def _entry(self, at: str, seq: int, said: Said) -> HistoryEntry | None:
        start = 0
        if self._word is not None:
            start = said.text.lower().find(self._word)
            if start < 0:
                return None
        start = max(0, start - BEFORE_CHARS)
        entry = HistoryEntry(
            kind="transcript",
            at=at,
            name=self._handle,
            id=str(seq),
            text=said.text[start : start + MAX_TEXT_CHARS],
            by=said.by or self._handle,
            outcome=said.what,
            archived=self.archived,
        )
        return entry if self._wanted.has(entry) else None


def _moment(record: Mapping[str, Any]) -> str:
    at = record.get("at")
    moment = at if isinstance(at, int | float) and 0 <= at < MAX_MOMENT else 0
    return moment_text(moment)


class TranscriptSource:
    """The transcript of a session: the file ``path``, the one before it, and parts in ``archive``.

    Of a session that is not in the archive, or was there before, the last ones have no more.
    """

    def __init__(
        self, flusher: Flusher, path: Path, archive: Path, handle: str, wanted: Wanted
    ) -> None:
        self._flusher, self._path = flusher, path
        self._packed = PackedLedger(flusher.disk, archive / TRANSCRIPTS, path.parent.name, path)
        self._parts: list[LedgerPart] | None = None
        self._lines: Iterator[tuple[dict[str, Any], int]] = iter(())
        self._entries = TranscriptEntries(handle, wanted)
        self.reached = LATEST
        self._end: int | None = None
        self._is_earlier = False
        self._before: int | None = None

    async def step(self) -> list[HistoryEntry] | None:
        return await self._flusher.look(self._read)

    def _read(self) -> list[HistoryEntry] | None:
        if self._entries.is_over:
            return None
        if self._parts is not None:
            return self._read_packed(self._parts)
        path = previous_of(self._path) if self._is_earlier else self._path
        reader = LedgerReader(path, disk=self._flusher.disk, sealed_as=self._path)
        reading = reader.last_n(STEP_LINES, end=self._end, max_bytes=STEP_BYTES)
        if not reading.lines:
            if self._is_earlier:
                self._parts = self._packed.parts()
            self._is_earlier, self._end = True, None
            return []
        self._end = reading.lines[0].start
        # By number: a new file may have been begun since the step before.
        return self._take(reversed(reading.records))

    def _read_packed(self, parts: list[LedgerPart]) -> list[HistoryEntry]:
        records: list[dict[str, Any]] = []
        size = 0
        for record, length in self._lines:
            records.append(record)
            size += length
            if len(records) >= STEP_LINES or size >= STEP_BYTES:
                break
        if records:
            self._entries.archived = True
            return self._take(records)
        while parts and self._before is not None and parts[-1].first >= self._before:
            parts.pop()
        if not parts:
            self._entries.is_over = True
            return self._entries.end()
        self._lines = self._packed.lines(parts.pop(), backward=True)
        return []

    def _take(self, newest_first: Iterable[dict[str, Any]]) -> list[HistoryEntry]:
        records = [each for each in newest_first if self._is_next(each)]
        if records:
            self._before = records[-1]["seq"]
        found = self._entries.take(records)
        self.reached = self._entries.reached
        return found

    def _is_next(self, record: Mapping[str, Any]) -> bool:
        seq = record.get("seq")  # the head of a file has none
        return type(seq) is int and (self._before is None or seq < self._before)

"""``Transcript``: the ledger of one session, with its entries' numbers and their outcomes.

A line is an entry of the session's machine with ``seq``, which rises by one; a number is not used
again after the disk has lost its entry. An entry that cannot be stored as it is (too long, no JSON)
is stored without its content, so that no event is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import structlog

from aegis.agents.sessions.past import Past
from aegis.errors import StorageError
from aegis.journal.appender import Appender, Position
from aegis.journal.disk import Disk, read_blocks, shown, storage_error
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line, scan
from aegis.journal.reader import LedgerReader, Reading

log = structlog.get_logger("aegis.agents")

TRANSCRIPT = "transcript.jsonl"
"""The name of the file, in the directory of its session."""

HIDDEN = "\u2039secret\u203a"

_URL_BYTES = b"/mcp/s/"
_SESSION_URL = re.compile(r"(/mcp/s/)[^\s/\"'<>\\]+")

MAX_ENTRY_BYTES = 1024 * 1024
"""The longest stored entry."""

MAX_FIELD_CHARS = 2_000
"""The part of each text that is kept of a longer entry."""

Outcome = Callable[[int, StorageError | None], None]
"""Called with an entry's number, and with the error if the disk refused it."""

OnLine = Callable[[int, bytes, int], None]
"""Called with the seq of a written line, the line, and the offset of its end."""


@attrs.frozen(kw_only=True)
class Shown:
    """The part of a transcript that clients may see: up to the entry ``seq``.

    It ends at the offset ``end``. Offsets are valid as long as the name ``file`` is the same.
    """

    seq: int
    end: int
    file: str


class Transcript:
    """The only writer of a session's ledger. The owner closes it."""

    def __init__(self, appender: Appender, flusher: Flusher, past: Past, seq: int) -> None:
        self._appender = appender
        self._flusher = flusher
        self.past = past
        """The fold of the entries that were there when it was opened."""
        self._seq = seq
        self._end = appender.synced
        self._file = uuid4().hex
        self._awaited: list[tuple[int, int, Position]] = []  # number and seq of synced entries
        self._on_outcome: Outcome | None = None
        self.on_line: OnLine | None = None

    @classmethod
    async def open(cls, path: Path, flusher: Flusher) -> Transcript:
        """Open or create the ledger and read it. Raises ``StorageError``."""
        appender = await Appender.open(path, flusher)
        try:
            read = partial(_fold, flusher.disk, path, appender.fd, appender.synced)
            past, seq, damaged = await flusher.look(read)
        except BaseException:
            appender.close()
            raise
        if damaged:
            log.warning("damaged lines skipped", file=shown(path), lines=damaged)
        return cls(appender, flusher, past, seq)

    def start(self, start_soon: Callable[..., object], on_outcome: Outcome) -> None:
        """Start syncs with ``start_soon``, and report the outcome of synced entries."""
        self._on_outcome = on_outcome
        self._appender.start(start_soon)
        self._appender.on_outcome = self._settle

    async def append(self, number: int, entry: Mapping[str, Any], *, sync: bool) -> None:
        """Write an entry; with ``sync``, its outcome is reported under ``number``.

        Without ``sync`` an entry that the disk refuses is lost, and logged.
        """
        try:
            if self._appender.failed:
                await self._appender.recover()
            line = _line(self._seq + 1, entry)
            position = self._appender.append(line)
        except StorageError as error:
            log.warning("entry not stored", file=shown(self._appender.path), why=str(error))
            if sync:
                self._report(number, error)
            return
        self._seq, self._end = self._seq + 1, position.end
        if sync:
            self._awaited.append((number, self._seq, position))
            self._appender.request_sync()
        if self.on_line is not None:
            self.on_line(self._seq, line, position.end)

    @property
    def path(self) -> Path:
        """The ledger's file."""
        return self._appender.path

    @property
    def newest(self) -> int:
        """The seq of the newest entry."""
        return self._seq

    @property
    def shown(self) -> Shown:
        """The entries that clients may see: an entry that must be durable only once it is."""
        if not self._awaited:
            return Shown(seq=self._seq, end=self._end, file=self._file)
        _, seq, position = self._awaited[0]
        return Shown(seq=seq - 1, end=position.start, file=self._file)

    async def read(self, *, last_n: int | None, since: int | None) -> Reading:
        """Return the durable entries: the newest ``last_n``, or those after ``since``.

        Raises ``StorageError``.
        """
        reader = LedgerReader(self._appender.path, disk=self._flusher.disk)
        end = self._appender.synced
        if since is not None:
            return await self._flusher.look(partial(reader.since, "seq", since, end=end))
        return await self._flusher.look(partial(reader.last_n, last_n or 50, end=end))

    def close(self) -> None:
        """Close the file; the outcome of entries that are not durable is not reported."""
        self._on_outcome = None
        self._appender.close()

    def _settle(self) -> None:
        if self._appender.failed:  # the lines that were not durable are gone
            self._end, self._file = self._appender.synced, uuid4().hex
        awaited, self._awaited = self._awaited, []
        for number, seq, position in awaited:
            try:
                is_synced = self._appender.is_synced(position)
            except StorageError as error:
                self._report(number, error)
            else:
                if is_synced:
                    self._report(number, None)
                else:
                    self._awaited.append((number, seq, position))

    def _report(self, number: int, error: StorageError | None) -> None:
        if self._on_outcome is not None:
            self._on_outcome(number, error)


def _line(seq: int, entry: Mapping[str, Any]) -> bytes:
    try:
        line = encode_line({"seq": seq, **entry})
        if _URL_BYTES in line:
            entry = _scrubbed(entry)
            line = encode_line({"seq": seq, **entry})
    except (ValueError, TypeError, RecursionError):
        return encode_line(_scrubbed(_without_content(seq, entry)))
    if len(line) <= MAX_ENTRY_BYTES:
        return line
    line = encode_line({"seq": seq, **_shortened(entry), "truncated": len(line)})
    if len(line) <= MAX_ENTRY_BYTES:
        return line
    return encode_line(_without_content(seq, entry))


def _scrubbed(value: Any) -> Any:
    """Return a JSON value without the secrets of session URLs."""
    if isinstance(value, str):
        return _SESSION_URL.sub(rf"\1{HIDDEN}", value)
    if isinstance(value, Mapping):
        return {_scrubbed(key): _scrubbed(each) for key, each in value.items()}
    return [_scrubbed(each) for each in value] if isinstance(value, list) else value


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_FIELD_CHARS]
    if isinstance(value, Mapping):
        return {key[:MAX_FIELD_CHARS]: _shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each) for each in value[:MAX_FIELD_CHARS]]
    return value


def _without_content(seq: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with its simple fields only, and the type of its event."""
    event = entry.get("event")
    kept = {
        key: value[:MAX_FIELD_CHARS] if isinstance(value, str) else value
        for key, value in entry.items()
        if isinstance(value, str | int)
    }
    kind = {"type": str(event.get("type"))[:64]} if isinstance(event, Mapping) else {}
    return {"seq": seq, **kept, **({"event": kind} if kind else {}), "truncated": 0}


def _fold(disk: Disk, path: Path, fd: int, end: int) -> tuple[Past, int, int]:
    """Return the fold of the first ``end`` bytes, the newest number, and the damaged lines.

    Blocking: for a thread.
    """
    past, seq, damaged = Past(), 0, 0
    seal, rest, base = disk.seal(path), b"", 0
    try:
        for block in read_blocks(disk, fd, 0, end):
            found = scan(rest + block, base=base, seal=seal)
            rest, base = (rest + block)[found.whole - base :], found.whole
            damaged += len(found.damaged)
            for line in found.lines:
                number = line.fields.get("seq")
                seq = max(seq, number) if type(number) is int else seq
                past.take(line.fields)
    except OSError as error:
        raise storage_error("read", path, error) from error
    return past, seq, damaged

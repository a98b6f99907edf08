"""The replies to ``session_read``, of a session with its actor and of a closed one."""

from __future__ import annotations

import contextlib
from pathlib import Path

import attrs

from aegis.agents.sessions.transcript import TranscriptWriter
from aegis.agents.sessions.transcript_files import (
    ShownPart,
    entries_since,
    newest_entries,
    shown_of_closed,
)
from aegis.errors import StorageError
from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.protocol import agents as api

NEWEST = 50
"""Entries that are read if the command does not say which."""


async def read_durable(transcript: TranscriptWriter, message: api.ReadSession) -> api.Transcript:
    """Return the durable entries that a command reads. Raises ``StorageError``."""
    # Events are not synced by themselves: during a turn the newest would be missing. If the disk
    # refuses, those before them are still there.
    with contextlib.suppress(StorageError):
        await transcript.sync()

    def read(disk: Disk, path: Path, shown: ShownPart) -> api.Transcript:
        return _read(disk, path, message, attrs.evolve(shown, end=shown.synced))

    return await transcript.look(read)


async def read_closed(path: Path, flusher: Flusher, message: api.ReadSession) -> api.Transcript:
    """Return the entries of a session that has no actor. Raises ``StorageError``."""

    def read() -> api.Transcript:
        return _read(flusher.disk, path, message, shown_of_closed(flusher.disk, path))

    return await flusher.look(read)


def _read(disk: Disk, path: Path, message: api.ReadSession, shown: ShownPart) -> api.Transcript:
    since = message.since
    if since is None:
        found = newest_entries(disk, path, message.last_n or NEWEST, shown)
    else:
        found = entries_since(disk, path, since, shown)
    missed = found.records[0]["seq"] - since - 1 if found.records and since is not None else 0
    return api.transcript_of(found.records, more=found.more, missed=missed)

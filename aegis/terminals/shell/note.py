"""The note of a running shell, by which a later incarnation can end its processes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import attrs

from aegis.journal.disk import Disk, read_file, replace_file
from aegis.processes.process_host import ProcessHost
from aegis.processes.reaper import is_reused
from aegis.state.sealing import document_fits, sealed_document

MAX_NOTE_BYTES = 64 * 1024
"""The most that is read of a note. The notes written here are far shorter."""


@attrs.frozen(kw_only=True)
class ShellNote:
    """A shell's session id (its pid) and start time, its processes' cookie, and its boot.

    ``sid`` is None in the note that is written before the shell is started.
    """

    sid: int | None
    cookie: str
    boot_id: str
    start_time: int | None

    def live_sids(self, host: ProcessHost) -> list[int]:
        """Return the session id, unless another session may have it by now."""
        # The kernel reuses the number of a session that is gone: after a reboot, or where the
        # leader has another start time.
        if self.sid is None or self.start_time is None or self.boot_id != host.current_boot():
            return []
        return [] if is_reused(host, self.sid, self.start_time) else [self.sid]


def make_note(host: ProcessHost, sid: int | None, cookie: str) -> ShellNote:
    """Return the note of the shell that leads the session ``sid``; None before its start."""
    leader = None if sid is None else host.process_of(sid)
    return ShellNote(
        sid=sid,
        cookie=cookie,
        boot_id=host.current_boot(),
        start_time=None if leader is None else leader.start_time,
    )


def save_note(disk: Disk, path: Path, note: ShellNote) -> None:
    """Write the note. Raises ``OSError``."""
    # Not synced: no process survives a loss of power.
    fields = sealed_document(attrs.asdict(note), disk.seal(path))
    replace_file(disk, path, [json.dumps(fields).encode()], durable=False)


def load_note(disk: Disk, path: Path) -> ShellNote | None:
    """Return the note; None if it is missing or damaged."""
    try:
        fields = json.loads(read_file(disk, path, max_bytes=MAX_NOTE_BYTES) or b"")
    except (OSError, ValueError, RecursionError):
        return None
    if not document_fits(fields, disk.seal(path)):
        return None  # an unsealed note could name any process to end
    match fields:
        case {
            "sid": int() | None as sid,
            "cookie": str(cookie),
            "boot_id": str(boot_id),
            "start_time": int() | None as start_time,
        } if sid is None or _can_be_a_shell(sid):
            return ShellNote(sid=sid, cookie=cookie, boot_id=boot_id, start_time=start_time)
        case _:
            return None


def _can_be_a_shell(sid: int) -> bool:
    return type(sid) is int and sid > 1


def delete_note(disk: Disk, path: Path) -> None:
    """Delete the note of a shell whose processes are gone."""
    # A note that cannot be deleted is harmless: its processes are gone.
    with contextlib.suppress(OSError):
        disk.unlink(path)

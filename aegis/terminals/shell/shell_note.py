"""What is written down of a running shell, so that a later life can end what is left of it."""

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
"""Of a longer file the rest is not read: no note of ours is so long."""


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
        """The session id, unless it may be somebody else's by now.

        That is so when the machine was restarted, or when a leader that began at another time is
        there: the number of a session that is gone is given anew.
        """
        if self.sid is None or self.start_time is None or self.boot_id != host.current_boot():
            return []
        return [] if is_reused(host, self.sid, self.start_time) else [self.sid]


def note_of(host: ProcessHost, sid: int | None, cookie: str) -> ShellNote:
    """The note of the shell that leads the session ``sid`` of ``host``; None: it is yet to come."""
    leader = None if sid is None else host.process_of(sid)
    return ShellNote(
        sid=sid,
        cookie=cookie,
        boot_id=host.current_boot(),
        start_time=None if leader is None else leader.start_time,
    )


def save_shell(disk: Disk, path: Path, note: ShellNote) -> None:
    """Write the note: not synced, because no process outlives the power. Raises ``OSError``."""
    fields = sealed_document(attrs.asdict(note), disk.seal(path))
    replace_file(disk, path, [json.dumps(fields).encode()], durable=False)


def load_shell(disk: Disk, path: Path) -> ShellNote | None:
    """The note, if there is one that makes sense."""
    try:
        fields = json.loads(read_file(disk, path, max_bytes=MAX_NOTE_BYTES) or b"")
    except (OSError, ValueError, RecursionError):
        return None
    if not document_fits(fields, disk.seal(path)):
        return None  # it names processes to end
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


def forget_shell(disk: Disk, path: Path) -> None:
    """The shell and all its processes are gone. A note that cannot be removed names nobody."""
    with contextlib.suppress(OSError):
        disk.unlink(path)

"""What is written down of a running shell, so that a later life can end what is left of it."""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from aegis.journal.disk import OsDisk, replace_file

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@attrs.frozen(kw_only=True)
class ShellNote:
    """A shell's session id (its pid), the cookie of its processes, and the boot it belongs to.

    ``sid`` is None in the note that is written before the shell is started.
    """

    sid: int | None
    cookie: str
    boot_id: str = attrs.field(factory=lambda: current_boot())

    def live_sids(self) -> list[int]:
        """The session id, if the machine was not restarted since: else it is somebody else's."""
        return [] if self.sid is None or self.boot_id != current_boot() else [self.sid]


def current_boot() -> str:
    """The id that the kernel gave to the present boot (random(4))."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


def save_shell(path: Path, note: ShellNote) -> None:
    """Write the note: not synced, because no process outlives the power."""
    replace_file(OsDisk(), path, [json.dumps(attrs.asdict(note)).encode()], durable=False)


def load_shell(path: Path) -> ShellNote | None:
    """The note, if there is one that makes sense."""
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    match fields:
        case {"sid": int() | None as sid, "cookie": str(cookie), "boot_id": str(boot_id)}:
            return ShellNote(sid=sid, cookie=cookie, boot_id=boot_id)
        case _:
            return None


def forget_shell(path: Path) -> None:
    """The shell and all its processes are gone."""
    path.unlink(missing_ok=True)

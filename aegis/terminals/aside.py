"""Setting a damaged file aside: it gets another name beside it, and nothing of it is lost."""

from __future__ import annotations

import zlib
from pathlib import Path

import structlog

from aegis.journal.disk import Disk, shown

log = structlog.get_logger("aegis.terminals")


def set_aside(disk: Disk, path: Path, data: bytes, why: str) -> Path:
    """Rename the file to ``<name>.damaged-<crc of data>`` and say so in the log.

    The name says what the file held, so doing it again after a crash makes no second copy. Raises
    ``OSError``.
    """
    aside = path.with_name(f"{path.name}.damaged-{zlib.crc32(data):08x}")
    disk.rename(path, aside)
    log.warning("damaged file set aside", file=shown(path), kept_as=aside.name, why=why)
    return aside

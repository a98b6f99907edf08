"""The files of images beside the transcript of a session, one for each content. Blocking."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import structlog

from aegis.agents.drivers.harness import KeepImage, SentImage
from aegis.agents.drivers.images import MEDIA_TYPES, SENT, SENT_NEW

log = structlog.get_logger("aegis.agents")

MAX_KEPT_BYTES = 128 * 1024 * 1024
"""The size of the images of a session; beyond it the oldest are deleted."""


def keep_images(images: list[KeepImage]) -> None:
    """Write images that are not kept yet. Blocking; if the disk refuses, they are lost and logged.

    The newest are kept. They are not synced: the events with their paths are not either.
    """
    for image in images:
        path = Path(image.path)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if not _is_kept(path, image):
                _write(path, image.data)
            _drop_oldest(path.parent)
        except OSError as error:
            log.warning("image of a result not stored", path=image.path, why=error.strerror)


def _is_kept(path: Path, image: KeepImage) -> bool:
    try:
        is_whole = path.stat().st_size == len(image.data)
        os.utime(path)
    except FileNotFoundError:
        return False
    return is_whole


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_suffix(".new")
    with contextlib.suppress(FileNotFoundError):
        unfinished.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
        file.write(data)
    unfinished.replace(path)


def _drop_oldest(directory: Path) -> None:
    files = [(each.stat(), each) for each in directory.iterdir()]
    found = sorted(files, key=lambda each: each[0].st_mtime_ns)
    left = sum(facts.st_size for facts, _ in found)
    for facts, each in found:
        if left <= MAX_KEPT_BYTES:
            return
        left -= facts.st_size
        each.unlink(missing_ok=True)


# Images in messages, which a session has stored.


def read_sent(directory: Path, names: Sequence[str]) -> list[SentImage]:
    """Return images of the session whose files are in ``directory``. Raises ``OSError``."""
    return [_read(directory / SENT, each) for each in names]


def _read(directory: Path, name: str) -> SentImage:
    data = _found(directory / name, directory / SENT_NEW / name)
    media_type = MEDIA_TYPES[name.rpartition(".")[2]]
    return SentImage(media_type=media_type, base64=base64.b64encode(data).decode("ascii"))


def _found(path: Path, before: Path) -> bytes:
    """Return what is in ``path``, whose name was ``before`` until its message was durable.

    The message may be quicker than the rename, which may also come between two looks.
    """
    for each in (path, before):
        with contextlib.suppress(FileNotFoundError):
            return each.read_bytes()
    return path.read_bytes()

"""With what a terminal of the workspace is started again."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import structlog

from aegis.errors import Unavailable
from aegis.journal.disk import sync_directory
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.path_text import path_of_text, text_of_path
from aegis.terminals.directory.spawning import default_settings, new_life
from aegis.terminals.meta import load_settings, save_settings
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.wakes.subscriptions import NO_LIFE, stored_life

log = structlog.get_logger("aegis.terminals")


def restored_settings(
    name: str, root: Path, files: TerminalFiles, flusher: Flusher
) -> TerminalSettings:
    """The settings of ``meta.json`` with the last directory that is known; blocks.

    ``started_at`` stays that of the spawn. Where ``meta.json`` is missing or damaged the settings
    are the usual ones, and become those of the terminal. Raises ``AegisError``, ``OSError``.
    """
    settings = load_settings(flusher.disk, files, root)
    if settings is None:
        life = life_without_meta(files, flusher)
        settings = attrs.evolve(default_settings(name, root), life=life)
        log.warning("terminal restored without its settings", terminal=name, shell=settings.shell)
        save_settings(flusher.disk, files, settings)
    else:  # they are shown from now on, and who wrote them may have been killed before this
        sync_directory(flusher.disk, files.directory)
    return attrs.evolve(settings, name=name, cwd=_last_directory(settings, files, flusher))


def life_without_meta(files: TerminalFiles, flusher: Flusher) -> str:
    """The life id of a terminal whose ``meta.json`` is lost or new; blocks.

    It is that under which its subscribers were told of its records. Where that is lost too they are
    owed none of those records any more: under a new id each would come a second time. Raises
    ``StorageError``.
    """
    note = Note.open(files.subscribers, flusher)
    try:
        fields = note.load()
        life = stored_life(fields)
        if life is not None and life != NO_LIFE:
            return life
        if fields is not None:
            note.write({**fields, "life": NO_LIFE})
        return new_life()
    finally:
        note.close()


def resaved_settings(
    name: str, root: Path, files: TerminalFiles, flusher: Flusher
) -> TerminalSettings:
    """``restored_settings`` of a terminal that the disk refused, once it takes them anew; blocks.

    So nothing more is tried while it still refuses. Raises ``AegisError``, ``OSError``.
    """
    settings = load_settings(flusher.disk, files, root)
    if settings is not None:
        save_settings(flusher.disk, files, settings)
    return restored_settings(name, root, files, flusher)


def check_can_start(settings: TerminalSettings) -> None:
    """Raise ``Unavailable`` if the shell of these settings is not there any more."""
    if shutil.which(path_of_text(settings.shell)) is None:
        raise Unavailable(f"its shell {settings.shell!r} is no executable program any more")


def _last_directory(settings: TerminalSettings, files: TerminalFiles, flusher: Flusher) -> str:
    """Where its last shell was, else where it was spawned, else the root."""
    wanted = [_noted_directory(files, flusher), settings.cwd]
    return next(
        (each for each in wanted if each and Path(path_of_text(each)).is_dir()), settings.root
    )


def _noted_directory(files: TerminalFiles, flusher: Flusher) -> str | None:
    note = Note.open(files.note, flusher)
    try:
        cwd = (note.load() or {}).get("cwd")
    finally:
        note.close()
    return text_of_path(cwd) if isinstance(cwd, str) else None

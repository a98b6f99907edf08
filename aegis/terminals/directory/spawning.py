"""Checking and preparing what a new terminal needs: its shell, its directory, its settings."""

from __future__ import annotations

import os
import resource
import secrets
import shutil
from pathlib import Path

import attrs
import structlog

from actors import describe, root_cause
from aegis.clock import utc_now
from aegis.directories import find_directory
from aegis.errors import AegisError, InvalidRequest, Unavailable
from aegis.journal.disk import storage_error, sync_directory
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.names import shorten
from aegis.path_text import path_of_text, text_of_path
from aegis.protocol.terminals import DEFAULT_COLS, DEFAULT_ROWS, SpawnTerminal
from aegis.terminals.hooks.choice import can_separate, is_supported
from aegis.terminals.meta import load_settings, save_settings
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.wakes.subscriptions import NO_LIFE, stored_life


def find_shell(asked: str | None) -> str:
    """The path of the shell to start: ``asked``, else $SHELL, else bash.

    Both are text as ``aegis.path_text`` makes it.

    Any program may be asked for. A $SHELL that keeps no marks (``is_supported``) is left for bash.
    Raises ``InvalidRequest`` if there is no such program.
    """
    default = os.environ.get("SHELL", "")
    wanted = (default if is_supported(default) else "bash") if asked is None else asked
    path = shutil.which(path_of_text(wanted))
    if path is None and asked is None:
        path = shutil.which("bash")
    if path is None:
        raise InvalidRequest(
            f"aegis_term_spawn: shell {shorten(wanted)!r} is no executable program; give the path "
            "of a shell, or leave it out for bash"
        )
    return text_of_path(Path(path).absolute())


def check_can_separate(shell: str) -> None:
    """Raise ``InvalidRequest`` unless standard error of this shell's commands can be told apart."""
    if not can_separate(path_of_text(shell)):
        raise InvalidRequest(
            f"aegis_term_spawn: stderr 'separate' needs bash or zsh, not {shorten(shell)!r}: leave "
            "stderr out, or spawn the terminal with shell 'bash'"
        )


FILES_OF_A_TERMINAL = 8
"""A PTY, a process descriptor, a ledger, a note, a raw log, and what a start needs for a while."""


def check_descriptors(*, coming: int = 1) -> None:
    """Raise ``Unavailable`` unless enough files may still be opened for ``coming`` terminals.

    A quarter of what this process may open is kept for what runs already, and for new clients:
    with none left nobody could even come to close a terminal.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = _open_files()
    if in_use + (coming - 1) * FILES_OF_A_TERMINAL > limit - limit // 4:
        raise Unavailable(
            f"aegis_term_spawn: the daemon has {in_use} of at most {limit} files open, and keeps "
            "the rest for what runs; close terminals, or raise the limit (ulimit -n) and restart it"
        )


def _open_files() -> int:
    """How many files this process has open. Listing thousands would take most of a spawn."""
    # The size of that directory since Linux 6.2; before, it is 0.
    counted = os.stat("/proc/self/fd").st_size  # noqa: PTH116
    return counted or len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def make_settings(
    request: SpawnTerminal, root: Path, before: TerminalSettings | None
) -> TerminalSettings:
    """The settings of a new terminal; one that was closed (``before``) goes on with its life."""
    shell = find_shell(request.shell)
    if request.stderr == "separate":
        check_can_separate(shell)
    return TerminalSettings(
        name=request.name,
        life=new_life() if before is None else before.life,
        shell=shell,
        cwd=find_directory(
            request.cwd, root, "aegis_term_spawn: cwd", ", or leave it out for the root"
        ),
        env=dict(request.env),
        cols=request.cols,
        rows=request.rows,
        stderr=request.stderr,
        started_at=utc_now(),
        root=text_of_path(root),
    )


def default_settings(name: str, root: Path) -> TerminalSettings:
    """What a terminal is started with if nobody knows how it was spawned."""
    return TerminalSettings(
        name=name,
        life=new_life(),
        shell=text_of_path(shutil.which("bash") or "bash"),
        cwd=text_of_path(root),
        env={},
        cols=DEFAULT_COLS,
        rows=DEFAULT_ROWS,
        started_at=utc_now(),
        root=text_of_path(root),
    )


def new_life() -> str:
    """What tells this life of a name from those before a purge."""
    return secrets.token_hex(6)


def spawn_failure(name: str, files: TerminalFiles, error: Exception) -> AegisError:
    """What the caller is told when a terminal could not be started."""
    cause = root_cause(error)
    if isinstance(cause, AegisError):
        return cause
    if isinstance(cause, OSError):
        return storage_error("use", files.directory, cause)
    return Unavailable(
        f"aegis_term_spawn: terminal {name!r} could not be started: {describe(cause)}"
    )


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

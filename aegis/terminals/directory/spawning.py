"""The checks before a terminal is started, and the settings of a new or restored one."""

from __future__ import annotations

import errno
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
from aegis.errors import AegisError, InvalidRequest, LimitReached, Unavailable
from aegis.journal.disk import storage_error, sync_directory
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.names import shorten
from aegis.path_text import path_of_text, text_of_path
from aegis.processes.environment import Withhold
from aegis.protocol.terminals import DEFAULT_COLS, DEFAULT_ROWS, SpawnTerminal
from aegis.terminals.hooks.choice import can_separate, is_supported
from aegis.terminals.meta import load_settings, save_settings
from aegis.terminals.record import writer_tag
from aegis.terminals.settings import TerminalFiles, TerminalSettings, stored_directory
from aegis.terminals.wakes.subscriptions import NO_LIFE, stored_life


def find_shell(asked: str | None) -> str:
    """Return the path of the shell to start: ``asked``, else $SHELL, else bash.

    Both are text as ``aegis.path_text`` makes it. Any program may be requested. A $SHELL without
    exact marks (``is_supported``) is replaced by bash. Raises ``InvalidRequest`` if the program
    does not exist.
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
    """Raise ``InvalidRequest`` unless the shell supports a separate standard error."""
    if not can_separate(path_of_text(shell)):
        raise InvalidRequest(
            f"aegis_term_spawn: stderr 'separate' needs bash or zsh, not {shorten(shell)!r}: leave "
            "stderr out, or spawn the terminal with shell 'bash'"
        )


FILES_OF_A_TERMINAL = 8
"""A PTY, a process descriptor, a ledger, a note, a raw log, and some more during the start."""


def check_descriptors(*, coming: int = 1, at_rest: int = 0) -> None:
    """Raise ``Unavailable`` unless enough files may still be opened for ``coming`` terminals.

    ``at_rest`` terminals may have closed their raw logs, which their next output opens again.
    """
    # A quarter of the limit is reserved for running terminals and new clients: without it no
    # client could connect to close a terminal.
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = _open_files()
    if in_use + at_rest + (coming - 1) * FILES_OF_A_TERMINAL > limit - limit // 4:
        raise LimitReached(
            errno.EMFILE,
            f"aegis_term_spawn: the daemon has {in_use} of at most {limit} files open, and keeps "
            "the rest for what runs; close terminals, or raise RLIMIT_NOFILE (ulimit -n) "
            "and restart it",
        )


def _open_files() -> int:
    """Return how many files this process has open."""
    # Listing thousands of entries would take most of a spawn. Since Linux 6.2 the size of this
    # directory is the number of open files; before, it is 0.
    counted = os.stat("/proc/self/fd").st_size  # noqa: PTH116
    return counted or len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def make_settings(
    request: SpawnTerminal, root: Path, before: TerminalSettings | None, withhold: Withhold
) -> TerminalSettings:
    """Return the settings of a new terminal; a closed one (``before``) keeps its life id."""
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
        opener=writer_tag(request.from_handle),
        withheld=tuple(sorted(withhold(request.from_handle))),
    )


def default_settings(name: str, root: Path) -> TerminalSettings:
    """Return the settings for a terminal whose own settings are lost."""
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
    """Return a new life id, which distinguishes a terminal from purged ones of the same name."""
    return secrets.token_hex(6)


def spawn_failure(name: str, files: TerminalFiles, error: Exception) -> AegisError:
    """Return the error for the caller of a spawn that failed."""
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
    name: str, root: Path, files: TerminalFiles, flusher: Flusher, earlier: tuple[str, ...] = ()
) -> TerminalSettings:
    """Return the settings of ``meta.json`` with the last known directory; blocks.

    ``earlier`` are the earlier paths of the root. ``started_at`` stays that of the spawn. If
    ``meta.json`` is missing or damaged, the default settings are used and stored. Raises
    ``AegisError``, ``OSError``.
    """
    settings = load_settings(flusher.disk, files, root, earlier)
    if settings is None:
        life = life_without_meta(files, flusher)
        settings = attrs.evolve(default_settings(name, root), life=life)
        log.warning("terminal restored without its settings", terminal=name, shell=settings.shell)
        save_settings(flusher.disk, files, settings)
    else:  # clients will see them: an earlier daemon may have been killed before this sync
        sync_directory(flusher.disk, files.directory)
    settings = attrs.evolve(settings, name=name)
    return in_existing_directory(settings, _noted_directory(settings, earlier, files, flusher))


def life_without_meta(files: TerminalFiles, flusher: Flusher) -> str:
    """Return the life id for a terminal whose ``meta.json`` is lost or new; blocks.

    It is the stored id under which subscribers were notified of its records. Raises
    ``StorageError``.
    """
    # If that id is lost too, no wakes are owed for the existing records: under a new id each
    # subscriber would get them a second time.
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
    name: str, root: Path, files: TerminalFiles, flusher: Flusher, earlier: tuple[str, ...] = ()
) -> TerminalSettings:
    """Write the settings again, then return ``restored_settings``; blocks.

    For a terminal that the disk refused: fails early while the disk still refuses. Raises
    ``AegisError``, ``OSError``.
    """
    settings = load_settings(flusher.disk, files, root, earlier)
    if settings is not None:
        save_settings(flusher.disk, files, settings)
    return restored_settings(name, root, files, flusher, earlier)


def check_can_start(settings: TerminalSettings) -> None:
    """Raise ``Unavailable`` if the shell of these settings no longer exists."""
    if shutil.which(path_of_text(settings.shell)) is None:
        raise Unavailable(f"its shell {settings.shell!r} is no executable program any more")


def in_existing_directory(settings: TerminalSettings, last: str | None) -> TerminalSettings:
    """Return the settings with the directory of its last shell, if it is known and exists.

    Else with that of the spawn, else with the root, and a notice that says what is gone: the next
    commands run in another directory than the caller expects.
    """
    wanted = [last, settings.cwd, settings.root]
    gone, found = None, settings.root
    for each in filter(None, wanted):
        if Path(path_of_text(each)).is_dir():
            found = each
            break
        gone = gone or each
    if gone is None:
        return attrs.evolve(settings, cwd=found)
    notice = f"its directory {gone!r} is gone, so it was started in {found!r}"
    log.warning("directory of a terminal is gone", terminal=settings.name, why=notice)
    return attrs.evolve(settings, cwd=found, notice=notice)


def _noted_directory(
    settings: TerminalSettings, earlier: tuple[str, ...], files: TerminalFiles, flusher: Flusher
) -> str | None:
    note = Note.open(files.note, flusher)
    try:
        return stored_directory(note.load() or {}, settings.root, earlier)
    finally:
        note.close()

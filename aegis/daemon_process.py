"""The daemon's process: its locks on the root, its logs, its limits, and its stored port."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TextIO, cast

import structlog

from aegis.errors import StartupError
from aegis.journal.disk import OsDisk
from aegis.state.registration import WritableRegistry, is_empty
from aegis.state.registry import RegistryError, read_state_id
from aegis.state.root import StatePaths, UntrustedState, make_directory, write_whole
from aegis.state.sealing import Seals
from aegis.state.state_files import (
    HeldDirectory,
    UnsafeFile,
    open_directory,
    open_safely,
    read_safely,
)
from aegis.trust import NO_PROGRAMS, NamedPrograms, adopt_state, examine

STATE_VERSION = 2
"""The layout of the state directory; a newer one is refused."""

MIN_KERNEL = (5, 4)
"""The oldest supported Linux. Needed: pidfd_open, to wait for shells."""


class HeldRoot(NamedTuple):
    """The root that this process is the daemon of: its state, what signs it, its locks.

    ``earlier`` are the paths, as text, that the root had before it was moved or copied here.
    """

    state: StatePaths
    seals: Seals
    lock: int
    directory: int
    earlier: tuple[str, ...] = ()

    @property
    def guard(self) -> HeldDirectory:
        """The device and inode of the state directory, to detect its replacement."""
        found = os.fstat(self.directory)
        return HeldDirectory(str(self.state.directory), found.st_dev, found.st_ino)

    def disk(self) -> OsDisk:
        """The disk for all files of the state."""
        return OsDisk(self.seals, self.guard)

    def loss_reason(self) -> str | None:
        """Return how the lock or the state directory was lost; None while both are there."""
        for path, fd in (
            (self.state.directory, self.directory),
            (self.state.lock, self.lock),
        ):
            try:
                found = path.lstat()
            except (FileNotFoundError, NotADirectoryError):
                return f"{path} was removed"
            if not os.path.samestat(found, os.fstat(fd)):
                return f"{path} was replaced"
        return None

    @property
    def owns_directory(self) -> bool:
        """Whether the path of the state still leads to this daemon's directory."""
        try:
            return os.path.samestat(self.state.directory.lstat(), os.fstat(self.directory))
        except OSError:
            return False


@contextlib.contextmanager
def hold_root(
    state: StatePaths, *, trust: bool = False, programs: NamedPrograms = NO_PROGRAMS
) -> Iterator[HeldRoot]:
    """Lock the root for this process, and check its state directory.

    This user's daemons must have made the state in this root, and each of its files; ``trust``
    takes over the existing files. A configuration that names ``programs`` must have been trusted
    in its current form. The locks are flock(2) locks, so a crash cannot leave them behind.
    Raises ``StartupError``; then nothing was changed. If the block raises it, the start was
    refused: the files of a state that was made for it are removed.
    """
    check_platform()
    with contextlib.ExitStack() as held:
        try:
            state_id = examine(state, trust=trust, programs=programs)
            has_version = _has_version(state)
            held.enter_context(_directories(state))
            directory = _opened(held, open_directory(str(state.directory)))
            lock = _opened(held, open_safely(str(state.lock), os.O_RDWR | os.O_CREAT))
            _take_locks(lock, directory, state)
            held.enter_context(_removed_if_refused(state, is_empty(str(state.directory))))
            seals, earlier = adopt_state(state, state_id, trust=trust, programs=programs)
        except (UntrustedState, RegistryError) as error:
            raise StartupError(str(error)) from None
        except UnsafeFile as error:
            raise StartupError(
                f"{error.filename} is not used: {error.strerror}. Nothing was changed; move it "
                "away, or start the daemon as the user who owns it"
            ) from error
        except OSError as error:
            raise StartupError(
                f"cannot use {state.directory}: {error.strerror}; the daemon keeps its state there"
            ) from error
        if not has_version:
            _write_version(state)
        keep_out_of_repositories(state)
        yield HeldRoot(state, seals, lock, directory, earlier)


_OF_A_START = frozenset(
    (
        *("lock", "version", "state.id", "place.json", "keys.json", "node.key", "node.id"),
        *(".gitignore", "daemon.log"),
    )
)
"""The files that a start makes before the daemon serves."""


@contextlib.contextmanager
def _directories(state: StatePaths) -> Iterator[None]:
    """Make the directories of the state; remove the ones that are empty if the block fails.

    Otherwise a refused start with ``sudo`` in a user's project would leave a directory of root
    there, and the user would be refused next.
    """
    made = [each for each in (state.directory, state.directory.parent) if not each.exists()]
    try:
        make_directory(state)
        yield
    except StartupError:
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()
        raise


@contextlib.contextmanager
def _removed_if_refused(state: StatePaths, is_new: bool) -> Iterator[None]:
    """Remove the files of a new state if the start is refused. The root is locked."""
    try:
        yield
    except StartupError:
        with contextlib.suppress(OSError, RegistryError):
            names = {each.name for each in state.directory.iterdir()}
            if is_new and names <= _OF_A_START:  # else it has served
                state_id = read_state_id(str(state.directory))
                for name in names:
                    (state.directory / name).unlink()
                if state_id is not None:
                    WritableRegistry.of_user().remove(state_id)
        raise


def _opened(held: contextlib.ExitStack, fd: int) -> int:
    held.callback(os.close, fd)
    return fd


def reset_ignored_signals() -> None:
    """Replace ignored signals (``nohup``, ``&`` in a script) by a handler that does nothing.

    An ignored signal stays ignored across exec, and an interactive shell cannot change that; a
    handled one is reset to its default in shells. Signals are unblocked, too.
    """
    for number in signal.valid_signals() - _LEFT_TO_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


_LEFT_TO_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}
"""Python ignores these itself, and restores them in the processes that it starts."""


def _do_nothing(_number: int, _frame: object) -> None:
    return


def cannot_start(action: str, path: Path, error: OSError) -> StartupError:
    """Return the error for a disk that refuses ``action``, a verb phrase after "cannot"."""
    return StartupError(
        f"cannot {action} {path}: {error.strerror or error}; free some space "
        "on the disk or make it writable, then start again"
    )


LINGER_S = 0.3
"""Seconds for which the locks of a killed daemon may still be held by a process of it."""

HANDOVER_S = 15.0
"""Seconds that a daemon whose lock file was removed has to notice it and to stop."""


def _take_locks(lock: int, directory: int, state: StatePaths) -> None:
    """Lock the file, and the directory too, as the file may be removed while a daemon runs."""
    # A process that a killed daemon was just starting holds its locks until the exec.
    linger = time.monotonic() + LINGER_S
    while not _locked(lock):
        if time.monotonic() > linger:
            raise _is_held(lock, state)
        time.sleep(0.02)
    if not _locked(directory):
        # A daemon that lost its lock file is still running: it stops when it notices.
        deadline = time.monotonic() + HANDOVER_S
        while not _locked(directory):
            if time.monotonic() > deadline:
                raise _is_held(lock, state)
            time.sleep(0.05)
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        raise cannot_start("write", state.lock, error) from error


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP):
            raise
    return True


def _is_held(lock: int, state: StatePaths) -> StartupError:
    holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
    return StartupError(
        f"a daemon already runs for {state.root} (pid {holder}); stop it with: aegis-actors down"
    )


def _has_version(state: StatePaths) -> bool:
    """Return whether the state has this version: an older one is read, and becomes this one.

    Raises ``StartupError`` for a newer one.
    """
    path = state.directory / "version"
    try:
        text = (read_safely(str(path), 4096) or b"").decode("ascii").strip("\0\n ")
    except UnsafeFile:
        raise
    except OSError as error:
        raise cannot_start("use", path, error) from error
    except UnicodeDecodeError as error:
        raise StartupError(f"cannot read {path}: {error}") from error
    if not text:  # no file, or a loss of power emptied it
        return False
    if not text.isdecimal() or int(text) > STATE_VERSION:
        raise StartupError(
            f"{state.directory} is of version {text[:20]!r}, made by a newer aegis-actors: "
            "upgrade this one"
        )
    return int(text) == STATE_VERSION


def _write_version(state: StatePaths) -> None:
    path = state.directory / "version"
    try:
        write_whole(path, f"{STATE_VERSION}\n")
    except OSError as error:
        raise cannot_start("use", path, error) from error


def keep_out_of_repositories(state: StatePaths) -> None:
    """Write a ``.gitignore`` into the state, which contains keys: a root is often a repository.

    An existing one stays. Errors of the disk are ignored: the daemon works without the file.
    """
    path = state.directory / ".gitignore"
    with contextlib.suppress(OSError):
        if not os.path.lexists(path):
            write_whole(path, "*\n")


def check_platform() -> None:
    """Raise ``StartupError`` unless this is Linux, new enough."""
    if not sys.platform.startswith("linux"):
        raise StartupError("aegis-actors runs on Linux only (it needs pidfds and /proc)")
    parts = os.uname().release.split(".")
    version = tuple(int(part) for part in parts[:2] if part.isdecimal())
    if version < MIN_KERNEL:
        raise StartupError(f"this is Linux {os.uname().release}; aegis-actors needs 5.4 or newer")


def close_inherited() -> None:
    """Close what the shell or program that started the daemon has left open, beside 0 to 2.

    The daemon would hold it for as long as it runs: a terminal, a lock, the pipe whose end another
    program waits for. An own descriptor is closed on exec, and an inherited one cannot be.
    """
    for each in Path("/proc/self/fd").iterdir():
        number = int(each.name)
        with contextlib.suppress(OSError):  # that of the listing
            if number > 2 and os.get_inheritable(number):
                os.close(number)


COLLECTED_AFTER = 5_000, 10, 10
"""New objects until the youngest are collected, and collections until the older ones are too."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard limit; return the old limit.

    Shells are started with the old limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def freeze_imports() -> None:
    """Exclude all existing objects, mostly imported modules, from garbage collection (gc.freeze).

    A collection of the imported modules takes a tenth of a second, and one more runs at the exit.
    """
    gc.freeze()
    # By default all objects are collected again whenever they have become a quarter more: while a
    # thousand terminals are opened, that took an eighth of the CPU, in pauses of 0.1 s.
    gc.set_threshold(*COLLECTED_AFTER)


def remembered_port(state: StatePaths) -> int | None:
    """Return the port of the last daemon of this root, if any."""
    try:
        text = (read_safely(str(_port_file(state)), 64) or b"").decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() and 0 < int(text) < 65_536 else None


def remember_port(state: StatePaths, port: int) -> None:
    """Store the port for the next daemon of this root, so that configured clients still work.

    Atomic: a kill leaves the old port or this one.
    """
    if remembered_port(state) != port:
        with contextlib.suppress(OSError):
            write_whole(_port_file(state), f"{port}\n")


def _port_file(state: StatePaths) -> Path:
    return state.directory / "port"


LOG_BYTES = 8 * 1024 * 1024
"""The log of a daemon in the background begins a new file beyond this size; one older is kept."""


def _open_log(log: Path) -> None:
    """Make ``log`` standard error; one that is full gets another name before, of which one is kept.

    Raises ``OSError``.
    """
    with contextlib.suppress(FileNotFoundError):
        if log.lstat().st_size > LOG_BYTES:
            log.replace(f"{log}.1")
    opened = open_safely(str(log), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    # What writes to standard error past Python (a fatal error of the interpreter) gets there too.
    os.dup2(opened, 2)
    os.close(opened)


class ErrorIgnoringStream:
    """A text stream that drops its output once its reader is gone, without an error.

    A daemon outlives the terminal it was started in, and the program that reads its logs.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._log: Path | None = None

    @contextlib.contextmanager
    def in_file(self, log: Path | None) -> Iterator[None]:
        """Let standard error lead to the end of the file ``log``; None: leave it.

        If the block raises ``StartupError``, standard error is the old one again: the reason is for
        the program that started this one. Raises ``StartupError`` if the file cannot be used.
        """
        if log is None:
            yield
            return
        before = os.dup(2)
        try:
            try:
                _open_log(log)
            except OSError as error:
                raise cannot_start("write", log, error) from error
            self._log = log
            yield
        except StartupError:
            os.dup2(before, 2)
            raise
        finally:
            self._log = None
            os.close(before)

    def write(self, text: str) -> None:
        """Write ``text``, or drop it."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._give_up(error)

    def flush(self) -> None:
        """Flush the stream."""
        try:
            self._stream.flush()
            if self._log is not None and os.fstat(self._stream.fileno()).st_size > LOG_BYTES:
                _open_log(self._log)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        if self._log is not None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            return  # a file takes more once the disk does
        # The null device replaces the descriptor: the buffered text would fail again at the exit.
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


def wants_colours(environment: Mapping[str, str]) -> bool:
    """Return whether to use colours on a terminal (https://no-color.org)."""
    return not environment.get("NO_COLOR") and environment.get("TERM", "dumb") != "dumb"


def configure_logs(level: str) -> ErrorIgnoringStream:
    """Write structured logs to standard error: text on a terminal, otherwise JSON lines.

    Returns the stream of the logs.
    """
    stream = ErrorIgnoringStream(sys.stderr)
    on_terminal = sys.stderr.isatty()
    renderer = (
        structlog.dev.ConsoleRenderer(colors=wants_colours(os.environ))
        if on_terminal
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", stream)),
    )
    # Libraries use the standard library's logging; only their errors are of interest.
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    return stream

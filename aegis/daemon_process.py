"""The daemon as a process: one per root, its logs, its limits, the port it remembers."""

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
from aegis.state.registry import RegistryError
from aegis.state.root import State, UntrustedState, make_directory, write_whole
from aegis.state.sealing import Seals
from aegis.state.state_files import Guard, UnsafeFile, open_directory, open_safely, read_safely
from aegis.trust import NO_PROGRAMS, NamedPrograms, adopt_state, examine

STATE_VERSION = 1
"""The layout of the state directory; a newer one is refused."""

MIN_KERNEL = (5, 4)
"""The oldest Linux with all that is used here (pidfd_open waits for shells)."""


class HeldRoot(NamedTuple):
    """The root that this process is the daemon of: its state, what signs it, its locks."""

    state: State
    seals: Seals
    lock: int
    directory: int

    @property
    def guard(self) -> Guard:
        """What keeps this daemon's files apart from those of a state put in its place."""
        found = os.fstat(self.directory)
        return Guard(str(self.state.directory), found.st_dev, found.st_ino)

    def disk(self) -> OsDisk:
        """The disk for all files of the state."""
        return OsDisk(self.seals, self.guard)

    def loss_reason(self) -> str | None:
        """How it shows that the state is not this daemon's any more; None while it is."""
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
        """Whether what is at the path of the state is this daemon's."""
        try:
            return os.path.samestat(self.state.directory.lstat(), os.fstat(self.directory))
        except OSError:
            return False


@contextlib.contextmanager
def hold_root(
    state: State, *, trust: bool = False, programs: NamedPrograms = NO_PROGRAMS
) -> Iterator[HeldRoot]:
    """Be the one daemon of this root, in a state directory that this version understands.

    The state must be one that this user's daemons made in this root, and so must each of its files
    be; ``trust`` takes over what is there. A configuration that names ``programs`` must have been
    trusted as it is. The locks are the kernel's (flock), so a crash cannot leave them behind.
    Raises ``StartupError``: then nothing was changed.
    """
    check_platform()
    with contextlib.ExitStack() as held:
        try:
            state_id = examine(state, trust=trust, programs=programs)
            make_directory(state)
            directory = _opened(held, open_directory(str(state.directory)))
            lock = _opened(held, open_safely(str(state.lock), os.O_RDWR | os.O_CREAT))
            _take_locks(lock, directory, state)
            seals = adopt_state(state, state_id, trust=trust, programs=programs)
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
        _check_version(state)
        keep_out_of_repositories(state)
        yield HeldRoot(state, seals, lock, directory)


def _opened(held: contextlib.ExitStack, fd: int) -> int:
    held.callback(os.close, fd)
    return fd


def reset_ignored_signals() -> None:
    """Signals that it was started to ignore (``nohup``, ``&`` in a script) do nothing to a daemon.

    But shells get them with their usual effect: what is ignored stays so in all that is started,
    and an interactive shell cannot change it; what is handled does not. Nothing is blocked either.
    """
    for number in signal.valid_signals() - _LEFT_TO_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


_LEFT_TO_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}
"""It ignores them by itself, and gives them back to what it starts."""


def _do_nothing(_number: int, _frame: object) -> None:
    return


def cannot_start(action: str, path: Path, error: OSError) -> StartupError:
    """Return the error for a disk that refuses ``action``, a verb phrase after "cannot"."""
    return StartupError(
        f"cannot {action} {path}: {error.strerror or error}; free some space "
        "on the disk or make it writable, then start again"
    )


HANDOVER_S = 6.0
"""How long a daemon whose lock file was removed may take to notice it and to stop."""


def _take_locks(lock: int, directory: int, state: State) -> None:
    """Lock the file, and the directory as well: the file may be removed while a daemon runs."""
    if not _locked(lock):
        raise _is_held(lock, state)
    if not _locked(directory):
        # Its daemon has lost the file: it stops by itself as soon as it notices.
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


def _is_held(lock: int, state: State) -> StartupError:
    holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
    return StartupError(
        f"a daemon already runs for {state.root} (pid {holder}); stop it with: aegis-actors down"
    )


def _check_version(state: State) -> None:
    path = state.directory / "version"
    try:
        text = (read_safely(str(path), 4096) or b"").decode("ascii").strip("\0\n ")
        if not text:  # there is none, or a loss of power took what was written
            write_whole(path, f"{STATE_VERSION}\n")
            return
    except OSError as error:
        raise cannot_start("use", path, error) from error
    except UnicodeDecodeError as error:
        raise StartupError(f"cannot read {path}: {error}") from error
    if not text.isdecimal() or int(text) > STATE_VERSION:
        raise StartupError(
            f"{state.directory} is of version {text[:20]!r}, made by a newer aegis-actors: "
            "upgrade this one"
        )


def keep_out_of_repositories(state: State) -> None:
    """Let git pass over the state, which holds keys: a root is often somebody's repository.

    What somebody put there instead stays. It works without, so a disk may refuse it.
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


def raise_descriptor_limit() -> int:
    """Allow this process as many files as it may have; gives the limit there was before.

    Shells do not inherit the raised limit: they are given the old one back.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def freeze_imports() -> None:
    """Let the collector of garbage pass over everything that there is by now.

    For what lasts as long as the process: to look through it again and again, and once more at the
    end, takes a tenth of a second each time.
    """
    gc.freeze()


def remembered_port(state: State) -> int | None:
    """The port that the last daemon of this root chose, if any."""
    try:
        text = (read_safely(str(_port_file(state)), 64) or b"").decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() and 0 < int(text) < 65_536 else None


def remember_port(state: State, port: int) -> None:
    """Let the next daemon of this root use the same port: configured clients go on working.

    A kill at any moment leaves the port that was there, or this one.
    """
    if remembered_port(state) != port:
        with contextlib.suppress(OSError):
            write_whole(_port_file(state), f"{port}\n")


def _port_file(state: State) -> Path:
    return state.directory / "port"


class ErrorIgnoringStream:
    """``stream``, whose reader may go away: then what is written is lost, and nothing fails.

    A daemon outlives the window that it was started in, and the program that reads its logs.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write ``text``, if anybody can still have it."""
        try:
            self._stream.write(text)
        except OSError:
            self._give_up()

    def flush(self) -> None:
        """Hand on what was written."""
        try:
            self._stream.flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """The null device takes its place: what is still held would fail again at the exit."""
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


def wants_colours(environment: Mapping[str, str]) -> bool:
    """Whether a terminal of this environment is to get colours (https://no-color.org)."""
    return not environment.get("NO_COLOR") and environment.get("TERM", "dumb") != "dumb"


def configure_logs(level: str) -> None:
    """Structured logs on standard error: readable on a terminal, JSON lines elsewhere."""
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
        logger_factory=structlog.PrintLoggerFactory(
            cast("TextIO", ErrorIgnoringStream(sys.stderr))
        ),
    )
    # Libraries log through the standard library; only what is worth a person's time comes through.
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)

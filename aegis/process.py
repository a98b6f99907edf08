"""The daemon as a process: one per root, its logs, its limits, the port it remembers."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO, cast

import structlog

from aegis.errors import StartupError
from aegis.root import State, make_directory, write_whole

STATE_VERSION = 1
"""The layout of the state directory; a newer one is refused."""

MIN_KERNEL = (5, 4)
"""The oldest Linux with all that is used here (pidfd_open waits for shells)."""


@contextlib.contextmanager
def hold_root(state: State) -> Iterator[None]:
    """Be the one daemon of this root, in a state directory that this version understands.

    The lock is the kernel's (flock), so a crash cannot leave it behind. Raises ``StartupError``.
    """
    check_platform()
    try:
        make_directory(state)
        state.directory.chmod(0o700)
        lock = os.open(state.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartupError(
            f"cannot use {state.directory}: {error.strerror}; the daemon keeps its state there"
        ) from error
    try:
        _take_lock(lock, state)
        _check_version(state)
        keep_out_of_repositories(state)
        yield
    finally:
        os.close(lock)


def let_shells_heed_signals() -> None:
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
    """The sentence of a start that the disk refuses; ``action`` fits behind "cannot"."""
    return StartupError(
        f"cannot {action} {path}: {error.strerror or error}; put the disk right (free some space, "
        "make it writable), then start again"
    )


def _take_lock(lock: int, state: State) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
        raise StartupError(
            f"a daemon already runs for {state.root} (pid {holder}); stop it with: "
            "aegis-actors down"
        ) from None
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        raise cannot_start("write", state.lock, error) from error


def _check_version(state: State) -> None:
    path = state.directory / "version"
    try:
        text = path.read_text(encoding="ascii").strip("\0\n ") if path.exists() else ""
        if not text:  # there is none, or a loss of power took what was written
            path.write_text(f"{STATE_VERSION}\n", encoding="ascii")
            path.chmod(0o600)
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
        if not path.exists():
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


def keep_what_is_there() -> None:
    """Let the collector of garbage pass over everything that there is by now.

    For what lasts as long as the process: to look through it again and again, and once more at the
    end, takes a tenth of a second each time.
    """
    gc.freeze()


def remembered_port(state: State) -> int | None:
    """The port that the last daemon of this root chose, if any."""
    try:
        text = _port_file(state).read_text(encoding="ascii").strip()
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


class LastingStream:
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


def likes_colours(environment: Mapping[str, str]) -> bool:
    """Whether a terminal of this environment is to get colours (https://no-color.org)."""
    return not environment.get("NO_COLOR") and environment.get("TERM", "dumb") != "dumb"


def configure_logs(level: str) -> None:
    """Structured logs on standard error: readable on a terminal, JSON lines elsewhere."""
    on_terminal = sys.stderr.isatty()
    renderer = (
        structlog.dev.ConsoleRenderer(colors=likes_colours(os.environ))
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
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", LastingStream(sys.stderr))),
    )
    # Libraries log through the standard library; only what is worth a person's time comes through.
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)

"""The standard streams of a verb, made usable even if the caller closed or blocked them.

Standard library only.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


STANDARD_ERROR = 2


class OutputLost(OSError):
    """Standard output could not be written; ``errno`` is the reason."""


class _Descriptor(io.FileIO):
    """A descriptor for writing whose failures raise ``OutputLost``.

    Failures of standard error are ignored: messages for people must not change what a verb does or
    its exit code. If another process made the descriptor non-blocking (the flag belongs to the
    open file, not to the process), a write waits for room instead of failing.
    """

    def write(self, data: Any) -> int:
        """Write all of ``data``."""
        view = memoryview(data).cast("B")
        written = 0
        while written < len(view):
            try:
                count = super().write(view[written:])
            except OSError as error:
                if self.fileno() == STANDARD_ERROR:
                    break
                raise OutputLost(error.errno, os.strerror(error.errno or 0)) from None
            if count is None:
                self._wait_for_room()
            else:
                written += count
        return len(view)

    def _wait_for_room(self) -> None:
        poll = select.poll()
        poll.register(self.fileno(), select.POLLOUT)
        poll.poll()


def prepare() -> None:
    """Make ``sys.stdin``, ``sys.stdout`` and ``sys.stderr`` usable. Called once, at the start.

    The next file or socket that is opened would get the number of a closed descriptor. So the null
    device is opened in its place; for standard output read-only, so that a write fails as it does
    on a closed descriptor.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number: this one
            os.set_inheritable(descriptor, True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 -- stays open
    sys.stdout = _writer(1, sys.stdout)
    sys.stderr = _writer(2, sys.stderr)


def _writer(descriptor: int, before: Any) -> io.TextIOWrapper:
    """Return a stream on ``descriptor`` with the encoding and buffering of ``before``.

    A character missing in the encoding is escaped: a locale must not make a verb fail.
    """
    raw = _Descriptor(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None),
        errors="backslashreplace",
        line_buffering=descriptor == STANDARD_ERROR or raw.isatty(),
        write_through=getattr(before, "write_through", False),
    )


def flush() -> None:
    """Write the buffered output. Raises ``OutputLost``."""
    sys.stdout.flush()
    sys.stderr.flush()


def discard() -> None:
    """Discard the buffered and all further standard output, after a write has failed."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def reason(error: OSError) -> str:
    """Return why the output could not be written; empty if its reader closed the pipe."""
    if error.errno in (None, errno.EPIPE):
        return ""
    return f"the output could not be written: {os.strerror(error.errno)}"

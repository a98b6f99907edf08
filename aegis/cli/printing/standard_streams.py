"""The standard streams of a verb: usable whatever the caller has closed, filled up or left.

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
    """Standard output could not be written; ``errno`` says why."""


class _Descriptor(io.FileIO):
    """A descriptor for writing whose failures are ``OutputLost``.

    Those of standard error are none: what is written there is for people, and that nobody can have
    it must not change what a verb does or exits with.

    Where another process made it non-blocking (the flag belongs to the open file, not to the
    process), a write waits until there is room, instead of failing.
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

    A descriptor that is closed would be given to the next file or socket that is opened. It is
    taken by the null device instead: to read from, for standard output, so that a write fails as
    it does on a closed descriptor.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free one: this one
            os.set_inheritable(descriptor, True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 -- it stays open
    sys.stdout = _writer(1, sys.stdout)
    sys.stderr = _writer(2, sys.stderr)


def _writer(descriptor: int, before: Any) -> io.TextIOWrapper:
    """A stream on ``descriptor`` that encodes and buffers as ``before``; None: it was closed.

    A character that the encoding has not is written as an escape: a locale must not end a verb.
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
    """Write what is buffered. Raises ``OutputLost``."""
    sys.stdout.flush()
    sys.stderr.flush()


def discard() -> None:
    """Send what standard output still holds, and what follows, nowhere: writing it has failed."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def reason(error: OSError) -> str:
    """Why the output could not be written, in words; empty if its reader went away.

    A reader that goes away is no failure that needs a sentence: it has had enough.
    """
    if error.errno in (None, errno.EPIPE):
        return ""
    return f"the output could not be written: {os.strerror(error.errno)}"

"""Long polls for a terminal's output: the shell's side.

Each reader is a task that sleeps until there is new output. Without readers an output costs one
test; with readers one event, until they have run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import attrs
import trio

from actors import Reply
from aegis.errors import AegisError, Busy
from aegis.journal.raw_log import RawLog
from aegis.protocol.output import OutputChunk, Progress
from aegis.terminals.messages import (
    NO_OUTPUT,
    CommandKey,
    FetchLine,
    FetchOutput,
    FetchPrinted,
    PrintedSoFar,
)
from aegis.terminals.output.command_progress import CommandProgress
from aegis.terminals.output.notifier import Notifier
from aegis.terminals.output.reading import check_cursor, read_output
from aegis.terminals.output.shell_output import CommandOutput

T = TypeVar("T")

MAX_READERS = 256
"""Limit of calls that wait for output of one terminal."""

COALESCE_S = 0.02
"""Time, in seconds, for which output is collected after the first byte that a reader waited for."""


class TrackedShell(Protocol):
    """The running shell, as readers see it."""

    @property
    def is_running(self) -> bool:
        """Whether a command is running."""

    @property
    def printed(self) -> CommandOutput:
        """The output of the current command, and the cursor of its end."""

    @property
    def submitted(self) -> int | None:
        """The call whose text was sent to the shell and did not begin yet."""

    def newest_line(self) -> str:
        """Return the newest line of output."""


@attrs.define(eq=False)
class _OutputRead:
    """One call. Its output ends at ``end``, known by the request or by ``progress``."""

    reply: Reply[OutputChunk] | Reply[Progress]
    end: int | None = None
    progress: CommandProgress | None = None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)


class OutputReaders:
    """The readers of one terminal.

    ``flush`` writes the raw log's buffer to its file: output that a reader has seen survives a
    kill. ``tracker`` returns the tracker of the running shell, None without one. ``progress_of``
    returns the progress of a command, given the submitted call; it raises ``Unavailable`` if that
    is not known. Notify ``came`` of new output.
    """

    def __init__(
        self,
        name: str,
        raw_log: RawLog,
        *,
        flush: Callable[[], None],
        tracker: Callable[[], TrackedShell | None],
        progress_of: Callable[[CommandKey, int | None], CommandProgress],
        start_soon: Callable[..., object],
    ) -> None:
        self._name = name
        self._progress_of = progress_of
        self._raw_log = raw_log
        self._flush = flush
        self._tracker = tracker
        self._start_soon = start_soon
        self._readers: dict[_OutputRead, None] = {}  # an empty set takes 0.2 KiB
        self.came = Notifier()
        self._ended = Notifier()
        self._is_over = False

    def handle_news(self, news: object) -> None:
        """Take a message that was sent to the front: a command may have ended."""
        for reader in self._readers:
            if reader.progress is not None and reader.end is None:
                reader.progress = reader.progress.updated(news)
                reader.end = reader.progress.ended_at
                if reader.end is not None:
                    self.came.notify()
                    self._ended.notify()

    def end(self) -> None:
        """Answer all readers now: no more output will come."""
        self._stop()
        self.came.notify()

    def close(self) -> None:
        """Cancel all readers before the raw log is closed."""
        self._stop()
        for reader in self._readers:
            reader.scope.cancel()

    def take(self, request: FetchOutput | FetchLine | FetchPrinted, reply: Reply[Any]) -> None:
        """Answer a request about the output. Raises ``InvalidRequest`` and ``Busy``."""
        match request:
            case FetchOutput():
                self.fetch(request, reply)
            case FetchLine():
                self.follow(request, reply)
            case FetchPrinted():
                self._flush()
                tracker = self._tracker()
                output = NO_OUTPUT if tracker is None else tracker.printed.snapshot()
                reply.send(PrintedSoFar(output=output, raw_end=self._raw_log.position))

    def fetch(self, request: FetchOutput, reply: Reply[OutputChunk]) -> None:
        """Answer a request for output. Raises ``InvalidRequest``, ``Busy``, ``Unavailable``."""
        if request.cursor is None:
            request = attrs.evolve(request, cursor=self._raw_log.position)
        else:
            check_cursor(self._raw_log, self._name, request.cursor)
        end, progress = request.end, None
        if request.command is not None:
            tracker = self._tracker()
            progress = self._progress_of(
                request.command, None if tracker is None else tracker.submitted
            )
            end = progress.ended_at
        reader = self._added(reply)
        reader.end, reader.progress = end, progress
        self._start_soon(self._answer_output, reader, request, reply)

    def follow(self, request: FetchLine, reply: Reply[Progress]) -> None:
        """Answer a request for the newest line. Raises ``Busy``."""
        self._start_soon(self._answer_line, self._added(reply), request, reply)

    def _stop(self) -> None:
        self._is_over = True
        self._ended.notify()

    def _added(self, reply: Reply[OutputChunk] | Reply[Progress]) -> _OutputRead:
        if len(self._readers) >= MAX_READERS:
            for reader in [each for each in self._readers if each.reply.is_settled]:
                reader.scope.cancel()
                del self._readers[reader]
        if len(self._readers) >= MAX_READERS:
            raise Busy(
                f"{MAX_READERS} calls already wait for output of terminal {self._name!r}; try "
                "again later"
            )
        reader = _OutputRead(reply)
        self._readers[reader] = None
        return reader

    async def _answer_output(
        self, reader: _OutputRead, request: FetchOutput, reply: Reply[OutputChunk]
    ) -> None:
        deadline = trio.current_time() + request.wait_s
        try:
            with reader.scope:
                chunk = await self._read(reader, request)
                while chunk.next_cursor == request.cursor and await self._more_by(deadline, reader):
                    chunk = await self._read(reader, request)
                _answer(reply, chunk)
        except AegisError as error:
            reply.fail(error)
        finally:
            self._readers.pop(reader, None)

    async def _answer_line(
        self, reader: _OutputRead, request: FetchLine, reply: Reply[Progress]
    ) -> None:
        try:
            with reader.scope:
                while self._raw_log.position <= request.after and await self._more_by(math.inf):
                    pass
                tracker = self._tracker()
                line = None if tracker is None else tracker.newest_line() or None
                _answer(reply, Progress(line=line, cursor=self._raw_log.position))
        finally:
            self._readers.pop(reader, None)

    async def _read(self, reader: _OutputRead, request: FetchOutput) -> OutputChunk:
        await trio.lowlevel.checkpoint_if_cancelled()  # the log may have been closed meanwhile
        chunk = await read_output(
            self._raw_log,
            request,
            is_running=lambda: self._is_running(reader),
            end=lambda: self._end_for(reader),
        )
        self._flush()  # after reading: more may have come meanwhile, and is in the chunk
        return chunk

    def _end_for(self, reader: _OutputRead) -> int | None:
        """Return the end of the output, as far as it is known.

        While the command is open that is a guess: prompt and echo follow, unless it continues.
        """
        tracker = self._tracker()
        if reader.end is None and reader.progress is not None and reader.progress.runs and tracker:
            return tracker.printed.ended_at
        return reader.end

    def _is_running(self, reader: _OutputRead) -> bool:
        if reader.end is not None or reader.progress is not None:
            return reader.end is None
        tracker = self._tracker()
        return tracker is not None and tracker.is_running

    async def _more_by(self, deadline: float, reader: _OutputRead | None = None) -> bool:
        """Wait for more output; return False if the caller must stop waiting.

        The end of the output of ``reader`` counts as more: it is read once again then.
        """
        has_ended = reader is not None and reader.end is not None
        if self._is_over or has_ended or trio.current_time() >= deadline:
            return False
        with trio.move_on_at(deadline) as waiting:
            await self.came.wait()
        if waiting.cancelled_caught:
            return False
        if not self._is_over and (reader is None or reader.end is None):
            with trio.move_on_after(COALESCE_S):
                await self._ended.wait()
        return True


def _answer(reply: Reply[T], value: T) -> None:
    if not reply.is_settled:  # the caller may have gone
        reply.send(value)

"""Who reads a terminal's output as it comes: the shell's side of long polls.

Each reader is a task that sleeps until there is something new. Nobody waits: an output costs one
test. Somebody waits: one event, then nothing until the readers have looked.
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
from aegis.terminals.command_key import CommandKey
from aegis.terminals.messages import (
    NO_OUTPUT,
    FetchLine,
    FetchOutput,
    FetchPrinted,
    PrintedSoFar,
)
from aegis.terminals.output.bell import Bell
from aegis.terminals.output.heard import Heard
from aegis.terminals.output.printed import Printed
from aegis.terminals.output.reading import check_cursor, read_output

T = TypeVar("T")

MAX_READERS = 256
"""Calls that may wait for output of one terminal at a time."""

COALESCE_S = 0.02
"""After the first byte somebody waited for, the next ones are gathered for so long."""


class Followed(Protocol):
    """What readers ask about the shell that runs."""

    @property
    def is_running(self) -> bool:
        """Whether a command runs."""

    @property
    def printed(self) -> Printed:
        """Its output, and where that ended."""

    @property
    def submitted(self) -> int | None:
        """The call whose text is with the shell and did not begin yet."""

    def newest_line(self) -> str:
        """What it printed last."""


@attrs.define(eq=False)
class _Reader:
    """One call. ``end`` is where its output ends, known or ``heard`` in the news of its command."""

    reply: Reply[OutputChunk] | Reply[Progress]
    end: int | None = None
    heard: Heard | None = None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)


class OutputReaders:
    """The readers of one terminal. An ``OutputObserver``.

    ``flush`` puts what was printed into the raw log's file: what a reader has seen survives a
    kill. ``tracker`` gives what follows the shell that runs now, None while there is none, and
    ``heard`` how far a command has come, given what is ``submitted``; it raises ``Unavailable`` if
    that is not known.
    """

    def __init__(
        self,
        name: str,
        raw_log: RawLog,
        *,
        flush: Callable[[], None],
        tracker: Callable[[], Followed | None],
        heard: Callable[[CommandKey, int | None], Heard],
        start_soon: Callable[..., object],
    ) -> None:
        self._name = name
        self._heard = heard
        self._raw_log = raw_log
        self._flush = flush
        self._tracker = tracker
        self._start_soon = start_soon
        self._readers: dict[_Reader, None] = {}  # an empty set takes 0.2 KiB
        self._came = Bell()
        self._ended = Bell()
        self._is_over = False

    def output(self, data: bytes, cursor: int) -> None:
        """Something was printed."""
        self._came.ring()

    def told(self, news: object) -> None:
        """The front was told this: a command may have ended, and with it what somebody reads."""
        for reader in self._readers:
            if reader.heard is not None and reader.end is None:
                reader.heard = reader.heard.hear(news)
                reader.end = reader.heard.ended_at
                if reader.end is not None:
                    self._came.ring()
                    self._ended.ring()

    def end(self) -> None:
        """Nothing more will be printed: everybody is answered, and nobody waits again."""
        self._stop()
        self._came.ring()

    def close(self) -> None:
        """The raw log will be closed: nobody reads it any more."""
        self._stop()
        for reader in self._readers:
            reader.scope.cancel()

    def take(self, request: FetchOutput | FetchLine | FetchPrinted, reply: Reply[Any]) -> None:
        """Answer what somebody asks about the output. Raises ``InvalidRequest``, ``Busy``."""
        match request:
            case FetchOutput():
                self.fetch(request, reply)
            case FetchLine():
                self.follow(request, reply)
            case FetchPrinted():
                self._flush()
                tracker = self._tracker()
                output = NO_OUTPUT if tracker is None else tracker.printed.so_far()
                reply.send(PrintedSoFar(output=output, raw_end=self._raw_log.position))

    def fetch(self, request: FetchOutput, reply: Reply[OutputChunk]) -> None:
        """Answer a request for output. Raises ``InvalidRequest``, ``Busy``, ``Unavailable``."""
        if request.cursor is None:
            request = attrs.evolve(request, cursor=self._raw_log.position)
        else:
            check_cursor(self._raw_log, self._name, request.cursor)
        end, heard = request.end, None
        if request.command is not None:
            tracker = self._tracker()
            heard = self._heard(request.command, None if tracker is None else tracker.submitted)
            end = heard.ended_at
        reader = self._added(reply)
        reader.end, reader.heard = end, heard
        self._start_soon(self._answer_output, reader, request, reply)

    def follow(self, request: FetchLine, reply: Reply[Progress]) -> None:
        """Answer a request for the newest line. Raises ``Busy``."""
        self._start_soon(self._answer_line, self._added(reply), request, reply)

    def _stop(self) -> None:
        self._is_over = True
        self._ended.ring()

    def _added(self, reply: Reply[OutputChunk] | Reply[Progress]) -> _Reader:
        if len(self._readers) >= MAX_READERS:
            for reader in [each for each in self._readers if each.reply.is_settled]:
                reader.scope.cancel()
                del self._readers[reader]
        if len(self._readers) >= MAX_READERS:
            raise Busy(
                f"{MAX_READERS} calls already wait for output of terminal {self._name!r}; try "
                "again later"
            )
        reader = _Reader(reply)
        self._readers[reader] = None
        return reader

    async def _answer_output(
        self, reader: _Reader, request: FetchOutput, reply: Reply[OutputChunk]
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
        self, reader: _Reader, request: FetchLine, reply: Reply[Progress]
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

    async def _read(self, reader: _Reader, request: FetchOutput) -> OutputChunk:
        await trio.lowlevel.checkpoint_if_cancelled()  # the log may have been closed meanwhile
        chunk = await read_output(
            self._raw_log,
            request,
            is_running=lambda: self._is_running(reader),
            end=lambda: self._end_for(reader),
        )
        self._flush()  # after reading: more may have come meanwhile, and is in the chunk
        return chunk

    def _end_for(self, reader: _Reader) -> int | None:
        """Where its output ends, or seems to: behind that is prompt and echo, unless it goes on."""
        tracker = self._tracker()
        if reader.end is None and reader.heard is not None and reader.heard.runs and tracker:
            return tracker.printed.ended_at
        return reader.end

    def _is_running(self, reader: _Reader) -> bool:
        if reader.end is not None or reader.heard is not None:
            return reader.end is None
        tracker = self._tracker()
        return tracker is not None and tracker.is_running

    async def _more_by(self, deadline: float, reader: _Reader | None = None) -> bool:
        """Wait until something was printed; False if that is not to be waited for any more.

        Also until what ``reader`` reads has ended: it looks once more then, and waits no longer.
        """
        has_ended = reader is not None and reader.end is not None
        if self._is_over or has_ended or trio.current_time() >= deadline:
            return False
        with trio.move_on_at(deadline) as waiting:
            await self._came.wait()
        if waiting.cancelled_caught:
            return False
        if not self._is_over and (reader is None or reader.end is None):
            with trio.move_on_after(COALESCE_S):
                await self._ended.wait()
        return True


def _answer(reply: Reply[T], value: T) -> None:
    if not reply.is_settled:  # who went away is not late
        reply.send(value)

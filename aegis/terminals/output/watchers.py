"""``Watchers``: the streams of a terminal's output as bytes: the shell's side.

Each watcher requests the next bytes when it can take them, and waits only if there are none. So an
idle watcher costs nothing, and a flood costs each watcher one read per message.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from actors import Reply
from aegis.errors import AegisError, Busy
from aegis.journal.raw_log import RawLog
from aegis.protocol.feeds import FollowOutput, OutputNews, View
from aegis.protocol.streams import MAX_CHUNK_BYTES
from aegis.terminals.output.reading import check_cursor
from aegis.terminals.output.window import WindowSizes

MAX_WATCHERS = 1024
"""Limit of streams that wait for output of one terminal."""

_Read = dict[tuple[int, int, bool], tuple[int, bytes]]


@attrs.frozen
class _Watcher:
    """A waiting stream, which has all output before ``cursor``."""

    request: FollowOutput
    cursor: int
    reply: Reply[OutputNews]


class Watchers:
    """The watchers of the terminal ``name``, whose shell's actor has the path ``source``.

    ``view`` and ``is_alternate`` return the terminal's state, ``sizes`` are
    those of its window. ``flush`` writes the raw log's buffer to its file: output that was sent
    survives a kill.
    """

    def __init__(
        self,
        name: str,
        source: str,
        raw_log: RawLog,
        *,
        view: Callable[[], View],
        sizes: WindowSizes,
        is_alternate: Callable[[], bool],
        flush: Callable[[], None],
        start_soon: Callable[..., object],
    ) -> None:
        self._name = name
        self._source = source
        self._raw_log = raw_log
        self._view = view
        self._sizes = sizes
        self._is_alternate = is_alternate
        self._flush = flush
        self._start_soon = start_soon
        self._waiting: list[_Watcher] = []
        self._is_answering = False
        self._is_over = False

    def changed(self) -> None:
        """Answer the watchers to whom output or a change is new, after other tasks ran."""
        if self._waiting and not self._is_answering:
            self._is_answering = True
            self._start_soon(self._answer_waiting)

    def end(self) -> None:
        """Note that no more output will come: each watcher learns it after the last byte."""
        self._is_over = True
        self.changed()

    def take(self, request: FollowOutput, reply: Reply[OutputNews]) -> None:
        """Answer now, or once there is output or a change. Raises ``AegisError``."""
        cursor = self._raw_log.position if request.cursor is None else request.cursor
        check_cursor(self._raw_log, self._name, cursor)
        watcher = _Watcher(request, cursor, reply)
        if self._has_news(watcher):
            reply.send(self._news(watcher, {}))
            self._flush()
        else:
            self._make_room()
            self._waiting.append(watcher)

    def _make_room(self) -> None:
        if len(self._waiting) >= MAX_WATCHERS:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_WATCHERS:
            raise Busy(f"{MAX_WATCHERS} streams show terminal {self._name!r} already")

    async def _answer_waiting(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        self._is_answering = False
        waiting, self._waiting = self._waiting, []
        read: _Read = {}
        for watcher in waiting:
            if watcher.reply.is_settled:
                continue
            if not self._has_news(watcher):
                self._waiting.append(watcher)
                continue
            try:
                watcher.reply.send(self._news(watcher, read))
            except AegisError as error:
                watcher.reply.fail(error)
        if len(self._waiting) < len(waiting):
            self._flush()

    def _has_news(self, watcher: _Watcher) -> bool:
        return (
            watcher.request.max_bytes == 0
            or watcher.cursor < self._raw_log.position
            or self._is_over
            or watcher.request.seen != self._view()
        )

    def _news(self, watcher: _Watcher, read: _Read) -> OutputNews:
        """Return the answer for ``watcher``. Equal requests share one ``read``."""
        asked = (watcher.cursor, watcher.request.max_bytes, watcher.request.newest)
        if asked not in read:
            read[asked] = self._read(watcher)
        begin, data = read[asked]
        if watcher.request.max_bytes == 0:
            begin = watcher.cursor
        return OutputNews(
            data=data,
            cursor=begin,
            dropped=begin - watcher.cursor,
            sizes=self._sizes.within(begin, begin + len(data)),
            view=self._view(),
            alternate=self._is_alternate(),
            source=self._source,
            is_over=self._is_over and begin + len(data) >= self._raw_log.position,
        )

    def _read(self, watcher: _Watcher) -> tuple[int, bytes]:
        """Return the bytes for ``watcher`` and the cursor of the first. Raises ``StorageError``."""
        size = min(watcher.request.max_bytes, MAX_CHUNK_BYTES)
        begin, data = self._raw_log.stretch(watcher.cursor, size)
        if begin > watcher.cursor and watcher.request.newest:
            near_end = max(begin, self._raw_log.position - MAX_CHUNK_BYTES)
            begin, data = self._raw_log.stretch(near_end, size)
        return begin, data

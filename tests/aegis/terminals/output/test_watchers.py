"""Who is sent a terminal's output as bytes; a clock that jumps, a raw log on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Reply
from aegis.errors import Busy, InvalidRequest, StorageError
from aegis.journal.raw_log import RawLog
from aegis.protocol.feeds import FollowOutput, OutputNews, View
from aegis.protocol.streams import MAX_CHUNK_BYTES
from aegis.terminals.output.watchers import MAX_WATCHERS, Watchers
from aegis.terminals.output.window import WindowSizes

SEEN = View(cols=80, rows=24, state="idle")


class Output:
    """A raw log that is written to, and its watchers."""

    def __init__(self, directory: Path, nursery: trio.Nursery) -> None:
        self.log = RawLog.open(directory, limit_bytes=200_000)
        self.view = SEEN
        self.sizes = WindowSizes(0, 80, 24)
        self.alternate = False
        self.flushed = 0
        self.watchers = Watchers(
            "build",
            "root/terminals/build/shell",
            self.log,
            view=lambda: self.view,
            sizes=self.sizes,
            is_alternate=lambda: self.alternate,
            flush=self._flush,
            start_soon=nursery.start_soon,
        )

    def _flush(self) -> None:
        self.log.flush()
        self.flushed = self.log.position

    def prints(self, data: bytes) -> None:
        self.log.write(data)
        self.watchers.changed()

    def asks(self, cursor: int | None, size: int = 1000, **options: Any) -> Reply[OutputNews]:
        reply: Reply[OutputNews] = Reply()
        request = FollowOutput(
            name="build", cursor=cursor, max_bytes=size, **{"seen": SEEN, **options}
        )
        self.watchers.take(request, reply)
        return reply


async def news_of(reply: Reply[OutputNews]) -> tuple[int, bytes, int]:
    with trio.fail_after(60):
        news = await reply.wait()
    return news.cursor, news.data, news.dropped


async def test_what_is_there_is_given_at_once_and_is_in_the_file(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    output = Output(tmp_path, nursery)
    output.prints(b"hello")
    assert await news_of(output.asks(0)) == (0, b"hello", 0)
    assert await news_of(output.asks(2, 2)) == (2, b"ll", 0)
    assert output.flushed == 5


async def test_who_has_everything_waits_and_gets_all_that_comes_in_one_turn(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    output = Output(tmp_path, nursery)
    output.prints(b"hello")
    replies = [output.asks(5), output.asks(None), output.asks(5, 3)]
    await trio.testing.wait_all_tasks_blocked()
    assert not any(reply.is_settled for reply in replies)
    output.prints(b" wor")
    output.prints(b"ld")
    assert [await news_of(reply) for reply in replies] == [
        (5, b" world", 0),
        (5, b" world", 0),
        (5, b" wo", 0),
    ]
    assert output.flushed == 11, "what somebody was sent survives a kill"


async def test_a_question_without_room_is_answered_at_once(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    output = Output(tmp_path, nursery)
    output.prints(b"hello")
    news = await output.asks(None, 0).wait()
    assert (news.cursor, news.data, news.view) == (5, b"", SEEN)
    assert news.source == "root/terminals/build/shell"
    assert await news_of(output.asks(3, 0)) == (3, b"", 0)


@pytest.mark.parametrize("other", [{"cols": 100}, {"rows": 3}, {"state": "running"}])
async def test_another_view_wakes_who_waits(
    tmp_path: Path, nursery: trio.Nursery, other: dict[str, Any]
) -> None:
    output = Output(tmp_path, nursery)
    reply = output.asks(0)
    output.watchers.changed()
    await trio.testing.wait_all_tasks_blocked()
    assert not reply.is_settled, "the view is the same"
    output.view = attrs.evolve(SEEN, **other)
    output.watchers.changed()
    news = await reply.wait()
    assert (news.data, news.view) == (b"", output.view)


async def test_who_comes_too_late_gets_the_oldest_that_is_kept_or_the_newest(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    output = Output(tmp_path, nursery)
    for _ in range(1000):
        output.prints(b"x" * 1000)
    output.log.flush()
    kept_from = output.log.oldest
    oldest = await output.asks(0).wait()
    assert 0 < oldest.dropped == oldest.cursor == kept_from
    newest = await output.asks(0, 10**6, newest=True).wait()
    assert newest.dropped == newest.cursor == 1_000_000 - MAX_CHUNK_BYTES
    assert len(newest.data) == MAX_CHUNK_BYTES


async def test_the_end_is_told_behind_the_last_byte(tmp_path: Path, nursery: trio.Nursery) -> None:
    output = Output(tmp_path, nursery)
    output.prints(b"hello")
    waiting = output.asks(5)
    output.watchers.end()
    assert (await waiting.wait()).is_over
    first = await output.asks(0, 3).wait()
    assert (first.data, first.is_over) == (b"hel", False)
    last = await output.asks(3).wait()
    assert (last.data, last.is_over) == (b"lo", True)


async def test_who_went_away_is_passed_over_and_leaves_its_place(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    output = Output(tmp_path, nursery)
    gone = [output.asks(0) for _ in range(MAX_WATCHERS)]
    with pytest.raises(Busy, match="1024 streams show terminal 'build'"):
        output.asks(0)
    for reply in gone:
        with trio.move_on_after(0):
            await reply.wait()
    here = output.asks(0)
    output.prints(b"hello")
    assert await news_of(here) == (0, b"hello", 0)
    assert all(reply.late == 0 for reply in gone)


async def test_a_cursor_beyond_the_output_is_refused(tmp_path: Path, nursery: trio.Nursery) -> None:
    with pytest.raises(InvalidRequest, match="beyond the output"):
        Output(tmp_path, nursery).asks(1)


async def test_a_disk_that_refuses_fails_the_one_who_asked(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = Output(tmp_path, nursery)
    waiting = output.asks(0)

    def refuse(start: int, size: int) -> tuple[int, bytes]:
        raise StorageError("cannot read")

    monkeypatch.setattr(output.log, "stretch", refuse)
    output.prints(b"hello")
    with pytest.raises(StorageError):
        await waiting.wait()


async def test_output_comes_with_the_sizes_of_the_window_at_their_offsets(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    output = Output(tmp_path, nursery)
    output.prints(b"narrow")
    output.sizes.resized(6, 100, 30)
    output.prints(b"wide")
    news = await output.asks(2).wait()
    assert news.data == b"rrowwide"
    sizes = [(size.cursor, size.cols, size.rows) for size in news.sizes]
    assert sizes == [(2, 80, 24), (6, 100, 30)]

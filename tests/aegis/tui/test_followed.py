"""Panes with a stream: it is opened again as long as its subject is there, and once at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from aegis.client.errors import ClientError, CommandFailed
from aegis.tui.panes.followed import FollowedPane


class Stream(FollowedPane):
    """A pane whose stream ends in these ways, one after another; the last one stays open."""

    def __init__(self, ends: Iterable[Exception | None]) -> None:
        self.works: list[Callable[[Any], Awaitable[None]]] = []
        link = SimpleNamespace(call=lambda work, what: self.works.append(work))
        desk: Any = SimpleNamespace(link=link)
        super().__init__(desk, "term:build")
        self.ends = [*ends]
        self.opened = 0

    async def show_stream(self, client: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.opened += 1
        if not self.ends:
            await trio.sleep_forever()
        end = self.ends.pop(0)
        if end is not None:
            raise end


def refusal(code: str) -> CommandFailed:
    return CommandFailed(code, "no")


def run(pane: Stream) -> None:
    """Carry out the calls of the pane over the link, with a connection, for a while."""

    async def connected(wanted: bool) -> None:
        assert wanted

    async def call() -> None:
        client = SimpleNamespace(wait_connected=connected)
        with trio.move_on_after(1_000):
            async with trio.open_nursery() as nursery:
                for work in pane.works:
                    nursery.start_soon(work, client)

    trio.run(call, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("end", [ClientError("gone"), refusal("unavailable")])
def test_a_stream_that_was_lost_is_opened_again(end: Exception) -> None:
    pane = Stream([end, end])
    pane.follow()
    run(pane)
    assert pane.opened == 3


@pytest.mark.parametrize("end", [None, refusal("not_found")])
def test_the_stream_of_a_closed_subject_is_not_opened_again(end: Exception | None) -> None:
    pane = Stream([end])
    pane.follow()
    run(pane)
    assert (pane.opened, pane.is_followed) == (1, False)


def test_another_refusal_is_an_error_and_the_stream_may_be_opened_later() -> None:
    pane = Stream([refusal("forbidden"), None])
    pane.follow()
    with pytest.RaisesGroup(CommandFailed):
        run(pane)
    assert not pane.is_followed
    pane.works.clear()
    pane.follow()
    run(pane)
    assert pane.opened == 2


def test_a_stream_closed_and_opened_before_the_connection_is_opened_once() -> None:
    pane = Stream([])
    pane.follow()
    pane.unfollow()
    pane.follow()
    run(pane)
    assert (len(pane.works), pane.opened) == (2, 1)

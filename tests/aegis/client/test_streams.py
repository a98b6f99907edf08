"""Streams of a client by its own rules: credit, and where each goes on after a loss."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from aegis.client.client import Client
from aegis.client.errors import CommandFailed, ConnectionLost, ProtocolMismatch
from aegis.client.session import ClientSession
from aegis.client.stream_kinds import Chunk, EventKind, Gap, InboxKind, OutputKind, TreeKind
from aegis.client.streams import CREDIT_STEP, MAX_MESSAGES, WINDOW, OutputStream
from aegis.protocol.daemon import TreeNode
from aegis.protocol.output_streams import (
    BellItem,
    Redraw,
    Refused,
    SizeOwnerItem,
    StateItem,
    TitleItem,
    TypingItem,
    WindowSize,
)
from aegis.protocol.streams import (
    OutputBytes,
    TreeChange,
    pack_output,
    unpack_keys,
)
from tests.fakes.message_wire import DaemonEnd, MemoryDaemon

START = {"cols": 80, "rows": 24, "state": "idle", "alternate": False}
NODE = {
    "path": "/",
    "name": "root",
    "kind": "Root",
    "state": "running",
    "mailbox": 0,
    "restarts": 0,
    "uptime_s": 1.0,
    "children": [],
}
CHANGE = {"path": "/a", "kind": "A", "state": "down", "restarts": 1, "mailbox": 0}


@asynccontextmanager
async def connected(daemon: MemoryDaemon, **options: Any) -> AsyncIterator[Client]:
    session = ClientSession(daemon.dial, "the daemon", chance=lambda: 1.0, **options)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.run)
        await session.first()
        yield Client(session)
        nursery.cancel_scope.cancel()


async def answer_open(end: DaemonEnd, *, cursor: int, channel: int = 1) -> dict[str, Any]:
    """Take the next open of output, and open it."""
    frame = await end.next()
    assert (frame["type"], frame["stream"]) == ("open", "terminal_output")
    end.send(type="opened", id=frame["id"], channel=channel, cursor=cursor, **START)
    return frame


def print_at(end: DaemonEnd, cursor: int, data: bytes, channel: int = 1) -> None:
    end.send_raw(pack_output(OutputBytes(channel, cursor, data)))


@asynccontextmanager
async def watching(
    client: Client, end: DaemonEnd, cursor: int = 100, **asked: Any
) -> AsyncIterator[tuple[OutputStream, dict[str, Any]]]:
    """An open stream of output, and the frame that opened it."""
    frames: list[dict[str, Any]] = []

    async def answer() -> None:
        frames.append(await answer_open(end, cursor=cursor))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        async with client.terminals.watch("build", **asked) as output:
            yield output, frames[0]


async def test_output_is_opened_with_a_window_of_credit_and_closed_when_left(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon, handle="ann") as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, frame):
            assert frame["arguments"] == {"name": "build", "from_handle": "ann"}
            assert frame["credit"] == WINDOW
            assert (output.start.cursor, output.start.cols) == (100, 80)
        assert await end.next() == {"type": "close", "id": frame["id"]}


async def test_credit_is_given_back_as_it_is_read_and_not_before(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, frame):
            half = CREDIT_STEP // 2
            for number in range(4):
                print_at(end, 100 + number * half, bytes(half))
            await trio.testing.wait_all_tasks_blocked()
            assert (output.unread, end.waiting()) == (4 * half, 0)
            await anext(output)
            assert end.waiting() == 0
            await anext(output)
            assert await end.next() == {"type": "credit", "id": frame["id"], "amount": CREDIT_STEP}
            assert output.unread == 2 * half


async def test_items_and_gaps_cost_the_characters_of_their_frames(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, frame):
            end.send(type="item", id=frame["id"], item={"state": "running"})
            end.send(type="gap", id=frame["id"], dropped=5, cursor=105)
            await trio.testing.wait_all_tasks_blocked()
            assert output.unread == sum(
                len(text)
                for text in (
                    f'{{"type": "item", "id": {frame["id"]}, "item": {{"state": "running"}}}}',
                    f'{{"type": "gap", "id": {frame["id"]}, "dropped": 5, "cursor": 105}}',
                )
            )
            assert await anext(output) == StateItem(state="running")
            assert await anext(output) == Gap(dropped=5, cursor=105, reason="slow")


async def test_output_goes_on_behind_the_last_byte_that_came_whether_read_or_not(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, _):
            print_at(end, 100, b"before")
            await trio.testing.wait_all_tasks_blocked()
            end.cut()
            end = await daemon.accept()
            again = await answer_open(end, cursor=106, channel=7)
            assert again["arguments"] == {"name": "build", "cursor": 106}
            assert again["credit"] == WINDOW - len(b"before")
            print_at(end, 106, b"after", channel=7)
            assert await anext(output) == Chunk(cursor=100, data=b"before")
            # What changed while there was no connection is in no other item.
            state = [await anext(output) for _ in range(3)]
            assert [type(each) for each in state] == [StateItem, TypingItem, SizeOwnerItem]
            assert await anext(output) == Chunk(cursor=106, data=b"after")


async def test_output_that_nothing_came_of_goes_on_where_it_was_opened(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end, screen=True) as (_, frame):
            assert frame["arguments"] == {"name": "build", "screen": True}
            end.cut()
            end = await daemon.accept()
            again = await answer_open(end, cursor=100)
            assert again["arguments"] == {"name": "build", "cursor": 100}


async def test_output_that_the_daemon_lost_begins_anew_behind_a_gap(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, _):
            print_at(end, 100, b"unsaved")
            await anext(output)
            end.cut()
            end = await daemon.accept()
            refused = await end.next()
            assert refused["arguments"]["cursor"] == 107
            end.refuse(refused, "invalid_request", "cursor 107 is beyond the output")
            again = await answer_open(end, cursor=103)
            assert again["arguments"] == {"name": "build"}
            assert await anext(output) == Gap(dropped=None, cursor=103, reason="reconnected")


async def test_a_stream_whose_terminal_is_gone_breaks(autojump_clock: MockClock) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, _):
            print_at(end, 100, b"last")
            await trio.testing.wait_all_tasks_blocked()
            end.cut()
            end = await daemon.accept()
            end.refuse(await end.next(), "not_found", "there is no terminal 'build'")
            assert await anext(output) == Chunk(cursor=100, data=b"last")
            for _ in range(2):
                with pytest.raises(CommandFailed, match="there is no terminal"):
                    await anext(output)


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [(None, None, None), ("closed", "it was closed", None), ("storage", "no disk", CommandFailed)],
)
async def test_a_stream_ends_as_the_daemon_says(
    autojump_clock: MockClock, code: str | None, message: str | None, error: type | None
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, frame):
            end.send(type="ended", id=frame["id"], code=code, message=message)
            with pytest.raises(error or StopAsyncIteration):
                await anext(output)


async def test_a_stream_that_a_stopping_daemon_ends_goes_on_at_the_next(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, frame):
            print_at(end, 100, b"before")
            end.send(type="ended", id=frame["id"], code="unavailable", message="it stops")
            await trio.testing.wait_all_tasks_blocked()
            end.cut()
            end = await daemon.accept()
            again = await answer_open(end, cursor=106, channel=7)
            assert again["arguments"] == {"name": "build", "cursor": 106}
            await output.type(b"x")
            assert unpack_keys(await end.next_bytes()) == (7, b"x")


async def test_a_stream_that_is_unavailable_on_a_connection_that_stays_breaks(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, frame):
            end.send(type="ended", id=frame["id"], code="unavailable", message="the disk refused")
            with pytest.raises(CommandFailed, match="the disk refused"):
                await anext(output)
            with pytest.raises(CommandFailed, match="the disk refused"):
                await output.type(b"nobody is there")


async def test_an_item_of_another_form_breaks_the_stream(autojump_clock: MockClock) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, frame):
            end.send(type="item", id=frame["id"], item={"colour": "red"})
            with pytest.raises(ProtocolMismatch, match="an item of a stream does not fit"):
                await anext(output)


async def test_keys_go_over_the_channel_of_the_present_connection(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, _), trio.open_nursery() as nursery:
            await output.type("é\r")
            assert unpack_keys(await end.next_bytes()) == (1, "é\r".encode())
            end.cut()
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(output.type, b"later")
            end = await daemon.accept()
            await answer_open(end, cursor=100, channel=7)
            assert unpack_keys(await end.next_bytes()) == (7, b"later")


async def test_keys_without_a_connection_are_given_up_in_time(autojump_clock: MockClock) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon, patience_s=3.0) as client:
        end = await daemon.accept()
        async with watching(client, end) as (output, _):
            daemon.is_down = True
            end.cut()
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(ConnectionLost) as caught:
                await output.type("x")
            assert not caught.value.maybe_done


async def test_a_stream_that_is_never_opened_is_given_up_in_time(autojump_clock: MockClock) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon, patience_s=3.0) as client:
        with pytest.raises(ConnectionLost, match="within 3 s"):
            async with client.terminals.watch("build"):
                raise AssertionError("nobody opens it")


def message(number: int) -> dict[str, Any]:
    texts = dict.fromkeys(("sender", "body", "text", "timestamp"), "x")
    return {"id": f"m{number}", **texts, "task_id": None, "status": None}


async def answer_read(end: DaemonEnd, *numbers: int, limit: int) -> None:
    """Take the next read of the inbox, and answer it with these messages."""
    read = await end.next()
    expected = ("inbox_read", {"unread": False, "limit": limit})
    assert (read["command"], read["arguments"]) == expected
    messages = [message(number) for number in numbers]
    end.reply(read, messages=messages, next=messages[-1]["id"] if messages else None)


async def open_inbox(end: DaemonEnd, after: int | None) -> int:
    """Take the next open of an inbox, open it, and return its number."""
    frame = await end.next()
    assert frame["arguments"] == ({} if after is None else {"after": f"m{after}"})
    end.send(type="opened", id=frame["id"], channel=None)
    number: int = frame["id"]
    return number


async def test_an_inbox_begins_behind_its_newest_message_and_goes_on_behind_the_last(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        end = await daemon.accept()

        async def play() -> None:
            await answer_read(end, 4, limit=1)
            number = await open_inbox(end, after=4)
            end.send(type="item", id=number, item=message(5))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(play)
            async with client.inboxes.watch() as messages:
                assert getattr(await anext(messages), "id", None) == "m5"
                end.cut()
                end = await daemon.accept()
                assert (await end.next())["arguments"] == {"after": "m5"}


async def reopened_while_empty(daemon: MemoryDaemon, end: DaemonEnd) -> tuple[DaemonEnd, int]:
    """Open an empty inbox, lose the connection, and open it again, still empty."""
    await answer_read(end, limit=1)
    await open_inbox(end, after=None)
    await trio.testing.wait_all_tasks_blocked()
    end.cut()
    end = await daemon.accept()
    await answer_read(end, limit=MAX_MESSAGES)
    return end, await open_inbox(end, after=None)


async def test_a_message_that_comes_before_an_empty_inbox_is_opened_again_is_read(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        first = await daemon.accept()

        async def play() -> None:
            end, number = await reopened_while_empty(daemon, first)
            # Message 1 came before the opening. 2 came behind it, and is in the reply as well.
            end.send(type="item", id=number, item=message(2))
            end.send(type="item", id=number, item=message(3))
            await answer_read(end, 1, 2, limit=MAX_MESSAGES)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(play)
            async with client.inboxes.watch() as messages:
                seen = [getattr(await anext(messages), "id", None) for _ in range(3)]
                assert seen == ["m1", "m2", "m3"]


async def test_a_connection_that_is_lost_while_the_inbox_is_read_again_costs_no_message(
    autojump_clock: MockClock,
) -> None:
    daemon = MemoryDaemon()
    async with connected(daemon) as client:
        first = await daemon.accept()

        async def play() -> None:
            end, number = await reopened_while_empty(daemon, first)
            end.send(type="item", id=number, item=message(1))
            await end.next()  # the read; its reply never comes
            end.cut()
            end = await daemon.accept()
            await answer_read(end, 1, limit=MAX_MESSAGES)
            number = await open_inbox(end, after=1)
            end.send(type="item", id=number, item=message(2))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(play)
            async with client.inboxes.watch() as messages:
                seen = [getattr(await anext(messages), "id", None) for _ in range(2)]
                assert seen == ["m1", "m2"]


def test_what_the_items_of_each_stream_become() -> None:
    output = OutputKind(None, "build", cursor=None, screen=True)
    redraw = {"redraw": "\x1b[H", "cursor": 3, "partial": False}
    refused = {"code": "busy", "message": "no"}
    assert output.item({"screen": redraw}) == Redraw(redraw="\x1b[H", cursor=3, partial=False)
    resized = {"resized": {"cols": 3, "rows": 4}, "cursor": 9}
    assert output.item(resized) == WindowSize(cols=3, rows=4)
    assert output.item({"title": "vim"}) == TitleItem(title="vim")
    assert output.item({"bells": 2}) == BellItem(bells=2)
    assert output.item({"typing": None}) == TypingItem(typing=None)
    assert output.item({"size_owner": None}) == SizeOwnerItem(size_owner=None)
    assert output.item({"size_refused": refused}) == Refused(code="busy", message="no")
    assert output.item({"keys_refused": refused}) == Refused(code="busy", message="no")
    assert isinstance(TreeKind(None).item({"snapshot": NODE}), TreeNode)
    assert isinstance(TreeKind(None).item({"delta": CHANGE}), TreeChange)


@pytest.mark.parametrize("kind", [TreeKind(None), EventKind("ann")])
def test_what_begins_anew_after_a_loss_says_so(kind: TreeKind | EventKind) -> None:
    assert kind.opened({}) == []
    assert kind.opened({}) == [Gap(dropped=None, cursor=None, reason="reconnected")]


def test_an_inbox_goes_on_without_a_gap() -> None:
    kind = InboxKind("ann", "m1")
    assert kind.arguments() == {"from_handle": "ann", "after": "m1"}
    assert kind.opened({}) == kind.opened({}) == []

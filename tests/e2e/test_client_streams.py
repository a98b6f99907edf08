"""Streams of the Python client against a real daemon: output, keys, tree, inbox, events; losses."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import trio

import aegis
from aegis.client.client import Client
from aegis.client.errors import CommandFailed
from aegis.client.stream_kinds import OutputValue
from aegis.client.streams import WINDOW, OutputStream
from aegis.protocol.daemon import TreeNode
from aegis.protocol.inboxes import Message
from aegis.protocol.output_streams import (
    Redraw,
    Refused,
    WindowSize,
)
from aegis.protocol.streams import (
    CommandItem,
    TerminalItem,
    TerminalsItem,
    TreeChange,
)
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real

MARKER = re.compile(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


async def read_until(
    output: OutputStream, is_enough: Callable[[bytes], bool]
) -> tuple[bytes, list[OutputValue]]:
    """All bytes until they are enough, and everything that came."""
    data, values = b"", []
    with trio.fail_after(GUARD_S):
        async for value in output:
            values.append(value)
            if isinstance(value, aegis.Chunk):
                data += value.data
            if is_enough(data):
                return data, values
    raise AssertionError(f"the stream ended after {data[-200:]!r}")


def holds(text: bytes) -> Callable[[bytes], bool]:
    """Whether a line of output is exactly this."""
    return lambda data: (
        b"\r\n" + text + b"\r\n" in MARKER.sub(b"", data).replace(b"\x1b[?2004l\r", b"\r\n")
    )


async def test_output_is_what_the_log_has_and_cursors_join(
    daemon: DaemonProcess, terminal: LiveTerminal
) -> None:
    async with (
        aegis.connect(daemon.root) as client,
        client.terminals.watch(terminal.name) as output,
    ):
        await client.terminals.run(terminal.name, "seq 5000; echo end")
        data, values = await read_until(output, holds(b"end"))
        chunks = [value for value in values if isinstance(value, aegis.Chunk)]
    assert chunks[0].cursor == output.start.cursor
    assert [each.next_cursor for each in chunks[:-1]] == [each.cursor for each in chunks[1:]]
    kept = terminal.raw()
    begin = chunks[0].cursor
    assert kept[begin : begin + len(data)] == data


async def test_output_begins_where_it_is_asked_to(
    daemon: DaemonProcess, terminal: LiveTerminal
) -> None:
    async with aegis.connect(daemon.root) as client:
        record = await client.terminals.run(terminal.name, "echo before")
        async with client.terminals.watch(terminal.name, cursor=record.raw_start) as output:
            first = await anext(output)
            assert isinstance(first, aegis.Chunk)
            assert (first.cursor, first.data[:6]) == (record.raw_start, b"before")


async def test_keys_are_typed_and_their_echo_comes(
    daemon: DaemonProcess, terminal: LiveTerminal
) -> None:
    async with (
        aegis.connect(daemon.root) as client,
        client.terminals.watch(terminal.name, screen=True) as output,
    ):
        assert isinstance(await anext(output), Redraw)
        await output.type("echo ty")
        await output.type(b"ped\r")
        await read_until(output, holds(b"typed"))
        await client.terminals.resize(terminal.name, 90, 30)
        with trio.fail_after(GUARD_S):
            while (value := await anext(output)) != WindowSize(cols=90, rows=30):
                assert not isinstance(value, Refused)


async def test_a_stream_ends_when_its_terminal_closes(daemon: DaemonProcess, handle: str) -> None:
    async with aegis.connect(daemon.root) as client:
        await client.terminals.spawn(handle)
        async with client.terminals.watch(handle) as output:
            await client.terminals.close(handle)
            with trio.fail_after(GUARD_S):
                async for _ in output:
                    pass
            with pytest.raises(StopAsyncIteration):
                await anext(output)
            with pytest.raises(CommandFailed, match="this stream is over"):
                await output.type("x")


async def test_a_stream_of_what_is_not_there_is_refused(daemon: DaemonProcess) -> None:
    async with aegis.connect(daemon.root) as client:
        with pytest.raises(CommandFailed, match="there is no terminal 'nowhere'"):
            async with client.terminals.watch("nowhere"):
                raise AssertionError("it is not there")


async def test_who_reads_slowly_holds_a_window_and_misses_nothing_that_is_kept(
    daemon: DaemonProcess, terminal: LiveTerminal
) -> None:
    async with (
        aegis.connect(daemon.root) as client,
        client.terminals.watch(terminal.name) as output,
    ):
        await client.terminals.run(terminal.name, "seq 200000; echo end", timeout=GUARD_S)
        await client.terminals.list()
        assert output.unread <= WINDOW
        data, values = await read_until(output, holds(b"end"))
    assert not [value for value in values if isinstance(value, aegis.Gap)]
    assert len(data) > 4 * WINDOW
    assert output.unread <= WINDOW


@pytest.mark.long
async def test_who_reads_too_slowly_is_told_what_is_missing(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    async with aegis.connect(own_daemon.root) as client:
        await client.terminals.spawn("build")
        async with client.terminals.watch("build") as output:
            await client.terminals.run("build", "seq 20000000 | head -c 80M; echo; echo end")
            data, values = await read_until(output, holds(b"end"))
    [gap] = [value for value in values if isinstance(value, aegis.Gap)]
    assert gap.reason == "slow"
    assert gap.dropped is not None
    behind = values[values.index(gap) + 1]
    assert isinstance(behind, aegis.Chunk)
    before = values[values.index(gap) - 1]
    assert isinstance(before, aegis.Chunk)
    assert gap.cursor == behind.cursor == before.next_cursor + gap.dropped
    assert len(data) + gap.dropped > 80_000_000


async def kill_and_start(daemon: DaemonProcess) -> None:
    await trio.to_thread.run_sync(daemon.kill)
    await trio.to_thread.run_sync(daemon.start)


async def test_output_goes_on_at_its_cursor_when_the_daemon_was_killed(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    async with aegis.connect(own_daemon.root) as client:
        await client.terminals.spawn("build")
        async with client.terminals.watch("build", cursor=0) as output:
            await client.terminals.run("build", "echo first")
            begun, _ = await read_until(output, holds(b"first"))
            await kill_and_start(own_daemon)
            await client.terminals.run("build", "echo second")
            gone_on, values = await read_until(output, holds(b"second"))
        assert not [value for value in values if isinstance(value, aegis.Gap)]
        raw = (own_daemon.state.terminals / "build" / "raw.log").read_bytes()
        assert raw.startswith(begun + gone_on)


async def test_no_message_is_missed_or_doubled_when_the_daemon_was_killed(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    async with (
        aegis.connect(own_daemon.root, handle="ann") as client,
        client.inboxes.watch() as ann,
        aegis.connect(own_daemon.root, handle="bob") as other,
    ):
        await kill_and_start(own_daemon)
        for number in range(3):
            await other.inboxes.handoff("ann", f"message {number}")
        await kill_and_start(own_daemon)
        await other.inboxes.handoff("ann", "message 3")
        seen: list[str] = []
        with trio.fail_after(GUARD_S):
            while len(seen) < 4:
                message = await anext(ann)
                assert isinstance(message, Message)
                seen.append(message.body)
        assert seen == [f"message {number}" for number in range(4)]
        assert len((await client.inboxes.read()).messages) == 4, "reading acknowledged nothing"


def _body(message: Message | aegis.Gap) -> str:
    assert isinstance(message, Message)
    return message.body


async def test_an_inbox_and_the_tree_go_on_when_the_daemon_was_stopped_in_order(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    async with (
        aegis.connect(own_daemon.root, handle="ann") as client,
        client.inboxes.watch() as messages,
        client.tree.watch() as tree,
    ):
        await client.inboxes.handoff("ann", "first")
        with trio.fail_after(GUARD_S):
            assert _body(await anext(messages)) == "first"
            assert isinstance(await anext(tree), TreeNode)
        assert await trio.to_thread.run_sync(own_daemon.stop) == 0
        await trio.to_thread.run_sync(own_daemon.start)
        with trio.fail_after(GUARD_S):
            await client.inboxes.handoff("ann", "second")
            assert _body(await anext(messages)) == "second"
            while not isinstance(await anext(tree), aegis.Gap):
                pass
            assert isinstance(await anext(tree), TreeNode)


async def test_tree_and_events_begin_anew_behind_a_gap_when_the_daemon_was_killed(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    reconnected = aegis.Gap(dropped=None, cursor=None, reason="reconnected")
    async with (
        aegis.connect(own_daemon.root) as client,
        client.tree.watch() as tree,
        client.events() as events,
    ):
        with trio.fail_after(GUARD_S):
            assert isinstance(await anext(tree), TreeNode)
            assert await anext(events) == TerminalsItem(terminals=[])
            await client.terminals.spawn("build")
            opened = await anext(events)
            assert isinstance(opened, TerminalItem)
            assert (opened.event, opened.terminal.name) == ("terminal_opened", "build")
            while not isinstance(await anext(tree), TreeChange):
                pass
            await kill_and_start(own_daemon)
            while await anext(tree) != reconnected:
                pass
            assert isinstance(await anext(tree), TreeNode)
            while await anext(events) != reconnected:
                pass
            listed = await anext(events)
            assert isinstance(listed, TerminalsItem)
            assert [each.name for each in listed.terminals] == ["build"]
            await client.terminals.run("build", "false")
            while not (
                isinstance(event := await anext(events), CommandItem)
                and event.event == "command_finished"
                and event.command.exit == 1
            ):
                pass


async def test_keys_wait_for_the_next_daemon(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    async with aegis.connect(own_daemon.root) as client:
        await client.terminals.spawn("build")
        async with client.terminals.watch("build") as output:
            await kill_and_start(own_daemon)
            await client.terminals.run("build", "true")
            await output.type("echo typed\r")
            await read_until(output, holds(b"typed"))


async def open_many(client: Client, name: str, count: int) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(hold, client, name)


async def hold(client: Client, name: str) -> None:
    async with client.terminals.watch(name):
        await trio.sleep(0.2)


async def test_streams_that_are_left_are_closed_at_the_daemon(
    daemon: DaemonProcess, terminal: LiveTerminal, gate: Gate
) -> None:
    async with aegis.connect(daemon.root) as client:
        for _ in range(3):  # at most 32 may be open at once
            await open_many(client, terminal.name, 30)

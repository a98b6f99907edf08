"""Streams of a real daemon over real WebSockets: output, keys, the tree, inboxes, events."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
import trio

from aegis.protocol.streams import (
    MAX_CHUNK_BYTES,
    OutputBytes,
)
from aegis.terminals.screen.choice import new_emulator
from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess
from tests.e2e.streams import Refused, Stream, StreamEnded, cost, stream_client

pytestmark = pytest.mark.real

SEED = b"X" * 63 + b"\n"


async def test_what_is_typed_is_echoed_and_recorded_under_the_writers_name(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as client:
        stream = await client.open("terminal_output", name=terminal.name, from_handle="alice")
        await stream.type(b"echo h")
        await stream.type(b"''i\r")
        await stream.bytes_until(b"hi\r\n")  # not in the echo of the line: the command has begun
        outcome = await client.call("term_wait", name=terminal.name, seq=0)
    assert (outcome["record"]["cmd"], outcome["record"]["writer"]) == ("echo h''i", "agent:alice")


@pytest.mark.parametrize("over", ["tcp", "unix"])
async def test_a_stream_from_a_cursor_gives_every_byte_once(
    daemon: DaemonProcess, new_terminal: NewTerminal, over: str
) -> None:
    terminal = new_terminal()
    terminal.run("for i in $(seq 2000); do echo line $i; done")
    async with stream_client(daemon, over=over) as client:
        stream = await client.open("terminal_output", name=terminal.name, cursor=0, credit=1000)
        data, cursor = b"", 0
        while b"line 2000\r\n" not in data:
            frame = await stream.next()
            assert isinstance(frame, OutputBytes)
            assert frame.cursor == cursor
            data, cursor = data + frame.data, cursor + len(frame.data)
    assert data == terminal.raw()[: len(data)]


async def test_ten_thousand_keys_typed_one_by_one_arrive_in_order(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    keys = [b"%d\n" % number for number in range(2500)]
    typed = [bytes([byte]) for line in keys for byte in line][:10_000]
    whole = b"".join(typed)
    async with stream_client(daemon) as client:
        stream = await client.open("terminal_output", name=terminal.name)
        await stream.type(b"stty raw -echo; printf rea''dy; head -c %d | md5sum\r" % len(whole))
        await stream.bytes_until(b"ready")
        for key in typed:
            await stream.type(key)
        outcome = await client.call("term_wait", name=terminal.name, seq=0)
        done = await trio.run_process(["md5sum"], stdin=whole, capture_stdout=True)
        assert outcome["record"]["stdout"] == f"ready{done.stdout.decode()}"
        await client.call("term_run", name=terminal.name, cmd="stty sane")


async def test_two_watchers_see_the_same_and_one_that_stops_holds_up_neither(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as one, stream_client(daemon) as two:
        streams = [
            await client.open("terminal_output", name=terminal.name, cursor=0)
            for client in (one, two)
        ]
        deaf = await two.open(
            "terminal_output", name=terminal.name, cursor=0, credit=100, returns_credit=False
        )
        await one.call("term_run", name=terminal.name, cmd="seq 20000; echo the-end")
        seen = [await stream.bytes_until(b"\nthe-end\r\n") for stream in streams]
        end = seen[0].index(b"\nthe-end\r\n")
        assert seen[1][:end] == seen[0][:end]
        costs = list(map(cost, deaf.got))
        assert sum(costs[:-1]) < 100 <= sum(costs)


async def test_output_lost_to_who_gave_no_credit_is_a_gap_and_then_the_newest(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as client:
        stream = await client.open(
            "terminal_output", name=terminal.name, cursor=0, credit=10, returns_credit=False
        )
        flood = "head -c 25000000 /dev/zero | tr '\\0' X; echo; echo the-end"
        record = await client.call("term_run", name=terminal.name, cmd=flood, timeout=120)
        assert record["exit"] == 0
        while not stream.got:
            await trio.lowlevel.checkpoint()
        first = await stream.next()
        assert (len(first.data), len(stream.got)) == (10, 0)
        await stream.give(1_000_000)
        while (gap := await stream.next())["type"] == "item":
            pass  # how the terminal stood in between
        assert gap["cursor"] - gap["dropped"] == first.cursor + 10
        after = await stream.next()
        assert after.cursor == gap["cursor"]
        assert after.cursor >= record["raw_end"] - MAX_CHUNK_BYTES
        assert b"the-end\r\n" in after.data + await _until_end(stream, after.data)


async def _until_end(stream: Stream, seen: bytes) -> bytes:
    return b"" if b"the-end\r\n" in seen else await stream.bytes_until(b"the-end\r\n")


async def test_a_shell_that_dies_does_not_end_the_stream(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as client:
        stream = await client.open("terminal_output", name=terminal.name)
        await stream.type(b"echo o''ne\r")
        await stream.bytes_until(b"one\r\n")
        os.kill(terminal.info["pid"], signal.SIGKILL)
        await stream.item_where(lambda item: item.get("state") == "starting")
        await stream.item_where(lambda item: item.get("state") == "idle")
        await stream.type(b"echo t''wo\r")
        await stream.bytes_until(b"two\r\n")


async def test_a_shell_actor_that_crashes_while_it_is_watched_does_not_end_the_stream(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start(faults="mark.start.after@1=crash")
    terminal = own_daemon.terminal("build")
    async with stream_client(own_daemon) as client:
        stream = await client.open("terminal_output", name="build", cursor=0)
        tree = await client.open("tree")
        await stream.type(b"echo lost\r")
        path = "root/terminals/build/shell"
        await tree.item_where(
            lambda item: (
                "delta" in item and (item["delta"]["path"], item["delta"]["restarts"]) == (path, 1)
            )
        )
        await tree.close()
        await client.call("term_run", name="build", cmd="echo t''wo")
        data = await stream.bytes_until(b"two\r\n")
        assert data == terminal.raw()[: len(data)]
    own_daemon.kill()  # its log tells of the crash


async def test_a_terminal_that_fails_ends_its_streams_and_is_an_event(
    own_daemon: DaemonProcess,
) -> None:
    # The keys make one life of the front crash, and what comes first the next ones. On a busy
    # machine it may take more than four of them: the terminal fails after four in five seconds.
    first, most = 60, 40
    own_daemon.start(
        faults=",".join(f"actor.receive.before[Terminal]@{first + n}=crash" for n in range(most))
    )
    terminal = await trio.to_thread.run_sync(own_daemon.terminal, "build")
    await trio.to_thread.run_sync(terminal.run, "echo kept")
    async with stream_client(own_daemon) as client:
        events = await client.open("events")
        stream = await client.open("terminal_output", name="build", cursor=0)
        for _ in range(2 * first):
            await stream.type(b" ")
        data, end = await stream.all_bytes()
        assert b"kept\r\n" in data
        assert end["code"] == "unavailable"
        assert "terminal 'build' has failed" in end["message"]
        failed = await events.item_where(
            lambda item: item.get("terminal", {}).get("state") == "failed"
        )
        assert failed["event"] == "terminal_changed"
        await client.call("term_close", name="build")
        closed = await events.item_where(lambda item: item["event"] == "terminal_closed")
        assert closed["terminal"]["state"] == "closed"
    own_daemon.kill()  # its log tells of the crashes


async def test_the_window_and_the_state_are_told_beside_the_bytes(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as client:
        stream = await client.open("terminal_output", name=terminal.name)
        assert (stream.opened["cols"], stream.opened["rows"]) == (80, 24)
        assert (stream.opened["state"], stream.opened["alternate"]) == ("idle", False)
        await client.call("term_resize", name=terminal.name, cols=100, rows=30)
        item = await stream.item_where(lambda item: "resized" in item)
        assert item["resized"] == {"cols": 100, "rows": 30}
        assert item["cursor"] >= stream.opened["cursor"]
        # The process that prints is the one that the signal must reach: before its fork the shell
        # itself would take it.
        await stream.type(b"sh -c 'echo be\"\"gun; exec sleep 100'\r")
        await stream.item_where(lambda item: item.get("state") == "running")
        await trio.to_thread.run_sync(terminal.has_printed, "begun")
        await stream.type(b"\x03")
        await stream.item_where(lambda item: item.get("state") == "idle")


async def test_the_screen_is_drawn_and_bytes_go_on_from_there(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    terminal.run("clear; echo first; echo second")
    async with stream_client(daemon) as client:
        shown = await client.call("term_screen", name=terminal.name)
        while shown["cursor"]["col"] == 0:  # the record was there before the whole prompt
            shown = await client.call("term_screen", name=terminal.name)
        stream = await client.open("terminal_output", name=terminal.name, screen=True)
        item = (await stream.item())["screen"]
        assert "first\r\nsecond\r\n" in item["redraw"]
        assert item["redraw"].endswith("\x1b[?2004h\x1b[?25h")
        emulator = new_emulator(24, 80)
        emulator.feed(item["redraw"].encode())
        drawn = emulator.screen()
        assert list(drawn.lines) == shown["lines"]
        assert drawn.cursor == (shown["cursor"]["row"], shown["cursor"]["col"])
        await stream.type(b"x")
        while not isinstance(first := await stream.next(), OutputBytes):
            assert first["item"]["typing"]["writer"] == "human"
        assert first.cursor == item["cursor"]


async def test_above_the_screen_are_the_lines_of_the_main_screen_and_none_of_a_program(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    terminal.run("for i in $(seq 40); do echo above $i.; done")
    terminal.run(
        r"printf '\033[?1049h'; for i in $(seq 40); do echo fu''ll $i.; done; printf '\033[?1049l'"
    )
    async with stream_client(daemon) as client:
        stream = await client.open(
            "terminal_output", name=terminal.name, screen=True, scrollback=100
        )
        redraw = (await stream.item())["screen"]["redraw"]
    assert [f"above {number}.\r\n" in redraw for number in range(1, 41)] == [True] * 40
    assert "full" not in redraw


async def test_a_terminal_that_closes_ends_the_stream_behind_its_last_byte(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as client:
        stream = await client.open("terminal_output", name=terminal.name, cursor=0)
        slow = await client.open(
            "terminal_output", name=terminal.name, cursor=0, credit=1, returns_credit=False
        )
        await client.call("term_run", name=terminal.name, cmd="seq 1000; echo the-end")
        await client.call("term_close", name=terminal.name)
        data, end = await stream.all_bytes()
        assert b"the-end\r\n" in data
        assert (end["code"], end["message"]) == (
            "closed",
            f"terminal {terminal.name!r} was closed",
        )
        await slow.give(1_000_000)
        late, end = await slow.all_bytes()
        assert late == data
        assert end["code"] == "closed"


async def test_a_daemon_that_stops_ends_the_stream_as_unavailable_and_not_as_closed(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    for name in ("build", "gone"):
        own_daemon.terminal(name)
    async with stream_client(own_daemon) as client:
        kept = await client.open("terminal_output", name="build", cursor=0)
        slow = await client.open("terminal_output", name="build", cursor=0, credit=1)
        closed = await client.open("terminal_output", name="gone", cursor=0)
        await client.call("term_close", name="gone")
        _, end = await closed.all_bytes()
        assert end["code"] == "closed"
        await trio.to_thread.run_sync(own_daemon.stop)
        for stream in (kept, slow):
            _, end = await stream.all_bytes()
            assert end["code"] == "unavailable", end


async def test_keys_that_cannot_be_typed_are_told(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as client:
        stream = await client.open("terminal_output", name=terminal.name)
        await stream.type(b"cat > /dev/null\r")
        await stream.item_where(lambda item: item.get("state") == "running")
        await stream.type(b"x" * 5000)
        item = await stream.item_where(lambda item: "keys_refused" in item)
        assert item["keys_refused"]["code"] == "invalid_request"
        await stream.type(b"\x03")


@pytest.mark.parametrize(
    ("stream", "arguments", "code"),
    [
        ("terminal_output", {"name": "nowhere"}, "not_found"),
        ("terminal_output", {"name": "no name"}, "invalid_request"),
        ("terminal_output", {}, "invalid_request"),
        ("tree", {"name": "x"}, "invalid_request"),
        ("inbox", {"after": "unknown"}, "invalid_request"),
        ("nothing", {}, "not_found"),
    ],
)
async def test_what_cannot_be_opened_is_refused_in_one_sentence(
    daemon: DaemonProcess, stream: str, arguments: dict[str, Any], code: str
) -> None:
    async with stream_client(daemon) as client:
        with pytest.raises(Refused) as refusal:
            await client.open(stream, **arguments)
        assert refusal.value.code == code


async def test_a_cursor_beyond_the_output_is_refused(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as client:
        with pytest.raises(Refused, match="is beyond the output"):
            await client.open("terminal_output", name=terminal.name, cursor=10**9)


async def test_the_tree_tells_of_a_terminal_that_comes_and_goes(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    async with stream_client(daemon) as client:
        stream = await client.open("tree")
        snapshot = (await stream.item())["snapshot"]
        assert snapshot["path"] == "root"
        terminal = await trio.to_thread.run_sync(new_terminal)
        path = f"root/terminals/{terminal.name}/shell"
        await stream.item_where(
            lambda item: item["delta"]["path"] == path and item["delta"]["state"] == "running"
        )
        await client.call("term_close", name=terminal.name)
        await stream.item_where(
            lambda item: item["delta"]["path"] == path and item["delta"]["state"] == "stopped"
        )


async def test_a_session_has_no_tree_and_only_its_own_inbox(daemon: DaemonProcess) -> None:
    secret = daemon.call("session_new", handle="carol")["url"].rpartition("/")[2]
    async with stream_client(daemon, session=secret) as client:
        with pytest.raises(Refused, match="operator only"):
            await client.open("tree")
        with pytest.raises(Refused, match="is not you"):
            await client.open("inbox", from_handle="human")
        stream = await client.open("inbox")
        await client.call("handoff", target_handle="carol", context="to myself")
        assert (await stream.item())["body"] == "to myself"


async def test_messages_of_an_inbox_come_in_order_and_stay_unacknowledged(
    daemon: DaemonProcess,
) -> None:
    daemon.call("session_new", handle="dora")
    async with stream_client(daemon) as client:
        stream = await client.open("inbox", from_handle="dora", credit=1)
        for number in range(40):
            await client.call("handoff", target_handle="dora", context=f"message {number}")
        items = [await stream.item() for _ in range(40)]
        assert [item["body"] for item in items] == [f"message {number}" for number in range(40)]
        unread = await client.call("inbox_read", from_handle="dora", limit=100)
        assert unread["messages"] == items
        later = await client.open("inbox", from_handle="dora", after=items[37]["id"])
        assert [await later.item() for _ in range(2)] == items[38:]


async def test_messages_acknowledged_before_there_was_credit_are_a_gap(
    daemon: DaemonProcess,
) -> None:
    daemon.call("session_new", handle="eve")
    async with stream_client(daemon) as client:
        stream = await client.open("inbox", from_handle="eve", credit=0)
        for number in range(5):
            await client.call("handoff", target_handle="eve", context=f"message {number}")
        messages = (await client.call("inbox_read", from_handle="eve"))["messages"]
        await client.call("inbox_read", from_handle="eve", after=messages[2]["id"])
        await stream.give(10_000)
        assert (await stream.next())["dropped"] == 3
        assert [await stream.item() for _ in range(2)] == messages[3:]


async def test_events_tell_of_terminals_and_commands(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    async with stream_client(daemon) as client:
        stream = await client.open("events")
        open_before = (await stream.item())["terminals"]
        terminal = await trio.to_thread.run_sync(new_terminal)
        assert terminal.name not in {each["name"] for each in open_before}
        events: list[tuple[str, object]] = []

        async def until(event: str) -> None:
            while not events or events[-1][0] != event:
                item = await stream.item()
                about = item.get("terminal") or item["command"]
                if about["name"] == terminal.name:
                    events.append((item["event"], about))

        await until("terminal_opened")
        await client.call("term_run", name=terminal.name, cmd="(exit 3)")
        await until("command_started")
        await until("command_finished")
        finished = events[-1][1]
        assert isinstance(finished, dict)
        assert (finished["cmd"], finished["seq"], finished["exit"]) == ("(exit 3)", 0, 3)
        assert finished["duration_s"] >= 0
        [record] = (await client.call("term_read", name=terminal.name))["result"]
        assert finished == {key: record.get(key, terminal.name) for key in finished}
        await client.call("term_resize", name=terminal.name, cols=99, rows=33)
        await until("terminal_changed")
        while (about := events[-1][1]) and isinstance(about, dict) and about["cols"] != 99:
            events.append(("", None))
            await until("terminal_changed")
        await client.call("term_close", name=terminal.name)
        await until("terminal_closed")
        assert isinstance(events[-1][1], dict)
        assert events[-1][1]["state"] == "closed"


async def test_a_command_that_waits_for_input_is_an_event_and_is_read_as_the_running_one(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    async with stream_client(daemon) as client:
        stream = await client.open("events")
        name = (await trio.to_thread.run_sync(new_terminal)).name
        await client.call("term_run", name=name, cmd="read -r line", until="started")

        def waits(item: dict[str, Any]) -> bool:
            about = item.get("command") or {}
            return about.get("name") == name and about["needs_input"] is not None

        event = await stream.item_where(waits)
        assert (event["event"], event["command"]["needs_input"]["kind"]) == (
            "command_changed",
            "input",
        )
        read = await client.call("term_read", name=name, output=False)
        assert read["result"] == []
        assert read["running"] == event["command"]
        assert read["running"]["cmd"] == "read -r line"
        await client.call("term_keys", name=name, keys="hello\r")
        while (await stream.item()).get("event") != "command_finished":
            pass
        assert (await client.call("term_read", name=name))["running"] is None


async def test_a_stream_of_events_begins_with_the_open_terminals_and_what_runs_there(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    name = new_terminal().name
    async with stream_client(daemon) as client:
        await client.call("term_run", name=name, cmd="sleep 100", until="started")
        listed = (await (await client.open("events")).item())["terminals"]
        [shown] = [each for each in listed if each["name"] == name]
        assert (shown["state"], shown["running"]["cmd"]) == ("running", "sleep 100")
        await client.call("term_keys", name=name, keys="\x03")


async def test_a_part_of_the_output_is_replayed_with_the_sizes_of_its_window(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    async with stream_client(daemon) as client:
        await client.call("term_run", name=terminal.name, cmd="echo one")
        await client.call("term_resize", name=terminal.name, cols=100, rows=30)
        await client.call("term_run", name=terminal.name, cmd="echo two; sleep 0.01; echo three")
        first, last = (await client.call("term_read", name=terminal.name))["result"]
        begin, end = first["raw_start"], last["raw_end"]
        stream = await client.open("terminal_output", name=terminal.name, cursor=begin, end=end)
        assert (stream.opened["cols"], stream.opened["rows"]) == (80, 24)
        data, cursors, ended = b"", [], None
        while ended is None:
            try:
                frame = await stream.next()
            except StreamEnded as over:
                ended = over.frame
                continue
            if isinstance(frame, OutputBytes):
                assert frame.cursor == begin + len(data)
                data += frame.data
            elif "resized" in frame["item"]:
                assert frame["item"]["resized"] == {"cols": 100, "rows": 30}
                cursors.append(frame["item"]["cursor"])
                assert cursors == [begin + len(data)]
        assert len(data) == end - begin
        assert data.startswith(b"one\r\n")
        assert b"three\r\n" in data
        assert len(cursors) == 1
        assert ended["code"] == "closed"
        assert ended["message"].endswith(f"up to byte {end}")


async def test_the_size_of_a_terminal_has_one_owner_until_its_stream_ends(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    name = new_terminal().name

    def has_owner(item: dict[str, Any]) -> bool:
        return "size_owner" in item

    async with stream_client(daemon) as client, stream_client(daemon) as other:
        one = await client.open("terminal_output", name=name)
        two = await other.open("terminal_output", name=name)
        await client.send(type="claim", id=one.number, cols=90, rows=20)
        assert (await one.item_where(has_owner))["size_owner"]["yours"] is True
        owner = (await two.item_where(has_owner))["size_owner"]
        assert (owner["writer"], owner["yours"]) == ("human", False)

        with pytest.raises(Refused) as refusal:
            await other.call("term_resize", name=name, cols=10, rows=5)
        assert refusal.value.code == "busy"
        assert "belongs to a window of human" in str(refusal.value)
        await other.send(type="claim", id=two.number, cols=10, rows=5)
        refused = await two.item_where(lambda item: "size_refused" in item)
        assert refused["size_refused"]["code"] == "busy"
        assert (await client.call("term_screen", name=name))["cols"] == 90

        await other.send(type="claim", id=two.number, cols=70, rows=15, take=True)
        assert (await one.item_where(has_owner))["size_owner"]["yours"] is False
        assert (await client.call("term_screen", name=name))["cols"] == 70
        await other.send(type="close", id=two.number)
        assert await one.item_where(has_owner) == {"size_owner": None}
        await client.call("term_resize", name=name, cols=80, rows=24)


async def test_titles_bells_and_who_types_are_items(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    name = new_terminal().name
    async with stream_client(daemon) as client, stream_client(daemon) as alice:
        stream = await client.open("terminal_output", name=name)
        typed = await alice.open("terminal_output", name=name, from_handle="alice")
        await typed.type(b"printf '\\033]2;a title\\007\\007'; read -r line")
        # Before its Enter: with it the line might be read before its writer is reported.
        item = await stream.item_where(lambda item: item.get("typing") is not None)
        typists: list[str | None] = [item["typing"]["writer"]]
        await typed.type(b"\r")
        # Their order depends on the program and the shell.
        expected = {"title": "a title", "bells": 1, "needs_input": "input"}
        while expected or typists[-1:] != [None]:
            item = await stream.item()
            if "typing" in item:
                typists.append((item["typing"] or {}).get("writer"))
            item["needs_input"] = (item.get("needs_input") or {}).get("kind")
            for key in [key for key, value in expected.items() if item.get(key) == value]:
                del expected[key]
        assert set(typists) == {"agent:alice", None}
        await client.call("term_keys", name=name, keys="x\r")


async def test_connections_that_are_cut_leave_nothing(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    before = daemon.call("status")["open_files"]
    for _ in range(5):
        async with stream_client(daemon) as client:
            for _ in range(3):
                await client.open("terminal_output", name=terminal.name, cursor=0, credit=10)
            client.cut()
    deadline = time.monotonic() + 60
    while daemon.call("status")["open_files"] > before:
        assert time.monotonic() < deadline
        await trio.sleep(0.01)
    assert terminal.run("echo still here")["stdout"] == "still here\n"


@pytest.mark.alone
@pytest.mark.long
async def test_fifty_watchers_three_of_them_dead_hold_up_neither_a_run_nor_the_stop(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    async with trio.open_nursery() as nursery:
        watching: list[Stream] = []

        async def watch(*, task_status: trio.TaskStatus[None]) -> None:
            async with stream_client(own_daemon) as client:
                watching.append(
                    await client.open("terminal_output", name="build", credit=16_000_000)
                )
                task_status.started()
                await trio.sleep_forever()

        for _ in range(47):
            await nursery.start(watch)
        deaf = [await _dead_watcher(own_daemon) for _ in range(3)]
        cmd = "head -c 30000000 /dev/zero | tr '\\0' X; echo; echo the-end"
        record = await trio.to_thread.run_sync(lambda: terminal.run(cmd, timeout=120))
        assert record["exit"] == 0
        for watcher in watching:
            data = await watcher.bytes_until(b"the-end\r\n")
            assert data
        began = time.monotonic()
        code = await trio.to_thread.run_sync(own_daemon.stop)
        assert code == 0
        assert time.monotonic() - began < 10, "a guard; the daemon promises two seconds"
        for watcher in watching:
            assert (await watcher.all_bytes())[1]["type"] == "ended"
        for silent in deaf:
            silent.socket.close()
        nursery.cancel_scope.cancel()


async def _dead_watcher(daemon: DaemonProcess) -> trio.SocketStream:
    """A client that opens a stream with all the credit there is, and never reads a byte of it."""
    host, _, port = daemon.endpoint.url.removeprefix("http://").rpartition(":")
    stream = await trio.open_tcp_stream(host, int(port))
    head = (
        f"GET /ws HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Authorization: Bearer {daemon.endpoint.token}\r\n\r\n"
    )
    await stream.send_all(head.encode())
    text = (
        b'{"type":"open","id":1,"stream":"terminal_output","arguments":{"name":"build"},'
        b'"credit":16777216}'
    )
    mask = b"\0\0\0\0"
    await stream.send_all(b"\x81\xfe" + len(text).to_bytes(2, "big") + mask + text)
    return stream

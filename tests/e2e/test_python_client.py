"""The Python client against a real daemon: every command, losses, and many calls at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
import trio
import trio.testing

import aegis
from aegis.client import transport
from aegis.client.errors import ClientError, CommandFailed, ConnectionLost, NoDaemon
from aegis.client.session import MAX_IN_FLIGHT
from aegis.protocol.inboxes import MessageList
from aegis.protocol.terminals import CommandRecord, Done
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real


async def test_every_command_of_terminals(daemon: DaemonProcess, handle: str) -> None:
    async with aegis.connect(daemon.root, handle=handle) as client:
        terminals = client.terminals
        info = await terminals.spawn(handle, env={"WHO": "ann"}, cols=100)
        assert (info.name, info.cols, info.rows, info.state) == (handle, 100, 24, "idle")
        assert handle in [each.name for each in (await terminals.list()).result]
        record = await terminals.run(handle, "echo $WHO")
        assert (record.stdout, record.exit, record.writer) == ("ann\n", 0, f"agent:{handle}")
        [outcome] = (await terminals.broadcast([handle], "echo both")).result
        assert outcome.record is not None
        assert outcome.record.stdout == "both\n"
        assert await terminals.keys(handle, "echo typed\r") == Done()
        await terminals.wait(handle, pattern="^typed$", cursor=0, timeout=GUARD_S)
        waited = await terminals.wait(handle, seq=2, timeout=GUARD_S)
        assert (waited.reason, waited.record and waited.record.stdout) == ("ended", "typed\n")
        assert [each.seq for each in (await terminals.read(handle, since_seq=0)).result] == [1, 2]
        assert (await terminals.resize(handle, 90, 30)).cols == 90
        screen = await terminals.screen(handle)
        assert (screen.cols, screen.rows) == (90, 30)
        assert "both" in (await terminals.output(handle, cursor=0)).text
        assert (await terminals.subscribe(handle, only_failures=True)).subscribers == [handle]
        assert await terminals.unsubscribe(handle) == Done()
        assert await terminals.signal(handle, "WINCH") == Done()
        assert (await terminals.close(handle, purge=True)).leftover == []


async def test_every_command_of_workspaces_and_shells(daemon: DaemonProcess, handle: str) -> None:
    name = handle.replace(".", "-")
    async with aegis.connect(daemon.root) as client:
        assert (await client.workspaces.create(name)).directory == str(daemon.root)
        assert name in [each.workspace_id for each in (await client.workspaces.list()).result]
        done = await client.workspaces.exec(name, "echo out; echo err >&2; exit 3")
        assert (done.exit, done.stdout, done.stderr) == (3, "out\n", "err\n")
        shell = await client.open_shell(name, name="dev")
        assert await client.shells.write(shell.shell_id, "echo hi") == Done()
        await client.terminals.wait(shell.shell_id, pattern="^hi$", cursor=0, timeout=GUARD_S)
        assert "hi" in (await client.shells.read(shell.shell_id, cursor=0, plain=True)).text
        assert await client.shells.signal(shell.shell_id, "WINCH") == Done()
        assert (await client.shells.close(shell.shell_id)).leftover == []
        assert (await client.workspaces.delete(name)).ok


async def test_every_command_of_inboxes_and_sessions(daemon: DaemonProcess, handle: str) -> None:
    async with aegis.connect(daemon.root) as operator:
        session = await operator.sessions.new(handle)
        assert session.handle == handle
        async with aegis.connect(session.url) as client:
            assert await client.inboxes.wait(timeout=0) == MessageList(messages=[], next=None)
            await operator.inboxes.handoff(handle, "look at this")
            found = await client.inboxes.wait(timeout=GUARD_S)
            assert [message.body for message in found.messages] == ["look at this"]
            left = await client.inboxes.read(after=found.next)
            assert left.messages == []
            with pytest.raises(CommandFailed, match="for the operator only") as caught:
                await client.daemon.status()
            assert caught.value.code == "forbidden"


async def test_every_command_of_the_daemon(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    async with aegis.connect(own_daemon.root) as client:
        status = await client.daemon.status()
        assert (status.pid, status.root) == (own_daemon.process.pid, str(own_daemon.root))
        assert "gateway" in [each.name for each in (await client.daemon.tree()).children]
        assert (await client.daemon.down()).pid == status.pid
    assert await trio.to_thread.run_sync(own_daemon.wait_stopped) == 0


async def test_a_url_and_the_token_lead_to_the_operator(
    daemon: DaemonProcess, terminal: LiveTerminal
) -> None:
    endpoint = daemon.endpoint
    async with aegis.connect(endpoint.url, token=endpoint.token, handle="ann") as client:
        assert (await client.terminals.run(terminal.name, "echo hi")).writer == "agent:ann"
    with pytest.raises(CommandFailed) as caught:
        async with aegis.connect(endpoint.url, token="x" * 43):
            raise AssertionError("the key is not valid")
    assert caught.value.code == "forbidden"


async def test_errors_of_the_body_come_out_as_they_are(daemon: DaemonProcess) -> None:
    with pytest.raises(CommandFailed) as caught:
        async with aegis.connect(daemon.root) as client:
            await client.terminals.run("nowhere", "ls")
    assert caught.value.code == "not_found"
    with pytest.raises(ZeroDivisionError):
        async with aegis.connect(daemon.root):
            _ = 1 / 0


async def test_without_a_daemon_connecting_fails_at_once(own_daemon: DaemonProcess) -> None:
    with pytest.raises(NoDaemon, match="start one with: aegis-actors up"):
        async with aegis.connect(own_daemon.root):
            raise AssertionError("nobody is there")
    own_daemon.start()
    endpoint = own_daemon.endpoint
    assert own_daemon.stop() == 0
    with pytest.raises(NoDaemon, match="no daemon answers at"):
        async with aegis.connect(endpoint.url, token=endpoint.token):
            raise AssertionError("nobody is there")


async def test_many_calls_at_once_on_one_client(
    daemon: DaemonProcess, new_terminal: Callable[[], LiveTerminal]
) -> None:
    names = [new_terminal().name for _ in range(4)]
    records: list[CommandRecord] = []

    async def run(name: str, number: int) -> None:
        record = await client.terminals.run(name, f"echo {name}-{number}", timeout=GUARD_S)
        assert record.stdout == f"{name}-{number}\n"
        records.append(record)

    async with aegis.connect(daemon.root) as client, trio.open_nursery() as nursery:
        for number in range(2 * MAX_IN_FLIGHT):
            nursery.start_soon(run, names[number % len(names)], number)
    assert len(records) == 2 * MAX_IN_FLIGHT


async def test_two_clients_share_a_terminal(
    daemon: DaemonProcess, terminal: LiveTerminal, gate: Gate
) -> None:
    async with (
        aegis.connect(daemon.root, handle="ann") as ann,
        aegis.connect(daemon.root, handle="bob") as bob,
        trio.open_nursery() as nursery,
    ):
        await bob.terminals.subscribe(terminal.name)
        nursery.start_soon(ann.terminals.run, terminal.name, gate.hold)
        await trio.to_thread.run_sync(gate.wait_reached)
        with pytest.raises(CommandFailed, match="agent:ann") as caught:
            await bob.terminals.run(terminal.name, "echo mine", timeout=0.2)
        assert caught.value.code == "busy"
        gate.open()
        found = await bob.inboxes.wait(timeout=GUARD_S)
        assert found.messages[-1].sender == f"term:{terminal.name}"


async def test_a_call_that_is_cancelled_is_dropped_by_the_daemon(
    daemon: DaemonProcess, terminal: LiveTerminal, gate: Gate
) -> None:
    async with aegis.connect(daemon.root) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.terminals.run, terminal.name, gate.hold)
        await trio.to_thread.run_sync(gate.wait_reached)
        with trio.move_on_after(0.2):
            await client.terminals.run(terminal.name, "echo never", timeout=GUARD_S)
        await client.daemon.status()  # the daemon has read the cancel before it
        gate.open()
        await client.terminals.run(terminal.name, "echo next", timeout=GUARD_S)
        records = (await client.terminals.read(terminal.name, last_n=10)).result
    assert [record.cmd for record in records] == [gate.hold, "echo next"]


async def kill_and_start(daemon: DaemonProcess) -> None:
    await trio.to_thread.run_sync(daemon.kill)
    await trio.to_thread.run_sync(daemon.start)


async def test_a_daemon_killed_in_mid_call_costs_the_call_and_not_the_client(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start()
    lost: list[ClientError] = []

    async def run() -> None:
        try:
            await client.terminals.run("build", gate.hold, timeout=GUARD_S)
        except ClientError as error:
            lost.append(error)

    async with aegis.connect(own_daemon.root) as client:
        await client.terminals.spawn("build")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.to_thread.run_sync(gate.wait_reached)
            await kill_and_start(own_daemon)
        [error] = lost
        assert isinstance(error, ConnectionLost)
        assert (error.command, error.maybe_done, error.may_repeat) == ("term_run", True, False)
        [record] = (await client.terminals.read("build")).result
        assert (record.cmd, record.killed_by_restart) == (gate.hold, True)


async def test_a_wait_is_made_again_at_the_next_daemon(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start()
    async with aegis.connect(own_daemon.root) as client:
        await client.terminals.spawn("build")
        await client.terminals.keys("build", f"{gate.hold}\r")
        await trio.to_thread.run_sync(gate.wait_reached)
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def wait() -> None:
                found = await client.terminals.wait("build", seq=0, timeout=GUARD_S)
                assert found.reason == "ended"
                assert found.record is not None
                assert found.record.killed_by_restart

            await trio.testing.wait_all_tasks_blocked()
            await client.terminals.list()  # the daemon has taken what was sent before
            await kill_and_start(own_daemon)


async def test_a_call_while_the_daemon_is_away_waits_for_it(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    async with aegis.connect(own_daemon.root) as client:
        await trio.to_thread.run_sync(own_daemon.kill)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, own_daemon.start)
            info = await client.terminals.spawn("build")
        assert info.name == "build"


async def test_a_client_with_little_patience_says_that_nobody_came_back(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    async with aegis.connect(own_daemon.root, patience_s=0.2) as client:
        await client.terminals.list()
        assert await trio.to_thread.run_sync(own_daemon.stop) == 0
        with pytest.raises(ConnectionLost) as caught:
            await client.terminals.spawn("build")
    assert not caught.value.maybe_done
    assert str(own_daemon.root) in str(caught.value)


async def test_a_frozen_daemon_does_not_freeze_the_client(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    async with aegis.connect(own_daemon.root) as client:
        os.kill(own_daemon.process.pid, signal.SIGSTOP)
        try:
            with trio.move_on_after(0.2) as patience:
                await client.terminals.list()
            assert patience.cancelled_caught
        finally:
            os.kill(own_daemon.process.pid, signal.SIGCONT)
        await client.terminals.list()


async def test_over_tcp_a_daemon_that_says_nothing_any_more_counts_as_gone(
    own_daemon: DaemonProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_daemon.start()
    endpoint = own_daemon.endpoint
    monkeypatch.setattr(transport, "BEAT_S", 0.05)
    async with aegis.connect(endpoint.url, token=endpoint.token) as client:
        await client.terminals.spawn("build")
        # Not before: a busy machine may hold up a daemon that runs for as long.
        monkeypatch.setattr(transport, "BEAT_LIMIT_S", 0.5)
        os.kill(own_daemon.process.pid, signal.SIGSTOP)
        try:
            with pytest.raises(ConnectionLost, match="does not answer any more") as caught:
                await client.terminals.run("build", "true")
            assert caught.value.maybe_done
        finally:
            monkeypatch.setattr(transport, "BEAT_LIMIT_S", GUARD_S)
            os.kill(own_daemon.process.pid, signal.SIGCONT)
        await client.terminals.list()


async def test_streams_over_tcp_with_a_session(
    daemon: DaemonProcess, terminal: LiveTerminal, handle: str
) -> None:
    async with aegis.connect(daemon.root) as operator:
        url = (await operator.sessions.new(handle)).url
    async with aegis.connect(url) as client, client.terminals.watch(terminal.name) as output:
        await output.type("echo o''ne\r")
        with trio.fail_after(GUARD_S):
            # What it prints, not what is shown of the line: then the command has begun. Who types
            # is an item too, and may come before that.
            shown = b""
            async for item in output:
                if isinstance(item, aegis.Chunk):
                    shown += item.data
                if b"one\r\n" in shown:
                    break
        waited = await client.terminals.wait(terminal.name, timeout=GUARD_S)
        assert waited.record is not None
        assert waited.record.writer == f"agent:{handle}"
        with pytest.raises(CommandFailed) as caught:
            async with client.tree.watch():
                raise AssertionError("the tree is the operator's")
        assert caught.value.code == "forbidden"

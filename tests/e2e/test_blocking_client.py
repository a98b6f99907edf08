"""The blocking client against a real daemon: every command, streams by long polling, losses."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import aegis
from aegis.client.address import BadAddress
from aegis.client.errors import CommandFailed, ConnectionLost, NoDaemon
from aegis.protocol.inboxes import MessageList
from aegis.protocol.terminals import Done
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]


def test_every_command_of_terminals(daemon: DaemonProcess, handle: str) -> None:
    with aegis.connect_sync(daemon.root, handle=handle) as client:
        terminals = client.terminals
        info = terminals.spawn(handle, env={"WHO": "ann"}, cols=100)
        assert (info.name, info.cols, info.rows, info.state) == (handle, 100, 24, "idle")
        assert handle in [each.name for each in terminals.list().result]
        record = terminals.run(handle, "echo $WHO")
        assert (record.stdout, record.exit, record.writer) == ("ann\n", 0, f"agent:{handle}")
        [outcome] = terminals.broadcast([handle], "echo both").result
        assert outcome.record is not None
        assert terminals.keys(handle, "echo typed\r") == Done()
        terminals.wait(handle, pattern="^typed$", cursor=0, timeout=GUARD_S)
        assert terminals.wait(handle, seq=2, timeout=GUARD_S).reason == "ended"
        assert [each.seq for each in terminals.read(handle, since_seq=0).result] == [1, 2]
        assert terminals.resize(handle, 90, 30).cols == 90
        assert terminals.screen(handle).rows == 30
        assert "both" in terminals.output(handle, cursor=0).text
        assert terminals.subscribe(handle, only_failures=True).subscribers == [handle]
        assert terminals.unsubscribe(handle) == Done()
        assert terminals.signal(handle, "WINCH") == Done()
        assert terminals.close(handle, purge=True).leftover == []


def test_every_command_of_workspaces_and_shells(daemon: DaemonProcess, handle: str) -> None:
    with aegis.connect_sync(daemon.root) as client:
        assert client.workspaces.create(handle).directory == str(daemon.root)
        assert handle in [each.workspace_id for each in client.workspaces.list().result]
        assert client.workspaces.exec(handle, "echo out; exit 3").exit == 3
        shell = client.open_shell(handle, name="dev")
        assert client.shells.write(shell.shell_id, "echo hi") == Done()
        client.terminals.wait(shell.shell_id, pattern="^hi$", cursor=0, timeout=GUARD_S)
        assert "hi" in client.shells.read(shell.shell_id, cursor=0, plain=True).text
        assert client.shells.signal(shell.shell_id, "WINCH") == Done()
        assert client.shells.close(shell.shell_id).leftover == []
        assert client.workspaces.delete(handle).ok


def test_every_command_of_inboxes_and_sessions(daemon: DaemonProcess, handle: str) -> None:
    with aegis.connect_sync(daemon.root, handle=handle) as client:
        assert client.sessions.new(handle).handle == handle
        assert client.inboxes.wait(timeout=0) == MessageList(messages=[], next=None)
        assert client.inboxes.handoff(handle, "look at this").status in ("landed", "queued")
        found = client.inboxes.wait(timeout=GUARD_S)
        assert [message.body for message in found.messages] == ["look at this"]
        assert client.inboxes.read(after=found.next).messages == []


def test_every_command_of_the_daemon(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    with aegis.connect_sync(own_daemon.root) as client:
        assert client.daemon.status().pid == own_daemon.process.pid
        assert "gateway" in [each.name for each in client.daemon.tree().children]
        client.daemon.down()
    assert own_daemon.wait_stopped() == 0


def test_a_refusal_has_its_code_and_its_sentence(daemon: DaemonProcess) -> None:
    with aegis.connect_sync(daemon.root) as client:
        for _ in range(2):
            with pytest.raises(CommandFailed, match="there is no terminal 'nowhere'") as caught:
                client.terminals.run("nowhere", "ls")
            assert caught.value.code == "not_found"


def test_output_comes_as_it_is_printed_and_ends_when_the_terminal_closes(
    daemon: DaemonProcess, handle: str, gate: Gate
) -> None:
    with aegis.connect_sync(daemon.root) as client, aegis.connect_sync(daemon.root) as other:
        client.terminals.spawn(handle)
        client.terminals.keys(handle, f"echo one; {gate.hold}; echo two\r")
        gate.wait_reached()
        seen, cursors = "", []
        is_let_go = is_closed = False
        for chunk in client.terminals.watch(handle, cursor=0):
            seen += chunk.text
            cursors.append((chunk.cursor, chunk.next_cursor))
            if "\none\n" in seen and not is_let_go:
                is_let_go = True
                gate.open()
            if "\ntwo\n" in seen and not is_closed:
                is_closed = True
                other.terminals.close(handle)
        assert "\none\ntwo\n" in seen
        assert [end for _, end in cursors[:-1]] == [begin for begin, _ in cursors[1:]]
        assert list(client.terminals.watch(handle, cursor=cursors[-1][1])) == []


def test_messages_come_in_order_and_are_acknowledged_once_taken(
    daemon: DaemonProcess, handle: str
) -> None:
    with aegis.connect_sync(daemon.root, handle=handle) as client:
        client.inboxes.read()
        for number in range(3):
            client.inboxes.handoff(handle, f"message {number}")
        watching = client.inboxes.watch()
        taken = [message.body for message in itertools.islice(watching, 3)]
        assert taken == ["message 0", "message 1", "message 2"]
        assert len(client.inboxes.read().messages) == 3, "nothing more was asked for yet"
        client.inboxes.handoff(handle, "message 3")
        assert next(watching).body == "message 3"
        assert [message.body for message in client.inboxes.read().messages] == ["message 3"]


def test_a_daemon_killed_in_mid_call_costs_the_call_and_not_the_client(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start()

    def restart() -> None:
        gate.wait_reached()
        own_daemon.kill()
        own_daemon.start()

    with aegis.connect_sync(own_daemon.root) as client:
        client.terminals.spawn("build")
        restarting = threading.Thread(target=restart)
        restarting.start()
        with pytest.raises(ConnectionLost) as caught:
            client.terminals.run("build", gate.hold, timeout=GUARD_S)
        assert (caught.value.maybe_done, caught.value.may_repeat) == (True, False)
        [record] = client.terminals.read("build").result
        assert (record.cmd, record.killed_by_restart) == (gate.hold, True)
        restarting.join(GUARD_S)


def test_a_watch_goes_on_at_the_next_daemon(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    with aegis.connect_sync(own_daemon.root, handle="ann") as client:
        client.inboxes.handoff("ann", "before")
        watching = client.inboxes.watch()
        assert next(watching).body == "before"
        own_daemon.kill()
        own_daemon.start()
        client.inboxes.handoff("ann", "after")
        assert next(watching).body == "after"


def test_a_client_with_little_patience_says_that_nobody_came_back(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    with aegis.connect_sync(own_daemon.root, patience_s=0.2) as client:
        assert own_daemon.stop() == 0
        with pytest.raises(ConnectionLost) as caught:
            client.terminals.list()
        assert not caught.value.maybe_done
    with pytest.raises(NoDaemon, match="start one with: aegis-actors up"):
        aegis.connect_sync(own_daemon.root)


def test_an_interrupted_call_is_dropped_by_the_daemon(
    daemon: DaemonProcess, terminal: LiveTerminal, gate: Gate
) -> None:
    held = terminal.start(gate.hold)
    gate.wait_reached()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def run_a_moment(client: aegis.BlockingClient) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        client.terminals.run(terminal.name, "echo never", timeout=GUARD_S)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with aegis.connect_sync(daemon.root) as client:
            with pytest.raises(KeyboardInterrupt):
                run_a_moment(client)
            client.terminals.list()  # the end of the connection before is known by then
            gate.open()
            held.result()
            assert client.terminals.run(terminal.name, "echo next").stdout == "next\n"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [record["cmd"] for record in terminal.records()] == [gate.hold, "echo next"]


def test_a_client_that_is_closed_says_so(daemon: DaemonProcess) -> None:
    with aegis.connect_sync(daemon.root) as client:
        pass
    with pytest.raises(ConnectionLost, match="this client is closed"):
        client.terminals.list()


def test_an_address_is_refused_with_the_way_that_takes_it(daemon: DaemonProcess) -> None:
    with pytest.raises(BadAddress, match="for a URL use connect"):
        aegis.connect_sync(daemon.endpoint.url)


def test_a_script_loads_no_trio(daemon: DaemonProcess) -> None:
    script = (
        "import sys, aegis\n"
        f"with aegis.connect_sync({str(daemon.root)!r}) as client:\n"
        "    client.terminals.list()\n"
        "print(sorted({'trio', 'asyncio', 'trio_websocket', 'mcp'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"

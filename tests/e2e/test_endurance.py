"""Long use and hard ends: nothing grows, and what a client was told is still there afterwards."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import pytest

from aegis.client.line import ClientError, CommandFailed
from tests.e2e.harness import GUARD_S, DaemonProcess

pytestmark = pytest.mark.real


def usage(daemon: DaemonProcess) -> dict[str, int]:
    """What a daemon has open and running."""
    status = daemon.call("status")
    return {key: status[key] for key in ("open_files", "actors", "connections", "terminals")}


def settled(daemon: DaemonProcess) -> dict[str, int]:
    """The least of each that it has at several looks: a look at one may be amid the end of others.

    Nothing says when the last connection has ended whose client has gone.
    """
    looks = []
    for _ in range(5):
        looks.append(usage(daemon))
        time.sleep(0.05)
    return {key: min(each[key] for each in looks) for key in looks[0]}


def is_within(now: dict[str, int], before: dict[str, int]) -> bool:
    """Whether there is no more of anything."""
    return all(now[key] <= count for key, count in before.items())


def check_settles_at(daemon: DaemonProcess, before: dict[str, int]) -> None:
    """Wait until no more is open than there was; a look at a process or a file may be under way."""
    deadline = time.monotonic() + GUARD_S
    while not is_within(now := usage(daemon), before):
        assert time.monotonic() < deadline, f"{now} after {before}"
        time.sleep(0.05)


@pytest.mark.long
def test_terminals_that_come_and_go_leave_nothing_open(own_daemon: DaemonProcess) -> None:
    own_daemon.start()

    def come_and_go() -> None:
        with own_daemon.connect() as client:
            for _ in range(20):
                client.call("term_spawn", {"name": "short"})
                assert client.call("term_run", {"name": "short", "cmd": "true"})["seq"] == 0
                client.call("term_close", {"name": "short", "purge": True})

    come_and_go()
    before = settled(own_daemon)
    come_and_go()
    check_settles_at(own_daemon, before)
    assert own_daemon.shell_processes() == []
    assert list(own_daemon.state.terminals.iterdir()) == []


@pytest.mark.long
def test_many_runs_and_connections_leave_nothing_open(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    own_daemon.call("term_spawn", name="long")

    def work() -> None:
        with own_daemon.connect() as client:
            for number in range(200):
                run = client.call("term_run", {"name": "long", "cmd": f"echo {number}"})
                assert run["stdout"] == f"{number}\n"
        for _ in range(100):
            own_daemon.call("term_list")

    work()
    before = settled(own_daemon)
    work()
    check_settles_at(own_daemon, before)
    own_daemon.call("term_close", name="long")


class Client(threading.Thread):
    """Runs commands on one terminal and hands work to ``boss`` until the daemon is gone.

    ``told`` are the finished records that it was given, ``handed`` the ids of its messages.
    """

    def __init__(self, daemon: DaemonProcess, name: str) -> None:
        super().__init__()
        self.told: list[dict[str, Any]] = []
        self.handed: list[str] = []
        self.refused: list[CommandFailed] = []
        self.is_busy = threading.Event()
        self._daemon = daemon
        self._name = name

    def run(self) -> None:
        try:
            with self._daemon.connect() as line:
                for number in itertools.count():
                    cmd = f"echo {number}; sleep 0.00{number % 10}; setsid sleep 1000 &"
                    self.told.append(line.call("term_run", {"name": self._name, "cmd": cmd}))
                    handoff = {"target_handle": "boss", "context": f"{self._name} {number}"}
                    self.handed.append(line.call("handoff", handoff)["id"])
                    if number == 4:
                        self.is_busy.set()
        except CommandFailed as error:
            self.refused.append(error)
        except ClientError:
            return
        finally:
            self.is_busy.set()


def test_what_was_told_survives_kills_under_load_and_no_process_does(
    own_daemon: DaemonProcess,
) -> None:
    names = ["a", "b", "a", "b"]
    told: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in names}
    handed: list[str] = []
    own_daemon.start()
    own_daemon.call("inbox_read", from_handle="boss")
    for _ in range(4):
        for name in told:
            own_daemon.call("term_spawn", name=name)
        clients = [Client(own_daemon, name) for name in names]
        for client in clients:
            client.start()
        for client in clients:
            client.is_busy.wait()
        own_daemon.kill()
        for client, name in zip(clients, names, strict=True):
            client.join()
            assert client.refused == []
            told[name].update({record["seq"]: record for record in client.told})
            handed += client.handed
        earlier = set(own_daemon.shell_processes())
        assert earlier
        own_daemon.start()
        for name, records in told.items():
            # Behind it in the ledger stands all that was in flight.
            again = own_daemon.call("term_run", name=name, cmd="true")
            records[again["seq"]] = again
            ledger = own_daemon.call("term_read", name=name, since_seq=-1)["result"]
            assert [record["seq"] for record in ledger] == list(range(len(ledger)))
            assert {seq: ledger[seq] for seq in records} == records
            ends = {record["end"] for record in ledger}
            assert ends <= {"exited", "killed_by_restart"}
        assert earlier.isdisjoint(own_daemon.shell_processes())
        for name in told:
            own_daemon.call("term_close", name=name)
    messages = own_daemon.call("inbox_read", from_handle="boss", unread=False, limit=1000)
    assert set(handed) <= {message["id"] for message in messages["messages"]}

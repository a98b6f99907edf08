"""Subscriptions and wakes across kill -9: every record one message for each, whatever was cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aegis.client.line import ConnectionLost, NoDaemon
from aegis.faults import VARIABLE
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.terminals.wakes.subscriptions import restored
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal, Wakes

pytestmark = pytest.mark.real

NAME = "build"
HANDLES = ("ann", "bob")


class StruckDaemon(DaemonProcess):
    """A daemon that ``faults`` (in the form of the variable) strike, from its next start on."""

    faults = ""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, VARIABLE: self.faults}


@pytest.fixture
def struck(tmp_path: Path) -> Iterator[StruckDaemon]:
    """Not started yet; ended by a kill, so its log may hold what was made to fail."""
    daemon = StruckDaemon(tmp_path)
    yield daemon
    daemon.hang_up()
    if daemon.is_running:
        daemon.kill()


def reopened(daemon: DaemonProcess) -> LiveTerminal:
    """The terminal, spawned unless it is open."""
    found = [each for each in daemon.call("term_list")["result"] if each["name"] == NAME]
    info = found[0] if found else daemon.call("term_spawn", name=NAME)
    return LiveTerminal(daemon, NAME, info)


def messages(daemon: DaemonProcess, handle: str) -> list[dict[str, Any]]:
    """Everything that ever came to ``handle``."""
    reply = daemon.call("inbox_read", from_handle=handle, unread=False, limit=1000)
    found: list[dict[str, Any]] = reply["messages"]
    return found


def check_all_told(terminal: LiveTerminal) -> int:
    """One message for each record and subscriber but its writer; how many records there are.

    What was lost would come before the wake of one more command, so that one is waited for.
    """
    last = terminal.run("echo last", from_handle="somebody-else")
    for handle in HANDLES:
        waiting = Wakes(terminal.daemon, handle)
        while waiting.next()["id"].split("/")[2] != str(last["seq"]):
            pass
    records = terminal.records()
    assert [each["seq"] for each in records] == list(range(len(records)))
    for handle in HANDLES:
        seqs = [each["seq"] for each in records if each["writer"] != f"agent:{handle}"]
        found = [each["id"] for each in messages(terminal.daemon, handle)]
        [life] = {each.split("/")[1] for each in found}
        assert sorted(found) == sorted(f"term:{NAME}/{life}/{seq}/{handle}" for seq in seqs)
    return len(records)


def subscribe_all(daemon: DaemonProcess) -> LiveTerminal:
    terminal = reopened(daemon)
    for handle in HANDLES:
        terminal.subscribe(handle)
    return terminal


def test_who_subscribed_is_subscribed_after_a_kill_at_once(struck: StruckDaemon) -> None:
    struck.start()
    reopened(struck).subscribe("ann")
    struck.kill()
    struck.start()
    terminal = reopened(struck)
    assert terminal.described()["subscribers"] == ["ann"]
    wakes = Wakes(struck, "ann")
    terminal.run("echo told")
    assert wakes.next()["body"].endswith("told")


def test_who_unsubscribed_stays_away_after_a_kill_at_once(struck: StruckDaemon) -> None:
    struck.start()
    terminal = subscribe_all(struck)
    struck.call("term_unsubscribe", name=NAME, from_handle="Ann")
    struck.kill()
    struck.start()
    terminal = reopened(struck)
    assert terminal.described()["subscribers"] == ["bob"]
    wakes = Wakes(struck, "bob")
    terminal.run("echo told")
    assert wakes.next()["body"].endswith("told")
    assert messages(struck, "ann") == []


STRIKES = [
    *(f"inbox.append.before[ann]@{number}" for number in (1, 3)),
    *(f"inbox.append.after[ann]@{number}" for number in (1, 3)),
    *(f"inbox.confirm.before[ann]@{number}" for number in (1, 3)),
    *(f"ledger.sync.after[ann.jsonl]@{number}" for number in (1, 3)),
    *(f"ledger.sync.before[ledger.jsonl]@{number}" for number in (1, 3)),
    *(f"ledger.sync.after[ledger.jsonl]@{number}" for number in (1, 3)),
    *(f"reply.send.before@{number}" for number in (1, 3)),
    *(f"note.write.before[subscribers.json]@{number}" for number in (3, 4)),
    *(f"note.write.after[subscribers.json]@{number}" for number in (3, 4)),
]


@pytest.mark.parametrize("strike", STRIKES)
def test_a_kill_anywhere_between_record_and_wake_costs_no_message_and_doubles_none(
    struck: StruckDaemon, strike: str
) -> None:
    struck.faults = f"{strike}=kill"
    struck.start()
    terminal = subscribe_all(struck)
    for number in range(500):  # in a few of them the fault has struck
        try:
            terminal.run(f"echo {number}", from_handle=(*HANDLES, "eve")[number % 3])
            if number % 5 == 4:
                messages(struck, "ann")  # for which its inbox syncs
        except (ConnectionLost, NoDaemon):
            break
    struck.wait_stopped()
    struck.faults = ""
    struck.start()
    assert check_all_told(reopened(struck)) > 1


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_any_moment_cost_no_message_and_double_none(
    struck: StruckDaemon, seed: int
) -> None:
    chance = random.Random(seed)
    struck.start()
    terminal = subscribe_all(struck)
    for _ in range(5):
        answered = chance.randrange(6)
        runs = [terminal.start(f"echo {each}", from_handle="eve") for each in range(8)]
        for run in runs[:answered]:
            run.result()
        # Busy for a moment of any length: what it hits is left to chance.
        sum(range(chance.randrange(400_000)))
        struck.kill()
        struck.hang_up()
        struck.start()
        terminal = reopened(struck)
    assert check_all_told(terminal) > 5


def test_a_broken_inbox_holds_up_nobody_and_has_everything_once_it_is_mended(
    struck: StruckDaemon,
) -> None:
    struck.start()
    terminal = subscribe_all(struck)
    terminal.run("echo first")
    wakes = {handle: Wakes(struck, handle) for handle in HANDLES}
    for each in wakes.values():
        each.next()
    struck.kill()
    broken = struck.state.inboxes / "ann.jsonl"
    kept = broken.rename(broken.with_suffix(".kept"))
    broken.mkdir()
    struck.start()
    terminal = reopened(struck)
    for number in range(20):
        terminal.run(f"echo {number}")
    for number in range(20):
        assert wakes["bob"].next()["body"].endswith(str(number))
    broken.rmdir()
    kept.rename(broken)
    assert check_all_told(terminal) == 22


def test_the_record_of_a_close_has_woken_all_when_the_close_is_answered(
    struck: StruckDaemon, gate: Gate
) -> None:
    struck.faults = "ledger.sync.before[ann.jsonl]@1=delay:0.5"
    struck.start()
    terminal = subscribe_all(struck)
    terminal.start(gate.hold)
    gate.wait_reached()
    terminal.close()
    [message] = messages(struck, "ann")
    assert "exit ?" in message["body"]


def test_the_records_of_a_stop_have_woken_all_when_it_has_stopped(
    struck: StruckDaemon, gate: Gate
) -> None:
    struck.faults = "ledger.sync.before[bob.jsonl]@1=delay:0.1"
    struck.start()
    terminal = subscribe_all(struck)
    terminal.start(gate.hold, from_handle="ann")
    gate.wait_reached()
    assert struck.stop() == 0
    note = Note.open(terminal.directory / "subscribers.json", Flusher())
    note.close()
    assert [each.confirmed for each in restored(note.load())[0].by_key.values()] == [0, 0]
    struck.faults = ""
    struck.start()
    [message] = messages(struck, "bob")
    assert "killed by restart" in message["body"]
    assert messages(struck, "ann") == []


def test_subscriptions_outlive_a_close_but_not_a_purge(
    daemon: DaemonProcess, terminal: LiveTerminal, handle: str
) -> None:
    wakes = terminal.subscribe(handle)
    terminal.run("echo one")
    first = wakes.next()
    terminal.close()
    again = daemon.call("term_spawn", name=terminal.name)
    assert again["subscribers"] == [handle]
    terminal.run("echo two")
    second = wakes.next()
    assert [each["id"].split("/")[2] for each in (first, second)] == ["0", "1"]
    assert first["id"].split("/")[1] == second["id"].split("/")[1]
    terminal.close(purge=True)
    assert daemon.call("term_spawn", name=terminal.name)["subscribers"] == []
    terminal.run("echo three")
    terminal.subscribe(handle)
    terminal.run("echo four")
    third = wakes.next()
    assert third["body"].endswith("four")
    assert third["id"].split("/")[1] != second["id"].split("/")[1]
    assert wakes.unread() == []

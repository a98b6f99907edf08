"""The clock of the machine is set back and forth under a daemon, its shells and its waits.

Only that of the daemon and its children: libfaketime stands between them and the time of day. The
monotonic clock goes on, as it does on a machine whose time is set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.resources.conftest import check_stopped
from tests.resources.waiting import until

pytestmark = pytest.mark.real

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

LENIENCE = timedelta(seconds=GUARD_S)
"""How far two readings of the clock in one test may lie apart on a machine under load."""


class SteppedClock:
    """The time of day of one daemon: that of the machine, and an offset that is set meanwhile."""

    def __init__(self, directory: Path, library: Path) -> None:
        self._file = directory / "offset"
        self.offset = timedelta()
        self.set(timedelta())
        self.variables = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, offset: timedelta) -> None:
        """The clock goes so far ahead of the machine's from now on, or behind it."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{offset.total_seconds():+.0f}\n")
        fresh.replace(self._file)
        self.offset = offset

    def is_now(self, stamp: str) -> bool:
        """Whether this is about what the clock shows."""
        shown = datetime.fromisoformat(stamp)
        return abs(shown - (datetime.now(UTC) + self.offset)) < LENIENCE


@pytest.fixture
def clock(tmp_path: Path) -> SteppedClock:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found:
        pytest.skip("libfaketime is not installed")
    return SteppedClock(tmp_path, found[0])


@pytest.fixture
def stepped(tmp_path: Path, clock: SteppedClock) -> Iterator[DaemonProcess]:
    """A daemon that lives by ``clock``; it runs."""
    daemon = DaemonProcess(tmp_path)
    daemon.variables.update(clock.variables)
    try:
        daemon.start()
        yield daemon
        check_stopped(daemon)
    finally:
        if daemon.is_running:
            daemon.kill()


def durations(terminal: LiveTerminal) -> list[float]:
    return [record["duration_s"] for record in terminal.records()]


@pytest.mark.long
def test_trap_26_a_clock_that_is_set_back_and_forth_changes_what_is_stamped_and_nothing_else(
    stepped: DaemonProcess, clock: SteppedClock, gate: Gate
) -> None:
    terminal = stepped.terminal("build")
    woken = terminal.subscribe("eve")
    begun = time.monotonic()
    for offset in (timedelta(), -HOUR, DAY, -DAY):
        clock.set(offset)
        record = terminal.run(f"echo {offset.days}")
        assert clock.is_now(record["started_at"])
        assert clock.is_now(record["finished_at"])
        assert clock.is_now(terminal.described()["last_cmd_at"])
    clock.set(timedelta())
    across = terminal.start(f"echo across; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("across")  # so its start was stamped
    clock.set(-HOUR)
    gate.open()
    record = across.result()
    assert record["finished_at"] < record["started_at"]
    took_at_most = time.monotonic() - begun
    assert all(0 <= duration <= took_at_most for duration in durations(terminal))
    assert [each["seq"] for each in terminal.records()] == [0, 1, 2, 3, 4]
    assert [woken.next()["id"].split("/")[-2] for _ in range(5)] == ["0", "1", "2", "3", "4"]


BRIEF_S = 3.0
"""Seconds that are over soon, but not before a busy machine has set the clock."""


@pytest.mark.long
def test_waits_and_timeouts_are_neither_shortened_nor_prolonged_when_the_clock_is_set(
    stepped: DaemonProcess, clock: SteppedClock, gate: Gate
) -> None:
    terminal = stepped.terminal("timed")
    terminal.run("true")
    for offset in (-HOUR, DAY):
        clock.set(timedelta())
        begun = time.monotonic()
        patient = stepped.send("inbox_wait", timeout=GUARD_S, from_handle="patient").has_arrived()
        short = stepped.send("inbox_wait", timeout=BRIEF_S, from_handle="short")
        short.has_arrived_or_answered()  # its time may be over on a busy machine
        run = terminal.start(f"echo begun; {gate.hold}", timeout=BRIEF_S)
        gate.wait_reached()
        clock.set(offset)
        record = run.result()  # an hour late, or a day early, if it went by that clock
        assert (record["timed_out"], record["end"]) == (True, None)
        assert short.result()["messages"] == []
        assert time.monotonic() - begun >= BRIEF_S
        stepped.call("handoff", target_handle="patient", context="at last")
        [message] = patient.result()["messages"]
        assert message["body"] == "at last"
        assert clock.is_now(message["timestamp"])
        stepped.call("inbox_read", from_handle="patient", after=message["id"])
        gate.open()
        waited = stepped.call("term_wait", name="timed", seq=record["seq"], timeout=GUARD_S)
        assert waited["reason"] == "ended"
        assert 0 <= waited["record"]["duration_s"] <= time.monotonic() - begun


@pytest.mark.long
def test_what_a_later_start_finds_is_in_order_though_the_clock_was_set_back_between(
    stepped: DaemonProcess, clock: SteppedClock, gate: Gate
) -> None:
    terminal = stepped.terminal("kept")
    stepped.call("session_new", handle="bob")
    for number in range(3):
        terminal.run(f"echo {number}")
        stepped.call("handoff", target_handle="bob", context=f"message {number}")
    terminal.start(f"setsid sleep 1000 & echo cut short; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("cut short")
    stepped.kill()
    clock.set(-DAY)
    stepped.start()
    # A process shows no environment in the middle of an exec: its new shell may have just begun.
    until(lambda: len(stepped.shell_processes()) == 1, "what was left is found by its start time")
    *records, killed = terminal.records()
    assert [record["stdout"] for record in records] == ["0\n", "1\n", "2\n"]
    assert (killed["seq"], killed["end"], killed["duration_s"]) == (3, "killed_by_restart", None)
    assert clock.is_now(killed["finished_at"])
    assert terminal.run("echo on")["seq"] == 4
    stepped.call("handoff", target_handle="bob", context="message 3")
    messages = stepped.call("inbox_read", from_handle="bob")["messages"]
    assert [message["body"] for message in messages] == [f"message {n}" for n in range(4)]
    assert messages[3]["timestamp"] < messages[2]["timestamp"]

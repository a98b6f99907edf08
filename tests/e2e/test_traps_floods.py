"""Traps 9 and 23: output of any kind and any length."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.resources.waiting import until

pytestmark = pytest.mark.real

MAX_STDOUT_BYTES = 64 * 1024
MIB = 1024 * 1024

GARBAGE = {
    "an OSC that never ends": "printf '\\e]0;'; head -c 1000000 /dev/zero | tr '\\0' a",
    "an OSC 133 that never ends": "printf '\\e]133;D;0'; head -c 1000000 /dev/zero | tr '\\0' 9",
    "a CSI that never ends": "printf '\\e['; head -c 1000000 /dev/zero | tr '\\0' 0",
    "a DCS that never ends": "printf '\\eP'; head -c 1000000 /dev/zero | tr '\\0' q",
    "10 MB of ESC": "head -c 10000000 /dev/zero | tr '\\0' '\\033'",
    "NULs": "head -c 1000000 /dev/zero",
    "0xff": "head -c 1000000 /dev/zero | tr '\\0' '\\377'",
    "random bytes": "head -c 2000000 /dev/urandom",
    "half an escape at the end": "printf 'x\\e]133;'",
    "an ESC at the end": "printf 'x\\e'",
    "C1 controls": "printf '\\x9d133;D;0\\x9c\\x9b2J\\x90'",
    "a paste mode that is left on": "printf '\\e[?2004h'",
    "a paste mode that is switched off": "printf '\\e[?2004l'",
    "an alternate screen that is never left": "printf '\\e[?1049h'",
}


@pytest.mark.parametrize("cmd", GARBAGE.values(), ids=GARBAGE)
def test_trap_09_after_any_garbage_the_terminal_lives_and_the_next_run_is_right(
    terminal: LiveTerminal, cmd: str
) -> None:
    record = terminal.run(f"{cmd}; (exit 5)")
    assert (record["seq"], record["exit"], record["end"]) == (0, 5, "exited")
    assert len(record["stdout"].encode()) <= MAX_STDOUT_BYTES
    following = terminal.run("echo right; (exit 6)")
    assert (following["seq"], following["exit"], following["stdout"]) == (1, 6, "right\n")
    assert [each["exit"] for each in terminal.records()] == [5, 6]


FLOODS = {
    "20 MB in lines": "fold -w 80",
    "one line of 20 MB": "cat",
    "one line of 20 MB that is redrawn": "fold -w 80 | tr '\\n' '\\r'",
}


@pytest.mark.parametrize("shape", FLOODS.values(), ids=FLOODS)
def test_trap_23_much_output_is_cut_in_the_middle_and_memory_stays_flat(
    daemon: DaemonProcess, terminal: LiveTerminal, shape: str
) -> None:
    terminal.run("true")
    before = daemon.call("status")["rss_bytes"]
    record = terminal.run(f"head -c 20000000 /dev/zero | tr '\\0' a | {shape}")
    assert record["exit"] == 0
    assert len(record["stdout"].encode()) <= MAX_STDOUT_BYTES
    assert daemon.call("status")["rss_bytes"] - before < 16 * MIB
    kept = [each.stat().st_size for each in terminal.directory.glob("raw.*")]
    assert sum(kept) < 21 * MIB
    assert terminal.run("echo after")["stdout"] == "after\n"


def test_trap_23_the_middle_line_tells_how_much_was_left_out(terminal: LiveTerminal) -> None:
    record = terminal.run("seq 1 100000")
    whole = "".join(f"{number}\n" for number in range(1, 100_001)).encode()
    assert (record["truncated"], record["output_bytes"]) == (True, len(whole))
    lines = record["stdout"].splitlines()
    assert (lines[0], lines[-1]) == ("1", "100000")
    [cut] = [line for line in lines if not line.isdecimal()]
    shown = len(record["stdout"].encode()) - len(cut.encode())
    left_out = int("".join(filter(str.isdecimal, cut)))
    assert abs(left_out - (len(whole) - shown)) <= 2


def test_trap_23_another_terminal_answers_while_one_floods(
    terminal: LiveTerminal, new_terminal: NewTerminal, gate: Gate
) -> None:
    other = new_terminal()
    flood = terminal.start(f"{gate.hold}; yes", timeout=30 * GUARD_S)
    gate.wait_reached()
    gate.open()
    # On a busy machine `yes` may begin late: it floods once more is kept than a record shows.
    until(lambda: len(terminal.raw()) > 2 * MAX_STDOUT_BYTES, "a flood")
    for number in range(20):
        assert other.run(f"echo {number}")["stdout"] == f"{number}\n"
    assert terminal.described()["state"] == "running"
    terminal.keys("\x03")
    record = flood.result()
    assert (record["exit"], record["truncated"]) == (130, True)
    assert record["stdout"].startswith("y\ny\n")

"""The record of a command: every field of it."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, Gate, LiveTerminal

pytestmark = pytest.mark.real

FIELDS = {
    "seq": int,
    "cmd": str,
    "writer": str,
    "started_at": str,
    "finished_at": str,
    "duration_s": float,
    "exit": int,
    "stdout": str,
    "stderr": str,
    "killed_by_restart": bool,
    "timed_out": bool,
    "cwd": str,
    "output_bytes": int,
    "truncated": bool,
    "raw_start": int,
    "raw_end": int,
    "needs_input": type(None),
    "end": str,
    "cmd_reason": type(None),
    "may_need_input": type(None),
    "new_shell_since": type(None),
}


def moment(text: str) -> datetime:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    return datetime.fromisoformat(text)


def test_a_record_has_every_field_with_its_type(terminal: LiveTerminal) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    record = terminal.run("echo hé", from_handle="alice")
    after = datetime.now(UTC)
    assert {name: type(value) for name, value in record.items()} == FIELDS
    assert record == {
        "seq": 0,
        "cmd": "echo hé",
        "writer": "agent:alice",
        "exit": 0,
        "stdout": "hé\n",
        "stderr": "",
        "killed_by_restart": False,
        "timed_out": False,
        "cwd": terminal.info["cwd"],
        "output_bytes": 4,
        "truncated": False,
        "needs_input": None,
        "end": "exited",
        "cmd_reason": None,
        "may_need_input": None,
        "new_shell_since": None,
    } | {
        name: record[name]
        for name in ("started_at", "finished_at", "duration_s", "raw_start", "raw_end")
    }
    assert before <= moment(record["started_at"]) <= moment(record["finished_at"]) <= after
    assert terminal.read() == [record]


def test_the_raw_cursors_enclose_what_the_command_printed(terminal: LiveTerminal) -> None:
    records = [terminal.run(f"echo {word}; echo more") for word in ("one", "two", "three")]
    raw = terminal.raw()
    for record, word in zip(records, (b"one", b"two", b"three"), strict=True):
        assert raw[record["raw_start"] : record["raw_end"]].endswith(word + b"\r\nmore\r\n")
    cursors = [record[name] for record in records for name in ("raw_start", "raw_end")]
    assert cursors == sorted(cursors)


def test_a_duration_is_as_long_as_the_command(terminal: LiveTerminal, gate: Gate) -> None:
    sent = time.monotonic()
    running = terminal.start(f"echo begun; {gate.hold}")
    # Begin and end are when the daemon reads of them: on a busy machine a little late, both.
    terminal.has_printed("begun")
    began = time.monotonic()
    time.sleep(1)
    ended = time.monotonic()
    gate.open()
    record = running.result()
    rounding_s = 0.001
    assert record["duration_s"] >= ended - began - rounding_s
    assert record["duration_s"] <= time.monotonic() - sent + rounding_s
    elapsed = moment(record["finished_at"]) - moment(record["started_at"])
    # Two clocks, which are not read in the same moment.
    assert abs(elapsed.total_seconds() - record["duration_s"]) < 0.5
    assert terminal.run("true")["duration_s"] >= 0


@pytest.mark.parametrize("from_handle", [None, "human", "Human"])
def test_without_a_handle_the_writer_is_human(
    terminal: LiveTerminal, from_handle: str | None
) -> None:
    assert terminal.run("true", from_handle=from_handle)["writer"] == "human"


def test_seq_rises_by_one_from_zero(terminal: LiveTerminal) -> None:
    assert [terminal.run("true")["seq"] for _ in range(5)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("cmd", "code"),
    [
        ("sh -c 'kill -TERM $$'", 143),
        ("sh -c 'kill -KILL $$'", 137),
        ("sh -c 'kill -INT $$'", 130),
        ("sh -c 'kill -SEGV $$'", 139),
        ("(exit 255)", 255),
        ("(exit 256)", 0),
        ("no-such-command", 127),
        ("/etc/passwd", 126),
    ],
)
def test_the_exit_is_what_the_shell_says(terminal: LiveTerminal, cmd: str, code: int) -> None:
    assert terminal.run(cmd)["exit"] == code


def test_directory_and_variables_persist_between_commands(terminal: LiveTerminal) -> None:
    moved = terminal.run("mkdir -p 'a b' && cd 'a b' && export KEPT=yes && f() { echo called; }")
    assert moved["cwd"] == terminal.info["cwd"]
    record = terminal.run("pwd; sh -c 'echo $KEPT'; f")
    assert record["cwd"] == f"{terminal.info['cwd']}/a b"
    assert record["stdout"] == f"{terminal.info['cwd']}/a b\nyes\ncalled\n"
    assert terminal.described()["cwd"] == f"{terminal.info['cwd']}/a b"


def test_several_lines_are_one_record(terminal: LiveTerminal) -> None:
    script = "echo one\nfor i in 2 3; do\n  echo $i\ndone\ncat <<END\nfour\nEND\n(exit 9)"
    record = terminal.run(script)
    assert (record["cmd"], record["exit"], record["seq"]) == (script, 9, 0)
    assert record["stdout"] == "one\n2\n3\nfour\n"
    assert terminal.run("true")["seq"] == 1


@pytest.mark.parametrize(
    ("cmd", "stdout"),
    [
        ("printf '\\e[1;31mred\\e[0m plain\\n'", "red plain\n"),
        ("printf 'one\\rtwo\\n'", "two\n"),
        ("printf '10%%\\r20%%\\r100%%\\n'", "100%\n"),
        ("printf 'abc\\b\\bX\\n'", "aXc\n"),
        ("printf 'a\\tb\\n'", "a\tb\n"),
        ("printf '\\e]0;title\\aafter\\n'", "after\n"),
        ("printf 'no newline'", "no newline"),
        ("printf 'bad \\xff utf8\\n'", "bad \ufffd utf8\n"),
        ("printf '\\e]133;D;0\\a'; echo marks", "marks\n"),
    ],
)
def test_the_output_is_the_text_a_reader_wants(
    terminal: LiveTerminal, cmd: str, stdout: str
) -> None:
    assert terminal.run(cmd)["stdout"] == stdout


def test_standard_error_is_merged_as_on_any_terminal(terminal: LiveTerminal) -> None:
    record = terminal.run("echo out; echo err >&2; [ -t 1 ] && [ -t 2 ] && echo both")
    assert (record["stdout"], record["stderr"]) == ("out\nerr\nboth\n", "")


@pytest.mark.parametrize("size", [65_536, 65_537, 200_000])
def test_output_beyond_64_kib_is_cut_between_characters(terminal: LiveTerminal, size: int) -> None:
    count = (size + 1) // 3
    record = terminal.run(f"printf '日%.0s' $(seq {count}); printf %{size - 3 * count + 3}s")
    cut_at = 64 * 1024
    assert record["truncated"] == (record["output_bytes"] > cut_at)
    assert len(record["stdout"].encode()) <= cut_at
    assert "\ufffd" not in record["stdout"]
    if record["truncated"]:
        [middle] = record["stdout"].splitlines()[1:-1]
        assert re.search(r"\d+ bytes", middle)


@pytest.mark.parametrize("histcontrol", ["", "ignoreboth", "ignorespace", "ignoredups"])
@pytest.mark.parametrize("typed", ["echo typed", " echo typed", "echo  typed  "])
def test_a_typed_command_is_recorded_with_its_writer_and_text(
    new_terminal: NewTerminal, handle: str, histcontrol: str, typed: str
) -> None:
    terminal = new_terminal(f"HISTCONTROL={histcontrol}; PS1='$ '")
    terminal.run("echo before")
    wakes = terminal.subscribe(handle)
    for _ in range(2):
        terminal.keys(f"{typed}\r", from_handle="ann")
        wakes.next()
    assert terminal.run("echo after")["seq"] == 3
    records = terminal.records()[1:3]
    for record in records:
        assert (record["writer"], record["stdout"]) == ("agent:ann", "typed\n")
        assert (record["exit"], record["end"]) == (0, "exited")
        assert record["cmd"] in (typed, typed.strip(), None)
    if not histcontrol:
        assert [record["cmd"] for record in records] == [typed, typed]


def test_a_typed_command_belongs_to_whose_enter_began_it(terminal: LiveTerminal) -> None:
    terminal.keys("echo by ", from_handle="ann")
    terminal.keys("both\r", from_handle="bob")
    terminal.run("true")
    assert [each["writer"] for each in terminal.records()] == ["agent:bob", "human"]


def test_a_bare_enter_leaves_no_record(terminal: LiveTerminal) -> None:
    terminal.keys("\r\r\r")
    assert terminal.run("true")["seq"] == 0


def test_a_command_that_starts_nothing_leaves_a_record_when_it_was_run(
    terminal: LiveTerminal,
) -> None:
    for seq, cmd in enumerate(["", "# nothing", "\n\n"]):
        record = terminal.run(cmd)
        assert (record["seq"], record["cmd"], record["exit"], record["stdout"]) == (seq, cmd, 0, "")


@pytest.mark.alone
def test_what_is_printed_is_in_the_raw_log_within_a_tenth_of_a_second(
    terminal: LiveTerminal, gate: Gate
) -> None:
    lines = [f"line-{number}" for number in range(8)]
    parts = [f"printf '%s-%s\\n' line {number}; {gate.hold}" for number in range(len(lines))]
    running = terminal.start("; ".join(parts))
    took = [seconds_until_logged(terminal, gate, f"{line}\r\n".encode()) for line in lines]
    assert len(running.result()["stdout"].splitlines()) == len(lines)
    assert min(took) < 0.15, took  # a busy machine may take longer now and then, not each time


def seconds_until_logged(terminal: LiveTerminal, gate: Gate, printed: bytes) -> float:
    """From when it was printed, while nobody asks for it; each look is a wait in the daemon."""
    gate.wait_reached()
    began = time.monotonic()
    while printed not in terminal.raw():
        terminal.daemon.call("inbox_wait", timeout=0.01, from_handle="sleeper")
        assert time.monotonic() - began < GUARD_S
    took = time.monotonic() - began
    gate.open()
    return took

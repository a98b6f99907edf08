"""Traps 29 and 32: a command that waits for input is told, at once, and a secret is in no log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Connect, NewTerminal, on_both_shells
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal, contents_of
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

LONG_S = 45.0
"""Long enough that nothing but the input a command waits for ends a call."""

EDITOR = "vim.tiny" if shutil.which("vim") is None else "vim"


def waiting(terminal: LiveTerminal, cmd: str) -> dict[str, Any]:
    """The record of a command that was answered early: it waits, and has not ended."""
    record = terminal.run(cmd, timeout=LONG_S)
    assert (record["end"], record["exit"], record["finished_at"]) == (None, None, None)
    assert record["timed_out"] is False
    assert record["cmd"] == cmd
    return record


def ended(terminal: LiveTerminal, seq: int) -> dict[str, Any]:
    """The final record of ``seq``: a command behind it has ended."""
    terminal.run("true", timeout=LONG_S)
    [record] = [record for record in terminal.records() if record["seq"] == seq]
    return record


@pytest.mark.parametrize(
    ("cmd", "kind", "program", "answer", "exit_code", "stdout"),
    [
        ("cat", "input", "cat", "word\r\x04", 0, "word\nword\n"),
        ("read -r x; echo got $x", "input", "bash", "word\r", 0, "word\ngot word\n"),
        ("read -rp 'Name? ' x; (exit 4)", "input", "bash", "word\r", 4, "Name? word\n"),
        ("read -rt 60 x; echo got $x", "input", "bash", "word\r", 0, "word\ngot word\n"),
        ("read -rn 1 x; echo; echo got $x", "input", "bash", "y", 0, "y\ngot y\n"),
        ("read -re x; echo got $x", "input", "bash", "word\r", 0, "word\ngot word\n"),
        ("sh -c 'cat; exit 3'", "input", "cat", "\x04", 3, ""),
        ("printf one; cat", "input", "cat", "\x04", 0, "one"),
        ("seq 100000 | cat /dev/tty", "input", "cat", "\x03", 130, None),
    ],
)
def test_trap_32_a_command_that_reads_the_terminal_is_told_before_the_timeout(
    terminal: LiveTerminal,
    cmd: str,
    kind: str,
    program: str,
    answer: str,
    exit_code: int,
    stdout: str | None,
) -> None:
    record = waiting(terminal, cmd)
    assert record["needs_input"] == {"kind": kind, "program": program}
    terminal.keys(answer)
    final = ended(terminal, record["seq"])
    assert (final["exit"], final["end"], final["timed_out"]) == (exit_code, "exited", False)
    assert final["needs_input"] is None
    assert stdout is None or final["stdout"] == stdout


READS_ASIDE = (
    "python3 -c 'import sys, threading, time; "
    "threading.Thread(target=sys.stdin.read, daemon=True).start(); {work}'"
)


@pytest.mark.parametrize(
    ("cmd", "program"),
    [
        (READS_ASIDE.format(work="time.sleep(60)"), "python3"),
        (
            READS_ASIDE.format(work='print("at work ", end="", flush=True); time.sleep(60)'),
            "python3",
        ),
        ("sleep 60 | cat /dev/tty", "cat"),
        ("(sleep 60; echo done) | cat /dev/tty", "cat"),
        ("sleep 60 | cat </dev/tty", "cat"),
        ("bash -c 'sleep 60 | cat /dev/tty'", "cat"),
    ],
)
def test_a_read_of_the_terminal_beside_other_work_sends_no_caller_away(
    terminal: LiveTerminal, cmd: str, program: str
) -> None:
    record = terminal.run(cmd, timeout=6)
    assert (record["timed_out"], record["needs_input"]) == (True, None)
    assert record["may_need_input"] == {"kind": "input", "program": program}
    waited = terminal.daemon.call("term_wait", name=terminal.name, timeout=0.5)
    assert waited["reason"] == "timeout"
    running = terminal.described()["running"]
    assert (running["needs_input"], running["may_need_input"]) == (None, record["may_need_input"])
    busy = terminal.refusal("echo mine", timeout=0.3)
    assert f"{program!r} in it may wait for input" in str(busy)
    terminal.keys("\x03")
    assert ended(terminal, record["seq"])["may_need_input"] is None


def test_a_thread_that_reads_while_its_program_only_prompts_is_told_before_the_timeout(
    terminal: LiveTerminal,
) -> None:
    asks = "import threading; threading.Thread(target=lambda: print(input('Name? '))).start()"
    record = waiting(terminal, f'python3 -c "{asks}"')
    assert (record["needs_input"], record["may_need_input"]) == (
        {"kind": "input", "program": "python3"},
        None,
    )
    terminal.keys("word\r")
    assert ended(terminal, record["seq"])["stdout"] == "Name? word\nword\n"


@pytest.mark.parametrize(
    ("cmd", "program", "leave"),
    [
        (f"{EDITOR} --clean", "vim", ":q!\r"),
        ("less /etc/services", "less", "q"),
        ("python3 -q", "python3", "\x04"),
        ("watch -n 60 true", "watch", "\x03"),
    ],
)
def test_trap_32_a_program_that_takes_single_keys_is_told_once_it_is_quiet(
    terminal: LiveTerminal, cmd: str, program: str, leave: str
) -> None:
    if shutil.which(cmd.split()[0]) is None:
        pytest.skip(f"{cmd.split()[0]} is not installed")
    record = waiting(terminal, cmd)
    assert record["needs_input"]["kind"] == "input"
    assert record["needs_input"]["program"].startswith(program)
    terminal.keys(leave)
    assert ended(terminal, record["seq"])["end"] == "exited"


def test_trap_32_a_commit_that_opens_an_editor_is_told_and_goes_on(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    for name in ("git", EDITOR):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    terminal.run(f"cd '{tmp_path}'; git init -q; git config user.email a@b; git config user.name a")
    record = waiting(terminal, f"GIT_EDITOR='{EDITOR} --clean' git commit --allow-empty -q")
    assert record["needs_input"]["program"].startswith("vim")
    terminal.keys("imessage\x1b:wq\r")
    assert ended(terminal, record["seq"])["exit"] == 0
    assert terminal.run("git log --format=%s | cat")["stdout"] == "message\n"


def test_trap_29_a_run_while_a_program_waits_is_refused_at_once_and_is_never_run(
    terminal: LiveTerminal,
) -> None:
    record = waiting(terminal, "read -rsp 'Password: ' x; echo got")
    for event in ("ended", "started"):
        # It may be the password: nothing of it is kept, and it is no command later.
        error = terminal.refusal("hunter2", timeout=LONG_S, until=event)
        assert error.code == "busy"
        assert "'bash' in it waits for a secret; your command was not typed. " in str(error)
    terminal.keys("secret\r")
    assert ended(terminal, record["seq"])["stdout"] == "Password: got\n"
    assert [each["cmd"] for each in terminal.records()][-1] == "true"


@pytest.mark.long
def test_trap_32_a_repl_is_answered_by_keys_and_waits_again(terminal: LiveTerminal) -> None:
    record = waiting(terminal, "python3 -q")
    terminal.keys("print(6 * 7)\r")
    waits = lambda: terminal.described()["running"]["needs_input"] is not None  # noqa: E731
    until(waits, "it is seen to wait again")
    busy = terminal.refusal("echo mine", timeout=LONG_S)
    assert (busy.code, "'python3' in it waits for input" in str(busy)) == ("busy", True)
    terminal.keys("exit(5)\r")
    final = ended(terminal, record["seq"])
    assert final["exit"] == 5
    assert "42\n" in final["stdout"]


@pytest.mark.long
@pytest.mark.parametrize(
    "cmd",
    [
        "{gate}",
        "{{ {gate}; }} | cat",
        "sh -c '{gate}'",
        "cat <<<x >/dev/null; {gate}",
        "cat & {gate}; kill %1",
    ],
)
def test_trap_32_a_quiet_command_that_reads_no_terminal_is_waited_for(
    terminal: LiveTerminal, gate: Gate, cmd: str
) -> None:
    pending = terminal.start(cmd.format(gate=gate.hold), timeout=LONG_S)
    gate.wait_reached()
    # Looked at after 0.1, 0.3, 1 and 2 seconds: another terminal's cat, told later, was as well.
    other = terminal.daemon.terminal(f"{terminal.name}-other")
    for _ in range(3):
        record = waiting(other, "read -rn 1 x")
        other.keys("y")
        ended(other, record["seq"])
    other.close()
    gate.open()
    record = pending.result()
    assert (record["end"], record["needs_input"]) == ("exited", None)


def test_trap_32_a_command_that_begins_to_read_late_is_told_too(
    terminal: LiveTerminal, gate: Gate
) -> None:
    pending = terminal.start(f"{gate.hold}; cat", timeout=LONG_S)
    gate.wait_reached()
    gate.open()
    record = pending.result()
    assert record["needs_input"] == {"kind": "input", "program": "cat"}
    terminal.keys("\x04")
    assert ended(terminal, record["seq"])["exit"] == 0


def test_trap_32_subscribers_are_woken_by_the_end_and_not_by_the_waiting(
    terminal: LiveTerminal, handle: str
) -> None:
    wakes = terminal.subscribe(handle)
    record = waiting(terminal, "read -r x; (exit 3)")
    assert wakes.unread() == []
    terminal.keys("\r")
    assert "exit 3" in wakes.next()["text"]
    assert ended(terminal, record["seq"])["exit"] == 3


def test_trap_32_who_waited_behind_it_has_its_turn(terminal: LiveTerminal, gate: Gate) -> None:
    waits = terminal.start(f"{gate.hold}; cat").has_arrived()
    gate.wait_reached()
    following = terminal.start("echo mine").has_arrived()
    gate.open()
    record = waits.result()
    terminal.keys("\x04")
    assert following.result()["stdout"] == "mine\n"
    assert ended(terminal, record["seq"])["stdout"] == ""


def test_trap_32_what_was_shown_survives_a_kill_of_the_daemon(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    record = waiting(own_daemon.terminal("one"), "printf asked; cat")
    assert record["stdout"] == "asked"
    own_daemon.kill()
    own_daemon.start()
    [final] = own_daemon.terminal("one").records()
    assert (final["seq"], final["cmd"], final["stdout"]) == (record["seq"], record["cmd"], "asked")
    assert (final["end"], final["timed_out"], final["needs_input"]) == (
        "killed_by_restart",
        False,
        None,
    )
    own_daemon.stop()


@pytest.mark.parametrize(
    ("cmd", "program"),
    [
        ("read -rsp 'Password: ' x; echo; test ${#x} = 23", "bash"),
        ("python3 -c 'import getpass; assert len(getpass.getpass()) == 23'", "python3"),
        ("sh -c 'stty -echo; read -r x; stty echo; test ${#x} = 23'", "sh"),
    ],
)
def test_trap_29_a_secret_is_asked_for_and_is_in_no_file(
    terminal: LiveTerminal, cmd: str, program: str
) -> None:
    secret = "correct horse battery 9"
    assert len(secret) == 23
    record = waiting(terminal, cmd)
    assert record["needs_input"]["kind"] == "secret"
    assert record["needs_input"]["program"].startswith(program)
    terminal.keys(secret[:10])
    notes = files_with(terminal.daemon, secret[:10])
    terminal.keys(secret[10:] + "\r")
    assert ended(terminal, record["seq"])["exit"] == 0
    assert notes == files_with(terminal.daemon, secret[:10]) == []
    assert secret[:10] not in terminal.daemon.log
    assert secret[:10] not in json.dumps(terminal.records())


def files_with(daemon: DaemonProcess, text: str) -> list[str]:
    """The files of the daemon's state that hold ``text``."""
    files = contents_of(daemon.state.directory)
    assert any(path.name == "raw.log" for path in files)
    return [str(path) for path, content in files.items() if text.encode() in content]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_trap_32_an_mcp_client_is_told(
    daemon: DaemonProcess, new_terminal: NewTerminal, connect_mcp: Connect, mode: str
) -> None:
    terminal = new_terminal()
    async with connect_mcp(daemon, mode, None) as client:
        arguments = {"name": terminal.name, "cmd": "cat", "timeout": LONG_S}
        result = await client.call_tool("aegis_term_run", arguments)
    assert not result.is_error
    record = result.structured_content
    assert record is not None
    assert record["needs_input"] == {"kind": "input", "program": "cat"}
    terminal.keys("\x04")
    assert ended(terminal, record["seq"])["exit"] == 0


@on_both_shells
@pytest.mark.parametrize(
    ("cmd", "kind", "stdout"),
    [
        ("read -r x; echo got $x; (exit 3)", "input", "word\ngot word\n"),
        ("printf 'Key: '; read -rs x; echo; echo ${#x}; (exit 3)", "secret", "Key: \n4\n"),
    ],
)
def test_trap_32_a_wait_is_told_what_its_command_waits_for_and_then_how_it_ended(
    terminal: LiveTerminal, shell: str, gate: Gate, cmd: str, kind: str, stdout: str
) -> None:
    wait = {"name": terminal.name, "timeout": LONG_S}
    running = terminal.start(f"{gate.hold}; {cmd}", timeout=0.1).result()
    gate.wait_reached()
    assert running["timed_out"]
    by_seq = terminal.daemon.send("term_wait", **wait, seq=running["seq"]).has_arrived()
    by_pattern = terminal.daemon.send("term_wait", **wait, pattern="never").has_arrived()
    gate.open()
    told = by_seq.result()
    assert (told["reason"], told["match"]) == ("needs_input", None)
    assert told["record"]["needs_input"] == {"kind": kind, "program": shell}
    assert told["record"]["end"] is None
    assert by_pattern.result()["reason"] == "needs_input"
    assert terminal.daemon.call("term_wait", **wait)["reason"] == "needs_input"  # it still does
    terminal.keys("word\r")
    outcome = terminal.daemon.call("term_wait", **wait, seq=running["seq"])
    assert outcome["reason"] == "ended"
    assert (outcome["record"]["exit"], outcome["record"]["stdout"]) == (3, stdout)
    assert outcome["record"]["needs_input"] is None

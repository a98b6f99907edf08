"""Trap 36: a line at the prompt that is empty again, and who types while it is not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from aegis.clock import utc_now
from tests.e2e.conftest import NewTerminal, needs_zsh
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.e2e.screens import Shown, look, wait_screen

pytestmark = pytest.mark.real

ASKED_S = 1.5
"""By then a line that may be empty was asked about, several times over."""

STARTUPS = {
    "bash": "PS1='one\\ntwo$ '\n",
    "zsh": "PS1='$ '; RPROMPT=right\nautoload -Uz compinit; compinit -u -d ~/.zcompdump\n",
    "fish": "",
}

on_all_shells = pytest.mark.parametrize(
    "shell",
    [
        pytest.param(each, marks=pytest.mark.skipif(which(each) is None, reason=f"no {each}"))
        for each in STARTUPS
    ],
)


@pytest.fixture
def terminal(new_terminal: NewTerminal, shell: str) -> LiveTerminal:
    # In the C locale Backspace erases one byte of a character beyond ASCII.
    environment = {"LC_ALL": "C.UTF-8"}
    if shell == "fish":
        return new_terminal(env=environment)
    return new_terminal(STARTUPS[shell], env=environment)


def outcome(record: dict[str, Any]) -> tuple[object, ...]:
    return record["exit"], record["stdout"], record["end"]


def wait_typing(terminal: LiveTerminal, writer: str | None) -> None:
    """Wait until the list says so."""
    deadline = time.monotonic() + GUARD_S
    while True:
        typing = terminal.described()["typing"]
        if (typing and typing["writer"]) == writer:
            return
        assert time.monotonic() < deadline, (typing, terminal.raw()[-300:])
        time.sleep(0.02)


EMPTY_AGAIN = {
    "a character and Backspace": "x\x7f",
    "a word and Ctrl-U": "hello\x15",
    "a word and Ctrl-W": "hello\x17",
    "text beyond ASCII and Backspace": "é世\x7f\x7f",
    "an arrow": "\x1b[D",
    "an arrow of a keypad": "\x1bOC",
    "an old line and back": "\x1b[A\x1b[B",
    "Ctrl-A and Ctrl-K": "abc\x01\x0b",
    "Delete": "a\x1b[D\x1b[3~",
    "an undo": "a\x1f",
    "a paste and Ctrl-U": "\x1b[200~some text\x1b[201~\x15",
    "a TAB": "\t",
    "a TAB and Ctrl-U": "ech\t\x15",
    "a search that was left": "\x12ech\x07\x15",
}


@on_all_shells
@pytest.mark.parametrize("keys", EMPTY_AGAIN.values(), ids=EMPTY_AGAIN)
def test_trap_36_a_line_that_is_empty_again_keeps_nobody_away(
    terminal: LiveTerminal, shell: str, keys: str
) -> None:
    terminal.run("echo earlier")
    if shell == "fish" and keys.startswith("\x12"):
        keys += "\x1b"
        pytest.skip("fish leaves its search by Escape, which is not followed")
    # Before the line editor reads, Backspace is the terminal's: it erases single bytes.
    wait_screen(terminal, lambda _: prompt_stands(terminal))
    terminal.keys(keys, from_handle="ann")
    if keys == "\t":
        terminal.keys("\x15", from_handle="ann")  # zsh may have put a tab there
    assert outcome(terminal.run("echo mine", timeout=20)) == (0, "mine\n", "exited")
    assert terminal.described()["typing"] is None


def prompt_stands(terminal: LiveTerminal) -> bool:
    """Whether the prompt and the mode of pastes were drawn, and are in the raw log."""
    shown = terminal.raw()
    end = shown.rfind(b"\x1b]133;D")
    return b"\x1b]133;B" in shown[end:] and b"\x1b[?2004h" in shown[end:]


def shows_prompt(screen: Shown) -> bool:
    """Whether there is text in the line of the cursor."""
    return bool(screen["lines"][screen["cursor"]["row"]].strip())


HALF = {
    "text": "echo half ",
    "text that was corrected": "echo halg\x7ff ",
    "moved into": "ab\x1b[D",
    "beyond ASCII": "é",
    "a search": "\x12",
    "a search with text": "\x12ear",
    "half a paste": "\x1b[200~",
    "half a paste with text": "\x1b[200~echo ",
    "half a character": "\udce4\udcb8",
    "an escape": "\x1b",
    "half a sequence": "\x1b[",
    "a numeric argument": "\x1b5",
    "a quoted insert": "\x16",
    "an erased text and a quoted insert": "x\x7f\x16",
    "a prefix": "\x18",
}


@on_all_shells
@pytest.mark.parametrize("keys", HALF.values(), ids=HALF)
def test_trap_36_what_is_half_done_is_neither_joined_nor_disturbed(
    terminal: LiveTerminal, shell: str, keys: str
) -> None:
    terminal.run("echo earlier")
    wait_typing(terminal, None)
    if "\udce4" in keys:
        pytest.skip("keys are text: half a character cannot be sent through this face")
    terminal.keys(keys, from_handle="ann")
    before = terminal.raw()
    assert terminal.refusal("ear", timeout=ASKED_S).code == "busy"
    assert terminal.described()["typing"]["writer"] == "agent:ann"
    assert b"P;k=l" not in terminal.raw()[len(before) :]
    assert [each["cmd"] for each in terminal.records()] == ["echo earlier"]


@pytest.mark.long
def test_trap_36_a_question_of_a_completion_is_not_answered_by_ours(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal("PS1='$ '\n")
    terminal.keys("\t\t", from_handle="ann")
    wait_screen(terminal, lambda _: terminal.raw().endswith(b"possibilities? (y or n)"))
    assert terminal.refusal("echo mine", timeout=ASKED_S).code == "busy"
    assert terminal.raw().endswith(b"possibilities? (y or n)")
    terminal.keys("n", from_handle="ann")
    assert terminal.run("echo mine")["stdout"] == "mine\n"


class PatientDaemon(DaemonProcess):
    """A daemon that holds output back for an answer for as long as a busy machine takes for it."""

    patch = f"from aegis.terminals.shell import submissions; submissions.HOLD_S = {GUARD_S}"


@pytest.fixture
def patient(tmp_path: Path, shell: str) -> Iterator[PatientDaemon]:
    running = PatientDaemon(tmp_path, STARTUPS[shell])
    running.start()
    try:
        yield running
    finally:
        code = running.stop()
    assert code == 0
    running.check_left_nothing()


@on_all_shells
def test_trap_36_asking_shows_nothing(patient: PatientDaemon, shell: str) -> None:
    info = patient.call("term_spawn", name="t", shell=shell, env={"LC_ALL": "C.UTF-8"})
    terminal = LiveTerminal(patient, "t", info)
    terminal.run("echo earlier")
    wait_screen(terminal, lambda shown: prompt_stands(terminal) and shows_prompt(shown))
    before, screen = terminal.raw(), look(terminal)["lines"]
    terminal.keys("x\x7f", from_handle="ann")
    wait_screen(terminal, lambda _: b"P;k=l" in terminal.raw()[len(before) :])
    wait_typing(terminal, None)
    assert look(terminal)["lines"] == screen
    drawn = terminal.raw()[len(before) :]
    assert drawn.endswith(b";l=0\x07")
    assert b"\x1b]133;B" not in drawn
    if shell == "bash":
        assert re.fullmatch(rb"x\x08\x1b\[K\x1b\]133;P;k=l;q=[0-9]+;l=0\x07", drawn)


@pytest.mark.long
@on_all_shells
def test_trap_36_what_is_typed_while_the_line_is_asked_about_arrives_in_order(
    terminal: LiveTerminal,
) -> None:
    text = "abcdefghijklmnopqrstuvwxyz0123456789"
    terminal.keys("echo ", from_handle="ann")
    for character in text:
        # Each pause is about as long as the one after which the line is asked about.
        terminal.keys(f"z\x7f{character}", from_handle="ann")
        time.sleep(0.005)
    for character in text[:6]:
        terminal.keys(f"\x1b[D\x1b[C{character}", from_handle="ann")
        time.sleep(0.5)
    terminal.keys("\r", from_handle="bob")
    assert terminal.run("echo mine")["stdout"] == "mine\n"
    assert terminal.records()[0]["stdout"] == f"{text}{text[:6]}\n"


@on_all_shells
def test_trap_36_text_that_was_erased_can_be_had_back_after_the_line_was_asked_about(
    terminal: LiveTerminal,
) -> None:
    terminal.keys("echo kept\x15", from_handle="ann")
    wait_typing(terminal, None)
    terminal.keys("\x19\r", from_handle="ann")
    assert terminal.run("echo mine")["stdout"] == "mine\n"
    assert terminal.records()[0]["stdout"] == "kept\n"


@on_all_shells
def test_trap_36_the_list_shows_who_types_and_since_when(terminal: LiveTerminal) -> None:
    assert terminal.described()["typing"] is None
    begun = utc_now()
    terminal.keys("echo half ", from_handle="ann")
    wait_typing(terminal, "agent:ann")
    since = terminal.described()["typing"]["since"]
    assert begun <= since <= utc_now()
    row = terminal.daemon.cli("term", "list").stdout
    [line] = [each for each in row.splitlines() if each.startswith(f"{terminal.name} ")]
    assert "typing: agent:ann, " in line
    terminal.keys("more", from_handle="ann")
    assert terminal.described()["typing"]["since"] == since
    terminal.keys("\x03", from_handle="ann")
    wait_typing(terminal, None)


def test_trap_36_who_is_refused_is_told_who_types_since_when_and_what_to_do(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal()
    terminal.keys("echo half ", from_handle="ann")
    wait_typing(terminal, "agent:ann")
    since = terminal.described()["typing"]["since"]
    assert datetime.fromisoformat(since).tzinfo is not None
    error = str(terminal.refusal("echo mine", timeout=0.2))
    for part in (terminal.name, "agent:ann is typing a line there", "aegis_term_keys", r"'\x03'"):
        assert part in error
    assert " s, since " in error
    terminal.keys("\x03")
    assert terminal.run("echo mine")["stdout"] == "mine\n"


@pytest.mark.parametrize("shell", [pytest.param("zsh", marks=needs_zsh)])
def test_trap_36_in_zsh_a_row_of_kills_stays_one_though_the_line_is_asked_about_between_them(
    terminal: LiveTerminal,
) -> None:
    before = terminal.raw()
    terminal.keys("echo aa bb\x17", from_handle="ann")
    wait_screen(terminal, lambda _: b"P;k=l" in terminal.raw()[len(before) :])
    terminal.keys("\x17", from_handle="ann")
    terminal.keys("\x19\r", from_handle="ann")
    assert terminal.run("echo mine")["stdout"] == "mine\n"
    assert terminal.records()[0]["stdout"] == "aa bb\n"


@pytest.mark.skipif(which("fish") is None, reason="no fish")
@pytest.mark.parametrize("shell", ["fish"])
def test_trap_36_in_fish_an_open_pager_is_no_empty_line(terminal: LiveTerminal) -> None:
    before = terminal.raw()
    terminal.keys("\t", from_handle="ann")
    wait_screen(terminal, lambda _: b"P;k=l" in terminal.raw()[len(before) :])
    screen = look(terminal)["lines"]
    assert terminal.refusal("echo mine", timeout=0.2).code == "busy"
    assert look(terminal)["lines"] == screen
    terminal.keys("\x15", from_handle="ann")
    wait_typing(terminal, "agent:ann")
    terminal.keys("\x03", from_handle="ann")
    assert terminal.run("echo mine")["stdout"] == "mine\n"


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
def test_a_run_that_was_typed_behind_another_line_is_answered_with_its_number_and_runs_once(
    new_terminal: NewTerminal, new_gate: Callable[[], Gate], shell: str, tmp_path: Path
) -> None:
    first, widget, ahead, ran = new_gate(), new_gate(), new_gate(), tmp_path / "ran"
    # At the prompt behind AHEAD a widget types a line, which zsh runs before all that it reads.
    terminal = new_terminal(
        f"""
        types-ahead() {{ {widget.hold}; BUFFER="{ahead.hold}; echo ahead"; zle accept-line }}
        zle -N types-ahead
        bindkey '^Xg' types-ahead
        zle-line-init() {{ [[ -n $AHEAD ]] && {{ unset AHEAD; zle -U $'\x18g' }} }}
        zle -N zle-line-init
        """
    )
    one = terminal.start(f"{first.hold}; AHEAD=1").has_arrived()
    first.wait_reached()
    mine = terminal.start(f"echo mine; echo x >>'{ran}'", timeout=6.0).has_arrived()
    first.open()
    assert one.result()["exit"] == 0
    widget.wait_reached()
    while terminal.described()["state"] != "running":  # the run is typed
        time.sleep(0.02)
    terminal.keys("echo late\r", from_handle="ann")
    wait_typing(terminal, "agent:ann")  # behind the run
    widget.open()
    ahead.wait_reached()
    record = mine.result()
    assert (record["timed_out"], record["end"], record["stdout"]) == (True, None, "")
    assert record["truncated"] is False
    assert terminal.refusal("true", timeout=0.2).code == "busy"
    assert not ran.exists()
    ahead.open()
    waited = terminal.daemon.call("term_wait", name=terminal.name, seq=record["seq"])
    final = waited["record"]
    assert (waited["reason"], final["seq"], final["timed_out"]) == ("ended", record["seq"], True)
    assert outcome(final) == (0, "mine\n", "exited")
    assert final["raw_start"] == record["raw_start"]
    terminal.run("true")
    printed = [each["stdout"] for each in terminal.records()]
    # The kernel gives a tty what was written into its PTY a little later, on a busy machine by tens
    # of milliseconds: when AHEAD runs already, the tty echoes it.
    printed[1] = printed[1].removeprefix("echo late\n")
    assert printed == ["", "ahead\n", "mine\n", "late\n", ""]
    assert ran.read_text() == "x\n"

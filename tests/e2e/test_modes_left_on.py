"""The modes of the terminal that a killed program has left on: they are off at the next prompt."""

from __future__ import annotations

import re
from shutil import which

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess, LiveTerminal
from tests.e2e.streams import stream_client

pytestmark = pytest.mark.real

on_all_shells = pytest.mark.parametrize(
    "shell",
    [
        pytest.param(each, marks=pytest.mark.skipif(which(each) is None, reason=f"no {each}"))
        for each in ("bash", "zsh", "fish", "dash")
    ],
)

MODES_ON = (
    r"\033[?1049h\033[?1000h\033[?1002;1006h\033[?1004h\033[?1h\033=\033[>4;2m\033[>1u\033[=5u"
    r"\033[?2004h\033[?25l\033[?2026h\033[?2048h\033[3;9r\033[4h"
)
KILLED = f"sh -c 'printf \"{MODES_ON}\"; kill -9 $$'"

OFF = (1049, 1000, 1002, 1006, 1004, 2026, 2048)
OFF_BEFORE_THE_PROMPT = (
    *(b"\x1b[?1l", b"\x1b>"),  # zsh of Debian switches them on again
    *(b"\x1b[>4m", b"\x1b[<1u", b"\x1b[=0u", b"\x1b7\x1b[r\x1b8", b"\x1b[4l"),
)


def last_switch(data: bytes, mode: int) -> bytes:
    """How a private mode was switched last: ``h``, ``l``, or empty."""
    switches = re.findall(rb"\x1b\[\?([0-9;]+)([hl])", data)
    return next(
        (letter for modes, letter in reversed(switches) if b"%d" % mode in modes.split(b";")), b""
    )


def check_off(raw: bytes) -> None:
    assert [mode for mode in OFF if last_switch(raw, mode) != b"l"] == []
    assert last_switch(raw, 25) == b"h"
    behind = raw[raw.rfind(b"\x1b[?2048h") :]
    assert [each for each in OFF_BEFORE_THE_PROMPT if each not in behind] == []


@on_all_shells
async def test_what_a_killed_program_switched_on_is_off_before_the_prompt_for_all_viewers(
    daemon: DaemonProcess, new_terminal: NewTerminal, shell: str
) -> None:
    terminal = new_terminal(shell=shell)
    terminal.run("true")
    async with stream_client(daemon) as client:
        before = await client.open("terminal_output", name=terminal.name)
        record = terminal.run(KILLED)
        assert record["exit"] == 137
        seen = await before.bytes_until(b"\x1b[?2048l")
        terminal.wait_prompt()
        later = await client.open("terminal_output", name=terminal.name, screen=True)
        redraw = (await later.item())["screen"]["redraw"].encode()
    raw = terminal.raw()
    check_off(raw)
    # Every byte is the same for all: what the viewer got is in the log, at its cursor.
    assert seen in raw
    # The switches are behind the end mark: no record has them.
    own = raw[record["raw_start"] : record["raw_end"]]
    assert b"\x1b[?2048h" in own
    assert b"\x1b[?2048l" not in own
    off = raw.index(b"\x1b[?2048l", record["raw_end"])
    if shell in ("bash", "zsh"):
        assert last_switch(raw, 2004) == b"h"
        assert raw.rfind(b"\x1b[?2004h") > off
    if shell == "dash":
        assert last_switch(raw, 2004) == b"l"
    drawn = [mode for mode in (1000, 1002, 1004, 1006, 1049) if last_switch(redraw, mode) == b"h"]
    assert drawn == []
    assert redraw.endswith(b"\x1b[?25h")
    assert terminal.run("echo fine")["stdout"] == "fine\n"


def test_with_standard_error_split_the_modes_are_off_too(new_terminal: NewTerminal) -> None:
    terminal = new_terminal(stderr="separate")
    terminal.run(f"{KILLED} 2>&1")
    terminal.run(f"sh -c 'printf \"{MODES_ON}\" >&2; kill -9 $$'")
    check_off(terminal.wait_prompt())


def test_a_prompt_that_reports_the_end_itself_keeps_its_own_modes(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal("readonly PROMPT_COMMAND=:\n")
    terminal.run("true")
    terminal.run(KILLED)
    raw = terminal.wait_prompt()
    assert [mode for mode in (1000, 1002, 1004, 1006) if last_switch(raw, mode) != b"l"] == []
    assert last_switch(raw, 2004) == b"h"


def test_the_modes_of_a_program_that_ends_with_its_shell_are_off_for_the_fresh_one(
    terminal: LiveTerminal,
) -> None:
    record = terminal.run(f"printf '{MODES_ON}'; kill -9 $$")
    assert record["end"] == "shell_exit"
    assert terminal.run("echo fine")["stdout"] == "fine\n"
    check_off(terminal.raw())
    assert b"\x1b[?2048l" not in terminal.raw()[record["raw_start"] : record["raw_end"]]


def test_modes_of_the_users_start_up_files_stay_on(new_terminal: NewTerminal) -> None:
    terminal = new_terminal("printf '\\033[?1004h\\033[>4;1m'\n")
    for _ in range(2):
        terminal.run(KILLED)
    raw = terminal.wait_prompt()
    assert last_switch(raw, 1004) == b"h"
    assert last_switch(raw, 1000) == b"l"


@on_all_shells
@pytest.mark.parametrize("is_vi", [False, True])
def test_a_late_report_of_the_focus_keeps_nobody_away(
    new_terminal: NewTerminal, shell: str, *, is_vi: bool
) -> None:
    vi = "fish_vi_key_bindings" if shell == "fish" else "set -o vi"
    terminal = new_terminal()
    terminal.run(vi if is_vi else ":")
    # A window answers the switch at once; the program that asked has been killed by then.
    for report in ("\x1b[I", "\x1b[I" if is_vi else "\x1b[O"):  # zsh's vi mode opens a line at [O
        terminal.keys(report)
        record = terminal.run("echo mine", timeout=GUARD_S)
        assert (record["exit"], record["stdout"]) == (0, "mine\n")
    terminal.keys("echo half ", from_handle="ann")
    terminal.keys("\x1b[I", from_handle="bob")
    assert "agent:ann is typing" in str(terminal.refusal("echo mine", timeout=0.4))

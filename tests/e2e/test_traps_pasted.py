"""Trap 35: no command that ran, typed or pasted, is missing from the ``cmd`` of its record."""

from __future__ import annotations

from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, needs_zsh
from tests.e2e.harness import DaemonProcess, LiveTerminal, Wakes

pytestmark = pytest.mark.real

PASTE, PASTE_END = "\x1b[200~", "\x1b[201~"

NO_HISTORY_CONTROL = "PS1='$ '\nunset HISTCONTROL\n"
DEBIAN = "PS1='$ '\nHISTCONTROL=ignoreboth\n"
"""What Debian and Ubuntu put into the .bashrc of new users."""

needs_fish = pytest.mark.skipif(which("fish") is None, reason="fish is not installed")

on_all_shells = pytest.mark.parametrize(
    "shell", ["bash", pytest.param("zsh", marks=needs_zsh), pytest.param("fish", marks=needs_fish)]
)


def pasted(text: str) -> str:
    """The keys of a person who pastes ``text`` and presses Enter."""
    return f"{PASTE}{text}{PASTE_END}\r"


def typed(terminal: LiveTerminal, keys: str) -> list[dict[str, Any]]:
    """The records of what ``keys`` made the shell run."""
    before = terminal.run("true")["seq"]
    terminal.keys(keys, from_handle="ann")
    terminal.run("true")
    return terminal.read(since_seq=before)[:-1]


def spawn(new_terminal: NewTerminal, shell: str, startup: str = NO_HISTORY_CONTROL) -> LiveTerminal:
    if shell == "fish":
        return new_terminal(shell="fish")
    return new_terminal(startup if shell == "bash" else None)


@on_all_shells
@pytest.mark.parametrize("by", ["human", "ann"])
def test_trap_35_a_paste_of_several_commands_is_one_record_with_the_whole_text(
    new_terminal: NewTerminal, daemon: DaemonProcess, tmp_path: Path, shell: str, by: str
) -> None:
    terminal = spawn(new_terminal, shell)
    pm = f"pm-{terminal.name}"
    daemon.call("term_subscribe", name=terminal.name, from_handle=pm, pattern="touch")
    evidence = tmp_path / "evidence"
    text = f"touch '{evidence}'\necho innocent"
    terminal.keys(pasted(text), from_handle=by)
    assert terminal.run("true")["seq"] == 1
    [record, _] = terminal.records()
    assert evidence.exists()
    assert (record["cmd"], record["stdout"]) == (text, "innocent\n")
    assert record["cmd_reason"] is None
    assert "innocent" in Wakes(daemon, pm).next()["body"]


@pytest.mark.parametrize("startup", [NO_HISTORY_CONTROL, DEBIAN])
@pytest.mark.parametrize(
    ("keys", "cmd"),
    [
        (pasted("echo one\necho two\necho three"), "echo one\necho two\necho three"),
        (pasted("echo one; echo two"), "echo one; echo two"),
        (pasted("cat <<END\nbody\nEND"), "cat <<END\nbody\nEND\n"),
        (pasted("cat <<END\nbody\nEND\necho after"), "cat <<END\nbody\nEND\n\necho after"),
        (pasted("echo 'two\nlines'"), "echo 'two\nlines'"),
        ("for i in 1 2\rdo echo $i\rdone\r", "for i in 1 2; do echo $i; done"),
        ("echo 'two\rlines'\r", "echo 'two\nlines'"),
        ("cat <<END\rbody\rEND\r", "cat <<END\nbody\nEND\n"),
        ("echo a \\\rb\r", "echo a b"),
        ("echo one" + "\x17\x17echo two\r", "echo two"),
        ("# a remark\r", None),
    ],
)
def test_trap_35_several_lines_are_the_text_that_ran(
    new_terminal: NewTerminal, startup: str, keys: str, cmd: str | None
) -> None:
    terminal = new_terminal(startup)
    assert [each["cmd"] for each in typed(terminal, keys)] == ([] if cmd is None else [cmd])


@pytest.mark.parametrize(
    "text",
    [
        "# a remark\n touch evidence",
        ")\n touch evidence",
        " touch evidence\necho innocent",
        "echo innocent\n touch evidence",
        "echo innocent\n touch evidence\n# a remark",
        "set +o history\ntouch evidence\nset -o history\n# a remark\n# another",
        "HISTIGNORE='*touch*'\ntouch evidence\nunset HISTIGNORE\n# a remark",
        "HISTIGNORE='*touch*'\ntouch evidence\n)\nunset HISTIGNORE",
        "touch evidence\nhistory -c\necho innocent",
        "touch evidence\nhistory -d -2\necho innocent",
        "for i in 1\ndo touch evidence\ndone\necho innocent",
        "f() {\n touch evidence\n}\n f\necho innocent",
        "touch evidence\n\n\necho innocent",
    ],
)
@pytest.mark.parametrize("startup", [NO_HISTORY_CONTROL, DEBIAN])
@pytest.mark.parametrize("by_paste", [True, False])
def test_trap_35_no_command_is_hidden_by_what_the_history_leaves_out(
    new_terminal: NewTerminal, tmp_path: Path, startup: str, text: str, by_paste: bool
) -> None:
    terminal = new_terminal(startup, cwd=str(tmp_path))
    # The line may come from the shell itself too: a key that inserts it, and accepts it.
    if not by_paste:
        terminal.run(f"bind -x '\"\\C-g\": READLINE_LINE=$text'; text={_quoted(text)}")
    for record in typed(terminal, pasted(text) if by_paste else "\x07\r"):
        assert record["cmd"] is None or "touch evidence" in record["cmd"]
        assert (record["cmd"] is None) == bool(record["cmd_reason"])
        if by_paste and "history" not in text:
            assert record["cmd"] is not None
    assert (tmp_path / "evidence").exists()


def _quoted(text: str) -> str:
    return "$'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def test_trap_35_without_bracketed_paste_each_line_has_a_record(new_terminal: NewTerminal) -> None:
    terminal = new_terminal("PS1='$ '\n")
    terminal.run("bind 'set enable-bracketed-paste off'")
    records = typed(terminal, "echo one\recho two\recho three\r")
    assert [each["cmd"] for each in records] == ["echo one", "echo two", "echo three"]


@on_all_shells
def test_trap_35_a_paste_while_a_command_runs_hides_nothing(
    new_terminal: NewTerminal, tmp_path: Path, gate: Any, shell: str
) -> None:
    terminal = spawn(new_terminal, shell)
    pending = terminal.start(f"sh -c '{gate.hold}'")
    gate.wait_reached()
    terminal.keys(f"touch '{tmp_path}/evidence'\recho innocent\r", from_handle="ann")
    gate.open()
    pending.result()
    terminal.run("true")
    texts = [each["cmd"] for each in terminal.records()[1:-1]]
    assert texts == [f"touch '{tmp_path}/evidence'", "echo innocent"]


@pytest.mark.parametrize(
    ("keys", "cmds"),
    [
        ("echo one\recho one\r", ["echo one", None]),  # ignoredups
        (" echo one\r", [None]),
        ("echo one\r!!:s/one/two/\r", ["echo one", "echo two"]),
        ("echo one\r\x1b[A\r", ["echo one", None]),
        ("echo one\recho two\r\x12one\r", ["echo one", "echo two", "echo one"]),
        ("echo one\rfc -s one=two\r", ["echo one", "echo two"]),
    ],
)
def test_trap_35_recalled_lines_are_right_or_null(
    new_terminal: NewTerminal, keys: str, cmds: list[str | None]
) -> None:
    terminal = new_terminal(DEBIAN)
    terminal.run("true")
    _typed_line(terminal, "set -H")
    lines = keys.split("\r")[:-1]
    records = [typed_line for line in lines for typed_line in _typed_line(terminal, line)]
    assert [each["cmd"] for each in records] == cmds


def _typed_line(terminal: LiveTerminal, line: str) -> list[dict[str, Any]]:
    before = terminal.records()[-1]["seq"]
    terminal.wait_editing()  # before, the tty takes Ctrl-R for itself
    terminal.keys(f"{line}\r")
    while not (records := terminal.read(since_seq=before)):
        terminal.daemon.call("term_wait", name=terminal.name, timeout=5)
    return records


@pytest.mark.parametrize("startup", [NO_HISTORY_CONTROL, DEBIAN])
@pytest.mark.parametrize("lithist", ["", "shopt -s lithist\n", "shopt -u cmdhist\n"])
def test_trap_39_the_text_is_whole_however_the_history_keeps_several_lines(
    new_terminal: NewTerminal, startup: str, lithist: str
) -> None:
    terminal = new_terminal(startup + lithist)
    [record] = typed(terminal, "for i in 1 2\rdo echo $i\rdone\r")
    joint = "\n" if lithist else "; "
    assert record["cmd"] == joint.join(["for i in 1 2", "do echo $i", "done"])
    text = "for i in 3 4\ndo echo $i\ndone"
    [record] = typed(terminal, pasted(text))
    assert record["cmd"] == text


@pytest.mark.parametrize("value", ["'%F %T '", "", "'%%s 9\t '"])
def test_trap_39_a_readonly_format_of_times_is_no_part_of_the_text(
    new_terminal: NewTerminal, value: str
) -> None:
    terminal = new_terminal(NO_HISTORY_CONTROL + f"HISTTIMEFORMAT={value}\nreadonly HISTTIMEFORMAT")
    [record] = typed(terminal, "echo one\r")
    assert (record["cmd"], record["stdout"]) == ("echo one", "one\n")
    [record] = typed(terminal, pasted("echo one\necho two"))
    assert record["cmd"] == "echo one\necho two"


def test_trap_35_a_pattern_fires_where_the_text_is_not_known(
    new_terminal: NewTerminal, daemon: DaemonProcess
) -> None:
    terminal = new_terminal(DEBIAN)
    pm = f"pm-{terminal.name}"
    daemon.call("term_subscribe", name=terminal.name, from_handle=pm, pattern="touch")
    [record] = typed(terminal, " touch /dev/null\r")
    assert record["cmd"] is None
    assert "history" in record["cmd_reason"]
    first = Wakes(daemon, pm).next()["body"].splitlines()[0]
    assert first.startswith("$ ? (")
    assert "run by agent:ann" in first


def test_trap_35_a_pattern_fires_for_a_text_too_long_to_be_searched(
    new_terminal: NewTerminal, daemon: DaemonProcess
) -> None:
    terminal = new_terminal()
    pm = f"pm-{terminal.name}"
    daemon.call("term_subscribe", name=terminal.name, from_handle=pm, pattern="touch")
    terminal.run("echo plain")
    terminal.run(f": {'x' * 70_000}\ntouch /dev/null")
    assert Wakes(daemon, pm).next()["body"].startswith("$ : xxx")


@pytest.mark.parametrize("startup", ["readonly PS0=user\n", "PROMPT_COMMAND=('PS0=')\n"])
def test_trap_35_a_typed_command_has_a_record_also_where_its_start_is_not_told(
    new_terminal: NewTerminal, tmp_path: Path, startup: str
) -> None:
    terminal = new_terminal(f"{NO_HISTORY_CONTROL}{startup}", cwd=str(tmp_path))
    assert terminal.run("echo hi")["exit"] == 0
    [record] = typed(terminal, "touch evidence; (exit 3)\r")
    assert (record["cmd"], record["exit"]) == ("touch evidence; (exit 3)", 3)
    [record] = typed(terminal, pasted("touch evidence\necho innocent"))
    assert record["cmd"] is None or record["cmd"] == "touch evidence\necho innocent"

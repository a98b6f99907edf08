"""Trap 39: tracing and traps of the user show nothing of the hook, and change no record."""

from __future__ import annotations

from shutil import which

import pytest

from tests.e2e.conftest import NewTerminal, needs_zsh
from tests.e2e.harness import LiveTerminal

pytestmark = pytest.mark.real

HOOK = (b"__aegis", b"builtin", b"133;")
"""What of the hook a trace could show; a mark is invisible, and its text in a trace is not."""


def traces(terminal: LiveTerminal) -> list[bytes]:
    """The lines of the raw log in which the hook shows: marks are taken out before."""
    text = b"".join(part.partition(b"\a")[2] for part in terminal.raw().split(b"\x1b]133;"))
    return [line for line in text.splitlines() if any(word in line for word in HOOK)]


TRACE = "set -x"
FUNCTIONS = "set -T; set -E; shopt -s extdebug"


@pytest.mark.parametrize(
    "startup",
    [
        TRACE,
        f"{TRACE}; PS4='+\\t '",
        f"{TRACE}; PS4='$(echo inner) '",
        f"{TRACE}; {FUNCTIONS}",
        f"{TRACE}; set -o posix",
    ],
)
@pytest.mark.parametrize("separate", [False, True])
def test_trap_39_a_trace_shows_the_users_commands_alone_in_bash(
    new_terminal: NewTerminal, startup: str, separate: bool
) -> None:
    arguments = {"stderr": "separate"} if separate else {}
    terminal = new_terminal("PS1='$ '\n", **arguments)
    terminal.run(startup)
    for status in (0, 3):
        record = terminal.run(f"echo hi; (exit {status})")
        assert record["exit"] == status
        printed = record["stderr" if separate else "stdout"]
        assert "hi" in record["stdout"]
        assert "echo hi" in printed
        assert not [word for word in ("aegis", "builtin", "status") if word in printed]
    terminal.keys("echo typed\r")
    assert terminal.run("true")["exit"] == 0
    assert terminal.read(last_n=2)[0]["cmd"] == "echo typed"
    assert traces(terminal) == []


@pytest.mark.parametrize(
    "trap",
    [
        "trap 'echo \"<$BASH_COMMAND>\"' DEBUG",
        "trap 'echo \"<$BASH_COMMAND>\" >&2' DEBUG",
        "set -T; trap 'echo \"<$BASH_COMMAND>\"' DEBUG",
        "set -ET; trap 'echo \"<$BASH_COMMAND>\"' DEBUG RETURN ERR",
        "shopt -s extdebug; trap 'echo \"<$BASH_COMMAND>\"' DEBUG",
    ],
)
def test_trap_39_a_debug_trap_prints_nothing_about_the_hook_in_bash(
    new_terminal: NewTerminal, trap: str
) -> None:
    terminal = new_terminal("PS1='$ '\n")
    terminal.run(trap)
    for _ in range(2):
        assert terminal.run("echo hi")["stdout"] == "<echo hi>\nhi\n"
    terminal.keys("echo typed\r")
    terminal.run("true")
    typed = terminal.read(last_n=2)[0]
    assert (typed["cmd"], typed["stdout"]) == ("echo typed", "<echo typed>\ntyped\n")
    assert traces(terminal) == []


@pytest.mark.parametrize("options", ["set -eu", "set -euET", "set -eo pipefail"])
def test_trap_39_errexit_and_unset_variables_do_not_touch_the_hook(
    new_terminal: NewTerminal, options: str
) -> None:
    terminal = new_terminal(f"PS1='$ '\ntrap 'echo ERR' ERR\n{options}\n")
    assert terminal.run("echo hi")["stdout"] == "hi\n"
    record = terminal.run("false || echo no")
    assert (record["exit"], record["stdout"]) == (0, "no\n")
    terminal.keys("echo typed\r")
    terminal.run("true")
    assert [each["cmd"] for each in terminal.read(last_n=2)] == ["echo typed", "true"]
    assert terminal.described()["restarts"] == 0


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
@pytest.mark.parametrize(
    ("startup", "stdout"),
    [
        ("setopt xtrace; PS4='+'", "+echo hi\nhi\n"),
        ("setopt xtrace; PS4='+$(echo inner)'; setopt prompt_subst", None),
        ("setopt err_exit; trap 'echo Z' ZERR", "hi\n"),
    ],
)
def test_trap_39_traces_and_traps_show_nothing_of_the_hook_in_zsh(
    new_terminal: NewTerminal, startup: str, stdout: str | None
) -> None:
    terminal = new_terminal("PS1='$ '\n")
    terminal.run(startup)
    for _ in range(2):
        record = terminal.run("echo hi")
        assert record["exit"] == 0
        assert stdout is None or record["stdout"] == stdout
    terminal.keys("echo typed\r")
    terminal.run("true")
    assert terminal.read(last_n=2)[0]["cmd"] == "echo typed"
    assert traces(terminal) == []


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
def test_trap_39_the_trace_of_a_precmd_of_the_user_is_in_no_record_of_zsh(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal("PS1='$ '\nprecmd() { seen=$? }\n")
    terminal.run("setopt xtrace; PS4='+'")
    for status in (0, 3):
        assert terminal.run(f"(exit {status})")["stdout"] == f"+exit {status}\n"
        assert terminal.run("echo $seen")["stdout"] == f"+echo {status}\n{status}\n"


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
@pytest.mark.parametrize(
    "trap",
    [
        'TRAPDEBUG() { echo "<$ZSH_DEBUG_CMD>" }',
        "trap 'echo \"<$ZSH_DEBUG_CMD>\"' DEBUG",
        "unsetopt debug_before_cmd; trap 'echo \"<$ZSH_DEBUG_CMD>\"' DEBUG",
    ],
)
def test_trap_39_a_debug_trap_puts_nothing_of_the_hook_into_a_record_in_zsh(
    new_terminal: NewTerminal, trap: str
) -> None:
    terminal = new_terminal("PS1='$ '\n")
    terminal.run(trap)
    for _ in range(2):
        stdout = terminal.run("echo hi")["stdout"]
        assert sorted(stdout.split()) in (["<echo", "hi", "hi>"], ["<>", "hi"])
    terminal.keys("echo typed\r")
    terminal.run("true")
    typed = terminal.read(last_n=2)[0]
    assert typed["cmd"] == "echo typed"
    assert sorted(typed["stdout"].split()) in (["<echo", "typed", "typed>"], ["<>", "typed"])


@pytest.mark.skipif(which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize("trace", ["set -g fish_trace 1", "set -gx fish_trace all"])
def test_trap_39_a_trace_shows_nothing_of_the_hook_in_fish(
    new_terminal: NewTerminal, trace: str
) -> None:
    terminal = new_terminal(shell="fish")
    terminal.run(trace)
    for _ in range(2):
        record = terminal.run("echo hi")
        assert record["stdout"].endswith("hi\n")
        assert "aegis" not in record["stdout"]
    assert traces(terminal) == []


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
@pytest.mark.parametrize(
    "empty",
    [
        "precmd_functions=()",
        "precmd_functions=() preexec_functions=()",
        "unset precmd_functions preexec_functions",
        "preexec_functions=()",
        "precmd_functions=() preexec_functions=(); unset -f precmd",
        "precmd_functions=(); zle -D zle-line-init",
    ],
)
@pytest.mark.parametrize("prompt", ["PROMPT> ", "one%F{red}\\nPROMPT> ", "%(?..[%?] )PROMPT> "])
def test_trap_39_emptied_hooks_of_zsh_put_no_prompt_into_the_output(
    new_terminal: NewTerminal, empty: str, prompt: str
) -> None:
    terminal = new_terminal(f"PS1=$'{prompt}'\nRPS1=right\n")
    for cmd in (f"{empty} 2>/dev/null", f"echo before; {empty} 2>/dev/null; (exit 3)"):
        record = terminal.run(cmd)
        assert record["stdout"] == ("before\n" if "before" in cmd else "")
        if "before" in cmd:
            assert record["exit"] == 3
    for status in (0, 4):
        record = terminal.run(f"echo hi; (exit {status})")
        assert (record["stdout"], record["exit"]) == ("hi\n", status)
    terminal.keys("precmd_functions=() preexec_functions=()\r")
    terminal.run("true")
    terminal.keys("echo typed\r")
    terminal.run("true")
    typed = terminal.read(last_n=2)[0]
    assert (typed["cmd"], typed["stdout"]) == ("echo typed", "typed\n")

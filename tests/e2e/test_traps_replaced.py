"""Trap 12: another kind of shell in the shell's place is followed as that kind is."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, needs_zsh
from tests.e2e.harness import GUARD_S, LiveTerminal

pytestmark = pytest.mark.real

INTEGRATIONS = {
    "bash": "osc133",
    "zsh": "osc133",
    "fish": "osc133",
    "dash": "fallback",
    "mksh": "fallback",
    "busybox sh": "fallback",
    "tcsh": "fallback",
}


def outcome(record: dict[str, Any]) -> tuple[int | None, str, str | None]:
    return record["exit"], record["stdout"], record["end"]


def present(*shells: str) -> list[Any]:
    """These shells as parameters; one that is not installed is skipped."""
    return [
        pytest.param(
            shell,
            marks=pytest.mark.skipif(
                shutil.which(shell.split()[0]) is None, reason=f"{shell} is not installed"
            ),
        )
        for shell in shells
    ]


def check_exact(terminal: LiveTerminal, kind: str) -> None:
    """Commands are followed as in a terminal of that kind; what is typed as well."""
    for cmd, exit_code, stdout in (
        ("echo one", 0, "one\n"),
        ("sh -c 'exit 3'", 3, ""),
        ("echo two\nsh -c 'exit 7'", 7, "two\n"),
        ("true", 0, ""),
    ):
        assert outcome(terminal.run(cmd)) == (exit_code, stdout, "exited")
    terminal.keys("echo typed\r", from_handle="ann")
    assert terminal.run("echo last")["stdout"] == "last\n"
    typed = terminal.read(last_n=2)[0]
    if kind != "tcsh":  # what is typed there is not recorded
        assert (typed["cmd"], typed["writer"]) == ("echo typed", "agent:ann")
        assert outcome(typed) == (0, "typed\n", "exited")
    info = terminal.described()
    assert (info["integration"], info["state"]) == (INTEGRATIONS[kind], "idle")
    assert info["restarts"] == 0


@pytest.mark.parametrize("shell", present("bash", "zsh", "fish", "dash"))
@pytest.mark.parametrize("kind", present(*INTEGRATIONS))
def test_trap_12_a_shell_of_another_kind_is_followed_as_that_kind_is(
    terminal: LiveTerminal, shell: str, kind: str
) -> None:
    record = terminal.run(f"echo before; exec {kind}", timeout=GUARD_S)
    assert (record["exit"], record["end"], record["needs_input"]) == (None, "lost", None)
    shown = record["stdout"].removeprefix("before\n")
    assert shown == "" or any(name in shown for name in ("BusyBox", "friendly"))  # their greeting
    check_exact(terminal, kind)
    terminal.run("exec bash", timeout=GUARD_S)
    check_exact(terminal, "bash")


@pytest.mark.parametrize("kind", present("zsh", "fish", "dash"))
def test_trap_12_a_person_may_replace_the_shell_by_another_kind(
    terminal: LiveTerminal, kind: str
) -> None:
    terminal.keys(f"exec {kind}\r", from_handle="ann")
    assert terminal.run("echo mine")["stdout"] == "mine\n"
    typed = terminal.records()[0]
    assert (typed["writer"], typed["exit"], typed["end"]) == ("agent:ann", None, "lost")
    check_exact(terminal, kind)


@pytest.mark.parametrize("kind", present("zsh", "fish", "dash"))
def test_trap_12_a_start_up_file_may_replace_the_shell_by_another_kind(
    new_terminal: NewTerminal, kind: str
) -> None:
    terminal = new_terminal(f"exec {kind}\n")
    check_exact(terminal, kind)


@pytest.mark.parametrize(
    ("kind", "apart"),
    [
        *(pytest.param(*each.values, True, marks=each.marks) for each in present("bash", "zsh")),
        *(pytest.param(*each.values, False, marks=each.marks) for each in present("fish", "dash")),
    ],
)
@pytest.mark.parametrize("shell", present("bash", "zsh"))
def test_trap_12_standard_error_stays_apart_where_the_new_shell_can_do_it(
    new_terminal: NewTerminal, kind: str, apart: bool
) -> None:
    terminal = new_terminal(stderr="separate")
    record = terminal.run(f"echo before; exec {kind}", timeout=GUARD_S)
    assert (record["exit"], record["end"]) == (None, "lost")
    for _ in range(3):
        record = terminal.run("echo out; echo err >&2")
        assert (record["exit"], record["end"]) == (0, "exited")
        if apart:
            assert (record["stdout"], record["stderr"]) == ("out\n", "err\n")
        else:  # a fish cannot let go of the other PTY, which then keeps no order with this one
            assert record["stdout"].startswith("out\n")
            assert kind == "fish" or record["stdout"] == "out\nerr\n"
    terminal.keys("echo typed\r", from_handle="ann")
    assert terminal.run("echo last")["stdout"] == "last\n"
    assert terminal.read(last_n=2)[0]["exit"] == 0


TAKEN_FROM_ZSH = [
    # `precmd` calls the hook where precmd_functions does not.
    "zle -D zle-line-init; precmd_functions=()",
    "zle -D zle-line-init; unset precmd_functions preexec_functions",
    "zle -D zle-line-init zle-line-finish; precmd_functions=() preexec_functions=()",
    "zle -D zle-line-init __aegis-probe; precmd_functions=()",
    "zle -D zle-line-init; precmd_functions=(); bindkey -d",
    # Without it the end is told when it is asked for.
    "zle -D zle-line-init; precmd_functions=(); unfunction precmd",
    "zle -D zle-line-init; unset precmd_functions preexec_functions; unfunction precmd",
]


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
@pytest.mark.parametrize("cmd", TAKEN_FROM_ZSH)
def test_trap_12_a_zsh_that_lost_its_hooks_tells_the_end_when_it_is_asked(
    terminal: LiveTerminal, cmd: str
) -> None:
    for exit_code in (0, 5):
        record = terminal.run(f"{cmd}; (exit {exit_code})")
        assert outcome(record) == (exit_code, "", "exited")
        check_exact(terminal, "zsh")


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
@pytest.mark.parametrize(
    "cmd",
    [
        "unfunction -m '__aegis_*'",
        "unfunction -m '__aegis_*'; precmd_functions=() preexec_functions=(); bindkey -d",
        "zle -D zle-line-init __aegis-probe; precmd_functions=(); unfunction precmd",
        "zle -D zle-line-init; precmd_functions=(); unfunction precmd; bindkey -d",
        "__aegis_n=(); zle -D zle-line-init",
        "exec zsh",
        "exec zsh -f",
        "exec zsh -o ksh_arrays -o no_unset -o rc_quotes",
        "exec -a -zsh zsh",
    ],
)
def test_trap_12_a_zsh_without_its_hook_gets_it_again_and_the_command_is_lost(
    terminal: LiveTerminal, cmd: str
) -> None:
    record = terminal.run(f"cd /tmp; kept=word; {cmd}", timeout=GUARD_S)
    assert (record["exit"], record["end"], record["timed_out"]) == (None, "lost", False)
    check_exact(terminal, "zsh")
    assert terminal.run("pwd")["stdout"] == "/tmp\n"
    kept = "" if cmd.startswith("exec") else "word"
    assert terminal.run('printf %s "${kept-}"')["stdout"] == kept
    assert terminal.run("[[ -o prompt_sp ]]")["exit"] == 1


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
def test_trap_12_widgets_of_the_user_survive_that_the_hook_is_read_again(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal(
        "PS1='$ '\ninit() { (( inits++ )); }\nzle -N zle-line-init init\n"
        "finish() { (( finishes++ )); }\nzle -N zle-line-finish finish\n"
    )
    terminal.run("true")
    assert terminal.run("__aegis_n=() inits=0 finishes=0")["end"] == "lost"
    terminal.run("true")
    before = terminal.run("echo $inits $finishes")["stdout"].split()
    after = terminal.run("echo $inits $finishes")["stdout"].split()
    assert [int(count) + 1 for count in before] == [int(count) for count in after]


@needs_zsh
@pytest.mark.parametrize("shell", ["zsh"])
def test_trap_12_the_line_editor_of_a_zsh_command_is_not_taken_for_the_prompt(
    terminal: LiveTerminal,
) -> None:
    record = terminal.run("vared -cp 'which? ' x; echo got $x")
    assert record["needs_input"] == {"kind": "input", "program": "zsh"}
    terminal.keys("this\r")
    assert terminal.run("true")["exit"] == 0
    edited = terminal.records()[0]
    assert (edited["exit"], edited["end"]) == (0, "exited")
    assert edited["stdout"].endswith("got this\n")


@pytest.mark.parametrize("shell", present("fish"))
@pytest.mark.parametrize(
    "cmd",
    [
        "functions -e __aegis_prompt",
        "functions -e (functions -a -n | string split , | string match '__aegis_*')",
        "functions -e __aegis_prompt __aegis_probe; bind -e \\x1d; bind -e \\x1e",
        "set -e __aegis_n",
        "exec fish",
        "exec fish --no-config",
    ],
)
def test_trap_12_a_fish_without_its_hook_gets_it_again_and_the_command_is_lost(
    terminal: LiveTerminal, cmd: str
) -> None:
    record = terminal.run(f"cd /tmp; {cmd}", timeout=GUARD_S)
    assert (record["exit"], record["end"], record["timed_out"]) == (None, "lost", False)
    check_exact(terminal, "fish")
    assert terminal.run("pwd")["stdout"] == "/tmp\n"


@pytest.mark.parametrize("shell", present("fish"))
def test_trap_12_what_a_fish_command_reads_is_not_taken_for_the_prompt(
    terminal: LiveTerminal,
) -> None:
    record = terminal.run("read -P 'which? ' x; echo got $x")
    assert record["needs_input"] == {"kind": "input", "program": "fish"}
    terminal.keys("this\r")
    assert terminal.run("true")["exit"] == 0
    asked = terminal.records()[0]
    assert (asked["exit"], asked["end"]) == (0, "exited")
    assert asked["stdout"].endswith("got this\n")

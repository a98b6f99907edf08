"""Traps 1, 2, 10 and 12: shells with hooks of their users, and commands of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, needs_zsh, on_both_shells
from tests.e2e.harness import LiveTerminal

pytestmark = pytest.mark.real


def outcome(record: dict[str, Any]) -> tuple[int | None, str, str | None]:
    return record["exit"], record["stdout"], record["end"]


USERS_HOOKS = {
    "a PROMPT_COMMAND string": "PROMPT_COMMAND='echo string >>$HOME/seen'",
    "a PROMPT_COMMAND array": "PROMPT_COMMAND=('echo one >>$HOME/seen' 'echo two >>$HOME/seen')",
    "a DEBUG trap": "trap 'echo debug >>$HOME/seen' DEBUG",
    "a PS0 of the user": "PS0='$(echo ps0 >>$HOME/seen)'",
    "exported prompts": "export PS0= PS1='$ ' PS2='> ' PROMPT_COMMAND='echo string >>$HOME/seen'",
    "a prompt that is a program": "PS1='$(echo prompt >>$HOME/seen)$ '",
}


USERS_HOOKS_OF_ZSH = {
    "a precmd function": "precmd() { echo precmd; echo precmd >>$HOME/seen }",
    "a preexec function": "preexec() { echo preexec; echo preexec >>$HOME/seen }",
    "functions in arrays": (
        "hook() { echo hook; echo hook >>$HOME/seen }\n"
        "precmd_functions=(hook) preexec_functions=(hook)"
    ),
    "a DEBUG trap": "TRAPDEBUG() { echo debug >>$HOME/seen }",
    "a widget": "zle-line-init() { echo widget >>$HOME/seen }; zle -N zle-line-init",
    "options": (
        "precmd() { echo precmd >>$HOME/seen }\n"
        "setopt ksh_arrays sh_word_split no_unset warn_create_global local_options err_return"
    ),
    "a prompt that is a program": "setopt prompt_subst; PS1='$(echo prompt >>$HOME/seen)$ '",
    "a right prompt": "precmd() { echo >>$HOME/seen }; RPROMPT=right; setopt transient_rprompt",
}


@pytest.mark.parametrize(
    ("shell", "startup"),
    [
        *(pytest.param("bash", startup, id=name) for name, startup in USERS_HOOKS.items()),
        *(
            pytest.param("zsh", startup, id=f"zsh, {name}", marks=needs_zsh)
            for name, startup in USERS_HOOKS_OF_ZSH.items()
        ),
    ],
)
def test_trap_01_what_the_user_hooked_still_runs_and_none_of_it_is_in_the_output(
    new_terminal: NewTerminal, tmp_path: Path, startup: str
) -> None:
    terminal = new_terminal(startup)
    seen = tmp_path / f"home-{terminal.name}" / "seen"
    terminal.run("true")
    before = len(seen.read_text().splitlines())
    assert outcome(terminal.run("echo hello; (exit 3)")) == (3, "hello\n", "exited")
    terminal.run("true")  # the next prompt was shown only now, for sure
    assert len(seen.read_text().splitlines()) > before
    assert terminal.described()["integration"] == "osc133"


def test_trap_01_a_shell_like_bash_preexec_hears_of_every_command(
    new_terminal: NewTerminal, tmp_path: Path
) -> None:
    terminal = new_terminal(
        'preexec() { [[ $BASH_COMMAND == __* || $COMP_LINE ]] || echo "$BASH_COMMAND" >>~/seen; }\n'
        "trap preexec DEBUG\n"
        "PROMPT_COMMAND='precmd'\nprecmd() { :; }\n"
    )
    assert outcome(terminal.run("echo one")) == (0, "one\n", "exited")
    seen = (tmp_path / f"home-{terminal.name}" / "seen").read_text()
    assert "echo one" in seen.splitlines()


def test_trap_01_a_ps0_that_prints_is_in_no_output_however_many_lines_a_command_has(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal("PS1='$ '; PS0='\\t now runs\n'")
    record = terminal.run("echo one\ncat <<END\n two\nEND\ntrue\nprintf three\n(exit 3)")
    assert outcome(record) == (3, "one\n two\nthree", "exited")
    assert terminal.raw().count(b" now runs") == 5


@on_both_shells
def test_trap_01_a_virtual_environment_is_activated_and_left_again(terminal: LiveTerminal) -> None:
    terminal.run("python3 -m venv --without-pip env")
    assert outcome(terminal.run(". env/bin/activate")) == (0, "", "exited")
    active = terminal.run("echo $VIRTUAL_ENV; command -v python3")
    venv = f"{terminal.info['cwd']}/env"
    assert active["stdout"] == f"{venv}\n{venv}/bin/python3\n"
    assert outcome(terminal.run("deactivate; (exit 4)")) == (4, "", "exited")


@on_both_shells
@pytest.mark.parametrize("startup", [None, "set -a; PS1='$ '", "export PS0 PS1 PS2 PROMPT_COMMAND"])
def test_trap_01_no_child_of_the_shell_has_the_secret_in_its_environment(
    new_terminal: NewTerminal, startup: str | None
) -> None:
    terminal = new_terminal(startup)
    terminal.run("true")
    secret = terminal.run('echo "$__aegis_n"')["stdout"].strip()
    assert len(secret) >= 16
    for words in ("env", "export -p", "bash -c 'set'", "cat /proc/self/environ"):
        assert secret not in terminal.run(words)["stdout"], words
    assert secret.encode() not in terminal.raw().replace(secret.encode() + b"\r\n", b"")


RETURNS_AT_ONCE = [
    ("(exit 42)", 42, ""),
    ("f() { :; }", 0, ""),
    ("", 0, ""),
    ("   ", 0, ""),
    ("# a comment", 0, ""),
    ("{ echo grouped; }", 0, "grouped\n"),
    ("((0))", 1, ""),
    ("((1))", 0, ""),
    ("! true", 1, ""),
    ("x=5", 0, ""),
    ("return 3 2>/dev/null", None, ""),
    ("no-such-command-here 2>/dev/null", 127, ""),
    (":;", 0, ""),
]


@on_both_shells
@pytest.mark.parametrize(("cmd", "code", "stdout"), RETURNS_AT_ONCE)
def test_trap_02_it_returns_at_once_with_the_right_exit(
    terminal: LiveTerminal, cmd: str, code: int | None, stdout: str
) -> None:
    assert terminal.run("(exit 7)")["exit"] == 7
    record = terminal.run(cmd)
    assert (record["stdout"], record["end"], record["seq"]) == (stdout, "exited", 1)
    assert code is None or record["exit"] == code
    assert outcome(terminal.run("echo after")) == (0, "after\n", "exited")


@on_both_shells
@pytest.mark.parametrize("cmd", [")", "if fi", "done", "&& true"])
def test_trap_02_a_syntax_error_returns_at_once_and_says_so(
    terminal: LiveTerminal, cmd: str
) -> None:
    record = terminal.run(cmd)
    first_line = record["stdout"].splitlines()[0]
    assert "syntax error" in first_line or "parse error" in first_line
    assert record["exit"] not in (0, None)
    assert outcome(terminal.run("echo after")) == (0, "after\n", "exited")


@pytest.mark.parametrize(
    ("shell", "talk"),
    [
        ("bash", "echo ping >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x"),
        pytest.param("zsh", "print -p ping; read -rp x; echo $x", marks=needs_zsh),
    ],
)
def test_trap_02_a_coprocess_returns_at_once(terminal: LiveTerminal, talk: str) -> None:
    assert terminal.run("coproc cat")["exit"] == 0
    assert terminal.run(talk)["stdout"].endswith("ping\n")


@pytest.mark.parametrize("shell", [pytest.param("zsh", marks=needs_zsh)])
@pytest.mark.parametrize(
    "startup",
    [
        "RPROMPT=right; setopt transient_rprompt",
        "x() { region_highlight=('0 9 bold') }; zle -N zle-line-finish x",
        "x() { POSTDISPLAY=' behind'; zle -R }; zle -N zle-line-finish x",
        "setopt prompt_sp; precmd() { setopt prompt_sp }",
        "unset zle_bracketed_paste",
    ],
)
def test_trap_15_what_zsh_draws_as_it_lets_go_of_a_line_is_no_output(
    new_terminal: NewTerminal, startup: str
) -> None:
    terminal = new_terminal(startup)
    for cmd in ("", "# a comment", "\n\n# another\n"):
        terminal.run("(exit 7)")
        assert outcome(terminal.run(cmd)) == (0, "", "exited")
    assert terminal.run("echo )")["stdout"] == "zsh: parse error near `)'\n"
    assert outcome(terminal.run("printf x")) == (0, "x", "exited")


@on_both_shells
def test_trap_10_exit_ends_the_run_and_a_fresh_shell_comes(terminal: LiveTerminal) -> None:
    terminal.run("marker=old")
    record = terminal.run("echo bye; exit 3")
    assert (record["exit"], record["end"], record["killed_by_restart"]) == (3, "shell_exit", False)
    assert record["stdout"].startswith("bye\n")
    assert terminal.run("echo ${marker-fresh}")["stdout"] == "fresh\n"
    info = terminal.described()
    assert info["pid"] != terminal.info["pid"]
    assert (info["restarts"], info["last_exit"]) == (1, 0)


@on_both_shells
@pytest.mark.parametrize(
    ("cmd", "code"),
    [("exec sleep 0.1", 0), ("set -e; false", 1), ("kill -9 $$", 137), ("exec false", 1)],
)
def test_trap_10_whatever_ends_the_shell_ends_the_run_with_what_is_known(
    terminal: LiveTerminal, cmd: str, code: int
) -> None:
    record = terminal.run(cmd)
    assert (record["exit"], record["end"], record["killed_by_restart"]) == (
        code,
        "shell_exit",
        False,
    )
    assert record["finished_at"] is not None
    assert outcome(terminal.run("echo fresh")) == (0, "fresh\n", "exited")
    assert terminal.described()["restarts"] == 1
    assert [each["seq"] for each in terminal.records()] == [0, 1]


@on_both_shells
def test_trap_10_a_shell_that_ends_again_and_again_is_followed_by_a_fresh_one(
    terminal: LiveTerminal,
) -> None:
    for number in range(6):
        assert terminal.run(f"exit {number}")["exit"] == number
    assert terminal.run("echo alive")["stdout"] == "alive\n"
    assert terminal.described()["restarts"] == 6


@on_both_shells
@pytest.mark.parametrize("typed", ["exit 4\r", "\x04"])
def test_trap_10_a_shell_that_somebody_left_by_keys_is_followed_by_a_fresh_one(
    terminal: LiveTerminal, typed: str
) -> None:
    terminal.wait_editing()
    terminal.keys(typed)
    assert terminal.run("echo fresh")["stdout"] == "fresh\n"
    assert terminal.described()["restarts"] == 1


REARMING = [
    "trap - DEBUG",
    "unset PROMPT_COMMAND",
    "PROMPT_COMMAND=",
    "PROMPT_COMMAND=(true true true)",
    "PS1=x",
    "PS0=",
    "unset PS0 PS1 PS2",
    "unset PS0 PS1 PS2 PROMPT_COMMAND",
    "PS1='$ '; PROMPT_COMMAND='echo noise >/dev/null'",
    "exec bash",
    "exec bash --norc",
    "shopt -u promptvars",
    "stty -echo",
    "bind -u self-insert",
]


REARMING_OF_ZSH = [
    "precmd_functions=()",
    "preexec_functions=()",
    "unset precmd_functions preexec_functions",
    "precmd_functions=(true true) preexec_functions=(true true)",
    "precmd() { : }; preexec() { : }",
    "zle -D zle-line-init zle-line-finish",
    "zle -D zle-line-init; precmd_functions=()",
    "x() { : }; zle -N zle-line-init x; zle -N zle-line-finish x",
    "bindkey -d",
    "bindkey -N mine; bindkey -A mine main",
    "unsetopt zle",
    "setopt local_options ksh_arrays no_unset",
    "emulate sh",
    "emulate ksh",
    "unset zle_bracketed_paste",
    "PS1=x; unset PS2 RPS1",
    "exec zsh",
    "exec zsh -f",
    "stty -echo",
]


@pytest.mark.parametrize(
    ("shell", "cmd"),
    [
        *(("bash", cmd) for cmd in REARMING),
        *(pytest.param("zsh", cmd, marks=needs_zsh) for cmd in REARMING_OF_ZSH),
    ],
)
def test_trap_12_a_shell_whose_hooks_were_taken_away_never_hangs(
    terminal: LiveTerminal, cmd: str
) -> None:
    record = terminal.run(cmd)
    assert (record["seq"], record["timed_out"]) == (0, False)
    assert record["end"] in ("exited", "lost")
    assert outcome(terminal.run("echo next")) == (0, "next\n", "exited")
    terminal.close()

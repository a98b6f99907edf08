"""The hook in a real zsh on a real PTY: what only zsh has; test_shell_hooks has the rest."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from aegis.terminals.hooks import zsh
from aegis.terminals.hooks.startup import MAX_TYPED_BYTES, SECRET_FILE
from aegis.terminals.hooks.submission import SUBMIT_KEY
from aegis.terminals.parse.boundaries import (
    CommandBegin,
    CommandEnd,
    NoCommand,
    PromptShown,
    SecondaryPrompt,
)
from aegis.terminals.typed import NOT_SAID, UnknownText
from tests.aegis.terminals.conftest import LiveShell, StartShell, needs_zsh

pytestmark = [pytest.mark.real, needs_zsh]

StartZsh = Callable[..., Awaitable[LiveShell]]

PLAIN = "PS1='$ '\n"


@pytest.fixture
def start_zsh(start_shell: StartShell) -> StartZsh:
    """Starts a zsh with the given ``.zshrc``, and other ``files`` in its home directory."""

    async def start(
        zshrc: str = PLAIN, files: dict[str, str] | None = None, **arguments: Any
    ) -> LiveShell:
        return await start_shell(
            zsh.prepare, "zsh", {".zshrc": zshrc, **(files or {})}, **arguments
        )

    return start


async def run_typed(shell: LiveShell, keys: str) -> tuple[CommandEnd, str | None]:
    """Type a line; its end and its text."""
    await shell.type(keys)
    ended = await shell.expect(CommandEnd)
    told = shell.adapter.read_typed(ended.history)
    text = told if isinstance(told, str) else None
    await shell.expect(PromptShown)
    return ended, text


# What users have in their start-up files.

STARTUPS = {
    "arrays from 0": "setopt ksh_arrays sh_word_split ksh_glob",
    "no unset": "setopt no_unset warn_create_global warn_nested_var",
    "errors return": "setopt err_return",
    "everything exported": "setopt all_export",
    "local options": "setopt local_options local_traps",
    "globs and quotes": (
        "setopt no_prompt_subst extended_glob no_prompt_percent correct correct_all glob_subst "
        "ignore_braces no_multibyte null_glob posix_builtins posix_aliases no_short_loops "
        "no_clobber sh_file_expansion rc_quotes"
    ),
    "emulate sh": "emulate sh",
    "emulate ksh": "emulate ksh",
    "vi with fast keys": "bindkey -v; KEYTIMEOUT=1",
    "precmd and preexec": "precmd() { print PRE $?; return 9 }; preexec() { print EXE; return 9 }",
    "arrays of functions": "precmd_functions=(p); preexec_functions=(p); p() { print P; false }",
    "traps": "trap 'seen=1' DEBUG; TRAPZERR() { seen=1 }; TRAPEXIT() { : }",
    "own line widgets": (
        "x() { zle -M hello }; zle -N zle-line-init x; zle -N zle-line-finish x; "
        "autoload -Uz add-zle-hook-widget; y() { zle -M hi }; add-zle-hook-widget line-init y"
    ),
    "right prompts": "RPROMPT='RIGHT %~'; setopt transient_rprompt prompt_sp",
    "magic pastes": (
        "autoload -Uz bracketed-paste-magic url-quote-magic\n"
        "zle -N bracketed-paste bracketed-paste-magic; zle -N self-insert url-quote-magic"
    ),
    "no pastes": "unset zle_bracketed_paste",
    "aliases": (
        "alias -g local=false; alias builtin=false print=false setopt=false zle=false\n"
        "alias -g emulate=x typeset=y"
    ),
    "functions": "\n".join(
        f"function {name} {{ echo OWN }}"
        for name in ("print", "emulate", "zle", "setopt", "trap", "bindkey", "read", "unsetopt")
    ),
    "descriptors": "setopt no_clobber; umask 777; IFS=0123456789; exec 2>/dev/null",
    "standard output elsewhere": "exec 3>&1; command() { : }",
    "completion": "autoload -Uz compinit; compinit -u; zstyle ':completion:*' menu select",
    "no history": "HISTSIZE=0; SAVEHIST=0",
    "no editor": "unsetopt zle",
    "no prompts": "unset PS1 PS2 PS3 PS4 RPS1",
    "a program in the prompt": "setopt prompt_subst; PROMPT='$(echo sub) %# '",
}


@pytest.mark.parametrize("startup", STARTUPS.values(), ids=STARTUPS)
async def test_trap_1_whatever_the_user_has_a_command_has_its_output_and_its_exit(
    start_zsh: StartZsh, startup: str
) -> None:
    shell = await start_zsh(PLAIN + startup + "\n")
    for status in (3, 0):
        outcome = await shell.run(f"echo hi; (exit {status})")
        assert (outcome.output, outcome.exit) == ("hi\n", status)
    assert (await shell.run("printf 'a!b  %s' \"it's\"")).output == "a!b  it's"
    for cmd in ("", "# a remark"):
        assert isinstance((await shell.run(cmd)).end, NoCommand)
    ended, text = await run_typed(shell, "echo typed  x\r")
    assert (ended.exit, text, shell.output) == (0, "echo typed  x", "typed x\n")
    await shell.submit("if true")
    assert (await shell.expect(SecondaryPrompt)).submitted
    await shell.interrupt()
    assert (await shell.expect(NoCommand)).submitted
    await shell.expect(PromptShown)
    assert (await shell.run("(exit 4)")).exit == 4
    assert shell.boundaries.skipped == 0


async def test_trap_1_the_users_functions_run_with_the_status_and_the_text(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh(
        PLAIN + "precmd() { codes+=($?) }; preexec() { texts+=($1) }; codes=() texts=()\n"
        "more() { others+=($?) }; precmd_functions+=(more)\n"
    )
    await shell.run("(exit 42)")
    await shell.run("(exit 7)")
    told = await shell.run('print -rl -- "$codes" "$others" "$texts"')
    assert told.output == "0 42 7\n0 42 7\n(exit 42) (exit 7) " + 'print -rl -- "$codes" ' + (
        '"$others" "$texts"\n'
    )


async def test_trap_1_what_the_users_functions_print_is_no_output(start_zsh: StartZsh) -> None:
    shell = await start_zsh(PLAIN + "precmd() { print PRE }; preexec() { print EXE }")
    await shell.run("precmd() { print ANEW }; preexec() { print LATER }")
    for _ in range(2):
        assert (await shell.run("echo hi")).output == "hi\n"
    assert shell.everything.count(b"ANEW\r\n") == 3
    assert shell.everything.count(b"LATER\r\n") == 2
    await shell.run("unfunction precmd")
    assert (await shell.run("echo hi")).output == "hi\n"


async def test_trap_1_a_precmd_that_is_loaded_when_it_is_first_called_works(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh(
        PLAIN + "fpath=(~ $fpath); autoload precmd\n", {"precmd": "print LOADED; seen=$?\n"}
    )
    assert (await shell.run("echo hi")).output == "hi\n"
    assert shell.everything.count(b"LOADED\r\n") == 2


async def test_trap_1_the_status_in_the_users_prompt_is_right(start_zsh: StartZsh) -> None:
    shell = await start_zsh("PS1='[%?] '")
    await shell.run("(exit 42)")
    await shell.seen("[42] ")


async def test_trap_1_the_last_word_and_the_status_of_a_pipe_are_not_disturbed(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh()
    await shell.run("true | (exit 5) | echo last words")
    assert (await shell.run('echo "$_/$pipestatus"')).output == "words/0 5 0\n"


async def test_trap_1_errexit_does_not_end_the_shell_because_of_the_hook(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh(
        PLAIN + "precmd() { seen=$? }; x() { return 1 }\n"
        "zle -N zle-line-init x; zle -N zle-line-finish x\n"
    )
    await shell.run("set -e; trap 'errs=$((errs+1))' ZERR; errs=0")
    assert (await shell.run("false && true")).exit == 1
    assert (await shell.run("echo alive $seen $errs")).output == "alive 1 0\n"
    await shell.run("bindkey -D command")
    assert (await shell.run("echo alive")).output == "alive\n"


async def test_trap_1_a_debug_trap_that_prints_is_heard_for_the_users_commands_only(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh(PLAIN + "TRAPDEBUG() { print DEBUG }")
    assert (await shell.run("echo hi")).output == "DEBUG\nhi\n"
    assert (await shell.run("")).output == ""


async def test_trap_1_tracing_shows_the_users_commands_only(start_zsh: StartZsh) -> None:
    shell = await start_zsh(PLAIN + "PS4='+ '; setopt xtrace")
    assert (await shell.run("echo hi")).output == "+ echo hi\nhi\n"
    assert shell.secret not in shell.everything


async def test_trap_1_the_users_line_widgets_run_at_each_line(start_zsh: StartZsh) -> None:
    shell = await start_zsh(PLAIN + "x() { : $((count++)) }; zle -N zle-line-init x; count=0\n")
    for number in range(1, 4):
        assert (await shell.run("echo $count")).output == f"{number}\n"
    # A framework that puts itself in front anew at each prompt.
    await shell.run(
        "wrap() { zle -A zle-line-init inner; zle -N zle-line-init outer }\n"
        "outer() { : $((outer++)); zle inner }; outer=0; count=0; wrap"
    )
    assert (await shell.run("echo $outer $count")).output == "1 1\n"
    assert (await shell.run("echo $outer $count")).output == "2 2\n"


async def test_trap_1_the_daemons_line_is_not_coloured_and_the_users_limit_comes_back(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh(
        PLAIN + "x() { seen+=(${ZSH_HIGHLIGHT_MAXLENGTH-none}) }; seen=()\n"
        "zle -N zle-line-finish x\n"
    )
    await shell.run("echo one")
    await run_typed(shell, "ZSH_HIGHLIGHT_MAXLENGTH=300\r")
    await shell.run("echo two")
    assert (await shell.run("echo $seen / $ZSH_HIGHLIGHT_MAXLENGTH")).output == (
        "0 none 0 0 / 300\n"
    )


@pytest.mark.parametrize(
    "overwrite",
    [
        "precmd_functions=()",
        "preexec_functions=()",
        "unset precmd_functions preexec_functions",
        "precmd_functions=(true $precmd_functions true)",
        "preexec_functions+=(true)",
        "zle -D zle-line-init zle-line-finish",
        "x() { : }; zle -N zle-line-init x; zle -N zle-line-finish x",
        "bindkey -d",
        "bindkey -e",
        "bindkey -N mine; bindkey -A mine main",
        "unsetopt zle",
        "setopt prompt_sp",
        "PS1=x; unset PS2",
        "setopt ksh_arrays local_options",
        "trap - DEBUG",
    ],
)
async def test_trap_12_what_was_overwritten_is_put_back(
    start_zsh: StartZsh, overwrite: str
) -> None:
    shell = await start_zsh()
    assert (await shell.run(overwrite)).exit == 0
    for status in (3, 0, 4):
        outcome = await shell.run(f"echo hi; (exit {status})")
        assert (outcome.output, outcome.exit) == ("hi\n", status)


@pytest.mark.parametrize(
    ("cmd", "keys", "last"),
    [
        ("x=old; vared x; echo got $x", "er\r", "got older\n"),
        ("select x in a b; do echo got $x; break; done", "2\r", "got b\n"),
    ],
)
async def test_trap_11_a_command_that_uses_the_line_editor_is_one_command(
    start_zsh: StartZsh, cmd: str, keys: str, last: str
) -> None:
    shell = await start_zsh()
    await shell.submit(cmd)
    await shell.expect(CommandBegin)
    await shell.type(keys)
    assert await shell.expect(CommandEnd) == CommandEnd(exit=0)
    assert shell.output.endswith(last)


# PROMPT_SP.


async def test_trap_15_what_marks_a_missing_line_feed_is_shown_and_is_no_output(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh("PS1='$ '; PROMPT_EOL_MARK='%F{red}<%f'\nprecmd() { setopt prompt_sp }")
    for _ in range(2):
        assert (await shell.run("printf x")).output == "x"
    mark = b"\x1b[31m<\x1b[39m" + b" " * 79 + b"\r \r"
    assert shell.everything.count(b"x" + mark) == 2


async def test_trap_15_who_does_not_want_that_mark_does_not_get_it(start_zsh: StartZsh) -> None:
    shell = await start_zsh("PS1='$ '; PROMPT_EOL_MARK='<<<'; setopt no_prompt_sp")
    assert (await shell.run("printf x")).output == "x"
    assert b"<<<" not in shell.everything


# The secret, and whose files are read.


@pytest.mark.parametrize("startup", ["", "setopt all_export", "setopt xtrace"])
async def test_trap_1_the_secret_is_in_nothing_a_child_or_a_reader_sees(
    start_zsh: StartZsh, startup: str
) -> None:
    shell = await start_zsh(PLAIN + startup)
    secret = shell.secret.decode()
    for cmd in (
        "env",
        "export -p",
        "cat /proc/self/environ | tr '\\0' '\\n'",
        "zsh -c 'cat /proc/$$/environ; env; set'",
        'print -r -- "$PS1$PS2$RPS1 $functions"',
        f"ls -a {quote(str(shell.directory))} {quote(str(shell.directory / zsh.ZDOTDIR))}",
    ):
        outcome = await shell.run(cmd)
        assert outcome.output, cmd
        assert secret not in outcome.output, cmd
    assert "__aegis" not in (await shell.run("env")).output
    assert not (shell.directory / SECRET_FILE).exists()
    assert shell.secret not in shell.everything


async def test_the_secret_is_gone_before_the_users_files_are_read(start_zsh: StartZsh) -> None:
    look = "print -r -- there: $__aegis_dir/*(N)\n"
    shell = await start_zsh(PLAIN + look, {".zshenv": look})
    assert shell.everything.count(b"there:\r\n") == 2


WHERE = "print -r -- ${ZDOTDIR-unset} ${(t)ZDOTDIR}\n"


async def test_zdotdir_is_not_set_where_the_user_has_not_set_it(start_zsh: StartZsh) -> None:
    shell = await start_zsh(PLAIN + "from=rc; " + WHERE, {".zshenv": "env=yes; " + WHERE})
    assert shell.everything.count(b"unset\r\n") == 2
    assert (await shell.run(WHERE)).output == "unset\n"
    assert (await shell.run("zsh -ic 'echo $from'")).output == "unset\nunset\nrc\n"
    assert (await shell.run("env | grep ZDOT; echo $env")).output == "yes\n"


async def test_the_zdotdir_of_the_daemons_environment_is_the_users(
    start_zsh: StartZsh, tmp_path: Path
) -> None:
    own = tmp_path / "home" / "own dir"
    shell = await start_zsh(
        "from=home\n",
        {"own dir/.zshenv": "env=yes\n", "own dir/.zshrc": PLAIN + "from=own\n"},
        env={"ZDOTDIR": str(own)},
    )
    assert (await shell.run("echo $from $env $ZDOTDIR ${(t)ZDOTDIR}")).output == (
        f"own yes {own} scalar-export\n"
    )
    assert (await shell.run("zsh -ic 'echo $from'")).output == "own\n"
    assert (await shell.run("env | grep AEGIS_Z")).output == ""


@pytest.mark.parametrize(("how", "kind"), [("export ", "scalar-export"), ("", "scalar")])
async def test_the_zdotdir_of_the_users_zshenv_is_followed(
    start_zsh: StartZsh, how: str, kind: str
) -> None:
    shell = await start_zsh(
        "from=home\n",
        {".zshenv": f"{how}ZDOTDIR=$HOME/own\n", "own/.zshrc": PLAIN + "from=own\n"},
    )
    assert (await shell.run("echo $from ${ZDOTDIR#$HOME} ${(t)ZDOTDIR}")).output == (
        f"own /own {kind}\n"
    )


async def test_a_zshenv_that_switches_start_up_files_off_is_obeyed_and_the_hook_works(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh("from=rc\n", {".zshenv": "setopt no_rcs; PS1='$ '\n"})
    assert (await shell.run("echo ${from-none} $options[rcs] $options[globalrcs]")).output == (
        "none off on\n"
    )


async def test_a_history_file_that_the_system_puts_beside_our_files_is_beside_the_users(
    start_zsh: StartZsh, tmp_path: Path
) -> None:
    # As a global zshrc does: it runs between our .zshenv and our .zshrc.
    file = tmp_path / "it's a state0" / zsh.ZDOTDIR / ".zsh_history"
    shell = await start_zsh(PLAIN, {".zshenv": f"HISTFILE={quote(str(file))}\n"})
    assert (await shell.run("echo ${HISTFILE#$HOME}")).output == "/.zsh_history\n"


async def test_the_hook_started_by_hand_arms_nothing(start_zsh: StartZsh) -> None:
    shell = await start_zsh()
    await shell.submit("ZDOTDIR=$__aegis_dir/.zdotdir zsh -i; echo back")
    await shell.expect(CommandBegin)
    await shell.type("echo in''ner\r")
    await shell.seen("inner")
    await shell.type("exit\r")
    assert (await shell.expect(CommandEnd)).exit == 0
    assert shell.output.endswith("back\n")


# What arrives, and what was typed.


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("\x1bx", id="a command's name"),
        pytest.param("\x1bxkill", id="half a command's name"),
        pytest.param("abc\x1b'", id="a quoted line"),
        pytest.param("ls /us\t\t\t", id="a menu"),
        pytest.param("\x1bp", id="a search back"),
        pytest.param("echo 'open\r", id="a secondary prompt"),
    ],
)
async def test_trap_34_the_submit_key_empties_whatever_line_there_is(
    start_zsh: StartZsh, keys: str
) -> None:
    shell = await start_zsh(
        PLAIN + "autoload -Uz compinit; compinit -u; zstyle ':completion:*' menu select=1\n"
    )
    await shell.run("echo earlier")
    # Written past the bookkeeping: this is what the key itself must do.
    await shell.process.write(keys.encode())
    if "\r" in keys:
        await shell.expect(SecondaryPrompt)
        await shell.reads()
        await shell.process.write(b"\x03")
        await shell.expect(PromptShown)
    outcome = await shell.run("echo ours")
    assert (outcome.exit, outcome.output) == (0, "ours\n")


async def test_trap_14_no_widget_of_the_user_alters_a_submission(
    start_zsh: StartZsh, tmp_path: Path
) -> None:
    shell = await start_zsh(
        PLAIN + 'w() { BUFFER="echo altered $BUFFER"; zle .accept-line }; zle -N accept-line w\n'
        "p() { LBUFFER+=pasted; }; zle -N bracketed-paste p; zle -N self-insert p\n"
    )
    outcome = await shell.run("printf %s 'a\tb\x03c'")
    assert outcome.output == "a\tb\x03c"


async def test_a_submission_that_somebody_cuts_short_runs_nothing(start_zsh: StartZsh) -> None:
    shell = await start_zsh()
    shell.boundaries.submitted()
    await shell.process.write(SUBMIT_KEY + b"\x1b[200~echo cut\x1b[201~x")
    event = await shell.expect(CommandBegin, NoCommand)
    assert isinstance(event, NoCommand)
    assert event.submitted
    await shell.expect(PromptShown)
    assert b"cut\r\n" not in shell.everything
    assert (await shell.run("echo whole")).output == "whole\n"


async def test_trap_3_what_is_typed_is_read_as_the_user_has_it(start_zsh: StartZsh) -> None:
    shell = await start_zsh(PLAIN + "histchars='@^#'")
    await shell.run("echo before")
    _, text = await run_typed(shell, "echo typed; @@\r")
    assert text == "echo typed; echo before"
    assert shell.output == "typed\nbefore\n"
    ended, _ = await run_typed(shell, "# typed remark\r")
    assert ended.exit == 127
    assert (await shell.run("echo '@@' # a remark")).output == "@@\n"
    assert (await shell.run("echo $options[interactivecomments] $histchars")).output == "off @^#\n"


async def test_trap_3_zsh_does_not_ask_about_a_submission(start_zsh: StartZsh) -> None:
    shell = await start_zsh(PLAIN + "setopt correct correct_all; ecko() { echo own }")
    assert (await shell.run("ecoh hi 2>/dev/null")).exit == 127
    assert (await shell.run("echo $options[correct] $options[correctall]")).output == "on on\n"


@pytest.mark.parametrize(("status", "told"), [("-1", 255), ("256", 0), ("300", 44)])
async def test_an_exit_that_no_process_could_have_is_told_as_a_parent_would_see_it(
    start_zsh: StartZsh, status: str, told: int
) -> None:
    shell = await start_zsh(PLAIN + "f() { return $1 }")
    assert (await shell.run(f"f {status}")).exit == told


async def test_a_line_that_the_user_keeps_out_of_the_history_has_no_text(
    start_zsh: StartZsh,
) -> None:
    shell = await start_zsh(PLAIN + "setopt hist_ignore_space")
    assert (await run_typed(shell, " echo secret word\r"))[1] is None
    assert (await run_typed(shell, "echo word\r"))[1] == "echo word"


def test_files_of_a_start_are_private_and_what_an_earlier_shell_left_is_removed(
    tmp_path: Path,
) -> None:
    (tmp_path / "typed.5").write_text("old")
    secrets = {zsh.prepare("zsh", tmp_path).secret for _ in range(3)}
    assert len(secrets) == 3
    adapter = zsh.prepare("zsh", tmp_path)
    assert adapter.read_typed(5) == UnknownText(NOT_SAID)
    for name in (SECRET_FILE, *(f"{zsh.ZDOTDIR}/{file}" for file in (".zshenv", ".zshrc"))):
        assert os.stat(tmp_path / name).st_mode & 0o777 == 0o600
    assert adapter.secret.decode() not in str(adapter.environment({}))
    (tmp_path / "typed.7").write_text("x" * (MAX_TYPED_BYTES + 1))
    assert adapter.read_typed(7) == UnknownText(NOT_SAID)
    (tmp_path / "typed.8").write_bytes(b"echo \xff\n")
    assert adapter.read_typed(8) == "echo \N{REPLACEMENT CHARACTER}\n"

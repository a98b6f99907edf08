"""The hook in a real bash on a real PTY: every trap at the level of marks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aegis.terminals.hooks import bash
from aegis.terminals.hooks.startup import MAX_TYPED_BYTES, SECRET_FILE
from aegis.terminals.parse.boundaries import (
    CommandBegin,
    CommandEnd,
    NoCommand,
    PromptShown,
    SecondaryPrompt,
    ShellPhase,
)
from aegis.terminals.typed import NOT_IN_HISTORY, UnknownText

pytestmark = pytest.mark.real

StartBash = Callable[..., Awaitable[Any]]

# A framework that works as bash-preexec does: it takes the DEBUG trap, goes to the front of
# PROMPT_COMMAND at the first prompt, and wants its last function to be the last one run.
PREEXEC_FRAMEWORK = r"""
PS1='$ '
preexecs=() precmds=() bp_status=none bp_armed=
__bp_in_prompt_command() {
  local IFS=$'\n;' each
  for each in ${PROMPT_COMMAND[*]}; do
    each=${each#"${each%%[![:space:]]*}"}
    [[ $each == "$1" ]] && return 0
  done
  return 1
}
__bp_invoke_preexec() {
  [[ -n ${COMP_POINT-} || -n ${READLINE_POINT-} || -z $bp_armed ]] && return
  bp_armed=
  __bp_in_prompt_command "$BASH_COMMAND" && return
  preexecs+=("$BASH_COMMAND")
}
__bp_precmd_invoke_cmd() { bp_status=$?; precmds+=("$bp_status"); return "$bp_status"; }
__bp_interactive_mode() { bp_armed=on; }
__bp_install() {
  [[ ${PROMPT_COMMAND[*]-} == *__bp_precmd_invoke_cmd* ]] && return 1
  trap '__bp_invoke_preexec' DEBUG
  local existing=${PROMPT_COMMAND-}
  existing=${existing//"$__bp_install_string"/:}
  PROMPT_COMMAND='__bp_precmd_invoke_cmd'
  PROMPT_COMMAND+=$'\n'$existing
  PROMPT_COMMAND+=('__bp_interactive_mode')
  __bp_precmd_invoke_cmd
  __bp_interactive_mode
}
__bp_install_string=$'trap - DEBUG\n__bp_install'
PROMPT_COMMAND=${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}$__bp_install_string
"""


@pytest.mark.parametrize(
    "bashrc",
    [
        "PROMPT_COMMAND='seen=$?; echo PROMPT'",
        "PROMPT_COMMAND='seen=$?; echo PROMPT;'",
        "PROMPT_COMMAND='seen=$?; echo PROMPT; '",
        "PROMPT_COMMAND=$'seen=$?\\necho PROMPT\\n'",
        "PROMPT_COMMAND='seen=$?; echo PROMPT # a remark'",
        "export PROMPT_COMMAND='seen=$?; echo PROMPT'",
        "PROMPT_COMMAND=('seen=$?' 'echo PROMPT;')",
        "PROMPT_COMMAND=([3]='seen=$?' [7]='echo PROMPT')",
        "PROMPT_COMMAND='seen=$?; echo PROMPT'; readonly PROMPT_COMMAND",
        "PROMPT_COMMAND=('seen=$?' 'echo PROMPT'); readonly PROMPT_COMMAND",
    ],
)
async def test_trap_1_the_users_prompt_command_runs_and_sees_the_status(
    start_bash: StartBash, bashrc: str
) -> None:
    shell = await start_bash("PS1='$ '\n" + bashrc)
    assert (await shell.run("echo out; (exit 42)")).exit == 42
    assert shell.everything.count(b"PROMPT\r\n") == 2
    outcome = await shell.run("echo seen $seen")
    assert outcome.exit == 0
    assert outcome.output.startswith("seen 42\n")
    if "readonly" not in bashrc:
        assert outcome.output == "seen 42\n"


async def test_trap_1_a_prompt_command_that_was_never_set_is_no_matter(
    start_bash: StartBash,
) -> None:
    shell = await start_bash("PS1='$ '\nunset PROMPT_COMMAND")
    assert (await shell.run("(exit 3)")).exit == 3


async def test_trap_1_the_status_in_the_users_prompt_is_right(start_bash: StartBash) -> None:
    shell = await start_bash("PS1='[$?] '")
    await shell.run("(exit 42)")
    await shell.seen("[42] ")


async def test_trap_1_the_users_err_trap_and_pipestatus_are_not_disturbed(
    start_bash: StartBash,
) -> None:
    shell = await start_bash(
        "PS1='$ '\nPROMPT_COMMAND='pipe=${PIPESTATUS[*]}'\ntrap 'errs=$((errs+1))' ERR\nerrs=0"
    )
    await shell.run("sh -c 'exit 2' | sh -c 'exit 3'")
    assert (await shell.run('echo "$pipe / $errs"')).output == "2 3 / 1\n"


async def test_trap_1_errexit_does_not_end_the_shell_because_of_the_hook(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    await shell.run("set -e")
    assert (await shell.run("false && true")).exit == 1
    assert (await shell.run("echo alive")).output == "alive\n"


async def test_trap_1_a_debug_trap_still_runs_and_output_is_clean(start_bash: StartBash) -> None:
    shell = await start_bash("PS1='$ '\nlast=\ntrap 'last=$BASH_COMMAND; count=$((count+1))' DEBUG")
    assert (await shell.run("echo hi")).output == "hi\n"
    counted = await shell.run("echo $((count > 1))")
    assert counted.output == "1\n"


async def test_trap_1_the_users_ps0_comes_before_the_output(start_bash: StartBash) -> None:
    shell = await start_bash("PS1='$ '\nPS0='user ps0 \\t\\n'")
    assert (await shell.run("echo hi")).output == "hi\n"
    await shell.seen("user ps0")


@pytest.mark.parametrize("startup", ["", "shopt -u promptvars\n"])
async def test_trap_1_the_users_ps0_is_no_output_between_the_lines_of_a_script(
    start_bash: StartBash, startup: str
) -> None:
    shell = await start_bash("PS1='$ '\nPS0='user ps0 \\t\\n'\n" + startup)
    for _ in range(2):
        outcome = await shell.run("echo one\ntrue\nprintf two\necho three\n(exit 3)")
        assert (outcome.output, outcome.exit) == ("one\ntwothree\n", 3)
    assert shell.everything.count(b"user ps0 ") == 10
    await shell.run("PS0=")
    assert (await shell.run("echo four\necho five")).output == "four\nfive\n"
    assert shell.boundaries.skipped == 0


@pytest.mark.parametrize("child", ["bash --norc", "bash --norc -u", "sh -i"])
async def test_trap_1_a_child_shell_with_our_prompts_moves_nothing(
    start_bash: StartBash, venv: Path, child: str
) -> None:
    shell = await start_bash()
    await shell.run(f". '{venv}/bin/activate'; export PS0 PS1 PS2")
    await shell.submit(f"{child}; echo back")
    await shell.expect(CommandBegin)
    for number in (1, 2, 3):
        await shell.type(f"echo inner $(({number}+20))\r")
        await shell.seen(f"inner {number + 20}\r\n")
    assert shell.happened_so_far() == []
    await shell.type("exit\r")
    assert (await shell.expect(CommandEnd)).exit == 0
    assert shell.output.endswith("back\n")
    assert "unbound" not in shell.output


async def test_trap_1_direnv_runs(start_bash: StartBash, tmp_path: Path) -> None:
    if shutil.which("direnv") is None:
        pytest.skip("direnv is not installed")
    shell = await start_bash("PS1='$ '\neval \"$(direnv hook bash)\"")
    (tmp_path / "home" / ".envrc").write_text("export FROM_ENVRC=yes\n")
    await shell.run("direnv allow .")
    assert (await shell.run("echo $FROM_ENVRC; (exit 5)")).exit == 5


async def test_trap_1_a_framework_like_bash_preexec_works_undisturbed(
    start_bash: StartBash,
) -> None:
    shell = await start_bash(PREEXEC_FRAMEWORK)
    for status in (42, 0, 7):
        outcome = await shell.run(f"sh -c 'exit {status}'")
        assert (outcome.exit, outcome.output) == (status, "")
    await shell.type("\r")
    await shell.expect(NoCommand)
    await shell.expect(PromptShown)
    await shell.run(": typed")
    told = await shell.run('printf "%s\\n" "${preexecs[@]}" -- "${precmds[*]}"')
    assert told.output.splitlines() == [
        *(f"sh -c 'exit {status}'" for status in (42, 0, 7)),
        ": typed",
        'printf "%s\\n" "${preexecs[@]}" -- "${precmds[*]}"',
        "--",
        "0 42 0 7 7 0",
    ]


async def test_trap_1_what_precmd_functions_print_is_no_output(start_bash: StartBash) -> None:
    shell = await start_bash(
        PREEXEC_FRAMEWORK.replace("bp_status=$?;", "bp_status=$?; echo PRECMD;")
    )
    await shell.run("true")
    assert (await shell.run("echo hi")).output == "hi\n"
    assert shell.everything.count(b"PRECMD") >= 3


async def test_before_5_1_prompt_command_is_one_string(start_bash: StartBash) -> None:
    def as_old(hook: str) -> str:
        assert "< 501" in hook
        return hook.replace("< 501", "< 9999")

    shell = await start_bash("PS1='$ '\nexport PROMPT_COMMAND='seen=$?; echo PROMPT;'", hook=as_old)
    assert (await shell.run("(exit 42)")).exit == 42
    assert (await shell.run("echo $seen")).output == "42\n"
    told = await shell.run("declare -p PROMPT_COMMAND; env | grep -c PROMPT_COMMAND")
    assert "declare -- PROMPT_COMMAND=" in told.output
    assert told.output.endswith("\n0\n")


@pytest.mark.parametrize(
    "overwrite",
    [
        "PROMPT_COMMAND='echo mine'",
        "PROMPT_COMMAND=('echo mine' 'echo yours')",
        "unset PROMPT_COMMAND",
        "PROMPT_COMMAND+=('echo mine')",
        "PS1='other '",
        "PS0='other '",
        "PS2='other '",
        "unset PS0 PS1 PS2",
        "PROMPT_COMMAND='PS1=\"rebuilt \"'",
        "trap - DEBUG",
    ],
)
async def test_trap_12_what_was_overwritten_is_put_back(
    start_bash: StartBash, overwrite: str
) -> None:
    shell = await start_bash()
    assert (await shell.run(overwrite)).exit == 0
    for status in (3, 0, 4):
        outcome = await shell.run(f"echo hi; (exit {status})")
        assert outcome.exit == status
        assert outcome.output == "hi\n"


async def test_trap_12_a_late_overwriting_of_the_prompts_costs_one_start_mark_at_most(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    await shell.run("PS1=x; PROMPT_COMMAND+=('PS0=x' 'PS1=y')")
    assert (await shell.run("(exit 3)")).exit == 3
    for status in (3, 0):
        outcome = await shell.run(f"echo hi; (exit {status})")
        assert (outcome.exit, outcome.output) == (status, "hi\n")


async def test_trap_12_a_typed_command_after_unset_prompt_command_has_its_exit(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    await shell.type("unset PROMPT_COMMAND; (exit 6)\r")
    assert await shell.expect(CommandEnd) == CommandEnd(exit=6)
    await shell.expect(PromptShown)
    await shell.type("(exit 7)\r")
    assert (await shell.expect(CommandEnd)).exit == 7
    await shell.expect(PromptShown)
    await shell.type("\r")
    await shell.expect(PromptShown)
    assert shell.boundaries.can_submit()
    assert (await shell.run("echo hi; (exit 8)")).exit == 8


async def test_prompts_without_variables_stay_as_they_are(start_bash: StartBash) -> None:
    shell = await start_bash(
        "PS1='\\[\\e[1m\\]$(echo never) ${HOME} '\nPS0='$HOME!'\nshopt -u promptvars"
    )
    await shell.seen("\x1b[1m$(echo never) ${HOME} ")
    for status in (3, 0):
        outcome = await shell.run(f"echo hi; (exit {status})")
        assert (outcome.exit, outcome.output) == (status, "hi\n")
    await shell.seen("$HOME!")
    await shell.run('PS1="(more) $PS1"')
    await shell.seen("(more) \x1b[1m$(echo never) ${HOME} ")
    await shell.run("PS1='$(touch made) '; shopt -u promptvars")
    assert (await shell.run("ls")).output == ""
    await shell.type("echo typed\r")
    assert (await shell.expect(CommandBegin)).writer == "human:ann"


@pytest.mark.parametrize(
    "options", ["set -u", "set -o posix", "shopt -s extdebug", "IFS=0123456789", "set -o noclobber"]
)
async def test_the_hook_survives_the_users_options(start_bash: StartBash, options: str) -> None:
    shell = await start_bash("PS1='$ '\n" + options)
    assert (await shell.run("echo hi; (exit 12)")).exit == 12
    assert (await shell.run("echo hi")).output == "hi\n"
    await shell.type("echo typed\r")
    ended = await shell.expect(CommandEnd)
    assert bash.read_typed(shell.directory, ended.history) == "echo typed"


async def test_hostile_aliases_and_functions_do_not_reach_the_hook(start_bash: StartBash) -> None:
    shell = await start_bash(
        "PS1='$ '\n"
        "alias local=false set=false printf=false declare=false builtin=false for=false\n"
        "printf() { echo own printf; }; history() { echo own; }; set() { echo own set; }\n"
        "shopt() { echo own; }; bind() { echo own; }; rm() { echo own rm; }\n"
    )
    assert (await shell.run("echo hi; (exit 9)")).exit == 9
    assert (await shell.run("\\history")).output == "own\n"


# The secret.


@pytest.mark.parametrize(
    "bashrc", ["", "set -a", "set -x", "set -T; trap 'echo $BASH_COMMAND' DEBUG"]
)
async def test_trap_1_the_secret_is_in_nothing_a_child_or_a_reader_sees(
    start_bash: StartBash, bashrc: str
) -> None:
    shell = await start_bash("PS1='$ '\n" + bashrc)
    secret = shell.secret.decode()
    await shell.run("set -a; more=1; export PS0 PS1 PS2 __aegis_q")
    for cmd in (
        "env",
        "export -p",
        "cat /proc/self/environ | tr '\\0' '\\n'",
        "bash -c 'cat /proc/$$/environ; env; set'",
        'echo "$PS0$PS1$PS2"; printf \'%s\' "${PROMPT_COMMAND[@]}"',
        "ls -a " + f"'{shell.directory}'",
    ):
        outcome = await shell.run(cmd)
        assert outcome.output, cmd
        assert secret not in outcome.output, cmd
    assert not re.search(r"^__aegis\w*=[0-9]", (await shell.run("env")).output, re.MULTILINE)
    assert (shell.directory / SECRET_FILE).read_bytes() == b""
    assert shell.secret not in shell.everything


async def test_the_secret_is_gone_before_the_users_file_is_read(start_bash: StartBash) -> None:
    shell = await start_bash(
        "PS1='$ '\n"
        'there=$(cat "${BASH_SOURCE[1]%/*}"/init.secret)\n'
        'echo "there: [$there]"; env >"$HOME/env"\n'
    )
    await shell.seen("there: []")
    assert shell.secret.decode() not in (await shell.run("cat ~/env")).output


async def test_a_link_in_place_of_the_secret_is_removed_and_not_emptied(
    start_bash: StartBash,
) -> None:
    swap = 'mv "$__aegis_dir"/init.secret ~/kept; ln -s ~/kept "$__aegis_dir"/init.secret\n'
    read = "IFS= builtin read -r __aegis_n"
    shell = await start_bash(hook=lambda text: text.replace(read, swap + read))
    assert (await shell.run("cat ~/kept")).output == shell.secret.decode() + "\n"
    assert not (shell.directory / SECRET_FILE).is_symlink()


async def test_the_hook_started_by_hand_arms_nothing(start_bash: StartBash) -> None:
    shell = await start_bash()
    await shell.submit(f"bash --rcfile '{shell.directory}/init.sh' -i; echo back")
    await shell.expect(CommandBegin)
    await shell.type("echo in''ner\r")
    await shell.seen("inner")
    await shell.type("exit\r")
    assert (await shell.expect(CommandEnd)).exit == 0
    assert shell.output.endswith("back\n")


@pytest.mark.parametrize(
    "name", ["with space", "quo'te", 'dou"ble', "new\nline", "$(id)", "*", "ü"]
)
async def test_a_directory_of_any_name_works(start_bash: StartBash, name: str) -> None:
    shell = await start_bash(directory=name)
    assert (await shell.run("(exit 3)")).exit == 3
    await shell.type("echo typed\r")
    ended = await shell.expect(CommandEnd)
    assert bash.read_typed(shell.directory, ended.history) == "echo typed"


# What arrives.


async def test_trap_4_commands_before_the_open_end_are_one_with_it(start_bash: StartBash) -> None:
    shell = await start_bash()
    await shell.submit("echo one\nif true")
    assert await shell.expect(CommandBegin) == CommandBegin(submitted=True, writer=None)
    assert (await shell.expect(SecondaryPrompt)).submitted
    await shell.interrupt()
    assert (await shell.expect(CommandEnd)).exit == 130


# Boundaries on the living shell.


# What was typed.


@pytest.mark.parametrize(
    "bashrc",
    ["HISTCONTROL=ignoreboth", "set +o history", "HISTIGNORE='*'", "HISTSIZE=0"],
)
async def test_a_typed_command_that_history_left_out_has_no_text(
    start_bash: StartBash, bashrc: str
) -> None:
    shell = await start_bash(f"PS1='$ '\n{bashrc}\n")
    for _ in range(3):
        await shell.type(" echo secret word\r")
        ended = await shell.expect(CommandEnd)
        assert isinstance(bash.read_typed(shell.directory, ended.history), UnknownText)
        await shell.expect(PromptShown)


async def test_history_with_times_or_full_still_gives_the_text(start_bash: StartBash) -> None:
    shell = await start_bash("PS1='$ '\nHISTTIMEFORMAT='%F %T '\nHISTSIZE=3\n")
    for number in range(6):
        await shell.type(f"echo {number}\r")
        ended = await shell.expect(CommandEnd)
        assert bash.read_typed(shell.directory, ended.history) == f"echo {number}"
        await shell.expect(PromptShown)


@pytest.mark.parametrize("startup", ["", "unset HISTCMD\n", "HISTCONTROL=ignoreboth\n"])
async def test_the_first_entries_of_a_history_are_texts_of_typed_commands(
    start_bash: StartBash, startup: str
) -> None:
    shell = await start_bash(f"PS1='$ '\n{startup}")
    # A cleared history is empty, and the next two entries are numbered as in a new one.
    for typed in ("echo one", "echo two", "history -c", "echo three", "echo four", "echo five"):
        await shell.type(f"{typed}\r")
        ended = await shell.expect(CommandEnd)
        expected = UnknownText(NOT_IN_HISTORY) if typed == "history -c" else typed
        assert bash.read_typed(shell.directory, ended.history) == expected
        await shell.expect(PromptShown)


async def test_a_history_that_is_switched_off_and_on_gives_no_other_text(
    start_bash: StartBash,
) -> None:
    shell = await start_bash("PS1='$ '\n")
    texts: list[object] = []
    for typed in ("echo one", "set +o history", "echo two", "set -o history", "echo three"):
        await shell.type(f"{typed}\r")
        texts.append(bash.read_typed(shell.directory, (await shell.expect(CommandEnd)).history))
        await shell.expect(PromptShown)
    unknown = UnknownText(NOT_IN_HISTORY)
    assert texts == ["echo one", "set +o history", unknown, unknown, "echo three"]


@pytest.mark.parametrize("commands", [["true"], ["true", ":", "true"]])
async def test_no_file_is_written_for_a_submission(
    start_bash: StartBash, commands: list[str]
) -> None:
    shell = await start_bash("PS1='$ '\nHISTCONTROL=ignoredups\n")
    before = sorted(shell.directory.iterdir()), shell.directory.stat().st_mtime_ns
    for cmd in commands * 3:
        assert (await shell.run(cmd)).exit == 0
    major = (await shell.run("echo ${BASH_VERSINFO[0]}")).output
    if int(major) > 4:
        assert (sorted(shell.directory.iterdir()), shell.directory.stat().st_mtime_ns) == before


async def test_the_text_of_a_typed_command_is_stored_from_the_first_key_on(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    for number in range(3):
        assert (await shell.run(f"echo {number}")).exit == 0
        await shell.type(f"echo typed {number}\r")
        ended = await shell.expect(CommandEnd)
        assert bash.read_typed(shell.directory, ended.history) == f"echo typed {number}"
        await shell.expect(PromptShown)
        assert not shell.boundaries.is_plain
        assert (await shell.run("echo ours")).output == "ours\n"
    assert not list(shell.directory.glob("typed.[0-9]*"))


# A prompt where an empty line needs no submit key.


async def test_a_submission_without_the_submit_key_is_ours_whatever_comes_of_it(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    for cmd, kind, exit_code in [
        ("(exit 3)", CommandEnd, 3),
        ("# a remark", NoCommand, 3),
        ("", NoCommand, 3),
        ("echo (", NoCommand, 2),
        ("true\n\n(exit 4)", CommandEnd, 4),
    ]:
        shell.submits_by_key = False
        await shell.drawn()
        assert shell.boundaries.is_plain
        redrawn = len(shell.marks)
        outcome = await shell.run(cmd)
        assert isinstance(outcome.end, kind)
        assert outcome.exit == exit_code
        kinds = [mark.kind for mark in shell.marks[redrawn:]]
        assert kinds[0] in "CD", "the prompt was drawn again"
        assert not any(mark.submitted for mark in shell.marks[redrawn:])
    shell.submits_by_key = False
    await shell.drawn()
    await shell.submit("echo 'open")
    assert (await shell.expect(SecondaryPrompt)).submitted


@pytest.mark.parametrize(
    "setting",
    [
        "set -H",
        "shopt -u promptvars",
        "readonly PS0=x",
        "readonly PROMPT_COMMAND=",
        "unset PROMPT_COMMAND",
        "PROMPT_COMMAND=('PS0= PROMPT_COMMAND=')",
        "exec 2>/dev/null",
    ],
)
async def test_a_shell_where_the_hook_is_not_whole_gets_the_submit_key(
    start_bash: StartBash, setting: str
) -> None:
    shell = await start_bash()
    await shell.drawn()
    assert shell.boundaries.is_plain
    await shell.submit(setting)
    await shell.expect(CommandEnd)
    if not setting.startswith("exec"):
        await shell.drawn()
    assert not shell.boundaries.is_plain


@pytest.mark.parametrize("key", ["x\x7f", "\x15", "\x1b[A\x15", "\x0c"])
async def test_trap_36_after_a_key_the_next_submission_has_the_submit_key(
    start_bash: StartBash, key: str
) -> None:
    shell = await start_bash()
    await shell.drawn()
    assert (await shell.run("echo before")).output == "before\n"
    await shell.drawn()
    await shell.type(key)
    assert not shell.boundaries.is_plain
    assert (await shell.probe()).length == 0
    assert not shell.boundaries.is_plain
    assert (await shell.run("echo ours")).output == "ours\n"
    assert [mark.submitted for mark in shell.marks if mark.kind == "C"] == [False, True]
    await shell.drawn()
    assert shell.boundaries.is_plain


async def test_trap_34_a_line_that_a_program_left_is_dropped_without_the_submit_key_too(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    assert (await shell.run("echo earlier")).output == "earlier\n"
    await shell.drawn()
    await shell.process.write(b"rm -rf half")  # past the bookkeeping, as TIOCSTI of a program does
    shell.submits_by_key = False
    assert shell.boundaries.is_plain
    outcome = await shell.run("echo ours")
    assert (outcome.exit, outcome.output) == (0, "ours\n")


def test_what_an_earlier_shell_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "typed.5").write_text("    5  echo old\n")
    secrets = {bash.write_startup(tmp_path) for _ in range(3)}
    assert len(secrets) == 3
    assert bash.read_typed(tmp_path, 5) == UnknownText(NOT_IN_HISTORY)
    for name in (bash.INIT_FILE, SECRET_FILE):
        assert os.stat(tmp_path / name).st_mode & 0o777 == 0o600


def test_a_text_beyond_the_limit_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "typed.7").write_text("7 7 1 1 0\n7\t " + "x" * MAX_TYPED_BYTES)
    assert bash.read_typed(tmp_path, 7) == UnknownText(NOT_IN_HISTORY)
    (tmp_path / "typed.8").write_text("no entry")
    assert bash.read_typed(tmp_path, 8) == UnknownText(NOT_IN_HISTORY)
    assert not list(tmp_path.glob("typed.*"))


async def test_a_bash_that_is_too_old_says_so_and_ends(start_bash: StartBash) -> None:
    shell = await start_bash(hook=lambda text: text.replace("< 404", "< 9999"), prompt=False)
    await shell.seen("a terminal needs bash 4.4 or newer, this is ")
    assert await shell.process.wait() == 1
    assert shell.boundaries.phase is ShellPhase.STARTING

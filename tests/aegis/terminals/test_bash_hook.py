"""The hook in a real bash on a real PTY: every trap at the level of marks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aegis.terminals.boundaries import (
    Ended,
    NothingRan,
    Phase,
    Prompted,
    Secondary,
    Started,
    exit_of_nothing,
)
from aegis.terminals.shells import bash
from aegis.terminals.shells.startup import MAX_TYPED_BYTES, SECRET_FILE

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
    ("cmd", "exit_code", "output"),
    [
        ("true", 0, ""),
        ("false", 1, ""),
        ("(exit 42)", 42, ""),
        ("f() { :; }", 0, ""),
        ("{ false; }", 1, ""),
        ("((0))", 1, ""),
        ("echo hi", 0, "hi\n"),
        ("printf 'no newline'", 0, "no newline"),
        ("echo one\necho two\n(exit 3)", 3, "one\ntwo\n"),
        ("sh -c 'kill -INT $$'", 130, None),
        ("sleep 0.01 &", 0, None),
        ("coproc cat", 0, None),
    ],
)
async def test_trap_2_a_command_ends_at_once_with_its_exit(
    start_bash: StartBash, cmd: str, exit_code: int, output: str | None
) -> None:
    shell = await start_bash()
    outcome = await shell.run(cmd)
    assert isinstance(outcome.end, Ended)
    assert outcome.exit == exit_code
    assert output is None or outcome.output == output
    assert shell.boundaries.skipped == 0


@pytest.mark.parametrize("cmd", ["", "   ", "\n\n", "# a comment", "  # another"])
async def test_trap_2_an_empty_line_or_a_comment_runs_nothing(
    start_bash: StartBash, cmd: str
) -> None:
    shell = await start_bash()
    await shell.run("(exit 7)")
    outcome = await shell.run(cmd)
    assert outcome.end == NothingRan(submitted=True, exit=7, previous=7)
    assert outcome.output == ""
    assert exit_of_nothing(outcome.end, printed=False) == 0


@pytest.mark.parametrize("before", ["true", "(exit 2)"])
async def test_trap_2_a_syntax_error_runs_nothing_and_is_told_apart(
    start_bash: StartBash, before: str
) -> None:
    shell = await start_bash()
    await shell.run(before)
    outcome = await shell.run("echo (a")
    assert isinstance(outcome.end, NothingRan)
    assert "syntax error" in outcome.output
    assert exit_of_nothing(outcome.end, printed=bool(outcome.output.strip())) == 2


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


async def test_trap_1_a_venv_leaves_no_trace_of_the_secret(
    start_bash: StartBash, venv: Path
) -> None:
    shell = await start_bash()
    assert (await shell.run(f". '{venv}/bin/activate'")).exit == 0
    await shell.seen("(a venv) ")
    assert (await shell.run("echo $((1+1))")).output == "2\n"
    env = await shell.run("env | grep ^PS1; cat /proc/self/environ | tr '\\0' '\\n'")
    assert "PS1=" in env.output
    assert shell.secret.decode() not in env.output
    assert (await shell.run("deactivate; (exit 4)")).exit == 4


@pytest.mark.parametrize("child", ["bash --norc", "bash --norc -u", "sh -i"])
async def test_trap_1_a_child_shell_with_our_prompts_moves_nothing(
    start_bash: StartBash, venv: Path, child: str
) -> None:
    shell = await start_bash()
    await shell.run(f". '{venv}/bin/activate'; export PS0 PS1 PS2")
    await shell.submit(f"{child}; echo back")
    await shell.expect(Started)
    for number in (1, 2, 3):
        await shell.type(f"echo inner $(({number}+20))\r")
        await shell.seen(f"inner {number + 20}\r\n")
    assert shell.happened_so_far() == []
    await shell.type("exit\r")
    assert (await shell.expect(Ended)).exit == 0
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
    await shell.expect(NothingRan)
    await shell.expect(Prompted)
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
    assert await shell.expect(Ended) == Ended(exit=6)
    await shell.expect(Prompted)
    await shell.type("(exit 7)\r")
    assert (await shell.expect(Ended)).exit == 7
    await shell.expect(Prompted)
    await shell.type("\r")
    await shell.expect(Prompted)
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
    assert (await shell.expect(Started)).writer == "human:ann"


@pytest.mark.parametrize(
    "options", ["set -u", "set -o posix", "shopt -s extdebug", "IFS=0123456789", "set -o noclobber"]
)
async def test_the_hook_survives_the_users_options(start_bash: StartBash, options: str) -> None:
    shell = await start_bash("PS1='$ '\n" + options)
    assert (await shell.run("echo hi; (exit 12)")).exit == 12
    assert (await shell.run("echo hi")).output == "hi\n"
    await shell.type("echo typed\r")
    ended = await shell.expect(Ended)
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
    assert not (shell.directory / SECRET_FILE).exists()
    assert shell.secret not in shell.everything


async def test_the_secret_is_gone_before_the_users_file_is_read(start_bash: StartBash) -> None:
    shell = await start_bash(
        "PS1='$ '\n"
        'there=$(ls -d "${BASH_SOURCE[1]%/*}"/init.secret 2>/dev/null)\n'
        'echo "there: [$there]"; env >"$HOME/env"\n'
    )
    await shell.seen("there: []")
    assert shell.secret.decode() not in (await shell.run("cat ~/env")).output


async def test_the_hook_started_by_hand_arms_nothing(start_bash: StartBash) -> None:
    shell = await start_bash()
    await shell.submit(f"bash --rcfile '{shell.directory}/init.sh' -i; echo back")
    await shell.expect(Started)
    await shell.type("echo in''ner\r")
    await shell.seen("inner")
    await shell.type("exit\r")
    assert (await shell.expect(Ended)).exit == 0
    assert shell.output.endswith("back\n")


@pytest.mark.parametrize(
    "name", ["with space", "quo'te", 'dou"ble', "new\nline", "$(id)", "*", "ü"]
)
async def test_a_directory_of_any_name_works(start_bash: StartBash, name: str) -> None:
    shell = await start_bash(directory=name)
    assert (await shell.run("(exit 3)")).exit == 3
    await shell.type("echo typed\r")
    ended = await shell.expect(Ended)
    assert bash.read_typed(shell.directory, ended.history) == "echo typed"


# What arrives.


@pytest.mark.parametrize("cmd", ['echo "wow!there"', "echo '!!' !x", 'echo "a!$"'])
async def test_trap_3_nothing_is_taken_for_history(start_bash: StartBash, cmd: str) -> None:
    shell = await start_bash("PS1='$ '\nset -H")
    await shell.run("echo before")
    expected = cmd.removeprefix("echo ").replace('"', "").replace("'", "")
    assert (await shell.run(cmd)).output == expected + "\n"
    await shell.run("set -H")
    assert (await shell.run(cmd)).output == expected + "\n"


@pytest.mark.parametrize(
    "cmd",
    [
        "echo 'open",
        'echo "open',
        "if true",
        "for x in 1 2; do",
        "cat <<EOF\ntext",
        "echo a \\",
        "{ :",
    ],
)
async def test_trap_4_an_incomplete_text_is_noticed_and_can_be_interrupted(
    start_bash: StartBash, cmd: str
) -> None:
    shell = await start_bash()
    await shell.submit(cmd)
    assert (await shell.expect(Secondary)).submitted
    assert shell.boundaries.phase is Phase.SECONDARY
    await shell.interrupt()
    nothing = await shell.expect(NothingRan)
    assert (nothing.submitted, nothing.exit) == (True, 130)
    await shell.expect(Prompted)
    assert (await shell.run("echo next")).output == "next\n"


async def test_trap_4_commands_before_the_open_end_are_one_with_it(start_bash: StartBash) -> None:
    shell = await start_bash()
    await shell.submit("echo one\nif true")
    assert await shell.expect(Started) == Started(submitted=True, writer=None)
    assert (await shell.expect(Secondary)).submitted
    await shell.interrupt()
    assert (await shell.expect(Ended)).exit == 130


@pytest.mark.parametrize(
    "text",
    [
        "a\tb\t\tc",
        "  leading and trailing  ",
        "x" * 5_000,
        "ünïcödé 日本語 🚀 é",
        "\x1b[201~ inside \x1b[200~ and \x1b[201",
        "cr\rlf\ncrlf\r\n",
        "".join(map(chr, [*range(1, 9), *range(11, 13), *range(14, 32), 127])),
        "\x1b",
        "ends in escape\x1b",
        "\x1b[8133;1~\x1b[8133;3~",
    ],
)
@pytest.mark.parametrize("mode", ["emacs", "vi"])
async def test_trap_14_the_text_arrives_exactly(
    start_bash: StartBash, tmp_path: Path, text: str, mode: str
) -> None:
    shell = await start_bash(f"PS1='$ '\nset -o {mode}\n")
    written = tmp_path / "written"
    quoted = "'" + text.replace("'", "'\\''") + "'"
    outcome = await shell.run(f"printf %s {quoted} >'{written}'")
    assert outcome.exit == 0
    assert written.read_bytes() == text.encode()


async def test_trap_14_a_script_of_100_kb_with_a_here_document_is_one_command(
    start_bash: StartBash, tmp_path: Path
) -> None:
    shell = await start_bash()
    body = "".join(f"line {n}\twith a tab, $dollar, `tick` and !!\n" for n in range(2_500))
    assert len(body) > 90_000
    script = f"cd '{tmp_path}'\ncat >copy <<'THE END'\n{body}THE END\n(exit 5)\n"
    outcome = await shell.run(script)
    assert outcome.exit == 5
    assert (tmp_path / "copy").read_text() == body
    assert shell.boundaries.skipped == 0


async def test_trailing_newlines_and_a_trailing_comment_need_no_second_enter(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    for cmd in ("echo a\n", "echo a\n\n\n", "echo a # b", "echo a \\\n\n"):
        assert (await shell.run(cmd)).output == "a\n"


# Boundaries on the living shell.


async def test_trap_5_each_of_two_commands_has_its_own_output_and_exit(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    await shell.submit("sleep 0.2; echo slow; (exit 1)")
    await shell.expect(Started)
    assert not shell.boundaries.can_submit()
    assert (await shell.expect(Ended)).exit == 1
    assert shell.output == "slow\n"
    await shell.expect(Prompted)
    outcome = await shell.run("echo B")
    assert (outcome.exit, outcome.output) == (0, "B\n")


async def test_trap_7_ctrl_c_ends_the_running_command_with_130_and_not_the_next(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    for number in range(5):
        await shell.submit(f"sh -c 'echo ready; echo {number}{number}; exec sleep 100'")
        # Before that its process group may not be in front yet.
        await shell.seen(f"ready\r\n{number}{number}")
        await shell.type("\x03")
        assert (await shell.expect(Ended)).exit == 130
        await shell.expect(Prompted)
        assert shell.boundaries.uncertain == "human:ann"
        await shell.settle()
        assert (await shell.run("echo next")).exit == 0


async def test_trap_7_ctrl_c_at_the_prompt_costs_no_submission(start_bash: StartBash) -> None:
    # bash may sit on a Ctrl-C that came while it drew the prompt, and drop the next keys for it.
    shell = await start_bash()
    for round_number in range(30):
        await shell.submit("true")
        await shell.expect(Ended)
        await shell.type("\x03")
        if round_number % 2:
            await shell.expect(Prompted)
        await shell.settle()
        assert (await shell.run(f"echo {round_number}")).output == f"{round_number}\n"


async def test_trap_8_forged_and_replayed_marks_move_nothing(
    start_bash: StartBash, tmp_path: Path
) -> None:
    shell = await start_bash()
    await shell.run("true")
    log = tmp_path / "raw.log"
    log.write_bytes(shell.everything + b"".join(mark.visible for mark in shell.marks))
    await shell.submit(
        f"printf '\\e]133;D;0\\a\\e]133;A\\a\\e]133;B\\a\\e]133;D;0;n=guess;q=99\\e\\\\';"
        f" cat '{log}'; sleep 0.1; (exit 9)"
    )
    await shell.expect(Started)
    assert (await shell.expect(Ended, Prompted, NothingRan)) == Ended(exit=9)


async def test_trap_34_a_half_typed_line_is_known_and_never_joined(start_bash: StartBash) -> None:
    shell = await start_bash()
    await shell.type("echo half ", writer="human:bob")
    assert shell.boundaries.typing == "human:bob"
    assert not shell.boundaries.can_submit()
    assert (await shell.probe()).length == len("echo half ")
    assert shell.boundaries.typing == "human:bob"
    await shell.type("\x15", writer="human:bob")
    assert (await shell.probe()).length == 0
    assert shell.boundaries.can_submit()


HALF_DONE = {
    "text": "echo half ",
    "a search": "\x12ech",
    "an empty search": "\x12",
    "a numeric argument": "abc\x1b5",
    "a quoted insert": "abc\x16",
    "a prefix key": "abc\x18",
    "an escape": "abc\x1b",
    "a character search": "abc\x1d",
    "a completion": "ls /us\t\t",
    "an old line": "\x10",
    "an undo": "abc\x1f",
}
HALF_DONE_VI = {
    "insert mode": "abc",
    "command mode": "abc\x1b",
    "a count": "abc\x1b3",
    "an operator": "abc\x1bd",
    "a replace": "abc\x1br",
    "replace mode": "abc\x1bR",
    "a find": "abc\x1bf",
}


@pytest.mark.parametrize(
    ("mode", "keys"),
    [
        *(pytest.param("emacs", keys, id=name) for name, keys in HALF_DONE.items()),
        *(pytest.param("vi", keys, id="vi " + name) for name, keys in HALF_DONE_VI.items()),
        *(pytest.param("vi", HALF_DONE[name], id="vi " + name) for name in ("a search", "text")),
    ],
)
async def test_trap_34_the_submit_key_empties_whatever_line_there_is(
    start_bash: StartBash, mode: str, keys: str
) -> None:
    shell = await start_bash(f"PS1='$ '\nset -o {mode}\n")
    await shell.run("echo earlier")
    # Written past the bookkeeping: this is what the key itself must do.
    await shell.process.write(keys.encode())
    outcome = await shell.run("echo ours")
    assert (outcome.exit, outcome.output) == (0, "ours\n")


async def test_trap_34_type_ahead_is_found_by_the_probe(start_bash: StartBash) -> None:
    shell = await start_bash()
    await shell.submit("sleep 0.2")
    await shell.expect(Started)
    await shell.type("echo half ", writer="human:bob")
    await shell.expect(Prompted)
    assert shell.boundaries.uncertain == "human:bob"
    assert not shell.boundaries.can_submit()
    assert (await shell.probe()).length == len("echo half ")
    assert shell.boundaries.typing == "human:bob"


async def test_trap_34_input_for_the_program_leaves_the_line_empty(start_bash: StartBash) -> None:
    shell = await start_bash()
    await shell.submit("read -r x; echo got $x")
    await shell.expect(Started)
    await shell.type("words\r", writer="human:bob")
    await shell.expect(Ended)
    assert shell.output.endswith("got words\n")
    await shell.expect(Prompted)
    assert (await shell.probe()).length == 0
    assert shell.boundaries.can_submit()


async def test_a_command_typed_ahead_of_a_submission_is_not_taken_for_it(
    start_bash: StartBash,
) -> None:
    shell = await start_bash()
    await shell.submit("true")
    await shell.expect(Prompted)
    await shell.submit("echo ours")
    # As if somebody's keys had been in the tty's queue before: the shell runs them as theirs.
    shell.boundaries.keys("human:bob", b"echo theirs; (exit 3)\r")
    await shell.process.write(b"echo theirs; (exit 3)\r")
    assert (await shell.expect(Started)).submitted
    assert (await shell.expect(Ended)).exit == 0
    assert await shell.expect(Started) == Started(submitted=False, writer="human:bob")
    assert (await shell.expect(Ended)).exit == 3


# What was typed.


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("echo plain\r", "echo plain"),
        ("echo 'two\rlines'\r", "echo 'two\nlines'"),
        ("  echo spaces   inside \r", "  echo spaces   inside "),
        ("echo 12  34* x\r", "echo 12  34* x"),
        ("echo ü 日本\r", "echo ü 日本"),
        ("echo x\x02\x02\x02\x02yy\r", "ecyyho x"),
    ],
)
async def test_trap_5_a_typed_command_is_told_with_its_writer_and_its_text(
    start_bash: StartBash, keys: str, text: str
) -> None:
    shell = await start_bash()
    await shell.type(keys, writer="human:bob")
    assert await shell.expect(Started) == Started(submitted=False, writer="human:bob")
    ended = await shell.expect(Ended)
    assert ended.history is not None
    assert bash.read_typed(shell.directory, ended.history) == text
    assert bash.read_typed(shell.directory, ended.history) is None


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
        ended = await shell.expect(Ended)
        assert ended.history is None or bash.read_typed(shell.directory, ended.history) is None
        await shell.expect(Prompted)


async def test_history_with_times_or_full_still_gives_the_text(start_bash: StartBash) -> None:
    shell = await start_bash("PS1='$ '\nHISTTIMEFORMAT='%F %T '\nHISTSIZE=3\n")
    for number in range(6):
        await shell.type(f"echo {number}\r")
        ended = await shell.expect(Ended)
        assert bash.read_typed(shell.directory, ended.history) == f"echo {number}"
        await shell.expect(Prompted)


async def test_a_submission_leaves_no_text_behind(start_bash: StartBash) -> None:
    shell = await start_bash()
    await shell.run("echo a\necho b")
    await shell.run("echo c")
    assert not list(shell.directory.glob("typed.[1-9]*"))


def test_what_an_earlier_shell_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "typed.5").write_text("    5  echo old\n")
    secrets = {bash.write_startup(tmp_path) for _ in range(3)}
    assert len(secrets) == 3
    assert bash.read_typed(tmp_path, 5) is None
    for name in (bash.INIT_FILE, SECRET_FILE):
        assert os.stat(tmp_path / name).st_mode & 0o777 == 0o600


def test_a_text_beyond_the_limit_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "typed.7").write_text("    7  " + "x" * MAX_TYPED_BYTES)
    assert bash.read_typed(tmp_path, 7) is None
    (tmp_path / "typed.8").write_text("no entry")
    assert bash.read_typed(tmp_path, 8) is None
    assert not list(tmp_path.glob("typed.*"))


async def test_a_bash_that_is_too_old_says_so_and_ends(start_bash: StartBash) -> None:
    shell = await start_bash(hook=lambda text: text.replace("< 404", "< 9999"), prompt=False)
    await shell.seen("a terminal needs bash 4.4 or newer, this is ")
    assert await shell.process.wait() == 1
    assert shell.boundaries.phase is Phase.STARTING

"""What the hook of every shell must do, in a real shell on a real PTY: on bash and on zsh."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from aegis.terminals.parse.boundaries import (
    CommandBegin,
    CommandEnd,
    NoCommand,
    PromptShown,
    SecondaryPrompt,
    ShellPhase,
    exit_of_nothing,
)
from aegis.terminals.typed import TypedLine, UnknownText

pytestmark = pytest.mark.real

Start = Callable[..., Awaitable[Any]]


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
    start: Start, cmd: str, exit_code: int, output: str | None
) -> None:
    shell = await start()
    outcome = await shell.run(cmd)
    assert isinstance(outcome.end, CommandEnd)
    assert outcome.exit == exit_code
    assert output is None or outcome.output == output
    assert shell.boundaries.skipped == 0


@pytest.mark.parametrize("cmd", ["", "   ", "\n\n", "# a comment", "  # another"])
async def test_trap_2_an_empty_line_or_a_comment_runs_nothing(start: Start, cmd: str) -> None:
    shell = await start()
    await shell.run("(exit 7)")
    outcome = await shell.run(cmd)
    assert outcome.end == NoCommand(submitted=True, exit=7, previous=7)
    assert outcome.output == ""
    assert exit_of_nothing(outcome.end, printed=False) == 0


@pytest.mark.parametrize("before", ["true", "(exit 2)"])
async def test_trap_2_a_syntax_error_runs_nothing_and_is_told_apart(
    start: Start, before: str
) -> None:
    shell = await start()
    await shell.run(before)
    outcome = await shell.run("echo )")
    assert isinstance(outcome.end, NoCommand)
    assert "error near" in outcome.output
    # bash says 2; zsh says 1, unless the last command failed: then what that said.
    assert exit_of_nothing(outcome.end, printed=bool(outcome.output.strip())) in (1, 2)


async def test_trap_1_a_venv_leaves_no_trace_of_the_secret(start: Start, venv: Path) -> None:
    shell = await start()
    assert (await shell.run(f". '{venv}/bin/activate'")).exit == 0
    await shell.seen("(a venv) ")
    assert (await shell.run("echo $((1+1))")).output == "2\n"
    env = await shell.run("env | grep ^PS1; cat /proc/self/environ | tr '\\0' '\\n'")
    assert "PS1=" in env.output
    assert shell.secret.decode() not in env.output
    assert (await shell.run("deactivate; (exit 4)")).exit == 4


@pytest.mark.parametrize("cmd", ['echo "wow!there"', "echo '!!' !x", 'echo "a!$"'])
async def test_trap_3_nothing_is_taken_for_history(start: Start, cmd: str) -> None:
    shell = await start("PS1='$ '\nset -H")
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
    start: Start, cmd: str
) -> None:
    shell = await start()
    await shell.submit(cmd)
    assert (await shell.expect(SecondaryPrompt)).submitted
    assert shell.boundaries.phase is ShellPhase.SECONDARY
    await shell.interrupt()
    nothing = await shell.expect(NoCommand)
    assert nothing.submitted
    # zsh says 1 if the signal comes before its editor is ready, and 0 before it reads at all.
    assert nothing.exit in (0, 1, 130)
    await shell.expect(PromptShown)
    assert (await shell.run("echo next")).output == "next\n"


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
    start: Start, tmp_path: Path, text: str, mode: str
) -> None:
    shell = await start(f"PS1='$ '\nset -o {mode}\n")
    written = tmp_path / "written"
    quoted = "'" + text.replace("'", "'\\''") + "'"
    outcome = await shell.run(f"printf %s {quoted} >'{written}'")
    assert outcome.exit == 0
    assert written.read_bytes() == text.encode()


async def test_trap_14_a_script_of_100_kb_with_a_here_document_is_one_command(
    start: Start, tmp_path: Path
) -> None:
    shell = await start()
    body = "".join(f"line {n}\twith a tab, $dollar, `tick` and !!\n" for n in range(2_500))
    assert len(body) > 90_000
    script = f"cd '{tmp_path}'\ncat >copy <<'THE END'\n{body}THE END\n(exit 5)\n"
    outcome = await shell.run(script)
    assert outcome.exit == 5
    assert (tmp_path / "copy").read_text() == body
    assert shell.boundaries.skipped == 0


async def test_trailing_newlines_and_a_trailing_comment_need_no_second_enter(
    start: Start,
) -> None:
    shell = await start()
    for cmd in ("echo a\n", "echo a\n\n\n", "echo a # b", "echo a \\\n\n"):
        assert (await shell.run(cmd)).output == "a\n"


async def test_trap_5_each_of_two_commands_has_its_own_output_and_exit(
    start: Start,
) -> None:
    shell = await start()
    await shell.submit("sleep 0.2; echo slow; (exit 1)")
    await shell.expect(CommandBegin)
    assert not shell.boundaries.can_submit()
    assert (await shell.expect(CommandEnd)).exit == 1
    assert shell.output == "slow\n"
    await shell.expect(PromptShown)
    outcome = await shell.run("echo B")
    assert (outcome.exit, outcome.output) == (0, "B\n")


async def test_trap_7_ctrl_c_ends_the_running_command_with_130_and_not_the_next(
    start: Start,
) -> None:
    shell = await start()
    for number in range(5):
        await shell.submit(f"sh -c 'echo ready; echo {number}{number}; exec sleep 100'")
        # Before that its process group may not be in front yet.
        await shell.seen(f"ready\r\n{number}{number}")
        await shell.type("\x03")
        assert (await shell.expect(CommandEnd)).exit == 130
        await shell.expect(PromptShown)
        assert shell.boundaries.uncertain == "human:ann"
        await shell.settle()
        assert (await shell.run("echo next")).exit == 0


async def test_trap_7_ctrl_c_at_the_prompt_costs_no_submission(start: Start) -> None:
    # bash may sit on a Ctrl-C that came while it drew the prompt, and drop the next keys for it.
    shell = await start()
    for round_number in range(30):
        await shell.submit("true")
        await shell.expect(CommandEnd)
        await shell.type("\x03")
        if round_number % 2:
            await shell.expect(PromptShown)
        await shell.settle()
        assert (await shell.run(f"echo {round_number}")).output == f"{round_number}\n"


async def test_trap_8_forged_and_replayed_marks_move_nothing(start: Start, tmp_path: Path) -> None:
    shell = await start()
    await shell.run("true")
    log = tmp_path / "raw.log"
    log.write_bytes(shell.everything + b"".join(mark.visible for mark in shell.marks))
    await shell.submit(
        f"printf '\\e]133;D;0\\a\\e]133;A\\a\\e]133;B\\a\\e]133;D;0;n=guess;q=99\\e\\\\';"
        f" cat '{log}'; sleep 0.1; (exit 9)"
    )
    await shell.expect(CommandBegin)
    assert (await shell.expect(CommandEnd, PromptShown, NoCommand)) == CommandEnd(exit=9)


async def test_trap_34_a_half_typed_line_is_known_and_never_joined(start: Start) -> None:
    shell = await start()
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
    start: Start, mode: str, keys: str
) -> None:
    shell = await start(f"PS1='$ '\nset -o {mode}\n")
    await shell.run("echo earlier")
    # Written past the bookkeeping: this is what the key itself must do.
    await shell.process.write(keys.encode())
    shell.submits_by_key = True
    outcome = await shell.run("echo ours")
    assert (outcome.exit, outcome.output) == (0, "ours\n")


async def test_trap_34_type_ahead_is_found_by_the_probe(start: Start, tmp_path: Path) -> None:
    shell = await start()
    may_end = tmp_path / "may end"
    os.mkfifo(may_end)
    await shell.submit(f"cat '{may_end}'")
    await shell.expect(CommandBegin)
    await shell.type("echo half ", writer="human:bob")
    await trio.Path(may_end).write_text("")
    await shell.expect(PromptShown)
    assert shell.boundaries.uncertain == "human:bob"
    assert not shell.boundaries.can_submit()
    assert (await shell.probe()).length == len("echo half ")
    assert shell.boundaries.typing == "human:bob"


async def test_trap_34_input_for_the_program_leaves_the_line_empty(start: Start) -> None:
    shell = await start()
    await shell.submit("read -r x; echo got $x")
    await shell.expect(CommandBegin)
    await shell.type("words\r", writer="human:bob")
    await shell.expect(CommandEnd)
    assert shell.output.endswith("got words\n")
    await shell.expect(PromptShown)
    assert (await shell.probe()).length == 0
    assert shell.boundaries.can_submit()


async def test_a_command_typed_ahead_of_a_submission_is_not_taken_for_it(
    start: Start,
) -> None:
    shell = await start()
    await shell.submit("true")
    await shell.expect(PromptShown)
    await shell.submit("echo ours")
    # As if somebody's keys had been in the tty's queue before: the shell runs them as theirs.
    shell.boundaries.keys("human:bob", b"echo theirs; (exit 3)\r")
    await shell.process.write(b"echo theirs; (exit 3)\r")
    assert (await shell.expect(CommandBegin)).submitted
    assert (await shell.expect(CommandEnd)).exit == 0
    assert await shell.expect(CommandBegin) == CommandBegin(submitted=False, writer="human:bob")
    assert (await shell.expect(CommandEnd)).exit == 3


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
    start: Start, keys: str, text: str
) -> None:
    shell = await start()
    await shell.type(keys, writer="human:bob")
    assert await shell.expect(CommandBegin) == CommandBegin(submitted=False, writer="human:bob")
    ended = await shell.expect(CommandEnd)
    assert ended.history is not None
    line = TypedLine(commands=ended.commands, continuations=ended.continuations)
    assert shell.adapter.read_typed(ended.history, line) == text
    assert isinstance(shell.adapter.read_typed(ended.history, line), UnknownText)


async def test_a_submission_leaves_no_text_behind(start: Start) -> None:
    shell = await start()
    await shell.run("echo a\necho b")
    await shell.run("echo c")
    assert not list(shell.directory.glob("typed.[1-9]*"))

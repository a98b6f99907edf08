"""The hook in a real fish on a real PTY."""

from __future__ import annotations

import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from aegis.processes.capture import OutputCapture
from aegis.terminals.hooks import fish
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.hooks.startup import SECRET_FILE
from aegis.terminals.parse.boundaries import (
    CommandBegin,
    CommandEnd,
    NoCommand,
    PromptShown,
    SecondaryPrompt,
    ShellPhase,
    exit_of_nothing,
)
from aegis.terminals.typed import NOT_SAID, UnknownText
from tests.aegis.terminals.conftest import LiveShell, StartShell

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed"),
]

StartFish = Callable[..., Awaitable[LiveShell]]

PLAIN = "set -g fish_greeting\nfunction fish_prompt; echo -n '$ '; end\n"


@pytest.fixture
def start_fish(start_shell: StartShell) -> StartFish:
    """Starts a fish with the given ``config.fish``."""

    async def start(config: str = PLAIN, **arguments: Any) -> LiveShell:
        files = {".config/fish/config.fish": config}
        return await start_shell(fish.prepare, "fish", files, **arguments)

    return start


@pytest.mark.parametrize(
    ("cmd", "exit_code", "output"),
    [
        ("true", 0, ""),
        ("false", 1, ""),
        ("function f; return 7; end; f", 7, ""),
        ("function f; end", 0, ""),
        ("echo hi", 0, "hi\n"),
        ("printf 'no newline'", 0, "no newline"),
        ("echo one\necho two\nsh -c 'exit 3'", 3, "one\ntwo\n"),
        ("for i in 1 2\n  echo $i\nend", 0, "1\n2\n"),
        ("sh -c 'kill -INT $$'", 130, None),
        ("sleep 0.01 &", 0, None),
        ("no_such_command_here 2>/dev/null", 127, None),
        ("echo 'wow!there'", 0, "wow!there\n"),
        ("echo grüße 🐟", 0, "grüße 🐟\n"),
    ],
)
async def test_trap_2_a_command_ends_at_once_with_its_exit(
    start_fish: StartFish, cmd: str, exit_code: int, output: str | None
) -> None:
    shell = await start_fish()
    outcome = await shell.run(cmd)
    assert isinstance(outcome.end, CommandEnd)
    assert outcome.exit == exit_code
    assert output is None or clean(outcome.output) == output
    assert shell.boundaries.skipped == 0


def clean(raw: str) -> str:
    """What a record would have of it."""
    capture = OutputCapture()
    capture.feed(raw.replace("\n", "\r\n").encode())
    return capture.result().text


EXACT = {
    "a tab and blanks": "  \ta\tb  ",
    "quotes and backslashes": r"""it's a "test" \ \\ $HOME (date)""",
    "newlines": "one\ntwo\n\n  three\n",
    "control characters": "a\x01b\x03c\x11d\x13e\x1af\x1cg\x1bh\x7fi\rj",
    "an end of a paste": "a\x1b[201~b\x1b[200~c",
    "keys of the hook": "a\x1eb\x1dc",
    "a long line": "x" * 5000,
    "100 kB": "line of a script\n" * 6000,
    "wide characters": "漢字 é ﷽ 🐟",
}


@pytest.mark.parametrize("text", EXACT.values(), ids=EXACT)
async def test_trap_14_the_text_arrives_exactly(start_fish: StartFish, text: str) -> None:
    shell = await start_fish()
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    assert (await shell.run(f"printf '%s' '{quoted}' >text")).exit == 0
    arrived = await trio.Path(shell.directory.parent / "home" / "text").read_bytes()
    assert arrived == text.encode()
    assert shell.boundaries.skipped == 0


@pytest.mark.parametrize("cmd", ["", "   ", "\n\n", "# a comment", "  # another\n# more\n"])
async def test_trap_2_an_empty_line_or_a_comment_runs_nothing(
    start_fish: StartFish, cmd: str
) -> None:
    shell = await start_fish()
    await shell.run("sh -c 'exit 7'")
    outcome = await shell.run(cmd)
    assert outcome.end == NoCommand(submitted=True, exit=7, previous=7)
    assert exit_of_nothing(outcome.end, printed=False) == 0
    assert (await shell.run("echo on")).exit == 0


@pytest.mark.parametrize("cmd", ["echo )", "end", "&& true", "-x )"])
async def test_trap_2_a_syntax_error_runs_nothing_and_says_so(
    start_fish: StartFish, cmd: str
) -> None:
    shell = await start_fish()
    outcome = await shell.run(cmd)
    assert isinstance(outcome.end, NoCommand)
    assert "fish" in clean(outcome.output)
    assert "function" not in clean(outcome.output)
    assert outcome.exit not in (0, None)
    assert clean((await shell.run("echo after")).output) == "after\n"


@pytest.mark.parametrize("cmd", ["echo 'open", 'echo "open', "if true", "echo (date", "echo \\"])
async def test_trap_4_incomplete_input_is_told_and_dropped(start_fish: StartFish, cmd: str) -> None:
    shell = await start_fish()
    await shell.submit(cmd)
    assert await shell.expect(SecondaryPrompt) == SecondaryPrompt(submitted=True)
    await shell.interrupt()
    nothing = await shell.expect(NoCommand)
    assert nothing.submitted
    await shell.expect(PromptShown)
    assert (await shell.probe()).length == 0
    assert clean((await shell.run("echo after")).output) == "after\n"


async def test_a_submission_is_not_altered_by_an_abbreviation(start_fish: StartFish) -> None:
    shell = await start_fish(PLAIN + "abbr -a hello echo EXPANDED\nfunction hello; echo plain; end")
    assert clean((await shell.run("hello")).output) == "plain\n"
    assert clean((await shell.run("true; hello")).output) == "plain\n"
    await shell.type("hello\r")
    await shell.expect(CommandEnd)
    assert clean(shell.output) == "EXPANDED\n"


async def test_a_submitted_command_is_in_the_history_as_it_was_given(start_fish: StartFish) -> None:
    shell = await start_fish()
    await shell.run("echo one\necho 'two  '")
    await shell.run("echo three  ")
    assert clean((await shell.run("history --max=2")).output) == (
        "echo three\necho one\necho 'two  '\n"
    )


async def test_a_typed_command_is_told_with_its_text_and_its_writer(start_fish: StartFish) -> None:
    shell = await start_fish()
    for typed, text in (
        ("echo hi\r", "echo hi"),
        ("  echo 'blank  '\r", "  echo 'blank  '"),
        ("if true\recho x\rend\r", "if true\necho x\nend"),
    ):
        await shell.type(typed)
        assert await shell.expect(CommandBegin) == CommandBegin(submitted=False, writer="human:ann")
        ended = await shell.expect(CommandEnd)
        assert ended.history is not None
        told = shell.adapter.read_typed(ended.history)
        assert isinstance(told, str)
        assert [line.strip() for line in told.split("\n")] == [
            line.strip() for line in text.split("\n")
        ]
        assert shell.adapter.read_typed(ended.history) == UnknownText(NOT_SAID)
        await shell.expect(PromptShown)
    await shell.settle()
    await shell.run("true")
    assert list(shell.directory.glob("typed.*")) == []


async def test_a_bare_enter_and_a_typed_comment_leave_no_command(start_fish: StartFish) -> None:
    shell = await start_fish()
    for typed in ("\r", "# a remark\r"):
        await shell.type(typed)
        nothing = await shell.expect(NoCommand, CommandEnd)
        assert isinstance(nothing, NoCommand)
        assert not nothing.submitted
        await shell.expect(PromptShown)
    assert shell.boundaries.can_submit()


async def drop_line(shell: LiveShell) -> None:
    """Press Ctrl-C until the line is dropped: fish loses one that comes close to other keys."""
    while True:
        await shell.type("\x03")
        with trio.move_on_after(2):
            await shell.expect(NoCommand)
            return


async def test_trap_7_ctrl_c_ends_a_command_and_drops_a_line(start_fish: StartFish) -> None:
    shell = await start_fish()
    # One program from the word on: fish itself says 0 for a Ctrl-C between two of its own steps.
    await shell.submit("sh -c 'echo ready; exec sleep 60'")
    await shell.seen("\rready")
    await shell.type("\x03")
    assert (await shell.expect(CommandEnd)).exit == 130
    await shell.expect(PromptShown)
    await shell.settle()
    await shell.type("echo half")
    assert (await shell.probe()).length == 9
    await drop_line(shell)
    await shell.expect(PromptShown)
    await shell.settle()
    assert clean((await shell.run("echo after")).output) == "after\n"


async def test_trap_34_the_probe_tells_how_long_the_line_is(start_fish: StartFish) -> None:
    shell = await start_fish()
    assert (await shell.probe()).length == 0
    await shell.type("echo half ")
    assert (await shell.probe()).length == 10
    await shell.type("\x15")
    assert (await shell.probe()).length == 0


@pytest.mark.parametrize("before", ["\x1b", "v", "R", "i", ""])
async def test_a_submission_works_in_every_mode_of_vi(start_fish: StartFish, before: str) -> None:
    shell = await start_fish(PLAIN + "fish_vi_key_bindings")
    if before:
        await shell.type("\x1b")
        await shell.probe()
        await shell.type(before)
    await shell.probe()
    outcome = await shell.run("echo submitted")
    assert clean(outcome.output) == "submitted\n"


@pytest.mark.parametrize("keys", ["ec\t", "\x1bOA", "\x12", "\x1b[200~x\x1b[201~"])
async def test_a_submission_takes_the_line_whatever_was_on_it(
    start_fish: StartFish, keys: str
) -> None:
    shell = await start_fish()
    await shell.run("echo earlier")
    await shell.type(keys)
    await shell.probe()
    await drop_line(shell)
    await shell.settle()
    assert clean((await shell.run("echo submitted")).output) == "submitted\n"


async def test_switching_the_key_bindings_leaves_ours(start_fish: StartFish) -> None:
    shell = await start_fish()
    for bindings in ("fish_vi_key_bindings", "fish_default_key_bindings", "bind --erase --all"):
        assert (await shell.run(bindings)).exit == 0
        assert clean((await shell.run("echo still here")).output) == "still here\n"


async def test_a_stray_submit_key_runs_nothing(start_fish: StartFish) -> None:
    shell = await start_fish()
    await shell.run("echo once >>runs")
    for _ in range(2):
        await shell.type("\x1e")
    assert (await shell.probe()).length == 0
    await shell.type("\x03")
    await shell.settle()
    assert clean((await shell.run("cat runs")).output) == "once\n"


async def test_trap_1_the_users_handlers_run_and_are_not_in_the_output(
    start_fish: StartFish,
) -> None:
    shell = await start_fish(
        PLAIN
        + "function a --on-event fish_preexec; echo PRE $argv; end\n"
        + "function b --on-event fish_postexec; echo POST $status; end\n"
        + "function c --on-event fish_prompt; echo PROMPT $status; end\n"
    )
    outcome = await shell.run("echo hi; sh -c 'exit 4'")
    assert (outcome.exit, clean(outcome.output)) == (4, "hi\n")
    for text in ("PRE echo hi; sh -c 'exit 4'", "POST 4", "PROMPT 4"):
        await shell.seen(text)


async def test_trap_15_prompts_of_every_side_are_not_in_the_output(start_fish: StartFish) -> None:
    shell = await start_fish(
        "function fish_greeting; echo GREETING; end\n"
        "function fish_prompt; echo LEFT $status; echo '> '; end\n"
        "function fish_right_prompt; echo RIGHT; end\n"
        "function fish_mode_prompt; echo MODE; end\n"
        "function fish_title; echo TITLE; end\n"
    )
    assert clean((await shell.run("clear; sh -c 'exit 3'")).output).strip() == ""
    await shell.seen("LEFT")
    await shell.seen("RIGHT")
    outcome = await shell.run("function fish_prompt; echo NEW; end; echo changed")
    assert clean(outcome.output) == "changed\n"
    await shell.seen("NEW")
    assert clean((await shell.run("echo $status")).output) == "0\n"


async def test_trap_1_no_child_has_the_secret_in_its_environment(start_fish: StartFish) -> None:
    shell = await start_fish()
    assert not (shell.directory / SECRET_FILE).exists()
    everything = await shell.run("env; set -x; cat /proc/self/environ; fish -c 'set'")
    assert shell.secret.decode() not in everything.output
    assert shell.secret not in shell.everything


async def test_trap_8_marks_without_the_secret_move_nothing(start_fish: StartFish) -> None:
    shell = await start_fish()
    outcome = await shell.run(r"printf '\e]133;D;0\a\e]133;A\a\e]133;C;q=99\a'; sh -c 'exit 5'")
    assert outcome.exit == 5


async def test_trap_11_a_fish_inside_is_one_command(start_fish: StartFish) -> None:
    shell = await start_fish()
    await shell.submit("fish --no-config")
    await shell.expect(CommandBegin)
    await shell.type("echo in\x09side >inner; exit 6\r".replace("\x09", ""))
    assert (await shell.expect(CommandEnd)).exit == 6
    await shell.expect(PromptShown)
    await shell.settle()
    assert clean((await shell.run("cat inner")).output) == "inside\n"


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
async def test_no_mark_forks(start_fish: StartFish) -> None:
    shell = await start_fish()
    await shell.run("true")
    trace = shell.directory / "trace"
    argv = ["strace", "-f", "-e", "trace=%process", "-o", str(trace), "-p", str(shell.process.pid)]
    tracer = await trio.lowlevel.open_process(argv, stderr=-1)
    assert tracer.stderr is not None
    async with tracer.stderr as attached:
        await attached.receive_some()
        await shell.run("true")
        await shell.run("true\ntrue")
        await shell.type("true\r")
        await shell.expect(CommandEnd)
        await shell.expect(PromptShown)
        await shell.run("sh -c :")
        tracer.terminate()
        await tracer.wait()
    calls = (await trio.Path(trace).read_text()).splitlines()
    assert len([line for line in calls if re.search(r"v?fork\(|clone.*SIGCHLD", line)]) == 1


async def test_a_fish_that_is_too_old_says_so_and_ends(start_shell: StartShell) -> None:
    def prepare_old(program: str, directory: Path) -> ShellAdapter:
        adapter = fish.prepare(program, directory)
        init = directory / fish.INIT_FILE
        init.write_text(init.read_text().replace("-- $version", "-- 3.3.1", 1))
        return adapter

    shell = await start_shell(prepare_old, "fish", prompt=False)
    await shell.seen("a terminal needs fish 3.4 or newer, this is ")
    assert await shell.process.wait() == 1
    assert shell.boundaries.phase is ShellPhase.STARTING

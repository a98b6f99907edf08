"""Trap 33: with what people load into their shells, alone and together, every record is exact."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from aegis.processes.capture import OutputCapture
from aegis.terminals.hooks import bash, zsh
from aegis.terminals.parse.boundaries import (
    CommandBegin,
    CommandEnd,
    NoCommand,
    PromptShown,
    SecondaryPrompt,
)
from tests.aegis.terminals.conftest import LiveShell, StartShell, needs_zsh
from tests.frameworks.table import ALONE, TOGETHER, Framework, startup_of, why_not

pytestmark = pytest.mark.real

CI_RUN = Path(__file__).resolve().parents[4] / ".ci" / "run"

CASES = [
    pytest.param(
        shell,
        frameworks,
        id=f"{shell}, {' and '.join(map(str, frameworks))}",
        marks=[needs_zsh] if shell == "zsh" else [],
    )
    for shell in ("bash", "zsh")
    for frameworks in [*([each] for each in ALONE[shell]), *TOGETHER[shell]]
]

COMMANDS = [
    ("echo out; (exit 3)", "out\n", 3),
    ("true", "", 0),
    ("false", "", 1),
    ("echo one\n\necho 'two\nthree'\n(exit 4)", "one\ntwo\nthree\n", 4),
    ("cat <<EOF\nfirst  line\n  $((1+1)) 'q'\nEOF", "first  line\n  2 'q'\n", 0),
    ("printf 'no line feed'", "no line feed", 0),
    ("echo 'a!b  ü'", "a!b  ü\n", 0),
]


def test_what_the_frameworks_need_is_installed_before_the_tests_run() -> None:
    [needed] = re.findall(r"^needed=\(([^)]*)\)$", CI_RUN.read_text(), re.MULTILINE)
    packages = set(needed.split()[1::2])
    used = {each.package for shell in ALONE for each in ALONE[shell] if each.package}
    assert used <= packages


async def start_with(
    start_shell: StartShell, shell: str, frameworks: Sequence[Framework]
) -> LiveShell:
    if reason := why_not(frameworks):
        pytest.skip(reason)
    prepare, name = {"bash": (bash.prepare, ".bashrc"), "zsh": (zsh.prepare, ".zshrc")}[shell]
    return await start_shell(prepare, shell, {name: startup_of(frameworks)})


def clean(output: str) -> str:
    """As the record has it."""
    capture = OutputCapture()
    capture.feed(output.encode())
    return capture.result().text


async def check_commands(shell: LiveShell) -> None:
    for cmd, output, exit_code in COMMANDS:
        outcome = await shell.run(cmd)
        assert (cmd, clean(outcome.output), outcome.exit) == (cmd, output, exit_code)
        assert isinstance(outcome.end, CommandEnd)


async def check_lines_that_run_nothing(shell: LiveShell) -> None:
    for cmd in ("", "# a remark"):
        assert isinstance((await shell.run(cmd)).end, NoCommand)


async def check_incomplete(shell: LiveShell) -> None:
    await shell.submit("echo 'open")
    assert (await shell.expect(SecondaryPrompt)).submitted
    await shell.drop()
    assert (await shell.expect(NoCommand)).submitted
    await shell.expect(PromptShown)


async def check_typed(shell: LiveShell) -> None:
    await shell.type("echo typed  x; (exit 5)\r")
    assert await shell.expect(CommandBegin) == CommandBegin(submitted=False, writer="human:ann")
    ended = await shell.expect(CommandEnd)
    assert (ended.exit, clean(shell.output)) == (5, "typed x\n")
    assert ended.history is not None
    assert shell.adapter.read_typed(ended.history) == "echo typed  x; (exit 5)"
    await shell.expect(PromptShown)


async def check_in_force(shell: LiveShell, frameworks: Sequence[Framework]) -> None:
    """Each did load, and does its work at each prompt."""
    before = [shell.everything.count(each.shows) for each in frameworks]
    for _ in range(3):
        await shell.run("true")
    for each, count in zip(frameworks, before, strict=True):
        if each.shows:
            assert shell.everything.count(each.shows) >= count + 2, each.name
        for cmd, output in each.proof:
            assert (cmd, clean((await shell.run(cmd)).output)) == (cmd, output)


@pytest.mark.parametrize(("shell_name", "frameworks"), CASES)
async def test_trap_33_with_frameworks_alone_and_together_every_record_is_exact(
    start_shell: StartShell, shell_name: str, frameworks: Sequence[Framework]
) -> None:
    shell = await start_with(start_shell, shell_name, frameworks)
    await check_incomplete(shell)
    await check_commands(shell)
    await check_lines_that_run_nothing(shell)
    await check_typed(shell)
    await check_incomplete(shell)
    await check_commands(shell)
    assert shell.secret.decode() not in (await shell.run("env; export -p")).output
    await check_in_force(shell, frameworks)
    assert shell.boundaries.skipped == 0

"""Trap 33: terminals of somebody who has prompt frameworks, several together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, needs_zsh
from tests.e2e.harness import LiveTerminal
from tests.e2e.screens import text_of, wait_screen
from tests.frameworks.table import POWERLEVEL10KS, TOGETHER, Framework, startup_of, why_not

pytestmark = pytest.mark.real

on_their_shells = pytest.mark.parametrize(
    ("shell", "frameworks"),
    [
        pytest.param("bash", TOGETHER["bash"][0], id="bash with liquidprompt"),
        pytest.param("bash", TOGETHER["bash"][1], id="bash with powerline"),
        pytest.param("zsh", TOGETHER["zsh"][0], id="zsh with powerlevel9k", marks=needs_zsh),
        pytest.param("zsh", TOGETHER["zsh"][1], id="zsh with an instant prompt", marks=needs_zsh),
        pytest.param("zsh", TOGETHER["zsh"][-1], id="zsh with powerlevel10k", marks=needs_zsh),
    ],
)


@pytest.fixture
def startup(frameworks: Sequence[Framework]) -> str:
    """The start-up file with all of them; it goes home, where their prompts have less to say."""
    if reason := why_not(frameworks):
        pytest.skip(reason)
    return startup_of(frameworks) + "cd\n"


def outcome(record: dict[str, Any]) -> tuple[object, ...]:
    return record["exit"], record["stdout"], record["stderr"], record["end"]


def check_in_force(terminal: LiveTerminal, frameworks: Sequence[Framework]) -> None:
    shown = terminal.raw()
    assert [each.name for each in frameworks if each.shows not in shown] == []


@on_their_shells
def test_trap_33_every_record_is_exact_with_many_frameworks_together(
    new_terminal: NewTerminal, startup: str, frameworks: Sequence[Framework], handle: str
) -> None:
    terminal = new_terminal(startup)
    wakes = terminal.subscribe(handle)
    for _ in range(2):
        assert outcome(terminal.run("echo out; (exit 3)")) == (3, "out\n", "", "exited")
        assert outcome(terminal.run("true")) == (0, "", "", "exited")
        script = "echo one\ncat <<EOF\n  two\tü\nEOF\n(exit 4)"
        assert outcome(terminal.run(script)) == (4, "one\n  two\tü\n", "", "exited")
        assert terminal.refusal("if true; then").code == "incomplete_input"
    wakes.unread()
    terminal.keys("echo typed  x; (exit 5)\r", from_handle="ann")
    wakes.next()
    typed = terminal.records()[-1]
    assert outcome(typed) == (5, "typed x\n", "", "exited")
    assert (typed["cmd"], typed["writer"]) == ("echo typed  x; (exit 5)", "agent:ann")
    secret = terminal.run('echo "$__aegis_n"')["stdout"].strip()
    assert len(secret) >= 16
    assert secret not in terminal.run("env; export -p")["stdout"]
    assert terminal.described()["integration"] == "osc133"
    check_in_force(terminal, frameworks)


@on_their_shells
def test_trap_33_standard_error_comes_apart_with_many_frameworks_together(
    new_terminal: NewTerminal, startup: str, frameworks: Sequence[Framework]
) -> None:
    terminal = new_terminal(startup, stderr="separate")
    for _ in range(2):
        record = terminal.run("echo out; echo err >&2; (exit 3)")
        assert outcome(record) == (3, "out\n", "err\n", "exited")
        assert outcome(terminal.run("true")) == (0, "", "", "exited")
        record = terminal.run("echo one\necho two >&2\necho three")
        assert outcome(record) == (0, "one\nthree\n", "two\n", "exited")
    check_in_force(terminal, frameworks)


@pytest.mark.parametrize(
    ("shell", "frameworks"),
    [
        pytest.param("zsh", TOGETHER["zsh"][1], id="imitated", marks=needs_zsh),
        *(pytest.param("zsh", [each], id=str(each), marks=needs_zsh) for each in POWERLEVEL10KS),
    ],
)
def test_trap_4_incomplete_text_is_refused_at_once_from_the_first_prompt_of_powerlevel10k(
    new_terminal: NewTerminal, startup: str, frameworks: Sequence[Framework]
) -> None:
    terminal = new_terminal(startup)
    for _ in range(2):
        for cmd in ("echo 'open", "if true; then", "cat <<EOF\nx", "echo $("):
            assert terminal.refusal(cmd).code == "incomplete_input"
            assert outcome(terminal.run("echo next")) == (0, "next\n", "", "exited")


def prompt_stands(terminal: LiveTerminal) -> bool:
    shown = terminal.raw()
    return shown.rfind(b"\x1b]133;B") > shown.rfind(b"\x1b]133;D")


@on_their_shells
def test_trap_33_what_somebody_picks_with_fzf_is_theirs_and_others_wait_for_it(
    new_terminal: NewTerminal, startup: str, handle: str
) -> None:
    terminal = new_terminal(startup)
    wakes = terminal.subscribe(handle)
    terminal.keys("echo a needle; (exit 5)\r", from_handle="bob")
    wakes.next()
    wait_screen(terminal, lambda _: prompt_stands(terminal))
    terminal.keys("\x12", from_handle="ann")
    wait_screen(terminal, "1/1")
    assert terminal.refusal("needle", timeout=0.4).code == "busy"
    terminal.keys("needle", from_handle="ann")
    wait_screen(terminal, "> needle")
    terminal.keys("\r", from_handle="ann")
    wait_screen(terminal, lambda screen: "1/1" not in text_of(screen))
    assert terminal.refusal("echo mine", timeout=0.4).code == "busy"
    terminal.keys("\r", from_handle="ann")
    assert terminal.run("echo mine")["stdout"] == "mine\n"
    picked, mine = terminal.records()[-2:]
    assert (picked["cmd"], picked["writer"]) == ("echo a needle; (exit 5)", "agent:ann")
    assert outcome(picked) == (5, "a needle\n", "", "exited")
    assert mine["cmd"] == "echo mine"

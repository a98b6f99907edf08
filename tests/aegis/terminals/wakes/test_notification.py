from __future__ import annotations

from typing import Any

import attrs
import pytest

from aegis.terminals.wakes.notification import wake_body, wake_id, wake_sender
from tests.aegis.terminals.samples import RECORD


def body(**changes: Any) -> list[str]:
    return wake_body(attrs.evolve(RECORD, **changes)).split("\n")


def test_a_message_tells_command_outcome_and_the_last_lines() -> None:
    assert wake_body(attrs.evolve(RECORD, stdout="one\ntwo\n", stderr="oops\n")) == (
        "$ pytest -q · run by agent:alice\nexit 0 · 4.20s\n──\none\ntwo\n── stderr ──\noops"
    )


def test_sender_and_id_name_the_terminal() -> None:
    assert wake_sender("build") == "term:build"
    assert wake_id("build", "5f3a", 12, "bob") == "term:build/5f3a/12/bob"


@pytest.mark.parametrize("stdout", ["", "\n", " \n\n"])
def test_without_output_there_is_no_rule(stdout: str) -> None:
    assert body(stdout=stdout) == ["$ pytest -q · run by agent:alice", "exit 0 · 4.20s"]


def test_errors_alone_have_their_rule_only() -> None:
    assert body(stderr="bad")[2:] == ["── stderr ──", "bad"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"exit": 130}, "exit 130 · 4.20s"),
        ({"exit": None}, "exit ? · 4.20s"),
        ({"duration_s": 3725.126}, "exit 0 · 3725.13s"),
        ({"duration_s": 0.0}, "exit 0 · 0.00s"),
        ({"timed_out": True}, "exit 0 · 4.20s · timed out"),
        (
            {"exit": None, "duration_s": None, "killed_by_restart": True},
            "exit ? · killed by restart",
        ),
        (
            {"exit": None, "killed_by_restart": True, "timed_out": True},
            "exit ? · 4.20s · killed by restart · timed out",
        ),
    ],
)
def test_the_outcome_is_one_line(changes: dict[str, Any], line: str) -> None:
    assert body(**changes)[1] == line


def test_only_the_last_eight_lines_are_shown_and_four_of_the_errors() -> None:
    many = "".join(f"line {number}\n" for number in range(100))
    lines = body(stdout=many, stderr=many)
    assert lines[2:11] == ["──", *[f"line {number}" for number in range(92, 100)]]
    assert lines[11:] == ["── stderr ──", *[f"line {number}" for number in range(96, 100)]]


def test_blank_lines_count_as_lines() -> None:
    assert body(stdout="a\n\nb\n\n")[2:] == ["──", "a", "", "b", ""]


def test_a_long_line_is_cut_to_two_hundred_characters() -> None:
    lines = body(stdout="x" * 200 + "\n" + "y" * 201)
    assert lines[3] == "x" * 200
    assert lines[4] == "y" * 199 + "…"


@pytest.mark.parametrize(
    ("cmd", "shown"),
    [
        (None, "?"),
        ("ls\n", "ls"),
        ("  ls -l", "  ls -l"),
        ("for i in 1\ndo\necho\ndone", "for i in 1 …(+3 lines)"),
        ("a\nb\n", "a …(+1 line)"),
        ("a\tb", "a       b"),
        ("a\x1b[31m\x07b", "a [31m b"),
        ("a\r\nb", "a  …(+1 line)"),
    ],
)
def test_the_command_is_shown_on_one_line(cmd: str | None, shown: str) -> None:
    assert body(cmd=cmd)[0] == f"$ {shown} · run by agent:alice"


def test_a_long_command_is_cut_to_two_hundred_characters() -> None:
    end = " · run by agent:alice"
    assert body(cmd="x" * 1000)[0] == "$ " + "x" * 199 + "…" + end
    [shown, _] = body(cmd="x" * 1000 + "\ny")
    assert shown == "$ " + "x" * 188 + "…" + " …(+1 line)" + end
    assert len(shown.removeprefix("$ ").removesuffix(end)) == 200


@pytest.mark.parametrize("hidden", ["\t", "\x1b", "\x9b", "\u2028", "\u202e", "\x7f", "\r", "\x0b"])
def test_no_line_holds_what_could_rewrite_the_message(hidden: str) -> None:
    record = attrs.evolve(RECORD, cmd=f"a{hidden}b", stdout=f"a{hidden}b", stderr=f"{hidden}c")
    text = wake_body(record)
    assert hidden not in text
    assert len(text.splitlines()) == 6

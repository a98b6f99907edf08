"""Titles, notifications and progress, on the texts that agents were seen to write."""

from __future__ import annotations

import pytest

from aegis.lifecycle.notices import (
    Notice,
    ProgressNotice,
    TitleChanged,
    TitleClass,
    read_notice,
    read_title,
)

TITLES: list[tuple[str, TitleClass | None, str]] = [
    # Claude Code 2.1.197, then 2.1.329 without and with an answer to its query.
    ("⠂ Claude Code", "working", "Claude Code"),
    ("⠐ Claude Code", "working", "Claude Code"),
    ("✳ Claude Code", "ready", "Claude Code"),
    ("◐ Claude Code", "working", "Claude Code"),
    ("◑ Claude Code", "working", "Claude Code"),
    ("Claude Code", None, "Claude Code"),
    # Codex 0.169.
    ("⠋ w", "working", "w"),
    ("⠙ w", "working", "w"),
    ("[ ! ] Action Required | w", "blocked", "Action Required | w"),
    ("[ . ] Action Required | w", "blocked", "Action Required | w"),
    ("w", None, "w"),
    # Gemini 0.61.
    ("✦  Working… (w)", "working", "Working… (w)"),
    ("◇  Ready (w)", "ready", "Ready (w)"),
    ("✋  Action Required (w)", "blocked", "Action Required (w)"),
    # opencode 1.18.
    ("OpenCode", None, "OpenCode"),
    ("OC | title", None, "OC | title"),
    # The rest of a title is the name of a task.
    ("✳ Fix the Action Required banner", "ready", "Fix the Action Required banner"),
    ("⠋ Action Required", "working", "Action Required"),
    ("Draw a ⠋ and a ✋", None, "Draw a ⠋ and a ✋"),
    ("user@host: ~/Action Required", None, "user@host: ~/Action Required"),
    ("✳️ emoji", "ready", "emoji"),
    ("", None, ""),
    ("✳", "ready", ""),
]


@pytest.mark.parametrize(("text", "kind", "rest"), TITLES)
def test_a_title_is_classified_by_its_beginning(
    text: str, kind: TitleClass | None, rest: str
) -> None:
    assert read_title(text.encode()) == TitleChanged(text=rest, kind=kind)
    assert read_title(f"{text} ".encode()) == TitleChanged(text=rest, kind=kind)


def test_a_title_is_escaped_and_bounded() -> None:
    assert read_title("a\u202eb\x1b".encode()).text == "a<U+202E>b<U+001B>"
    assert read_title(b"\xff\xfe").text == "\ufffd\ufffd"
    assert len(read_title(b"x" * 100_000).text) == 192
    assert len(read_title("\u202e".encode() * 5000).text) == 192


PERMISSION = "Claude needs your permission"
IDLE = "Claude is waiting for your input"

NOTICES: list[tuple[int, str, Notice | ProgressNotice | None]] = [
    (777, f"notify;Claude Code;{PERMISSION}", Notice(PERMISSION)),
    (777, f"notify;Claude Code;{IDLE}", Notice(IDLE)),
    (777, "notify;only a title", Notice("only a title")),
    (777, "notify;t;a;b", Notice("a;b")),
    (777, "precmd", None),
    (777, "notify", None),
    (9, "Approval requested: touch x", Notice("Approval requested: touch x")),
    (9, "42 tests passed", Notice("42 tests passed")),
    (9, "", Notice("")),
    (9, "9;/home", None),
    (9, "12", None),
    (9, "2;box", None),
    (9, "4;3", ProgressNotice(in_progress=True)),
    (9, "4;3;", ProgressNotice(in_progress=True)),
    (9, "4;3;50", ProgressNotice(in_progress=True)),
    (9, "4;1;50", ProgressNotice(in_progress=True, percent=50)),
    (9, "4;1;0", ProgressNotice(in_progress=True, percent=0)),
    (9, "4;1;250", ProgressNotice(in_progress=True, percent=100)),
    (9, "4;1", ProgressNotice(in_progress=True)),
    (9, "4;1;50;more", ProgressNotice(in_progress=True, percent=50)),
    (9, "4;0;", ProgressNotice(in_progress=False)),
    (9, "4;0;50", ProgressNotice(in_progress=False)),
    (9, "4;2;50", ProgressNotice(in_progress=False, percent=50)),
    (9, "4;4;50", ProgressNotice(in_progress=False, percent=50)),
    (9, "4;5", None),
    (9, "4;", None),
    (9, "4;1;x", ProgressNotice(in_progress=True)),
    (9, "4;1;1000", ProgressNotice(in_progress=True)),
    (99, ";Hello", Notice("Hello")),
    (99, "i=1;Hello", Notice("Hello")),
    (99, "i=1:d=0;Title", None),
    (99, "i=1:d=1:p=body;The body", Notice("The body")),
    (99, "i=1:e=1;SGk=", Notice("Hi")),
    (99, "i=1:e=1;SGk", Notice("Hi")),
    (99, "i=1:e=1;@@", None),
    (99, "i=1:p=?;", None),
    (99, "i=1:p=close;", None),
    (99, "i=1:p=icon;AAAA", None),
    (1337, "anything", None),
    (8, "notify;a;b", None),
]  # fmt: skip


@pytest.mark.parametrize(("number", "content", "expected"), NOTICES)
def test_notifications_and_progress_are_read(
    number: int, content: str, expected: Notice | ProgressNotice | None
) -> None:
    assert read_notice(number, content.encode()) == expected


def test_a_notification_is_escaped_and_bounded() -> None:
    assert read_notice(9, b"a\x07\xe2\x80\xaeb") == Notice("a<U+0007><U+202E>b")
    found = read_notice(777, b"notify;t;" + b"x" * 100_000)
    assert isinstance(found, Notice)
    assert len(found.text) == 2048

"""What is printed: safe to show, aligned, and short."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.cli.printing.formatting import (
    cell,
    colours_of,
    columns,
    duration,
    escaped,
    escaped_line,
    print_json,
    print_lines,
    record_block,
    status_line,
    table,
    tree_rows,
)

Record = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 😀 \u00a0", "plain é 😀 \u00a0"),
        ("\x1b[31mred\x1b]0;t\x07", r"\x1b[31mred\x1b]0;t\x07"),
        ("a\r\nb\tc", "a\\r\nb\tc"),
        ("\x9b2J\x7f\x00", r"\x9b2J\x7f\x00"),
        ("\u202egnp\u2066", r"\u202egnp\u2066"),
        ("\udcff", r"\udcff"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_a_line_stays_one_line() -> None:
    assert escaped_line("a\n\tb") == r"a\n\tb"


OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@given(st.text(st.characters()))
def test_nothing_a_terminal_obeys_is_ever_left(text: str) -> None:
    assert OBEYED.search(escaped(text)) is None
    assert escaped(text).encode().decode() == escaped(text)
    assert len(escaped_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), ("", "-"), ([], "-"), (0, "0"), (["a", "b\x1b"], r"a, b\x1b"), ("a\nb", r"a\nb")],
)
def test_a_cell_is_one_line_and_never_empty(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_a_table_is_aligned_and_ends_no_line_in_blanks() -> None:
    assert table(["name", "pid", "last"], [["build", 7, None], ["a", 12345, "x y"]]) == (
        "name   pid    last\nbuild  7      -\na      12345  x y"
    )


def test_a_table_without_rows_is_its_head() -> None:
    assert table(["name", "pid"], []) == "name  pid"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.00s"),
        (4.2, "4.20s"),
        (59.99, "59.99s"),
        (60, "1m 0s"),
        (125.9, "2m 5s"),
        (3600, "1h 0m"),
        (86_399, "23h 59m"),
        (12 * 86_400 + 3_700, "12d 1h"),
    ],
)
def test_durations_are_for_people(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "↳ exit 0 · 4.20s"),
        ({"exit": 137, "duration_s": 0.004}, "↳ exit 137 · 0.00s"),
        ({"exit": None, "duration_s": None}, "↳ exit ?"),
        ({"exit": None, "killed_by_restart": True}, "↳ exit ? · 4.20s · killed by restart"),
        ({"timed_out": True}, "↳ exit 0 · 4.20s · timed out"),
        (
            {
                "exit": None,
                "duration_s": None,
                "needs_input": {"kind": "input", "program": "vim"},
            },
            "↳ waits for input",
        ),
        (
            {"timed_out": True, "killed_by_restart": True, "exit": None, "duration_s": None},
            "↳ exit ? · killed by restart · timed out",
        ),
    ],
)
def test_a_chip_tells_the_end_of_a_command(
    record: Record, changes: dict[str, Any], shown: str
) -> None:
    assert status_line(record(**changes)) == shown


HEADER = "#3 $ pytest -q · agent:alice · 2026-05-22T14:03:25.000Z"


def test_a_record_is_shown_whole(record: Record) -> None:
    assert record_block(record()) == f"{HEADER}\n3 passed\n↳ exit 0 · 4.20s"
    assert record_block(record(stdout="")) == f"{HEADER}\n↳ exit 0 · 4.20s"
    both = record_block(record(stderr="oh\n"))
    assert both == f"{HEADER}\n3 passed\n── stderr ──\noh\n↳ exit 0 · 4.20s"


def test_a_record_cannot_smuggle_escape_sequences(record: Record) -> None:
    shown = record_block(
        record(cmd="echo\n\x1b[2J", stdout="a\x1b[2J\nb", stderr="\x9b", writer="\x07")
    )
    assert OBEYED.search(shown) is None
    assert shown.splitlines()[0].startswith(r"#3 $ echo\n\x1b[2J · \x07")
    assert record_block(record(cmd=None)).startswith("#3 $ ? · ")


def node(name: str, *children: dict[str, Any]) -> dict[str, Any]:
    return {
        "path": name,
        "name": name,
        "kind": "Actor",
        "state": "running",
        "mailbox": 1,
        "restarts": 2,
        "uptime_s": 65.0,
        "children": list(children),
    }


def test_a_tree_is_drawn_with_branches() -> None:
    root = node("root", node("a", node("a1"), node("a2")), node("b", node("b1", node("b11"))))
    rows = tree_rows(root)
    assert [row[0] for row in rows] == [
        "root",
        "├─ a",
        "│  ├─ a1",
        "│  └─ a2",
        "└─ b",
        "   └─ b1",
        "      └─ b11",
    ]
    assert rows[0][1:] == ["Actor", "running", 1, 2, "1m 5s"]


def test_json_is_ascii_and_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"text": "é\x1b\u009b\u202e"}
    print_json(document)
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert OBEYED.search(printed) is None
    assert json.loads(printed) == document


def test_nothing_is_printed_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines("")
    print_lines("a")
    print_lines("b\n")
    assert capsys.readouterr().out == "a\nb\n"


def test_a_sign_takes_two_columns_of_a_table() -> None:
    head, first, second = table(["state", "x"], [["🟢 up", 1], ["down", 2]]).split("\n")
    assert (head, first, second) == ("state  x", "🟢 up  1", "down   2")


ROW = ["build", "running", "/home/ann/projects/shop/backend", "x" * 30, "🟢 日本語"]
HEAD = ["name", "state", "cwd", "payload", "sign"]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_table_fits_a_window_and_keeps_its_names_and_the_ends_of_paths(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr("sys.stdout", SimpleNamespace(fileno=lambda: 1, isatty=lambda: True))
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((width, 24)))
    monkeypatch.setenv("TERM", "dumb")
    lines = table(HEAD, [ROW]).split("\n")
    assert max(map(columns, lines)) <= width
    assert lines[1].startswith("build  ")
    assert ("…" in lines[1]) is (width != 200)
    assert re.search(r"end\b", lines[1])


def test_a_table_is_whole_where_the_output_goes_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr("sys.stdout", SimpleNamespace(fileno=lambda: 1, isatty=lambda: False))
    monkeypatch.setattr("os.get_terminal_size", refuse)
    assert "x" * 500 in table(["name", "text"], [["a", "x" * 500]])


@pytest.mark.parametrize(
    ("variables", "is_tty", "coloured"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0", "TERM": "xterm"}, False, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR": "0", "TERM": "xterm"}, True, False),
    ],
)
def test_colours_are_for_terminals_and_as_the_variables_say(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_tty: bool, coloured: bool
) -> None:
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert colours_of(SimpleNamespace(isatty=lambda: is_tty)) is coloured

"""The language and the line editor of the simulated shell, as tables."""

from __future__ import annotations

import pytest

from aegis.terminals.hooks.submission import SUBMIT_KEY, encode_submission
from tests.chaos.machine.line_editor import Accepted, HookKey, Inserted, Left, LineEditor, Meaning
from tests.chaos.machine.shell_language import Command, Incomplete, SyntaxFault, read_text

TEXTS: dict[str, list[list[tuple[tuple[str, ...], str]]]] = {
    "": [],
    " \n\n# nothing": [],
    "a b": [[(("a", "b"), ";")]],
    "a; b&& c": [[(("a",), ";"), (("b",), "&&"), (("c",), ";")]],
    "a\n\nb & c": [[(("a",), ";")], [(("b",), "&"), (("c",), ";")]],
    "a ||\n\n b # c": [[(("a",), "||"), (("b",), ";")]],
    "echo 'a;\nb'c ''": [[(("echo", "a;\nbc", ""), ";")]],
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_as_lines_of_commands(text: str) -> None:
    expected = [tuple(Command(words, after) for words, after in line) for line in TEXTS[text]]  # type: ignore[arg-type]
    assert read_text(text) == expected


@pytest.mark.parametrize("text", ["echo 'a", "a && ", "a ||\n", "a\nb 'c\n"])
def test_a_text_that_goes_on_is_incomplete(text: str) -> None:
    with pytest.raises(Incomplete):
        read_text(text)


def test_a_line_with_a_fault_is_dropped_alone() -> None:
    first, fault, last = read_text("a\nb) c\nd")
    assert (first, last) == ((Command(("a",)),), (Command(("d",)),))
    assert isinstance(fault, SyntaxFault)
    assert str(fault) == "syntax error near unexpected token `)'"


KEYS: dict[bytes, list[Meaning]] = {
    b"ab\r": [Inserted(b"a"), Inserted(b"b"), Accepted(b"ab")],
    b"ab\x7fc\r": [Inserted(b"a"), Inserted(b"b"), Inserted(b"c"), Accepted(b"ac")],
    b"ab\x15\r": [Inserted(b"a"), Inserted(b"b"), Accepted(b"")],
    b"\x04": [Left()],
    b"a\x04\r": [Inserted(b"a"), Accepted(b"a")],
    b"\x1b[A\x1bx\r": [Accepted(b"")],
    SUBMIT_KEY: [HookKey(1)],
    b"\x1b[8133;2~": [HookKey(2)],
    b"\x1b[8133;103~\r": [Inserted(b"\x03"), Accepted(b"\x03")],
    encode_submission("a\nb"): [HookKey(1), Inserted(b"a\nb"), Accepted(b"a\nb")],
    encode_submission("a\x1b[201~b\rc"): [
        *(HookKey(1), Inserted(b"a\x1b"), Inserted(b"[201~b"), Inserted(b"\r"), Inserted(b"c")),
        Accepted(b"a\x1b[201~b\rc"),
    ],
}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_keys_mean_the_same_however_they_are_cut(keys: bytes, size: int) -> None:
    editor, meanings = LineEditor(), []
    for begin in range(0, len(keys), size):
        editor.feed(keys[begin : begin + size])
        while (meaning := editor.next()) is not None:
            meanings.append(meaning)
    assert meanings == KEYS[keys]
    assert not editor.has_keys

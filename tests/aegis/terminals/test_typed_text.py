"""What was typed, from the new entries of bash's history and from the keys that were sent."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aegis.terminals.hooks.bash_history import typed_text
from aegis.terminals.parse.line_keys import MAX_SPELLED_BYTES, LineKeys
from aegis.terminals.typed import NOT_IN_HISTORY, NOT_WHOLE, TypedLine, TypedText, UnknownText

WHOLE, MISSING = UnknownText(NOT_WHOLE), UnknownText(NOT_IN_HISTORY)


def written(*entries: str, lines: int, commands: int = 1, first: int = 5, posix: int = 0) -> str:
    """What the hook writes."""
    head = f"{first} {first + len(entries) - 1} {lines} {commands} {posix}\n"
    blank = "" if posix else " "
    return head + "".join(f"{first + n}\t{blank}{text}\n" for n, text in enumerate(entries))


@pytest.mark.parametrize(
    ("text", "line", "known"),
    [
        (written("echo one", lines=1), TypedLine(), "echo one"),
        (written(" echo one", lines=1, posix=1), TypedLine(), " echo one"),
        (written("a", "b", lines=2, commands=2), TypedLine(commands=2), "a\nb"),
        (written("a", "# b", "c", lines=3, commands=2), TypedLine(commands=2), "a\n# b\nc"),
        (written("cat <<X\nx\nX\n", lines=3), TypedLine(), "cat <<X\nx\nX\n"),
        (written("echo '\n6\t x'", "b", lines=3, commands=2), TypedLine(commands=2), None),
        (written("for x; do y; done", lines=3), TypedLine(continuations=2), "for x; do y; done"),
        (written("for x; do y; done", lines=3), TypedLine(continuations=1), WHOLE),
        (written("for x; do y; done", lines=3), TypedLine(keyed="for x\ndo y\ndone"), None),
        (written("b", lines=2), TypedLine(), WHOLE),
        (written("b", lines=2), TypedLine(keyed=" a\nb"), " a\nb"),
        (written("b", lines=2), TypedLine(keyed="b"), WHOLE),
        (written("b", lines=2), TypedLine(keyed="a\nc"), WHOLE),
        (written("b", lines=1), TypedLine(commands=2), WHOLE),
        (written("b", lines=1, commands=2), TypedLine(commands=2), WHOLE),
        (written("a", "b", lines=1), TypedLine(), WHOLE),
        ("5 6 2 2 0\n6\t b\n", TypedLine(commands=2), MISSING),
        ("5 5 1 1 0\n", TypedLine(), MISSING),
        ("    5  echo old\n", TypedLine(), MISSING),
        ("", TypedLine(), MISSING),
    ],
)
def test_the_text_is_known_when_the_entries_account_for_the_lines(
    text: str, line: TypedLine, known: TypedText | None
) -> None:
    told = typed_text(text, line)
    if known is not None:
        assert told == known
    elif line.keyed is not None:
        assert told == line.keyed
    else:
        assert isinstance(told, str)
        assert "b" in told


@given(st.text(max_size=200), st.integers(0, 3), st.integers(0, 3), st.none() | st.text())
def test_whatever_is_in_the_file_is_no_exception(
    text: str, commands: int, continuations: int, keyed: str | None
) -> None:
    line = TypedLine(commands=commands, continuations=continuations, keyed=keyed)
    for each in (text, "1 2 3 4 0\n" + text, "1 1 1 1 0\n1\t " + text):
        assert isinstance(typed_text(each, line), str | UnknownText)


@example(entries=["0", "0", "\n7\t1"])
@given(
    st.lists(
        st.text(alphabet="ab #\n0123456789\t", min_size=1, max_size=20).filter(str.strip),
        min_size=1,
        max_size=5,
    )
)
def test_no_line_of_an_entry_is_lost(entries: list[str]) -> None:
    lines = sum(entry.rstrip("\n").count("\n") + 1 for entry in entries)
    told = typed_text(
        written(*entries, lines=lines, commands=len(entries)), TypedLine(commands=len(entries))
    )
    if isinstance(told, str):
        kept = "".join(told.split())
        for entry in entries:
            assert all(word in kept for word in entry.split())


PASTED = b"\x1b[200~one\rtwo\x1b[201~"


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ([b"echo hi\r"], "echo hi"),
        ([b"echo", b" hi", b"\n"], "echo hi"),
        ([PASTED + b"\r"], "one\ntwo"),
        ([b"a " + PASTED + b" z\r", b"more\r"], "a one\ntwo z"),
        ([b"\x1b[200~\x03\x1b[A\x1b[201~\r"], "\x03\x1b[A"),
        ([PASTED], None),
        ([b"echo x\x7fy\r"], None),
        ([b"ec\t\r"], None),
        ([b"\x1b[A\r"], None),
        ([b"\x1b[20", b"0~x\r"], None),
        ([b"\xff\r"], None),
        ([b"x" * (MAX_SPELLED_BYTES + 1), b"\r"], None),
    ],
)
def test_keys_spell_a_line_while_they_are_characters_and_pastes(
    keys: list[bytes], text: str | None
) -> None:
    line = LineKeys()
    line.begin()
    for data in keys:
        line.sent(data)
    assert line.take_text() == text


def test_only_a_line_that_was_empty_before_is_followed() -> None:
    line = LineKeys()
    line.sent(b"half ")
    line.sent(b"a line\r")
    assert line.take_text() is None
    line.begin()
    line.sent(b"next\r")
    line.begin()
    line.sent(b"typed ahead\r")
    assert line.take_text() == "next"
    line.sent(b"more\r")
    assert line.take_text() is None

r"""Keys as they are written on a command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.cli.grammar.keys import keys_of


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("", ""),
        ("ls", "ls"),
        (r"ls\r", "ls\r"),
        (r"\n\t\e[A", "\n\t\x1b[A"),
        (r"\x03", "\x03"),
        (r"\x7F\x7f", "\x7f\x7f"),
        (r"\u00e9\u2028", "é\u2028"),
        (r"\\r", r"\r"),
        (r"\\\r", "\\\r"),
        (r"\x033", "\x033"),
        ("é😀\n", "é😀\n"),
    ],
)
def test_escapes_become_the_keys_they_name(written: str, typed: str) -> None:
    assert keys_of(written) == typed


@pytest.mark.parametrize("written", [r"\q", r"\x", r"\x0", r"\xg0", r"\u12", "\\", "\\\n", r"\E"])
def test_any_other_escape_is_refused_with_those_there_are(written: str) -> None:
    with pytest.raises(ValueError, match=r"is no escape here: use \\r \\n \\t \\e"):
        keys_of(written)


@given(st.text())
def test_any_text_can_be_written(text: str) -> None:
    assert keys_of(text.replace("\\", r"\\")) == text

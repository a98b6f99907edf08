r"""Keys as they are written on a command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.cli.grammar.keys import (
    DEFAULT_DETACH_KEYS,
    DetachKeys,
    keys_of,
    parse_detach_keys,
    shown_keys,
)


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
    with pytest.raises(ValueError, match=r"is not an escape here: use \\r \\n \\t \\e"):
        keys_of(written)


@given(st.text())
def test_any_text_can_be_written(text: str) -> None:
    assert keys_of(text.replace("\\", r"\\")) == text


KEYS = parse_detach_keys(DEFAULT_DETACH_KEYS)


@pytest.mark.parametrize(
    ("text", "keys", "shown"),
    [
        (DEFAULT_DETACH_KEYS, b"\x1cd", "Ctrl-\\ d"),
        ("ctrl-]", b"\x1d", "Ctrl-]"),
        ("ctrl-p,ctrl-q", b"\x10\x11", "Ctrl-P Ctrl-Q"),
        ("CTRL-A,D", b"\x01D", "Ctrl-A D"),
        ("ctrl-@,comma", b"\x00,", "Ctrl-@ ,"),
        ("ctrl-^,.", b"\x1e.", "Ctrl-^ ."),
    ],
)
def test_keys_are_written_with_commas_between(text: str, keys: bytes, shown: str) -> None:
    assert parse_detach_keys(text) == keys
    assert shown_keys(keys) == shown


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a key"),
        ("ctrl-", "is not a key"),
        ("ctrl-ab", "is not a key"),
        ("ctrl-a,", "is not a key"),
        ("ctrl-1", "is not a key"),
        ("ctrl-a,é", "is not a key"),
        ("ctrl-a, ", "is not a key"),
        ("d", "the first key"),
        ("~,ctrl-a", "the first key"),
        (",".join(["ctrl-a"] * 9), "at most 8"),
    ],
)
def test_what_is_no_key_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_detach_keys(text)


CASES = [
    (b"\x1cd", KEYS, b"", True),
    (b"ls\r\x1cd", KEYS, b"ls\r", True),
    (b"ls\r\x1cdrm\r", KEYS, b"ls\r", True),
    (b"d", KEYS, b"d", False),
    (b"\x1c", KEYS, b"", False),
    (b"\x1cx", KEYS, b"\x1cx", False),
    (b"\x1c\x1c", KEYS, b"\x1c", False),
    (b"\x1c\x1cd", KEYS, b"\x1cd", False),
    (b"\x1c\x1c\x1cd", KEYS, b"\x1c", True),
    (b"\x1d", b"\x1d", b"", True),
    (b"a\x01b\x01a\x01b", b"\x01bc", b"a\x01b\x01a", False),
    (b"\x01b\x01bc", b"\x01bc", b"\x01b", True),
    (b"\x01\x01", b"\x01\x01", b"", True),
    (b"\x01x\x01\x01", b"\x01\x01", b"\x01x", True),
]


@pytest.mark.parametrize(("typed", "keys", "passed", "is_detached"), CASES)
def test_the_keys_are_found_among_others(
    typed: bytes, keys: bytes, passed: bytes, is_detached: bool
) -> None:
    assert DetachKeys(keys).feed(typed) == (passed, is_detached)


@pytest.mark.parametrize(("typed", "keys", "passed", "is_detached"), CASES)
def test_the_keys_are_found_one_by_one(
    typed: bytes, keys: bytes, passed: bytes, is_detached: bool
) -> None:
    found, through, ended = DetachKeys(keys), b"", False
    for key in typed:
        some, ended = found.feed(bytes([key]))
        through += some
        if ended:
            break
    assert (through, ended) == (passed, is_detached)

"""What the keys of a line tell about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.line_keys import LineKeys

MAY_BE_EMPTY = {
    "nothing": b"",
    "erased": b"abc\x7f\x7f\x7f",
    "erased too often": b"a\x08\x08\x7f",
    "a space, erased": b" \x7f",
    "killed": b"abc\x15",
    "the word killed": b"abc\x17",
    "an arrow": b"\x1b[D",
    "an arrow in application mode": b"\x1bOA",
    "an old line": b"abc\x1b[A",
    "an undo": b"abc\x1f",
    "beyond ASCII": "é世🙂\x7f\x7f\x7f".encode(),
    "a combining mark, erased with its letter": "\u0301\x7f".encode(),
    "a completion": b"\t",
    "an answer to the question of a completion": b"\t\tn",
    "a paste that was killed": b"\x1b[200~text\x1b[201~\x15",
    "after Enter": b"abc\r",
    "after Ctrl-C in a search": b"\x12abc\x03",
    "a search that was left": b"\x12abc\x07",
    "a quoted character that was killed": b"\x16\x12\x15",
}

IS_NOT = {
    "text": b"abc",
    "text that was corrected": b"abx\x7fc",
    "a cursor in the middle": b"abc\x1b[D",
    "text behind a completion": b"\tyes",
    "a search": b"\x12",
    "a search with text that was erased": b"\x12a\x7f",
    "a search inside of something else": b"\x18\x12\x07",
    "a quoted insert": b"\x16",
    "a quoted Ctrl-G": b"\x16\x07",
    "a quoted insert in a search": b"\x12\x16\x07",
    "an Escape": b"\x1b",
    "an Escape and a command of vi": b"abc\x1bdd",
    "an Escape before a key that ends a search": b"\x1b\xf0\x9f\x99\x82\t\x07",
    "half a character before another": b"\xc3a\x7f",
    "a numeric argument": b"\x1b5",
    "a sequence that is not known": b"\x1b[1;5D",
    "half a sequence": b"\x1b[",
    "half a sequence of the keypad": b"\x1bO",
    "half a character": "世".encode()[:2],
    "half a paste": b"\x1b[200~",
    "half a paste, and what would kill it": b"\x1b[200~abc\x15",
    "the half of its end": b"\x1b[200~abc\x1b[20",
    "an Enter in a paste": b"\x1b[200~abc\r",
    "a prefix": b"\x18",
    "a character search": b"\x1d",
}


def pressed(*writes: bytes) -> LineKeys:
    keys = LineKeys()
    for write in writes:
        keys.sent(write)
    return keys


def utf_8(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


@pytest.mark.parametrize(
    ("keys", "may_be_empty"),
    [
        *(pytest.param(keys, True, id=name) for name, keys in MAY_BE_EMPTY.items()),
        *(pytest.param(keys, False, id=name) for name, keys in IS_NOT.items()),
    ],
)
def test_trap_36_the_editor_is_asked_only_where_it_is_safe_and_may_help(
    keys: bytes, may_be_empty: bool
) -> None:
    assert pressed(keys).may_be_empty is may_be_empty
    one_by_one = pressed(*(bytes([code]) for code in keys))
    assert one_by_one.may_be_empty is may_be_empty


def test_text_of_unknown_origin_may_be_erased_by_the_keys_that_follow() -> None:
    keys = pressed(b"ab")
    keys.is_not_empty()
    assert keys.may_be_empty


@given(st.lists(st.binary(max_size=12)))
def test_any_keys_in_any_pieces_are_taken_and_only_a_little_is_kept(writes: list[bytes]) -> None:
    keys = pressed(*writes)
    keys.sent(b"\r\x1b[201~\r\r")
    assert keys.may_be_empty


KEYS = st.sampled_from([*(bytes([code]) for code in range(32)), b"\x7f", b"[", b"O", b"~"])


@given(st.lists(KEYS | st.binary(max_size=3) | st.text(max_size=2).map(utf_8)).map(b"".join))
def test_keys_are_the_same_however_they_are_cut(data: bytes) -> None:
    one_by_one = pressed(*(bytes([code]) for code in data))
    assert one_by_one.may_be_empty is pressed(data).may_be_empty

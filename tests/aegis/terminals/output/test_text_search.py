"""Looking for a pattern in text that comes in pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import InvalidRequest
from aegis.terminals.output.text_search import (
    KEPT_CHARS,
    MAX_MATCH_CHARS,
    MAX_PIECE_CHARS,
    Found,
    TextSearch,
)


async def found_in(source: str, *pieces: str) -> list[Found | None]:
    search = TextSearch(source)
    return [await search.find(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("source", "pieces", "found"),
    [
        ("done", ["not yet\n", "it is done now"], [None, Found("done", 10)]),
        ("done", ["it is do", "ne"], [None, Found("done", 2)]),
        ("^ok$", ["no\nok", "ay\n", "ok\n"], [Found("ok", 5)]),
        ("^ok$", ["nok\n", "ok\n"], [None, Found("ok", 2)]),
        ("(?i)READY", ["rea", "dy"], [None, Found("ready", 2)]),
        ("é€😀!", ["xé€", "😀!"], [None, Found("é€😀!", 2)]),
        ("a|b", ["c", "d", "xb"], [None, None, Found("b", 2)]),
        ("", [""], [Found("", 0)]),
        (r"\d+ passed", ["= 12", " pass", "ed in 3s"], [None, None, Found("12 passed", 2)]),
    ],
)
async def test_a_match_may_lie_across_pieces(
    source: str, pieces: list[str], found: list[Found | None]
) -> None:
    assert (await found_in(source, *pieces))[: len(found)] == found


@pytest.mark.parametrize("source", ["(", "a{2,1}", "x" * 1_001, "(?=x)", "a)(b"])
def test_what_is_no_pattern_is_refused(source: str) -> None:
    with pytest.raises(InvalidRequest, match="pattern"):
        TextSearch(source)


async def test_a_match_is_not_made_of_texts_with_a_gap_between() -> None:
    search = TextSearch("onetwo")
    assert await search.find("one") is None
    search.forget()
    assert await search.find("two") is None
    assert await search.find("onetwo") == Found("onetwo", 6)


async def test_only_the_end_of_a_long_text_is_kept_and_it_begins_with_a_line() -> None:
    search = TextSearch("^x.*END")
    filler = "y" * 99 + "\n"
    for _ in range(5):
        assert await search.find(filler * (MAX_PIECE_CHARS // 100)) is None
    assert await search.find("x" + "z" * (KEPT_CHARS - 200)) is None
    assert await search.find("END") == Found(("x" + "z" * KEPT_CHARS)[:MAX_MATCH_CHARS], 3)


async def test_a_pattern_that_is_dear_elsewhere_is_searched_in_bounded_time() -> None:
    search = TextSearch(r"(a*)*(a|aa)+b")
    for _ in range(8):
        assert await search.find("a" * MAX_PIECE_CHARS) is None
    assert await search.find("ab") is not None


@given(text=st.text("ab\nx", max_size=200), cuts=st.lists(st.integers(0, 200), max_size=6))
async def test_pieces_find_what_the_whole_text_holds(text: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(bounds)]
    found = await found_in("ab+x", *pieces)
    [whole] = await found_in("ab+x", text)
    first = next((each for each in found if each is not None), None)
    assert (first is None) == (whole is None)
    if first is not None and whole is not None:
        before = sum(len(piece) for piece in pieces[: found.index(first)])
        assert (first.text, before + first.end) == (whole.text, whole.end)

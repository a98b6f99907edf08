"""Patterns of clients: refusals, matches, bounded time, and searches in pieces of text."""

from __future__ import annotations

import re
import threading
from itertools import pairwise
from unittest.mock import patch

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import InvalidRequest
from aegis.protocol.terminals import MAX_PATTERN_CHARS
from aegis.terminals.output.patterns import (
    KEPT_CHARS,
    MAX_MATCH_CHARS,
    MAX_PIECE_CHARS,
    MAX_TEXT_CHARS,
    Pattern,
    PatternMatch,
    TextSearch,
    search,
)

SLOWEST = "(a?){400}a{400}c"
"""About the slowest pattern that is permitted: half a second for a long text."""


@pytest.mark.parametrize(
    ("source", "text", "span"),
    [
        ("pytest", "uv run pytest -q", (7, 13)),
        ("^pytest", "uv run pytest -q", None),
        ("(?m)^FAILED .*", "1 passed\nFAILED x", (9, 17)),
        ("(?i)error|fail(ed|ure)", "Build FAILED", (6, 12)),
        ("é+", "日本éé", (2, 4)),
        ("b", "\ud800b", (1, 2)),
        ("", "anything", (0, 0)),
        ("a\0b", "xa\0b", (1, 4)),
        ("x", "a" * MAX_TEXT_CHARS + "x", None),
        ("x", "a" * (MAX_TEXT_CHARS - 1) + "x", (MAX_TEXT_CHARS - 1, MAX_TEXT_CHARS)),
    ],
)
def test_a_search_gives_the_leftmost_match_in_characters(
    source: str, text: str, span: tuple[int, int] | None
) -> None:
    assert Pattern(source).search(text) == span


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("(", r"^pattern is not a regular expression that RE2 reads: missing \): \($"),
        ("(?=x)", r"RE2 reads: invalid perl operator: \(\?=$"),
        (r"(a)\1", "RE2 reads: invalid escape sequence"),
        ("x" * (MAX_PATTERN_CHARS + 1), "^pattern is 1001 characters long: use at most 1000$"),
        (r"\pL{300}", r"^pattern is too large: use smaller counts"),
        (r"\pL{20}", r"^pattern is too large: use smaller counts"),
        ("\ud800", r"^pattern holds U\+D800, half of a surrogate pair"),
    ],
)
def test_a_bad_pattern_is_refused_with_one_sentence(source: str, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence) as caught:
        Pattern(source)
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


def test_a_pattern_as_long_as_permitted_is_read() -> None:
    assert Pattern("x" * MAX_PATTERN_CHARS).search("x" * MAX_PATTERN_CHARS) == (0, 1000)


def test_patterns_are_values() -> None:
    assert Pattern("a") == Pattern("a")
    assert Pattern("a") != Pattern("b")


@pytest.mark.parametrize(
    "source", ["(a+)+$", "(a|a)*b", "(.*)(.*)(.*)(.*)(.*)x", "(a+a+)+y", "((a*)*)*b"]
)
def test_what_ruins_other_engines_is_only_a_search(source: str) -> None:
    # An engine that goes back in the text would not come to an end of these.
    assert Pattern(source).search("a" * (MAX_TEXT_CHARS - 1) + "!") is None


def test_a_short_text_is_searched_quickly_and_a_long_one_may_not_be() -> None:
    assert Pattern(SLOWEST).is_quick("pytest -q")
    assert not Pattern(SLOWEST).is_quick("a" * 1_000)
    assert Pattern("pytest").is_quick("a" * 20_000)
    assert not Pattern("pytest").is_quick("é" * 20_000)


async def test_a_quick_search_stays_where_it_is() -> None:
    with patch.object(trio.to_thread, "run_sync", side_effect=AssertionError("a thread")):
        assert await search(Pattern("pytest"), "uv run pytest") == (7, 13)


async def test_the_loop_runs_on_during_a_slow_search() -> None:
    turns = 0
    done = trio.Event()

    async def search_slowly() -> None:
        assert await search(Pattern(SLOWEST), "a" * MAX_TEXT_CHARS) is None
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(search_slowly)
        while not done.is_set():
            turns += 1
            await trio.sleep(0.001)
    assert turns > 3


async def test_a_slow_search_that_is_cancelled_holds_up_nobody() -> None:
    entered, go_on = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def blocked(*_: object) -> None:
        token.run_sync_soon(entered.set)
        go_on.wait()

    with patch.object(Pattern, "search", blocked):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(search, Pattern(SLOWEST), "a" * MAX_TEXT_CHARS)
            await entered.wait()
            nursery.cancel_scope.cancel()
    go_on.set()


@given(st.text(alphabet="ab.日\n", max_size=40), st.text(alphabet="ab日", min_size=1, max_size=4))
def test_plain_words_are_found_where_python_finds_them(text: str, word: str) -> None:
    found = re.search(re.escape(word), text)
    assert Pattern(re.escape(word)).search(text) == (None if found is None else found.span())


async def found_in(source: str, *pieces: str) -> list[PatternMatch | None]:
    search = TextSearch(source)
    return [await search.find(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("source", "pieces", "found"),
    [
        ("done", ["not yet\n", "it is done now"], [None, PatternMatch("done", 10)]),
        ("done", ["it is do", "ne"], [None, PatternMatch("done", 2)]),
        ("^ok$", ["no\nok", "ay\n", "ok\n"], [PatternMatch("ok", 5)]),
        ("^ok$", ["nok\n", "ok\n"], [None, PatternMatch("ok", 2)]),
        ("(?i)READY", ["rea", "dy"], [None, PatternMatch("ready", 2)]),
        ("é€😀!", ["xé€", "😀!"], [None, PatternMatch("é€😀!", 2)]),
        ("a|b", ["c", "d", "xb"], [None, None, PatternMatch("b", 2)]),
        ("", [""], [PatternMatch("", 0)]),
        (r"\d+ passed", ["= 12", " pass", "ed in 3s"], [None, None, PatternMatch("12 passed", 2)]),
    ],
)
async def test_a_match_may_lie_across_pieces(
    source: str, pieces: list[str], found: list[PatternMatch | None]
) -> None:
    assert (await found_in(source, *pieces))[: len(found)] == found


@pytest.mark.parametrize("source", ["(", "a{2,1}", "x" * 1_001, "(?=x)", "a)(b"])
def test_what_is_no_pattern_is_refused(source: str) -> None:
    with pytest.raises(InvalidRequest, match="pattern"):
        TextSearch(source)


async def test_a_match_is_not_made_of_texts_with_a_gap_between() -> None:
    search = TextSearch("onetwo")
    assert await search.find("one") is None
    search.reset()
    assert await search.find("two") is None
    assert await search.find("onetwo") == PatternMatch("onetwo", 6)


async def test_only_the_end_of_a_long_text_is_kept_and_it_begins_with_a_line() -> None:
    search = TextSearch("^x.*END")
    filler = "y" * 99 + "\n"
    for _ in range(5):
        assert await search.find(filler * (MAX_PIECE_CHARS // 100)) is None
    assert await search.find("x" + "z" * (KEPT_CHARS - 200)) is None
    assert await search.find("END") == PatternMatch(("x" + "z" * KEPT_CHARS)[:MAX_MATCH_CHARS], 3)


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

"""Patterns of clients: what is refused, what is found, and that no search takes long."""

from __future__ import annotations

import re
import threading
from unittest.mock import patch

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import InvalidRequest
from aegis.protocol.terminals import MAX_PATTERN_CHARS
from aegis.terminals.output.patterns import MAX_TEXT_CHARS, Pattern
from aegis.terminals.output.searching import search

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

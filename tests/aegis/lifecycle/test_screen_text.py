"""Changes of the text on the screen, and repaints that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.lifecycle.screen_text import MAX_VERSIONS, Change, ScreenText


def changes(*screens: str | list[str]) -> list[Change]:
    """Return the changes by the screens after the first one."""
    text = ScreenText()
    found = [text.update([screen] if isinstance(screen, str) else screen) for screen in screens]
    return found[1:]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("● Bash(touch x.txt)", "  Bash(touch x.txt)"),  # the dot of Claude Code
        ("  Bash(touch x.txt)", "● Bash(touch x.txt)"),
        ("⏺ Bash(touch x.txt)", "○ Bash(touch x.txt)"),
        ("⠋ Thinking", "⠙ Thinking"),
        ("◐ Thinking", "◑ Thinking"),
        ("✻ Crunching…", "✽ Crunching…"),
        ("· Crunching…", "✢ Crunching…"),
        ("wait |", "wait /"),
        ("wait /", "wait -"),
        ("wait -", "wait \\"),
        ("⠋", ""),
        ("text", "text   "),
    ],
)
def test_a_blink_or_a_turn_is_no_change(before: str, after: str) -> None:
    assert changes(before, after) == ["none"]


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "a"), ("a", "ab"), ("tests ..", "tests ..."), ("---", "----"), ("⠋", "⠋ a")],
)
def test_text_that_grows_is_a_change(before: str, after: str) -> None:
    assert changes(before, after) == ["text"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("✻ Crunching… (1s)", "✻ Crunching… (2s)"),
        ("[====>    ]", "[=====>   ]"),
        ("████░░", "█████░"),
        ("> 1. Yes", "  1. Yes"),
        ("ctrl-j: newline | /feedback: send", "/feedback: send"),  # a tip of Kimi
        ("12:59", "13:00"),
    ],
)
def test_one_row_that_is_rewritten_is_a_small_change(before: str, after: str) -> None:
    assert changes(before, after) == ["small"]
    assert changes([before, "x"], [after, "x"]) == ["small"]
    assert changes([before, before], [after, after]) == ["text"]


def test_a_word_that_blinks_is_no_change_from_its_first_return_on() -> None:
    assert changes("", "PRESS A KEY", "", "PRESS A KEY", "", "PRESS A KEY") == [
        *("text", "none", "none", "none", "none"),
    ]


def test_a_word_that_blinks_while_other_cells_blink_faster_is_no_change() -> None:
    fast = [*("● x", "  x") * 3]
    slow = [["HELLO", each] for each in fast] + [["", each] for each in fast]
    assert set(changes(["", ""], *slow, *slow)[1:]) == {"none"}


def test_a_row_that_clears_after_many_texts_is_no_change() -> None:
    texts = [f"step {number}" for number in range(2 * MAX_VERSIONS)]
    assert changes("", *texts, "")[-1] == "none"


@pytest.mark.parametrize(
    "cycle",
    [
        ["⠋ Wait", "⠙ Wait", "⠹ Wait", "⠸ Wait", "⠼ Wait"],
        ["Wait |", "Wait /", "Wait -", "Wait \\"],
        ["Wait", "Wait.", "Wait..", "Wait..."],
        ["◐", "◓", "◑", "◒"],
    ],
)
def test_a_glyph_with_more_than_two_states_turns(cycle: list[str]) -> None:
    assert set(changes("", *cycle, *cycle, *cycle)[len(cycle) + 1 :]) == {"turn"}
    text = ScreenText()
    seen = [text.update([each], reads_keys=True) for each in cycle * 3]
    assert set(seen[len(cycle) + 1 :]) == {"none"}


@pytest.mark.parametrize(
    "cycle",
    [
        ["● Wait", "  Wait"],
        ["⏺ Wait", "○ Wait"],
        ["⠋ Wait", "⠙ Wait"],
        ["one tip of three", "another tip", "the last of the tips"],
    ],
)
def test_a_blink_and_tips_that_replace_each_other_turn_nothing(cycle: list[str]) -> None:
    assert set(changes("", *cycle, *cycle, *cycle)[len(cycle) + 1 :]) == {"none"}


def test_a_cycle_of_many_texts_stays_a_change() -> None:
    cycle = [f"step {number}" for number in range(MAX_VERSIONS + 1)]
    assert changes("", *cycle, *cycle) == ["text", *["small"] * (2 * len(cycle) - 1)]


def test_each_row_has_its_own_texts() -> None:
    assert changes(["a", "b"], ["a", "a"], ["b", "b"], ["a", "b"]) == ["small", "small", "none"]


def test_a_screen_that_clears_has_no_new_text() -> None:
    assert changes(["a", "b"], ["", ""]) == ["none"]


def test_scrolled_text_is_a_change() -> None:
    assert changes(["1", "2", "3"], ["2", "3", "4"]) == ["text"]


def test_a_screen_may_change_its_rows() -> None:
    assert changes(["a"], ["a", "b"], ["a"], ["a", "b"]) == ["text", "none", "text"]


@given(st.lists(st.lists(st.text(max_size=5), max_size=3), max_size=20))
def test_the_same_screen_again_is_never_a_change(screens: list[list[str]]) -> None:
    text = ScreenText()
    for rows in screens:
        text.update(rows)
        assert text.update(rows) == "none"


def test_the_memory_is_bounded_by_the_rows() -> None:
    text = ScreenText()
    for number in range(500):
        text.update([f"{number} {row}" for row in range(50)])
    assert sum(map(len, text._versions)) == 50 * MAX_VERSIONS
    text.update(["x"])
    assert len(text._versions) == 1

"""Text of agents is shown so that nothing in it is hidden, and nothing acts."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.cli.printing.formatting import escaped, escaped_line
from aegis.shown_text import escape_document, escape_line, escape_text, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -l ~/src", "ls -l ~/src"),
        ("naïve 日本語\u3000テスト 👍", "naïve 日本語\u3000テスト 👍"),
        ("\x1b[31mred", "<U+001B>[31mred"),
        ("a\rb\x08\x7f\x9b", "a<U+000D>b<U+0008><U+007F><U+009B>"),
        ("rm\u00a0x", "rm<U+00A0>x"),
        ("\u202eevil\u2066\u200b\ufeff", "<U+202E>evil<U+2066><U+200B><U+FEFF>"),
        ("a\U000e0041\ufe01", "a<U+E0041><U+FE01>"),
        ("\u3164\u2800", "<U+3164><U+2800>"),
        ("\ud800", "<U+D800>"),
        ("a\u200bb\U000e0101", "a<U+200B>b<U+E0101>"),
        # What belongs to an emoji is hidden where there is none.
        ("a\ufe0f1\ufe0f\u200d", "a<U+FE0F>1<U+FE0F><U+200D>"),
        ("👍\ufe0f\ufe0f", "👍\ufe0f<U+FE0F>"),
        ("👍\u200da", "👍<U+200D>a"),
        ("👍\U000e0067\U000e007f", "👍<U+E0067><U+E007F>"),
        ("🏴\U000e0067\U000e0062\U000e007f", "🏴<U+E0067><U+E0062><U+E007F>"),
    ],
)
def test_what_is_not_visible_is_shown_by_its_number(text: str, shown: str) -> None:
    assert escape_text(text) == escape_line(text) == shown


EMOJI = (
    *("❤\ufe0f", "⚠\ufe0f", "1\ufe0f\u20e3", "👍🏽", "🇩🇪", "☎\ufe0e", "🫨"),
    *(
        "👨\u200d👩\u200d👧",
        "❤\ufe0f\u200d🔥",
        "👩🏽\u200d⚕\ufe0f",
        "🏳\ufe0f\u200d🌈",
        "🏴\u200d☠\ufe0f",
    ),
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
)


@pytest.mark.parametrize("emoji", EMOJI)
def test_an_emoji_is_shown_as_it_is_by_every_face(emoji: str) -> None:
    text = f"done {emoji} and {emoji}{emoji}"
    assert escape_text(text) == escape_line(text) == escaped(text) == escaped_line(text) == text


def test_the_command_line_decides_the_same_in_its_own_notation() -> None:
    assert escaped("a\u200b\U000e0101\ufe0f\U000e0041") == r"a\u200b\U000e0101\ufe0f\U000e0041"


def test_line_ends_and_tabs_are_kept_in_texts_and_escaped_in_lines() -> None:
    assert escape_text("a\n\tb") == "a\n\tb"
    assert escape_line("a\n\tb\u2028") == "a<U+000A><U+0009>b<U+2028>"


@given(st.text(alphabet=st.characters()))
def test_no_character_is_removed_and_none_is_left_that_acts(text: str) -> None:
    shown = escape_line(text)
    assert len(shown) >= len(text)
    shown.encode()
    newer = re.compile("[\U0001f000-\U0001faff]")  # emoji that Python's tables do not know yet
    kept = {unicodedata.category(each) for each in newer.sub("", shown) if each not in " \u3000"}
    assert not kept & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}


def test_documents_are_escaped_with_their_keys() -> None:
    document = {"a\u202e": ["\x1b", 1, None, True, 1.5, {"b": "\u200b"}]}
    assert escape_document(document) == {
        "a<U+202E>": ["<U+001B>", 1, None, True, 1.5, {"b": "<U+200B>"}]
    }


def test_two_keys_never_become_one() -> None:
    document = {"a\u202e": 1, "a<U+202E>": 2, "a<U+202E> (2)": 3}
    assert sorted(escape_document(document).values()) == [1, 2, 3]


def test_numbers_that_readers_of_json_round_are_shown_as_text() -> None:
    assert escape_document([2**53 - 1, 2**53, -(2**60)]) == [
        *(2**53 - 1, "9007199254740992", "-1152921504606846976")
    ]


def test_a_long_text_ends_with_an_ellipsis() -> None:
    assert (shortened("abc", 3), shortened("abcd", 3)) == ("abc", "ab…")

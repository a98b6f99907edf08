"""Replies as one text, texts that must fit, and the order to members."""

from __future__ import annotations

import json

import pytest

from aegis.groups.members import BEGINNING, brief
from aegis.groups.views import fitted, reduced
from aegis.protocol.groups import BroadcastToGroup, Reducer


def said(*texts: str) -> dict[str, str]:
    return dict(zip("cab", texts, strict=False))


@pytest.mark.parametrize(
    ("reducer", "texts", "text"),
    [
        ("concat", ("x", "y"), "x\n\ny"),
        ("join_by_handle", ("x", "y", "z"), "a:\ny\n\nb:\nz\n\nc:\nx"),
        ("last_wins", ("x", "y"), "y"),
        ("majority_vote", ("yes", "no", "no"), "no"),
        ("majority_vote", ("yes", "no"), "yes"),
        ("majority_vote", ("no", "Yes\n", " yes"), "Yes\n"),
        ("majority_vote", ("yes",), "yes"),
        ("concat", (), None),
        ("majority_vote", (), None),
    ],
)
def test_replies_become_one_text(
    reducer: Reducer, texts: tuple[str, ...], text: str | None
) -> None:
    assert reduced(reducer, said(*texts)) == text


def test_texts_that_fit_stay_whole_and_only_the_longest_are_cut() -> None:
    texts = {"a": "x" * 10, "b": "y" * 500, "c": "z" * 500}
    assert fitted(texts, 2_000) == texts
    cut = fitted(texts, 600)
    assert cut["a"] == texts["a"]
    assert len(cut["b"]) == len(cut["c"]) > 250
    assert sum(len(json.dumps(each)) for each in cut.values()) <= 600


def test_a_cut_text_is_as_long_as_fits() -> None:
    assert fitted({"a": "x" * 500}, 100) == {"a": "x" * 98}
    assert fitted({"a": "é" * 500}, 101) == {"a": "é" * 49}


@pytest.mark.parametrize("letter", ["x", '"', "\x00", "é", "\U0001f600", "\n"])
def test_cut_texts_are_measured_as_they_are_sent(letter: str) -> None:
    cut = fitted({"a": letter * 1_000, "b": letter}, 300)
    sizes = [len(json.dumps(each, ensure_ascii=False).encode()) for each in cut.values()]
    assert 280 < sum(sizes) <= 300
    assert cut["b"] == letter


def test_a_brief_has_the_parts_that_were_given() -> None:
    request = BroadcastToGroup(group="g", objective=" find it\n", boundaries="no writes")
    assert brief(request) == (f"{BEGINNING}\n\nObjective:\nfind it\n\nBoundaries:\nno writes")

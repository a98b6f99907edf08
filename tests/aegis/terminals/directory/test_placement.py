"""Which place takes a new terminal, and what is said where none does."""

from __future__ import annotations

import pytest

from aegis.errors import NotFound
from aegis.protocol.naming import LOCAL_NODE
from aegis.terminals.directory.placement import CandidateNode, NoPlace, choose_place


def places(*words: str) -> list[CandidateNode]:
    """``w1:3`` has three terminals; ``w1:3!`` is down; ``local:0?`` takes what asks for it."""
    found = []
    for word in words:
        name, _, number = word.partition(":")
        found.append(
            CandidateNode(
                name=name,
                is_up="!" not in number,
                terminals=int(number.strip("!?")),
                by_name="?" in number,
            )
        )
    return found


@pytest.mark.parametrize(
    ("there", "wanted", "chosen"),
    [
        (places("local:7"), None, LOCAL_NODE),
        (places("local:7"), "local", LOCAL_NODE),
        (places("local:0?", "w1:2", "w2:1"), None, "w2"),
        (places("local:0?", "w1:1", "w2:1"), None, "w1"),
        (places("local:0?", "w10:1", "w2:1"), None, "w2"),
        (places("w2:1", "w1:1", "local:0?"), None, "w1"),
        (places("local:0?", "w1:0!", "w2:9"), None, "w2"),
        (places("local:0?", "w1:0", "w2:9"), "w2", "w2"),
        (places("local:0?", "w1:0", "w2:9"), "W2", "w2"),
        (places("local:3?", "w1:0"), "local", LOCAL_NODE),
        (places("local:3?", "w1:0!"), "Local", LOCAL_NODE),
    ],
)
def test_the_least_loaded_place_that_is_up_takes_it_unless_one_is_wanted(
    there: list[CandidateNode], wanted: str | None, chosen: str
) -> None:
    assert choose_place(there, wanted) == chosen


@pytest.mark.parametrize(
    ("there", "wanted", "sentence"),
    [
        (
            places("local:0?", "w1:0!", "w2:0!"),
            None,
            "no worker is up right now; try again in a moment",
        ),
        (
            places("local:0?", "w1:0!", "w2:0"),
            "w1",
            "node 'w1' is down right now; try again in a moment, or leave node out",
        ),
    ],
)
def test_where_every_place_is_down_or_the_one_wanted_it_says_so(
    there: list[CandidateNode], wanted: str | None, sentence: str
) -> None:
    with pytest.raises(NoPlace) as refused:
        choose_place(there, wanted)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("w3", "there are local, w1, w2"),
        ("locale", "did you mean 'local'?"),
        ("elsewhere-entirely", "there are local, w1, w2"),
        ("x" * 500, "there are local, w1, w2"),
    ],
)
def test_a_node_that_there_is_not_is_refused_with_those_that_there_are(
    wanted: str, hint: str
) -> None:
    with pytest.raises(NotFound) as refused:
        choose_place(places("local:0?", "w1:0", "w2:0"), wanted)
    sentence = str(refused.value)
    assert sentence.startswith("aegis_term_spawn: there is no node ")
    assert sentence.endswith(f"; {hint}")
    assert len(sentence) < 250

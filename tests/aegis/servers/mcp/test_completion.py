"""Which names are offered for what is written already."""

from __future__ import annotations

import pytest

from aegis.servers.mcp.resources import MAX_VALUES, fitting

NAMES = ["build", "Bench", "web", "b.1"]


@pytest.mark.parametrize(
    ("beginning", "found"),
    [
        ("", NAMES),
        ("b", ["build", "Bench", "b.1"]),
        ("BE", ["Bench"]),
        ("web", ["web"]),
        ("webs", []),
        ("uild", []),
    ],
)
def test_names_that_begin_so_ignoring_case_in_their_order(beginning: str, found: list[str]) -> None:
    completion = fitting(NAMES, beginning)
    assert (completion.values, completion.total) == (found, len(found))
    assert completion.has_more is False


def test_an_answer_holds_a_hundred_and_says_that_there_are_more() -> None:
    completion = fitting([f"t{number}" for number in range(MAX_VALUES + 1)], "t")
    assert len(completion.values) == MAX_VALUES
    assert (completion.total, completion.has_more) == (MAX_VALUES + 1, True)

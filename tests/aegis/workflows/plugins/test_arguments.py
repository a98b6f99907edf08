"""The check of arguments against the types of parameters."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from aegis.workflows.child.describing import Undescribed, type_of
from aegis.workflows.plugins.arguments import WorkflowParameter, fits, name_of, problem_with


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (str, ["", "x"], [1, None, []]),
        (int, [0, -1], [True, 1.0, "1"]),
        (float, [0, 1.5], [True, "1"]),
        (bool, [True], [0, "true"]),
        (None, [None], [0]),
        (Any, [1, None, {"a": []}], []),
        (list, [[], [1, "x"]], [{}, "x"]),
        (list[int], [[], [1]], [["x"], [True], "x"]),
        (dict[str, bool], [{}, {"a": True}], [{"a": 1}, []]),
        (Literal["a", 1], ["a", 1], [True, "b"]),
        (int | None, [None, 3], ["x", 1.5]),
        (list[dict[str, int | str]], [[{"a": 1, "b": "c"}]], [[{"a": None}], [1]]),
    ],
)
def test_a_value_fits_its_annotation_or_not(hint: Any, good: list[Any], bad: list[Any]) -> None:
    kind = type_of(hint)
    assert [each for each in good if not fits(kind, each)] == []
    assert [each for each in bad if fits(kind, each)] == []
    assert name_of(kind)


@pytest.mark.parametrize("hint", [set, bytes, tuple[int], dict[int, str], list[set[int]], object()])
def test_an_annotation_that_json_does_not_have_is_refused(hint: Any) -> None:
    with pytest.raises(Undescribed, match="cannot be checked: use str, int"):
        type_of(hint)


PARAMETERS = [
    WorkflowParameter(name="version", type="text", shown="str", required=True),
    WorkflowParameter(name="count", type="whole number", shown="int", required=False),
]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"version": "1"}, None),
        ({"version": "1", "count": 2}, None),
        ({}, "the argument 'version' is missing: a text"),
        ({"version": 1}, "the argument 'version' must be a text, not 1"),
        ({"version": "1", "conut": 2}, "there is no argument 'conut'; did you mean 'count'?"),
        ({"version": "1", "x": 2}, "there is no argument 'x'; it takes version, count"),
    ],
)
def test_a_problem_is_one_sentence_that_names_the_argument(
    given: dict[str, Any], problem: str | None
) -> None:
    assert problem_with(PARAMETERS, given) == problem


def test_a_workflow_without_parameters_says_so() -> None:
    assert problem_with([], {"x": 1}) == "there is no argument 'x'; it takes none"

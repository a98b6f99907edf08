from __future__ import annotations

import pytest

from actors.errors import ActorCrashed, AskDeadline, Refusal
from aegis.errors import Busy, Forbidden, NotFound
from aegis.protocol.table import COMMANDS
from aegis.servers.calls import (
    MAX_SENTENCE_CHARS,
    OPERATOR,
    Failure,
    Identity,
    failure_of,
    find_entry,
    find_tool,
    one_sentence,
    visible,
)

ALICE = Identity(handle="alice", operator=False)


def test_the_operator_sees_every_command_and_a_handle_those_for_all() -> None:
    assert visible(OPERATOR) == COMMANDS
    assert visible(ALICE) == tuple(entry for entry in COMMANDS if not entry.operator)
    assert len(visible(ALICE)) < len(COMMANDS)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_a_command_is_found_by_its_name_and_by_its_tool(entry: object) -> None:
    name, tool = entry.name, entry.tool  # type: ignore[attr-defined]
    assert find_entry(OPERATOR, name) is entry
    assert find_tool(OPERATOR, tool) is entry


def test_a_handle_may_not_use_what_is_the_operators() -> None:
    with pytest.raises(Forbidden, match="for the operator only"):
        find_entry(ALICE, "down")
    with pytest.raises(Forbidden, match="'alice'"):
        find_tool(ALICE, "aegis_down")


def test_an_unknown_command_is_told_with_the_nearest() -> None:
    with pytest.raises(NotFound, match="did you mean 'term_run'"):
        find_entry(OPERATOR, "term_rnu")
    with pytest.raises(NotFound, match="did you mean 'aegis_term_run'"):
        find_tool(OPERATOR, "aegis_term_rum")


def test_the_nearest_is_never_one_that_the_caller_may_not_use() -> None:
    with pytest.raises(NotFound) as caught:
        find_entry(ALICE, "session_nwe")
    assert "session_new" not in str(caught.value)


def test_what_resembles_nothing_is_told_with_all_there_are() -> None:
    with pytest.raises(NotFound, match="there are term_spawn, term_list"):
        find_entry(ALICE, "%%%")


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Busy("held by bob"), Failure("busy", "held by bob")),
        (Refusal("no"), Failure("error", "no")),
        (AskDeadline("too late"), Failure("unavailable", "too late")),
        (ActorCrashed("it died"), Failure("unavailable", "it died")),
        (RuntimeError("a bug"), None),
    ],
)
def test_every_refusal_has_a_code_and_a_bug_has_none(
    error: Exception, failure: Failure | None
) -> None:
    assert failure_of(error) == failure


def test_a_sentence_is_one_line_of_bounded_length_that_can_be_sent() -> None:
    assert one_sentence("a\n  b\tc") == "a b c"
    assert len(one_sentence("x" * 10_000)) == MAX_SENTENCE_CHARS
    one_sentence("\ud800").encode()

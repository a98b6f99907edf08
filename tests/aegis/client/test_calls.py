"""Typed arguments on their way out, typed replies on their way in."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from aegis.client.blocking.session import BlockingSession
from aegis.client.calls import (
    FIRST_DELAY_S,
    MAX_DELAY_S,
    MAX_TRIES,
    SETTLED_S,
    arguments_of,
    checked_patience,
    delay_s,
    failures_after,
    is_repeated,
    lost,
    refusal,
    reply_of,
)
from aegis.client.errors import CommandFailed, ProtocolMismatch
from aegis.protocol.command import Command
from aegis.protocol.entry import Entry
from aegis.protocol.inboxes import ReadInbox
from aegis.protocol.table import BY_NAME, COMMANDS
from aegis.protocol.terminals import (
    Done,
    ListTerminals,
    ReadRecords,
    RecordList,
    RunCommand,
    SendKeys,
    SpawnTerminal,
    TerminalList,
)


@pytest.mark.parametrize(
    ("command", "given", "handle", "sent"),
    [
        (ListTerminals, {}, None, {}),
        (ListTerminals, {}, "ann", {"from_handle": "ann"}),
        # The daemon's configuration may say otherwise than the class: what is given is sent.
        (RunCommand, {"name": "b", "cmd": "x", "timeout": None}, None, {"name": "b", "cmd": "x"}),
        (
            RunCommand,
            {"name": "b", "cmd": "x", "timeout": 50.0},
            None,
            {"name": "b", "cmd": "x", "timeout": 50.0},
        ),
        (
            RunCommand,
            {"name": "b", "cmd": "x", "timeout": 5},
            None,
            {"name": "b", "cmd": "x", "timeout": 5},
        ),
        (SpawnTerminal, {"name": "b", "env": None, "cols": None}, None, {"name": "b"}),
        (SpawnTerminal, {"name": "b", "cols": 80}, None, {"name": "b", "cols": 80}),
        (SpawnTerminal, {"name": "b", "stderr": "merged"}, None, {"name": "b"}),
        (SpawnTerminal, {"name": "b", "env": {}}, None, {"name": "b", "env": {}}),
        (ReadInbox, {"after": None, "unread": False, "limit": 50}, None, {"unread": False}),
    ],
)
def test_only_what_differs_from_the_default_is_sent(
    command: type[Command[Any]], given: dict[str, object], handle: str | None, sent: object
) -> None:
    assert arguments_of(command, given, handle) == sent


@pytest.mark.parametrize(
    ("command", "given", "sentence"),
    [
        (RunCommand, {"name": "b", "cmd": 5}, "cmd must be text, not 5"),
        (RunCommand, {"name": "b", "cmd": "\udcff"}, "lone surrogates"),
        (RunCommand, {"name": "b", "cmd": "x", "timeout": float("inf")}, "timeout"),
        (RunCommand, {"name": "b", "cmd": "x", "timeout": "5"}, "timeout must be a number"),
        (RunCommand, {"name": "a b", "cmd": "x"}, "name must be 1 to 64"),
        (SendKeys, {"name": "b", "keys": b"x"}, "keys must be text"),
        (ReadRecords, {"name": "b", "last_n": 1, "since_seq": 1}, "not both"),
        (SpawnTerminal, {"name": "b", "cols": True}, "cols must be a whole number"),
    ],
)
def test_a_mistake_is_told_as_the_daemon_would(
    command: type[Command[Any]], given: dict[str, object], sentence: str
) -> None:
    with pytest.raises(CommandFailed, match=sentence) as caught:
        arguments_of(command, given, None)
    assert caught.value.code == "invalid_request"
    assert "aegis_" not in str(caught.value)


def test_the_name_of_the_tool_is_left_out_of_a_sentence() -> None:
    error = refusal(BY_NAME["workspace_list"], "busy", "workspace_list: try again")
    assert (error.code, str(error)) == ("busy", "try again")


def test_a_reply_is_an_object_of_its_class() -> None:
    assert reply_of(SendKeys, {"ok": True}) == Done()
    assert reply_of(ListTerminals, {"result": []}) == TerminalList(result=[])
    assert reply_of(ReadRecords, {"result": []}) == RecordList(result=[], more=False)


@pytest.mark.parametrize(
    "result", [None, [], {}, {"result": None}, {"result": [], "extra": 1}, {"result": [{}]}]
)
def test_a_reply_of_another_form_is_refused(result: object) -> None:
    with pytest.raises(ProtocolMismatch, match="the answer to term_list does not fit"):
        reply_of(ListTerminals, result)


@pytest.mark.parametrize(
    ("failures", "whole"),
    [
        (1, FIRST_DELAY_S),
        (2, 2 * FIRST_DELAY_S),
        (4, 8 * FIRST_DELAY_S),
        (6, 32 * FIRST_DELAY_S),
        (7, MAX_DELAY_S),
        (100_000, MAX_DELAY_S),
    ],
)
def test_a_delay_doubles_up_to_a_bound_and_its_upper_half_is_chance(
    failures: int, whole: float
) -> None:
    assert delay_s(failures, 0.0) == whole / 2
    assert delay_s(failures, 0.5) == whole * 0.75
    assert delay_s(failures, 1.0) == whole


@pytest.mark.parametrize(
    ("failures", "lasted_s", "after"),
    [(0, 0.0, 1), (3, 0.1, 4), (3, SETTLED_S, 1), (3, SETTLED_S - 0.001, 4), (0, 3600.0, 1)],
)
def test_a_connection_that_lasted_ends_the_row_of_failures(
    failures: int, lasted_s: float, after: int
) -> None:
    assert failures_after(failures, lasted_s) == after


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_only_what_reads_is_asked_again_once_it_was_sent(entry: Entry) -> None:
    for tries in range(1, MAX_TRIES):
        assert is_repeated(entry, tries, was_sent=True) is entry.read_only


def test_what_reads_is_not_asked_again_for_ever() -> None:
    assert not is_repeated(BY_NAME["term_list"], MAX_TRIES, was_sent=True)


@pytest.mark.parametrize("tries", [1, MAX_TRIES, 50])
def test_what_never_left_is_sent_with_the_next_connection(tries: int) -> None:
    assert is_repeated(BY_NAME["term_run"], tries, was_sent=False)


@pytest.mark.parametrize(
    ("command", "may_repeat", "advice"),
    [
        ("term_run", False, "check its effect before you call again"),
        ("term_keys", False, "check its effect before you call again"),
        ("term_subscribe", True, "calling again does no harm"),
        ("term_list", True, "calling again does no harm"),
    ],
)
def test_a_lost_call_says_whether_it_may_be_made_again(
    command: str, may_repeat: bool, advice: str
) -> None:
    error = lost(BY_NAME[command], "the daemon closed it")
    assert (error.command, error.maybe_done, error.may_repeat) == (command, True, may_repeat)
    assert str(error) == (
        f"the connection was lost during {command} (the daemon closed it): "
        f"it may have been carried out; {advice}"
    )


@pytest.mark.parametrize("patience_s", [math.nan, -1.0, -math.inf])
def test_a_patience_that_is_no_time_is_refused(patience_s: float) -> None:
    with pytest.raises(ValueError, match="patience_s must be 0 or more seconds"):
        checked_patience(patience_s)
    with pytest.raises(ValueError, match="patience_s must be 0 or more seconds"):
        BlockingSession(Path("/"), handle=None, patience_s=patience_s)


def test_a_patience_may_be_without_end() -> None:
    assert checked_patience(math.inf) == math.inf

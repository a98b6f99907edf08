"""Typed arguments on their way out, typed replies on their way in."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.client.calling import arguments_of, refusal, reply_of
from aegis.client.errors import CommandFailed, ProtocolMismatch
from aegis.protocol.command import Command
from aegis.protocol.inboxes import ReadInbox
from aegis.protocol.table import BY_NAME
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

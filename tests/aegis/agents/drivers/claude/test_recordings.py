"""Every recording of Claude Code, played through the machine frame by frame."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aegis.agents.drivers.harness import Write
from aegis.protocol.agent_events import (
    RequestOpened,
    RequestWithdrawn,
    Result,
    ToolResult,
    ToolUse,
)
from tests.aegis.agents.drivers.claude.playback import NAMES, Player

IMPORTANT: Mapping[str, str] = {
    "ask_user": (
        "ready; use 1 AskUserQuestion; asks question AskUserQuestion; answered success; "
        "done 1; result 1 ok; idle; use 2 AskUserQuestion; asks question AskUserQuestion; "
        "answered success; failed 2; result 15 ok; idle"
    ),
    "await_initialize": (
        "ready; use 1 term_list; failed 1; result 1 ok; idle; use 2 Bash; asks permission "
        "Bash; answered success; done 2; result 11 ok; idle"
    ),
    "background": (
        "ready; use 1 Bash; tasks 1; tasks 1 of 1; done 1; result 1 ok; idle; tasks 0; result "
        "task-notification ok; idle"
    ),
    "elicitation": (
        "ready; use 1 ask_form; asks elicitation elicit; answered success; done 1; use 2 "
        "ask_url; asks elicitation elicit; answered success; done 2; result 1 ok; idle; "
        "use 3 ask_form; asks elicitation elicit; withdrawn: the agent withdrew it; "
        "failed 3; user; result 19 aborted_tools; cancelled 19; idle"
    ),
    "eof_mid_turn": ("ready 1; result 2 ok; idle; result 9 ok; idle"),
    "error_400": (
        "ready; result 1 api_error; cancelled 1; idle; result 12 api_error; cancelled 12; idle"
    ),
    "error_401": (
        "ready; retry 1/10 401; retry 2/10 401; retry 3/10 401; retry 4/10 401; retry "
        "5/10 401; retry 6/10 401; retry 7/10 401; retry 8/10 401"
    ),
    "error_429": (
        "ready; retry 1/10 429; retry 2/10 429; retry 3/10 429; retry 4/10 429; retry "
        "5/10 429; retry 6/10 429; retry 7/10 429; retry 8/10 429; retry 9/10 429; retry "
        "10/10 429; result 1 api_error; cancelled 1; idle; retry 1/10 429; retry 2/10 "
        "429; retry 3/10 429; retry 4/10 429; retry 5/10 429; retry 6/10 429"
    ),
    "error_529": (
        "ready; retry 1/10 529; retry 2/10 529; retry 3/10 529; retry 4/10 529; retry "
        "5/10 529; retry 6/10 529; retry 7/10 529; retry 8/10 529; retry 9/10 529; retry "
        "10/10 529; result 1 api_error; cancelled 1; idle; retry 1/10 529; retry 2/10 "
        "529; retry 3/10 529; retry 4/10 529; retry 5/10 529; retry 6/10 529"
    ),
    "error_529_maxretries1": (
        "ready; retry 1/1 529; result 1 api_error; cancelled 1; idle; retry 1/1 529; "
        "result 13 api_error; cancelled 13; idle"
    ),
    "error_529_recovers": (
        "ready; retry 1/10 529; retry 2/10 529; result 1 ok; idle; result 13 ok; idle"
    ),
    "interrupt": (
        "ready; user; result 1 aborted_streaming; cancelled 1; idle; use 1 Bash; failed "
        "1; result 12 ok; idle; result 23 ok; idle"
    ),
    "interrupt_queued": (
        "ready; use 1 Bash; failed 1; user; result 1 aborted_tools; cancelled 1; result 8 "
        "ok; result 9 ok; idle; use 2 Bash; tasks 1; tasks 1 of 2; done 2; result 27 ok; idle; "
        "idle; tasks 0"
    ),
    "interrupt_tool": (
        "ready; use 1 Bash; failed 1; user; result 1 aborted_tools; cancelled 1; idle; "
        "result 13 ok; idle"
    ),
    "kill_pending_permission": (
        "ready; use 1 Bash; asks permission Bash; withdrawn: the agent's process ended"
    ),
    "kill_resume": ("ready; result 1 ok; idle"),
    "local_commands": (
        "ready; result 1 ok; idle; result 9 ok; idle; tasks 0; result 19 ok; idle; result "
        "30 ok; idle; user; user replay; result 39 ok; idle"
    ),
    "mcp_config_file": ("ready; use 1 aegis_term_list; done 1; result 1 ok"),
    "mcp_stdio": ("ready; use 1 aegis_term_list; done 1; result 1 ok"),
    "not_logged_in": ("ready; result 1 api_error; failed login"),
    "permission_allow": (
        "ready; use 1 Bash; asks permission Bash; answered success; done 1; result 1 ok; idle"
    ),
    "permission_deny": (
        "ready; use 1 Bash; asks permission Bash; answered success; failed 1; result 1 "
        "ok; idle; use 2 Bash; asks permission Bash; answered success; failed 2; user; "
        "result 16 aborted_tools; cancelled 16; idle; result 30 ok; idle"
    ),
    "permission_interrupt": (
        "ready; use 1 Bash; asks permission Bash; withdrawn: the agent withdrew it; "
        "failed 1; user; result 1 aborted_tools; cancelled 1; idle; refused; result 16 "
        "ok; idle"
    ),
    "permission_parallel": (
        "ready; use 1 Bash; asks permission Bash; use 2 Bash; answered success; done 1; "
        "asks permission Bash; answered success; done 2; result 1 ok; idle; use 3 "
        "aegis_term_list; asks permission mcp__aegis__aegis_term_list; use 4 "
        "aegis_term_list; asks permission mcp__aegis__aegis_term_list; use 5 "
        "aegis_term_list; asks permission mcp__aegis__aegis_term_list; answered success; "
        "done 5; answered success; failed 4; answered success; done 3; result 21 ok; "
        "idle; use 6 aegis_term_list; asks permission mcp__aegis__aegis_term_list; use 7 "
        "aegis_term_list; asks permission mcp__aegis__aegis_term_list; withdrawn: the "
        "agent withdrew it; withdrawn: the agent withdrew it; failed 6; failed 7; user; "
        "result 43 aborted_tools; cancelled 43; idle"
    ),
    "permission_slow_10min": (
        "ready; use 1 Bash; asks permission Bash; answered success; done 1; result 1 ok; "
        "idle; use 2 Bash; asks permission Bash; answered success; done 2; result 16 ok; "
        "idle"
    ),
    "permission_slow_3min": (
        "ready; use 1 Bash; asks permission Bash; answered success; done 1; result 1 ok; "
        "idle; use 2 Bash; asks permission Bash; answered success; done 2; result 16 ok; "
        "idle"
    ),
    "permission_updated": (
        "ready; use 1 Bash; asks permission Bash; answered success; done 1; result 1 ok; "
        "idle; use 2 Bash; asks permission Bash; answered success; done 2; result 16 ok; "
        "idle; use 3 Bash; done 3; result 30 ok; idle; use 4 Write; asks permission "
        "Write; answered success; failed 4; result 41 ok; idle; use 5 Write; asks "
        "permission Write; answered success; done 5; result 55 ok; idle"
    ),
    "queue": ("ready; use 1 Bash; done 1; use 2 Bash; done 2; result 1+8+10 ok; result 9 ok; idle"),
    "queue_now": (
        "ready; use 1 Bash; done 1; result 1 aborted_tools; cancelled 1; result 10 ok; "
        "result 8 ok; idle; use 2 Bash; cancelled 35; cancelled 34; failed 2; user; "
        "result 28 aborted_tools; cancelled 28; idle; result 45 ok; result 51 ok; idle; "
        "idle"
    ),
    "rate_limit_event": (
        "ready; limit allowed; result 1 ok; idle; limit rejected five_hour; result 10 "
        "api_error; cancelled 10; idle"
    ),
    "resume_after_kill_in_tool": ("ready 1; result 2 ok; idle"),
    "resume_after_pending_permission": ("ready 1; result 2 ok; idle"),
    "resume_empty_transcript": ("failed conversation; refused"),
    "resume_fork": ("ready; result 2 ok; idle"),
    "resume_interrupted_turn": ("ready 1"),
    "resume_other_cwd": ("ready 1; result 2 ok; idle"),
    "resume_then_kill_in_tool": ("ready 1; result 2 ok; idle; use 1 Bash"),
    "resume_torn_tail": ("ready 1; result 2 ok; idle"),
    "resume_unknown_id": ("failed conversation; refused"),
    "session_id_in_use": ("refused"),
    "sigterm_mid_turn": ("ready 1"),
    "state_off": ("ready; use 1 Bash; asks permission Bash; answered success; done 1; result 1 ok"),
    "subagent_permission": (
        "ready; use 1 Agent; tasks 1; tasks 1 of 1; done 1; use 2 Bash; asks permission Bash; "
        "result 1 ok; answered success; done 2; tasks 0; result task-notification ok; idle"
    ),
    "turn": (
        "ready; use 1 aegis_term_spawn; done 1; use 2 aegis_term_run; failed 2; result 1 "
        "ok; idle; user replay"
    ),
    "turn_partial": ("ready; result 1 ok; idle"),
    "usage": ("ready; result 1 ok; idle; result 11 ok; idle; result 20 ok; idle"),
}
"""The important outputs of each recording, in order; numbers are the ends of uuids and ids."""


def played(name: str) -> Player:
    return Player(f"claude_{name}").play()


def test_the_table_has_every_recording() -> None:
    assert [f"claude_{name}" for name in IMPORTANT] == NAMES


@pytest.mark.parametrize("name", IMPORTANT)
def test_the_important_outputs_are_those_of_the_table(name: str) -> None:
    assert "; ".join(played(name).important) == IMPORTANT[name]


@pytest.mark.parametrize("name", IMPORTANT)
def test_each_tool_result_follows_its_tool_use(name: str) -> None:
    called: set[str] = set()
    for event in played(name).events:
        if isinstance(event, ToolUse):
            called.add(event.id)
        elif isinstance(event, ToolResult):
            assert event.id in called


@pytest.mark.parametrize("name", IMPORTANT)
def test_each_request_ends_once_at_most_answered_or_withdrawn(name: str) -> None:
    player = played(name)
    opened = [each.id for each in player.events if isinstance(each, RequestOpened)]
    frames = [each.frame for each in player.outputs if isinstance(each, Write)]
    responses = [each["response"] for each in frames if each["type"] == "control_response"]
    ended = [each["request_id"] for each in responses]
    ended += [each.id for each in player.events if isinstance(each, RequestWithdrawn)]
    assert sorted(ended) == sorted(opened)


@pytest.mark.parametrize("name", IMPORTANT)
def test_each_message_that_a_result_names_was_sent(name: str) -> None:
    player = played(name)
    frames = [each.frame for each in player.outputs if isinstance(each, Write)]
    sent = {each["uuid"] for each in frames if each["type"] == "user"}
    named = [each.messages for each in player.events if isinstance(each, Result)]
    assert {uuid for messages in named for uuid in messages} <= sent

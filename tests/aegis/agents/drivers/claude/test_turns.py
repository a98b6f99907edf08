"""Turns of Claude Code: orders, usage, the conversation's id and the agent's mode."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.claude.machine import MAX_UNANSWERED, Claude
from aegis.agents.drivers.harness import AgentFailed, Emit, FilesRewound, Harness, SettingChanged
from aegis.protocol.agent_events import SystemInit, Unknown, Usage
from tests.aegis.agents.drivers.claude.wire import (
    assistant,
    begins,
    events,
    init,
    ready,
    refused,
    result,
    written,
)

Json = dict[str, Any]


def request(key: str, outputs: list[Any]) -> Json:
    [frame] = written(outputs)
    assert frame["type"] == "control_request"
    assert frame["request"]["subtype"] == key
    return frame


def reply(frame: Json, **fields: Any) -> Json:
    response = {"subtype": "success", "request_id": frame["request_id"], **fields}
    return {"type": "control_response", "response": response}


def said(usage: Any, **fields: Any) -> Json:
    message = {"id": "msg_1", "model": "m", "content": [], "usage": usage}
    return assistant(message=message, **fields)


def tokens(fresh: Any, written: Any = 0, read: Any = 0) -> Json:
    cached = {"cache_creation_input_tokens": written, "cache_read_input_tokens": read}
    return {"input_tokens": fresh, "output_tokens": 5, **cached}


def usages(machine: Claude, *frames: Json) -> list[Usage]:
    found = [event for frame in frames for event in events(machine.receive(frame))]
    return [each for each in found if isinstance(each, Usage)]


# Orders.


def test_a_turn_is_one_user_frame_with_its_uuid() -> None:
    machine: Harness = ready()
    [frame] = written(machine.send("u1", "hello"))
    message = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    assert frame == {
        "type": "user",
        "message": message,
        "parent_tool_use_id": None,
        "uuid": "u1",
    }


def test_each_order_is_a_request_with_an_id_of_its_own() -> None:
    machine = ready()
    frames = [
        request("interrupt", machine.interrupt()),
        request("set_permission_mode", machine.set_permission("full")),
        request("set_model", machine.set_model("opus")),
    ]
    assert len({frame["request_id"] for frame in frames}) == 3
    assert frames[1]["request"]["mode"] == "default"
    assert frames[2]["request"]["model"] == "opus"


def test_an_order_that_the_agent_refuses_is_an_event() -> None:
    machine = ready()
    frame = request("set_model", machine.set_model("none"))
    outputs = machine.receive(reply(frame, subtype="error", error="no such model"))
    assert outputs == [
        Emit(Unknown(kind="control_response/set_model", raw={"error": "no such model"})),
        SettingChanged("model", "Claude Code did not set its model: no such model"),
    ]


def test_a_mode_that_the_agent_has_refused_is_not_set_again() -> None:
    machine = ready()
    machine.receive(init())
    frame = request("set_permission_mode", machine.set_permission("plan"))
    machine.receive(reply(frame, subtype="error", error="not now"))
    status = {"type": "system", "subtype": "status", "status": None, "permissionMode": "default"}
    assert written(machine.receive(status)) == []


def test_a_version_whose_results_name_no_message_is_too_old() -> None:
    machine = ready()
    machine.send("u1", "go")
    *events_, failure = machine.receive(result())
    assert isinstance(failure, AgentFailed)
    assert "is too old" in failure.reason
    assert events_


def test_a_turn_of_the_agents_own_names_no_message_either() -> None:
    machine = ready()
    machine.send("u1", "go")
    machine.receive({"type": "command_lifecycle", "command_uuid": "u1", "state": "started"})
    assert not [each for each in machine.receive(result()) if isinstance(each, AgentFailed)]


def test_a_setting_is_changed_when_the_agent_has_answered() -> None:
    machine = ready()
    frame = request("set_permission_mode", machine.set_permission("write"))
    assert machine.receive(reply(frame)) == [SettingChanged("permission")]


def test_a_reply_is_taken_once_and_one_to_nothing_is_kept() -> None:
    machine = ready()
    frame = reply(request("interrupt", machine.interrupt()))
    assert machine.receive(frame) == []
    assert events(machine.receive(frame)) == [Unknown(kind="control_response", raw=frame)]


def test_replies_are_awaited_up_to_a_limit() -> None:
    machine = ready()
    first = request("interrupt", machine.interrupt())
    for _ in range(MAX_UNANSWERED):
        last = request("interrupt", machine.interrupt())
    assert events(machine.receive(reply(first)))
    assert machine.receive(reply(last)) == []


def test_a_sign_of_life_is_no_event_and_services_are_not_known() -> None:
    machine = ready()
    assert machine.receive({"type": "keep_alive"}) == []
    assert "'s1'" in refused(machine.served("s1", None, "x"))[0]


@pytest.mark.parametrize("line", [None, 7, "x", [], [{}], True])
def test_a_line_that_is_no_object_is_kept(line: object) -> None:
    assert events(ready().receive(line)) == [Unknown(kind="", raw={"frame": line})]


# The conversation and the mode.


def conversations(*frames: Json, **fields: Any) -> list[str]:
    machine = ready(**fields)
    found = [event for frame in frames for event in events(machine.receive(frame))]
    return [each.conversation for each in found if isinstance(each, SystemInit)]


def state(session: object) -> Json:
    return {
        "type": "system",
        "subtype": "session_state_changed",
        "state": "idle",
        "session_id": session,
    }


def test_the_conversation_is_named_by_the_first_frame_that_has_it() -> None:
    assert conversations(state("s1"), state("s1")) == ["s1"]
    assert conversations(state("s1"), conversation="s1") == []
    assert conversations(state("s2"), conversation="s1", fork=True) == ["s2"]


def test_a_cleared_conversation_has_another_id_from_the_next_frame_on() -> None:
    reset = {"type": "conversation_reset", "new_conversation_id": "other", "session_id": "s1"}
    cleared = init(session="s2")
    assert conversations(init(), reset, state("s2"), cleared, state("s2")) == ["s1", "s2"]


@pytest.mark.parametrize("session", [None, 0, "", [], "s" * 501])
def test_an_id_that_is_none_changes_nothing(session: object) -> None:
    assert conversations(init(), state(session)) == ["s1"]


def test_a_mode_that_the_agent_entered_is_shown() -> None:
    machine = ready()
    machine.receive(init())
    status = {"type": "system", "subtype": "status", "status": None, "permissionMode": "plan"}
    shown = [each for each in events(machine.receive(status)) if isinstance(each, SystemInit)]
    assert [each.mode for each in shown] == ["plan"]
    assert len(events(machine.receive(status))) == 1  # the frame itself, no second report


# Usage.


def test_the_context_is_the_prompt_of_the_last_request_with_its_cached_part() -> None:
    machine = ready()
    first, last = usages(machine, said(tokens(3000, 600, 90)), said(tokens(10)))
    assert (first.context_tokens, last.context_tokens) == (3690, 10)
    [turn] = usages(machine, result("u1", usage=tokens(3010, 600, 90)))
    assert (turn.context_tokens, turn.input_tokens, turn.cached_tokens) == (10, 3700, 90)
    assert turn.output_tokens == 5


@pytest.mark.parametrize(
    "frame",
    [
        said(tokens(10)),
        said(tokens(99), parent_tool_use_id="t1"),
        said(tokens(-1)),
        said(tokens("99")),
        said(None),
        assistant(message={"model": "<synthetic>", "content": [], "usage": tokens(0)}),
    ],
)
def test_another_frame_of_the_same_request_or_of_none_reports_no_context(frame: Json) -> None:
    machine = ready()
    assert usages(machine, said(tokens(10)))
    assert usages(machine, frame) == []


def test_costs_are_of_the_process_and_of_the_turn() -> None:
    since = {"m": {"costUSD": 0.25}, "haiku": {"costUSD": 0.5}, "odd": 7}
    fields = {"total_cost_usd": 2.0, "model_usage_since_last_result": since}
    [turn] = usages(ready(), result("u1", **fields))
    assert (turn.process_cost_usd, turn.turn_cost_usd) == (2.0, 0.75)


def test_without_the_turns_part_it_is_the_difference_to_the_last_total() -> None:
    machine = ready()
    totals = [1.0, 1.5, None, 2.0, 0.25, float("nan"), float("inf"), -1, True, 10**400]
    turns = usages(machine, *[result("u", total_cost_usd=total) for total in totals])
    assert [each.turn_cost_usd for each in turns] == [1.0, 0.5, None, 0.5, 0.25, *[None] * 5]


def test_a_cleared_conversation_begins_its_cost_and_context_again() -> None:
    machine = ready()
    frames = [said(tokens(10)), result("u1", total_cost_usd=1.0), {"type": "conversation_reset"}]
    usages(machine, *frames)
    [turn] = usages(machine, result("u2", total_cost_usd=3.0))
    assert (turn.turn_cost_usd, turn.context_tokens) == (3.0, None)


@pytest.mark.parametrize(
    ("by_model", "limit"),
    [
        ({"m": {"contextWindow": 200}, "other": {"contextWindow": 7}}, 200),
        ({"other": {"contextWindow": 7}}, 7),
        ({"x": {"contextWindow": 7}, "y": {"contextWindow": 8}}, None),
        ({"m": 7}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_limit_of_the_context_is_that_of_the_model_in_use(by_model: Any, limit: Any) -> None:
    machine = ready()
    [_, turn] = usages(machine, said(tokens(10)), result("u1", modelUsage=by_model))
    assert turn.context_limit == limit


def test_usage_precedes_the_result_that_it_is_of() -> None:
    tags = [each.tag for each in events(ready().receive(result("u1")))]
    assert tags == ["usage", "result"]


def test_a_machine_without_a_server_does_not_check_one() -> None:
    machine = Claude(begins(mcp_url=""))
    machine.begin()
    machine.receive(
        {"type": "control_response", "response": {"request_id": "aegis-1", "subtype": "success"}}
    )
    assert [each.tag for each in events(machine.receive(init(status="")))] == ["system_init"]
    assert written(machine.send("u1", "x"))


def test_files_are_set_back_when_the_agent_says_so() -> None:
    machine = ready()
    frame = request("rewind_files", machine.rewind("u1", is_dry=True))
    assert frame["request"] == {
        "subtype": "rewind_files",
        "user_message_id": "u1",
        "dry_run": True,
    }
    found = {"canRewind": True, "filesChanged": ["/w/a", 3], "insertions": 1, "deletions": 2}
    assert machine.receive(reply(frame, response=found)) == [FilesRewound(files=("/w/a",))]
    frame = request("rewind_files", machine.rewind("u1", is_dry=False))
    assert "dry_run" not in frame["request"]
    done = {"canRewind": True, "skippedLinks": 1}
    assert machine.receive(reply(frame, response=done)) == [FilesRewound()]


def test_a_turn_without_kept_files_is_refused_in_a_sentence() -> None:
    machine = ready()
    frame = request("rewind_files", machine.rewind("u2", is_dry=True))
    answer = {"canRewind": False, "error": "No file checkpoint found for this message."}
    (outcome,) = machine.receive(reply(frame, response=answer))
    assert isinstance(outcome, FilesRewound)
    assert outcome.refusal == (
        "Claude Code cannot rewind to this turn (No file checkpoint found for this message.): it "
        "keeps files for the turns of its current conversation only"
    )

"""The start of a process: its command line, its first frames, and how the start fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aegis.agents.drivers.claude.launch import MODES, added_variables, config_text, launch
from aegis.agents.drivers.claude.machine import Claude
from aegis.agents.drivers.harness import AgentFailed, AgentReady, Emit
from aegis.protocol.agent_events import RequestWithdrawn, SystemInit
from tests.aegis.agents.drivers.claude.wire import (
    URL,
    assistant,
    begins,
    events,
    failed,
    init,
    initialized,
    permission,
    ready,
    refused,
    result,
    written,
)

NO_CONVERSATION = {
    "type": "result",
    "subtype": "error_during_execution",
    "is_error": True,
    "errors": ["No conversation found with session ID: c1"],
}


def test_the_command_line_asks_for_stream_json_and_awaits_initialize() -> None:
    argv = launch(begins())
    assert argv == (
        "claude",
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "default",
        "--permission-prompt-tool=stdio",
        '--settings={"useAutoModeDuringPlan":false}',
        "--setting-sources=user",
        "--await-initialize",
    )


def test_the_settings_of_the_directory_are_used_only_if_that_is_given() -> None:
    plain = launch(begins())
    argv = launch(begins(), project_settings=True)
    assert [each for each in plain if each not in argv] == ["--setting-sources=user"]


@pytest.mark.parametrize(
    ("fields", "arguments"),
    [
        ({"conversation": "c1"}, ["--resume=c1"]),
        ({"conversation": "c1", "fork": True}, ["--resume=c1", "--fork-session"]),
        ({"fork": True}, []),
        ({"conversation": ""}, []),
        ({"model": "opus", "effort": "high"}, ["--model=opus", "--effort=high"]),
        ({"model": "--help"}, ["--model=--help"]),
    ],
)
def test_each_option_is_one_word(fields: dict[str, Any], arguments: list[str]) -> None:
    plain = launch(begins())
    assert list(launch(begins(**fields))) == [*plain, *arguments]


def test_the_budget_and_the_providers_command_are_part_of_it() -> None:
    argv = launch(begins(), command=("npx", "claude"), budget_usd=1.5)
    assert argv[:2] == ("npx", "claude")
    assert argv[-1] == "--max-budget-usd=1.5000"


def test_no_permission_uses_a_mode_in_which_the_program_approves() -> None:
    assert set(MODES.values()) == {"default", "plan"}
    assert {each for each in MODES if MODES[each] == "plan"} == {"plan"}
    assert set(MODES) == {"read", "plan", "ask", "write", "full"}


@pytest.mark.parametrize("config_file", [None, "/run/mcp.json"])
def test_the_url_is_in_no_argument_and_no_variable(config_file: str | None) -> None:
    start = begins(primer="you are pm", model="opus")
    assert URL not in repr(launch(start, config_file=config_file))
    assert URL not in repr(added_variables(start))


def test_a_program_that_awaits_nothing_gets_a_file_and_the_primer_as_an_argument() -> None:
    argv = launch(begins(primer="-you are pm"), config_file="/run/mcp.json")
    assert "--await-initialize" not in argv
    assert "--mcp-config=/run/mcp.json" in argv
    assert "--append-system-prompt=-you are pm" in argv
    servers = {"aegis": {"type": "http", "url": URL}}
    assert json.loads(config_text(begins())) == {"mcpServers": servers}


def test_the_environment_reports_states() -> None:
    assert added_variables(begins()) == {
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
        "CLAUDE_CODE_ENTRYPOINT": "aegis",
        "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
        "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "PWD": "/home/u/w",
    }


def test_the_server_and_the_primer_travel_in_the_first_frame() -> None:
    machine = Claude(begins(primer="you are pm"))
    [frame] = written(machine.begin())
    servers = {"aegis": {"type": "http", "url": URL}}
    primer = {"appendSystemPrompt": "you are pm", "systemPromptSnapshot": False}
    fields = {"mcpServers": servers, **primer}
    assert frame["request"] == {"subtype": "initialize", **fields}
    assert machine.begin() == []


def test_the_servers_of_its_user_travel_with_ours_which_replaces_one_of_its_name() -> None:
    theirs = {"mine": {"command": "run"}, "aegis": {"command": "other"}}
    [frame] = written(Claude(begins(servers=theirs)).begin())
    servers = {"mine": {"command": "run"}, "aegis": {"type": "http", "url": URL}}
    assert frame["request"]["mcpServers"] == servers
    assert json.loads(config_text(begins(servers=theirs))) == {"mcpServers": servers}


def test_the_memory_of_its_directory_is_read_on_demand() -> None:
    reading = begins(reads_project=True)
    assert "--add-dir=/home/u/w" in launch(reading)
    assert added_variables(reading)["CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"] == "1"


def test_a_server_in_a_file_is_not_sent_again() -> None:
    machine = Claude(begins(primer="you are pm"), server_in_file=True)
    [frame] = written(machine.begin())
    assert frame["request"] == {"subtype": "initialize"}


def test_ready_names_the_conversation_that_is_resumed_but_not_one_that_is_forked() -> None:
    for fork, named in ((False, "c1"), (True, "")):
        [output] = initialized(Claude(begins(conversation="c1", fork=fork)))
        assert isinstance(output, AgentReady)
        assert output.conversation == named
        assert output.capabilities.can_resume


def not_applied(applied: object) -> tuple[Claude, str]:
    """Return a machine whose program has not applied our server, and the id of its request."""
    machine = Claude(begins())
    response = {"mcp_servers_applied": applied, "claude_code_version": "2.0.1"}
    [frame] = written(initialized(machine, response=response))
    servers = {"aegis": {"type": "http", "url": URL}}
    assert frame["request"] == {"subtype": "mcp_set_servers", "servers": servers}
    return machine, frame["request_id"]


def control_reply(key: str, **fields: Any) -> dict[str, Any]:
    response = {"subtype": "success", "request_id": key, **fields}
    return {"type": "control_response", "response": response}


@pytest.mark.parametrize("applied", [False, None, "true", 1])
def test_a_program_that_did_not_apply_the_server_gets_it_once_more(applied: object) -> None:
    machine, key = not_applied(applied)
    response = {"added": ["aegis"], "removed": [], "errors": {}}
    [ready_] = machine.receive(control_reply(key, response=response))
    assert isinstance(ready_, AgentReady)


@pytest.mark.parametrize(
    "fields",
    [
        {"response": {"added": [], "errors": {"aegis": "no"}}},
        {"response": {"added": "aegis"}},
        {"response": None},
        {"subtype": "error", "error": f"unknown subtype {URL}"},
    ],
)
def test_a_program_that_does_not_take_the_server_at_all_has_failed(fields: dict[str, Any]) -> None:
    machine, key = not_applied(None)
    assert refused(machine.send("u1", "too early"))
    [failure] = machine.receive(control_reply(key, **fields))
    assert isinstance(failure, AgentFailed)
    assert URL not in failure.reason
    assert failure.kind == "other"
    assert "2.0.1" in failure.reason
    assert "claude update" in failure.reason


@pytest.mark.parametrize(
    "machine", [Claude(begins(), server_in_file=True), Claude(begins(mcp_url=""))]
)
def test_without_a_server_in_the_frame_none_has_to_be_applied(machine: Claude) -> None:
    assert [type(each) for each in initialized(machine, response={})] == [AgentReady]


def test_an_error_as_the_reply_is_a_failure_without_the_secret() -> None:
    [failure] = initialized(Claude(begins()), subtype="error", error=f"bad {URL} {'x' * 999}")
    assert isinstance(failure, AgentFailed)
    assert failure.reason.startswith("Claude Code refused to start: bad \u2039secret\u203a xx")
    assert len(failure.reason) < 300


def test_a_result_instead_of_the_reply_means_that_the_conversation_cannot_be_resumed() -> None:
    machine = Claude(begins(conversation="c1"))
    machine.begin()
    [failure] = machine.receive(NO_CONVERSATION)
    assert isinstance(failure, AgentFailed)
    assert failure.kind == "conversation"
    assert "'c1'" in failure.reason
    assert "No conversation found" in failure.reason


@pytest.mark.parametrize(
    ("beginning", "fields"),
    [
        (begins(), {}),
        (begins(conversation="c1"), {"startup_failure_reason": "cwd_unavailable"}),
    ],
)
def test_another_failed_start_is_no_failed_resume(beginning: Any, fields: dict[str, str]) -> None:
    machine = Claude(beginning)
    machine.begin()
    [failure] = failed(machine.receive({**NO_CONVERSATION, **fields}))
    assert failure.kind == "other"
    assert all(code in failure.reason for code in fields.values())


@pytest.mark.parametrize("status", ["needs-auth", "failed", "pending", ""])
def test_a_server_that_is_not_connected_in_the_first_init_is_a_failure(status: str) -> None:
    machine = ready()
    machine.receive(permission())
    shown, withdrawn, failure = machine.receive(init(status=status))[-3:]
    assert isinstance(shown, Emit)
    assert isinstance(shown.event, SystemInit)
    assert withdrawn == Emit(RequestWithdrawn(id="r1", reason="the agent failed"))
    assert isinstance(failure, AgentFailed)
    assert (status or "missing") in failure.reason


def test_a_server_that_is_lost_later_is_shown_and_no_failure() -> None:
    machine = ready()
    machine.receive(init())
    outputs = machine.receive(init(status="failed"))
    assert [type(each) for each in events(outputs)] == [SystemInit]
    assert failed(outputs) == []


def test_an_init_that_says_nothing_new_is_not_repeated() -> None:
    machine = ready()
    assert len(machine.receive(init())) == 1
    assert machine.receive(init()) == []
    assert len(machine.receive(init(model="other"))) == 1


def test_a_message_about_a_missing_login_fails_after_its_result() -> None:
    machine = ready()
    machine.receive(assistant({"type": "text", "text": "x"}, error="authentication_failed"))
    outputs = machine.receive(result("u1", is_error=True, result="Please run /login"))
    assert events(outputs)[-1].tag == "result"
    [failure] = failed(outputs)
    assert failure.kind == "login"
    assert "Please run /login" in failure.reason


@pytest.mark.parametrize("between", [None, assistant({"type": "text", "text": "back"})])
def test_a_login_that_is_valid_again_is_no_failure(between: Any) -> None:
    machine = ready()
    machine.receive(assistant(error="authentication_failed"))
    ended = result("u1")
    if between is not None:
        machine.receive(between)
        ended = result("u1", is_error=True)
    assert failed(machine.receive(ended)) == []


def test_before_the_reply_and_after_a_failure_no_order_is_carried_out() -> None:
    machine = Claude(begins())
    machine.begin()
    for reason in ("still starting", "has ended"):
        for outputs in (
            machine.send("u", "t"),
            machine.set_model("m"),
            machine.set_permission("ask"),
        ):
            [refusal] = refused(outputs)
            assert reason in refusal
        assert machine.interrupt() == []
        initialized_badly = {"subtype": "error", "request_id": "aegis-1"}
        machine.receive({"type": "control_response", "response": initialized_badly})


def test_frames_after_a_failure_are_not_read() -> None:
    machine = ready()
    machine.ended()
    assert machine.receive(init()) == []
    assert machine.receive(permission()) == []

"""The start of a process: initialize, a login, and how a conversation is opened."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.harness import (
    AgentFailed,
    AgentReady,
    LoginMethod,
    Permission,
    SettingChanged,
)
from aegis.protocol.agent_events import Result, SystemInit
from tests.aegis.agents.drivers.acp.player import URL
from tests.aegis.agents.drivers.acp.wire import (
    Wire,
    events,
    failure,
    frames,
    initialized,
    machine,
    opened,
    ready,
    refusals,
    session,
)

AGENTS = ["claude", "codex", "gemini", "opencode", "kimi"]


def begun(agent: str = "claude", options: AcpOptions | None = None, **beginning: Any) -> Wire:
    wire = Wire(machine(agent, options, **beginning))
    wire.note(wire.machine.begin())
    return wire


def test_initialize_announces_all_that_is_served() -> None:
    (frame,) = frames(machine().begin())
    assert frame["method"] == "initialize"
    assert frame["params"]["clientCapabilities"] == {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "session": {"configOptions": {"boolean": {}}},
        "elicitation": {"form": {}, "url": {}},
        "auth": {"terminal": True},
    }


@pytest.mark.parametrize("agent", AGENTS)
def test_a_new_session_gets_our_server_over_http(agent: str) -> None:
    wire = opened(agent)
    (frame,) = wire.pending
    assert frame["method"] == "session/new"
    server = {"type": "http", "name": "aegis", "url": URL, "headers": []}
    assert frame["params"] == {"cwd": "/w", "mcpServers": [server]}


def test_without_a_url_there_is_no_server() -> None:
    wire = opened(mcp_url="")
    assert wire.pending[0]["params"]["mcpServers"] == []


@pytest.mark.parametrize(
    ("agent", "method"),
    [
        ("claude", "session/resume"),
        ("codex", "session/resume"),
        ("gemini", "session/load"),
        ("opencode", "session/resume"),
        ("kimi", "session/resume"),
    ],
)
def test_a_conversation_is_resumed_where_that_is_announced_and_else_loaded(
    agent: str, method: str
) -> None:
    wire = opened(agent, conversation="old")
    (frame,) = wire.pending
    assert (frame["method"], frame["params"]["sessionId"]) == (method, "old")


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
def test_a_conversation_is_copied_where_that_is_announced(agent: str) -> None:
    options = AcpOptions(asking_modes=("auto", "agent"), needs_mode=False)  # those they begin in
    wire = opened(agent, options, conversation="old", fork=True)
    (frame,) = wire.pending
    assert (frame["method"], frame["params"]["sessionId"]) == ("session/fork", "old")
    outputs = wire.reply("session/fork", {**session(agent), "sessionId": "copy"})
    assert [each.conversation for each in outputs if isinstance(each, AgentReady)] == ["copy"]


@pytest.mark.parametrize("agent", ["gemini", "kimi"])
def test_an_agent_that_cannot_copy_a_conversation_says_so(agent: str) -> None:
    wire = begun(agent, conversation="old", fork=True)
    failed = failure(wire.reply("initialize", initialized(agent)))
    assert failed.kind == "conversation"
    assert failed.reason.endswith("cannot copy a conversation: begin a new one")


def test_an_agent_that_cannot_continue_is_never_given_a_new_conversation() -> None:
    wire = begun("gemini", conversation="old")
    able = initialized("gemini")
    able["agentCapabilities"]["loadSession"] = False
    outputs = wire.reply("initialize", able)
    assert failure(outputs).kind == "conversation"
    assert frames(outputs) == []


@pytest.mark.parametrize("code", [-32002, -32602, -32603])
@pytest.mark.parametrize("agent", ["claude", "gemini"])
def test_an_unknown_conversation_is_a_failure_and_not_a_new_one(agent: str, code: int) -> None:
    wire = opened(agent, conversation="old")
    outputs = wire.fail(wire.pending[0]["method"], code, "Resource not found: old")
    assert failure(outputs).kind == "conversation"
    assert "'old': Resource not found: old; begin a new one" in failure(outputs).reason
    assert frames(outputs) == []
    assert refusals(wire.turn())


def test_another_conversation_than_the_wanted_one_is_a_failure() -> None:
    wire = opened("claude", conversation="old")
    outputs = wire.reply("session/resume", {**session("claude"), "sessionId": "other"})
    assert failure(outputs).kind == "conversation"
    assert "it opened 'other' instead" in failure(outputs).reason


def test_an_error_of_a_new_session_is_no_failure_of_the_conversation() -> None:
    wire = opened("claude")
    failed = failure(wire.fail("session/new", message="disk full"))
    assert (failed.kind, failed.reason) == (
        "other",
        "Claude Agent began no conversation: disk full; see its standard error",
    )


@pytest.mark.parametrize("id_", [None, "", 3, [], "x" * 1001])
def test_a_conversation_needs_an_id(id_: object) -> None:
    wire = opened("kimi")
    failed = failure(wire.reply("session/new", {**session("kimi"), "sessionId": id_}))
    assert "gave its conversation no usable id" in failed.reason


@pytest.mark.parametrize("version", [None, 0, 2, "1", True, 1.0, []])
def test_another_version_of_the_protocol_is_a_failure(version: object) -> None:
    wire = begun()
    failed = failure(
        wire.reply("initialize", {**initialized("claude"), "protocolVersion": version})
    )
    assert "speaks version 1" in failed.reason


def test_an_agent_that_takes_no_server_over_http_is_a_failure() -> None:
    wire = begun()
    able = initialized("claude")
    able["agentCapabilities"]["mcpCapabilities"]["http"] = False
    assert "over HTTP" in failure(wire.reply("initialize", copy.deepcopy(able))).reason
    wire = begun(mcp_url="")
    assert wire.reply("initialize", able)
    assert wire.pending[0]["method"] == "session/new"


def test_an_error_of_initialize_is_a_failure() -> None:
    wire = begun()
    assert "did not start: broken" in failure(wire.fail("initialize")).reason


def test_the_url_in_an_error_is_hidden() -> None:
    wire = opened("opencode")
    failed = failure(wire.fail("session/new", message=f"cannot reach {URL}"))
    assert "SECRET" not in failed.reason
    assert "cannot reach" in failed.reason
    wire = ready("opencode")
    wire.turn()
    (ended,) = events(wire.fail("session/prompt", message=f"{URL}: 500"))
    assert isinstance(ended, Result)
    assert ended.text.endswith(": 500")
    assert "SECRET" not in ended.text


# Logins.


def test_a_login_is_used_only_when_the_agent_asks_for_it() -> None:
    wire = opened("gemini")
    assert wire.pending[0]["method"] == "session/new"
    wire.fail("session/new", -32000, "Authentication required")
    (frame,) = wire.pending
    assert (frame["method"], frame["params"]) == ("authenticate", {"methodId": "gemini-api-key"})
    wire.reply("authenticate")
    assert wire.pending[0]["method"] == "session/new"
    assert any(
        isinstance(each, AgentReady) for each in wire.reply("session/new", session("gemini"))
    )


def test_a_login_that_fails_or_changes_nothing_needs_a_person() -> None:
    wire = opened("gemini")
    wire.fail("session/new", -32000)
    assert failure(wire.fail("authenticate", message="no key")).kind == "login"
    wire = opened("gemini")
    wire.fail("session/new", -32000)
    wire.reply("authenticate")
    assert failure(wire.fail("session/new", -32000)).kind == "login"


@pytest.mark.parametrize(
    ("agent", "login"),
    [
        (
            "claude",
            LoginMethod(
                id="claude-ai-login",
                name="Claude Subscription",
                arguments=("--cli", "auth", "login", "--claudeai"),
            ),
        ),
        ("codex", LoginMethod(id="api-key", name="API Key")),
        ("gemini", LoginMethod(id="oauth-personal", name="Log in with Google")),
        ("opencode", LoginMethod(id="opencode-login", name="Login with opencode")),
        ("kimi", LoginMethod(id="login", name="Login with Kimi account", arguments=("login",))),
    ],
)
def test_the_ways_to_log_in_are_named(agent: str, login: LoginMethod) -> None:
    wire = opened(agent, AcpOptions())
    failed = failure(wire.fail("session/new", -32000, "Authentication required"))
    assert failed.kind == "login"
    assert failed.logins[0] == login
    assert f"needs a login (Authentication required): log in by '{login.id}'" in failed.reason


def test_a_login_is_needed_for_an_old_conversation_too() -> None:
    wire = opened("kimi", conversation="old")
    assert failure(wire.fail("session/resume", -32000)).kind == "login"


# The asking mode.


@pytest.mark.parametrize(
    ("agent", "method"),
    [
        ("claude", "session/new"),
        ("claude", "session/resume"),
        ("codex", "session/new"),
        ("codex", "session/resume"),
    ],
)
def test_the_asking_mode_is_set_and_read_back_before_a_turn(agent: str, method: str) -> None:
    wire = opened(agent, conversation=None if method == "session/new" else "ses")
    assert not any(isinstance(each, AgentReady) for each in wire.reply(method, session(agent)))
    assert refusals(wire.turn())
    (frame,) = wire.pending
    mode = "default" if agent == "claude" else "read-only"
    assert frame["method"] == "session/set_config_option"
    assert frame["params"] == {"sessionId": "ses", "configId": "mode", "value": mode}
    options = session(agent)["configOptions"]
    options[0]["currentValue"] = mode
    outputs = wire.reply("session/set_config_option", {"configOptions": options})
    assert any(isinstance(each, AgentReady) for each in outputs)
    assert [each.mode for each in events(outputs) if isinstance(each, SystemInit)] == [mode]


@pytest.mark.parametrize("result", [{}, {"configOptions": []}, {"configOptions": None}])
def test_a_mode_that_is_not_read_back_is_a_failure(result: dict[str, Any]) -> None:
    wire = opened("claude")
    wire.reply("session/new", session("claude"))
    failed = failure(wire.reply("session/set_config_option", result))
    assert "answered, but did not set its mode to 'default'" in failed.reason


def test_a_mode_that_stays_as_it_was_is_a_failure() -> None:
    wire = opened("claude")
    wire.reply("session/new", session("claude"))
    unchanged = {"configOptions": session("claude")["configOptions"]}
    assert (
        "did not set its mode" in failure(wire.reply("session/set_config_option", unchanged)).reason
    )


def test_a_mode_that_cannot_be_set_is_a_failure() -> None:
    wire = opened("claude")
    wire.reply("session/new", session("claude"))
    failed = failure(wire.fail("session/set_config_option", message="not now"))
    assert "did not set its mode to 'default': not now" in failed.reason


@pytest.mark.parametrize("reported", [None, "default", "yolo"])
def test_the_older_method_is_read_back_from_a_report(reported: str | None) -> None:
    wire = opened("gemini")
    result = session("gemini")
    result["modes"]["currentModeId"] = "yolo"
    wire.reply("session/new", result)
    assert wire.pending[0]["params"] == {"sessionId": "ses", "modeId": "default"}
    if reported is not None:
        wire.update("current_mode_update", currentModeId=reported)
    outputs = wire.reply("session/set_mode")
    if reported == "yolo":
        assert "answered, but did not set its mode" in failure(outputs).reason
    else:
        assert any(isinstance(each, AgentReady) for each in outputs)


@pytest.mark.parametrize("permission", ["read", "ask", "write"])
def test_an_agent_without_an_asking_mode_is_refused(permission: Permission) -> None:
    wire = opened("opencode", AcpOptions(), permission=permission)
    failed = failure(wire.reply("session/new", session("opencode")))
    assert "'permission: full'" in failed.reason


def test_an_agent_without_an_asking_mode_may_have_full_permission() -> None:
    wire = opened("opencode", AcpOptions(), permission="full")
    outputs = wire.reply("session/new", session("opencode"))
    assert any(isinstance(each, AgentReady) for each in outputs)
    assert refusals(wire.machine.set_permission("ask")) == [
        "OpenCode has no mode in which it asks before it acts (it offers 'build', 'plan'): set "
        "'permission: full' in the profile, or use another agent"
    ]


def test_modes_that_are_not_reported_are_no_asking_mode() -> None:
    wire = opened("kimi", conversation="ses")
    assert "it offers none" in failure(wire.reply("session/resume", {})).reason


@pytest.mark.parametrize("mode", ["auto", "acceptEdits"])
def test_an_agent_that_leaves_its_asking_mode_is_put_back(mode: str) -> None:
    wire = ready("claude")
    wire.turn()
    outputs = wire.update("current_mode_update", currentModeId=mode)
    (frame,) = frames(outputs)
    assert frame["params"] == {"sessionId": "ses", "configId": "mode", "value": "default"}
    assert frames(wire.update("current_mode_update", currentModeId=mode)) == []  # one at a time


@pytest.mark.parametrize("mode", ["plan", "read-only", "default"])
def test_a_mode_in_which_an_agent_can_do_less_is_left_alone(mode: str) -> None:
    wire = ready("claude")
    wire.turn()
    assert frames(wire.update("current_mode_update", currentModeId=mode)) == []


def test_an_agent_that_leaves_its_asking_mode_again_and_again_is_ended() -> None:
    wire = ready("claude")
    options = session("claude")["configOptions"]
    options[0]["currentValue"] = "default"
    for _ in range(3):
        wire.update("current_mode_update", currentModeId="auto")
        wire.reply("session/set_config_option", {"configOptions": options})
    outputs = wire.update("current_mode_update", currentModeId="auto")
    assert "left its asking mode for 'auto' by itself" in failure(outputs).reason


@pytest.mark.parametrize("is_in_answer", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_an_agent_that_leaves_its_asking_mode_with_a_change_is_put_back_before_a_turn(
    is_in_answer: bool, fails: bool
) -> None:
    wire = ready("claude")
    wire.note(wire.machine.set_model("opus"))
    options = session("claude")["configOptions"]
    values = {"mode": "auto" if is_in_answer else "default", "model": "opus"}
    for each in options:
        each["currentValue"] = values.get(each["id"], each["currentValue"])
    if is_in_answer and fails:
        wire.update("config_option_update", configOptions=options)
    if not is_in_answer:
        wire.update("current_mode_update", currentModeId="auto")
        options[0]["currentValue"] = "auto"
    method = "session/set_config_option"
    outputs = wire.fail(method) if fails else wire.reply(method, {"configOptions": options})
    outputs += wire.turn()
    (frame,) = frames(outputs)
    assert frame["method"] == "session/set_config_option"
    assert frame["params"] == {"sessionId": "ses", "configId": "mode", "value": "default"}
    options[0]["currentValue"] = "default"
    outputs = wire.reply("session/set_config_option", {"configOptions": options})
    assert [each["method"] for each in frames(outputs)] == ["session/prompt"]


def test_full_permission_leaves_the_mode_to_the_agent() -> None:
    wire = ready("claude", permission="full")
    assert frames(wire.update("current_mode_update", currentModeId="auto")) == []
    outputs = wire.note(wire.machine.set_permission("ask"))
    assert frames(outputs)[0]["params"]["value"] == "default"
    options = session("claude")["configOptions"]
    options[0]["currentValue"] = "default"
    outputs = wire.reply("session/set_config_option", {"configOptions": options})
    assert SettingChanged("permission") in outputs
    assert wire.machine.set_permission("write") == [SettingChanged("permission")]


def test_an_agent_that_does_not_take_its_asking_mode_is_ended_when_its_permission_is_lowered() -> (
    None
):
    wire = ready("claude", permission="full")
    wire.update("current_mode_update", currentModeId="auto")
    wire.note(wire.machine.set_permission("ask"))
    changed, failed = wire.reply("session/set_config_option", session("claude"))
    assert isinstance(changed, SettingChanged)
    assert changed.refusal
    assert isinstance(failed, AgentFailed)


def test_model_and_effort_are_set_before_a_turn() -> None:
    wire = ready("claude", model="opus", effort="high")
    values = [
        each["params"]["value"]
        for each in frames(wire.outputs)
        if each["method"] == "session/set_config_option"
    ]
    assert values == ["default", "opus", "high"]
    assert [each.model for each in wire.events if isinstance(each, SystemInit)] == ["opus"]


def test_a_model_is_set_by_the_older_method() -> None:
    wire = ready("gemini", model="gemini-2.5-pro")
    assert frames(wire.outputs)[-1]["method"] == "session/set_model"
    assert [each.model for each in wire.events if isinstance(each, SystemInit)] == [
        "gemini-2.5-pro"
    ]


@pytest.mark.parametrize(
    ("agent", "resumes", "forks", "costs"),
    [
        ("claude", True, True, True),
        ("codex", True, True, False),
        ("gemini", True, False, False),
        ("opencode", True, True, True),
        ("kimi", True, False, False),
    ],
)
def test_the_capabilities_of_an_agent(agent: str, resumes: bool, forks: bool, costs: bool) -> None:
    (given,) = [each for each in ready(agent).outputs if isinstance(each, AgentReady)]
    able = given.capabilities
    assert (able.can_resume, able.can_fork, able.reports_cost) == (resumes, forks, costs)
    assert able.sets_model
    assert not able.queues


def test_an_agent_that_cannot_read_through_its_client_is_not_offered_it() -> None:
    (frame,) = frames(machine(options=AcpOptions(reads_files=False)).begin())
    able = frame["params"]["clientCapabilities"]["fs"]
    assert able == {"readTextFile": False, "writeTextFile": True}


@pytest.mark.parametrize("conversation", [None, "ses"])
def test_a_server_in_a_file_is_in_no_frame(conversation: str | None) -> None:
    options = AcpOptions(server_in_file=True, meta={"a": 1}, cwd_end="/.")
    wire = opened("claude", options, conversation=conversation)
    params = frames(wire.outputs)[-1]["params"]
    assert (params["mcpServers"], params["_meta"], params["cwd"]) == ([], {"a": 1}, "/w/.")
    assert URL not in str(wire.outputs)

"""Frames of Claude Code, and machines that are past their start."""

from __future__ import annotations

from typing import Any

from aegis.agents.drivers.claude.machine import Claude
from aegis.agents.drivers.harness import AgentFailed, Beginning, Emit, OrderRefused, Output, Write
from aegis.protocol.agent_events import AgentEvent

URL = "http://127.0.0.1:1/mcp/s/SECRET"

Json = dict[str, Any]


def begins(**fields: Any) -> Beginning:
    return Beginning(**{"cwd": "/home/u/w", "mcp_url": URL, **fields})


def initialized(machine: Claude, **fields: Any) -> list[Output]:
    [first] = machine.begin()
    assert isinstance(first, Write)
    body = {"mcp_servers_applied": True, "claude_code_version": "2.1.330"}
    reply = {"subtype": "success", "request_id": first.frame["request_id"], "response": body}
    return machine.receive({"type": "control_response", "response": {**reply, **fields}})


def ready(**fields: Any) -> Claude:
    machine = Claude(begins(**fields))
    initialized(machine)
    return machine


def control(key: Any, subtype: str, **fields: Any) -> Json:
    request = {"subtype": subtype, **fields}
    return {"type": "control_request", "request_id": key, "request": request}


def permission(key: Any = "r1", tool: str = "Bash", **fields: Any) -> Json:
    return control(
        key, "can_use_tool", **{"tool_name": tool, "input": {"command": "touch a"}, **fields}
    )


def rules(*found: Json, **fields: Any) -> Json:
    added = {"type": "addRules", "rules": list(found), "behavior": "allow"}
    return {**added, "destination": "localSettings", **fields}


def init(*, status: str = "connected", session: str = "s1", **fields: Any) -> Json:
    servers = [{"name": "aegis", "status": status}] if status else []
    frame = {"type": "system", "subtype": "init", "session_id": session, "mcp_servers": servers}
    return {**frame, "model": "m", "permissionMode": "default", **fields}


def assistant(*content: Json, **fields: Any) -> Json:
    message = {"id": "msg_1", "model": "m", "content": list(content)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, **fields}


def result(*uuids: str, **fields: Any) -> Json:
    frame = {"type": "result", "subtype": "success", "is_error": False, "result": "done"}
    ended = {"terminal_reason": "completed", "user_message_uuids": list(uuids)}
    return {**frame, **ended, **fields}


def events(outputs: list[Output]) -> list[AgentEvent]:
    return [each.event for each in outputs if isinstance(each, Emit)]


def written(outputs: list[Output]) -> list[Json]:
    return [each.frame for each in outputs if isinstance(each, Write)]


def failed(outputs: list[Output]) -> list[AgentFailed]:
    return [each for each in outputs if isinstance(each, AgentFailed)]


def refused(outputs: list[Output]) -> list[str]:
    return [each.reason for each in outputs if isinstance(each, OrderRefused)]

"""The important outputs of a played recording, a line each."""

from __future__ import annotations

from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.harness import (
    AgentFailed,
    AgentReady,
    Emit,
    FilesRewound,
    KeepImage,
    OrderRefused,
    Output,
    Serve,
    SettingChanged,
    StopServing,
    Write,
)
from aegis.protocol.agent_events import (
    AgentEvent,
    RequestOpened,
    RequestWithdrawn,
    Result,
    SystemInit,
    ToolProgress,
    ToolResult,
    ToolUse,
    Usage,
)
from tests.aegis.agents.drivers.acp.player import Player

OPTIONS = {
    "claude": AcpOptions(reports_cost=True, session_options=()),
    "codex": AcpOptions(asking_modes=("read-only",), session_options=("allow_session",)),
    "gemini": AcpOptions(
        auth="gemini-api-key",
        session_options=("proceed_always_tool", "proceed_always", "proceed_always_server"),
    ),
    "opencode": AcpOptions(needs_mode=False, reports_cost=True),
    "kimi": AcpOptions(),
    # Some recordings chose other settings.
    "acp_codex_ask": AcpOptions(
        asking_modes=("read-only",), extra={"collaboration_mode": "plan"}, session_options=()
    ),
    "acp_codex_permission": AcpOptions(asking_modes=("workspace-write",)),
    "acp_codex_cancel": AcpOptions(asking_modes=("workspace-write",)),
    "acp_codex_elicitation": AcpOptions(asking_modes=("workspace-write",)),
    "acp_kimi_load": AcpOptions(needs_mode=False),  # its session/load reports no modes
}
"""The options by which a recording is played: its own, or its agent's."""


def summary(player: Player) -> list[str]:
    lines = [_line(each) for each in player.outputs]
    return [each for each in lines if each]


def _line(output: Output) -> str:
    match output:
        case Emit(event):
            return _event_line(event)
        case AgentReady(capabilities=able):
            return f"ready, resumes {able.can_resume}, forks {able.can_fork}"
        case AgentFailed(kind=kind, reason=reason):
            return f"failed, {kind}: {reason}"
        case OrderRefused(reason):
            return f"refused: {reason}"
        case SettingChanged(setting, refusal):
            return f"{setting} changed" if refusal is None else f"{setting} not changed: {refusal}"
        case Serve(method=method):
            return f"serve {method}"
        case StopServing(id=serve):
            return f"stop serving {serve}"
        case Write(frame):
            return _frame_line(frame)
        case KeepImage():
            return "keep an image"
        case FilesRewound(refusal=reason):
            return f"rewound: {reason}"


def _frame_line(frame: dict[str, object]) -> str:
    method, params = frame.get("method"), frame.get("params")
    match params:
        case {"configId": option, "value": value}:
            return f"> {option} = {value}"
    if method is not None:
        return f"> {method}"
    return f"> {frame.get('result', frame.get('error'))}"


def _event_line(event: AgentEvent) -> str:
    match event:
        case SystemInit(mode=mode, model=model):
            return f"init {mode} {model}"
        case ToolUse(name=name, title=title, kind=kind, input=given):
            return f"use {name!r} {title!r} {kind} {sorted(given)}"
        case ToolProgress(terminal=terminal) if terminal is not None:
            return f"terminal {terminal}"
        case ToolResult(text=text, is_error=is_error):
            return f"{'error' if is_error else 'result'} {text[:40]!r}"
        case RequestOpened(id=id_, kind=kind, options=options, title=title):
            return f"asks {id_} {kind} {title!r} {[each.kind for each in options]}"
        case RequestWithdrawn(id=id_, reason=reason):
            return f"withdrawn {id_}: {reason}"
        case Usage(output_tokens=int(output)):
            return f"usage {event.input_tokens} {output} {event.turn_cost_usd}"
        case Result(messages=messages, ok=ok, reason=reason, text=text):
            return f"turn {messages} {ok} {reason} {text!r}"
    return ""


def options_of(recording: str) -> AcpOptions:
    return OPTIONS.get(recording) or OPTIONS[recording.split("_")[1]]

"""Recorded sessions of Claude Code, played through the machine: the client's frames are orders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.drivers.claude.machine import Claude
from aegis.agents.drivers.harness import (
    AgentFailed,
    AgentReady,
    Beginning,
    Emit,
    OrderRefused,
    Output,
    Write,
)
from aegis.protocol.agent_events import (
    AgentEvent,
    ElicitationAnswer,
    MessageChanged,
    PermissionAnswer,
    QuestionAnswer,
    RateLimit,
    RequestAnswer,
    RequestOpened,
    RequestWithdrawn,
    Result,
    Retrying,
    StateChanged,
    TasksChanged,
    ToolResult,
    ToolUse,
    UserMessage,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
NAMES = sorted(path.stem for path in RECORDINGS.glob("claude_*.jsonl"))
URL = "http://127.0.0.1:1/mcp/s/SECRET"

Json = dict[str, Any]


def load(name: str) -> list[Json]:
    lines = (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def frames_of_agent(name: str) -> list[Json]:
    return [line["f"] for line in load(name)[1:] if line["d"] == "<"]


@attrs.define
class Player:
    """One recording that is played; ``ids`` maps recorded ids of our requests to the machine's."""

    name: str
    outputs: list[Output] = attrs.field(factory=list)
    ids: dict[str, str] = attrs.field(factory=dict)
    opened: dict[str, RequestOpened] = attrs.field(factory=dict)
    machine: Claude = attrs.field(init=False)

    def play(self) -> Player:
        meta, *lines = load(self.name)
        self.machine = Claude(beginning_of(meta["meta"], lines), server_in_file=in_file(meta))
        for line in lines:
            frame = line["f"]
            self._note(self._order(frame) if line["d"] == ">" else self._frame(frame))
        self._note(self.machine.ended())
        return self

    def _note(self, outputs: list[Output]) -> None:
        self.outputs += outputs
        events = [output.event for output in outputs if isinstance(output, Emit)]
        self.opened |= {each.id: each for each in events if isinstance(each, RequestOpened)}

    def _frame(self, frame: Json) -> list[Output]:
        if frame["type"] == "control_response":
            recorded = frame["response"]["request_id"]
            reply = {**frame["response"], "request_id": self.ids.get(recorded, recorded)}
            frame = {**frame, "response": reply}
        return self.machine.receive(frame)

    def _order(self, frame: Json) -> list[Output]:
        match frame["type"]:
            case "user":
                return self.machine.send(frame["uuid"], frame["message"]["content"][0]["text"])
            case "control_response":
                recorded = frame["response"]
                return self.machine.answer(recorded["request_id"], self._answer(recorded))
            case _:
                return self._asked(frame["request_id"], frame["request"])

    def _asked(self, recorded: str, request: Json) -> list[Output]:
        orders: dict[str, Callable[[], list[Output]]] = {
            "initialize": self.machine.begin,
            "interrupt": self.machine.interrupt,
            "set_model": lambda: self.machine.set_model("claude-fake"),
            "set_permission_mode": lambda: self.machine.set_permission("read"),
        }
        if request["subtype"] not in orders:
            return []
        outputs = orders[request["subtype"]]()
        for output in outputs:
            if isinstance(output, Write):
                self.ids[recorded] = output.frame["request_id"]
        return outputs

    def _answer(self, recorded: Json) -> RequestAnswer:
        body, opened = recorded.get("response", {}), self.opened[recorded["request_id"]]
        match body:
            case {"action": action}:
                form = opened.input["mode"] == "form"
                return ElicitationAnswer(action=action, content=body["content"] if form else None)
            case {"behavior": "allow", "updatedInput": {"answers": answers}}:
                return QuestionAnswer(answers={q: a.split(", ") for q, a in answers.items()})
            case {"behavior": "allow", "updatedPermissions": _}:
                return PermissionAnswer(kind="allow_session")
            case {"behavior": "allow"}:
                return PermissionAnswer(kind="allow_once")
        interrupt, message = body.get("interrupt", False), body.get("message", "")
        return PermissionAnswer(kind="deny", message=message, interrupt=interrupt)

    @property
    def events(self) -> list[AgentEvent]:
        return [output.event for output in self.outputs if isinstance(output, Emit)]

    @property
    def important(self) -> list[str]:
        """Return the important outputs, a few words each."""
        return [words for output in self.outputs if (words := in_words(output))]


def in_file(meta: Json) -> bool:
    return "--mcp-config" in meta["meta"]["argv"]


def beginning_of(meta: Json, lines: list[Json]) -> Beginning:
    resumed = [each for each in meta["argv"] if each.startswith("--resume=")]
    request = next(line["f"]["request"] for line in lines if line["f"].get("request"))
    ours = "aegis" in request.get("mcpServers", {}) or "--mcp-config" in meta["argv"]
    return Beginning(
        cwd=meta["cwd"],
        mcp_url=URL if ours else "",
        primer=request.get("appendSystemPrompt", ""),
        conversation=resumed[0].removeprefix("--resume=") if resumed else None,
        fork="--fork-session" in meta["argv"],
    )


def short(uuid: str) -> str:
    """Return the number of an anonymous uuid."""
    return uuid.rpartition("-")[2].lstrip("0")


def in_words(output: Output) -> str:
    match output:
        case AgentReady():
            return f"ready {short(output.conversation)}".strip()
        case AgentFailed():
            return f"failed {output.kind}"
        case OrderRefused():
            return "refused"
        case Write(frame={"type": "control_response", "response": {"subtype": subtype}}):
            return f"answered {subtype}"
        case Emit():
            return event_in_words(output.event)
    return ""


def event_in_words(event: AgentEvent) -> str:
    match event:
        case Result():
            whose = "+".join(short(each) for each in event.messages) or event.origin or "nobody"
            return f"result {whose} {'ok' if event.ok else event.reason}"
        case RequestOpened():
            return f"asks {event.kind} {event.tool}"
        case RequestWithdrawn():
            return f"withdrawn: {event.reason}"
        case ToolUse():
            return f"use {event.id[-1]} {event.name.rpartition('__')[2]}"
        case ToolResult():
            return f"{'failed' if event.is_error else 'done'} {event.id[-1]}"
    return report_in_words(event)


def report_in_words(event: AgentEvent) -> str:
    match event:
        case MessageChanged(state="cancelled"):
            return f"cancelled {short(event.uuid)}"
        case StateChanged(state="idle"):
            return "idle"
        case RateLimit():
            return f"limit {event.status} {event.kind}".strip()
        case Retrying():
            return f"retry {event.attempt}/{event.attempts} {event.status}"
        case TasksChanged():
            calls = [each.call[-1] for each in event.running if each.call]
            return " ".join([f"tasks {len(event.tasks)}", *(f"of {each}" for each in calls)])
        case UserMessage():
            return f"user {event.origin}".strip()
    return ""

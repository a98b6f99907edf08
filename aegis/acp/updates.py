"""``TranscriptUpdates``: the entries of a transcript as ACP updates, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aegis.agents.drivers.acp.frames import items, mapping, string
from aegis.agents.render import messages_in, segments_of
from aegis.client.agent_kinds import SessionEvent
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    CommandsChanged,
    CommandSent,
    ConversationChanged,
    Plan,
    RateLimit,
    Retrying,
    SlashCommand,
    StartNotice,
    TerminalEnded,
    TerminalOutput,
    TooLarge,
    ToolProgress,
    ToolResult,
    ToolUse,
    Usage,
    UserMessage,
)
from aegis.shown_text import escape_line

Update = dict[str, Any]

KINDS = {"plan": "think"}
"""The kinds of tools that ACP names otherwise."""

_ABOUT = ("command", "file_path", "notebook_path", "url", "query", "pattern", "path")
"""The fields of a tool's input that say what it does, the clearest first."""

MAX_CALLS = 500
"""Tool calls whose changes and terminals are known."""

HUMAN = "human"


class TranscriptUpdates:
    """The updates of one session; it knows the tool calls so far."""

    def __init__(self) -> None:
        self._shown: dict[str, list[Update]] = {}  # the changes of files, by tool call
        self._call_of: dict[str, str] = {}  # the tool call that shows a terminal
        self._message = ""  # the message that the last update belongs to

    def of(self, entry: SessionEvent) -> list[Update]:
        """Return the updates of an entry, those of messages and turns left out."""
        if entry.event is None:
            self._message = ""
            return []
        updates = [*self._of_event(entry.event)]
        if updates:
            self._message = getattr(entry.event, "message", "")
        return updates

    def _of_event(self, event: AgentEvent) -> Iterator[Update]:
        match event:
            case AssistantText(text=text, message=message):
                if text:
                    # Editors join the chunks of all messages.
                    is_other = bool(self._message) and message != self._message
                    break_ = "\n\n" * is_other
                    yield chunk("agent_message_chunk", f"{break_}{text}", message)
            case AssistantThinking(text=text):
                if text:
                    yield chunk("agent_thought_chunk", text)
            case UserMessage(text=text, origin=origin):
                if text and origin != "turn":
                    yield chunk("user_message_chunk", text)
            case Plan(steps=steps):
                entries = [
                    {"content": each.text, "priority": "medium", "status": each.status}
                    for each in steps
                ]
                yield {"sessionUpdate": "plan", "entries": entries}
            case Usage(context_tokens=int(used), context_limit=int(size)):
                yield {"sessionUpdate": "usage_update", "used": used, "size": size}
            case CommandsChanged(commands=commands):
                yield commands_update(commands)
            case (
                CommandSent()
                | ConversationChanged()
                | StartNotice()
                | Retrying()
                | RateLimit()
                | TooLarge()
            ):
                if text := "".join(each.text for each in segments_of(event)):
                    yield notice(text)
            case _:
                yield from self._of_tool(event)

    def _of_tool(self, event: AgentEvent) -> Iterator[Update]:
        match event:
            case ToolUse():
                yield self._tool_use(event)
            case ToolProgress():
                yield from self._progress(event)
            case ToolResult(id=id_, text=text, is_error=is_error):
                state = "failed" if is_error else "completed"
                yield self._changed(id_, text, status=state)
            case TerminalOutput(terminal=terminal, output=output):
                yield from self._terminal(terminal, output)
            case TerminalEnded(terminal=terminal, output=output):
                yield from self._terminal(terminal, output)
                self._call_of.pop(terminal, None)

    def _tool_use(self, event: ToolUse) -> Update:
        is_new = event.id not in self._shown
        changes = [*_changes(event.input)]
        self._keep(self._shown, event.id, changes)
        fields: Update = {
            "sessionUpdate": "tool_call" if is_new else "tool_call_update",
            "toolCallId": event.id,
            "title": call_title(event.title or event.name or "a tool", event.input),
            "kind": KINDS.get(event.kind, event.kind),
            "rawInput": event.input,
        }
        if is_new:
            fields["status"] = "in_progress"
        if changes:
            fields["content"] = changes
            fields["locations"] = [{"path": path} for path in {each["path"]: 0 for each in changes}]
        return fields

    def _progress(self, event: ToolProgress) -> Iterator[Update]:
        if event.terminal is not None:
            self._keep(self._call_of, event.terminal, event.id)
        if event.text:
            yield self._changed(event.id, event.text)

    def _terminal(self, terminal: str, output: str) -> Iterator[Update]:
        call = self._call_of.get(terminal)
        if call is not None and output:
            yield self._changed(call, output)

    def _changed(self, call: str, text: str, **fields: str) -> Update:
        # The content of an update replaces the content before it.
        shown = self._shown.get(call, [])
        content = [*shown, text_content(text)] if text else shown
        update = {"sessionUpdate": "tool_call_update", "toolCallId": call, **fields}
        return {**update, "content": content} if content else update

    def _keep(self, known: dict[str, Any], key: str, value: Any) -> None:
        known[key] = value
        if len(known) > MAX_CALLS:
            del known[next(iter(known))]


def chunk(kind: str, text: str, message: str = "") -> Update:
    """Return a piece of a message, as ACP names its ``kind``; ``message`` is its id."""
    update: Update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    return {**update, "messageId": message} if message else update


def notice(text: str) -> Update:
    """Return a sentence that is no message of the agent."""
    return chunk("agent_thought_chunk", f"{text}\n")


def call_title(title: str, given: Mapping[str, Any]) -> str:
    """Return the title of a tool call with what it does: some editors show nothing else of it.

    It is whole: what is not shown cannot be approved.
    """
    about = [given[each] for each in _ABOUT if isinstance(given.get(each), str)]
    return f"{title}: {escape_line(about[0])}" if about and about[0] not in title else title


def text_content(text: str) -> Update:
    """Return a text as the content of a tool call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def commands_update(commands: list[SlashCommand]) -> Update:
    """Return the update with the agent's own commands."""
    listed = [
        {
            "name": each.name,
            "description": each.description or each.name,
            **({"input": {"hint": each.hint}} if each.hint else {}),
        }
        for each in commands
    ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def sent_texts(fields: Mapping[str, Any]) -> list[str]:
    """Return the messages of a turn that was opened, without the headers of a person's."""
    text = string(fields.get("text"))
    senders = [string(mapping(each).get("sender")) for each in items(fields.get("messages"))]
    found = messages_in(text)
    if len(found) != len(senders):  # a command has no header
        return [text]
    return [
        body.strip("\n") if sender == HUMAN else f"[{sender}] {body.strip()}"
        for sender, (_, body) in zip(senders, found, strict=True)
    ]


def _changes(given: Mapping[str, Any]) -> Iterator[Update]:
    """Yield the changes of files in the input of a tool."""
    edits = [mapping(each) for each in items(given.get("edits"))]
    for each in edits or [dict(given)]:
        path = string(each.get("file_path") or given.get("file_path"))
        old, new = each.get("old_string"), each.get("new_string")
        if new is None and isinstance(each.get("content"), str):
            old, new = None, each["content"]  # a whole file
        if path and isinstance(new, str):
            shown = {"oldText": old} if isinstance(old, str) else {}
            yield {"type": "diff", "path": path, "newText": new, **shown}

"""Typed events of an agent session: the same for every provider, in transcripts and streams. Pure.

Each class has a ``tag``; a transcript line and a stream item carry it as ``type``. ``Unknown``
keeps a frame of a type that no class describes, so that events of a newer agent are not lost.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs

ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "plan", "other"
]
"""The category of a tool, as ACP names it."""

RequestKind = Literal["permission", "question", "elicitation", "login"]
"""The kind of a request to a person."""

OptionKind = Literal["allow_once", "allow_session", "deny", "deny_session"]
"""The effect of an option of a permission."""


@attrs.frozen(kw_only=True)
class SystemInit:
    """The agent has a conversation and is configured.

    ``conversation`` is the agent's own id of it, by which it can be resumed. ``mcp_servers`` maps
    each server to its status ("connected", "failed", …), as far as the agent reports it.
    """

    tag: ClassVar[str] = "system_init"
    conversation: str
    model: str = ""
    mode: str = ""
    version: str = ""
    mcp_servers: dict[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class AssistantText:
    """Text of the agent. Chunks of one message have one ``message`` id; ``""`` is no id.

    ``aborted``: the message was interrupted, and this is the part that was written.
    """

    tag: ClassVar[str] = "assistant_text"
    text: str
    message: str = ""
    aborted: bool = False


@attrs.frozen(kw_only=True)
class AssistantThinking:
    """Reasoning that the agent shows."""

    tag: ClassVar[str] = "assistant_thinking"
    text: str


@attrs.frozen(kw_only=True)
class ToolUse:
    """The agent calls a tool. A later event with the same ``id`` replaces this one.

    ``input`` is that of the tool. The change of a file is in it as ``file_path``, ``old_string``
    and ``new_string``, for tools of ACP agents too: there, with ``truncated`` where the texts are
    longer, and several as ``edits``, a list of such. ``parent`` is the id of the call whose
    subagent makes this one.
    """

    tag: ClassVar[str] = "tool_use"
    id: str
    name: str
    title: str = ""
    kind: ToolKind = "other"
    input: dict[str, Any] = attrs.field(factory=dict)
    parent: str = ""


@attrs.frozen(kw_only=True)
class ToolProgress:
    """A tool call continues; ``terminal`` is the id of an ACP terminal that shows its output."""

    tag: ClassVar[str] = "tool_progress"
    id: str
    text: str = ""
    terminal: str | None = None


@attrs.frozen(kw_only=True)
class ToolResult:
    """The result of a tool call; ``parent`` is that of its ``ToolUse``."""

    tag: ClassVar[str] = "tool_result"
    id: str
    text: str
    is_error: bool = False
    parent: str = ""


@attrs.frozen(kw_only=True)
class TerminalStarted:
    """The agent has its client run a command, in an ACP terminal with this id."""

    tag: ClassVar[str] = "terminal_started"
    terminal: str
    command: str


@attrs.frozen(kw_only=True)
class TerminalOutput:
    """The end of the output of an ACP terminal so far; a later event replaces it."""

    tag: ClassVar[str] = "terminal_output"
    terminal: str
    output: str
    truncated: bool = False


@attrs.frozen(kw_only=True)
class TerminalEnded:
    """An ACP terminal was released: its command, and the end of its output.

    A ``ToolProgress`` with the same ``terminal`` names the tool call that shows it. ``exit_code``
    is None if the command was ended by ``signal``; both are None if its end was not seen, because
    the daemon or the agent's driver ended with it. ``truncated``: the output was longer.
    """

    tag: ClassVar[str] = "terminal_ended"
    terminal: str
    command: str
    output: str
    truncated: bool = False
    exit_code: int | None = None
    signal: str | None = None


@attrs.frozen(kw_only=True)
class PlanStep:
    """One step of a plan; ``id`` is the agent's own of it, empty if it has none."""

    text: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    id: str = ""


@attrs.frozen(kw_only=True)
class Plan:
    """The agent's plan; each replaces the one before."""

    tag: ClassVar[str] = "plan"
    steps: list[PlanStep]


@attrs.frozen(kw_only=True)
class Usage:
    """The agent's own accounting; None: not reported.

    ``input_tokens`` (with cached ones), ``cached_tokens`` and ``output_tokens`` are of one turn:
    they and ``turn_cost_usd`` are reported once, at its end. With ``request`` they are those of one
    request to the model, by its id, so far: the figures of its turn replace them.
    ``context_tokens`` is the size of the last request's prompt, ``context_limit`` the model's
    limit. ``process_cost_usd`` is the cost of the agent's process so far; ``turn_cost_usd`` is the
    part of it since the last result.
    """

    tag: ClassVar[str] = "usage"
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    context_tokens: int | None = None
    context_limit: int | None = None
    process_cost_usd: float | None = None
    turn_cost_usd: float | None = None
    request: str = ""


@attrs.frozen(kw_only=True)
class RateLimit:
    """The state of a usage limit; ``resets_at`` is in seconds since 1970 (UTC)."""

    tag: ClassVar[str] = "rate_limit"
    status: Literal["allowed", "warning", "rejected"]
    kind: str = ""
    resets_at: float | None = None


@attrs.frozen(kw_only=True)
class Retrying:
    """The agent's request to its model failed and is repeated after ``delay_s`` seconds."""

    tag: ClassVar[str] = "retrying"
    attempt: int
    attempts: int
    delay_s: float
    status: int | None = None


@attrs.frozen(kw_only=True)
class Result:
    """The end of a turn.

    ``messages`` are the uuids of the user frames that it answers: none for a turn that the agent
    began itself, whose ``origin`` says why. Success only if ``ok``; ``reason`` is the agent's word.
    """

    tag: ClassVar[str] = "result"
    messages: list[str]
    ok: bool
    reason: str
    text: str = ""
    origin: str = ""


@attrs.frozen(kw_only=True)
class UserMessage:
    """Text that the agent received; ``origin``: "turn" (sent by us), or the agent's own word."""

    tag: ClassVar[str] = "user_message"
    text: str
    origin: str = ""


@attrs.frozen(kw_only=True)
class MessageChanged:
    """The agent's report on one user frame of ours, by its uuid."""

    tag: ClassVar[str] = "message_changed"
    uuid: str
    state: Literal["queued", "started", "completed", "cancelled"]


@attrs.frozen(kw_only=True)
class StateChanged:
    """The agent's report on itself."""

    tag: ClassVar[str] = "state_changed"
    state: Literal["idle", "running", "requires_action"]


@attrs.frozen(kw_only=True)
class BackgroundTask:
    """A command or a subagent that runs in the background; ``call`` is the tool call that began it.

    ``""``: not known yet.
    """

    id: str
    title: str
    call: str = ""


@attrs.frozen(kw_only=True)
class TasksChanged:
    """The background tasks of the agent, by their titles; replaces the list before.

    ``running`` has those of agents that name them.
    """

    tag: ClassVar[str] = "tasks_changed"
    tasks: list[str]
    running: list[BackgroundTask] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class RequestOption:
    """One answer that a permission offers; ``id`` is the agent's name of it."""

    id: str
    name: str
    kind: OptionKind


@attrs.frozen(kw_only=True)
class RequestOpened:
    """The agent asks a person, and waits.

    ``id`` is unique within the agent's process. ``input`` is the raw input of the tool, or the
    questions that are to be answered; of an elicitation ``{"mode": "form", "schema": …}`` or
    ``{"mode": "url", "url": …}``. ``needs_person``: no single key may approve it.
    ``default_to_no``: its preselected answer is a refusal. ``no_session_scope``: it may be allowed
    once only. ``takes_reason``: the message of a refusal reaches the agent with it; the protocols
    of some agents have no room for one.

    The approval of a plan is a permission of the ``tool_kind`` "plan" that ``needs_person``, with
    the text as ``plan`` of its input. To allow it for the session is to approve edits of files too.
    ``takes_edit``: the agent takes another text in place of the plan.
    """

    tag: ClassVar[str] = "request_opened"
    id: str
    kind: RequestKind
    tool: str = ""
    tool_kind: ToolKind = "other"
    tool_use: str = ""
    title: str = ""
    reason: str = ""
    input: dict[str, Any] = attrs.field(factory=dict)
    options: list[RequestOption] = attrs.field(factory=list)
    needs_person: bool = False
    default_to_no: bool = False
    no_session_scope: bool = False
    takes_reason: bool = True
    takes_edit: bool = False


@attrs.frozen(kw_only=True)
class RequestWithdrawn:
    """A request can no longer be answered."""

    tag: ClassVar[str] = "request_withdrawn"
    id: str
    reason: str = ""


@attrs.frozen(kw_only=True)
class SlashCommand:
    """A command of the agent's own, which a person sends as ``/name`` and what ``hint`` shows."""

    name: str
    description: str = ""
    hint: str = ""
    aliases: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class CommandsChanged:
    """The agent announced its own commands; they replace those of an earlier event."""

    tag: ClassVar[str] = "commands_changed"
    commands: list[SlashCommand]


@attrs.frozen(kw_only=True)
class OfferedModel:
    """A model by the ``name`` that sets it; ``full_name`` is what the agent then reports, if other.

    ``title`` is for people. ``efforts`` are those that it can be used with: some agents list them
    for the current model only. ``sets_thinking``: its thinking can be set.
    """

    name: str
    title: str = ""
    full_name: str = ""
    efforts: list[str] = attrs.field(factory=list)
    sets_thinking: bool = False


@attrs.frozen(kw_only=True)
class ModelsOffered:
    """The agent listed the models that it can be set to; they replace those of an earlier event."""

    tag: ClassVar[str] = "models_offered"
    models: list[OfferedModel]


@attrs.frozen(kw_only=True)
class CommandSent:
    """A person's ``/name`` was sent to the agent.

    ``as_text``: the agent has no such command, so it was sent as any other message.
    ``of_project``: the text of a command of the project was sent in place of it.
    """

    tag: ClassVar[str] = "command_sent"
    name: str
    as_text: bool = False
    of_project: bool = False


@attrs.frozen(kw_only=True)
class ConversationChanged:
    """The agent cleared or compacted its conversation, which continues under this id.

    ``by_agent``: it did so itself, because the context was full. ``before`` and ``after`` are the
    tokens of the context, where the agent reports them.
    """

    tag: ClassVar[str] = "conversation_changed"
    how: Literal["cleared", "compacted"]
    conversation: str
    by_agent: bool = False
    before: int | None = None
    after: int | None = None


@attrs.frozen(kw_only=True)
class StartNotice:
    """A sentence about the start of the agent, such as what it was not given."""

    tag: ClassVar[str] = "start_notice"
    text: str


@attrs.frozen(kw_only=True)
class TooLarge:
    """A frame of ``size`` bytes was over the limit: its long texts are cut, and no image is kept.

    ``kind`` is the agent's name of it. A request in it was refused.
    """

    tag: ClassVar[str] = "too_large"
    kind: str
    size: int


@attrs.frozen(kw_only=True)
class Unknown:
    """A frame that no other class describes; ``kind`` is the agent's name of it."""

    tag: ClassVar[str] = "unknown"
    kind: str
    raw: dict[str, Any] = attrs.field(factory=dict)


AgentEvent = (
    SystemInit
    | AssistantText
    | AssistantThinking
    | ToolUse
    | ToolProgress
    | ToolResult
    | TerminalStarted
    | TerminalOutput
    | TerminalEnded
    | Plan
    | Usage
    | RateLimit
    | Retrying
    | Result
    | UserMessage
    | MessageChanged
    | StateChanged
    | TasksChanged
    | RequestOpened
    | RequestWithdrawn
    | CommandsChanged
    | ModelsOffered
    | CommandSent
    | ConversationChanged
    | StartNotice
    | TooLarge
    | Unknown
)
"""Every event, tagged."""


# Answers to requests.


@attrs.frozen(kw_only=True)
class PermissionAnswer:
    """The answer to a permission: an option's kind, and a sentence for the agent with a refusal.

    ``option`` is the id of the option, needed where several have this kind. ``interrupt``: a
    refusal ends the turn too. ``plan`` is the edited text of an approved plan.
    """

    tag: ClassVar[str] = "permission"
    kind: OptionKind
    option: str = ""
    message: str = ""
    interrupt: bool = False
    plan: str = ""


@attrs.frozen(kw_only=True)
class QuestionAnswer:
    """The answers to questions, by the text of the question; several labels where it allows them.

    None: the person declined to answer.
    """

    tag: ClassVar[str] = "question"
    answers: dict[str, list[str]] | None


@attrs.frozen(kw_only=True)
class ElicitationAnswer:
    """The answer to an elicitation or a login; ``content`` with ``accept`` only."""

    tag: ClassVar[str] = "elicitation"
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


RequestAnswer = PermissionAnswer | QuestionAnswer | ElicitationAnswer
"""Every answer, tagged."""

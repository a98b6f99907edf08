"""``Claude``: the protocol machine of one process of Claude Code. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from aegis.agents.drivers.claude.frames import (
    answered_messages,
    error_text,
    events,
    items,
    mapping,
    name,
    request_usage,
    text,
    turn_usage,
    unknown,
)
from aegis.agents.drivers.claude.launch import MODES, SERVER, mcp_servers
from aegis.agents.drivers.claude.models import (
    read_models,
    refuse_effort,
    refuse_model,
    refuse_thinking,
    thinking_tokens,
)
from aegis.agents.drivers.claude.requests import (
    ClaudeRequest,
    Unusable,
    asked,
    is_plan,
    response,
)
from aegis.agents.drivers.claude.todo import TodoList
from aegis.agents.drivers.commands import read_commands, sent_as, with_project
from aegis.agents.drivers.harness import (
    AgentFailed,
    AgentReady,
    Beginning,
    Capabilities,
    Emit,
    FilesRewound,
    Frame,
    OrderRefused,
    Output,
    Permission,
    SentImage,
    Setting,
    SettingChanged,
    Write,
)
from aegis.agents.drivers.images import ResultImages
from aegis.protocol.agent_events import (
    AgentEvent,
    CommandsChanged,
    ConversationChanged,
    ModelsOffered,
    OfferedModel,
    RequestAnswer,
    RequestWithdrawn,
    SlashCommand,
    SystemInit,
    TasksChanged,
    TooLarge,
    Unknown,
    Usage,
)

MAX_OPEN = 64
"""Requests that may be open at a time; a further one is answered with an error."""

MAX_CLOSED = 4096
"""Ids of closed requests that are known, so that none of them is opened again."""

MAX_UNANSWERED = 256
"""Control requests of ours whose reply is awaited; the oldest is given up."""

MAX_SHOWN = 200
"""Characters of the agent's text that are part of a reason."""

HIDDEN_URL = "\u2039secret\u203a"
"""A session's URL in a text that people read."""

LOGIN_ERROR = "authentication_failed"
"""The error of a message that was not answered for want of a login."""

CAPABILITIES = Capabilities(
    can_resume=True,
    can_fork=True,
    queues=True,
    reports_cost=True,
    sets_model=True,
    takes_images=True,
)

_SETTINGS: Mapping[str, Setting] = {"set_model": "model", "set_permission_mode": "permission"}
"""The settings that control requests change."""

MODE_RESET = "mode reset"
"""The label of a request of ours that sets the mode back."""

CHANGING = frozenset({"set_permission_mode", MODE_RESET})

REWIND = "rewind_files"

MAX_REWOUND = 4_096
"""Files that one rewind may name."""

MAX_MODE_RESETS = 3
"""How often a process may leave its mode by itself before it is ended."""

ALIASES: Mapping[str, tuple[str, ...]] = {"default": ("manual",)}
"""Other names of modes."""

MAX_TASK_CALLS = 256
"""Tool calls that are known to have begun a task."""

_END = {"answered": "was already answered", "withdrawn": "was withdrawn"}


class RunningTasks:
    """The background tasks of a process, and the calls that began them.

    The list of them has no calls, and comes before the frame that names one.
    """

    def __init__(self) -> None:
        self._calls: dict[str, str] = {}  # by the ids of tasks
        self._last = TasksChanged(tasks=[])

    def take(self, changed: TasksChanged) -> TasksChanged:
        """Return a list with the calls that are known."""
        running = [
            attrs.evolve(each, call=self._calls.get(each.id, "")) for each in changed.running
        ]
        self._last = attrs.evolve(changed, running=running)
        return self._last

    def follow(self, frame: Frame) -> list[TasksChanged]:
        """Note the call of a task that starts; return the list again if the task is in it."""
        task, call = name(frame.get("task_id")), name(frame.get("tool_use_id"))
        if frame.get("subtype") != "task_started" or not (task and call):
            return []
        self._calls[task] = call
        if len(self._calls) > MAX_TASK_CALLS:
            del self._calls[next(iter(self._calls))]
        before = self._last
        return [] if self.take(before) == before else [self._last]


class Claude:
    """One process of Claude Code; a ``Harness``.

    ``server_in_file``: our MCP server was passed in a file (``launch.argv``), not in a frame; the
    caller deletes the file at ``AgentReady`` or ``AgentFailed``.
    """

    def __init__(self, beginning: Beginning, *, server_in_file: bool = False) -> None:
        self._beginning = beginning
        self._server_in_file = server_in_file
        self._phase: Literal["new", "starting", "ready", "over"] = "new"
        self._conversation = "" if beginning.fork else beginning.conversation or ""
        self._init: SystemInit | None = None
        self._checked = False  # whether our MCP server is connected
        self._version = ""
        self._has_sent = self._names_messages = False
        self._login_needed = False
        self._sent = 0
        self._unanswered: dict[str, str] = {}  # id of a control request of ours → its subtype
        self._open: dict[str, ClaudeRequest] = {}
        self._closed: dict[str, str] = {}  # id → how it ended
        self._last_usage: Usage | None = None  # the last one to the model, for the conversation
        self._model = ""
        self._models: tuple[OfferedModel, ...] = ()
        self._wanted_model = self._ordered_model = beginning.model
        self._commands: list[SlashCommand] = []
        self._is_cleared = False
        self._cost: float | None = None
        self._todo = TodoList(beginning.plan)
        self._tasks = RunningTasks()
        self._images = ResultImages(beginning.images)
        self._permission = self._ordered_permission = beginning.permission
        self._mode_resets = 0

    # Orders.

    def begin(self) -> list[Output]:
        """Return the first frame, which configures the process."""
        if self._phase != "new":
            return []
        self._phase = "starting"
        fields: Frame = {}
        if self._beginning.mcp_url and not self._server_in_file:
            fields["mcpServers"] = mcp_servers(self._beginning)
        if self._beginning.primer and not self._server_in_file:
            fields["appendSystemPrompt"] = self._beginning.primer
            # A conversation that is resumed would have the primer that it began with.
            fields["systemPromptSnapshot"] = False
        return [self._request("initialize", fields)]

    def send(
        self, uuid: str, text: str, command: str = "", images: Sequence[SentImage] = ()
    ) -> list[Output]:
        """Send a turn's text as one user frame. The process ignores a uuid that it has seen."""
        if self._phase != "ready":
            return [self._not_ready()]
        self._has_sent = True
        written, sent = sent_as(text, command, self._commands, self._beginning.project_commands)
        content: list[Frame] = [{"type": "text", "text": written}, *map(_image_block, images)]
        message = {"role": "user", "content": content}
        frame = {"type": "user", "message": message, "parent_tool_use_id": None, "uuid": uuid}
        return [Write(frame), *([] if sent is None else [Emit(sent)])]

    def interrupt(self) -> list[Output]:
        """Interrupt the current turn. The process accepts it without a turn too, and does nothing.

        Open requests are withdrawn by the process, with a frame for each.
        """
        return [self._request("interrupt", {})] if self._phase == "ready" else []

    def answer(self, request: str, answer: RequestAnswer) -> list[Output]:
        """Answer an open request once."""
        found = self._open.get(request)
        if found is None:
            end = _END.get(self._closed.get(request, ""), "is unknown")
            return [OrderRefused(f"request {request!r} {end}; nothing was sent to the agent")]
        body = response(found, answer)
        if isinstance(body, str):
            return [OrderRefused(body)]
        self._close(request, "answered")
        if is_plan(found) and body.get("behavior") == "allow" and self._permission == "plan":
            self._permission = "ask"
        return [_respond(request, body)]

    def served(
        self, serve: str, result: Mapping[str, Any] | None, error: str, code: str = ""
    ) -> list[Output]:
        """Refuse: Claude Code asks for no services."""
        return [OrderRefused(f"{serve!r} is no open request for a service")]

    def set_permission(self, permission: Permission) -> list[Output]:
        """Set the process's mode; the policy that answers permissions is not part of the machine.

        This ends modes that the agent entered itself, such as "plan".
        """
        if self._phase != "ready":
            return [self._not_ready()]
        self._ordered_permission = permission
        return [self._request("set_permission_mode", {"mode": MODES[permission]})]

    def set_model(self, model: str) -> list[Output]:
        """Set the model from the next request on."""
        if self._phase != "ready":
            return [self._not_ready()]
        if refusal := refuse_model(self._models, model):
            return [OrderRefused(refusal)]
        self._ordered_model = model
        return [self._request("set_model", {"model": model})]

    def rewind(self, uuid: str, *, is_dry: bool) -> list[Output]:
        """Set back the files that were changed since the turn, or ask which."""
        if self._phase != "ready":
            return [self._not_ready()]
        fields = {"user_message_id": uuid, **({"dry_run": True} if is_dry else {})}
        return [self._request(REWIND, fields)]

    def refuse_effort(self, effort: str, model: str | None = None) -> str | None:
        """Return why an effort cannot be set, in one sentence; None if it can."""
        return refuse_effort(self._models, model or self._wanted_model, effort)

    def refuse_thinking(self, thinking: str, model: str | None = None) -> str | None:
        """Return why thinking cannot be set, in one sentence; None if it can."""
        return refuse_thinking(self._models, model or self._wanted_model, thinking)

    def ended(self) -> list[Output]:
        """Note the end of the process."""
        self._phase = "over"
        return self._withdraw_all("the agent's process ended")

    def _not_ready(self) -> OrderRefused:
        if self._phase == "over":
            return OrderRefused("Claude Code has ended; start the session's process again")
        return OrderRefused("Claude Code is still starting; wait until it is ready")

    def _request(self, subtype: str, fields: Frame, *, label: str = "") -> Write:
        self._sent += 1
        key = f"aegis-{self._sent}"
        self._unanswered[key] = label or subtype
        if len(self._unanswered) > MAX_UNANSWERED:
            del self._unanswered[next(iter(self._unanswered))]
        request = {"subtype": subtype, **fields}
        return Write({"type": "control_request", "request_id": key, "request": request})

    # Frames.

    def receive(self, frame: object) -> list[Output]:
        """Take one frame of the process; a line can hold a JSON value of any type."""
        if self._phase == "over":
            return []
        if not isinstance(frame, dict):
            return [Emit(Unknown(kind="", raw={"frame": frame}))]
        kind = name(frame.get("type"))
        if kind == "result" and self._phase != "ready":
            return self._failed_start(frame)
        special = self._special.get(kind)
        if special is not None:
            return special(self, frame)
        frame, kept = self._images.of_claude(frame)
        return [*kept, *self._follow_conversation(frame), *self._happened(frame)]

    def receive_cut(self, frame: Frame, size: int) -> list[Output]:
        """Take what is left of a frame of ``size`` bytes, which was larger than the limit."""
        if self._phase == "over":
            return []
        kind, key = name(frame.get("type")), name(frame.get("request_id"))
        report: Output = Emit(TooLarge(kind=kind, size=size))
        if kind == "control_request":
            self._remember(key, "answered")
            return [_respond_error(key, f"the request has {size} bytes, too many to show"), report]
        return [report, *self.receive(frame)]

    def _happened(self, frame: Frame) -> list[Output]:
        outputs: list[Output] = []
        if frame.get("type") == "result":
            outputs += self._withdraw_of_turn()
        if frame.get("subtype") == "commands_changed":
            outputs += self._announced(frame)
        # It still has the old id: the next frame but one has the new one.
        self._is_cleared |= frame.get("type") == "conversation_reset"
        outputs += [Emit(event) for event in (*self._follow_mode(frame), *self._measured(frame))]
        outputs += self._keep_asking(frame)
        outputs += map(Emit, self._tasks.follow(frame))
        for event in events(frame):
            if isinstance(event, TasksChanged):
                outputs.append(Emit(self._tasks.take(event)))
            elif isinstance(event, SystemInit):
                outputs += self._configured(event)
            else:
                outputs.append(Emit(event))
                outputs += map(Emit, self._todo.take(event, frame))
        return [*outputs, *self._follow_login(frame), *self._follow_names(frame)]

    def _alive(self, frame: Frame) -> list[Output]:
        return []

    # The start.

    def _initialized(self, reply: Frame) -> list[Output]:
        if reply.get("subtype") != "success":
            error = self._shown(text(reply.get("error"))) or "no reason is given"
            return self._fail(f"Claude Code refused to start: {error}")
        fields = mapping(reply.get("response"))
        self._version = name(fields.get("claude_code_version")) or "of an unknown version"
        self._models = read_models(fields, self._beginning.model)
        model, effort = self._beginning.model, self._beginning.effort
        refusal = None if model is None else refuse_model(self._models, model)
        refusal = refusal or (None if effort is None else self.refuse_effort(effort))
        thinking = self._beginning.thinking
        refusal = refusal or (None if thinking is None else self.refuse_thinking(thinking))
        if refusal is not None:
            return self._fail(refusal)
        offered = [Emit(ModelsOffered(models=[*self._models]))] if self._models else []
        pending = [*offered, *self._announced(fields), *self._pending(reply)]
        awaited = self._beginning.mcp_url and not self._server_in_file
        if awaited and fields.get("mcp_servers_applied") is not True:
            servers = mcp_servers(self._beginning)
            return [*pending, self._request("mcp_set_servers", {"servers": servers})]
        return [*self._be_ready(), *pending]

    def _announced(self, fields: Frame) -> list[Output]:
        """Take the process's own commands, where a frame has them."""
        if not isinstance(fields.get("commands"), list):
            return []
        self._commands = read_commands(fields["commands"])
        offered = with_project(self._commands, self._beginning.project_commands)
        return [Emit(CommandsChanged(commands=offered))]

    def _be_ready(self) -> list[Output]:
        self._phase = "ready"
        thinking = self._beginning.thinking
        tokens = {} if thinking is None else {"max_thinking_tokens": thinking_tokens(thinking)}
        set_it = [self._request("set_max_thinking_tokens", tokens)] if tokens else []
        return [*set_it, AgentReady(conversation=self._conversation, capabilities=CAPABILITIES)]

    def _servers_set(self, reply: Frame) -> list[Output]:
        """Take the reply of a version that did not take our server with the first frame."""
        added = items(mapping(reply.get("response")).get("added"))
        if reply.get("subtype") == "success" and SERVER in added:
            return self._be_ready()
        return self._fail(
            f"Claude Code {self._version} did not take the MCP server from its client; "
            "update it with 'claude update'"
        )

    def _pending(self, reply: Frame) -> list[Output]:
        """Open the requests that were pending before this client came."""
        lists = ("pending_permission_requests", "pending_elicitation_requests")
        frames = [mapping(each) for key in lists for each in items(reply.get(key))[:MAX_OPEN]]
        return [output for each in frames for output in self._control_request(each)]

    def _failed_start(self, frame: Frame) -> list[Output]:
        shown = self._shown(error_text(frame) or text(frame.get("result")))
        reason = shown or "no reason is given"
        code = name(frame.get("startup_failure_reason"))
        resumed = bool(self._beginning.conversation) and not code
        if resumed:
            return self._fail(
                f"Claude Code cannot resume conversation {self._beginning.conversation!r}: "
                f"{reason}; begin a new one",
                "conversation",
            )
        return self._fail(f"Claude Code could not start: {reason}{code and f' ({code})'}")

    def _configured(self, event: SystemInit) -> list[Output]:
        changed, first = event != self._init, not self._checked
        self._init, self._checked, self._model = event, True, event.model or self._model
        self._version = event.version or self._version
        outputs: list[Output] = [Emit(event)] if changed else []
        status = event.mcp_servers.get(SERVER) or "missing"
        if not first or not self._beginning.mcp_url or status == "connected":
            return outputs
        reason = (
            f"Claude Code has not connected to the MCP server {SERVER!r} (status: {status}), "
            "so the agent has none of its tools; restart the agent"
        )
        return [*outputs, *self._fail(reason)]

    def _fail(
        self, reason: str, kind: Literal["conversation", "login", "other"] = "other"
    ) -> list[Output]:
        self._phase = "over"
        return [*self._withdraw_all("the agent failed"), AgentFailed(reason=reason, kind=kind)]

    def _shown(self, written: str) -> str:
        """Return a text of the agent for a reason: it can hold our URL, and be of any length."""
        url = self._beginning.mcp_url
        return (written.replace(url, HIDDEN_URL) if url else written)[:MAX_SHOWN]

    def _follow_conversation(self, frame: Frame) -> list[Output]:
        """Report a new id of the conversation, which ``/clear`` for one gives it."""
        conversation = name(frame.get("session_id"))
        if not conversation or conversation == self._conversation:
            return []
        self._conversation = conversation
        is_cleared, self._is_cleared = self._is_cleared, False
        cleared = ConversationChanged(how="cleared", conversation=conversation)
        changed: list[Output] = [Emit(cleared)] if is_cleared else []
        if frame.get("subtype") == "init":
            return changed
        self._todo = TodoList()
        known = self._init or SystemInit(conversation=conversation)
        self._init = attrs.evolve(known, conversation=conversation)
        return [*changed, Emit(self._init)]

    def _follow_mode(self, frame: Frame) -> list[AgentEvent]:
        mode = name(frame.get("permissionMode"))
        if frame.get("subtype") != "status" or self._init is None or mode in ("", self._init.mode):
            return []
        self._init = attrs.evolve(self._init, mode=mode)
        return [self._init]

    def _keep_asking(self, frame: Frame) -> list[Output]:
        """Return to the session's mode if the process has left it by itself for one that asks less.

        It may enter the mode for plans: it can do less there.
        """
        mode = name(frame.get("permissionMode"))
        is_report = frame.get("subtype") in ("status", "init") and mode != ""
        wanted = MODES[self._permission]
        # The reports before the reply to a change of ours can be older than that.
        is_changing = bool(CHANGING & {*self._unanswered.values()})
        if not is_report or mode in (wanted, "plan", *ALIASES.get(wanted, ())) or is_changing:
            return []
        self._mode_resets += 1
        if self._mode_resets > MAX_MODE_RESETS:
            return self._fail(
                f"Claude Code left the mode {wanted!r} for {self._shown(mode)!r} by itself, which "
                "asks less: start it again"
            )
        return [self._request("set_permission_mode", {"mode": wanted}, label=MODE_RESET)]

    def _follow_login(self, frame: Frame) -> list[Output]:
        """Fail after the result of a turn whose message reports that no login is valid."""
        match frame.get("type"):
            case "assistant":
                self._login_needed = frame.get("error") == LOGIN_ERROR
            case "result" if self._login_needed and frame.get("is_error") is True:
                shown = self._shown(text(frame.get("result"))) or LOGIN_ERROR
                reason = (
                    f"Claude Code has no valid login ({shown}); run 'claude' in a terminal of "
                    "this host, log in with /login, and restart the agent"
                )
                return self._fail(reason, "login")
        return []

    def _follow_names(self, frame: Frame) -> list[Output]:
        """Fail after a result of an old version, which names no message: no turn could end."""
        match frame.get("type"):
            case "command_lifecycle":
                self._names_messages = True
            case "result" if self._has_sent and not self._names_messages:
                if not answered_messages(frame) and self._phase == "ready":
                    return self._fail(
                        f"Claude Code {self._version} is too old: it does not report which message "
                        "a turn answers; update it with 'claude update'"
                    )
        return []

    # Requests of the agent.

    def _control_request(self, frame: Frame) -> list[Output]:
        key, request = name(frame.get("request_id")), mapping(frame.get("request"))
        # A response to a known id could answer the wrong request, and one without an id none.
        found = None if not key or key in self._open or key in self._closed else asked(key, request)
        if found is None:
            # A dialog that was not declared must not be answered: the process shows its own.
            subtype = name(request.get("subtype"))
            return [Emit(Unknown(kind=f"control_request/{subtype}", raw=frame))]
        if isinstance(found, ClaudeRequest) and len(self._open) >= MAX_OPEN:
            found = Unusable(f"{MAX_OPEN} requests are open already; ask again later")
        if isinstance(found, Unusable):
            self._remember(key, "answered")
            refusal = Unknown(kind="control_request/refused", raw=frame)
            return [_respond_error(key, found.reason), Emit(refusal)]
        self._open[key] = found
        return [Emit(found.event)]

    def _control_cancel(self, frame: Frame) -> list[Output]:
        key = name(frame.get("request_id"))
        return self._withdraw(key, "the agent withdrew it") if key in self._open else []

    def _withdraw_of_turn(self) -> list[Output]:
        """Withdraw the requests of the turn that ended; a subagent's can outlive it."""
        of_turn = [key for key, each in self._open.items() if not each.outlives_turn]
        return [out for key in of_turn for out in self._withdraw(key, "the turn ended")]

    def _withdraw_all(self, reason: str) -> list[Output]:
        return [output for key in list(self._open) for output in self._withdraw(key, reason)]

    def _withdraw(self, key: str, reason: str) -> list[Output]:
        self._close(key, "withdrawn")
        return [Emit(RequestWithdrawn(id=key, reason=reason))]

    def _close(self, key: str, end: str) -> None:
        del self._open[key]
        self._remember(key, end)

    def _remember(self, key: str, end: str) -> None:
        self._closed[key] = end
        if len(self._closed) > MAX_CLOSED:
            del self._closed[next(iter(self._closed))]

    # Replies to us.

    def _control_response(self, frame: Frame) -> list[Output]:
        reply = mapping(frame.get("response"))
        subtype = self._unanswered.pop(name(reply.get("request_id")), None)
        if subtype is None:
            return [Emit(unknown(frame))]
        if subtype == "initialize":
            return self._initialized(reply)
        if subtype == "mcp_set_servers":
            return self._servers_set(reply)
        if subtype == REWIND:
            return [self._rewound(reply)]
        error = None if reply.get("subtype") == "success" else text(reply.get("error"))
        outputs: list[Output] = []
        if error is not None and subtype == MODE_RESET:
            shown = self._shown(error) or "no reason is given"
            return self._fail(f"Claude Code did not return to the mode in which it asks: {shown}")
        if error is not None:
            refused = Unknown(kind=f"control_response/{subtype}", raw={"error": error})
            outputs.append(Emit(refused))
        if error is None and subtype == "set_model":
            self._wanted_model = self._ordered_model
        if error is None and subtype == "set_permission_mode":
            self._permission = self._ordered_permission
        if subtype in _SETTINGS:
            setting = _SETTINGS[subtype]
            shown = self._shown(error or "") or "no reason is given"
            sentence = f"Claude Code did not set its {setting}: {shown}"
            outputs.append(SettingChanged(setting, None if error is None else sentence))
        return outputs

    def _rewound(self, reply: Frame) -> FilesRewound:
        fields = mapping(reply.get("response"))
        if reply.get("subtype") != "success" or fields.get("canRewind") is not True:
            error = text(reply.get("error")) or text(fields.get("error"))
            shown = self._shown(error) or "no reason is given"
            return FilesRewound(
                refusal=f"Claude Code cannot rewind to this turn ({shown}): it keeps files for the "
                "turns of its current conversation only"
            )
        named = [each for each in items(fields.get("filesChanged")) if isinstance(each, str)]
        if len(named) > MAX_REWOUND:
            return FilesRewound(refusal=f"Claude Code names {len(named)} files, too many to rewind")
        return FilesRewound(files=tuple(named))

    # Usage.

    def _measured(self, frame: Frame) -> list[AgentEvent]:
        match frame.get("type"):
            case "assistant":
                return self._measured_request(frame)
            case "result":
                return [self._measured_turn(frame)]
            case "conversation_reset":
                self._last_usage, self._cost = None, None
        return []

    def _measured_request(self, frame: Frame) -> list[AgentEvent]:
        usage = request_usage(frame)
        if usage is None or usage == self._last_usage:  # each block of a message is a frame
            return []
        self._last_usage = usage
        self._model = name(mapping(frame["message"]).get("model")) or self._model
        return [usage]

    def _measured_turn(self, frame: Frame) -> Usage:
        usage = turn_usage(frame, self._model)
        total, turn = usage.process_cost_usd, usage.turn_cost_usd
        if turn is None and total is not None:
            # A total below the last one is a total that began again.
            turn = total - self._cost if self._cost is not None and total >= self._cost else total
        self._cost = total if total is not None else self._cost
        context = None if self._last_usage is None else self._last_usage.context_tokens
        return attrs.evolve(usage, context_tokens=context, turn_cost_usd=turn)

    _special: Mapping[str, Callable[[Claude, Frame], list[Output]]] = {
        "control_request": _control_request,
        "control_cancel_request": _control_cancel,
        "control_response": _control_response,
        "keep_alive": _alive,
    }


def _image_block(image: SentImage) -> Frame:
    source = {"type": "base64", "media_type": image.media_type, "data": image.base64}
    return {"type": "image", "source": source}


def _respond(key: str, body: Frame) -> Write:
    response = {"subtype": "success", "request_id": key, "response": body}
    return Write({"type": "control_response", "response": response})


def _respond_error(key: str, reason: str) -> Write:
    response = {"subtype": "error", "request_id": key, "error": reason}
    return Write({"type": "control_response", "response": response})

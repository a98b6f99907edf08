"""The machine of one agent process that speaks the Agent Client Protocol, version 1. Pure.

The order on the wire is strict: frames are taken and returned one after the other, so an answer
never overtakes the updates before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aegis.agents.drivers.acp.conversation import AcpCalls, AcpConversation, thread_of
from aegis.agents.drivers.acp.elicitation import elicitation_request, elicitation_result
from aegis.agents.drivers.acp.frames import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MAX_DEPTH,
    MAX_NAME_CHARS,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    AcpReply,
    Id,
    error_response,
    is_nested_deeper,
    mapping,
    notification,
    request_id,
    response,
    string,
    without_depth,
)
from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.acp.permissions import permission_request, permission_result
from aegis.agents.drivers.acp.requests import (
    CANCELLABLE,
    KINDS,
    AcpRequest,
    AcpRequests,
    Kind,
    cancelled,
)
from aegis.agents.drivers.acp.runs import (
    ApprovedCommands,
    Writes,
    changes_shown,
    run_request,
    write_request,
)
from aegis.agents.drivers.acp.updates import REPLAYED, Accounting, Updates, is_failure, is_notice
from aegis.agents.drivers.commands import as_plain, as_text, read_commands, sent_as, with_project
from aegis.agents.drivers.harness import (
    AgentFailed,
    AgentReady,
    Beginning,
    Capabilities,
    Emit,
    Frame,
    LoginMethod,
    OrderRefused,
    Output,
    Permission,
    SentImage,
    Serve,
    SettingChanged,
    StopServing,
    Write,
)
from aegis.agents.drivers.images import ResultImages
from aegis.errors import InvalidRequest, NotFound
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    CommandsChanged,
    ConversationChanged,
    ElicitationAnswer,
    PermissionAnswer,
    RequestAnswer,
    RequestOpened,
    RequestWithdrawn,
    Result,
    SlashCommand,
    TooLarge,
    ToolUse,
    Unknown,
)

MAX_FINAL_CHARS = 256 * 1024
"""The last message of a turn is truncated here; its events have all of it."""


class AcpTurn:
    """A turn from ``send`` to the response of its prompt."""

    def __init__(
        self, uuid: str, text: str, command: str = "", images: Sequence[SentImage] = ()
    ) -> None:
        self.uuid = uuid
        self.text = text
        self.command = command
        self.images = images
        self.command_sent = ""
        self.is_sent = False
        self.is_cancelled = False
        self.has_failed = False
        self._message = ""
        self._chunks: list[str] = []
        self._length = 0

    @property
    def final_text(self) -> str:
        """The text after the last tool call."""
        return "".join(self._chunks)[:MAX_FINAL_CHARS]

    def note(self, events: list[AgentEvent]) -> None:
        """Collect the text of the last message."""
        for each in events:
            if isinstance(each, ToolUse):
                self._clear()
            elif isinstance(each, AssistantText):
                self._add(each)

    def _clear(self) -> None:
        self._chunks.clear()
        self._length = 0

    def _add(self, event: AssistantText) -> None:
        if event.message != self._message:
            self._clear()
            self._message = event.message
        if self._length < MAX_FINAL_CHARS:
            self._chunks.append(event.text)
            self._length += len(event.text)


ERRORS = {NotFound.code: NOT_FOUND, InvalidRequest.code: INVALID_PARAMS}
"""The codes of JSON-RPC errors, by the codes of ours; the others are internal errors."""


CHANGES: Mapping[str, Literal["cleared", "compacted"]] = {
    "clear": "cleared",
    "compact": "compacted",
    "compress": "compacted",
}
"""The effects of agents' own commands on their conversation, which ACP does not report."""


class Acp:
    """A ``Harness`` of the Agent Client Protocol."""

    def __init__(
        self, beginning: Beginning, options: AcpOptions | None = None, client_version: str = "0"
    ) -> None:
        self._beginning = beginning
        self._options = options or AcpOptions()
        self._client_version = client_version
        self._phase: Literal["starting", "ready", "over"] = "starting"
        self._calls = AcpCalls(beginning.mcp_url)
        self._updates = Updates(self._options.own_title)
        self._accounting = Accounting()
        self._requests = AcpRequests()
        self._images = ResultImages(beginning.images)
        self._writes = Writes()
        self._runs = ApprovedCommands(beginning.cwd)
        self._turn: AcpTurn | None = None
        self._commands: list[SlashCommand] | None = None  # None: not announced yet
        self._has_prompted = False
        self._next_model: str | None = None
        self._conversation = AcpConversation(
            beginning, self._options, self._calls, self._ready, self._fail
        )
        self._needs_primer = bool(beginning.primer) and self._conversation.is_new

    # Frames of the agent.

    def begin(self) -> list[Output]:
        """Return the first frames; ``AgentReady`` or ``AgentFailed`` follows from ``receive``."""
        return self._conversation.begin(self._client_version)

    def receive(self, frame: Frame) -> list[Output]:
        """Take one frame of the agent."""
        if self._phase == "over":
            return []
        if is_nested_deeper(frame, MAX_DEPTH):
            frame = without_depth(frame)
        method = frame.get("method")
        if not isinstance(method, str):
            outputs = self._calls.answered(frame) if "method" not in frame else None
            outputs = [Emit(Unknown(kind="response", raw=frame))] if outputs is None else outputs
        elif "id" in frame:
            outputs = self._asked(frame, method)
        else:
            outputs = self._notified(method, mapping(frame.get("params")))
        return [*outputs, *self._start_turn()]

    def receive_cut(self, frame: Frame, size: int) -> list[Output]:
        """Take what is left of a frame of ``size`` bytes, which was larger than the limit."""
        if self._phase == "over":
            return []
        method, id_ = string(frame.get("method")), request_id(frame.get("id"))
        report: Output = Emit(TooLarge(kind=method[:MAX_NAME_CHARS] or "response", size=size))
        if method and id_ is not None and not self._requests.is_open(id_):
            reason = (
                f"the request has {size} bytes, more than a frame may have: send less at a time"
            )
            return [Write(error_response(id_, INVALID_PARAMS, reason)), report]
        # A permission without an input of its own would show this one, and cover what is cut.
        mapping(mapping(frame.get("params")).get("update")).pop("rawInput", None)
        return [report, *self.receive(frame)]

    def _notified(self, method: str, params: dict[str, Any]) -> list[Output]:
        if method == "session/update":
            return self._updated(params)
        asked = self._requests.with_id(request_id(params.get("requestId")))
        if method == "$/cancel_request" and asked is not None:
            return self._cancelled(asked)
        return [Emit(Unknown(kind=method[:MAX_NAME_CHARS], raw=params))]

    def _cancelled(self, asked: AcpRequest) -> list[Output]:
        """Take the agent's cancellation of a request of its own."""
        if asked.opened is not None:
            return self._withdraw(asked, "the agent withdrew it", is_by_agent=True)
        if asked.method not in CANCELLABLE:
            return []  # it is about to be answered, and its effect cannot be undone
        self._requests.close(asked)
        return [Write(cancelled(asked.id, asked.kind, is_by_agent=True)), StopServing(asked.key)]

    def _updated(self, params: dict[str, Any]) -> list[Output]:
        session, update = thread_of(params)
        kind = string(update.get("sessionUpdate"))
        if not update or (self._conversation.id and session != self._conversation.id):
            return [Emit(Unknown(kind="session/update", raw=params))]
        if self._conversation.is_replayed and kind in REPLAYED:
            return []
        if not self._has_prompted and self._conversation.is_repetition(update):
            return self._conversation.take(update)
        if self._conversation.mode_in(update):
            return self._conversation.take(update)
        if kind == "usage_update":
            return [Emit(self._accounting.update(update))]
        if kind == "available_commands_update":
            self._commands = read_commands(update.get("availableCommands"))
            offered = with_project(self._commands, self._beginning.project_commands)
            return [Emit(CommandsChanged(commands=offered))]
        update, kept = self._images.of_acp(update)
        events = self._updates.take(update)
        if self._turn is not None and self._turn.is_sent and is_failure(update):
            self._turn.has_failed = True
        if self._turn is not None and not is_notice(update):
            self._turn.note(events)
        return [*kept, *_emitted(events), *self._conversation.take(update)]

    # Requests of the agent: each gets exactly one response.

    def _asked(self, frame: Frame, method: str) -> list[Output]:
        id_, params = request_id(frame.get("id")), frame.get("params")
        unknown: Output = Emit(Unknown(kind=method[:MAX_NAME_CHARS], raw=frame))
        if id_ is None or self._requests.is_open(id_):
            # A response to a repeated id could be taken for the answer to the open request.
            return [unknown]
        kind = KINDS.get(method)
        if kind is None:
            return [Write(error_response(id_, METHOD_NOT_FOUND, "Method not found")), unknown]
        if not isinstance(params, dict):
            return [Write(error_response(id_, INVALID_PARAMS, "params is no object")), unknown]
        if self._requests.is_full():
            return [Write(cancelled(id_, kind)), unknown]
        session = self._conversation.id  # an agent can read files before it has answered with it
        is_of_session = method.startswith(("fs/", "terminal/"))
        if session and is_of_session and params.get("sessionId") != session:
            return [Write(error_response(id_, INVALID_PARAMS, "sessionId is unknown")), unknown]
        if kind == "serve" or self._is_approved(kind, params):
            return self._serve(id_, method, params)
        return self._ask_person(id_, method, params)

    def _is_approved(self, kind: Kind, params: dict[str, Any]) -> bool:
        if self._turn is not None and self._turn.is_cancelled:
            return False
        if kind == "write":
            return self._writes.take(params)
        return kind == "run" and self._runs.take(params)

    def _serve(self, id_: Id, method: str, params: dict[str, Any]) -> list[Output]:
        key = self._requests.next_key()
        self._requests.add(AcpRequest(id=id_, key=key, kind="serve", method=method))
        return [Serve(id=key, method=method, params=params)]

    def _ask_person(self, id_: Id, method: str, params: dict[str, Any]) -> list[Output]:
        kind = KINDS[method]
        if self._turn is not None and self._turn.is_cancelled:
            return [Write(cancelled(id_, kind))]  # sent before the agent read the cancellation
        key = self._requests.next_key()
        problem = f"{method} has a field of a wrong type"
        try:
            events, opened = self._request(method, key, params)
        except InvalidRequest as error:
            events, opened, problem = [], None, str(error)
        if opened is None:
            refusal = error_response(id_, INVALID_PARAMS, problem)
            return [Write(refusal), Emit(Unknown(kind=method, raw=params))]
        asked = AcpRequest(id=id_, key=key, kind=kind, method=method, opened=opened, params=params)
        self._requests.add(asked)
        return _emitted([*events, opened])

    def _request(
        self, method: str, key: str, params: dict[str, Any]
    ) -> tuple[list[AgentEvent], RequestOpened | None]:
        if method == "elicitation/create":
            return [], elicitation_request(key, params)
        if KINDS[method] == "write":
            return [], write_request(key, params)
        if KINDS[method] == "run":
            return [], run_request(key, params)
        call, options = params.get("toolCall"), params.get("options")
        if not isinstance(call, dict) or not isinstance(options, list):
            return [], None
        events = self._updates.describe(call)
        known = self._updates.known(string(call.get("toolCallId")))
        return events, permission_request(key, params, known, self._options)

    def answer(self, request: str, answer: RequestAnswer) -> list[Output]:
        """Answer an open request. Returns ``OrderRefused`` if it was withdrawn or does not fit."""
        asked = self._requests.get(request)
        if asked is None or asked.opened is None:
            return [OrderRefused(f"request {request!r} is not open: it was answered or withdrawn")]
        if asked.kind in ("write", "run") and isinstance(answer, PermissionAnswer):
            self._requests.close(asked)
            written = self._answer_service(asked, answer)
        else:
            result = self._result(asked.opened, answer)
            if isinstance(result, OrderRefused):
                return [result]
            self._requests.close(asked)
            written = [Write(response(asked.id, result))]
            is_allowed = isinstance(answer, PermissionAnswer) and answer.kind.startswith("allow")
            if is_allowed and asked.opened.tool_kind == "plan":
                self._conversation.leave_plan()
            elif is_allowed:
                self._approve(asked, asked.opened)
        match answer:
            case PermissionAnswer(kind="deny" | "deny_session", interrupt=True):
                return [*written, *self.interrupt()]
        return written

    def _approve(self, asked: AcpRequest, opened: RequestOpened) -> None:
        """Note the command and the changes that an approved request has shown.

        Its kind has to fit: the policy approves some kinds without a person.
        """
        if opened.tool.startswith("mcp__"):
            return
        if opened.tool_kind in ("edit", "other"):
            self._writes.approve(changes_shown(asked.params.get("toolCall"), opened.input))
        if opened.tool_kind in ("execute", "other"):
            self._runs.approve(opened.input)

    def _answer_service(self, asked: AcpRequest, answer: PermissionAnswer) -> list[Output]:
        is_run = asked.kind == "run"
        match answer.kind:
            case "allow_session" if is_run:
                self._runs.approve_for_session(asked.params)
            case "allow_session":
                self._writes.approve_all()
            case "deny" | "deny_session":
                reason = answer.message or f"the {'command' if is_run else 'write'} was refused"
                return [Write(error_response(asked.id, INTERNAL_ERROR, reason))]
        return self._serve(asked.id, asked.method, asked.params)

    def _result(
        self, opened: RequestOpened, answer: RequestAnswer
    ) -> dict[str, Any] | OrderRefused:
        match answer:
            case PermissionAnswer() if opened.kind == "permission":
                return permission_result(opened, answer, self._options.session_options)
            case ElicitationAnswer() if opened.kind == "elicitation":
                return elicitation_result(opened, answer)
        return OrderRefused(
            f"request {opened.id!r} is of the kind {opened.kind!r}: answer it as such"
        )

    def served(
        self, serve: str, result: Mapping[str, Any] | None, error: str, code: str = ""
    ) -> list[Output]:
        """Answer a ``Serve``: with ``result``, or with ``error`` if that is None."""
        asked = self._requests.get(serve)
        if asked is None or asked.kind != "serve":
            return [OrderRefused(f"the agent does not wait for an answer to {serve!r}")]
        self._requests.close(asked)
        if result is None:
            return [Write(error_response(asked.id, ERRORS.get(code, INTERNAL_ERROR), error))]
        if asked.method == "terminal/create":
            self._updates.own_terminal(string(result.get("terminalId")))
        return [Write(response(asked.id, result))]

    def _withdraw(
        self, asked: AcpRequest, reason: str, *, is_by_agent: bool = False
    ) -> list[Output]:
        self._requests.close(asked)
        withdrawn = RequestWithdrawn(id=asked.key, reason=reason)
        answer = cancelled(asked.id, asked.kind, is_by_agent=is_by_agent)
        return [Write(answer), Emit(withdrawn)]

    def _withdraw_all(self, reason: str) -> list[Output]:
        return [
            output
            for asked in self._requests.of_people()
            for output in self._withdraw(asked, reason)
        ]

    # Turns: one at a time, because agents cancel or mix them otherwise.

    def send(
        self, uuid: str, text: str, command: str = "", images: Sequence[SentImage] = ()
    ) -> list[Output]:
        """Send a turn's text as one user frame. ``Result.messages`` will name ``uuid``."""
        if self._phase != "ready":
            return [OrderRefused("the agent takes no turn: it has not started, or it has ended")]
        if self._turn is not None:
            return [OrderRefused("the agent has a turn: send the next one after its result")]
        if images and not self._conversation.abilities.takes_images:
            name = self._conversation.abilities.name
            return [OrderRefused(f"{name} takes no images: send their paths as text")]
        self._turn = AcpTurn(uuid, text, command, images)
        return self._start_turn()

    def _start_turn(self) -> list[Output]:
        """Write the prompt of the turn, unless it has been written or has to wait."""
        turn = self._turn
        if self._phase != "ready" or turn is None or turn.is_sent:
            return []
        # They are announced after the answer to session/new: a command waits for that.
        if self._conversation.holds_turns or (turn.command and self._commands is None):
            return []
        turn.is_sent = self._has_prompted = True
        written, sent = sent_as(
            turn.text, turn.command, self._commands, self._beginning.project_commands
        )
        texts = [written]
        # Most agents look for a command in the first block, so the primer waits for another turn.
        if self._needs_primer and (sent is None or sent.as_text or sent.of_project):
            primer = self._beginning.primer
            texts = [as_text(as_plain(primer, self._options.mentions, self._commands)), written]
            self._needs_primer = False
        blocks = [{"type": "text", "text": each} for each in texts]
        blocks += [
            {"type": "image", "mimeType": each.media_type, "data": each.base64}
            for each in turn.images
        ]
        params = {"sessionId": self._conversation.id, "prompt": blocks}
        turn.command_sent = "" if sent is None or sent.as_text or sent.of_project else sent.name
        prompt = self._calls.make("session/prompt", params, self._turn_ended)
        return [prompt, *([] if sent is None else [Emit(sent)])]

    def _turn_ended(self, reply: AcpReply) -> list[Output]:
        turn, self._turn = self._turn, None
        self._writes.end_turn()
        self._runs.end_turn()
        outputs = self._withdraw_all("the turn ended")
        outputs += _emitted(self._updates.end_turn())
        if usage := self._accounting.result(reply.result):
            outputs.append(Emit(usage))
        reason = string(reply.result.get("stopReason")) or "no stop reason"
        if turn is not None and turn.has_failed and reason == "end_turn":
            reason = "error"
        if reply.error is not None:
            reason = "auth_required" if reply.code == AUTH_REQUIRED else "error"
        result = Result(
            messages=[turn.uuid] if turn else [],
            ok=reply.error is None and reason == "end_turn",
            reason=reason,
            text=(turn.final_text if turn else "") if reply.error is None else reply.error,
        )
        if turn is not None and result.ok and (how := CHANGES.get(turn.command_sent)):
            # Its conversation keeps its id, also after an agent's own clear.
            self._needs_primer |= how == "cleared" and bool(self._beginning.primer)
            changed = ConversationChanged(how=how, conversation=self._conversation.id)
            outputs.append(Emit(changed))
        model, self._next_model = self._next_model, None
        if reply.error is not None and reply.code == AUTH_REQUIRED:
            return [*outputs, Emit(result), *self._conversation.needs_login(reply.error)]
        return [*outputs, Emit(result), *(self.set_model(model) if model is not None else [])]

    def interrupt(self) -> list[Output]:
        """Interrupt the current turn; without one it does nothing.

        The cancellation is written before the answers to open requests. Three agents end the turn
        only after these answers, and claude-agent-acp ends it as a success if they come first.
        """
        turn = self._turn
        if turn is None:
            return []
        if not turn.is_sent:
            self._turn = None
            return [Emit(Result(messages=[turn.uuid], ok=False, reason="cancelled"))]
        turn.is_cancelled = True
        cancel = notification("session/cancel", {"sessionId": self._conversation.id})
        return [Write(cancel), *self._withdraw_all("the turn was interrupted")]

    # Settings, and the ends of the process.

    def set_permission(self, permission: Permission) -> list[Output]:
        """Set the permission from now on."""
        if self._phase != "ready":
            return [
                OrderRefused(
                    "the permission cannot be set: the agent has not started, or has ended"
                )
            ]
        self._writes.close()
        self._runs.close()
        return self._conversation.set_permission(permission)

    def set_model(self, model: str) -> list[Output]:
        """Set the model from the next turn on."""
        if self._phase != "ready":
            return [
                OrderRefused("the model cannot be set: the agent has not started, or has ended")
            ]
        if refusal := self._conversation.refuse_model(model):
            return [OrderRefused(refusal)]
        if self._turn is not None and self._turn.is_sent:
            self._next_model = model
            return [SettingChanged("model")]
        return self._conversation.set_model(model)

    def refuse_effort(self, effort: str, model: str | None = None) -> str | None:
        """Return why an effort cannot be set, in one sentence; None if it can.

        The agent lists those of its current model only: others are checked at the start with it.
        """
        is_other = model not in (None, self._conversation.settings.model)
        return None if is_other else self._conversation.refuse_effort(effort)

    def refuse_thinking(self, thinking: str, model: str | None = None) -> str | None:
        """Return why thinking cannot be set, in one sentence: ACP has no setting for it."""
        return self._conversation.refuse_thinking(thinking)

    def replay_looked_at(self) -> list[Output] | None:
        """Send a held turn if the agent repeats its conversation no longer; None if it may."""
        if self._phase == "over":
            return []
        return self._start_turn() if self._conversation.replay_looked_at() else None

    def mcp_connected(self) -> list[Output]:
        """Note that the agent has listed the tools of our MCP server: a held turn is sent."""
        if self._phase == "over":
            return []
        return [*self._conversation.mcp_connected(), *self._start_turn()]

    def mcp_is_late(self) -> list[Output]:
        """Note that the agent had time enough to connect: a held turn is sent, and it is shown."""
        if self._phase == "over":
            return []
        self._commands = self._commands or []  # it had time enough to announce them, too
        return [*self._conversation.mcp_is_late(), *self._start_turn()]

    def ended(self) -> list[Output]:
        """Note the end of the process: open requests are withdrawn."""
        self._phase = "over"
        open_ = self._requests.of_people()
        self._requests.clear()
        reason = "the agent's process ended"
        return [Emit(RequestWithdrawn(id=each.key, reason=reason)) for each in open_]

    def _ready(self) -> list[Output]:
        self._phase = "ready"
        abilities = self._conversation.abilities
        able = Capabilities(
            can_resume=abilities.resumes or abilities.loads,
            can_fork=abilities.forks,
            reports_cost=self._options.reports_cost,
            sets_model=self._conversation.settings.sets_model(),
            takes_images=abilities.takes_images,
        )
        return [AgentReady(conversation=self._conversation.id, capabilities=able)]

    def _fail(
        self,
        reason: str,
        kind: Literal["conversation", "login", "other"] = "other",
        logins: tuple[LoginMethod, ...] = (),
    ) -> list[Output]:
        self._phase = "over"
        sentence = f"{self._conversation.abilities.name} {reason}"
        failed = AgentFailed(reason=sentence, kind=kind, logins=logins)
        withdrawn = self._withdraw_all("the agent cannot be used")
        self._requests.clear()
        return [*withdrawn, failed]


def _emitted(events: list[AgentEvent]) -> list[Output]:
    return [Emit(each) for each in events]

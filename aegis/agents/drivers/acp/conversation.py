"""The conversation of one process: how it is opened, its settings, and its asking mode. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Protocol

import attrs

from aegis.agents.drivers.acp.frames import (
    AUTH_REQUIRED,
    AcpReply,
    items,
    mapping,
    name,
    reply_in,
    request,
    string,
)
from aegis.agents.drivers.acp.options import (
    HARMLESS_MODES,
    AcpOptions,
    Impossible,
    ReportedSettings,
    SettingChange,
    Step,
    WantedSettings,
    effort_step,
    is_set,
    mode_step,
    model_step,
    next_step,
    read_settings,
    thinking_refusal,
)
from aegis.agents.drivers.acp.updates import REPLAYED, block_text
from aegis.agents.drivers.harness import (
    Beginning,
    Emit,
    Frame,
    LoginMethod,
    OrderRefused,
    Output,
    Permission,
    SettingChanged,
    Write,
)
from aegis.protocol.agent_events import ModelsOffered, OfferedModel, SystemInit

HIDDEN = "\u2039secret\u203a"

Handler = Callable[[AcpReply], list[Output]]
"""Takes the response to a request."""


class AcpCalls:
    """The requests of ours that the agent has not answered yet.

    ``secret`` is hidden in errors: some agents repeat the parameters of a failed request.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._last_id = 0
        self._handlers: dict[int, Handler] = {}

    def make(self, method: str, params: Mapping[str, Any], then: Handler) -> Write:
        """Return the frame of a request; ``then`` takes its response."""
        self._last_id += 1
        self._handlers[self._last_id] = then
        return Write(request(self._last_id, method, params))

    def answered(self, frame: Frame) -> list[Output] | None:
        """Take a response; None if it answers no open request."""
        id_ = frame.get("id")
        # True == 1 in Python, so the type is compared too.
        handler = self._handlers.pop(id_, None) if type(id_) is int else None
        return handler(self._without_secret(reply_in(frame))) if handler else None

    def _without_secret(self, reply: AcpReply) -> AcpReply:
        if not self._secret or reply.error is None:
            return reply
        return attrs.evolve(reply, error=reply.error.replace(self._secret, HIDDEN))


PROTOCOL = 1

MCP_SERVER = "aegis"
"""The name of our MCP server, as the agent sees it."""


@attrs.frozen(kw_only=True)
class Abilities:
    """The abilities that an agent reports in its answer to initialize."""

    name: str = "the agent"
    version: str = ""
    protocol: object = None
    loads: bool = False
    resumes: bool = False
    forks: bool = False
    takes_http_mcp: bool = False
    takes_images: bool = False
    logins: tuple[LoginMethod, ...] = ()


def initialize_params(client_version: str, options: AcpOptions) -> dict[str, Any]:
    """Return the parameters of initialize: everything that is served here."""
    return {
        "protocolVersion": PROTOCOL,
        "clientCapabilities": {
            "fs": {"readTextFile": options.reads_files, "writeTextFile": True},
            "terminal": True,
            "session": {"configOptions": {"boolean": {}}},
            "elicitation": {"form": {}, "url": {}},
            "auth": {"terminal": True},
        },
        "clientInfo": {"name": "aegis", "title": "Aegis", "version": client_version},
    }


def read_abilities(result: dict[str, Any]) -> Abilities:
    """Return the abilities in the result of initialize."""
    info = mapping(result.get("agentInfo"))
    able = mapping(result.get("agentCapabilities"))
    sessions = mapping(able.get("sessionCapabilities"))
    return Abilities(
        name=name(info.get("title")) or name(info.get("name")) or "the agent",
        version=name(info.get("version")),
        protocol=result.get("protocolVersion"),
        loads=able.get("loadSession") is True,
        resumes=_is_announced(sessions.get("resume")),
        forks=_is_announced(sessions.get("fork")),
        takes_http_mcp=mapping(able.get("mcpCapabilities")).get("http") is True,
        takes_images=mapping(able.get("promptCapabilities")).get("image") is True,
        logins=tuple(_logins(result.get("authMethods"))),
    )


def _is_announced(value: object) -> bool:
    return value is True or isinstance(value, dict)


def _logins(methods: object) -> list[LoginMethod]:
    found = []
    for each in map(mapping, items(methods, 32)):
        if id_ := name(each.get("id")):
            label = name(each.get("name")) or id_
            found.append(LoginMethod(id=id_, name=label, arguments=_login_arguments(each)))
    return found


def _login_arguments(method: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the arguments of a login in a terminal; None for another login.

    kimi has them in ``_meta``, beside a command. Only the agent's own program is ever run for a
    login, so the command is not read.
    """
    if method.get("type") == "terminal":
        arguments = method.get("args")
    else:
        terminal = mapping(mapping(method.get("_meta")).get("terminal-auth"))
        if not terminal:
            return None
        arguments = terminal.get("args")
    return tuple(each for each in items(arguments, 64) if isinstance(each, str))


def session_params(beginning: Beginning, options: AcpOptions) -> dict[str, Any]:
    """Return the working directory and the MCP server, as all ways to open a session take them."""
    server = {"type": "http", "name": MCP_SERVER, "url": beginning.mcp_url, "headers": []}
    is_given = bool(beginning.mcp_url) and not options.server_in_file
    cwd = beginning.cwd + options.cwd_end
    params = {"cwd": cwd, "mcpServers": [server] if is_given else []}
    return {**params, "_meta": dict(options.meta)} if options.meta else params


def opening_method(beginning: Beginning, abilities: Abilities) -> str | None:
    """Return how the conversation is opened; None: the agent cannot continue one."""
    if beginning.conversation is None:
        return "session/new"
    if beginning.fork:
        return "session/fork" if abilities.forks else None
    if abilities.resumes:
        return "session/resume"
    return "session/load" if abilities.loads else None


MAX_ID_CHARS = 1000

MAX_REPLAY_LOOKS = 40
"""How often a turn is held because the agent still repeats a loaded conversation: 10 s."""

MAX_MODE_RESETS = 3
"""How often an agent may leave its asking mode by itself before it is ended."""

STARTUP_CALL = f"mcp_startup.{MCP_SERVER}"
"""The start of the id of the tool call by which codex reports how our MCP server started."""


class Fail(Protocol):
    """Ends the machine, with a sentence that begins with the agent's name."""

    def __call__(
        self,
        reason: str,
        kind: Literal["conversation", "login", "other"] = "other",
        logins: tuple[LoginMethod, ...] = (),
    ) -> list[Output]: ...


class AcpConversation:
    """The conversation of one process; ``ready`` is called when it can take a turn."""

    def __init__(
        self,
        beginning: Beginning,
        options: AcpOptions,
        calls: AcpCalls,
        ready: Callable[[], list[Output]],
        fail: Fail,
    ) -> None:
        self._beginning = beginning
        self._options = options
        self._calls = calls
        self._then_ready = ready
        self._fail = fail
        self._permission: Permission = beginning.permission
        self._method = ""
        self._is_logged_in = False
        self._changes = 0
        self._mode_resets = 0
        self._mcp = ""
        self._mcp_is_late = False
        self._is_draining = False
        self._repeated = self._looks = 0
        self._described: SystemInit | None = None
        self._offered: list[OfferedModel] = []
        self.id = ""
        self.abilities = Abilities()
        self.settings = ReportedSettings()

    @property
    def is_new(self) -> bool:
        """Whether the agent has not seen the primer, or that of another session."""
        beginning = self._beginning
        return beginning.conversation is None or beginning.fork or beginning.is_unprimed

    @property
    def is_replayed(self) -> bool:
        """Whether updates repeat an old conversation: until the request to open it is answered."""
        return self._repeats and not self.id

    @property
    def _repeats(self) -> bool:
        return self._method in ("session/load", "session/fork")  # a fork: opencode

    def is_repetition(self, update: dict[str, Any]) -> bool:
        """Whether an update before the first prompt repeats an old conversation.

        Some agents (gemini) continue with that after their answer to session/load.
        """
        is_one = self._repeats and update.get("sessionUpdate") in REPLAYED
        self._repeated += is_one
        return is_one

    def replay_looked_at(self) -> bool:
        """Return whether no repetition came since the last look, or it has lasted too long."""
        self._looks += 1
        is_over = not self._repeated or self._looks >= MAX_REPLAY_LOOKS
        self._repeated = 0
        if is_over:
            self._is_draining = False
        return is_over

    @property
    def holds_turns(self) -> bool:
        """Whether a turn has to wait: for a setting, a repetition, or for our MCP server."""
        waits = self._options.waits_for_mcp and bool(self._beginning.mcp_url) and not self._mcp
        is_starting = waits or self._mcp == "starting"
        is_busy = bool(self._changes) or self._is_draining
        return is_busy or (is_starting and not self._mcp_is_late)

    def begin(self, client_version: str) -> list[Output]:
        """Return the first frame."""
        params = initialize_params(client_version, self._options)
        return [self._calls.make("initialize", params, self._initialized)]

    def _initialized(self, reply: AcpReply) -> list[Output]:
        if reply.error is not None:
            return self._fail(f"did not start: {reply.error}; update it, or log in to it")
        self.abilities = read_abilities(reply.result)
        spoken = self.abilities.protocol
        if type(spoken) is not int or spoken != PROTOCOL:
            return self._fail(
                "speaks another version of the Agent Client Protocol: install a release of it that "
                f"speaks version {PROTOCOL}"
            )
        needs_http = bool(self._beginning.mcp_url) and not self._options.server_in_file
        if needs_http and not self.abilities.takes_http_mcp:
            return self._fail(
                "takes no MCP server over HTTP, so it cannot use our tools: install a newer release"
            )
        return self._open()

    def _open(self) -> list[Output]:
        method = opening_method(self._beginning, self.abilities)
        if method is None:
            able = "copy" if self._beginning.fork else "continue"
            return self._fail(f"cannot {able} a conversation: begin a new one", "conversation")
        self._method = method
        params = session_params(self._beginning, self._options)
        if self._beginning.conversation is not None:
            params["sessionId"] = self._beginning.conversation
        return [self._calls.make(method, params, self._opened)]

    def _opened(self, reply: AcpReply) -> list[Output]:
        wanted = self._beginning.conversation
        if reply.error is not None:
            if reply.code == AUTH_REQUIRED:
                return self._log_in(reply.error)
            if wanted is None:
                return self._fail(f"began no conversation: {reply.error}; see its standard error")
            return self._not_continued(reply.error)
        given = string(reply.result.get("sessionId"))
        if self._method in ("session/new", "session/fork"):
            wanted = given
        if not 0 < len(wanted or "") <= MAX_ID_CHARS:
            return self._fail("gave its conversation no usable id: install another release of it")
        if given and given != wanted:
            return self._not_continued(f"it opened {given[:200]!r} instead")
        self.id = wanted or ""
        self._is_draining = self._repeats
        self.settings = read_settings(reply.result)
        return self._configure()

    def _not_continued(self, reason: str) -> list[Output]:
        return self._fail(
            f"did not continue the conversation {self._beginning.conversation!r}: {reason}; "
            "begin a new one",
            "conversation",
        )

    def _log_in(self, reason: str) -> list[Output]:
        """Authenticate, once; else a person has to log in."""
        method = self._login_method()
        if method and not self._is_logged_in:
            self._is_logged_in = True
            return [self._calls.make("authenticate", {"methodId": method}, self._logged_in)]
        return self.needs_login(reason)

    def _login_method(self) -> str:
        """Return the method to authenticate by; empty: a person has to choose one, or to act.

        The only one of an agent, if it needs no terminal, leaves nothing to choose.
        """
        logins = self.abilities.logins if self._options.uses_only_login else ()
        only = logins[0].id if len(logins) == 1 and logins[0].arguments is None else ""
        return self._beginning.login or self._options.auth or only

    def needs_login(self, reason: str) -> list[Output]:
        """Fail for want of a login, by a person."""
        logins = self.abilities.logins
        names = ", ".join(f"{each.id!r} ({each.name})" for each in logins) or "its own command"
        return self._fail(f"needs a login ({reason}): log in by {names}", "login", logins)

    def _logged_in(self, reply: AcpReply) -> list[Output]:
        return self._open() if reply.error is None else self._log_in(reply.error)

    def _wanted(self, permission: Permission) -> WantedSettings:
        is_plan = permission == "plan"
        plan_modes = (self._options.plan_mode,) if self._options.plan_mode else ()
        return WantedSettings(
            modes=plan_modes if is_plan else self._options.asking_modes,
            is_plan=is_plan,
            # A profile that allows everything is not harmed by an agent that asks nobody.
            needs_mode=self._options.needs_mode and permission != "full",
            model=self._beginning.model,
            effort=self._beginning.effort,
            extra=self._options.extra,
        )

    def _configure(self) -> list[Output]:
        """Change the next setting. Agents return to their defaults at new, load and resume."""
        step = next_step(self.settings, self._wanted(self._permission))
        thinking = self._beginning.thinking
        if thinking is not None and (why := thinking_refusal(self.settings, thinking)):
            return self._fail(why)
        match step:
            case Impossible(reason):
                return self._fail(reason)
            case SettingChange():
                return self._change(step, self._configured)
        self._described = self._description()
        return [Emit(self._described), *self._offer(), *self._then_ready()]

    def _configured(self, problem: str | None) -> list[Output]:
        return self._configure() if problem is None else self._fail(problem)

    def _change(
        self, change: SettingChange, then: Callable[[str | None], list[Output]]
    ) -> list[Output]:
        """Change a setting and read it back; ``then`` takes the problem, or None."""
        self._changes += 1
        if not change.option:  # the older methods answer nothing: a report in between decides
            self.settings = (
                attrs.evolve(self.settings, old_mode="")
                if change.subject == "mode"
                else attrs.evolve(self.settings, old_model="")
            )
        method, params = change.request(self.id)
        return [self._calls.make(method, params, partial(self._changed, change, then))]

    def _changed(
        self, change: SettingChange, then: Callable[[str | None], list[Output]], reply: AcpReply
    ) -> list[Output]:
        self._changes -= 1
        what = f"its {change.subject} to {change.value!r}"
        if reply.error is not None:
            return then(f"did not set {what}: {reply.error}; update the agent or the profile")
        self.settings = _applied(self.settings.with_options(reply.result), change)
        if not is_set(self.settings, change):
            return then(f"answered, but did not set {what}: update the agent or the profile")
        return then(None)

    def take(self, update: dict[str, Any]) -> list[Output]:
        """Note an update about modes, options or our MCP server; nothing else concerns it."""
        match string(update.get("sessionUpdate")):
            case "current_mode_update":
                mode = name(update.get("currentModeId"))
                self.settings = self.settings.with_mode(mode) if mode else self.settings
            case "config_option_update":
                self.settings = self.settings.with_options(update)
            case "tool_call" | "tool_call_update":
                self._note_startup(update)
            case "agent_message_chunk" if mode := self.mode_in(update):
                self.settings = self.settings.with_mode(mode)
            case _:
                return []
        return [*self._describe(), *self._keep_asking()]

    def mode_in(self, update: dict[str, Any]) -> str:
        """Return the mode that a message reports (gemini); empty: it is one of the model."""
        mark, text = self._options.mode_mark, block_text(update.get("content"))
        mode = text.removeprefix(mark) if mark and text.startswith(mark) else ""
        return mode if mode in self.settings.offered_modes() else ""

    def leave_plan(self) -> None:
        """Note that a person has approved the plan: the agent leaves its mode for plans."""
        if self._permission == "plan":
            self._permission = "ask"

    def _note_startup(self, update: dict[str, Any]) -> None:
        if string(update.get("toolCallId")).startswith(STARTUP_CALL):
            status = string(update.get("status"))
            self._mcp = {"completed": "connected", "failed": "failed"}.get(status, "starting")

    def mcp_connected(self) -> list[Output]:
        """Note that the agent has listed our tools."""
        self._mcp = "connected"
        return self._describe()

    def mcp_is_late(self) -> list[Output]:
        """Note that the agent has not listed our tools in time."""
        self._mcp_is_late = True
        if self._beginning.mcp_url and self._mcp in ("", "starting"):
            self._mcp = "not connected"
        return self._describe()

    def _description(self) -> SystemInit:
        return SystemInit(
            conversation=self.id,
            model=self.settings.model,
            mode=self.settings.mode,
            version=self.abilities.version,
            mcp_servers={MCP_SERVER: self._mcp} if self._mcp else {},
        )

    def _describe(self) -> list[Output]:
        """Report the conversation, and the models, if they have changed since it was ready."""
        if self._described is None:
            return []
        before, self._described = self._described, self._description()
        changed = [Emit(self._described)] if self._described != before else []
        return [*changed, *self._offer()]

    def _offer(self) -> list[Output]:
        before, self._offered = self._offered, self.settings.offered_models()
        return [Emit(ModelsOffered(models=self._offered))] if self._offered != before else []

    def _keep_asking(self) -> list[Output]:
        """Return to the asking mode if the agent left it, for example with a plan's approval."""
        wanted = self._wanted(self._permission)
        allowed = (*wanted.modes, *HARMLESS_MODES)
        if self._described is None or self._changes or self.settings.mode in allowed:
            return []
        step = mode_step(self.settings, wanted)
        if step is None or self._permission == "full":
            return []
        self._mode_resets += 1
        if isinstance(step, Impossible) or self._mode_resets > MAX_MODE_RESETS:
            return self._fail(
                f"left its asking mode for {self.settings.mode[:200]!r} by itself: start it again"
            )
        return self._change(step, self._kept)

    def _kept(self, problem: str | None) -> list[Output]:
        if problem is not None:
            return self._fail(problem)
        return [*self._describe(), *self._keep_asking()]  # not looked at while a change is open

    def set_permission(self, permission: Permission) -> list[Output]:
        """Set the permission: agents ask in all of them, and the policy answers."""
        step = mode_step(self.settings, self._wanted(permission))
        if isinstance(step, Impossible) and permission != "full":
            return [OrderRefused(f"{self.abilities.name} {step.reason}")]
        self._permission = permission
        if isinstance(step, SettingChange):
            return self._change(step, self._permission_set)
        return [SettingChanged("permission")]

    def _permission_set(self, problem: str | None) -> list[Output]:
        return [SettingChanged("permission", self._sentence(problem)), *self._kept(problem)]

    def refuse_model(self, model: str) -> str | None:
        """Return why the model cannot be set, in one sentence."""
        step: Step = model_step(self.settings, model)
        return self._sentence(step.reason) if isinstance(step, Impossible) else None

    def refuse_effort(self, effort: str) -> str | None:
        """Return why an effort cannot be set, in one sentence; None if it can."""
        step = effort_step(self.settings, effort)
        return self._sentence(step.reason) if isinstance(step, Impossible) else None

    def refuse_thinking(self, thinking: str) -> str | None:
        """Return why thinking cannot be set, in one sentence; None if it is as wanted."""
        return self._sentence(thinking_refusal(self.settings, thinking))

    def set_model(self, model: str) -> list[Output]:
        """Set the model."""
        step: Step = model_step(self.settings, model)
        if isinstance(step, SettingChange):
            return self._change(step, self._model_set)
        return self._model_set(None if step is None else step.reason)

    def _model_set(self, problem: str | None) -> list[Output]:
        changed = SettingChanged("model", self._sentence(problem))
        described = self._describe() if problem is None else []
        return [*described, changed, *self._keep_asking()]

    def _sentence(self, problem: str | None) -> str | None:
        return None if problem is None else f"{self.abilities.name} {problem}"


def _applied(settings: ReportedSettings, change: SettingChange) -> ReportedSettings:
    """Return the settings after an older method succeeded, unless the agent reported others."""
    if change.option:
        return settings
    if change.subject == "mode":
        return settings if settings.old_mode else settings.with_mode(str(change.value))
    if settings.old_model:
        return settings
    return attrs.evolve(settings, old_model=str(change.value))


def thread_of(params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the session id and the update of a session/update."""
    return string(params.get("sessionId")), mapping(params.get("update"))

"""``EditorAgent``: the methods that an editor calls."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import attrs
import trio

from aegis import __version__
from aegis.acp.asking import EditorQuestions
from aegis.acp.choices import DEFAULT_EFFORT, MODES, is_permission
from aegis.acp.prompts import prompt_content
from aegis.acp.thread import EditorPrompt, EditorThread
from aegis.acp.updates import notice
from aegis.acp.wire import INVALID_REQUEST, PARSE_ERROR, AcpRefused, EditorWire, contained
from aegis.agents.drivers.acp.frames import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    Id,
    mapping,
    request_id,
    string,
)
from aegis.client.client import Client, connect
from aegis.client.errors import ClientError, CommandFailed, ConnectionLost, NoDaemon
from aegis.client.stream_kinds import Gap
from aegis.json_bounds import has_too_many_keys, read_json
from aegis.protocol.agent_streams import AgentsItem
from aegis.protocol.agents import AgentInfo, ProfileInfo

PATIENCE_S = 10.0
"""Seconds that a call waits for a connection to the daemon."""

GONE_S = 30.0
"""Seconds without a daemon after which prompts are answered with an error."""

MAX_CALLS = 64
"""Calls of the editor that are carried out at once."""

GRACE_S = 1.0
"""Seconds in which calls are answered after the end of the input."""

PAGE = 100
"""Sessions in one answer to ``session/list``."""

MAX_ID_CHARS = 200

AGAIN_S = 0.5

DEFECT = "the call failed by a defect, which standard error of aegis-actors acp shows"

CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": False, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
}

Result = dict[str, Any]


@attrs.frozen(kw_only=True)
class EditorSettings:
    """The daemon of ``root``; ``handle`` or ``profile`` of the sessions that an editor asks for.

    ``wording`` puts the sentence of a refusal into the words of the command line.
    """

    root: str
    handle: str | None
    profile: str | None
    wording: Callable[[str], str]


class EditorAgent:
    """An ACP agent for one editor; its tasks run in ``nursery``."""

    def __init__(self, settings: EditorSettings, wire: EditorWire, nursery: trio.Nursery) -> None:
        self._settings = settings
        self._wire = wire
        self._nursery = nursery
        self._is_initialized = False
        self._threads: dict[str, EditorThread] = {}
        self._left: list[EditorThread] = []  # closed, with cancels that the daemon did not get
        self._connecting = trio.Lock()
        self._client: Client | None = None
        self._questions: EditorQuestions | None = None
        self._profiles: list[ProfileInfo] = []
        self._places = trio.CapacityLimiter(MAX_CALLS)
        self._methods: dict[str, Callable[[Result], Awaitable[Result]]] = {
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    async def serve(self) -> None:
        """Take the lines of the editor until its stream ends."""
        async for line in self._wire.lines():
            try:
                frame = _frame(line)
            except AcpRefused as error:
                await self._wire.refuse(None, error)
                continue
            if frame is not None:
                with contained():
                    await self._take(frame)
        # The calls before the end are answered.
        with trio.move_on_after(GRACE_S):
            for _ in range(MAX_CALLS):
                await self._places.acquire_on_behalf_of(object())

    async def _take(self, frame: dict[str, Any]) -> None:
        method = frame.get("method")
        if method is None and ("result" in frame or "error" in frame):
            self._wire.take_reply(frame)
            return
        id_ = request_id(frame.get("id"))
        params = mapping(frame.get("params"))
        if not isinstance(method, str) or ("id" in frame and id_ is None):
            wrong = "a call needs a method, and an id that is a number or a text"
            await self._wire.refuse(id_, AcpRefused(INVALID_REQUEST, wrong))
        else:
            # Tasks start in any order, so the order of prompts and cancels is noted before.
            try:
                rest = self._begun_call(id_, method, params)
            except AcpRefused as error:
                await self._wire.refuse(id_, error)
                return
            await self._places.acquire_on_behalf_of(place := object())
            self._nursery.start_soon(self._call, id_, rest, place)

    def _begun_call(
        self, id_: Id | None, method: str, params: Result
    ) -> Callable[[], Awaitable[None]]:
        """Note a prompt or a cancel, and return what is left to do. Raises ``AcpRefused``."""
        if id_ is None:
            return partial(self._withdraw, self._cancelled(method, params))
        if method == "session/prompt" and self._is_initialized:
            thread = self._thread(params)
            thread.admit(id_, prompt_content(params.get("prompt")))
            return thread.send_next
        return partial(self._carry_out, id_, method, params)

    def _cancelled(
        self, method: str, params: Result
    ) -> list[tuple[EditorThread, list[EditorPrompt]]]:
        """Note which prompts a notification cancels, and return them."""
        if method == "session/cancel":
            thread = self._threads.get(string(params.get("sessionId")))
            return [] if thread is None else [(thread, thread.cancel())]
        id_ = request_id(params.get("requestId")) if method == "$/cancel_request" else None
        threads = [*self._threads.values()] if id_ is not None else []
        return [(each, each.cancel(id_)) for each in threads]

    async def _withdraw(self, cancelled: list[tuple[EditorThread, list[EditorPrompt]]]) -> None:
        for thread, prompts in cancelled:
            await thread.withdraw(prompts)

    async def _call(
        self, id_: Id | None, rest: Callable[[], Awaitable[None]], place: object
    ) -> None:
        is_done = False
        try:
            with contained():
                await rest()
                is_done = True
            if not is_done and id_ is not None:
                await self._wire.refuse(id_, AcpRefused(INTERNAL_ERROR, DEFECT))
        except AcpRefused as error:
            await self._wire.refuse(id_, error)
        except ClientError as error:
            await self._wire.refuse(id_, self._refused(error))
        finally:
            self._places.release_on_behalf_of(place)

    def _refused(self, error: ClientError) -> AcpRefused:
        is_wrong = isinstance(error, CommandFailed) and error.code == "invalid_request"
        is_missing = isinstance(error, CommandFailed) and error.code == "not_found"
        code = INVALID_PARAMS if is_wrong else NOT_FOUND if is_missing else INTERNAL_ERROR
        return AcpRefused(code, self._settings.wording(str(error)))

    async def _carry_out(self, id_: Id, method: str, params: Result) -> None:
        if method == "initialize":
            self._is_initialized = True
            await self._wire.respond(id_, _initialized())
        elif not self._is_initialized:
            raise AcpRefused(INVALID_REQUEST, f"call initialize before {method[:80]!r}")
        elif method == "authenticate":
            await self._wire.respond(id_, {})
        elif (carry_out := self._methods.get(method)) is not None:
            result = await carry_out(params)
            await self._wire.respond(id_, result)
            if method in ("session/new", "session/load", "session/resume"):
                session = result.get("sessionId") or string(params.get("sessionId"))
                try:
                    with contained():
                        await self._begun(session, is_replayed=method == "session/new")
                except ClientError:
                    traceback.print_exc()  # the call is answered
        else:
            raise AcpRefused(METHOD_NOT_FOUND, f"there is no method {method[:80]!r}")

    # Sessions.

    async def _new(self, params: Result) -> Result:
        cwd = params.get("cwd")
        if not isinstance(cwd, str) or not cwd.startswith("/"):
            raise AcpRefused(INVALID_PARAMS, "cwd must be an absolute path")
        client = await self._connected()
        if self._settings.handle is not None:
            info: AgentInfo = await client.agents.show(self._settings.handle)
        else:
            info = await client.agents.spawn(profile=self._settings.profile, directory=cwd)
        thread = self._attach(info.id, info, client)
        return {"sessionId": thread.id, **thread.settings_of(thread.info)}

    async def _load(self, params: Result) -> Result:
        thread = await self._found(params)
        await thread.begin(is_replayed=True)
        return thread.settings_of(thread.info)

    async def _resume(self, params: Result) -> Result:
        thread = await self._found(params)
        await thread.begin(is_replayed=False)
        return thread.settings_of(thread.info)

    async def _begun(self, session: str, *, is_replayed: bool) -> None:
        """Send what belongs behind the answer that names the session: editors drop it before."""
        thread = self._threads.get(session)
        while thread is not None and self._threads.get(session) is thread:
            try:
                if is_replayed:
                    await thread.begin(is_replayed=True)
                is_replayed = False
                await thread.announce()
            except (ConnectionLost, NoDaemon):
                pass
            except CommandFailed as error:
                if error.code == "not_found":
                    return  # a closed one has nothing to announce
                if error.code not in ("unavailable", "busy"):
                    await thread.update(notice(self._settings.wording(str(error))))
                    return
            else:
                if self._questions is not None:
                    self._questions.show(thread)
                return
            await trio.sleep(AGAIN_S)

    async def _found(self, params: Result) -> EditorThread:
        """Return the thread of a session that the editor names."""
        wanted = params.get("sessionId")
        if not isinstance(wanted, str) or not 0 < len(wanted) <= MAX_ID_CHARS:
            raise AcpRefused(INVALID_PARAMS, "sessionId must be the id of a session")
        client = await self._connected()
        return self._attach(wanted, await self._session(client, wanted), client)

    async def _session(self, client: Client, wanted: str) -> AgentInfo:
        try:
            return await client.agents.show(wanted)  # its handle, or an earlier one
        except CommandFailed as error:
            if error.code not in ("not_found", "invalid_request"):
                raise
        listed = (await client.agents.list(closed=True)).result
        found = next((each for each in listed if each.id == wanted), None)
        if found is not None:
            return found
        raise AcpRefused(
            NOT_FOUND,
            f"there is no session {wanted[:80]!r}: aegis-actors agent list --closed lists them",
        )

    def _attach(self, id_: str, info: AgentInfo, client: Client) -> EditorThread:
        if info.program is not None:
            raise AcpRefused(
                INVALID_PARAMS,
                f"{info.handle} is a terminal agent and takes no prompts: "
                f"aegis-actors term attach {info.program.terminal}",
            )
        thread = self._threads.get(id_)
        if thread is None:
            thread = self._threads[id_] = EditorThread(
                id_,
                info,
                client,
                self._wire,
                self._nursery,
                self._settings.wording,
                self._profiles,
            )
        thread.open(info)
        return thread

    def _thread(self, params: Result) -> EditorThread:
        wanted = string(params.get("sessionId"))
        thread = self._threads.get(wanted)
        if thread is None:
            raise AcpRefused(
                NOT_FOUND, f"session {wanted[:80]!r} is not open here: call session/load first"
            )
        return thread

    def _threads_of(self, session: str) -> list[EditorThread]:
        return [each for each in self._threads.values() if each.info.id == session]

    async def _close(self, params: Result) -> Result:
        """Let go of a thread; the session lives on."""
        thread = self._thread(params)
        del self._threads[thread.id]
        await thread.leave()
        if thread.has_cancels:
            self._left.append(thread)
            self._nursery.start_soon(self._again)
        if self._questions is not None:
            self._questions.hide(thread)
        return {}

    async def _list(self, params: Result) -> Result:
        client = await self._connected()
        cwd, cursor = params.get("cwd"), string(params.get("cursor")) or "0"
        if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
            raise AcpRefused(INVALID_PARAMS, "cursor must be the nextCursor of an answer")
        listed = [
            {
                "sessionId": each.id,
                "cwd": each.cwd,
                "title": each.handle,
                "updatedAt": each.since,
                "_meta": {"aegis": {"state": each.state, "profile": each.profile}},
            }
            for each in (await client.agents.list()).result
            if each.program is None and cwd in (None, each.cwd)
        ]
        begin = int(cursor)
        more = {"nextCursor": str(begin + PAGE)} if len(listed) > begin + PAGE else {}
        return {"sessions": listed[begin : begin + PAGE], **more}

    # Settings.

    async def _set_mode(self, params: Result) -> Result:
        await self._set(params, "mode", params.get("modeId"))
        return {}

    async def _set_option(self, params: Result) -> Result:
        thread = self._thread(params)
        info = await self._set(params, params.get("configId"), params.get("value"))
        # The stream of states may bring one from before the change meanwhile.
        return {"configOptions": thread.settings_of(info)["configOptions"]}

    async def _set(self, params: Result, option: object, value: object) -> AgentInfo:
        thread, client = self._thread(params), await self._connected()
        if not isinstance(value, str) or not value:
            raise AcpRefused(INVALID_PARAMS, "the value must be a text that is not empty")
        agents, handle = client.agents, thread.info.handle
        match option:
            case "mode" if is_permission(value):
                permission: Any = value
                info = await agents.set(handle, permission=permission)
            case "mode":
                raise AcpRefused(INVALID_PARAMS, f"a mode must be one of {', '.join(MODES)}")
            case "model":
                info = await agents.set(handle, model=value)
            case "effort" if value == DEFAULT_EFFORT and not thread.info.effort:
                return thread.info
            case "effort":
                info = await agents.set(handle, effort=value)
            case "thinking":
                info = await agents.set(handle, thinking=value)
            case _:
                known = "mode, model, effort and thinking"
                raise AcpRefused(INVALID_PARAMS, f"there is no such option: there are {known}")
        await thread.on_info(info)
        return info

    # The daemon.

    async def _connected(self) -> Client:
        """Return the client of the daemon. Raises ``ClientError``."""
        async with self._connecting:
            if self._client is None:
                self._client = await self._nursery.start(self._keep)
                self._profiles = (await self._client.agents.profiles()).result
            return self._client

    async def _keep(self, task_status: trio.TaskStatus[Client]) -> None:
        async with connect(self._settings.root, patience_s=PATIENCE_S) as client:
            self._questions = EditorQuestions(
                client, self._wire, self._nursery, self._threads_of, self._settings.wording
            )
            self._nursery.start_soon(self._questions.follow)
            self._nursery.start_soon(self._follow_states, client)
            task_status.started(client)
            while True:
                await client.wait_connected(False)
                with trio.move_on_after(GONE_S) as limit:
                    await client.wait_connected(True)
                if limit.cancelled_caught:
                    await self._gone()
                    await client.wait_connected(True)
                self._nursery.start_soon(self._again)

    async def _again(self) -> None:
        for thread in [*self._threads.values(), *self._left]:
            try:
                with contained():
                    await thread.on_connected()
            except ClientError:
                continue  # the connection is lost again
        self._left = [each for each in self._left if each.has_cancels]

    async def _gone(self) -> None:
        gone = (
            "the daemon does not run any more: start it with aegis-actors up; the session "
            "continues, and has what it was sent"
        )
        for thread in [*self._threads.values()]:
            await thread.on_gone(gone)

    async def _follow_states(self, client: Client) -> None:
        while True:
            try:
                with contained():
                    async for info in _states(client):
                        for thread in self._threads_of(info.id):
                            with contained():
                                await thread.on_info(info)
            except ClientError:
                pass
            await trio.sleep(AGAIN_S)


async def _states(client: Client) -> AsyncIterator[AgentInfo]:
    async with client.agents.follow() as states:
        async for value in states:
            match value:
                case Gap():
                    continue  # all are sent again
                case AgentsItem(agents=agents):
                    for each in agents:
                        yield each
                case _:
                    yield value.agent


def _initialized() -> Result:
    return {
        "protocolVersion": 1,
        "agentCapabilities": CAPABILITIES,
        "agentInfo": {"name": "aegis-actors", "title": "Aegis", "version": __version__},
        "authMethods": [],
    }


def _frame(line: bytes | None) -> dict[str, Any] | None:
    """Return the frame of a line; None: an empty one. Raises ``AcpRefused``."""
    if line is None:
        raise AcpRefused(INVALID_REQUEST, "the line is too long: send at most 16 MiB")
    if not line.strip():
        return None
    if has_too_many_keys(line):
        raise AcpRefused(INVALID_REQUEST, "the line has too many keys: send at most 10,000")
    try:
        frame = read_json(line)
    except (ValueError, RecursionError) as error:
        raise AcpRefused(PARSE_ERROR, f"the line is no JSON: {str(error)[:200]}") from None
    if not isinstance(frame, dict):
        raise AcpRefused(INVALID_REQUEST, "a line must be one JSON object")
    return frame

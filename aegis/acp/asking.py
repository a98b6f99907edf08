"""``EditorQuestions``: the requests of agents, shown in the threads of an editor."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from aegis.acp.choices import DialogOption, EditorDialog, call_of, dialogs_of
from aegis.acp.thread import EditorThread
from aegis.acp.updates import notice
from aegis.acp.wire import EditorWire, contained
from aegis.agents.drivers.acp.frames import mapping
from aegis.client.client import Client
from aegis.client.errors import ClientError, CommandFailed
from aegis.client.stream_kinds import Gap
from aegis.protocol.requests import RequestInfo, Value
from aegis.protocol.streams import OpenRequestsItem

AGAIN_S = 1.0


@attrs.define(eq=False)
class OpenDialog:
    """A request that is shown in a thread; ``is_answered``: by this editor."""

    thread: EditorThread
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    is_answered: bool = False


class EditorQuestions:
    """The open requests of all sessions, of which those of ``threads`` are shown.

    ``threads`` returns those of the session with an id. The first answer wins; a dialog whose
    request was answered at another place is withdrawn.
    """

    def __init__(
        self,
        client: Client,
        wire: EditorWire,
        nursery: trio.Nursery,
        threads: Callable[[str], list[EditorThread]],
        wording: Callable[[str], str],
    ) -> None:
        self._client = client
        self._wire = wire
        self._nursery = nursery
        self._threads = threads
        self._wording = wording
        self._open: dict[str, RequestInfo] = {}
        self._shown: dict[tuple[str, str], OpenDialog] = {}

    async def follow(self) -> None:
        """Show requests as they are opened, for ever."""
        while True:
            try:
                with contained():
                    await self._follow_once()
            except ClientError:
                pass
            await trio.sleep(AGAIN_S)

    async def _follow_once(self) -> None:
        async with self._client.requests.watch() as changes:
            async for value in changes:
                match value:
                    case Gap():
                        pass  # all open ones are sent again
                    case OpenRequestsItem(open=ids):
                        for gone in set(self._open) - set(ids):
                            await self._closed(gone, "it was withdrawn")
                    case _:
                        with contained():
                            await self._changed(value.request)

    def show(self, thread: EditorThread) -> None:
        """Show the open requests of a thread that has begun."""
        for each in self._open.values():
            if each.session == thread.info.id:
                self._begin(thread, each)

    def hide(self, thread: EditorThread) -> None:
        """Withdraw the dialogs of a thread that has ended."""
        for shown in self._shown.values():
            if shown.thread is thread:
                shown.scope.cancel()

    async def _changed(self, request: RequestInfo) -> None:
        if request.state == "open":
            is_new = request.id not in self._open
            self._open[request.id] = request
            if is_new and request.session is not None:
                for thread in self._threads(request.session):
                    self._begin(thread, request)
            return
        by = request.by or "somebody"
        gone = request.withdrawn or "it was withdrawn"
        await self._closed(
            request.id, f"{by} answered at another place" if request.state == "answered" else gone
        )

    async def _closed(self, request: str, reason: str) -> None:
        self._open.pop(request, None)
        for (id_, _), shown in [*self._shown.items()]:
            if id_ == request and not shown.is_answered:
                shown.scope.cancel()
                await shown.thread.update(notice(f"The question is closed: {reason}."))

    def _begin(self, thread: EditorThread, request: RequestInfo) -> None:
        key = request.id, thread.id
        before = self._shown.get(key)
        if before is not None:
            before.scope.cancel()  # the editor opened the thread again
        self._shown[key] = shown = OpenDialog(thread)
        self._nursery.start_soon(self._ask, key, shown, request)

    async def _ask(self, key: tuple[str, str], shown: OpenDialog, request: RequestInfo) -> None:
        is_done = False
        try:
            with contained(), shown.scope:
                await self._answer(shown, request)
                is_done = True
            if not is_done and not shown.scope.cancelled_caught:
                command = f"aegis-actors request show {request.id}"
                await shown.thread.update(notice(f"A question cannot be shown here: {command}"))
        finally:
            if self._shown.get(key) is shown:
                del self._shown[key]

    async def _answer(self, shown: OpenDialog, request: RequestInfo) -> None:
        tool_use = await shown.thread.tool_use_of(request) if request.turn is not None else ""
        values: dict[str, Value] = {}
        chosen: DialogOption | None = None
        for dialog in dialogs_of(request):
            chosen = await self._choose(shown.thread, request, dialog, tool_use)
            if chosen is None:
                if not shown.thread.is_cancelling:
                    open_ = f"The question stays open: aegis-actors request show {request.id}"
                    await shown.thread.update(notice(open_))
                return
            if chosen.answer == "deny":
                break
            if dialog.question:
                values[dialog.question] = chosen.value
        assert chosen is not None, "each request has a dialog"
        shown.is_answered = True
        is_denied = chosen.answer == "deny"
        try:
            reply = await self._client.requests.answer(
                request.id,
                request.digest,
                chosen.answer,
                scope=chosen.scope,
                option=chosen.option,
                values=None if is_denied or not values else values,
            )
            text = "" if reply.outcome == "applied" else reply.text
        except CommandFailed as error:
            text = str(error)
        except ClientError as error:
            text = f"the answer may be lost: {error}"
        if text:
            await shown.thread.update(notice(self._wording(text)))

    async def _choose(
        self, thread: EditorThread, request: RequestInfo, dialog: EditorDialog, tool_use: str
    ) -> DialogOption | None:
        """Return the option that the person chooses; None: this editor gives no answer."""
        reply = await self._wire.call(
            "session/request_permission",
            {
                "sessionId": thread.id,
                "toolCall": call_of(request, dialog, tool_use),
                "options": [each.document for each in dialog.options],
            },
        )
        outcome = mapping(reply.result.get("outcome"))
        by_id = {each.id: each for each in dialog.options}
        chosen = outcome.get("optionId")
        if outcome.get("outcome") != "selected" or not isinstance(chosen, str):
            return None
        return by_id.get(chosen)

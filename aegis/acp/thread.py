"""``EditorThread``: one session as a thread of an editor: its updates, and the editor's prompts."""

from __future__ import annotations

import tempfile
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from aegis.acp.choices import modes_of, options_of
from aegis.acp.prompts import PromptContent
from aegis.acp.updates import (
    TranscriptUpdates,
    Update,
    chunk,
    commands_update,
    notice,
    sent_texts,
)
from aegis.acp.wire import INVALID_REQUEST, AcpRefused, EditorWire, contained
from aegis.agents.drivers.acp.frames import INTERNAL_ERROR, Id, items, mapping
from aegis.client.agent_kinds import SessionEvent
from aegis.client.client import Client
from aegis.client.errors import ClientError, CommandFailed, ConnectionLost
from aegis.protocol.agent_events import ModelsOffered, OfferedModel, RequestOpened
from aegis.protocol.agents import AgentDetails, AgentInfo, ProfileInfo
from aegis.protocol.inboxes import Receipt
from aegis.protocol.requests import RequestInfo

MAX_PROMPTS = 16
"""Prompts of one editor that may wait in a session."""

MAX_REPLAYED = 5_000
"""Entries of a transcript that are replayed; it may have more."""

MAX_OWN = 1_000
"""Messages of this editor that are known as its own."""

SEND_TRIES = 3

CANCEL_TRIES = 10
"""Tries of a cancel after the daemon has returned, ``AGAIN_S`` apart."""

AGAIN_S = 0.5

_UNSENT = "the session did not get the prompt"

_ROOM = "make room in the directory for temporary files, or name another one in TMPDIR"

_LOSS = {
    "failed": "the turn failed",
    "limited": "the turn was refused by a usage limit",
    "interrupted": "the turn was interrupted, may have been done in part, and is not sent again",
}
"""The ends of turns that are errors, in words."""


@attrs.define(eq=False)
class EditorPrompt:
    """A call of ``session/prompt`` that is not answered yet.

    ``message`` is the id of its message once it was sent, ``turn`` the number of its turn.
    """

    call: Id
    content: PromptContent
    key: str = attrs.field(factory=lambda: uuid.uuid4().hex)
    message: str = ""
    turn: int | None = None
    is_cancelled: bool = False
    placed: trio.Event = attrs.field(factory=trio.Event)


class EditorThread:
    """The session ``info`` under the id ``id_`` of the editor, which may be its handle.

    The transcript is followed in a task of ``nursery``. ``wording`` puts the sentence of a refusal
    into the words of the command line.
    """

    def __init__(
        self,
        id_: str,
        info: AgentInfo,
        client: Client,
        wire: EditorWire,
        nursery: trio.Nursery,
        wording: Callable[[str], str],
        profiles: Sequence[ProfileInfo],
    ) -> None:
        self.id = id_
        self.info = info
        self._client = client
        self._wire = wire
        self._nursery = nursery
        self._wording = wording
        self._profiles = profiles
        self._prompts: dict[Id, EditorPrompt] = {}
        self._unsent: deque[EditorPrompt] = deque()
        self._sending = trio.Lock()
        self._own: deque[str] = deque(maxlen=MAX_OWN)
        self._withdrawn: deque[str] = deque(maxlen=MAX_PROMPTS)
        self._beginning = trio.Lock()
        self._following = trio.CancelScope()
        self._ended = trio.Event()
        self._ended.set()
        self._was_closed = False
        self._seq = 0
        self._models: list[OfferedModel] = []
        self._opened: deque[RequestOpened] = deque(maxlen=50)
        self._opened_one = trio.Event()

    # Updates.

    async def begin(self, *, is_replayed: bool) -> None:
        """Follow the transcript from now on; first replay it, and return once that is done.

        Raises ``ClientError``.
        """
        async with self._beginning:
            found = (await self._client.agents.read(self.info.handle, last_n=1)).result
            newest = found[-1].seq if found else 0
            # Only now: without an answer the thread is followed as before.
            self.end()
            await self._ended.wait()
            self._seq = max(0, newest - MAX_REPLAYED) if is_replayed else newest
            replayed = trio.Event()
            if is_replayed and self._seq:
                await self.update(notice(f"{self._seq} earlier entries are left out"))
            self._start(newest, replayed)
        await replayed.wait()

    def end(self) -> None:
        """Follow the transcript no more."""
        self._following.cancel()

    def open(self, info: AgentInfo) -> None:
        """Take note that the editor opens the thread, also again: it has shown no prompt yet."""
        self.info = info
        self._note_models(info)
        self._own.clear()

    def settings_of(self, info: AgentInfo) -> Update:
        """Return the modes and options of the session in a state."""
        options = options_of(info, self._models, self._profiles)
        return {"modes": modes_of(info), "configOptions": options}

    def _note_models(self, info: AgentInfo) -> None:
        if isinstance(info, AgentDetails):
            self._models = info.models

    async def announce(self) -> None:
        """Send what is known besides the transcript. Raises ``ClientError``."""
        details = await self._client.agents.show(self.info.handle)
        self._note_models(details)
        if details.commands:
            await self.update(commands_update(details.commands))
        if details.plan:
            steps = [
                {"content": each.text, "priority": "medium", "status": each.status}
                for each in details.plan
            ]
            await self.update({"sessionUpdate": "plan", "entries": steps})
        await self._show(details)
        await self._show_settings()

    async def on_info(self, info: AgentInfo) -> None:
        """Show that the state of the session has changed."""
        before, self.info = self.info, info
        if _chosen(before) != _chosen(info):
            await self._show_settings()
        if (before.handle, before.state) != (info.handle, info.state):
            await self._show(info)
        if info.blocked is not None and info.blocked.kind == "limit" and not before.blocked:
            await self.update(notice(info.blocked.title))
        if info.state == "error" and (before.state, before.since) != (info.state, info.since):
            await self._fail_waiting(info.reason or "the agent cannot be used")
        if self._was_closed and info.state != "closed":
            self._start(0, trio.Event())

    async def _show(self, info: AgentInfo) -> None:
        await self.update(
            {
                "sessionUpdate": "session_info_update",
                "title": info.handle,
                "updatedAt": info.since,
                "_meta": {"aegis": {"state": info.state, "turn": info.turn}},
            }
        )

    async def _show_settings(self) -> None:
        settings = self.settings_of(self.info)
        mode, options = settings["modes"]["currentModeId"], settings["configOptions"]
        await self.update({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        await self.update({"sessionUpdate": "config_option_update", "configOptions": options})

    async def update(self, update: Update) -> None:
        """Send an update of this thread."""
        await self._wire.notify("session/update", {"sessionId": self.id, "update": update})

    async def tool_use_of(self, request: RequestInfo) -> str:
        """Return the agent's id of the tool call that a request is about; empty: unknown."""
        with trio.move_on_after(AGAIN_S):
            while True:
                for each in reversed(self._opened):
                    if (each.kind, each.tool, each.input) == (
                        request.kind,
                        request.tool,
                        request.input,
                    ):
                        return each.tool_use
                await self._opened_one.wait()
        return ""

    def _start(self, newest: int, replayed: trio.Event) -> None:
        self._was_closed = False
        self._following, self._ended = trio.CancelScope(), trio.Event()
        self._nursery.start_soon(self._follow, newest, replayed, self._following, self._ended)

    async def _follow(
        self, newest: int, replayed: trio.Event, scope: trio.CancelScope, ended: trio.Event
    ) -> None:
        with scope:
            await self._follow_until_closed(newest, replayed)
            self._was_closed = True
            await self._fail_all("the session was closed")
        replayed.set()
        ended.set()

    async def _follow_until_closed(self, newest: int, replayed: trio.Event) -> None:
        updates = TranscriptUpdates()
        if self._seq >= newest:
            replayed.set()
        while True:
            try:
                async with self._client.agents.events(self.info.handle, since=self._seq) as stream:
                    async for value in stream:
                        if isinstance(value, SessionEvent):
                            self._seq = value.seq
                            with contained():
                                await self._take(value, updates)
                        else:
                            await self.update(notice("entries are missing: they are not kept"))
                        if self._seq >= newest:
                            replayed.set()
            except CommandFailed as error:
                if error.code not in ("unavailable", "busy"):
                    await self.update(notice(self._wording(str(error))))
                    return
            except ClientError:
                pass  # the connection is lost
            except Exception:
                traceback.print_exc()  # a defect
            else:
                return
            await trio.sleep(AGAIN_S)

    async def _take(self, entry: SessionEvent, updates: TranscriptUpdates) -> None:
        match entry.kind:
            case "turn_opened":
                await self._turn_opened(entry.fields)
            case "turn_ended":
                await self._turn_ended(entry.fields)
        if isinstance(entry.event, RequestOpened):
            self._opened.append(entry.event)
            self._opened_one.set()
            self._opened_one = trio.Event()
        if isinstance(entry.event, ModelsOffered):
            self._models = entry.event.models
            await self._show_settings()
        for update in updates.of(entry):
            await self.update(update)

    async def _turn_opened(self, fields: dict[str, Any]) -> None:
        for each in [*self._prompts.values()]:
            await each.placed.wait()  # the turn can be open before its message is confirmed
        ids = [mapping(each).get("id") for each in items(fields.get("messages"))]
        for prompt in self._prompts.values():
            if prompt.message in ids:
                prompt.turn = fields.get("turn")
        if not any(each in self._own for each in ids):
            for text in sent_texts(fields):
                await self.update(chunk("user_message_chunk", text))

    async def _turn_ended(self, fields: dict[str, Any]) -> None:
        outcome, reason = str(fields.get("outcome")), str(fields.get("reason") or "")
        own = [each for each in self._prompts.values() if each.turn == fields.get("turn")]
        sentence = f"{_LOSS.get(outcome, outcome)}: {reason}".removesuffix(": ")
        for prompt in own:
            if outcome in _LOSS and not prompt.is_cancelled:
                await self._fail(prompt, sentence)
            else:
                is_done = outcome == "completed"
                await self._answer(prompt, "end_turn" if is_done else "cancelled")
        if not own and outcome in _LOSS:
            await self.update(notice(sentence))

    # Prompts.

    def admit(self, call: Id, content: PromptContent) -> None:
        """Take a prompt, which ``send_next`` sends. Raises ``AcpRefused``."""
        if len(self._prompts) >= MAX_PROMPTS:
            raise AcpRefused(
                INTERNAL_ERROR, f"{MAX_PROMPTS} prompts wait already: wait for one, or cancel it"
            )
        if call in self._prompts:
            raise AcpRefused(INVALID_REQUEST, "a prompt with this id is not answered yet")
        if self.info.state == "closed":
            raise AcpRefused(INTERNAL_ERROR, _closed(self.info.handle))
        prompt = self._prompts[call] = EditorPrompt(call, content)
        self._unsent.append(prompt)

    async def send_next(self) -> None:
        """Send the oldest prompt; its call is answered when its turn has ended."""
        async with self._sending:
            prompt = self._unsent.popleft()
            if self._prompts.get(prompt.call) is not prompt:
                prompt.placed.set()  # it was answered while the daemon was gone
                return
            if prompt.is_cancelled:
                prompt.placed.set()
                await self._answer(prompt, "cancelled")
                return
            await self._send_one(prompt)

    async def _send_one(self, prompt: EditorPrompt) -> None:
        try:
            receipt = await self._send(prompt)
            self._own.append(receipt.id)
            prompt.message = receipt.id
        except ClientError as error:
            await self._fail(prompt, f"{_UNSENT}: {self._wording(str(error))}")
            return
        except OSError as error:
            reason = error.strerror or str(error)
            await self._fail(prompt, f"{_UNSENT}: its images cannot be written ({reason}): {_ROOM}")
            return
        except Exception:
            self._prompts.pop(prompt.call, None)  # the call is answered with the defect
            raise
        finally:
            prompt.placed.set()
        if receipt.notice:
            await self.update(notice(self._wording(receipt.notice)))
        if prompt.is_cancelled:
            await self._withdraw_one(prompt)

    async def _send(self, prompt: EditorPrompt) -> Receipt:
        for left in reversed(range(SEND_TRIES)):
            try:
                return await self._send_content(prompt.content, prompt.key)
            except ConnectionLost:
                if not left:
                    raise
                # By its key it is delivered once.
        raise AssertionError

    async def _send_content(self, content: PromptContent, key: str) -> Receipt:
        handle = self.info.handle
        if not (content.texts or content.images):
            return await self._client.inboxes.handoff(handle, content.text, key=key, alone=True)
        # The daemon has read the images once it has answered.
        with tempfile.TemporaryDirectory(
            prefix="aegis-editor-", ignore_cleanup_errors=True
        ) as directory:
            paths = await trio.to_thread.run_sync(_write, directory, content.images)
            return await self._client.agents.send(
                handle, content.text, images=paths, texts=content.texts, key=key, alone=True
            )

    def cancel(self, call: Id | None = None) -> list[EditorPrompt]:
        """Return the prompts of this editor, or the one with this call, which ``withdraw`` ends."""
        found = [each for each in self._prompts.values() if call is None or each.call == call]
        for prompt in found:
            prompt.is_cancelled = True
        return found

    async def withdraw(self, prompts: list[EditorPrompt]) -> None:
        """End the turns of cancelled prompts; no other turn ends."""
        for prompt in prompts:
            if prompt.message:
                await self._withdraw_one(prompt)

    async def leave(self) -> None:
        """Cancel the prompts of this editor, and follow the transcript no more."""
        await self.withdraw(self.cancel())
        self.end()
        for prompt in [*self._prompts.values()]:
            await self._answer(prompt, "cancelled")

    @property
    def is_cancelling(self) -> bool:
        """Whether a prompt is being cancelled."""
        return any(each.is_cancelled for each in self._prompts.values())

    async def _withdraw_one(self, prompt: EditorPrompt) -> None:
        """End the turn of a prompt; one that has not begun is answered at once."""
        for left in reversed(range(SEND_TRIES)):
            try:
                await self._client.agents.interrupt(self.info.handle, message=prompt.message)
                break
            except ClientError as error:
                if isinstance(error, ConnectionLost) and left:
                    continue
                if isinstance(error, ConnectionLost):
                    self._withdrawn.append(prompt.message)
                await self.update(notice(self._wording(str(error))))
                break
        if prompt.turn is None:
            await self._answer(prompt, "cancelled")

    async def on_connected(self) -> None:
        """Cancel the prompts whose cancels did not reach the daemon while it was gone."""
        for message in [*self._withdrawn]:
            for _ in range(CANCEL_TRIES):
                try:
                    await self._client.agents.interrupt(self.info.handle, message=message)
                except CommandFailed as error:
                    if error.code in ("unavailable", "busy"):
                        await trio.sleep(AGAIN_S)
                        continue  # after the last try it waits for the next connection
                    await self.update(notice(self._wording(str(error))))
                if message in self._withdrawn:
                    self._withdrawn.remove(message)
                break

    @property
    def has_cancels(self) -> bool:
        """Whether cancels have not reached the daemon."""
        return bool(self._withdrawn)

    async def _fail_waiting(self, reason: str) -> None:
        """Answer the prompts that no turn will answer before a person acts."""
        for prompt in [*self._prompts.values()]:
            if prompt.turn is None:
                await self._fail(
                    prompt, f"{reason}; the prompt waits until the session is used again"
                )

    async def _fail_all(self, reason: str) -> None:
        for prompt in [*self._prompts.values()]:
            await self._fail(prompt, reason)

    async def on_gone(self, sentence: str) -> None:
        """Answer all prompts: the daemon is gone."""
        for prompt in [*self._prompts.values()]:
            if prompt.is_cancelled:
                await self._answer(prompt, "cancelled")
        await self._fail_all(sentence)

    async def _fail(self, prompt: EditorPrompt, sentence: str) -> None:
        if self._prompts.pop(prompt.call, None) is not None:
            await self._wire.refuse(prompt.call, AcpRefused(INTERNAL_ERROR, sentence))

    async def _answer(self, prompt: EditorPrompt, reason: str) -> None:
        if self._prompts.pop(prompt.call, None) is not None:
            await self._wire.respond(prompt.call, {"stopReason": reason})


def _write(directory: str, images: Sequence[bytes]) -> list[str]:
    paths = [Path(directory) / f"image {number}" for number, _ in enumerate(images, 1)]
    for path, image in zip(paths, images, strict=True):
        path.write_bytes(image)
    return [*map(str, paths)]


def _chosen(info: AgentInfo) -> tuple[str, ...]:
    return info.permission, info.model, info.effort, info.thinking


def _closed(handle: str) -> str:
    return f"{handle} is closed: continue it with aegis-actors agent launch --resume {handle}"

"""``Asking``: the open requests in the chat, answered there, and edited when they are settled."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from actors import AskError
from aegis.errors import AegisError, NotFound
from aegis.protocol.requests import (
    FollowRequests,
    ListRequests,
    PersonAnswer,
    RequestInfo,
    RequestPlace,
)
from aegis.telegram.buttons import Choice, Pressed, button_data, read_button
from aegis.telegram.chat import Button, Chat
from aegis.telegram.decisions import command_of, decisions_of
from aegis.telegram.forms import (
    Draft,
    Step,
    UnfitAnswer,
    form_text,
    is_complete,
    may_answer,
    options_of,
    picked,
    replied,
    steps_of,
)
from aegis.telegram.store import ChatStore
from aegis.telegram.texts import BUTTON_CHARS, is_whole, request_text, settled_text
from aegis.telegram.updates import Press, TextMessage
from aegis.turns.services import Services

FOLLOW_S = 3_600.0
CALL_S = 30.0
AGAIN_S = 1.0
SHOWN_S = 10.0
"""Seconds that an answer waits for its request to be known: Telegram may not be reached."""

NOT_VALID = "This button is not valid any more."
CLOSED = "this request was settled"
NO_QUESTION = "press one of its buttons: a reply answers a question only"

Change = Callable[[Draft, tuple[Step, ...]], Draft]


async def ask(services: Services, service: str, request: Any) -> Any:
    """Ask a service until it answers. Raises ``NotFound``."""
    while True:
        try:
            return await services.ask(service, request, FOLLOW_S)
        except AskError:
            await trio.sleep(AGAIN_S)
        except NotFound:
            raise
        except AegisError:
            await trio.sleep(AGAIN_S)


class Asking:
    """Shows requests in ``chat``; ``topic_of`` returns the topic of a session."""

    def __init__(
        self,
        services: Services,
        chat: Chat,
        store: ChatStore,
        topic_of: Callable[[str | None], Awaitable[int | None]],
    ) -> None:
        self._services = services
        self._chat = chat
        self._store = store
        self._topic_of = topic_of
        self._is_listed = trio.Event()
        self._showing: set[trio.Event] = set()
        # Of a message that shows a request: its last edit must be the one that says how it ended.
        self._editing = trio.Lock()

    async def follow(self) -> None:
        """Show requests as they open and end, for ever."""
        place: RequestPlace | None = None
        while True:
            news = await ask(self._services, "requests", FollowRequests(place=place))
            place = news.place
            if news.open is not None:
                for key in [*self._store.requests().keys() - set(news.open)]:
                    await self._look_again(key)
            for request in news.changed:
                await self._report(request)
            self._is_listed.set()

    async def wait_shown(self) -> None:
        """Wait until the messages of all open requests are known, for at most ``SHOWN_S``.

        A person may press or reply before the call that sent the message has returned, and before
        its line is durable.
        """
        with trio.move_on_after(SHOWN_S):
            await self._is_listed.wait()
            for each in [*self._showing]:
                await each.wait()

    async def _look_again(self, key: str) -> None:
        """Report a request that was settled while nobody looked."""
        found = await ask(self._services, "requests", ListRequests(id=key, state="all"))
        for request in found.requests:
            await self._report(request)
        if not found.requests:
            self._store.settled(key)

    async def _report(self, request: RequestInfo) -> None:
        asked = self._store.request(request.id)
        if request.state == "open":
            if asked is None:
                await self._show(request)
            return
        if asked is None:
            return
        async with self._editing:
            with contextlib.suppress(AegisError):  # the message was deleted
                await self._chat.edit(asked.message, settled_text(request))
            self._store.settled(request.id)

    async def _show(self, request: RequestInfo) -> None:
        shown = trio.Event()
        self._showing.add(shown)
        try:
            topic = await self._topic_of(request.session)
            message = await self._chat.send(self._text(request), topic, self._buttons(request))
        except AegisError:
            pass
        else:
            self._store.asked(request.id, request.digest, message)
        finally:
            self._showing.discard(shown)
            shown.set()

    async def show_again(self, session: str) -> None:
        """Show the open requests of a session whose topic, with their messages, was deleted."""
        found = await ask(self._services, "requests", ListRequests())
        for request in found.requests:
            if request.session == session and self._store.request(request.id) is not None:
                await self._show(request)

    async def _show_step(self, request: RequestInfo) -> None:
        """Show the step of a form that is next, unless the request was settled meanwhile."""
        async with self._editing:
            asked = self._store.request(request.id)
            if asked is not None:
                with contextlib.suppress(AegisError):
                    await self._chat.edit(
                        asked.message, self._text(request), self._buttons(request)
                    )

    def _text(self, request: RequestInfo) -> str:
        if not (may_answer(request) and is_whole(request)):
            return request_text(request)
        form = form_text(steps_of(request), self._draft(request.id))
        return f"{request_text(request)}\n\n{form}"

    def _draft(self, request: str) -> Draft:
        shown = self._store.request(request)
        return Draft() if shown is None else shown.draft

    def _buttons(self, request: RequestInfo) -> list[Button]:
        def data(choice: Choice, step: int = 0, option: str = "") -> str:
            return button_data(
                self._store.state.secret,
                request.id,
                request.digest,
                choice,
                step=step,
                option=option,
            )

        buttons = [
            Button(each.label, data(each.choice, option=each.option))
            for each in decisions_of(request)
        ]
        picks = []
        if is_whole(request) and may_answer(request):
            draft = self._draft(request.id)
            for label, option in options_of(steps_of(request), draft):
                shown = label if len(label) <= BUTTON_CHARS else f"{label[:BUTTON_CHARS]}…"
                picks.append(Button(shown, data("pick", draft.step, option)))
        return [*picks, *buttons]

    # Answers.

    async def press(self, press: Press) -> str:
        """Answer by a button; return a sentence, empty if the message shows what came of it."""
        pressed = self._read(press)
        if pressed is None:
            await self.wait_shown()
            pressed = self._read(press)
        if pressed is None:
            return NOT_VALID
        if pressed.choice == "named":
            return await self._decide_named(pressed)
        if pressed.choice != "pick":
            return await self._decide(pressed)
        change: Change = lambda draft, steps: picked(draft, steps, press.update, pressed.option)  # noqa: E731
        return await self._take(
            pressed.request, pressed.digest, press.update, change, at=pressed.step
        )

    def _read(self, press: Press) -> Pressed | None:
        digests = {key: each.digest for key, each in self._store.requests().items()}
        return read_button(self._store.state.secret, press.data, digests)

    async def reply(self, text: TextMessage, request: str) -> str:
        """Answer the next question of an open request by a reply; return a sentence, or nothing."""
        asked = self._store.request(request)
        if asked is None:
            return CLOSED
        change: Change = lambda draft, steps: replied(draft, steps, text.update, text.text)  # noqa: E731
        return await self._take(request, asked.digest, text.update, change)

    async def _decide(self, pressed: Pressed) -> str:
        command = PersonAnswer(
            id=pressed.request,
            digest=pressed.digest,
            answer="deny" if pressed.choice == "deny" else "allow",
            scope="session" if pressed.choice == "session" else "once",
        )
        return await self._answer(command)

    async def _decide_named(self, pressed: Pressed) -> str:
        request = await self._find(pressed.request)
        command = None if request is None else command_of(request, pressed)
        return CLOSED if command is None else await self._answer(command)

    async def _answer(self, command: PersonAnswer) -> str:
        # The first answer wins: if it is asked again after a crash, the desk names the first one.
        reply = await self._services.answer("requests", command, CALL_S)
        return reply.text

    async def _take(
        self, key: str, digest: str, update: int, change: Change, at: int | None = None
    ) -> str:
        """Take an answer to the next step, of the step ``at`` only; each update counts once."""
        request = await self._find(key)
        if request is None or request.state != "open" or request.digest != digest:
            return CLOSED
        if not (may_answer(request) and is_whole(request)):
            return NO_QUESTION
        steps, draft = steps_of(request), self._draft(key)
        if update != draft.update:  # else it was taken before a crash
            if at not in (None, draft.step):
                return NOT_VALID
            try:
                draft = change(draft, steps)
            except UnfitAnswer as error:
                return str(error)
            await self._keep(key, draft)
        if is_complete(request, draft):
            return await self._finish(request, draft)
        await self._show_step(request)
        return ""

    async def _find(self, key: str) -> RequestInfo | None:
        """Return a request in any state; None if the desk has dropped it."""
        found = await self._services.answer("requests", ListRequests(id=key, state="all"), CALL_S)
        return next(iter(found.requests), None)

    async def _finish(self, request: RequestInfo, draft: Draft) -> str:
        """Send the answers to all steps; begin anew if the daemon refuses them."""
        command = PersonAnswer(
            id=request.id, digest=request.digest, answer="allow", values=draft.values
        )
        try:
            reply = await self._services.answer("requests", command, CALL_S)
        except AegisError:
            await self._keep(request.id, Draft(update=draft.update))
            await self._show_step(request)
            raise
        return "" if reply.outcome == "applied" else reply.text

    async def _keep(self, request: str, draft: Draft) -> None:
        await self._store.draft(request, draft)

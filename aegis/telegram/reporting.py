"""``Reporting``: what the daemon has to say, sent into the chat as it happens.

Four kinds of tasks: requests with their buttons, the person's messages, the list of sessions, and
the transcript of each session that is talked to in the chat.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import trio

from actors import AskError, System
from aegis.errors import AegisError, NotFound
from aegis.protocol.agents import AgentInfo, TranscriptEntry
from aegis.protocol.feeds import AgentsPlace, FollowAgents, FollowInbox, FollowSession, InboxPlace
from aegis.protocol.inboxes import ReadInbox
from aegis.protocol.requests import FollowRequests, ListRequests, RequestInfo, RequestPlace
from aegis.telegram.chat import Chat, buttons_of
from aegis.telegram.ledger import line
from aegis.telegram.store import Store
from aegis.telegram.talk import Turn
from aegis.telegram.texts import is_whole, parts_of, request_text, settled_text, wake_text
from aegis.turns.services import Services

FOLLOW_S = 3_600.0
CALL_S = 30.0
AGAIN_S = 1.0
MAX_FOLLOWED = 64
"""Sessions whose transcripts are followed at once."""

HUMAN = "human"
CATCH_UP = 1_000
"""Messages of the inbox that are looked through at the start."""

TOPIC_CHARS = 128


class Reporting:
    """Sends news of the daemon ``system`` to ``chat``; ``store`` has how far that went."""

    def __init__(
        self, system: System, chat: Chat, store: Store, start_soon: Callable[..., object]
    ) -> None:
        self._services = Services(system)
        self._chat = chat
        self._store = store
        self._start_soon = start_soon
        self._agents: dict[str, AgentInfo] = {}
        self._followed: set[str] = set()
        self._is_forum: bool | None = None
        self._knows_chat = trio.Event()
        self._listed = trio.Event()

    def start(self) -> None:
        """Start the tasks."""
        for task in (self._requests, self._wakes, self._sessions):
            self._start_soon(task)

    def has_topics(self, is_forum: bool) -> None:
        """Take whether the chat has topics."""
        self._is_forum = is_forum
        self._knows_chat.set()

    async def wait_listed(self) -> None:
        """Wait until the sessions are known: at a start they are not at once."""
        await self._listed.wait()

    def handle_of(self, session: str) -> str | None:
        """Return the handle of an open session, by its id."""
        info = self._agents.get(session)
        return None if info is None else info.handle

    def session_of(self, handle: str) -> str | None:
        """Return the id of the open session with this handle."""
        found = (each.id for each in self._agents.values() if each.handle == handle)
        return next(found, None)

    async def talk_to(self, session: str, thread: int | None) -> None:
        """Follow a session from now on; outside of its topic, plain text goes there."""
        fold = self._store.fold
        if thread is None and fold.focus != session:
            await self._store.append(line("focus", session=session))
        if session not in fold.told:
            news = await self._ask("sessions", FollowSession(handle=session))
            await self._store.append(line("told", session=session, seq=news.place.seq))
        self._follow(session)

    def _thread(self, session: str | None) -> int | None:
        return None if session is None else self._store.fold.topics.get(session)

    async def _ask(self, service: str, request: Any) -> Any:
        """Ask a service until it answers."""
        while True:
            try:
                return await self._services.ask(service, request, FOLLOW_S)
            except AskError:
                await trio.sleep(AGAIN_S)
            except NotFound:
                raise
            except AegisError:
                await trio.sleep(AGAIN_S)

    # Requests.

    async def _requests(self) -> None:
        await self._knows_chat.wait()
        place: RequestPlace | None = None
        while True:
            news = await self._ask("requests", FollowRequests(place=place))
            place = news.place
            if news.open is not None:
                for key in [*self._store.fold.asked.keys() - set(news.open)]:
                    await self._look_again(key)
            for request in news.changed:
                await self._report(request)

    async def _look_again(self, key: str) -> None:
        """Report a request that was settled while nobody looked."""
        found = await self._ask("requests", ListRequests(id=key, state="all"))
        for request in found.requests:
            await self._report(request)
        if not found.requests:
            await self._store.append(line("settled", request=key))

    async def _report(self, request: RequestInfo) -> None:
        asked = self._store.fold.asked.get(request.id)
        if request.state == "open":
            if asked is None:
                await self._show(request)
            return
        if asked is not None:
            with contextlib.suppress(AegisError):  # the message was deleted
                await self._chat.edit(asked.message, settled_text(request))
            await self._store.append(line("settled", request=request.id))

    async def _show(self, request: RequestInfo) -> None:
        secret = self._store.fold.secret
        choices: list[Any] = ["deny"]
        is_simple = request.kind == "permission" and is_whole(request)
        if is_simple and not request.needs_person:
            choices = ["once", "deny"] if request.no_session_scope else ["once", "session", "deny"]
        buttons = buttons_of(secret, request.id, request.digest, choices)
        try:
            message = await self._chat.send(
                request_text(request), self._thread(request.session), buttons
            )
        except AegisError:
            return
        await self._store.append(
            line("asked", request=request.id, digest=request.digest, message=message)
        )

    # The person's messages.

    async def _wakes(self) -> None:
        await self._knows_chat.wait()
        first = await self._ask("inboxes", FollowInbox(handle=HUMAN))
        place: InboxPlace = first.place
        kept = await self._ask("inboxes", ReadInbox(unread=False, limit=CATCH_UP))
        messages = kept.messages
        if self._store.fold.woken is None:  # the first start: what was before is no news
            await self._store.append(line("woken", message=messages[-1].id if messages else ""))
        for message in _after(messages, self._store.fold.woken):
            await self._wake(message)
        while True:
            news = await self._ask("inboxes", FollowInbox(handle=HUMAN, place=place))
            place = news.place
            known = {each.id for each in messages}
            for message in news.messages:
                if message.id not in known:
                    await self._wake(message)
            messages = news.messages

    async def _wake(self, message: Any) -> None:
        await self._chat.say(wake_text(message), None)
        await self._store.append(line("woken", message=message.id))

    # Sessions and their transcripts.

    async def _sessions(self) -> None:
        await self._knows_chat.wait()
        place: AgentsPlace | None = None
        while True:
            news = await self._ask("sessions", FollowAgents(place=place))
            place = news.place
            if news.is_all:
                self._agents.clear()
            for info in news.agents:
                if info.state == "closed":
                    self._agents.pop(info.id, None)
                else:
                    self._agents[info.id] = info
            self._listed.set()
            for info in news.agents:
                await self._greet(info)

    async def _greet(self, info: AgentInfo) -> None:
        """Give a new session a topic, and follow those that are talked to."""
        fold = self._store.fold
        if info.state == "closed" or info.program is not None:
            return
        if self._is_forum and info.id not in fold.topics:
            try:
                made = await self._chat.call("createForumTopic", name=info.handle[:TOPIC_CHARS])
            except AegisError:
                return
            thread = made.get("message_thread_id")
            if isinstance(thread, int):
                await self._store.append(line("topic", session=info.id, thread=thread))
        if info.id in fold.topics or info.id == fold.focus or info.id in fold.told:
            self._follow(info.id)

    def _follow(self, session: str) -> None:
        if session not in self._followed and len(self._followed) < MAX_FOLLOWED:
            self._followed.add(session)
            self._start_soon(self._tell, session)

    async def _tell(self, session: str) -> None:
        """Send the texts of a session's turns, until it is closed."""
        try:
            with contextlib.suppress(NotFound):
                await self._tell_all(session)
        finally:
            self._followed.discard(session)

    async def _tell_all(self, session: str) -> None:
        told = self._store.fold.told.get(session)
        news = await self._ask("sessions", FollowSession(handle=session, since=told))
        turn = Turn()
        while not news.is_over:
            news = await self._ask("sessions", FollowSession(handle=session, place=news.place))
            for entry in news.entries:
                await self._take(session, turn, entry)

    async def _take(self, session: str, turn: Turn, entry: TranscriptEntry) -> None:
        thread, ended = self._thread(session), turn.take(entry)
        if ended is not None:
            handle = self.handle_of(session) or session[:8]
            text = ended if thread is not None else f"{handle}: {ended}"
            await self._finish(turn, text, thread)
            await self._store.append(line("told", session=session, seq=entry.seq))
        elif turn.progress:
            await self._show_progress(turn, thread)

    async def _show_progress(self, turn: Turn, thread: int | None) -> None:
        text = f"⏳ {turn.progress}"
        if turn.message is None:
            with contextlib.suppress(AegisError):
                turn.message = await self._chat.send(text, thread, [])
        else:
            self._chat.edit_soon(turn.message, text)

    async def _finish(self, turn: Turn, text: str, thread: int | None) -> None:
        """Put the text of a turn in place of its progress."""
        message, turn.message = turn.message, None
        first, *rest = parts_of(text)
        if message is None:
            await self._chat.say(text, thread)
            return
        try:
            await self._chat.edit(message, first)
        except AegisError:  # it was deleted
            rest = [first, *rest]
        for part in rest:
            await self._chat.say(part, thread)


def _after(messages: Any, last: str | None) -> Any:
    """Return the messages after the one with the id ``last``; all if it is not there."""
    ids = [each.id for each in messages]
    return messages[ids.index(last) + 1 :] if last in ids else messages

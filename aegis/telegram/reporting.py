"""``Reporting``: what the daemon has to say, sent into the chat as it happens.

Four kinds of tasks: requests with their buttons, the person's messages, the list of sessions, and
the transcript of each session that is talked to in the chat.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import trio

from actors import System
from aegis.errors import AegisError, NotFound
from aegis.protocol.agents import AgentInfo, TranscriptEntry
from aegis.protocol.feeds import AgentsPlace, FollowAgents, FollowInbox, FollowSession, InboxPlace
from aegis.protocol.inboxes import Message, ReadInbox
from aegis.telegram.asking import Asking, ask
from aegis.telegram.chat import Chat
from aegis.telegram.store import ChatStore
from aegis.telegram.talk import TurnProgress
from aegis.telegram.texts import parts_of, wake_text
from aegis.turns.services import Services

MAX_FOLLOWED = 64
"""Sessions whose transcripts are followed at once."""

HUMAN = "human"
CATCH_UP = 1_000
"""Messages of the inbox that are looked through at the start."""

TOPIC_CHARS = 128

NEWS_S = 2.0
"""How long a request waits for the news of its session, which gives it a topic."""


class Reporting:
    """Sends news of the daemon ``system`` to ``chat``; ``store`` has how far that went.

    ``began`` (UTC) is when this life of the chat began.
    """

    def __init__(
        self,
        system: System,
        chat: Chat,
        store: ChatStore,
        start_soon: Callable[..., object],
        began: str,
    ) -> None:
        self._services = Services(system)
        self.asking = Asking(self._services, chat, store, self._topic_of)
        self._chat = chat
        self._store = store
        self._start_soon = start_soon
        self._began = began
        self._agents: dict[str, AgentInfo] = {}
        self._has_news = trio.Event()
        self._without_topic: set[str] = set()
        """Sessions for which the chat refused to open one."""
        self._followed: set[str] = set()
        self._is_forum: bool | None = None
        self._opening = trio.Lock()
        self._replaced: dict[int, int | None] = {}
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
        if thread is None:
            await self._store.focus_on(session)
        if self._store.sent_up_to(session) is None:
            news = await self._ask("sessions", FollowSession(handle=session))
            await self._store.send_from(session, news.place.seq)
        self._follow(session)

    def _thread(self, session: str | None) -> int | None:
        return None if session is None else self._store.topic_of(session)

    async def _topic_of(self, session: str | None) -> int | None:
        """Return the topic of a session; one that is being opened is waited for.

        A request may come before the news of its session, and while a deleted topic is replaced.
        """
        if session is None or not self._is_forum:
            return self._thread(session)
        with trio.move_on_after(NEWS_S):
            while session not in self._agents and self._thread(session) is None:
                await self._has_news.wait()
        async with self._opening:
            if session in self._agents:
                await self._give_topic(self._agents[session])
        return self._thread(session)

    async def _ask(self, service: str, request: Any) -> Any:
        return await ask(self._services, service, request)

    # The person's messages.

    async def _requests(self) -> None:
        await self._knows_chat.wait()
        await self.asking.follow()

    async def _wakes(self) -> None:
        everything = ReadInbox(unread=False, limit=CATCH_UP)
        if self._store.state.woken is None:
            # The first start: what was before is no news. What comes while the inbox is not read
            # yet, or Telegram cannot be reached, is: the time decides, and nothing is waited for.
            messages = (await self._ask("inboxes", everything)).messages
            before = [each.id for each in messages if each.timestamp < self._began]
            self._store.woken(before[-1] if before else "")
        await self._knows_chat.wait()
        first = await self._ask("inboxes", FollowInbox(handle=HUMAN))
        place: InboxPlace = first.place
        messages = (await self._ask("inboxes", everything)).messages
        for message in _after(messages, self._store.state.woken):
            await self._wake(message)
        while True:
            news = await self._ask("inboxes", FollowInbox(handle=HUMAN, place=place))
            place = news.place
            known = {each.id for each in messages}
            for message in news.messages:
                if message.id not in known:
                    await self._wake(message)
            messages = news.messages

    async def _wake(self, message: Message) -> None:
        if not self._is_in_its_chat(message):
            await self._chat.say(wake_text(message), None)
        self._store.woken(message.id)

    def _is_in_its_chat(self, message: Message) -> bool:
        """Return whether it reports a turn as done whose texts the chat shows as they come."""
        session, is_turn, _ = message.id.removeprefix("session:").partition("/turn:")
        return bool(is_turn) and message.status == "ok" and self._is_shown(session)

    def _is_shown(self, session: str) -> bool:
        """Return whether the texts of a session are shown; it may have been closed since."""
        known = self._store.session(session)
        return session == self._store.state.focus or (known is not None and known.is_followed)

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
                    self._without_topic.discard(info.id)
                else:
                    self._agents[info.id] = info
            self._listed.set()
            self._has_news.set()
            self._has_news = trio.Event()
            for info in news.agents:
                await self._greet(info)

    async def _greet(self, info: AgentInfo) -> None:
        """Give a new session a topic, and follow those that are talked to."""
        if info.state == "closed" or info.program is not None:
            return
        if self._is_forum:
            async with self._opening:
                await self._give_topic(info)
        if self._is_shown(info.id):
            self._follow(info.id)

    async def _give_topic(self, info: AgentInfo) -> None:
        """Give a driven session a topic unless it has one, or the chat has refused it."""
        has_one = self._thread(info.id) is not None or info.id in self._without_topic
        if has_one or info.program is not None:
            return
        try:
            made = await self._chat.call("createForumTopic", name=info.handle[:TOPIC_CHARS])
        except AegisError:
            self._without_topic.add(info.id)
            return
        thread = made.get("message_thread_id")
        if isinstance(thread, int):
            self._store.opened_topic(info.id, thread)

    async def instead_of(self, thread: int) -> int | None:
        """Return the topic that replaces a deleted one; None: there is none, but the chat."""
        async with self._opening:
            if thread in self._replaced:
                return self._replaced[thread]
            info = self._agents.get(self._store.session_of(thread))
            self._store.lost_topic(thread)
            self._replaced[thread] = None
            if info is not None:
                await self._give_topic(info)
                self._replaced[thread] = self._thread(info.id)
        if info is not None:  # what asks there was deleted with it
            self._start_soon(self.asking.show_again, info.id)
        return self._replaced[thread]

    def _follow(self, session: str) -> None:
        if session not in self._followed and len(self._followed) < MAX_FOLLOWED:
            self._followed.add(session)
            self._start_soon(self._send_texts, session)

    async def _send_texts(self, session: str) -> None:
        """Send the texts of a session's turns, until it is closed."""
        try:
            with contextlib.suppress(NotFound):
                await self._send_all(session)
        finally:
            self._followed.discard(session)

    async def _send_all(self, session: str) -> None:
        sent = self._store.sent_up_to(session)
        news = await self._ask("sessions", FollowSession(handle=session, since=sent))
        turn = TurnProgress()
        while not news.is_over:
            news = await self._ask("sessions", FollowSession(handle=session, place=news.place))
            for entry in news.entries:
                await self._take(session, turn, entry)

    async def _take(self, session: str, turn: TurnProgress, entry: TranscriptEntry) -> None:
        ended = turn.take(entry)
        if ended is None and not turn.progress:
            return
        thread = await self._topic_of(session)
        if ended is not None:
            handle = self.handle_of(session) or session[:8]
            text = ended if thread is not None else f"{handle}: {ended}"
            await self._finish(turn, text, thread)
            self._store.sent(session, entry.seq)
        else:
            await self._show_progress(turn, thread)

    async def _show_progress(self, turn: TurnProgress, thread: int | None) -> None:
        text = f"⏳ {turn.progress}"
        if turn.message is None:
            with contextlib.suppress(AegisError):
                turn.message = await self._chat.send(text, thread)
        else:
            self._chat.edit_soon(turn.message, text)

    async def _finish(self, turn: TurnProgress, text: str, thread: int | None) -> None:
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

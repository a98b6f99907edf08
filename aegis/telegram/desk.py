"""``TelegramDesk``: the actor of the chat. It polls, carries out orders, and reports.

Each task awaits one thing after another; what must survive is a row of the ledger first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import Actor
from aegis.clock import utc_now
from aegis.journal.flusher import Flusher
from aegis.telegram import orders as o
from aegis.telegram.api import ApiError, Bot, CallRefused
from aegis.telegram.chat import Chat
from aegis.telegram.doing import UNFIT, Doing
from aegis.telegram.reporting import Reporting
from aegis.telegram.settings import ChatSettings
from aegis.telegram.store import ChatStore
from aegis.telegram.updates import (
    Press,
    TextMessage,
    Update,
    joined,
    moved_chat,
    read_update,
    update_id,
)

log = structlog.get_logger("aegis.telegram")

POLL_S = 25.0
"""Seconds for which Telegram holds a poll that has nothing."""

MAX_BACKOFF_S = 30.0
WRONG_TOKEN_S = 60.0
MAX_RUNS = 16
"""Commands of the chat that run at once; further orders wait."""

MAX_PENDING = 200
"""Orders that are accepted and not done; Telegram keeps further ones."""

MAX_UPDATES = 100
"""Updates that Telegram returns at once."""

ALLOWED = ["message", "edited_message", "callback_query"]

JOIN_S = 3.0
"""Seconds in which the next part of a text follows that an app has cut."""

OTHER_POLLER = "another program polls this bot (409): stop it, or give this daemon a bot of its own"
WRONG_TOKEN = "the token is not valid: set AEGIS_TELEGRAM_TOKEN and start the daemon again"  # noqa: S105


@attrs.frozen
class Begin:
    """Start the tasks."""


class TelegramDesk(Actor[Begin]):
    """The desk of the chat of ``settings``, with the ledger ``path``.

    ``address_of`` returns the immutable first handle of the session with a handle or alias.

    While the disk refuses, no order is accepted. Any other failure ends the tasks, and they begin
    again from the ledger: the chat must not cost the daemon anything.
    """

    def __init__(
        self,
        *,
        settings: ChatSettings,
        path: Path,
        flusher: Flusher,
        address_of: Callable[[str], str],
    ) -> None:
        self._settings = settings
        self._path = path
        self._flusher = flusher
        self._address_of = address_of

    async def setup(self) -> None:
        """Have the tasks started."""
        self._began = utc_now()
        self._store = ChatStore(self._path, self._flusher, self.context)
        self.context.after(0, Begin())

    async def teardown(self) -> None:
        """Close the ledger."""
        if hasattr(self, "_store"):
            self._store.close()

    async def receive(self, message: Begin) -> None:
        """Start the tasks, which do everything."""
        del message
        self.context.start_soon(self._live)

    async def _live(self) -> None:
        await self._store.open()
        failures = 0
        while True:
            began = trio.current_time()
            try:
                async with trio.open_nursery() as nursery:
                    await self.work(self._store, nursery).run()
            except* Exception:
                log.exception("telegram begins again")
            failures = 1 if trio.current_time() - began > MAX_BACKOFF_S else failures + 1
            await trio.sleep(_backoff_s(failures))

    def work(self, store: ChatStore, nursery: trio.Nursery) -> Work:
        """Return the work on an open ledger."""
        system = self.context.system
        chat = Chat(
            system,
            lambda: store.chat_of(self._settings.chat_id),
            lambda thread: reporting.instead_of(thread),
        )
        reporting = Reporting(system, chat, store, nursery.start_soon, self._began)
        doing = Doing(system, self._address_of, store, reporting.handle_of, reporting.session_of)
        return Work(self._settings, store, nursery, chat, reporting, doing)


class Work:
    """The tasks on an open ledger: one polls, one carries out orders, others report."""

    def __init__(
        self,
        settings: ChatSettings,
        store: ChatStore,
        nursery: trio.Nursery,
        chat: Chat,
        reporting: Reporting,
        doing: Doing,
    ) -> None:
        self._settings = settings
        self._store = store
        self._nursery = nursery
        self._chat = chat
        self._reporting = reporting
        self._doing = doing
        self._asking = reporting.asking
        self._room = trio.Event()
        self._accepted = trio.Event()
        self._runs = trio.Semaphore(MAX_RUNS)
        self._name = ""
        """The bot's name: in a group, a command may be for another bot."""

    async def run(self) -> None:
        """Work until cancelled."""
        self._reporting.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._poll)
            nursery.start_soon(self._work)

    # Polling.

    async def _poll(self) -> None:
        failures, offset = 0, self._store.next_update
        async with Bot(self._settings) as bot:
            await self._ask_topics(bot)
            while True:
                room = await self._wait_for_room()
                try:
                    updates = await bot.call(
                        "getUpdates",
                        wait_s=POLL_S,
                        offset=offset,
                        limit=min(room, MAX_UPDATES),
                        timeout=int(POLL_S),
                        allowed_updates=ALLOWED,
                    )
                except ApiError as error:
                    failures += 1
                    await self._failed(error, failures)
                    continue
                failures = 0
                self._note("")
                for raw in updates if isinstance(updates, list) else []:
                    offset = max(offset, await self._accept(raw))

    async def _wait_for_room(self) -> int:
        """Wait until further orders may be accepted; return their number."""
        while (room := MAX_PENDING - len(self._store.pending)) <= 0:
            self._room = trio.Event()
            await self._room.wait()
        return room

    async def _accept(self, raw: Any) -> int:
        """Make an update durable; return the offset that confirms it."""
        number = update_id(raw)
        if number is None:
            return 0
        chat = self._store.chat_of(self._settings.chat_id)
        self._take_moved(moved_chat(raw, chat))
        update = read_update(raw, attrs.evolve(self._settings, chat_id=chat))
        if update is not None and number >= self._store.next_update:
            await self._store.accept(update)
            self._accepted.set()
        return number + 1

    def _take_moved(self, new: int | None) -> None:
        """Take that the group has another id now."""
        old = self._settings.chat_id
        if new is not None and new != self._store.chat_of(old):
            log.warning("the chat has another id: write it in .aegis.yaml", old=old, new=new)
            self._store.moved(old, new)

    async def _failed(self, error: ApiError, failures: int) -> None:
        """Note a failure of the poll, and wait."""
        wait_s = _backoff_s(failures)
        if isinstance(error, CallRefused):
            if error.code == 409:
                self._note(OTHER_POLLER)
            elif error.code in (401, 404):
                self._note(WRONG_TOKEN)
                wait_s = WRONG_TOKEN_S
            wait_s = max(wait_s, error.retry_after or 0)
        log.debug("telegram poll failed", why=str(error))
        await trio.sleep(wait_s)

    def _note(self, problem: str) -> None:
        """Note why the bot does not work; ``doctor`` reads it."""
        if problem != self._store.state.problem:
            if problem:
                log.warning("telegram does not work", why=problem)
            self._store.has_problem(problem)

    async def _ask_topics(self, bot: Bot) -> None:
        """Learn whether the chat has topics, before anything is sent to one."""
        failures = 0
        while True:
            try:
                me = await bot.call("getMe")
                self._name = str(me.get("username", "")) if isinstance(me, dict) else ""
                number = self._store.chat_of(self._settings.chat_id)
                chat = await bot.call("getChat", chat_id=number)
            except ApiError as error:
                failures += 1
                if isinstance(error, CallRefused) and error.moved_to is not None:
                    self._take_moved(error.moved_to)
                    continue
                if isinstance(error, CallRefused) and error.code in (400, 403):
                    self._note(f"the chat {number} cannot be used: {error}")
                await self._failed(error, failures)
                continue
            self._reporting.has_topics(bool(isinstance(chat, dict) and chat.get("is_forum")))
            return

    # Orders.

    async def _work(self) -> None:
        """Carry out accepted orders, in order."""
        started: set[int] = set()
        while True:
            self._accepted = trio.Event()
            started &= self._store.pending.keys()
            number = min(self._store.pending.keys() - started, default=None)
            if number is None:
                await self._accepted.wait()
                continue
            update = self._store.pending[number].update
            if isinstance(update, Press):
                started.add(number)
                await self._do(update, ())
                continue
            parts = await self._parts(update)
            started |= {each.update for each in parts}
            await self._do(joined(parts), parts)

    async def _parts(self, text: TextMessage) -> list[TextMessage]:
        """Return a text with the parts that follow it, if an app has cut it."""
        parts = [text]
        while parts[-1].is_partial:
            with trio.move_on_after(JOIN_S):
                while (following := self._following(parts[-1])) is None:
                    self._accepted = trio.Event()
                    await self._accepted.wait()
            if following is None or o.is_command(following.text):
                break
            parts.append(following)
        return parts

    def _following(self, text: TextMessage) -> TextMessage | None:
        """Return the next text of the same person at the same place."""
        found = (
            each
            for each in (order.text for _, order in sorted(self._store.pending.items()))
            if each is not None
            and (each.user, each.thread, each.unfit) == (text.user, text.thread, "")
            and each.update > text.update
        )
        return next(found, None)

    async def _do(self, update: Update, parts: Sequence[TextMessage]) -> None:
        """Carry out an update; ``parts`` are those of a text, which ``update`` joins."""
        if isinstance(update, Press):
            text = await self._try(self._asking.press(update))
            await self._chat.note(update.callback, text)
            self._done(update)
            return
        request = self._store.request_of(update.reply_to)
        is_settled = self._store.is_settled(update.reply_to)
        if update.reply_to and not request and not is_settled:
            await self._asking.wait_shown()
            request = self._store.request_of(update.reply_to)
            is_settled = self._store.is_settled(update.reply_to)
        order = o.read_parts(parts, self._name)
        if update.unfit:
            await self._chat_say(update, update.unfit)
        elif request or is_settled:
            await self._chat_say(update, await self._try(self._asking.reply(update, request)))
        elif isinstance(order, o.RunOrder):
            await self._run(update, order)
            return
        elif not isinstance(order, o.ForOther):
            await self._chat_say(update, await self._try(self._carried_out(update, order)))
        # The first part last: alone again after a crash, it is known by its number.
        for each in reversed(parts):
            self._done(each)

    async def _carried_out(self, text: TextMessage, order: o.Order) -> str:
        if isinstance(order, o.Talk | o.Focus):
            await self._reporting.wait_listed()
        match order:
            case o.Talk(handle=handle):
                session, handle = self._doing.partner(text, handle)
                # Followed before it has the text: its answer may come at once.
                await self._reporting.talk_to(session, text.thread)
                return await self._doing.talk(text, handle, order.text)
            case o.Focus(handle=handle):
                session, handle = self._doing.partner(text, handle)
                await self._reporting.talk_to(session, text.thread)
                return f"talking to {handle}"
            case o.ShowOrder():
                return await self._doing.show(order)
            case o.InterruptOrder():
                return await self._doing.interrupt(order)
            case o.Lookup(what=what):
                return await self._doing.look_up(what)
            case o.Misunderstood(sentence=sentence):
                return sentence
        raise AssertionError(order)

    async def _run(self, text: TextMessage, order: o.RunOrder) -> None:
        """Run a command once: what may have begun before a crash is not begun again."""
        if self._store.pending[text.update].is_begun:
            await self._chat_say(
                text, f"{order.terminal}: the daemon ended while this ran: /screen {order.terminal}"
            )
            self._done(text)
            return
        await self._store.begin(text)
        await self._runs.acquire()
        self._nursery.start_soon(self._finish_run, text, self._doing.start_run(order))

    async def _finish_run(self, text: TextMessage, wait: Any) -> None:
        try:
            answer = await wait()
        finally:
            self._runs.release()
        await self._chat_say(text, answer)
        self._done(text)

    async def _try(self, work: Any) -> str:
        """Return the sentence of an order, or why it failed."""
        try:
            sentence: str = await work
        except UNFIT as error:
            return str(error)
        return sentence

    async def _chat_say(self, text: TextMessage, answer: str) -> None:
        if answer:
            await self._chat.say(answer, text.thread)

    def _done(self, update: Update) -> None:
        self._store.done(update)
        self._room.set()


def _backoff_s(failures: int) -> float:
    return min(MAX_BACKOFF_S, 0.5 * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1)  # noqa: S311

"""The desk's work on a ledger, in front of a local server that speaks the Bot API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import trio
import trio.testing

from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.telegram.desk import MAX_PENDING, Work
from aegis.telegram.settings import ChatSettings
from aegis.telegram.store import Store
from tests.fakes.telegram import CHAT, TOKEN, USER, BotApi, bot_api

ORDERS = MAX_PENDING + 150
"""More than the bound and one full answer of Telegram."""

GUARD_S = 60.0


class Doing:
    """Carries out orders once ``may_go`` is set."""

    def __init__(self) -> None:
        self.may_go = trio.Event()
        self.done = 0

    async def look_up(self, what: str) -> str:
        await self.may_go.wait()
        self.done += 1
        return ""


def work_of(api: BotApi, store: Store, nursery: trio.Nursery, doing: Doing) -> Work:
    settings = ChatSettings(
        chat_id=CHAT, user_ids=(USER,), token=TOKEN, api=f"http://127.0.0.1:{api.port}"
    )
    reporting: Any = SimpleNamespace(
        asking=None, start=lambda: None, has_topics=lambda has_them: None
    )
    chat: Any = None  # no order has an answer
    given: Any = doing
    return Work(settings, store, nursery, chat, reporting, given)


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(GUARD_S):
        while not holds():  # noqa: ASYNC110 -- no event
            await trio.sleep(0.01)


def test_no_more_than_the_bound_of_orders_waits_and_telegram_keeps_the_others(
    tmp_path: Path,
) -> None:
    async def run(api: BotApi) -> None:
        most = 0
        async with trio.open_nursery() as nursery:
            store = await Store.open(
                tmp_path / "telegram.jsonl", Flusher(OsDisk()), nursery.start_soon
            )
            doing = Doing()
            nursery.start_soon(work_of(api, store, nursery, doing).run)
            await until(lambda: len(store.fold.pending) >= MAX_PENDING)
            polls = api.calls.count("getUpdates")
            assert len(store.fold.pending) == MAX_PENDING
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert api.calls.count("getUpdates") == polls  # it does not ask for what has no room
            doing.may_go.set()
            while doing.done < ORDERS:
                most = max(most, len(store.fold.pending))
                await trio.sleep(0.001)
            await until(lambda: not store.fold.pending)
            store.close()
            nursery.cancel_scope.cancel()
        assert most <= MAX_PENDING

    with bot_api() as api:
        for _ in range(ORDERS):
            api.write("/help")
        trio.run(run, api)

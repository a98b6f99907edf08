"""``AskedQuestions``: the open questions of sessions to the person, by ``aegis_ask_human``.

The desk of requests owns them, for they outlive the turns and processes that asked. The directory
follows them, so that a session which waits for the answer is shown so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from actors import AskError, Registry
from aegis.errors import AegisError
from aegis.names import shorten
from aegis.protocol.agents import Blocked
from aegis.protocol.requests import ASK_HUMAN, FollowRequests, RequestInfo, RequestNews

FOLLOW_S = 3_600.0
"""Seconds after which the desk is asked again although nothing has changed."""

AGAIN_S = 1.0
"""Seconds until the desk is asked again after it did not answer."""


class AskedQuestions:
    """The open questions, by the ids of their sessions; kept while the directory is restarted."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, Blocked]] = {}

    def of(self, session: str) -> Blocked | None:
        """Return the question of a session that has waited longest."""
        return next(iter(self._open.get(session, {}).values()), None)

    async def follow(self, registry: Registry, on_change: Callable[[Iterable[str]], None]) -> None:
        """Follow the questions, for ever; call ``on_change`` with the ids of changed sessions."""
        news: RequestNews | None = None
        while True:
            desk = registry.find("service", "requests")
            try:
                if desk is not None:
                    asked = FollowRequests(place=None if news is None else news.place)
                    news = await desk.ask(asked, timeout=FOLLOW_S)
                    on_change(self._take(news))
                    continue
            except (AskError, AegisError):
                pass  # the desk is being restarted, or cannot read its ledger
            await trio.sleep(AGAIN_S)

    def _take(self, news: RequestNews) -> list[str]:
        """Take the changes, or all open requests; return the sessions that they are about."""
        changed = {}
        if news.open is not None:
            changed, self._open = dict.fromkeys(self._open), {}
        for request in news.changed:
            if request.session is None or request.tool != ASK_HUMAN:
                continue
            changed[request.session] = None
            questions = self._open.setdefault(request.session, {})
            questions.pop(request.id, None)
            if request.state == "open":
                questions[request.id] = _shown(request)
            elif not questions:
                del self._open[request.session]
        return [*changed]


def _shown(request: RequestInfo) -> Blocked:
    """Return a question as the cause for which its session waits."""
    questions = (request.input or {}).get("questions") or [{}]
    title = str(questions[0].get("question") or request.title)
    return Blocked(
        kind="question",
        request_id=request.id,
        title=shorten(title, 200),
        since=request.created,
        in_turn=False,
    )

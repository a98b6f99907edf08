"""``OutputFollowers``: the requests that wait for more output of one command."""

from __future__ import annotations

from actors import Reply
from aegis.agents.drivers.terminals.rules import TerminalRules
from aegis.errors import Busy
from aegis.hidden_urls import hide_session_urls
from aegis.protocol.feeds import AgentCommandNews, FollowAgentCommand

MAX_FOLLOWERS = 16

MAX_NEWS_BYTES = 64 * 1024
MAX_LINE_CHARS = 4096
"""Limits of one answer: its text, and the line that is not finished."""


class OutputFollowers:
    """The followers of the command of ``rules``; call ``notify`` after each change of these."""

    def __init__(self, rules: TerminalRules) -> None:
        self._rules = rules
        self._waiting: list[tuple[FollowAgentCommand, Reply[AgentCommandNews]]] = []

    def take(self, request: FollowAgentCommand, reply: Reply[AgentCommandNews]) -> None:
        """Answer once there is something new. Raises ``Busy``."""
        self._waiting = [each for each in self._waiting if not each[1].is_settled]
        if len(self._waiting) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} clients follow command {request.command!r} already")
        self._waiting.append((request, reply))
        self.notify()

    def notify(self) -> None:
        """Answer the requests that have something new."""
        waiting, self._waiting = self._waiting, []
        for request, reply in waiting:
            news = self._news(request.cursor)
            if request.seen is not None and is_seen(news, request):
                self._waiting.append((request, reply))
            else:
                reply.send(news)

    def _news(self, cursor: int) -> AgentCommandNews:
        begin, text = self._rules.since(cursor, MAX_NEWS_BYTES)
        status = self._rules.status
        return AgentCommandNews(
            begin=begin,
            cursor=begin + len(text.encode()),
            text=hide_session_urls(text),
            line=hide_session_urls(self._rules.line[-MAX_LINE_CHARS:]),
            has_ended=status is not None,
            exit_code=None if status is None else status.exit_code,
            signal=None if status is None else status.signal,
        )


def is_seen(news: AgentCommandNews, request: FollowAgentCommand) -> bool:
    """Return whether a reader has all of this already."""
    return (
        news.cursor == request.cursor
        and request.seen is not None
        and (news.line, news.has_ended) == (request.seen.line, request.seen.has_ended)
    )

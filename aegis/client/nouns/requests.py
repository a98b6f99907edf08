"""Requests of agents and workflows to people."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Literal

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import RequestsKind, RequestValue
from aegis.client.streams import Stream
from aegis.protocol.requests import (
    AnswerRequest,
    AskHuman,
    Decision,
    HumanAnswer,
    ListRequests,
    RequestList,
    RequestReply,
    Scope,
    Value,
)

Choices = list[str]


class Requests(Noun):
    """Requests of agents and workflows to people."""

    async def list(
        self,
        *,
        state: Literal["open", "closed", "all"] = "open",
        handle: str | None = None,
        id: str | None = None,  # noqa: A002 -- its name on the wire
        limit: int = 50,
    ) -> RequestList:
        """List requests, the oldest first; a session gets its own and those it may answer."""
        return await self._call(ListRequests, state=state, handle=handle, id=id, limit=limit)

    async def answer(
        self,
        id: str,  # noqa: A002 -- its name on the wire
        digest: str,
        answer: Decision,
        *,
        scope: Scope = "once",
        option: str = "",
        message: str = "",
        values: dict[str, Value] | None = None,
    ) -> RequestReply:
        """Answer a request with the ``digest`` that was shown with it; the first answer wins.

        ``values`` answer a question (its text: the label or labels) or a form (field: value).
        """
        return await self._call(
            AnswerRequest,
            id=id,
            digest=digest,
            answer=answer,
            scope=scope,
            option=option,
            message=message,
            values=values,
        )

    async def ask(
        self, question: str, *, options: Choices | None = None, wait_s: float = 50.0
    ) -> HumanAnswer:
        """Ask the person, under the handle of this client, and wait at most ``wait_s`` seconds.

        If it is still open then, its answer comes to the inbox of the handle.
        """
        return await self._call(AskHuman, question=question, options=options, wait_s=wait_s)

    def watch(self) -> AbstractAsyncContextManager[Stream[RequestValue]]:
        """Open the stream of requests, with ``async with``: the open ones first, then changes."""
        session = self._session
        return session.watch(Stream(session, RequestsKind(session.handle)))

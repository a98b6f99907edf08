"""Requests of agents and workflows to people, for the blocking client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from aegis.client.blocking.noun import BlockingNoun
from aegis.client.blocking.request_stream import requests_of
from aegis.client.stream_kinds import RequestValue
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


class Requests(BlockingNoun):
    """Requests of agents and workflows to people."""

    def list(
        self,
        *,
        state: Literal["open", "closed", "all"] = "open",
        handle: str | None = None,
        id: str | None = None,  # noqa: A002 -- its name on the wire
        limit: int = 50,
    ) -> RequestList:
        """List requests, the oldest first; a session gets its own and those it may answer."""
        return self._call(ListRequests, state=state, handle=handle, id=id, limit=limit)

    def answer(
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
        return self._call(
            AnswerRequest,
            id=id,
            digest=digest,
            answer=answer,
            scope=scope,
            option=option,
            message=message,
            values=values,
        )

    def ask(
        self, question: str, *, options: Choices | None = None, wait_s: float = 50.0
    ) -> HumanAnswer:
        """Ask the person, under the handle of this client, and wait at most ``wait_s`` seconds.

        If it is still open then, its answer comes to the inbox of the handle.
        """
        return self._call(AskHuman, question=question, options=options, wait_s=wait_s)

    def watch(self) -> Iterator[RequestValue]:
        """Yield the open requests, then each that changes, by repeated calls of ``list``.

        It never ends. A request that is open for less than half a second may be missed.
        """
        return requests_of(self)

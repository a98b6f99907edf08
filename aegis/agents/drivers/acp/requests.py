"""The open requests of one agent process: each gets exactly one response. Pure."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from aegis.agents.drivers.acp import elicitation, permissions
from aegis.agents.drivers.acp.frames import (
    INTERNAL_ERROR,
    REQUEST_CANCELLED,
    Id,
    error_response,
    response,
)
from aegis.agents.drivers.harness import Frame
from aegis.protocol.agent_events import RequestOpened

MAX_OPEN = 256
"""Requests of one process that may be open at a time."""

Kind = Literal["permission", "elicitation", "write", "run", "serve"]

KINDS: dict[str, Kind] = {
    "session/request_permission": "permission",
    "elicitation/create": "elicitation",
    "fs/read_text_file": "serve",
    "fs/write_text_file": "write",
    "terminal/create": "run",
    "terminal/output": "serve",
    "terminal/wait_for_exit": "serve",
    "terminal/kill": "serve",
    "terminal/release": "serve",
}
"""The methods of a client, by what answers them."""

CANCELLABLE = frozenset({"terminal/wait_for_exit"})
"""The served methods that can take long, and that change nothing."""

_CANCELLED: dict[Kind, dict[str, Any]] = {
    "permission": permissions.CANCELLED,
    "elicitation": elicitation.CANCELLED,
}


@attrs.frozen(kw_only=True)
class AcpRequest:
    """One open request: the agent's ``id`` of it, and ours (``key``), which is never used again.

    ``opened`` is the request that a person sees; None for one that is served. ``params`` are those
    of the agent.
    """

    id: Id
    key: str
    kind: Kind
    method: str
    opened: RequestOpened | None = None
    params: dict[str, Any] = attrs.field(factory=dict, repr=False)


def cancelled(id_: Id, kind: Kind, *, is_by_agent: bool = False) -> Frame:
    """Return the response to a request that nobody answers any more.

    ``is_by_agent``: the agent has cancelled it.
    """
    if is_by_agent and kind not in _CANCELLED:
        return error_response(id_, REQUEST_CANCELLED, "the request was cancelled")
    if kind == "serve":
        return error_response(id_, INTERNAL_ERROR, "not served: too many requests are open")
    if kind == "write":
        return error_response(id_, INTERNAL_ERROR, "not written: nobody answered the request")
    if kind == "run":
        return error_response(id_, INTERNAL_ERROR, "not run: nobody answered the request")
    return response(id_, _CANCELLED[kind])


class AcpRequests:
    """The open requests, by our keys and by the agent's ids."""

    def __init__(self) -> None:
        self._by_key: dict[str, AcpRequest] = {}
        self._by_id: dict[Id, str] = {}
        self._opened = 0

    def is_open(self, id_: Id) -> bool:
        """Whether the agent waits for a response with this id."""
        return id_ in self._by_id

    def is_full(self) -> bool:
        """Whether no further request can be open."""
        return len(self._by_key) >= MAX_OPEN

    def next_key(self) -> str:
        """Return a key for the next request. Agents repeat their ids, in another life or sooner."""
        self._opened += 1
        return str(self._opened)

    def add(self, asked: AcpRequest) -> None:
        """Note an open request."""
        self._by_key[asked.key] = asked
        self._by_id[asked.id] = asked.key

    def get(self, key: str) -> AcpRequest | None:
        """Return the open request of a key."""
        return self._by_key.get(key)

    def with_id(self, id_: Id | None) -> AcpRequest | None:
        """Return the open request with the agent's id."""
        return None if id_ is None else self._by_key.get(self._by_id.get(id_, ""))

    def close(self, asked: AcpRequest) -> None:
        """Forget a request: its response is about to be written."""
        del self._by_key[asked.key]
        del self._by_id[asked.id]

    def of_people(self) -> list[AcpRequest]:
        """Return the open requests that a person answers, the oldest first."""
        return [each for each in self._by_key.values() if each.opened is not None]

    def clear(self) -> None:
        """Forget all of them."""
        self._by_key.clear()
        self._by_id.clear()

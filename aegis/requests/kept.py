"""``KeptRequests``: the requests of a daemon, of which the oldest closed ones are dropped. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from aegis.requests.records import Holder, Record

MAX_CLOSED = 256
MAX_CLOSED_BYTES = 4 * 1024 * 1024
"""Closed requests that are kept, and the size of their inputs."""


class KeptRequests:
    """Requests by their ids, in the order of their opening."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._closed: dict[str, int] = {}
        self._closed_bytes = 0

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, request_id: str) -> Record:
        return self._records[request_id]

    def get(self, request_id: str) -> Record | None:
        """Return the request with this id; None if there is none."""
        return self._records.get(request_id)

    def of_holder(self, holder: Holder) -> list[Record]:
        """Return the requests of a session, a workflow or an asker."""
        return [each for each in self if each.holder == holder]

    def of_session(self, session: str) -> list[Record]:
        """Return the requests of a session, its questions to a person included."""
        return [each for each in self if each.session == session]

    def put(self, record: Record) -> None:
        """Add or replace a request; drop the oldest closed ones beyond the limits."""
        self._records[record.id] = record
        if record.is_live or record.id in self._closed:
            return
        self._closed[record.id] = record.input_bytes if record.input is not None else 0
        self._closed_bytes += self._closed[record.id]
        while len(self._closed) > MAX_CLOSED or self._closed_bytes > MAX_CLOSED_BYTES:
            self.drop(next(iter(self._closed)))

    def drop(self, request_id: str) -> None:
        """Remove a request, if it is there."""
        self._records.pop(request_id, None)
        self._closed_bytes -= self._closed.pop(request_id, 0)

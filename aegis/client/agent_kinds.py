"""The kinds of the streams of agent sessions. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.client.stream_kinds import Gap, Kind, structured
from aegis.protocol.agent_events import AgentEvent, Unknown
from aegis.protocol.agent_streams import (
    AgentItem,
    AgentsItem,
    CommandOutputItem,
    EntriesItem,
    SessionStart,
)
from aegis.protocol.agents import TranscriptEntry


@attrs.frozen(kw_only=True)
class SessionEvent:
    """One entry of a transcript; see ``TranscriptEntry``.

    ``event`` is the event of the agent, of class ``Unknown`` if this client does not know its type;
    None: the entry is of another kind.
    """

    seq: int
    kind: str
    at: str
    fields: dict[str, Any]
    event: AgentEvent | None


AgentsValue = AgentsItem | AgentItem | Gap
SessionValue = SessionEvent | Gap
CommandValue = CommandOutputItem | Gap


class SessionKind(Kind[SessionValue]):
    """The transcript of the session ``name``, after ``since``, or from the newest ``last_n`` on."""

    stream = "session"

    def __init__(
        self, handle: str | None, name: str, *, since: int | None, last_n: int | None
    ) -> None:
        super().__init__(handle)
        self._name = name
        self._since = since
        self._last_n = last_n
        self._was_restarted = False

    def arguments(self) -> dict[str, object]:
        """Return the arguments; ``since`` is the last entry received."""
        asked: dict[str, object] = {"handle": self._name, **super().arguments()}
        if self._since is not None:
            return {**asked, "since": self._since}
        return asked if self._last_n is None else {**asked, "last_n": self._last_n}

    def opened(self, start: dict[str, Any]) -> list[SessionValue]:
        """Take the place from the daemon; return a gap after a restart at another place."""
        self._was_open = True
        self._since = structured(SessionStart, start).since
        restarted, self._was_restarted = self._was_restarted, False
        return [Gap(dropped=None, cursor=None, reason="reconnected")] if restarted else []

    def items(self, document: dict[str, Any]) -> list[SessionValue]:
        """Return the entries of an item."""
        entries = structured(EntriesItem, document).entries
        if entries:
            self._since = entries[-1].seq
        return [session_event(each) for each in entries]

    def is_restarted(self, code: str) -> bool:
        """Return True once if the place is refused."""
        # After a power loss a transcript may have less than the daemon had sent.
        if not self._was_open or code != "invalid_request":
            return False
        self._since = self._last_n = None
        self._was_open, self._was_restarted = False, True
        return True


class CommandKind(Kind[CommandValue]):
    """The output of the command ``command`` of the session ``name``.

    After a lost connection it begins again with the output that is kept.
    """

    stream = "agent_command"

    def __init__(self, handle: str | None, name: str, command: str) -> None:
        super().__init__(handle)
        self._name = name
        self._command = command

    def arguments(self) -> dict[str, object]:
        """Return the arguments."""
        return {"handle": self._name, "command": self._command, **super().arguments()}

    def item(self, document: dict[str, Any]) -> CommandValue:
        """Return the next output."""
        return structured(CommandOutputItem, document)


def session_event(entry: TranscriptEntry) -> SessionEvent:
    """Return an entry with its typed event."""
    return SessionEvent(
        seq=entry.seq,
        kind=entry.kind,
        at=entry.at,
        fields=entry.fields,
        event=_event(entry.fields.get("event")) if entry.kind == "event" else None,
    )


def _event(document: object) -> AgentEvent:
    raw = document if isinstance(document, dict) else {}
    try:
        event: AgentEvent = structure(AgentEvent, raw)
    except CodecError:  # of a newer daemon, or shortened
        return Unknown(kind=str(raw.get("type", "")), raw=raw)
    return event

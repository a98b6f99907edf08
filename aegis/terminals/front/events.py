"""``Telling``: tells whoever serves events what happens on a terminal, while anybody wants to know.

Nobody does until the first client asks: then a look costs one search in the registry.
"""

from __future__ import annotations

from collections.abc import Callable

from actors import System
from aegis.names import shorten
from aegis.protocol.streams import MAX_EVENT_CMD_CHARS, CommandHeader, CommandItem, TerminalItem
from aegis.protocol.terminals import CommandRecord, TerminalInfo
from aegis.publishing import events_service, publish_terminal
from aegis.terminals.front.flight import Flight
from aegis.terminals.front.standing import Standing
from aegis.terminals.record import InFlight
from aegis.terminals.wakes.wakes import Wakes


class Telling:
    """That of one front; ``info`` is what clients are told of its terminal."""

    def __init__(
        self,
        system: System,
        standing: Standing,
        flight: Flight,
        wakes: Wakes,
        info: Callable[[], TerminalInfo],
    ) -> None:
        self._system = system
        self._standing = standing
        self._flight = flight
        self._wakes = wakes
        self._info = info
        self._looked: object = None
        self._told: TerminalInfo | None = None
        self._is_closed = False

    def opened(self) -> None:
        """The terminal is there."""
        if events_service(self._system) is not None:
            publish_terminal(self._system, "terminal_opened", self._info())

    def ended(self) -> None:
        """It is gone. One that comes back with the next daemon is not closed."""
        if self._standing.ending == "closed" and not self._is_closed:
            self._is_closed = True
            publish_terminal(self._system, "terminal_closed", self._info())

    def look(self) -> None:
        """Something may be different."""
        hub = events_service(self._system)
        if hub is None:
            return
        standing = self._standing
        looks = (
            standing.state,
            self._flight.is_free,
            standing.pid,
            standing.cwd,
            standing.reported,
            standing.settings,
            standing.integration,
            standing.shells,
            standing.typing,
            self._wakes.subscribers,
        )
        if looks != self._looked:
            self._looked = looks
            info = self._info()
            if info != self._told and standing.state != "closed":
                self._told = info
                hub.tell(TerminalItem(event="terminal_changed", terminal=info))

    def started(self, command: InFlight | None) -> None:
        """A command runs."""
        hub = events_service(self._system)
        if hub is not None and command is not None:
            header = self._header(command.seq, command.cmd, command.writer)
            hub.tell(CommandItem(event="command_started", command=header))

    def finished(self, record: CommandRecord) -> None:
        """A record is in the ledger."""
        hub = events_service(self._system)
        if hub is not None:
            header = self._header(
                record.seq, record.cmd, record.writer, record.exit, record.duration_s
            )
            hub.tell(CommandItem(event="command_finished", command=header))
            self._looked = None  # the newest exit is another one

    def _header(
        self,
        seq: int,
        cmd: str | None,
        writer: str,
        exit_code: int | None = None,
        duration_s: float | None = None,
    ) -> CommandHeader:
        return CommandHeader(
            name=self._standing.settings.name,
            seq=seq,
            cmd=None if cmd is None else shorten(cmd, MAX_EVENT_CMD_CHARS),
            writer=writer,
            exit=exit_code,
            duration_s=duration_s,
        )

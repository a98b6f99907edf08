"""``TerminalEvents``: publishes the events of a terminal while a server subscribes to events.

Until the first client subscribes there is no event hub: a check costs one look-up in the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from actors import System
from aegis.protocol.streams import (
    CommandItem,
    TerminalItem,
)
from aegis.protocol.terminals import CommandHeader, CommandRecord, TerminalInfo
from aegis.publishing import events_service, publish_terminal
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.front.terminal_state import TerminalState
from aegis.terminals.header import header_of_record, header_of_unrecorded
from aegis.terminals.record import UnrecordedCommand
from aegis.terminals.wakes.wakes import WakeSubscribers


class TerminalEvents:
    """The events of one front; ``info`` returns the terminal's description for clients."""

    def __init__(
        self,
        system: System,
        state: TerminalState,
        current: CurrentCommand,
        wakes: WakeSubscribers,
        info: Callable[[], TerminalInfo],
    ) -> None:
        self._system = system
        self._state = state
        self._command = current
        self._wakes = wakes
        self._info = info
        self._seen: object = None
        self._published: TerminalInfo | None = None
        self._is_closed = False

    def opened(self) -> None:
        """Publish that the terminal was opened."""
        if events_service(self._system) is not None:
            publish_terminal(self._system, "terminal_opened", self._info())

    def ended(self) -> None:
        """Publish that the terminal was closed, unless the next daemon restores it."""
        if self._state.ending == "closed" and not self._is_closed:
            self._is_closed = True
            publish_terminal(self._system, "terminal_closed", self._info())

    def check_changed(self) -> None:
        """Publish the terminal's description if it has changed."""
        hub = events_service(self._system)
        if hub is None:
            return
        state = self._state
        seen = (
            state.state,
            self._command.is_free,
            state.pid,
            state.cwd,
            state.reported,
            state.settings,
            state.integration,
            state.shells,
            state.typing,
            state.needs_input,
            state.may_need_input,
            self._wakes.subscribers,
        )
        if seen != self._seen:
            self._seen = seen
            info = self._info()
            if info != self._published and state.state != "closed":
                self._published = info
                hub.tell(TerminalItem(event="terminal_changed", terminal=info))

    def started(self, command: UnrecordedCommand | None) -> None:
        """Publish that a command started."""
        self._publish("command_started", command)

    def changed(self, command: UnrecordedCommand | None) -> None:
        """Publish that the current command waits for other input than before."""
        self._publish("command_changed", command)

    def finished(self, record: CommandRecord) -> None:
        """Publish that a command finished: its record is in the ledger."""
        hub = events_service(self._system)
        if hub is not None:
            header = header_of_record(self._state.settings.name, record)
            hub.tell(CommandItem(event="command_finished", command=header))
            self._seen = None  # the description has a new newest exit

    def running(self) -> CommandHeader | None:
        """Return the header of the command that runs."""
        command = self._command.command
        return None if command is None or command.began_at is None else self._header(command)

    def newest_unrecorded(self) -> CommandHeader | None:
        """Return the header of the newest command without a record."""
        newest = self._command.unrecorded()[-1:]
        return self._header(newest[0]) if newest else None

    def _publish(
        self,
        event: Literal["command_started", "command_changed"],
        command: UnrecordedCommand | None,
    ) -> None:
        hub = events_service(self._system)
        if hub is not None and command is not None:
            hub.tell(CommandItem(event=event, command=self._header(command)))

    def _header(self, command: UnrecordedCommand) -> CommandHeader:
        state = self._state
        return header_of_unrecorded(
            state.settings.name, command, state.needs_input, state.may_need_input
        )

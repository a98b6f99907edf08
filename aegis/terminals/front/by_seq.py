"""``BySeq``: what is asked about one command of a terminal, by its number.

A command that has no record yet is known to the front; whether it still runs, and where its output
ends, its shell knows first. The others are in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable

from actors import AskError, Ref, Reply
from aegis.errors import AegisError
from aegis.protocol.control import SignalTerminal
from aegis.protocol.output import OutputChunk, ReadOutput
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front import for_shell
from aegis.terminals.front.flight import Flight
from aegis.terminals.history import History
from aegis.terminals.messages import FetchOutput, SendSignal, TypeKeys
from aegis.terminals.record import InFlight
from aegis.terminals.shell.signalling import not_running


class BySeq:
    """The commands of the terminal ``name``. ``start_soon`` is that of the front's context."""

    def __init__(
        self,
        name: str,
        flight: Flight,
        history: History,
        shell: Ref[FetchOutput],
        *,
        start_soon: Callable[..., object],
    ) -> None:
        self._name = name
        self._flight = flight
        self._history = history
        self._shell = shell
        self._start_soon = start_soon

    def action(self, request: for_shell.Acts) -> TypeKeys | SendSignal:
        """What somebody does to who is in front. Raises ``NotFound``: a signal comes too late."""
        if not isinstance(request, SignalTerminal) or request.seq is None:
            return for_shell.action(request, None)
        command = self._unrecorded(request.seq)
        if command is None or command.outcome is not None:
            raise not_running(self._name)
        return for_shell.action(request, command.key)

    def newest(self, request: ReadOutput, last: CommandRecord | None) -> FetchOutput:
        """What is to be read of a request that names no command; ``last`` is the newest record."""
        newest = [*self._flight.unrecorded()[-1:], last]
        return for_shell.fetch(request, 0 if newest[0] is None else newest[0].raw_start)

    def read(self, request: ReadOutput, reply: Reply[OutputChunk]) -> None:
        """Answer what is asked about the output of one command. Errors go to ``reply``."""
        assert request.seq is not None
        command = self._unrecorded(request.seq)
        if command is None:
            self._start_soon(self._read_recorded, request.seq, request, reply)
            return
        end = None if command.outcome is None else command.outcome.raw_end
        key = command.key if end is None else None
        try:
            fetch = for_shell.fetch_within(request, command.raw_start, end, key)
            self._shell.forward(fetch, reply)
        except (AegisError, AskError) as error:
            reply.fail(error)

    async def _read_recorded(
        self, seq: int, request: ReadOutput, reply: Reply[OutputChunk]
    ) -> None:
        try:
            record = await self._history.one(seq, self._name)
            self._shell.forward(for_shell.fetch_recorded(request, record), reply)
        except (AegisError, AskError) as error:
            reply.fail(error)

    def _unrecorded(self, seq: int) -> InFlight | None:
        known = {command.seq: command for command in self._flight.unrecorded()}
        return known.get(seq)

"""Requests of clients, translated into requests for the terminal's shell.

The front knows a command that has no record yet; only the shell knows whether it still runs and
where its output ends. All other commands are in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable

from actors import AskError, Ref, Reply
from aegis.errors import AegisError
from aegis.protocol.control import SignalTerminal
from aegis.protocol.feeds import TypeBytes
from aegis.protocol.output import OutputChunk, ReadOutput
from aegis.protocol.terminals import CommandRecord, SendKeys
from aegis.terminals.command_key import CommandKey
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.history import History
from aegis.terminals.messages import FetchOutput, SendSignal, TypeKeys
from aegis.terminals.output.reading import check_cursor_of
from aegis.terminals.record import UnrecordedCommand, writer_tag
from aegis.terminals.shell.signalling import not_running

InputRequest = SendKeys | TypeBytes | SignalTerminal


class CommandRequests:
    """Requests about the commands of the terminal ``name``.

    ``start_soon`` starts a helper task of the front.
    """

    def __init__(
        self,
        name: str,
        current: CurrentCommand,
        history: History,
        shell: Ref[FetchOutput],
        *,
        start_soon: Callable[..., object],
    ) -> None:
        self._name = name
        self._command = current
        self._history = history
        self._shell = shell
        self._start_soon = start_soon

    def shell_input(self, request: InputRequest) -> TypeKeys | SendSignal:
        """Return the shell's request. Raises ``NotFound`` if the signal's command has ended."""
        if not isinstance(request, SignalTerminal) or request.seq is None:
            return _shell_input(request, None)
        command = self._unrecorded(request.seq)
        if command is None or command.outcome is not None:
            raise not_running(self._name)
        return _shell_input(request, command.key)

    def fetch_newest(self, request: ReadOutput, last: CommandRecord | None) -> FetchOutput:
        """Translate a request that names no command; ``last`` is the newest record."""
        newest = [*self._command.unrecorded()[-1:], last]
        return fetch(request, 0 if newest[0] is None else newest[0].raw_start)

    def read(self, request: ReadOutput, reply: Reply[OutputChunk]) -> None:
        """Answer a request for the output of one command. Errors go to ``reply``."""
        assert request.seq is not None
        command = self._unrecorded(request.seq)
        if command is None:
            self._start_soon(self._read_recorded, request.seq, request, reply)
            return
        end = None if command.outcome is None else command.outcome.raw_end
        key = command.key if end is None else None
        try:
            self._shell.forward(_fetch_within(request, command.raw_start, end, key), reply)
        except (AegisError, AskError) as error:
            reply.fail(error)

    async def _read_recorded(
        self, seq: int, request: ReadOutput, reply: Reply[OutputChunk]
    ) -> None:
        try:
            record = await self._history.one(seq, self._name)
            self._shell.forward(fetch_recorded(request, record), reply)
        except (AegisError, AskError) as error:
            reply.fail(error)

    def _unrecorded(self, seq: int) -> UnrecordedCommand | None:
        known = {command.seq: command for command in self._command.unrecorded()}
        return known.get(seq)


def _shell_input(request: InputRequest, command: CommandKey | None) -> TypeKeys | SendSignal:
    """Translate keys or a signal; with ``command`` the signal is for that command only."""
    writer = writer_tag(request.from_handle)
    match request:
        case SendKeys(keys=keys):
            return TypeKeys(keys=keys.encode("utf-8", "surrogatepass"), writer=writer)
        case TypeBytes(keys=data):
            return TypeKeys(keys=data, writer=writer)
        case SignalTerminal(signal=signal):
            return SendSignal(signal=signal.removeprefix("SIG"), writer=writer, command=command)


def fetch(
    request: ReadOutput,
    start: int,
    *,
    end: int | None = None,
    command: CommandKey | None = None,
) -> FetchOutput:
    """Translate ``request``; without a cursor, reading begins at ``start``.

    ``end`` and ``command`` as in ``FetchOutput``.
    """
    return FetchOutput(
        cursor=start if request.cursor is None else request.cursor,
        max_bytes=request.max_bytes,
        wait_s=request.wait_s,
        plain=request.plain,
        end=end,
        command=command,
    )


def fetch_recorded(request: ReadOutput, record: CommandRecord) -> FetchOutput:
    """Translate a request for the output of a recorded command. Raises ``InvalidRequest``."""
    # A record without a ``raw_end`` has no output.
    end = record.raw_start if record.raw_end is None else record.raw_end
    return _fetch_within(request, record.raw_start, end)


def _fetch_within(
    request: ReadOutput, start: int, end: int | None, command: CommandKey | None = None
) -> FetchOutput:
    """Limit the request to ``start``..``end``, or to the output of ``command`` so far.

    Raises ``InvalidRequest`` for a cursor outside that range.
    """
    if request.cursor is not None:
        check_cursor_of(f"the command with seq {request.seq}", request.cursor, start, end)
    return fetch(request, start, end=end, command=command)

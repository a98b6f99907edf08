"""Requests of clients, translated into requests for the terminal's shell. Pure."""

from __future__ import annotations

from aegis.protocol.control import SignalTerminal
from aegis.protocol.feeds import TypeBytes
from aegis.protocol.output import ReadOutput
from aegis.protocol.terminals import CommandRecord, SendKeys
from aegis.terminals.messages import CommandKey, FetchOutput, SendSignal, TypeKeys
from aegis.terminals.output.reading import check_cursor_of
from aegis.terminals.record import UnrecordedCommand, writer_tag

InputRequest = SendKeys | TypeBytes | SignalTerminal


def shell_input(request: InputRequest, command: CommandKey | None) -> TypeKeys | SendSignal:
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


def fetch_unrecorded(request: ReadOutput, command: UnrecordedCommand) -> FetchOutput:
    """Translate a request for the output of a command without a record.

    Raises ``InvalidRequest``.
    """
    end = None if command.outcome is None else command.outcome.raw_end
    return _fetch_within(request, command.raw_start, end, command.key if end is None else None)


def _fetch_within(
    request: ReadOutput, start: int, end: int | None, command: CommandKey | None = None
) -> FetchOutput:
    """Limit the request to ``start``..``end``, or to the output of ``command`` so far.

    Raises ``InvalidRequest`` for a cursor outside that range.
    """
    if request.cursor is not None:
        check_cursor_of(f"the command with seq {request.seq}", request.cursor, start, end)
    return fetch(request, start, end=end, command=command)

"""What a client asks of a terminal's front, as the shell beside it is asked. Pure."""

from __future__ import annotations

from aegis.protocol.control import SignalTerminal
from aegis.protocol.feeds import TypeBytes
from aegis.protocol.output import ReadOutput
from aegis.protocol.terminals import CommandRecord, SendKeys
from aegis.terminals import messages as msg
from aegis.terminals.command_key import CommandKey
from aegis.terminals.output.reading import check_cursor_of
from aegis.terminals.record import writer_tag

Acts = SendKeys | TypeBytes | SignalTerminal


def action(request: Acts, command: CommandKey | None) -> msg.TypeKeys | msg.SendSignal:
    """What somebody does to the program in front; ``command``: a signal is for this one only."""
    writer = writer_tag(request.from_handle)
    match request:
        case SendKeys(keys=keys):
            return msg.TypeKeys(keys=keys.encode("utf-8", "surrogatepass"), writer=writer)
        case TypeBytes(keys=data):
            return msg.TypeKeys(keys=data, writer=writer)
        case SignalTerminal(signal=signal):
            return msg.SendSignal(signal=signal.removeprefix("SIG"), writer=writer, command=command)


def fetch(
    request: ReadOutput,
    start: int,
    *,
    end: int | None = None,
    command: CommandKey | None = None,
) -> msg.FetchOutput:
    """What is to be read; without a cursor from ``start`` on, where the command began.

    ``end`` and ``command`` as in ``FetchOutput``.
    """
    return msg.FetchOutput(
        cursor=start if request.cursor is None else request.cursor,
        max_bytes=request.max_bytes,
        wait_s=request.wait_s,
        plain=request.plain,
        end=end,
        command=command,
    )


def fetch_recorded(request: ReadOutput, record: CommandRecord) -> msg.FetchOutput:
    """What is to be read of the output of a command that has ended. Raises ``InvalidRequest``.

    A record that does not tell its end tells of no output.
    """
    end = record.raw_start if record.raw_end is None else record.raw_end
    return fetch_within(request, record.raw_start, end)


def fetch_within(
    request: ReadOutput, start: int, end: int | None, command: CommandKey | None = None
) -> msg.FetchOutput:
    """What is to be read from ``start`` to ``end``, or as far as ``command`` has come.

    Raises ``InvalidRequest`` if the cursor lies elsewhere.
    """
    if request.cursor is not None:
        check_cursor_of(f"the command with seq {request.seq}", request.cursor, start, end)
    return fetch(request, start, end=end, command=command)

"""What a client asks of a terminal's front, as the shell beside it is asked. Pure."""

from __future__ import annotations

from aegis.protocol.control import SignalTerminal
from aegis.protocol.feeds import TypeBytes
from aegis.protocol.output import ReadOutput
from aegis.protocol.terminals import SendKeys
from aegis.terminals import messages as msg
from aegis.terminals.record import writer_tag

Acts = SendKeys | TypeBytes | SignalTerminal


def action(request: Acts) -> msg.TypeKeys | msg.SendSignal:
    """What somebody does to the program in front."""
    writer = writer_tag(request.from_handle)
    match request:
        case SendKeys(keys=keys):
            return msg.TypeKeys(keys=keys.encode("utf-8", "surrogatepass"), writer=writer)
        case TypeBytes(keys=data):
            return msg.TypeKeys(keys=data, writer=writer)
        case SignalTerminal(signal=signal):
            return msg.SendSignal(signal=signal.removeprefix("SIG"), writer=writer)


def fetch(request: ReadOutput, newest: int) -> msg.FetchOutput:
    """What is to be read; without a cursor from ``newest`` on, where the newest command began."""
    return msg.FetchOutput(
        cursor=newest if request.cursor is None else request.cursor,
        max_bytes=request.max_bytes,
        wait_s=request.wait_s,
        plain=request.plain,
    )

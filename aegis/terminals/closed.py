"""What a terminal without actors can still tell of its output: it was closed, or has failed."""

from __future__ import annotations

from actors import Reply
from aegis.errors import AegisError
from aegis.journal.raw_log import RawLog
from aegis.protocol.output import OutputChunk, ReadOutput, WaitOutcome, WaitTerminal
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.history import History
from aegis.terminals.messages import FetchOutput
from aegis.terminals.reading import check_cursor, read_output
from aegis.terminals.settings import TerminalFiles


async def answer_output(
    files: TerminalFiles, request: ReadOutput, reply: Reply[OutputChunk]
) -> None:
    """Read what was printed; nothing more will be, so nobody waits for it."""
    try:
        reply.send(await _read(files, request))
    except AegisError as error:
        reply.fail(error)


async def answer_wait(
    files: TerminalFiles, request: WaitTerminal, reply: Reply[WaitOutcome]
) -> None:
    """A command that was recorded has ended; nothing else will happen."""
    try:
        reply.send(await _waited(files, request))
    except AegisError as error:
        reply.fail(error)


async def _read(files: TerminalFiles, request: ReadOutput) -> OutputChunk:
    history = History(files.ledger)
    last, _ = history.last()
    start = 0 if last is None else last.raw_start
    fetch = FetchOutput(
        cursor=start if request.cursor is None else request.cursor,
        max_bytes=request.max_bytes,
        plain=request.plain,
    )
    log = RawLog.open(files.directory, at_least=history.last_cursor())
    try:
        check_cursor(log, request.name, fetch.cursor or 0)
        return await read_output(log, fetch, is_running=lambda: False)
    finally:
        log.close()


async def _waited(files: TerminalFiles, request: WaitTerminal) -> WaitOutcome:
    history = History(files.ledger)
    last, _ = history.last()
    if request.seq is not None:
        return _ended(await history.one(request.seq, request.name))
    if request.pattern is None and request.idle_s is None:
        return _ended(last)
    return WaitOutcome(reason="closed", match=None, cursor=history.last_cursor(), record=None)


def _ended(record: CommandRecord | None) -> WaitOutcome:
    cursor = 0 if record is None or record.raw_end is None else record.raw_end
    return WaitOutcome(reason="ended", match=None, cursor=cursor, record=record)

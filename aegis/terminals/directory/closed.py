"""What a terminal without actors can still tell of its output: it was closed, or has failed."""

from __future__ import annotations

from actors import Reply
from aegis.errors import AegisError, Unavailable
from aegis.journal.disk import Disk
from aegis.journal.raw_log import RawLog
from aegis.protocol.feeds import KeptBytes, ReadKept
from aegis.protocol.output import OutputChunk, ReadOutput, WaitOutcome, WaitTerminal
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front.for_shell import fetch, fetch_recorded
from aegis.terminals.history import History
from aegis.terminals.messages import FetchOutput
from aegis.terminals.output.reading import check_cursor, read_output
from aegis.terminals.settings import TerminalFiles


async def answer_output(
    disk: Disk, files: TerminalFiles, request: ReadOutput, reply: Reply[OutputChunk]
) -> None:
    """Read what was printed. Who would wait for more is told that there will be none."""
    try:
        reply.send(await _read(disk, files, request))
    except AegisError as error:
        reply.fail(error)


async def answer_wait(
    disk: Disk, files: TerminalFiles, request: WaitTerminal, reply: Reply[WaitOutcome]
) -> None:
    """A command that was recorded has ended; nothing else will happen."""
    try:
        reply.send(await _waited(disk, files, request))
    except AegisError as error:
        reply.fail(error)


def answer_kept(
    disk: Disk,
    files: TerminalFiles,
    request: ReadKept,
    reply: Reply[KeptBytes],
    failure: str | None,
) -> None:
    """Give the bytes that a stream has not sent yet. ``failure``: why, if nobody closed it."""
    try:
        log = RawLog.open(
            files.directory, disk=disk, at_least=History(files.ledger, disk=disk).last_cursor()
        )
        try:
            cursor, data = log.stretch(request.cursor, request.max_bytes)
        finally:
            log.close()
    except AegisError as error:
        reply.fail(error)
    else:
        reply.send(KeptBytes(data=data, cursor=cursor, failure=failure))


async def _read(disk: Disk, files: TerminalFiles, request: ReadOutput) -> OutputChunk:
    history = History(files.ledger, disk=disk)
    wanted = await _wanted(history, request)
    log = RawLog.open(files.directory, disk=disk, at_least=history.last_cursor())
    try:
        check_cursor(log, request.name, wanted.cursor or 0)
        chunk = await read_output(log, wanted, is_running=lambda: False, end=lambda: wanted.end)
    finally:
        log.close()
    if request.wait_s and request.seq is None and chunk.next_cursor == wanted.cursor:
        raise Unavailable(
            f"terminal {request.name!r} is closed: nothing more will be printed; aegis_term_spawn "
            "opens it again over its history"
        )
    return chunk


async def _wanted(history: History, request: ReadOutput) -> FetchOutput:
    if request.seq is not None:
        return fetch_recorded(request, await history.one(request.seq, request.name))
    last, _ = history.last()
    return fetch(request, 0 if last is None else last.raw_start)


async def _waited(disk: Disk, files: TerminalFiles, request: WaitTerminal) -> WaitOutcome:
    history = History(files.ledger, disk=disk)
    last, _ = history.last()
    if request.seq is not None:
        return _ended(await history.one(request.seq, request.name))
    if request.pattern is None and request.idle_s is None:
        return _ended(last)
    return WaitOutcome(reason="closed", match=None, cursor=history.last_cursor(), record=None)


def _ended(record: CommandRecord | None) -> WaitOutcome:
    cursor = 0 if record is None or record.raw_end is None else record.raw_end
    return WaitOutcome(reason="ended", match=None, cursor=cursor, record=record)

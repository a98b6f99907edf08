"""Terminals without actors: a failed one, and the output of one that was closed or has failed."""

from __future__ import annotations

from typing import Literal

import attrs
import trio

from actors import Reply
from aegis.errors import AegisError, Unavailable
from aegis.journal.disk import Disk
from aegis.journal.raw_log import RawLog
from aegis.protocol.feeds import KeptBytes, ReadKept
from aegis.protocol.naming import LOCAL_NODE
from aegis.protocol.output import OutputChunk, ReadOutput, WaitOutcome, WaitTerminal
from aegis.protocol.terminals import CommandRecord, TerminalInfo
from aegis.terminals.front.requests import fetch, fetch_recorded
from aegis.terminals.history import History
from aegis.terminals.messages import FetchOutput
from aegis.terminals.output.reading import check_cursor, read_output
from aegis.terminals.sentences import SPAWN_ANEW
from aegis.terminals.settings import TerminalFiles, TerminalSettings


@attrs.define(eq=False, kw_only=True)
class FailedTerminal:
    """A terminal that is open and has no actors: its start failed, or its subtree gave up.

    ``why`` is the reason, without a full stop. ``settled`` is set when its processes are gone,
    except those in ``leftover``, and the command that was running has its record, of which
    ``subscribers`` were notified; ``last`` is the newest record. ``is_known``: the settings are its
    own, and not defaults. ``is_finalised``: the record is written; else that is tried once more.
    ``is_retried``: the disk refused, or no worker was up, so the start is retried; not settled
    during a retry. ``node`` is where it ran, or was to run.
    """

    settings: TerminalSettings
    why: str
    is_known: bool = True
    is_finalised: bool = False
    last: CommandRecord | None = None
    subscribers: list[str] = attrs.field(factory=list)
    leftover: tuple[str, ...] = ()
    settled: trio.Event = attrs.field(factory=trio.Event)
    is_retried: bool = False
    node: str = LOCAL_NODE

    def refusal(self) -> Unavailable:
        """Return the error for requests that need the terminal."""
        name = self.settings.name
        if self.is_retried:
            return Unavailable(
                f"terminal {name!r} has failed: it could not be started, and the daemon keeps "
                f"retrying: {self.why}"
            )
        return Unavailable(f"terminal {name!r} has failed: {self.why}; {SPAWN_ANEW}")

    def info(self, state: Literal["starting", "failed"] = "failed") -> TerminalInfo:
        """Return its entry in the list of terminals."""
        return TerminalInfo(
            name=self.settings.name,
            pid=None,
            shell=self.settings.shell,
            cwd=self.settings.cwd,
            started_at=self.settings.started_at,
            cols=self.settings.cols,
            rows=self.settings.rows,
            integration="osc133",
            state=state,
            last_cmd_at=None if self.last is None else self.last.started_at,
            last_exit=None if self.last is None else self.last.exit,
            subscribers=self.subscribers,
            restarts=0,
            node=self.node,
            notice=self.why if state == "failed" else None,
        )


def unanswered_info(settings: TerminalSettings, node: str = LOCAL_NODE) -> TerminalInfo:
    """Return the list entry of a terminal whose front does not answer."""
    unanswered = FailedTerminal(settings=settings, why="it does not answer", node=node)
    return unanswered.info("starting")


# Requests about a closed or failed terminal, answered from its files.


async def answer_output(
    disk: Disk, files: TerminalFiles, request: ReadOutput, reply: Reply[OutputChunk]
) -> None:
    """Answer with the stored output; refuse a request that waits for more."""
    try:
        reply.send(await _read(disk, files, request))
    except AegisError as error:
        reply.fail(error)


async def answer_wait(
    disk: Disk, files: TerminalFiles, request: WaitTerminal, reply: Reply[WaitOutcome]
) -> None:
    """Answer a wait at once: a recorded command has ended, and nothing else will happen."""
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
    """Answer with the bytes that a stream has not sent yet.

    ``failure`` is the reason why the terminal ended, None if it was closed.
    """
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

"""``Peers``: the identity of a process that connects to the Unix socket.

A process below an agent acts as that agent, a process of a workflow as the agent that started it,
a command of ``workspace_exec`` as the agent that called it, and a process of a command on a
terminal as the agent that wrote the command. What a shell runs before its first command acts as the
agent that opened the terminal. Every other process of this user is the operator.

This guards against mistakes. A process of the same user that removes its cookie and leaves its
ancestors is taken for the operator; it could read the operator's token as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import trio

from actors import ActorError, Ref, System
from aegis.agents.drivers.cookie import session_of_cookie
from aegis.errors import AegisError, Forbidden, Unavailable
from aegis.processes.ancestry import TICK_S, Ancestor, ancestry
from aegis.processes.children import ChildCookies
from aegis.processes.process_table import terminal_of_cookie
from aegis.protocol.naming import name_key
from aegis.protocol.terminals import CommandRecord, ReadRecords
from aegis.servers.calls import OPERATOR, Identity
from aegis.terminals.messages import OpenCommand, OpenCommands, ReadOpenCommands
from aegis.workflows.cookie import starter_of_cookie
from aegis.workspaces.cookie import caller_of_cookie

RECORDS = 100
"""Records of a terminal that are read at a time, to find the command of a background process."""

ANSWER_S = 2.0
"""Seconds that a terminal has to report its commands."""

SLACK_S = TICK_S + 0.002
"""A process may seem to begin this much before its command, whose start has milliseconds."""

LAG_S = 5.0
"""On a busy machine the start of a command may be noted this much late."""

HandleOfSession = Callable[[str], str | None]
"""Returns the handle of the session with this id; None if it is not known."""


@attrs.frozen(kw_only=True)
class Peers:
    """``root`` is text as ``aegis.path_text`` makes it; ``children`` are those of the daemon."""

    root: str
    handle_of_session: HandleOfSession
    children: ChildCookies = attrs.field(factory=ChildCookies)

    async def identify(self, system: System, pid: int) -> Identity:
        """Return the identity of a connected process.

        Raises ``Forbidden`` if it has ended or its agent is not known, ``Unavailable`` if the
        terminal of its command does not answer, ``LimitReached``.
        """
        found = ancestry(pid, self.children)
        if found and found[-1].is_child and not found[-1].is_remembered:
            # It may have connected before the start of its ancestor was complete.
            await self._starts_are_complete()
            found = ancestry(pid, self.children)
        if not found:
            raise Forbidden("the process that connected has ended: connect from one that lives")
        # A process chooses its own environment and its children's, but not its ancestors'. So the
        # highest cookie, that of the guard or the shell, is the one that the daemon set.
        for each in reversed(found):
            if each.cookie is None:
                continue
            for caller_of in (starter_of_cookie, caller_of_cookie):
                caller = caller_of(each.cookie, self.root)
                if caller is not None:
                    return Identity(handle=caller, operator=False) if caller else OPERATOR
            session = session_of_cookie(each.cookie, self.root)
            if session is not None:
                return self._of_session(session)
            terminal = terminal_of_cookie(each.cookie, self.root)
            if terminal is not None:
                return await self._of_terminal(system, terminal, found)
        if found[-1].is_child:
            # The daemon started it and does not know for whom, or has adopted it as pid 1.
            raise Forbidden("it is not known for which caller the process that connected runs")
        return OPERATOR

    async def _starts_are_complete(self) -> None:
        with trio.move_on_after(ANSWER_S) as limit:
            await self.children.settled()
        if limit.cancelled_caught:
            raise Unavailable("a process of the daemon is still being started: try again")

    def _of_session(self, session: str) -> Identity:
        handle = self.handle_of_session(session)
        if handle is None:
            raise Forbidden("the process that connected belongs to an agent that is not known")
        return Identity(handle=handle, operator=False)

    async def _of_terminal(
        self, system: System, terminal: str, found: Sequence[Ancestor]
    ) -> Identity:
        front = system.registry.find("terminal", name_key(terminal))
        if front is None:  # a terminal of a worker or of another host, or one that is closed
            return OPERATOR
        try:
            now: OpenCommands = await front.ask(ReadOpenCommands(), timeout=ANSWER_S)
            if is_in_foreground(found, now.shell) and now.commands:
                return identity_of_writer(now.commands[0].writer)
            writer = await _writer_of_job(front, terminal, now, job_started_at(found, now.shell))
        except (ActorError, AegisError) as error:
            raise Unavailable(
                f"terminal {terminal!r} does not report its commands, so it is not known for which "
                "caller this process runs: try again"
            ) from error
        return identity_of_writer(writer)


async def _writer_of_job(
    front: Ref[Any], terminal: str, now: OpenCommands, started_at: float
) -> str:
    """Return the writer of the command to which a background process belongs.

    The start of the shell counts as a command of the terminal's opener, who may have chosen the
    variables, and with them the programs that a shell runs by itself.
    """
    shell = [] if now.shell is None else ancestry(now.shell)
    start = shell[0].started_at if shell else -math.inf
    known, before = list(now.commands), None
    while True:
        page = ReadRecords(name=terminal, last_n=RECORDS, before_seq=before, output=False)
        records = (await front.ask(page, timeout=ANSWER_S)).result
        known[:0] = map(_of_record, records)
        writer = writer_at(with_start(known, now.opener, start), started_at)
        # A process may be older than any number of commands.
        if not records or not records[0].seq or began_by(known[0], started_at):
            return writer or now.opener
        before = records[0].seq


def _of_record(record: CommandRecord) -> OpenCommand:
    return OpenCommand(record.writer, record.started_at, record.finished_at)


def with_start(commands: Sequence[OpenCommand], opener: str, start: float) -> list[OpenCommand]:
    """Return the commands and the start of the shell, as one by its opener, in order. Pure."""
    first = datetime.fromtimestamp(max(start, 0.0), UTC).isoformat()
    began = OpenCommand(opener, first, first)
    older = [each for each in commands if began_by(each, start)]
    return [*older, began, *commands[len(older) :]]


def began_by(command: OpenCommand, moment: float) -> bool:
    """Return whether a command had begun at a moment. Pure."""
    return _seconds(command.started_at) <= moment


def is_in_foreground(found: Sequence[Ancestor], shell: int | None) -> bool:
    """Return whether a process is in the foreground of its shell's terminal. Pure.

    It may be in that of another terminal, which it has opened itself.
    """
    return any(each.pid == shell and each.foreground_group == found[0].group for each in found)


def job_started_at(found: Sequence[Ancestor], shell: int | None) -> float:
    """Return the start of the job of a process: of its highest ancestor below the shell. Pure.

    If the process is the shell itself, which a command has replaced, the last command is its own:
    the result is infinite.
    """
    pids = [each.pid for each in found]
    if shell in pids:
        # With or without a cookie: a command may have removed it.
        below = found[: pids.index(shell)]
        return below[-1].started_at if below else math.inf
    return next(each.started_at for each in reversed(found) if each.cookie is not None)


def writer_at(commands: Sequence[OpenCommand], started_at: float) -> str | None:
    """Return the writer of the last command that began before a process did. Pure.

    ``commands`` are the oldest first. Where the order is not certain, an agent is preferred.
    """
    last: list[OpenCommand] = []
    free_at = -math.inf  # the shell takes a command from this moment on
    for each in commands:
        began_at = _seconds(each.started_at)
        if began_at <= started_at:
            last = [each]
        elif began_at - started_at <= (LAG_S if free_at <= started_at else SLACK_S):
            last.append(each)
        free_at = began_at if each.ended_at is None else _seconds(each.ended_at)
    agents = [each for each in last if each.writer.startswith("agent:")]
    return (agents or last)[-1].writer if last else None


def identity_of_writer(writer: str | None) -> Identity:
    """Return the identity of a command's writer, a tag as in records. Pure."""
    kind, _, handle = (writer or "").partition(":")
    return Identity(handle=handle, operator=False) if kind == "agent" and handle else OPERATOR


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()

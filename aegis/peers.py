"""``Peers``: the identity of a process that connects to the Unix socket.

A process below an agent acts as that agent, a process of a workflow as the agent that started it,
and a process of a command on a terminal as the agent that wrote the command. Every other process of
this user is the operator.

This guards against mistakes. A process of the same user that removes its cookie and leaves its
ancestors is taken for the operator; it could read the operator's token as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime

import attrs

from actors import ActorError, System
from aegis.agents.drivers.cookie import session_of_cookie
from aegis.errors import AegisError, Forbidden, Unavailable
from aegis.processes.ancestry import TICK_S, Ancestor, ancestry
from aegis.processes.process_table import terminal_of_cookie
from aegis.protocol.naming import name_key
from aegis.protocol.terminals import ReadRecords
from aegis.servers.calls import OPERATOR, Identity
from aegis.terminals.open_commands import OpenCommand, OpenCommands, ReadOpenCommands
from aegis.workflows.cookie import starter_of_cookie

RECORDS = 100
"""Newest records of a terminal in which the command of a background process is searched."""

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
    """``root`` is text as ``aegis.path_text`` makes it."""

    root: str
    handle_of_session: HandleOfSession

    async def identify(self, system: System, pid: int) -> Identity:
        """Return the identity of a connected process.

        Raises ``Forbidden`` if it has ended or its agent is not known, ``Unavailable`` if the
        terminal of its command does not answer.
        """
        found = ancestry(pid)
        if not found:
            raise Forbidden("the process that connected has ended: connect from one that lives")
        # A process chooses its own environment and its children's, but not its ancestors'. So the
        # highest cookie, that of the guard or the shell, is the one that the daemon set.
        for each in reversed(found):
            if each.cookie is None:
                continue
            starter = starter_of_cookie(each.cookie, self.root)
            if starter is not None:
                return Identity(handle=starter, operator=False) if starter else OPERATOR
            session = session_of_cookie(each.cookie, self.root)
            if session is not None:
                return self._of_session(session)
            terminal = terminal_of_cookie(each.cookie, self.root)
            if terminal is not None:
                return await self._of_terminal(system, terminal, found)
        return OPERATOR

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
            listed = await front.ask(ReadRecords(name=terminal, last_n=RECORDS), timeout=ANSWER_S)
            ended = [
                OpenCommand(each.writer, each.started_at, each.finished_at)
                for each in listed.result
            ]
            writer = writer_at([*ended, *now.commands], job_started_at(found, now.shell))
        except (ActorError, AegisError) as error:
            raise Unavailable(
                f"terminal {terminal!r} does not report its commands, so it is not known for which "
                "caller this process runs: try again"
            ) from error
        return identity_of_writer(writer)


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

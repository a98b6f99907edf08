"""``run_login``: a login command in a shared terminal, where people can answer its questions."""

from __future__ import annotations

import contextlib
from typing import Any

import structlog
import trio

from actors import ActorError, Ref, System, describe
from aegis.agents.sessions.mail import MailContext
from aegis.agents.sessions.steps import LogIn
from aegis.errors import AegisError, AlreadyExists, Unavailable
from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.naming import name_key
from aegis.protocol.output import WaitTerminal
from aegis.protocol.terminals import CommandRecord, RunCommand, SpawnTerminal

log = structlog.get_logger("aegis.agents")

LOOK_S = 1.0
"""Seconds between two looks at a command that waits for input."""

START_S = 60.0
"""Seconds that the terminal and the start of the command may take."""


async def run_login(owner: MailContext, order: LogIn, cwd: str, after: object) -> None:
    """Run the login of a session, if there is a command, and then send ``after``."""
    try:
        if order.command:
            await log_in(owner.system, order, cwd)
    except (AegisError, ActorError) as error:
        log.warning("login not run", terminal=order.terminal, why=describe(error))
    await owner.ref.send(after)


async def log_in(system: System, order: LogIn, cwd: str) -> None:
    """Run the command and wait for its end. Raises ``AegisError``, ``ActorError``.

    The terminal is started if it is not open; an earlier login may have used it.
    """
    terminal = order.terminal
    owner = _find(system, "service", "terminals")
    with contextlib.suppress(AlreadyExists):
        await owner.ask(SpawnTerminal(name=terminal, cwd=cwd), timeout=START_S)
    front = _find(system, "terminal", name_key(terminal))
    run = RunCommand(name=terminal, cmd=order.command, timeout=START_S, until="started")
    record: CommandRecord | None = await front.ask(run, timeout=2 * START_S)
    assert record is not None
    wait = WaitTerminal(name=terminal, seq=record.seq, timeout=MAX_TIMEOUT_S)
    while record is None or record.end is None:
        # It ends early while the command waits for the input of a person.
        outcome = await front.ask(wait, timeout=2 * MAX_TIMEOUT_S)
        record = outcome.record
        if record is None or record.end is None:
            await trio.sleep(LOOK_S)


def _find(system: System, kind: str, name: str) -> Ref[Any]:
    found = system.registry.find(kind, name)
    if found is None:
        raise Unavailable("the terminal for the login is not available; try again")
    return found

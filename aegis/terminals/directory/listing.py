"""The list of a daemon's own terminals, and of the names that are taken."""

from __future__ import annotations

import contextlib
from collections.abc import Container
from typing import Any

import structlog
import trio

from actors import ActorStopped, AskError, Ref, System
from aegis.protocol.agents import ListAgentCommands
from aegis.protocol.naming import name_key
from aegis.protocol.nodes import TerminalNames
from aegis.protocol.terminals import AgentCommand, TerminalInfo
from aegis.terminals.directory.inactive import unanswered_info
from aegis.terminals.directory.life_cycle import OpenTerminals
from aegis.terminals.messages import Describe
from aegis.terminals.remote.nodes import MOST_CLOSED
from aegis.terminals.retry import ask_across_restarts

log = structlog.get_logger("aegis.terminals")

DESCRIBE_TIMEOUT_S = 2.0


async def open_terminals(terminals: OpenTerminals, busy: Container[str]) -> dict[str, TerminalInfo]:
    """Return the open terminals, by the keys of their names; a ``busy`` one only if it answers."""
    infos: dict[str, TerminalInfo] = {}
    asked: set[str] = set()

    async def describe_one(key: str, front: Ref[Any]) -> None:
        try:
            infos[key] = await ask_across_restarts(front, Describe(), timeout=DESCRIBE_TIMEOUT_S)
        except ActorStopped:
            pass  # it was closed meanwhile, or the daemon stops
        except AskError as error:
            log.warning("terminal does not answer", terminal=key, error=str(error))

    # Again for a failed terminal that was started meanwhile: it would be in neither list.
    while fresh := [key for key in terminals.open if key not in asked]:
        asked.update(fresh)
        async with trio.open_nursery() as nursery:
            for key in fresh:
                # A front that does not answer is about to be restarted or to fail, or to be closed.
                if key not in busy:
                    infos[key] = unanswered_info(terminals.open[key], terminals.node_of(key))
                front = terminals.subtrees.front(key)
                if front is not None:
                    nursery.start_soon(describe_one, key, front)
    infos = {key: info for key, info in infos.items() if key in terminals.open}
    return infos | {key: failed.info() for key, failed in terminals.failed.items()}


async def commands_of_agents(system: System) -> list[AgentCommand]:
    """Return the commands that agents have their sessions run, as far as they are known."""
    agents = system.registry.find("service", "agents")
    commands: list[AgentCommand] = []
    with contextlib.suppress(AskError):
        if agents is not None:
            commands = await agents.ask(ListAgentCommands(), timeout=DESCRIBE_TIMEOUT_S)
    return commands


async def known_terminals(terminals: OpenTerminals, busy: Container[str]) -> TerminalNames:
    """Return the open terminals and the names of the closed ones. Raises ``StorageError``."""
    infos = await open_terminals(terminals, busy)
    closed = [name for name in terminals.known_names() if name_key(name) not in infos]
    return TerminalNames(open=list(infos.values()), closed=closed[:MOST_CLOSED])

"""How the terminals of one place stand, and what names it has."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import structlog
import trio

from actors import AskError, Ref
from aegis.protocol.naming import name_key
from aegis.protocol.nodes import TerminalNames
from aegis.protocol.terminals import TerminalInfo
from aegis.terminals.directory.inactive import unanswered_info
from aegis.terminals.directory.life_cycle import Lives
from aegis.terminals.messages import Describe
from aegis.terminals.remote.nodes import MOST_CLOSED
from aegis.terminals.retry import ask_again

log = structlog.get_logger("aegis.terminals")

DESCRIBE_TIMEOUT_S = 2.0


async def open_terminals(lives: Lives, busy: Container[str]) -> dict[str, TerminalInfo]:
    """The open ones, by the keys of their names; those in ``busy`` only if they answer."""
    # One that does not answer is about to be started again, or to fail; or it is being closed.
    infos = {
        key: unanswered_info(settings, lives.node_of(key))
        for key, settings in lives.open.items()
        if key not in busy
    }

    async def describe_one(key: str, front: Ref[Any]) -> None:
        try:
            infos[key] = await ask_again(front, Describe(), timeout=DESCRIBE_TIMEOUT_S)
        except AskError as error:
            log.warning("terminal does not answer", terminal=key, error=str(error))

    async with trio.open_nursery() as nursery:
        for key in lives.open:
            front = lives.subtrees.front(key)
            if front is not None:
                nursery.start_soon(describe_one, key, front)
    infos = {key: info for key, info in infos.items() if key in lives.open}
    return infos | {key: failed.info() for key, failed in lives.failed.items()}


async def known_terminals(lives: Lives, busy: Container[str]) -> TerminalNames:
    """The open ones, and the names of the closed ones. Raises ``StorageError``."""
    infos = await open_terminals(lives, busy)
    closed = [name for name in lives.known_names() if name_key(name) not in infos]
    return TerminalNames(open=list(infos.values()), closed=closed[:MOST_CLOSED])

"""``ClientServices``: the services that an agent may ask of its ACP client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from actors import System
from aegis.agents.drivers.client.files import SessionFiles
from aegis.agents.drivers.driver import Service
from aegis.agents.drivers.terminals.service import AgentTerminals
from aegis.protocol.agent_events import AgentEvent


class ClientServices:
    """Serves ``fs/*`` by ``files`` and ``terminal/*`` by ``terminals``; a ``ClientPort``."""

    def __init__(self, files: SessionFiles, terminals: AgentTerminals) -> None:
        self._files = files
        self._terminals = terminals

    def begin(self, system: System, emit: Callable[[AgentEvent], None]) -> None:
        """Serve an agent of this system; ``emit`` reports an event to its session."""
        self._terminals.begin(system, emit)

    def serve(self, method: str, params: Mapping[str, Any]) -> Service:
        """Begin a method; see ``ClientPort``."""
        if method.startswith("terminal/"):
            return self._terminals.serve(method, params)
        return partial(self._files.serve, method, params)

    async def end(self) -> None:
        """Release what the agent has left. Idempotent."""
        await self._terminals.end()

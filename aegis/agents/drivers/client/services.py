"""``ClientServices``: the services that an agent may ask of its ACP client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from actors import System
from aegis.agents.drivers.client.files import SessionFiles
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

    async def serve(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of a method. Raises ``AegisError``."""
        if method.startswith("terminal/"):
            return await self._terminals.serve(method, params)
        return await self._files.serve(method, params)

    async def end(self) -> None:
        """Release what the agent has left. Idempotent."""
        await self._terminals.end()

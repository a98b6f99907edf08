"""``completion/complete``: the names that complete the URI of a resource.

Only resource templates have arguments; there are no prompts, so a prompt has no completions.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types

from aegis.protocol.derived.wire import to_plain
from aegis.protocol.naming import name_key
from aegis.protocol.resources import (
    CANVAS_TEMPLATE,
    INBOX_TEMPLATE,
    LEDGER_TEMPLATE,
    QUEUE_TEMPLATE,
)
from aegis.protocol.table import BY_NAME
from aegis.servers.calls import CallPort
from aegis.servers.mcp.context import STOPPING, Context, caller_of, identity_of
from aegis.servers.mcp.resources import mcp_error, refusals
from aegis.servers.mcp.running_calls import RunningCalls

MAX_VALUES = 100
"""The largest number of values in a response, by the MCP specification."""

SUBJECT = "completion/complete"


class McpCompletion:
    """The handler of ``completion/complete``."""

    def __init__(self, port: CallPort, running_calls: RunningCalls) -> None:
        self._port = port
        self._running_calls = running_calls

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Return the names that begin with the given text, ignoring case."""
        with self._running_calls.call(), refusals(SUBJECT):
            names = await self._names(ctx, params)
            return types.CompleteResult(completion=fitting(names, params.argument.value))
        raise mcp_error(STOPPING, SUBJECT)

    async def _names(self, ctx: Context, params: types.CompleteRequestParams) -> list[str]:
        if not isinstance(params.ref, types.ResourceTemplateReference):
            return []
        match params.ref.uri, params.argument.name:
            case str(uri), "name" if uri == LEDGER_TEMPLATE:
                return [info["name"] for info in (await self._reply(ctx, "term_list"))["result"]]
            case str(uri), "name" if uri == CANVAS_TEMPLATE:
                return [info["name"] for info in (await self._reply(ctx, "canvas_list"))["result"]]
            case str(uri), "name" if uri == QUEUE_TEMPLATE:
                return [info["queue"] for info in (await self._reply(ctx, "queue_list"))["result"]]
            case str(uri), "handle" if uri == INBOX_TEMPLATE:
                return await self._handles(ctx)
        return []

    async def _handles(self, ctx: Context) -> list[str]:
        """Return the handles whose inbox the caller may read."""
        own = identity_of(ctx).handle
        if own is not None:
            return [own]
        handles: list[str] = (await self._reply(ctx, "status"))["handles"]
        return ["human", *(each for each in handles if name_key(each) != "human")]

    async def _reply(self, ctx: Context, command: str) -> Any:
        return to_plain(await self._port.call(caller_of(ctx), BY_NAME[command], {}))


def fitting(names: list[str], beginning: str) -> types.Completion:
    """Return the names that start with ``beginning``, at most ``MAX_VALUES``."""
    found = [each for each in names if name_key(each).startswith(name_key(beginning))]
    return types.Completion(
        values=found[:MAX_VALUES], total=len(found), has_more=len(found) > MAX_VALUES
    )

"""Progress of a waiting call, for callers that asked for it: line by line, at a limited rate.

The terminal is asked repeatedly; each request waits there until the progress has changed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

import trio

from actors import AskError, Registry
from aegis.errors import AegisError
from aegis.names import shorten
from aegis.protocol.derived.wire import command_from
from aegis.protocol.entry import Entry
from aegis.protocol.naming import name_key
from aegis.protocol.output import FollowCommand, Progress
from aegis.servers.calls import Caller
from aegis.servers.connection import with_identity

MIN_INTERVAL_S = 0.1
"""Seconds between two reports: at most ten a second."""

MAX_LINE_CHARS = 200

RETRY_S = 1.0
"""Seconds before a terminal that did not answer is asked again."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


async def follow(
    registry: Registry,
    caller: Caller,
    entry: Entry,
    arguments: Mapping[str, object],
    report: Callable[[str], Awaitable[None]],
) -> None:
    """Pass each new line of the call's progress to ``report``, until cancelled.

    Returns at once if the arguments are invalid or the terminal is not open. Raises the errors of
    ``report``.
    """
    try:
        request = _request(caller, entry, arguments)
    except AegisError:
        return  # the call itself fails with this error
    reported: str | None = None
    while (news := await _news(registry, request)) is not None:
        line = shown_line(news.line)
        if line and line != reported:
            reported = line
            await report(line)
        request = _after(request, news)
        await trio.sleep(MIN_INTERVAL_S)


def shown_line(line: str | None) -> str:
    """Return ``line`` without control characters, shortened to ``MAX_LINE_CHARS``."""
    return "" if line is None else shorten(_CONTROL.sub(" ", line).strip(), MAX_LINE_CHARS)


def _request(caller: Caller, entry: Entry, arguments: Mapping[str, object]) -> FollowCommand:
    command = with_identity(command_from(entry, arguments), caller.identity)
    return FollowCommand(
        name=getattr(command, "name", ""),
        cmd=getattr(command, "cmd", None),
        writer=command.from_handle,
    )


def _after(request: FollowCommand, seen: Progress) -> FollowCommand:
    return FollowCommand(name=request.name, cmd=request.cmd, writer=request.writer, seen=seen)


async def _news(registry: Registry, request: FollowCommand) -> Progress | None:
    """Return the next progress; None if the terminal is gone or has no more."""
    while True:
        front = registry.find("terminal", name_key(request.name))
        if front is None or front.is_stopped:  # its worker may have died, and it is restarted then
            front = registry.find("service", "terminals")
        if front is None:
            return None
        try:
            reply: Progress = await front.send_request(request).wait()
        except AskError:
            await trio.sleep(RETRY_S)
        except AegisError:
            return None
        else:
            return reply

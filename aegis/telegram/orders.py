"""The meaning of a text in the chat. Pure.

    /help                what can be written
    /list                sessions and terminals
    /to HANDLE [TEXT]    talk to a session; from then on plain text goes there
    /run TERMINAL CMD    run a command on a terminal
    /screen TERMINAL     what a terminal shows
    /queues  /requests   queues, open requests
    /interrupt HANDLE    interrupt a turn

Plain text goes to the session of the topic, or to the one that was talked to last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from aegis.protocol.naming import NAME_PATTERN
from aegis.telegram.updates import TextMessage, joined

HELP = """\
/list - sessions and terminals
/to HANDLE TEXT - talk to a session; then plain text goes there
/run TERMINAL COMMAND - run a command
/screen TERMINAL - what it shows
/queues - queues of tasks
/requests - open requests
/interrupt HANDLE - interrupt a turn"""

_COMMAND = re.compile(r"/([a-z]+)(?:@(\w+))?(?:\s+(.*))?\Z", re.DOTALL)

RUN_IS_CUT = (
    "not run: the app has cut this command into several messages, so nobody can say where it ends; "
    "put it into a file, or send it to a session with /to"
)
_NAME = re.compile(NAME_PATTERN)


@attrs.frozen
class Talk:
    """Send ``text`` to the session ``handle``; empty: the one that is talked to."""

    handle: str
    text: str


@attrs.frozen
class Focus:
    """Talk to the session ``handle`` from now on."""

    handle: str


@attrs.frozen
class RunOrder:
    """Run ``command`` on ``terminal``."""

    terminal: str
    command: str


@attrs.frozen
class ShowOrder:
    """Show what a terminal shows."""

    terminal: str


@attrs.frozen
class InterruptOrder:
    """Interrupt the turn of a session."""

    handle: str


@attrs.frozen
class Lookup:
    """Show ``what``: ``list``, ``queues``, ``requests`` or ``help``."""

    what: str


@attrs.frozen
class Misunderstood:
    """The text is no order; ``sentence`` says why."""

    sentence: str


@attrs.frozen
class ForOther:
    """The text is a command for another bot of the group."""


Order = Talk | Focus | RunOrder | ShowOrder | InterruptOrder | Lookup | Misunderstood | ForOther


def is_command(text: str) -> bool:
    """Return whether a text is a command, for this bot or another one."""
    found = _COMMAND.match(text)
    words = {line.split()[0] for line in HELP.split("\n")} | {"/start"}
    return found is not None and (bool(found[2]) or f"/{found[1]}" in words)


def read_parts(parts: Sequence[TextMessage], bot: str) -> Order:
    """Return what a text means that came as several messages."""
    order = read_order(joined(parts), bot)
    return Misunderstood(RUN_IS_CUT) if len(parts) > 1 and isinstance(order, RunOrder) else order


def read_order(text: TextMessage, bot: str) -> Order:
    """Return what a text means to the bot with the name ``bot``."""
    if text.unfit:
        return Misunderstood(text.unfit)
    found = _COMMAND.match(text.text)
    if found is None:
        return Talk("", text.text)
    if found[2] and found[2].lower() != bot.lower():
        return ForOther()
    word, rest = found[1], (found[3] or "").strip()
    name, tail = [*rest.split(maxsplit=1), "", ""][:2]
    match word:
        case "list" | "queues" | "requests" | "help":
            return Lookup(word)
        case "start":
            return Lookup("help")
        case "to" if _is_name(name):
            return Talk(name, tail) if tail else Focus(name)
        case "run" if _is_name(name) and tail:
            return RunOrder(name, tail)
        case "screen" if _is_name(name):
            return ShowOrder(name)
        case "interrupt" if _is_name(name):
            return InterruptOrder(name)
    usage = next((line for line in HELP.split("\n") if line.startswith(f"/{word} ")), "")
    return Misunderstood(f"use it as: {usage}" if usage else "not understood: /help")


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None

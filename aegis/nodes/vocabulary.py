"""The messages that may cross between a daemon, its workers and joined hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import attrs

from actors.messages import message_classes
from actors.nodes.links.vocabulary import Vocabulary
from aegis import errors
from aegis.errors import AegisError
from aegis.protocol import feeds, inboxes, nodes, resources, streams
from aegis.protocol.table import COMMANDS
from aegis.terminals import messages
from aegis.terminals.directory import hosting
from aegis.terminals.front_port import ClientRequest

TO_TERMINALS = (
    *message_classes(ClientRequest),
    messages.Describe,
    messages.AwaitPrompt,
    messages.EndTerminal,
)
"""Requests to the front of a terminal, some of which its shell answers."""

TO_WORKERS = (hosting.StartTerminal, hosting.StopTerminal, hosting.HostedTerminals)

TO_HOSTS = (
    *(entry.command for entry in COMMANDS if entry.on_hosts),
    feeds.ReadKept,
    nodes.KnownTerminals,
)
"""Requests to the directory of a joined host, beside those that it passes to a front."""

TO_DAEMON = (inboxes.Deliver, hosting.HostIsUp, resources.ResourceChanged, streams.TerminalItem)


def _replies(request: type) -> Iterator[type]:
    """Yield the classes of a request's reply."""
    for above in request.__mro__:
        for base in getattr(above, "__orig_bases__", ()):
            yield from (each for each in get_args(base) if attrs.has(each))


def _refusals() -> list[type[Exception]]:
    found: list[Any] = list(vars(errors).values())
    return [each for each in found if isinstance(each, type) and issubclass(each, AegisError)]


def _vocabulary() -> Vocabulary:
    sent: set[type] = {*TO_TERMINALS, *TO_WORKERS, *TO_HOSTS, *TO_DAEMON}
    replies = {reply for each in sent for reply in _replies(each)}
    return Vocabulary(sorted(sent | replies, key=lambda each: each.__name__), _refusals())


VOCABULARY = _vocabulary()

_SERVICES = ("inboxes", "resources", "events")


def known_to_nodes(group: str, name: str) -> bool:
    """Return whether workers and hosts know this name of an actor of the daemon."""
    return group == "service" and name in _SERVICES


def known_to_daemon(group: str, name: str) -> bool:
    """Return whether the daemon knows this name of an actor of a worker or host."""
    return bool(name) and group in ("terminal", hosting.GROUP)

"""What a daemon, its workers and the hosts that joined may say to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import attrs

from actors.nodes.links.vocabulary import Vocabulary
from aegis import errors
from aegis.errors import AegisError
from aegis.protocol import control, feeds, inboxes, nodes, resources, screens, streams
from aegis.protocol import output as out
from aegis.protocol import terminals as api
from aegis.terminals import messages
from aegis.terminals.directory import hosting

TO_TERMINALS = (
    api.RunCommand,
    api.SendKeys,
    control.SignalTerminal,
    control.ResizeTerminal,
    api.ReadRecords,
    screens.GetScreen,
    out.ReadOutput,
    out.WaitTerminal,
    out.FollowCommand,
    feeds.FollowOutput,
    feeds.DrawScreen,
    feeds.TypeBytes,
    api.Subscribe,
    api.Unsubscribe,
    messages.Describe,
    messages.AwaitPrompt,
    messages.EndTerminal,
)
"""What the daemon asks of a terminal's front, and of its shell where that serves streams."""

TO_WORKERS = (hosting.StartTerminal, hosting.StopTerminal, hosting.HostedTerminals)

TO_HOSTS = (
    api.SpawnTerminal,
    api.ListTerminals,
    api.CloseTerminal,
    feeds.ReadKept,
    nodes.KnownTerminals,
)
"""What it asks of the directory of a host, beside what that hands to a front."""

TO_DAEMON = (inboxes.Deliver, hosting.HostIsUp, resources.ResourceChanged, streams.TerminalItem)


def _answers(request: type) -> Iterator[type]:
    """The classes of what a request is answered with."""
    for above in request.__mro__:
        for base in getattr(above, "__orig_bases__", ()):
            yield from (each for each in get_args(base) if attrs.has(each))


def _refusals() -> list[type[Exception]]:
    found: list[Any] = list(vars(errors).values())
    return [each for each in found if isinstance(each, type) and issubclass(each, AegisError)]


def _vocabulary() -> Vocabulary:
    told: set[type] = {*TO_TERMINALS, *TO_WORKERS, *TO_HOSTS, *TO_DAEMON}
    answers = {answer for each in told for answer in _answers(each)}
    return Vocabulary(sorted(told | answers, key=lambda each: each.__name__), _refusals())


VOCABULARY = _vocabulary()

_SERVICES = ("inboxes", "resources", "events")


def told_to_nodes(group: str, name: str) -> bool:
    """Whether an actor of the daemon that has this name is known to workers and hosts."""
    return group == "service" and name in _SERVICES


def told_to_daemon(group: str, name: str) -> bool:
    """Whether an actor of a worker or a host that has this name is known to the daemon."""
    return bool(name) and group in ("terminal", hosting.GROUP)

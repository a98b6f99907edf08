"""``Entry``: everything that is known of one command, in one place."""

from __future__ import annotations

import enum
import inspect
from typing import Any

import attrs

from aegis.protocol.command import Command


class Owner(enum.Enum):
    """The actor that answers a command.

    ``service`` is the name it is registered under; a terminal that has no front is answered for by
    the directory. ``subject`` names the actor in sentences. ``prefix`` begins the names of its
    tools: workspaces and shells are a second vocabulary, without one.
    """

    TERMINAL = ("terminals", "terminal", "aegis_")
    TERMINALS = ("terminals", "the directory of terminals", "aegis_")
    INBOXES = ("inboxes", "the inbox", "aegis_")
    WORKSPACES = ("workspaces", "the directory of workspaces", "")
    AGENTS = ("agents", "the directory of agents", "aegis_")
    REQUESTS = ("requests", "the desk of requests", "aegis_")
    QUEUES = ("queues", "the desk of queues", "aegis_")
    HISTORY = ("history", "the desk of the history", "aegis_")
    CANVASES = ("canvases", "the desk of canvases", "aegis_")
    WORKFLOWS = ("workflows", "the desk of workflows", "aegis_")
    GROUPS = ("groups", "the desk of groups", "aegis_")
    PUSH = ("push", "the desk of notifications", "aegis_")
    DAEMON = ("daemon", "the daemon", "aegis_")

    def __init__(self, service: str, subject: str, prefix: str) -> None:
        self.service = service
        self.subject = subject
        self.prefix = prefix


def _first_two_words(entry: Entry) -> str:
    return entry.name.replace("_", " ", 1)


@attrs.frozen(kw_only=True)
class Entry:
    """One command of the command set.

    ``name`` is its name on the wire, ``command`` its class, ``reply`` the class of its reply.
    ``read_only``, ``destructive`` and ``idempotent`` are hints for clients. ``operator``: sessions
    that are bound to a handle neither see it nor may call it. ``person``: only a person may call
    it, from a face of their own and not over MCP. ``tells_progress``: a caller may be
    sent its progress while it waits.

    ``errors`` are the codes that it may fail with, beside those of every command. ``remedy`` says
    what became of a call that was not answered and what to do; ``remedy_if_worker_died`` replaces
    it where the worker process died. ``verb`` is the verb of the command line that calls it, None
    if there is none. ``on_hosts``: the directory of a joined host answers it too.
    """

    name: str
    owner: Owner
    command: type[Command[Any]]
    reply: type[Any]
    remedy: str
    remedy_if_worker_died: str | None = None
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    operator: bool = False
    person: bool = False
    tells_progress: bool = False
    errors: tuple[str, ...] = ()
    verb: str | None = attrs.field(default=attrs.Factory(_first_two_words, takes_self=True))
    on_hosts: bool = False

    @property
    def tool(self) -> str:
        """The name of the MCP tool."""
        return f"{self.owner.prefix}{self.name}"

    @property
    def doc(self) -> str:
        """The description of the command, for people and agents."""
        return inspect.cleandoc(self.command.__doc__ or "").replace("``", "`")

    @property
    def crosses(self) -> bool:
        """Whether it is sent to workers and joined hosts."""
        return self.on_hosts or self.owner is Owner.TERMINAL

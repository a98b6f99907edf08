"""Messages between a session and the driver of its agent. Pure.

A driver sends the reports below in order, one at a time: the next one follows the answer to the
one before. So a slow session slows its agent down, and nothing is dropped. ``launch`` is the
number of the process that the driver was given; a report of an earlier process can be ignored.
"""

from __future__ import annotations

from typing import Literal

import attrs

from actors.messages import Request
from aegis.agents.drivers.harness import Capabilities, FilesRewound, LoginMethod, Permission
from aegis.protocol.agent_events import AgentEvent, RequestAnswer

# Orders: session to driver. The answer is None, or one sentence that says why the order was not
# carried out. An order is answered at once: a turn is accepted before its frame is written. Only a
# change of a setting or of files is answered once the agent has answered it, or has ended.


@attrs.frozen(kw_only=True)
class SendTurn(Request[str | None]):
    """Send a turn's text as one user frame, with this uuid.

    ``command``: a person's command, which is sent in place of the text if the agent has it.
    ``images`` are the names of files among those that are kept with the session.
    """

    uuid: str
    text: str = attrs.field(repr=False)
    command: str = attrs.field(default="", repr=False)
    images: tuple[str, ...] = ()


@attrs.frozen
class InterruptTurn(Request[str | None]):
    """Interrupt the current turn."""


@attrs.frozen(kw_only=True)
class SendAnswer(Request[str | None]):
    """Answer a request of the agent, by the id of its ``RequestOpened``."""

    request: str
    answer: RequestAnswer


@attrs.frozen
class SetPermission(Request[str | None]):
    """Set the permission from now on; the answer comes when the agent has taken its mode."""

    permission: Permission


@attrs.frozen
class SetModel(Request[str | None]):
    """Set the model from the next turn on.

    The answer comes when the agent has taken it; in a turn of an ACP agent, at once.
    """

    model: str


@attrs.frozen(kw_only=True)
class CheckSettings(Request[str | None]):
    """Check what the next start is to use against what the agent offers.

    ``model`` is set with them, if it is another than now.
    """

    effort: str | None = None
    thinking: str | None = None
    model: str | None = None


@attrs.frozen(kw_only=True)
class RewindFiles(Request[FilesRewound]):
    """Set back the files that the agent changed since the turn ``uuid``, all or none.

    ``is_dry``: only ask which.
    """

    uuid: str
    is_dry: bool


@attrs.frozen
class McpConnected(Request[str | None]):
    """Note that the agent has listed the tools of our MCP server: a turn may wait for that."""


@attrs.frozen
class CloseDriver(Request[None]):
    """End the process and its tree; answered once that is done. ``DriverEnded`` is reported too.

    It takes as long as the plan allows (``eof_s``, then ``term_s``), and some seconds at most.
    """


# Reports: driver to session.


@attrs.frozen(kw_only=True)
class DriverEvents(Request[None]):
    """Events of the agent, in order."""

    launch: int
    events: tuple[AgentEvent, ...] = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class DriverReady(Request[None]):
    """The agent can take its first turn, in ``conversation``."""

    launch: int
    conversation: str
    capabilities: Capabilities


@attrs.frozen(kw_only=True)
class DriverFailed(Request[None]):
    """The agent cannot be used: ``reason`` is one sentence. ``DriverEnded`` follows.

    ``kind`` and ``logins`` are those of ``harness.AgentFailed``; "held": another process has the
    conversation open.
    """

    launch: int
    reason: str
    kind: Literal["conversation", "login", "held", "other"] = "other"
    logins: tuple[LoginMethod, ...] = ()


@attrs.frozen(kw_only=True)
class DriverEnded(Request[None]):
    """The process has ended, and its tree with it: the last report, sent exactly once.

    ``reason`` is one sentence. ``exit_code`` is minus the number of a signal; None if the program
    was not started, or its end was not seen. ``stderr`` is the end of its standard error, without
    session URLs.
    """

    launch: int
    reason: str
    exit_code: int | None
    stderr: str = ""


DriverReport = DriverEvents | DriverReady | DriverFailed | DriverEnded
"""Every report. Each is answered with None once the session has taken it."""

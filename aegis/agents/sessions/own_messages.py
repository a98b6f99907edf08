"""The messages of a session's actor, and those that it sends to itself."""

from __future__ import annotations

import attrs

from actors import Down
from aegis.agents import messages as msg
from aegis.agents.sessions import steps
from aegis.agents.sessions.mail import News
from aegis.agents.sessions.requests_out import DeskRefused
from aegis.agents.sessions.settings import ChangeSettings, ResumeAgent
from aegis.agents.sessions.status import AskedChanged, CheckStall
from aegis.protocol import agents as api
from aegis.protocol.feeds import FollowSession
from aegis.protocol.inboxes import FindMessage, WithdrawMessage
from aegis.protocol.requests import ApplyAnswer


@attrs.frozen(kw_only=True)
class Settled:
    """The outcome of a synced entry of the transcript."""

    number: int
    error: str | None


@attrs.frozen(kw_only=True)
class TimerDue:
    """A timer has run out; ``number`` distinguishes it from an earlier one with the same name."""

    timer: steps.TimerName
    number: int


@attrs.frozen
class NoDriver:
    """The driver of this launch could not be started, or ended without a report.

    ``is_held``: another process has the conversation open.
    """

    launch: int
    reason: str
    is_held: bool = False


@attrs.frozen
class FileEdited:
    """The agent has left a file, of this real path, with this digest."""

    path: str
    digest: str


@attrs.frozen
class TakeoverStarted:
    """The program of a take-over runs."""


SessionMessage = (
    msg.DriverReport
    | api.InterruptAgent
    | api.CloseAgent
    | api.RestartAgent
    | api.TakeOverAgent
    | api.HandBackAgent
    | api.RewindAgent
    | TakeoverStarted
    | FileEdited
    | steps.HandedBack
    | steps.RewindEntry
    | steps.RewindOver
    | api.ShowAgent
    | api.ShowDetails
    | api.ReadSession
    | api.WaitAgent
    | ApplyAnswer
    | FindMessage
    | WithdrawMessage
    | FollowSession
    | ResumeAgent
    | ChangeSettings
    | api.ToolsListed
    | Down
    | News
    | steps.Notified
    | Settled
    | TimerDue
    | CheckStall
    | AskedChanged
    | NoDriver
    | steps.TurnRefused
    | DeskRefused
)

"""The messages that the shell's actor of a terminal accepts."""

from __future__ import annotations

import attrs

from aegis.lifecycle.feed import FollowProgram, TakeHook
from aegis.protocol.feeds import DrawScreen, FollowOutput
from aegis.protocol.table import ShellCommand
from aegis.terminals import messages as msg

# Timers of the actor.


@attrs.frozen(kw_only=True)
class FlushRawLog:
    """Write the buffered raw bytes to the file."""


@attrs.frozen(kw_only=True)
class RestRawLog:
    """Close the raw log's file if there was no output since ``position``."""

    position: int


@attrs.frozen(kw_only=True)
class CheckRead:
    """Check whether a probe or a submission was read by a program."""


@attrs.frozen(kw_only=True)
class LookAtTty:
    """Look at the terminal if the command on ``shell`` was quiet."""

    shell: str


@attrs.frozen(kw_only=True)
class LookAtTypist:
    """Check whether the writer who typed last has paused."""


ShellTimer = FlushRawLog | RestRawLog | CheckRead | LookAtTty | LookAtTypist

ForShell = ShellCommand | FollowOutput | FollowProgram | TakeHook | DrawScreen
"""The requests that the front of the terminal passes on as they are."""

ShellMessage = (
    ForShell
    | msg.Introduce
    | msg.Submit
    | msg.TypeKeys
    | msg.SendSignal
    | msg.SetSize
    | msg.ReportOutput
    | msg.FetchOutput
    | msg.FetchLine
    | msg.FetchPrinted
    | msg.CommandRecorded
    | msg.StartNow
    | msg.EndShell
    | ShellTimer
)

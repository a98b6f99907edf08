"""What the shell's actor of a terminal accepts."""

from __future__ import annotations

from aegis.protocol.feeds import DrawScreen, FollowOutput
from aegis.protocol.table import ShellCommand
from aegis.terminals import messages as msg
from aegis.terminals.shell.shell_timers import ShellTimer

ForShell = ShellCommand | FollowOutput | DrawScreen
"""What the front of the terminal passes on as it is."""

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
    | msg.EndShell
    | ShellTimer
)

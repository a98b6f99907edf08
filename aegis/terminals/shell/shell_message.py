"""What the shell's actor of a terminal accepts."""

from __future__ import annotations

from aegis.protocol.feeds import DrawScreen, FollowOutput
from aegis.terminals import messages as msg
from aegis.terminals.shell.shell_timers import ShellTimer

ShellMessage = (
    msg.Introduce
    | msg.Submit
    | msg.TypeKeys
    | msg.TakeScreen
    | msg.SendSignal
    | msg.SetSize
    | msg.ReportOutput
    | msg.FetchOutput
    | msg.FetchLine
    | msg.FetchPrinted
    | FollowOutput
    | DrawScreen
    | msg.CommandRecorded
    | msg.EndShell
    | ShellTimer
)

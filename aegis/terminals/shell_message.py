"""What the shell's actor of a terminal accepts."""

from __future__ import annotations

from aegis.protocol.feeds import DrawScreen, FollowOutput
from aegis.terminals import messages as msg

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
    | msg.FlushRawLog
    | msg.RestRawLog
    | msg.LookAgain
    | msg.LookAtTty
)

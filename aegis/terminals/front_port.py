"""What the front of a terminal accepts; its neighbours know it by this class."""

from __future__ import annotations

from actors import Actor, Down
from aegis.protocol import control
from aegis.protocol import output as out
from aegis.protocol import terminals as api
from aegis.protocol.feeds import DrawScreen, FollowOutput, TypeBytes
from aegis.protocol.screens import GetScreen
from aegis.terminals import messages as msg

FrontMessage = (
    api.RunCommand
    | api.SendKeys
    | control.SignalTerminal
    | control.ResizeTerminal
    | api.ReadRecords
    | GetScreen
    | out.ReadOutput
    | out.WaitTerminal
    | out.FollowCommand
    | FollowOutput
    | DrawScreen
    | TypeBytes
    | api.Subscribe
    | api.Unsubscribe
    | msg.Describe
    | msg.AwaitPrompt
    | msg.EndTerminal
    | msg.RunDeadline
    | msg.PromptDeadline
    | msg.RetryAppends
    | msg.Introduction
    | msg.ShellStarted
    | msg.Prompted
    | msg.DirectoryChanged
    | msg.TypingChanged
    | msg.NeedsInputChanged
    | msg.IntegrationChanged
    | msg.SubmissionRefused
    | msg.SubmissionFailed
    | msg.CommandStarted
    | msg.CommandEnded
    | msg.NothingRan
    | msg.OutputSoFar
    | msg.ShellEnded
    | msg.ShellFailed
    | msg.RecordAppended
    | msg.AppendFailed
    | Down
)


class Front(Actor[FrontMessage]):
    """The actor that clients of a terminal talk to, and that its shell and writer report to."""

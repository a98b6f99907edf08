"""The messages that the front of a terminal accepts, and its class for other actors."""

from __future__ import annotations

from actors import Actor, Down
from aegis.lifecycle.feed import FollowProgram, TakeHook
from aegis.protocol.feeds import ClaimSize, DrawScreen, FollowOutput, ReleaseSize, TypeBytes
from aegis.protocol.output import FollowCommand
from aegis.protocol.table import TerminalCommand
from aegis.terminals import messages as msg
from aegis.terminals.messages import ReadOpenCommands

ClientRequest = (
    TerminalCommand
    | FollowCommand
    | FollowOutput
    | DrawScreen
    | TypeBytes
    | ClaimSize
    | ReleaseSize
)
"""The requests of the servers to a terminal: commands, and those of streams."""

FrontMessage = (
    ClientRequest
    | FollowProgram
    | TakeHook
    | msg.Describe
    | ReadOpenCommands
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
    """The actor that serves the clients of a terminal, and is notified by its shell and writer."""

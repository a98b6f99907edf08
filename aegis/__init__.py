"""Live shared terminals and coordination for coding agents and people.

``connect`` and ``connect_sync`` are clients of a running daemon; ``workflow`` makes a function a
workflow, which gets an ``Engine``. Each name is loaded when it is first used: ``import aegis``
alone costs next to nothing.
"""

from __future__ import annotations

# A type checker takes this for true. To import typing for it would cost more than all else here.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from aegis.client.blocking.client import BlockingClient, connect_sync
    from aegis.client.client import Client, connect
    from aegis.client.errors import (
        ClientError,
        CommandFailed,
        ConnectionLost,
        NoDaemon,
        ProtocolMismatch,
    )
    from aegis.client.stream_kinds import Chunk, Gap
    from aegis.workflows.child.engine import Engine, Group, Terminal
    from aegis.workflows.decorator import workflow
    from aegis.workflows.results import (
        BashResult,
        CallFailed,
        Checkpoint,
        EngineError,
        GroupReplies,
        StepFailed,
        StepInterrupted,
        TaskFailed,
        TerminalResult,
        TimedOut,
        WorkflowChanged,
    )

__all__ = [
    "connect",
    "connect_sync",
    "Client",
    "BlockingClient",
    "ClientError",
    "CommandFailed",
    "ConnectionLost",
    "NoDaemon",
    "ProtocolMismatch",
    "Chunk",
    "Gap",
    "workflow",
    "Engine",
    "Group",
    "Terminal",
    "BashResult",
    "TerminalResult",
    "GroupReplies",
    "Checkpoint",
    "EngineError",
    "CallFailed",
    "TaskFailed",
    "StepFailed",
    "StepInterrupted",
    "TimedOut",
    "WorkflowChanged",
]

__version__ = "0.1.0"

_MODULES = {
    "connect": "aegis.client.client",
    "connect_sync": "aegis.client.blocking.client",
    "Client": "aegis.client.client",
    "BlockingClient": "aegis.client.blocking.client",
    "ClientError": "aegis.client.errors",
    "CommandFailed": "aegis.client.errors",
    "ConnectionLost": "aegis.client.errors",
    "NoDaemon": "aegis.client.errors",
    "ProtocolMismatch": "aegis.client.errors",
    "Chunk": "aegis.client.stream_kinds",
    "Gap": "aegis.client.stream_kinds",
    "workflow": "aegis.workflows.decorator",
    **dict.fromkeys(("Engine", "Group", "Terminal"), "aegis.workflows.child.engine"),
    **dict.fromkeys(
        (
            *("BashResult", "TerminalResult", "Checkpoint", "EngineError", "CallFailed"),
            *("GroupReplies", "TaskFailed", "StepFailed", "StepInterrupted", "WorkflowChanged"),
            "TimedOut",
        ),
        "aegis.workflows.results",
    ),
}
"""Where each public name is."""


if not TYPE_CHECKING:  # a type checker would take any name for one of these

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'aegis' has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(_MODULES[name]), name)
        globals()[name] = value
        return value

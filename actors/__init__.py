"""A small OTP on Trio: supervised actors with typed messages.

Tutorial: ``docs/tutorials/first-actors.md``. Guarantees: ``docs/semantics.md``. The package knows
nothing of terminals and can be used alone. ``actors.faults`` and ``actors.simulate`` are for tests;
import them by name. ``actors.nodes`` runs actors in other processes.

A public name is imported on first use: a program that needs only messages and the codec does not
load Trio.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.actor import Actor, Context
    from actors.cell import Down
    from actors.errors import (
        ActorCrashed,
        ActorError,
        ActorStopped,
        AskCycle,
        AskDeadline,
        AskError,
        CodecError,
        InjectedCrash,
        MailboxFull,
        MisuseError,
        NodeDied,
        NoReply,
        Refusal,
        RestartsExhausted,
        StartFailed,
        SupervisorFailed,
        WrongMessage,
        root_cause,
    )
    from actors.mailbox import MailboxSpec, OnRestart, Overflow
    from actors.messages import Request
    from actors.policy import describe
    from actors.ref import Ref
    from actors.registry import Registry
    from actors.reply import Reply
    from actors.run import open_system
    from actors.slow_steps import SLOW_STEP_S, SlowStep
    from actors.spec import AutoShutdown, Backoff, ChildSpec, Restart, Strategy, SupervisorSpec
    from actors.supervisor_ref import SupervisorRef
    from actors.system import LifeCycleEvent, System
    from actors.timers import Timer
    from actors.tree import Change, Gap, Node, TreeWatch, View, count, mailbox_depths

__all__ = [
    "SLOW_STEP_S",
    "Actor",
    "ActorCrashed",
    "ActorError",
    "ActorStopped",
    "AskCycle",
    "AskDeadline",
    "AskError",
    "AutoShutdown",
    "Backoff",
    "Change",
    "ChildSpec",
    "CodecError",
    "Context",
    "Down",
    "Gap",
    "InjectedCrash",
    "LifeCycleEvent",
    "MailboxFull",
    "MailboxSpec",
    "MisuseError",
    "NoReply",
    "NodeDied",
    "Node",
    "OnRestart",
    "Overflow",
    "Ref",
    "Refusal",
    "Registry",
    "Reply",
    "Request",
    "Restart",
    "RestartsExhausted",
    "SlowStep",
    "StartFailed",
    "Strategy",
    "SupervisorFailed",
    "SupervisorRef",
    "SupervisorSpec",
    "System",
    "Timer",
    "TreeWatch",
    "View",
    "WrongMessage",
    "count",
    "describe",
    "mailbox_depths",
    "open_system",
    "root_cause",
]

_MODULES = {
    "Actor": "actors.actor",
    "Context": "actors.actor",
    "Down": "actors.cell",
    "ActorCrashed": "actors.errors",
    "ActorError": "actors.errors",
    "ActorStopped": "actors.errors",
    "AskCycle": "actors.errors",
    "AskDeadline": "actors.errors",
    "AskError": "actors.errors",
    "CodecError": "actors.errors",
    "InjectedCrash": "actors.errors",
    "MailboxFull": "actors.errors",
    "MisuseError": "actors.errors",
    "NoReply": "actors.errors",
    "NodeDied": "actors.errors",
    "Refusal": "actors.errors",
    "RestartsExhausted": "actors.errors",
    "StartFailed": "actors.errors",
    "SupervisorFailed": "actors.errors",
    "WrongMessage": "actors.errors",
    "root_cause": "actors.errors",
    "MailboxSpec": "actors.mailbox",
    "OnRestart": "actors.mailbox",
    "Overflow": "actors.mailbox",
    "Request": "actors.messages",
    "describe": "actors.policy",
    "Ref": "actors.ref",
    "Registry": "actors.registry",
    "Reply": "actors.reply",
    "SLOW_STEP_S": "actors.slow_steps",
    "SlowStep": "actors.slow_steps",
    "AutoShutdown": "actors.spec",
    "Backoff": "actors.spec",
    "ChildSpec": "actors.spec",
    "Restart": "actors.spec",
    "Strategy": "actors.spec",
    "SupervisorSpec": "actors.spec",
    "SupervisorRef": "actors.supervisor_ref",
    "LifeCycleEvent": "actors.system",
    "System": "actors.system",
    "open_system": "actors.run",
    "Timer": "actors.timers",
    "Change": "actors.tree",
    "Gap": "actors.tree",
    "Node": "actors.tree",
    "TreeWatch": "actors.tree",
    "View": "actors.tree",
    "count": "actors.tree",
    "mailbox_depths": "actors.tree",
}
"""The module of each public name."""


if not TYPE_CHECKING:  # a type checker would take any name for one of the library

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'actors' has no attribute {name!r}")
        value = getattr(importlib.import_module(_MODULES[name]), name)
        globals()[name] = value
        return value

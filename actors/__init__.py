"""A small OTP on Trio: actors with typed messages, supervised.

Knows nothing of terminals; anybody may use it alone. ``docs/semantics.md`` says what it promises,
``docs/tutorials/first-actors.md`` begins with it. For tests there are ``actors.faults`` and
``actors.simulate``, which are imported by their names.
"""

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
from actors.slow_steps import SLOW_STEP_S, SlowStep
from actors.spec import AutoShutdown, Backoff, ChildSpec, Restart, Strategy, SupervisorSpec
from actors.supervisor_ref import SupervisorRef
from actors.system import LifeEvent, System, open_system
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
    "LifeEvent",
    "MailboxFull",
    "MailboxSpec",
    "MisuseError",
    "NoReply",
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

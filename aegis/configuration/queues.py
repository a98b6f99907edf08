"""The queues, ``queues`` in the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import DecimalNumber, OneLine, TrueOrFalse, WholeNumber
from aegis.protocol.naming import NAME_PATTERN
from aegis.protocol.queues import MAX_ATTEMPTS, MAX_RUNTIME_S

MAX_PARALLEL = 64


@attrs.frozen(kw_only=True)
class QueueSection:
    """Queues of tasks, by name. Each task is done by a fresh agent session.

    Each queue is a mapping of these keys.
    """

    agent: str | None = setting(
        OneLine("the name of a profile", NAME_PATTERN, 64),
        default=None,
        otherwise="`default_agent`",
        doc="Profile of its workers.",
    )
    max_parallel: int = setting(
        WholeNumber(1, MAX_PARALLEL), default=1, doc="Tasks that run at the same time."
    )
    max_attempts: int = setting(
        WholeNumber(1, MAX_ATTEMPTS),
        default=1,
        doc="How often a task may begin, if it fails. An agent's work is seldom done twice without "
        "harm.",
    )
    max_runtime_s: float | None = setting(
        DecimalNumber(1, MAX_RUNTIME_S),
        default=None,
        otherwise="no limit",
        doc="Seconds after which an attempt is ended.",
    )
    paused: bool = setting(
        TrueOrFalse(), default=False, doc="Whether it starts no task until a person resumes it."
    )

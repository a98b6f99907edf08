"""The inputs of the machine that no classifier makes, and its outputs. Pure."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from aegis.lifecycle.hooks import Hook
from aegis.lifecycle.keys import KeyInput
from aegis.lifecycle.notices import Notice, ProgressNotice, TitleChanged
from aegis.lifecycle.reports import Report
from aegis.lifecycle.screen_text import Change
from aegis.lifecycle.states import Verdict
from aegis.lifecycle.tty_facts import TtyFact


@attrs.frozen
class ProcessStarted:
    """A process was started, the first one or a new one after a restart."""


@attrs.frozen
class Output:
    """Bytes of output were read; ``change`` is their effect on the text of the screen.

    An output that only reports or sets the title has the effect ``none``.
    """

    change: Change = "unknown"


@attrs.frozen
class Resized:
    """The size of the terminal has changed: the program repaints."""


@attrs.frozen
class PromptBegun:
    """A shell has begun a new prompt (OSC 133;A)."""


@attrs.frozen
class TerminalReset:
    """The program has reset the terminal (RIS, ``ESC c``)."""


@attrs.frozen
class ProcessExited:
    """The process has ended; its output was read, or as much as will be waited for."""


@attrs.frozen
class TimerExpired:
    """The timer of ``StartTimer`` has run out."""


Event: TypeAlias = (
    ProcessStarted
    | Output
    | KeyInput
    | Resized
    | Report
    | Hook
    | TitleChanged
    | Notice
    | ProgressNotice
    | TtyFact
    | PromptBegun
    | TerminalReset
    | ProcessExited
    | TimerExpired
)


@attrs.frozen
class VerdictChanged:
    """The verdict has changed."""

    verdict: Verdict


@attrs.frozen
class StartTimer:
    """Start the timer again: report ``TimerExpired`` after ``after_s`` seconds."""

    after_s: float


Action: TypeAlias = VerdictChanged | StartTimer

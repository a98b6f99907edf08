"""The states of a terminal agent, and the verdict about one. Pure."""

from __future__ import annotations

import enum
from typing import Literal

import attrs

from aegis.shown_text import escape_line, shortened

MAX_TEXT_CHARS = 2048
"""Limit of a text that an agent asks, and of a tool's input."""

MAX_TITLE_CHARS = 192
MAX_NAME_CHARS = 64
"""Limit of the name of a program or tool."""


class State(enum.Enum):
    """The state of a terminal agent. ``stale``: it has needed input for a long time."""

    STARTING = "starting"
    RUNNING = "running"
    NEEDS_INPUT = "needs_input"
    STALE = "stale"
    EXITED = "exited"


class Evidence(enum.Enum):
    """The evidence behind a verdict."""

    START = "start"
    EXIT = "exit"
    REPORT = "report"
    HOOK = "hook"
    TITLE = "title"
    NOTICE = "notification"
    PROGRESS = "progress"
    TTY = "tty"
    SCREEN = "screen"
    OUTPUT = "output"
    KEYS = "keys"
    SILENCE = "silence"


NeedKind = Literal["permission", "question", "auth", "input", "ready", "failed"]
"""The kinds of needs.

``input``: a key or a line, for an unknown purpose. ``ready``: the next order, since the last one is
done. ``failed``: the next order, since the last one ended with an error.
"""


@attrs.frozen(kw_only=True)
class Need:
    """The input that an agent waits for.

    ``text`` is what it asks, ``tool`` and ``tool_input`` name the tool that it wants to use; each
    is one escaped line, or empty if unknown.
    """

    kind: NeedKind
    text: str = ""
    tool: str = ""
    tool_input: str = ""

    @property
    def takes_line(self) -> bool:
        """Whether the input ends with Enter, so that other keys do not answer it."""
        return self.kind in ("ready", "failed")


@attrs.frozen(kw_only=True)
class Verdict:
    """The state of an agent since the moment ``since``, and the ``source`` that decided it.

    ``need`` is set in the states ``needs_input`` and ``stale``. ``progress`` is a percentage, and
    ``title`` a name that the program gave, as one escaped line.
    """

    state: State
    since: float
    source: Evidence
    need: Need | None = None
    progress: int | None = None
    title: str = ""


def clean(text: str, limit: int) -> str:
    """Return a program's text as one line of at most ``limit`` characters, with nothing hidden."""
    # Escaping makes a text longer: so it is cut before, to bound the work, and after.
    return shortened(escape_line(text[: limit + 1].strip()), limit)

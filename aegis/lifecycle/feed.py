"""The requests of a terminal agent to the shell's actor that watches its program. Pure.

Used inside the daemon only.
"""

from __future__ import annotations

import attrs

from actors.messages import Request
from aegis.lifecycle.hooks import Hook
from aegis.lifecycle.states import Verdict


@attrs.frozen(kw_only=True)
class ProgramNews:
    """The ``verdict`` about the newest command of a terminal; None: no command has begun.

    ``number`` counts the verdicts. ``raw_start`` is that of the command, see ``CommandRecord``.
    """

    number: int
    raw_start: int | None = None
    verdict: Verdict | None = None


@attrs.frozen(kw_only=True)
class FollowProgram(Request[ProgramNews]):
    """Watch the commands on terminal ``name``; return the verdict once it has another number.

    Commands that begin after the first request are watched. Without ``after`` it is answered at
    once. ``idle_s`` and ``stale_s`` are those of the life cycle, from the first request on.
    """

    name: str
    idle_s: float
    stale_s: float
    after: int | None = None


@attrs.frozen(kw_only=True)
class TakeHook(Request[bool]):
    """Take a hook event of the program that runs on terminal ``name``.

    The answer is False if no program is watched.
    """

    name: str
    hook: Hook

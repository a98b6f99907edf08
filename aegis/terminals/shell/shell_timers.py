"""What the timers of a shell's actor tell it."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class FlushRawLog:
    """Raw bytes have waited long enough in memory."""


@attrs.frozen(kw_only=True)
class RestRawLog:
    """Nothing may have come for a while since ``position``."""

    position: int


@attrs.frozen(kw_only=True)
class LookAgain:
    """A probe or a submission may have been read by a program meanwhile."""


@attrs.frozen(kw_only=True)
class LookAtTty:
    """The command on ``shell`` may have been quiet for a while."""

    shell: str


ShellTimer = FlushRawLog | RestRawLog | LookAgain | LookAtTty

"""Identify a command that has not ended, across the front and its shell."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class CommandKey:
    """The identity of a command of the shell named ``shell``.

    ``began_at`` is the cursor at which the shell reported its start; until then it is only
    submitted, for the call of number ``call``. Its output begins at ``raw_start`` for readers.
    """

    shell: str
    call: int | None
    began_at: int | None
    raw_start: int

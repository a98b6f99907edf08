"""By what a front and its shell tell a command that has not ended from all others."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class CommandKey:
    """The command that was given to the shell named ``shell``.

    ``began_at`` is the cursor at which that said that it runs; until then it is only submitted, for
    the call of number ``call``. ``raw_start`` is where its output begins for readers.
    """

    shell: str
    call: int | None
    began_at: int | None
    raw_start: int

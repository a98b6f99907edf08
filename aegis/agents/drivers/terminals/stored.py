"""``StoredOutput``: the output of a released command, and who keeps it. Pure."""

from __future__ import annotations

from typing import Protocol

import attrs


@attrs.frozen(kw_only=True)
class StoredOutput:
    """The whole output of a released command; its first ``begin`` bytes were dropped."""

    command: str
    output: str
    begin: int
    exit_code: int | None
    signal: str | None

    def since(self, cursor: int) -> tuple[int, str]:
        """Return the text from the byte ``cursor`` on, and the offset of its begin."""
        data = self.output.encode()
        skipped = min(max(0, cursor - self.begin), len(data))
        left = data[skipped:].decode(errors="ignore")  # ignores half of a character
        return self.begin + len(data) - len(left.encode()), left


class OutputStore(Protocol):
    """Keeps the output of released commands of one session."""

    async def keep(self, id_: str, output: StoredOutput) -> None:
        """Store the output of the command ``id_``, or log why that is impossible."""
        ...

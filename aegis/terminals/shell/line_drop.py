"""``LineDrop``: makes a shell drop text that it cannot finish reading, until it has."""

from __future__ import annotations

from collections.abc import Iterator

from aegis.terminals.hooks.adapter import PROBE_S
from aegis.terminals.shell.shell_side import ShellSide

ROUNDS = 3
"""How often the keys that drop a text are tried, in turn."""


class LineDrop:
    """The keys for one text after the other: ``again`` is called while the shell reads on."""

    def __init__(self, shell: ShellSide) -> None:
        self._shell = shell
        self._keys: Iterator[bytes] = iter(())

    def begin(self, drops: tuple[bytes, ...]) -> None:
        """A text is incomplete: send the first of the keys that drop it."""
        self._keys = iter(drops * ROUNDS)
        self.again()

    def again(self) -> None:
        """Send the next key, and have the tracker look later whether it worked."""
        keys = next(self._keys, b"")
        if keys:
            self._shell.write(keys)
            self._shell.look_again_after(PROBE_S)

"""A line on which a promise depends, and the change that breaks it. Pure."""

from __future__ import annotations

import attrs


@attrs.frozen
class Promise:
    """A promise that ``old``, once in ``file``, keeps; ``new`` in its place breaks it.

    ``also`` has further pairs: where two lines keep the same promise, each for the case that the
    other fails.
    """

    name: str
    guarantee: str
    file: str
    old: str
    new: str
    also: tuple[tuple[str, str], ...] = ()

    def broken(self, source: str) -> str:
        """Return the source with the promise broken; ``ValueError`` if ``old`` is not unique."""
        for old, new in ((self.old, self.new), *self.also):
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: {self.file} has not exactly one {old!r}")
            source = source.replace(old, new)
        return source

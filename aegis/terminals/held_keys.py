"""Keys that wait until the shell has read a submission, whose text they would alter. Pure."""

from __future__ import annotations


class HeldKeys:
    """The keys, in order, and until when they are held at most (seconds of the caller's clock)."""

    def __init__(self) -> None:
        self._keys: list[tuple[str, bytes]] = []
        self._until = 0.0

    def __bool__(self) -> bool:
        return bool(self._keys)

    @property
    def size(self) -> int:
        """How many bytes they are."""
        return sum(len(data) for _, data in self._keys)

    def hold(self, writer: str, data: bytes, until: float) -> None:
        """Keep ``data`` of ``writer``; ``until`` counts for the first that is held."""
        if not self._keys:
            self._until = until
        self._keys.append((writer, data))

    def is_overdue(self, now: float) -> bool:
        """Whether some were held long enough."""
        return bool(self._keys) and now >= self._until

    def take(self) -> list[tuple[str, bytes]]:
        """All of them; none is held any more."""
        taken, self._keys = self._keys, []
        return taken

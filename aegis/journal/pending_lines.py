"""``PendingLines``: the lines of several ledgers that are not durable yet, for a machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from aegis.journal.ledger import Append


class Pending(Protocol):
    """A line with what its machine keeps until it is durable; ``ledger`` is a name."""

    @property
    def ledger(self) -> str:
        """The name of the ledger."""
        ...

    @property
    def fields(self) -> dict[str, object]:
        """The line."""
        ...


L = TypeVar("L", bound=Pending)


class PendingLines(Generic[L]):
    """Numbers lines; keeps those that the disk refused and that must be written all the same."""

    def __init__(self) -> None:
        self._numbers = 0
        self._unsynced: dict[int, L] = {}
        self._refused: dict[str, list[L]] = {}

    def __iter__(self) -> Iterator[L]:
        """Yield the lines that are being written, in their order."""
        return iter(self._unsynced.values())

    @property
    def refused_ledgers(self) -> list[str]:
        """The ledgers with lines that must be written again."""
        return [*self._refused]

    def write(self, line: L) -> Iterator[tuple[str, Append]]:
        """Yield the ledger and the number of its refused lines, and of this one."""
        yield from self.again(line.ledger)
        yield self._number(line)

    def again(self, ledger: str) -> Iterator[tuple[str, Append]]:
        """Yield the refused lines of a ledger."""
        for line in self._refused.pop(ledger, []):
            yield self._number(line)

    def synced(self, number: int) -> L:
        """Remove and return the line of this number."""
        return self._unsynced.pop(number)

    def refused(self, ledger: str) -> list[L]:
        """Remove and return the lines of a ledger that are being written."""
        numbers = [number for number, line in self._unsynced.items() if line.ledger == ledger]
        return [self._unsynced.pop(number) for number in numbers]

    def keep(self, lines: list[L]) -> None:
        """Keep refused lines of one ledger, to be written again."""
        for line in lines:
            self._refused.setdefault(line.ledger, []).append(line)

    def _number(self, line: L) -> tuple[str, Append]:
        self._numbers += 1
        self._unsynced[self._numbers] = line
        return line.ledger, Append(number=self._numbers, line=line.fields)

"""The stand-in for ``trio.MultiError``: several exceptions as one. Pure.

tractor raises it, catches it, adds lists to its ``exceptions`` and asks ``filter`` whether nothing
but cancellations is in it. So it is an exception group whose ``exceptions`` are a list. Outside
of tractor it is an ordinary group that ``except*`` handles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

Handler = Callable[[BaseException], BaseException | None]


class MultiError(BaseExceptionGroup[BaseException]):
    """A group as tractor knows it; made of a list alone, or like any group of a text and a list."""

    def __new__(
        cls, first: str | Iterable[BaseException], exceptions: Sequence[BaseException] | None = None
    ) -> MultiError:
        """Make a group; one of ``Exception`` alone is one itself, as Python's groups are."""
        text, held = _text_and_held(first, exceptions)
        kind: Any = cls
        if cls is MultiError and all(isinstance(each, Exception) for each in held):
            kind = OrdinaryMultiError
        made: MultiError = BaseExceptionGroup.__new__(kind, text, held)
        return made

    def __init__(self, *_: object) -> None: ...

    def derive(self, exceptions: Sequence[Any], /) -> Any:
        """Return a group of the same kind for a part of this one."""
        return MultiError(self.message, exceptions)

    @property
    def exceptions(self) -> list[BaseException]:  # type: ignore[override]
        """The exceptions as a list: tractor adds lists to it."""
        held: tuple[BaseException, ...] = BaseExceptionGroup.exceptions.__get__(self)
        return list(held)

    @staticmethod
    def filter(handler: Handler, root: BaseException) -> BaseException | None:
        """Leave out each exception for which ``handler`` gives none; none when nothing is left."""
        if not isinstance(root, BaseExceptionGroup):
            return handler(root)
        kept = [each for inner in root.exceptions if (each := MultiError.filter(handler, inner))]
        return MultiError(root.message, kept) if kept else None


class OrdinaryMultiError(MultiError, ExceptionGroup[Exception]):  # type: ignore[misc]
    """One without interrupts and cancellations in it."""


def _text_and_held(
    first: str | Iterable[BaseException], exceptions: Sequence[BaseException] | None
) -> tuple[str, list[BaseException]]:
    if isinstance(first, str):
        return first, list(exceptions or ())
    return "several errors", list(first)

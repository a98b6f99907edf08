"""The base class of the nouns of the blocking client."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from aegis.protocol.command import Command

T = TypeVar("T")


class BlockingCaller(Protocol):
    """A caller of commands, one after another."""

    def call(self, command: type[Command[T]], arguments: dict[str, object]) -> T:
        """Call ``command``. Raises ``ClientError``."""
        ...


class BlockingNoun:
    """A group of commands of one caller. Each method raises ``ClientError``."""

    def __init__(self, caller: BlockingCaller) -> None:
        self._caller = caller

    def _call(self, command: type[Command[T]], /, **arguments: Any) -> T:
        return self._caller.call(command, arguments)

"""What the nouns of a blocking client have in common: the way of a call."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from aegis.protocol.command import Command

T = TypeVar("T")


class BlockingCaller(Protocol):
    """Who has commands carried out, one after the other."""

    def call(self, command: type[Command[T]], arguments: dict[str, object]) -> T:
        """Have ``command`` carried out. Raises ``ClientError``."""
        ...


class BlockingNoun:
    """Some commands of one caller, as methods. Each raises ``ClientError``."""

    def __init__(self, caller: BlockingCaller) -> None:
        self._caller = caller

    def _call(self, command: type[Command[T]], /, **arguments: Any) -> T:
        return self._caller.call(command, arguments)

"""What a load did, what its clients were told, and what was there in the end. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

Record = Mapping[str, Any]
Message = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Command:
    """A command that a client sent, and what becomes of it if nobody disturbs it.

    ``token`` is unique; it stands in ``text`` and in every line of ``stdout``. ``life`` counts the
    daemon's processes. ``typed``: sent as keys, so nobody was told its number.
    """

    token: str
    terminal: str
    writer: str
    life: int
    text: str
    stdout: str
    exit: int = 0
    end: str = "exited"
    typed: bool = False


@attrs.frozen
class Told:
    """A record of ``terminal`` that a client got, as the reply to its run or by reading."""

    terminal: str
    record: Record


@attrs.frozen
class Answer:
    """One answer of an inbox: its messages. ``acknowledged`` is the ``after`` that it confirms."""

    messages: tuple[Message, ...]
    acknowledged: str | None = None


@attrs.frozen
class Handoff:
    """A message of one client to another. ``id`` is that of its receipt; None if none came."""

    to: str
    body: str
    id: str | None


@attrs.frozen(kw_only=True)
class Life:
    """One process of the daemon: how it ended, and what it found of the ones before it.

    ``missing`` are terminals that it did not bring back, ``left`` the processes that were still
    there when it was ready.
    """

    number: int
    killed: bool
    missing: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Evidence:
    """All of it. ``begun`` and ``ended`` are what the commands themselves wrote, in order.

    ``refused`` are the tokens of commands that were never typed, as their caller was told. ``ids``
    is the life id of each terminal, ``kept`` the newest messages of each inbox as it holds them.
    ``errors`` are answers that no client should get.
    """

    commands: tuple[Command, ...]
    begun: tuple[str, ...]
    ended: tuple[str, ...]
    told: tuple[Told, ...]
    refused: tuple[str, ...]
    ledgers: Mapping[str, tuple[Record, ...]]
    ids: Mapping[str, str]
    answers: Mapping[str, tuple[Answer, ...]]
    kept: Mapping[str, tuple[Message, ...]]
    handoffs: tuple[Handoff, ...]
    lives: tuple[Life, ...]
    errors: tuple[str, ...] = ()

    @property
    def by_token(self) -> dict[str, Command]:
        """The commands by their tokens."""
        return {command.token: command for command in self.commands}

    def records(self) -> Iterator[tuple[str, Record]]:
        """Every record with its terminal."""
        for terminal, records in self.ledgers.items():
            for record in records:
                yield terminal, record

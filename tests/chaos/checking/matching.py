"""The match between records and commands. Pure.

A record has the text of its command, or names it by the token in ``cmd``, or, where that is not
known, in its output (no proof where a loss of power may have changed the bytes). A record with
neither (typed, and killed before it printed) belongs to the earliest typed command of its terminal
and writer that started, has no other record, and fits between its neighbours; else to a command
that was killed before its first word, without proof that it started.
"""

from __future__ import annotations

import re
from collections import Counter

from tests.chaos.checking.evidence import Command, Evidence
from tests.chaos.checking.observations import Record

SHELL = "shell"
"""The writer of a record of no command: a shell ended at its prompt."""

TOKEN = re.compile(r"@[a-z0-9.]+@")


def tokens_in(text: str | None) -> list[str]:
    """Return the different tokens in ``text``, in the order of their first appearance."""
    return list(dict.fromkeys(TOKEN.findall(text or "")))


def _is_out_of_turn(command: Command, earlier: Command) -> bool:
    """Return whether the command cannot have the higher number: ``earlier`` was sent after it."""
    return command.writer == earlier.writer and command.span.is_before(earlier.span)


class Matching:
    """The commands of the records: ``of[terminal]`` has one per record, None for a stranger."""

    def __init__(self, evidence: Evidence) -> None:
        self._commands = evidence.by_token
        texts = Counter((each.terminal, each.text) for each in evidence.commands)
        self._by_text = {
            (each.terminal, each.text): each
            for each in evidence.commands
            if texts[each.terminal, each.text] == 1
        }
        self._begun = set(evidence.begun)
        self._lost_power = any(each.kind == "power loss" for each in evidence.deaths)
        self.of = {
            terminal: self._match(terminal, records)
            for terminal, records in evidence.ledgers.items()
        }

    @property
    def tokens(self) -> list[str]:
        """The tokens of all matched records; a token with two records is in the list twice."""
        return [
            command.token
            for commands in self.of.values()
            for command in commands
            if command is not None
        ]

    def token_of(self, terminal: str, record: Record) -> str | None:
        """Return the token that the record names, or None."""
        command = self._named(terminal, record)
        return None if command is None else command.token

    def _match(self, terminal: str, records: tuple[Record, ...]) -> list[Command | None]:
        named = [self._named(terminal, record) for record in records]
        taken = {command.token for command in named if command is not None}
        free = [
            command
            for command in self._commands.values()
            if command.terminal == terminal and command.typed and command.token not in taken
        ]
        return [
            command or self._anonymous(index, record, named, free)
            for index, (record, command) in enumerate(zip(records, named, strict=True))
        ]

    def _named(self, terminal: str, record: Record) -> Command | None:
        if record["writer"] == SHELL:
            return None
        if (terminal, record["cmd"]) in self._by_text:
            return self._by_text[terminal, record["cmd"]]
        found = tokens_in(record["cmd"]) or self._printed_by(record)
        command = self._commands.get(found[0]) if found else None
        return command if command is not None and command.terminal == terminal else None

    def _printed_by(self, record: Record) -> list[str]:
        is_rebuilt = record["cmd"] is None and record["killed_by_restart"]
        return [] if is_rebuilt and self._lost_power else tokens_in(record["stdout"])

    def _anonymous(
        self, index: int, record: Record, named: list[Command | None], free: list[Command]
    ) -> Command | None:
        if record["cmd"] is not None:
            return None
        before = [each for each in named[:index] if each is not None]
        earlier = [each.life for each in before]
        later = [each.life for each in named[index:] if each is not None]
        fitting = [
            command
            for command in free
            if max(earlier, default=0) <= command.life <= min(later, default=command.life)
            and command.writer == record["writer"]
            and (command.token in self._begun or record["killed_by_restart"])
            and not any(_is_out_of_turn(command, each) for each in before)
        ]
        # False sorts first: the command that the record shows, and commands that started.
        shown = tokens_in(record["stdout"])
        fitting.sort(key=lambda each: (each.token not in shown, each.token not in self._begun))
        for command in fitting[:1]:
            free.remove(command)
            return command
        return None

"""The one command in flight on a terminal: who called it, its number, and the note on disk.

Two stages: *submitted* (its text went to the shell) and *begun* (the shell said that it runs). A
``seq`` is claimed with the note, before the first byte is typed; a submission that was refused or
incomplete gives it back, never having been shown. The note also names commands whose records are
on their way to the ledger, so that a crash in between finds them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import attrs

from aegis.clock import utc_now
from aegis.errors import StorageError
from aegis.journal.note import Note
from aegis.terminals.calls import Call
from aegis.terminals.messages import CommandStarted
from aegis.terminals.record import InFlight, from_note


class Flight:
    """The command in flight, if any."""

    def __init__(self, note: Note, next_seq: int) -> None:
        self._note = note
        self._next_seq = next_seq
        self._ended: dict[int, InFlight] = {}
        self.command: InFlight | None = None
        self.call: Call | None = None
        self.begun = False
        self._displaced: Call | None = None

    @classmethod
    def open(cls, note: Note, last_seq: int) -> tuple[Flight, list[InFlight]]:
        """The flight of a terminal whose last number was ``last_seq``, and what its note tells of.

        Those are commands that were in flight when an earlier life ended: they have no record yet.
        """
        noted = _commands(note.load())
        found = [command for command in noted if command.seq > last_seq]
        highest = max([last_seq, *(command.seq for command in noted)])
        flight = cls(note, highest + 1)
        flight._ended = {command.seq: command for command in found}
        return flight, found

    @property
    def is_free(self) -> bool:
        """Whether nothing was submitted and nothing runs."""
        return self.command is None and self._displaced is None

    @property
    def submitted(self) -> Call | None:
        """The call whose command is with the shell; perhaps behind one that was typed ahead."""
        return self.call or self._displaced

    @property
    def last_seq(self) -> int:
        """The number given last; -1 if none was."""
        return self._next_seq - 1

    def submit(self, call: Call, cwd: str | None, cursor: int, moment_s: float) -> None:
        """The command of ``call`` goes to the shell now; not if this raises ``StorageError``."""
        command = self._submitted(call, cwd, cursor, moment_s)
        self._write(command)
        self._take(command, call)

    def take_back(self) -> Call | None:
        """The submission did not run, so its number is free again. The call, if somebody waits.

        What somebody typed before it stays in flight. Should the disk refuse, the note goes on
        naming the submission until another one takes its place.
        """
        if self.begun:
            call, self._displaced = self._displaced, None
            return call
        call = self.call or self._displaced
        if self.command is not None:
            self._next_seq = self.command.seq
        self.command = self.call = self._displaced = None
        with contextlib.suppress(StorageError):
            self._write(None)
        return call

    def begin(self, news: CommandStarted) -> None:
        """The shell began a command: the submitted one, or (``call`` None) one somebody typed.

        Raises ``StorageError`` if the note could not be written; the command is in flight all the
        same.
        """
        if news.call is None:
            self._make_way()
        else:
            self.readmit()
        submitted = self.command
        self.command = InFlight(
            seq=self._claim() if submitted is None else submitted.seq,
            cmd=None if submitted is None else submitted.cmd,
            writer=news.writer if submitted is None else submitted.writer,
            cwd=news.cwd,
            started_at=news.started_at,
            moment_s=news.moment_s,
            raw_start=news.raw_start,
            timed_out=submitted is not None and submitted.timed_out,
        )
        self.begun = True
        self._write(self.command)

    def readmit(self) -> None:
        """A submission that had to make way for a typed command has its turn."""
        call, self._displaced = self._displaced, None
        if call is not None and self.command is None:
            command = self._submitted(call, None, 0, 0.0)
            with contextlib.suppress(StorageError):  # its text went to the shell long ago
                self._write(command)
            self._take(command, call)

    def mark_timed_out(self) -> InFlight:
        """The caller's time is up: the command goes on without one. Raises ``StorageError``."""
        assert self.command is not None
        self.command = attrs.evolve(self.command, timed_out=True)
        self.call = None
        self._write(self.command)
        return self.command

    async def sync(self) -> None:
        """Make the note survive a loss of power. Raises ``StorageError``."""
        await self._note.sync()

    def end(self, typed: str | None = None) -> tuple[InFlight, Call | None]:
        """The command has ended; the note names it until it is ``recorded``.

        ``typed`` is the text of a command that nobody submitted.
        """
        assert self.command is not None
        command, call = self.command, self.call
        if command.cmd is None:
            command = attrs.evolve(command, cmd=typed)
        self.command = self.call = None
        self.begun = False
        self._ended[command.seq] = command
        return command, call

    def recorded(self, seq: int) -> None:
        """The record ``seq`` is in the ledger."""
        self._ended.pop(seq, None)

    def close(self) -> None:
        """Let go of the file."""
        self._note.close()

    def _claim(self) -> int:
        self._next_seq += 1
        return self._next_seq - 1

    def _submitted(self, call: Call, cwd: str | None, cursor: int, moment_s: float) -> InFlight:
        return InFlight(
            seq=self._next_seq,
            cmd=call.cmd,
            writer=call.writer,
            cwd=cwd,
            started_at=utc_now(),
            moment_s=moment_s,
            raw_start=cursor,
        )

    def _take(self, command: InFlight, call: Call) -> None:
        self._next_seq = command.seq + 1
        self.command, self.call, self.begun = command, call, False

    def _make_way(self) -> None:
        """A command typed ahead of our submission ran before it: it takes the number."""
        if self.command is not None and not self.begun:
            self._displaced = self.call
            self._next_seq = self.command.seq
            self.command = self.call = None

    def _write(self, command: InFlight | None) -> None:
        commands = [*self._ended.values(), *([command] if command is not None else [])]
        self._note.write({"commands": [each.note() for each in commands]})


def _commands(fields: object) -> Iterable[InFlight]:
    if not isinstance(fields, dict):
        return []
    entries = fields.get("commands")
    if not isinstance(entries, list):
        return []
    commands = [from_note(entry) for entry in entries if isinstance(entry, dict)]
    return [command for command in commands if command is not None]

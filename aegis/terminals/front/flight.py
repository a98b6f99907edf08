"""The one command in flight on a terminal: who called it, its number, and the note on disk.

Two stages: *submitted* (its text went to the shell) and *begun* (the shell said that it runs). A
``seq`` is claimed with the note, before the first byte is typed; a submission that was refused or
incomplete gives it back, never having been shown. The note also names commands whose records are
on their way to the ledger, so that a crash in between finds them, and where the shell was last.

A submission may be *displaced*: the shell reads a line that was typed ahead of it first, perhaps
several. The note names the submission behind the typed command, under the number that follows, for
the daemon may be killed after the shell has read it. That number is provisional and goes to the
next typed line, unless a caller was shown it: then the typed line takes a higher one, and its
record is held back until the submission has its own, because records are appended in order.

A front that begins anew finds commands in the note. Those of shells that are gone have ended with
them (``lost_with``); for the others the shell tells again what became of them, and each word of it
is applied once: what the ledger or this flight knows already changes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection

import attrs
import structlog

from aegis.clock import utc_now
from aegis.errors import StorageError
from aegis.journal.note import Note
from aegis.path_text import text_of_path
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front.calls import Call, Displaced, is_submission
from aegis.terminals.messages import CommandStarted
from aegis.terminals.record import (
    InFlight,
    Outcome,
    begun_by,
    commands_in,
    given_before,
    outcome_in,
)

log = structlog.get_logger()


class Flight:
    """The command in flight, if any.

    ``shell`` names the shell that it is given to, ``cursor`` is where output stood when that one
    began or the last command ended, and ``cwd`` where the prompt was last, if that is known.
    """

    def __init__(self, note: Note, next_seq: int, cwd: str | None) -> None:
        self._note = note
        self._next_seq = next_seq
        self._found: dict[int, InFlight] = {}
        self._ended: dict[int, InFlight] = {}
        self._shown: set[int] = set()
        self._displaced: Displaced | None = None
        self._owes_sync = False
        self._owes_write = False
        self.command: InFlight | None = None
        self.call: Call | None = None
        self.shell = ""
        self.cursor = 0
        self.cwd = cwd
        self._is_removed = False

    @classmethod
    def open(cls, note: Note, last: CommandRecord | None, given: int) -> Flight:
        """The flight of a terminal with this newest record; numbers up to ``given`` were given.

        Those above the newest record may have been in lines that are damaged. What the note tells
        of such a one goes into the ledger again.
        """
        last_seq = -1 if last is None else last.seq
        fields = note.load() or {}
        noted = commands_in(fields)
        cwd = fields.get("cwd")
        highest = max([given, *(command.seq for command in noted)])
        before = given_before(fields)
        if before - given > sum(each.seq > given for each in noted):
            name = note.path.parent.name
            log.warning("ledger lost records", terminal=name, ends=given, given=before)
        highest = max(highest, before)
        flight = cls(note, highest + 1, text_of_path(cwd) if isinstance(cwd, str) else None)
        lacking = sorted((each for each in noted if each.seq > last_seq), key=lambda each: each.seq)
        flight._found = {each.seq: each for each in lacking}
        flight._shown = set(flight._found)
        return flight

    @property
    def is_free(self) -> bool:
        """Whether nothing was submitted and nothing runs."""
        return self.command is None and self._displaced is None

    @property
    def submitted(self) -> Call | None:
        """The call whose command is with the shell; perhaps behind one that was typed ahead."""
        return self.call or (None if self._displaced is None else self._displaced.call)

    def unrecorded(self) -> list[InFlight]:
        """The commands that have a number and no record in the ledger, oldest first.

        A displaced submission is among them only if its number was shown.
        """
        known = [*self._found.values(), *self._ended.values(), *self._open()]
        return sorted(known, key=lambda command: command.seq)

    def holds_back(self, seq: int) -> bool:
        """Whether a command with a lower number has not ended: its record comes before this one."""
        return any(command.seq < seq for command in self._open())

    def has_shown(self, number: int | None) -> bool:
        """Whether a caller knows the number of the submission ``number``, which did not begin."""
        displaced, command = self._displaced, self.command
        if displaced is not None and displaced.number == number:
            return displaced.is_shown
        return command is not None and command.timed_out and is_submission(command, number)

    # A command's way.

    def submit(self, call: Call, moment_s: float) -> None:
        """The command of ``call`` goes to the shell now; not if this raises ``StorageError``."""
        command = self._submission(call, moment_s)
        self._write(command)
        self._next_seq = command.seq + 1
        self.command, self.call = command, call

    def take_back(self, number: int | None) -> Call | None:
        """The submission ``number`` did not run: its ``seq`` is free. The call, if somebody waits.

        What somebody typed before it stays in flight. The note may go on naming the submission
        until it is synced: before somebody is told that it did not run, see ``owes_sync``. Not for
        a submission whose number was shown (``has_shown``).
        """
        displaced, command = self._displaced, self.command
        if displaced is not None and displaced.number == number:
            call, self._displaced = displaced.call, None
        elif command is not None and is_submission(command, number):
            call, self._next_seq = self.call, command.seq
            self.command = self.call = None
        else:
            return None
        self._owes_sync = True
        with contextlib.suppress(StorageError):
            self._write(self.command)
        return call

    def begin(self, news: CommandStarted) -> None:
        """The shell began a command: the submitted one, or (``call`` None) one somebody typed.

        What a caller was shown of one whose time was up while it was only submitted stays true.
        """
        if self._is_known(news):
            return
        if news.call is None:
            self._make_way()
        else:
            self._readmit(news.call, began=True)
        submitted = self.command
        if submitted is not None and submitted.timed_out:
            self.command = attrs.evolve(submitted, began_at=news.raw_start)
        else:
            seq = self._claim() if submitted is None else submitted.seq
            self.command = begun_by(news, seq)
        self._note_down()

    def end(self, raw_start: int, typed: str | None) -> tuple[InFlight, Call | None] | None:
        """The command that began at ``raw_start`` has ended; None if that is known already.

        ``typed`` is the text of a command that nobody submitted. The note names it until it is
        ``recorded``.
        """
        command = self.command
        if command is not None and command.began_at == raw_start:
            return self._end_current(typed)
        return self._end_found(lambda each: each.began_at == raw_start, typed)

    def end_submitted(self, number: int) -> tuple[InFlight, Call | None] | None:
        """The submission ``number`` was read and began no command; None if that is known."""
        self._readmit(number)
        command, displaced = self.command, self._displaced
        if command is not None and is_submission(command, number):
            return self._end_current(None)
        if displaced is not None and displaced.number == number:
            return self._end_displaced(displaced)
        return self._end_found(lambda each: is_submission(each, number))

    def take_unread(self, shell: str) -> Call | None:
        """The submission that this shell, which has ended, did not read: it ran what was typed.

        None also where its caller was told already that it comes next: then it is recorded.
        """
        unread, command = self._displaced, self.command
        runs_another = command is not None and command.began_at is not None
        if unread is None or shell != unread.command.shell or not runs_another:
            return None
        if unread.call is None or unread.call.is_late:
            return None
        return self.take_back(unread.number)

    def end_all(self, shell: str) -> list[tuple[InFlight, Call | None]]:
        """The shell has ended, and with it all that was given to it, in the order of numbers."""
        ended = []
        while (found := self._end_found(lambda each: each.shell == shell)) is not None:
            ended.append(found)
        if self.command is not None and self.command.shell == shell:
            ended.append(self._end_current(None))
        if self._displaced is not None and self._displaced.command.shell == shell:
            ended.append(self._end_displaced(self._displaced))
        return sorted(ended, key=lambda each: each[0].seq)

    def lost_with(self, shells: Collection[str]) -> list[tuple[InFlight, Call | None]]:
        """What was given to other shells than ``shells``, oldest first: those are gone."""
        gone = {each.shell for each in self._found.values()}
        gone |= {self.command.shell} if self.command is not None else set()
        gone |= {self._displaced.command.shell} if self._displaced is not None else set()
        lost = [each for shell in gone.difference(shells) for each in self.end_all(shell)]
        return sorted(lost, key=lambda each: each[0].seq)

    def resume(self) -> None:
        """The newest command that was found is in flight, until the shell says otherwise.

        Beside a submission this is the command before it that may still run, if there is one: the
        submission is displaced.
        """
        if self.command is not None or not self._found:
            return
        shell = self._found[max(self._found)].shell
        open_ = [each for each in self._found.values() if each.shell == shell and not each.outcome]
        waiting = [each for each in open_ if each.began_at is None]
        running = [each for each in open_ if each.began_at is not None]
        if waiting and running:
            self.command = self._found.pop(running[-1].seq)
            self._resume_displaced(self._found.pop(waiting[-1].seq))
        else:
            self.command = self._found.pop(max(self._found))

    def _resume_displaced(self, submission: InFlight) -> None:
        self._displaced = Displaced(submission, None)
        if not submission.timed_out and submission.seq == self._next_seq - 1:
            self._next_seq = submission.seq  # provisional: the next typed line takes it

    def settle_found(self, submitted: int | None) -> list[InFlight]:
        """The shell has told everything; ``submitted`` is the call that it still has.

        A submission that it knows nothing of never reached it. Returns it if its number was shown:
        it has ended, and needs a record. Returns also commands whose end nobody knows, which cannot
        be unless more ended than a shell's actor remembers.
        """
        waiting = self.command if self._displaced is None else self._displaced.command
        found, self._found = list(self._found.values()), {}
        if waiting is None or waiting.began_at is not None or waiting.call == submitted:
            return found
        if waiting.call is None or not self.has_shown(waiting.call):
            self.take_back(waiting.call)
            return found
        ended = self.end_submitted(waiting.call)
        return found if ended is None else [ended[0], *found]

    def mark_timed_out(self) -> InFlight:
        """The caller's time is up: the command goes on without one. Raises ``StorageError``."""
        assert self.command is not None
        self.command = attrs.evolve(self.command, timed_out=True)
        return self.leave_running()

    def leave_running(self) -> InFlight:
        """Its caller gets an answer now: the command goes on without one. Raises ``StorageError``.

        The note is written as it stands: what the caller is shown must be in it.
        """
        assert self.command is not None
        self.call = None
        self._shown.add(self.command.seq)
        self._write(self.command)
        return self.command

    def finished(self, seq: int, outcome: Outcome) -> None:
        """The ended command ``seq`` has this outcome: known even if its record is not written."""
        self._ended[seq] = attrs.evolve(self._ended[seq], outcome=outcome)
        self._note_down()

    def recovered(self, record: CommandRecord) -> None:
        """A lost command has this record, which is not written yet.

        Should it never be, a later life finds a raw log that has grown, and must know where the
        command's output ended.
        """
        self.finished(record.seq, outcome_in(record))

    def recorded(self, seq: int) -> None:
        """The record ``seq`` is in the ledger."""
        self._ended.pop(seq, None)
        self._shown.discard(seq)

    def is_shown(self, seq: int) -> bool:
        """Whether somebody may know the number of this command, which has no record yet."""
        return seq in self._shown

    def moved(self, cwd: str | None) -> None:
        """The prompt is shown in ``cwd`` now; None: in a directory that was removed."""
        self._is_removed = cwd is None
        if cwd is not None and cwd != self.cwd:
            self.cwd = cwd
            self._note_down()

    @property
    def owes_sync(self) -> bool:
        """Whether the next life may find a submission in the note that was taken back."""
        return self._owes_sync

    async def sync(self) -> None:
        """Make the note survive a loss of power: it may be shown. Raises ``StorageError``."""
        self._shown.update(each.seq for each in self.unrecorded())
        if self._owes_write:
            self._write(self.command)
        owed, self._owes_sync = self._owes_sync, False
        try:
            await self._note.sync()
        except StorageError:
            self._owes_sync = self._owes_sync or owed
            with contextlib.suppress(StorageError):
                self._write(self.command)  # what was written before may be forgotten
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._note.close()

    def _claim(self) -> int:
        self._next_seq += 1
        return self._next_seq - 1

    def _make_way(self) -> None:
        """A command typed ahead of our submission runs before it.

        It takes the submission's number, unless that was shown: then nobody else may have it.
        """
        command = self.command
        if command is not None and command.began_at is None:
            self._displaced = Displaced(command, self.call)
            if not command.timed_out:
                self._next_seq = command.seq
            self.command = self.call = None

    def _readmit(self, number: int, *, began: bool = False) -> None:
        """A displaced submission has its turn, if it is that of ``number``.

        ``began``: the caller writes the note at once.
        """
        displaced = self._displaced
        if displaced is None or displaced.number != number or self.command is not None:
            return
        command = self._numbered(displaced)
        self._next_seq = max(self._next_seq, command.seq + 1)
        self._displaced = None
        self.command, self.call = command, displaced.call
        if not began:
            self._note_down()

    def _numbered(self, displaced: Displaced) -> InFlight:
        cwd = None if self._is_removed else self.cwd
        return displaced.numbered(self._next_seq, cwd, self.cursor)

    def _open(self) -> list[InFlight]:
        """The commands with a number of their own that have not ended."""
        displaced = self._displaced
        shown = [displaced.command] if displaced is not None and displaced.is_shown else []
        return shown if self.command is None else [*shown, self.command]

    def _submission(self, call: Call, moment_s: float) -> InFlight:
        return InFlight(
            seq=self._next_seq,
            cmd=call.cmd,
            writer=call.writer,
            cwd=None if self._is_removed else self.cwd,
            started_at=utc_now(),
            moment_s=moment_s,
            raw_start=self.cursor,
            shell=self.shell,
            call=call.number,
        )

    def _is_known(self, news: CommandStarted) -> bool:
        """Whether this command is in flight, or has ended, since before the news was told again."""
        command = self.command
        if command is not None and command.began_at == news.raw_start:
            self.command = attrs.evolve(command, moment_s=news.moment_s)
            return True
        # A kill takes raw bytes: where one of an earlier shell began, another one may begin again.
        told = (news.shell, news.raw_start)
        for each in self._found.values():
            if (each.shell, each.began_at) == told:
                self._found[each.seq] = attrs.evolve(each, moment_s=news.moment_s)
                return True
        return any((each.shell, each.began_at) == told for each in self._ended.values())

    def _end_current(self, typed: str | None) -> tuple[InFlight, Call | None]:
        assert self.command is not None
        command, call = self.command, self.call
        self.command = self.call = None
        return self._has_ended(command, typed), call

    def _end_displaced(self, displaced: Displaced) -> tuple[InFlight, Call | None]:
        command = self._numbered(displaced)
        self._next_seq = max(self._next_seq, command.seq + 1)
        self._displaced = None
        return self._has_ended(command, None), displaced.call

    def _end_found(
        self, fits: Callable[[InFlight], bool], typed: str | None = None
    ) -> tuple[InFlight, Call | None] | None:
        for command in self._found.values():
            if fits(command):
                del self._found[command.seq]
                return self._has_ended(command, typed), None
        return None

    def _has_ended(self, command: InFlight, typed: str | None) -> InFlight:
        if command.cmd is None:
            command = attrs.evolve(command, cmd=typed)
        self._ended[command.seq] = command
        return command

    def _note_down(self) -> None:
        """Write what has happened already: a disk that refuses cannot undo it, and is logged."""
        try:
            self._write(self.command)
        except StorageError as error:
            name = self._note.path.parent.name
            log.warning("note not written", terminal=name, error=str(error))

    def _write(self, command: InFlight | None) -> None:
        commands = [*self._found.values(), *self._ended.values()]
        if command is not None:
            commands.append(command)
        if self._displaced is not None:
            commands.append(self._numbered(self._displaced))
        self._owes_write = True
        self._note.write(
            {
                "commands": [each.note() for each in commands],
                "cwd": self.cwd,
                "next": self._next_seq,
            }
        )
        self._owes_write = False

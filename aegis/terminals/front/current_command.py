"""The current command of a terminal: its call, its number, and its note on disk.

Two stages: *submitted* (its text went to the shell) and *begun* (the shell reported the start). A
``seq`` is claimed with the note, before the first byte is typed; a submission that was refused or
incomplete gives it back, never having been shown. The note also names commands whose records are
on their way to the ledger, so that a crash in between finds them, and where the shell was last.

A submission may be *displaced*: the shell first reads one or more lines that were typed ahead of
it. The note lists the submission after the typed command, under the next number, because the daemon
may be killed after the shell has read it. That number is provisional and goes to the next typed
line, unless a caller was shown it: then the typed line takes a higher one, and its record is held
back until the submission has its own, because records are appended in order.

A restarted front finds commands in the note. Those of shells that have ended were lost with them
(``lost_with``). For the others the shell sends its notifications again, and each is applied once: a
notification that the ledger or this object already reflects changes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping

import attrs
import structlog

from aegis.clock import utc_now
from aegis.errors import StorageError
from aegis.journal.note import Note
from aegis.path_text import path_of_stored, stored_path
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front.calls import Call
from aegis.terminals.messages import CommandStarted, ShellEnded
from aegis.terminals.record import (
    NO_NUMBERS,
    SHELL_WRITER,
    Outcome,
    UnrecordedCommand,
    begun_by,
    commands_in,
    given_before,
    outcome_in,
)

log = structlog.get_logger()


@attrs.frozen
class Displaced:
    """A submission in the shell's input behind lines that were typed ahead of it.

    ``call`` is None if no caller waits for it any more. The ``seq`` of ``command`` counts only if
    the submission has timed out: then its caller was shown it.
    """

    command: UnrecordedCommand
    call: Call | None

    @property
    def number(self) -> int | None:
        """The number of its call."""
        return self.command.call

    @property
    def is_shown(self) -> bool:
        """Whether its caller knows its ``seq``."""
        return self.command.timed_out

    def numbered(self, seq: int, cwd: str | None, cursor: int) -> UnrecordedCommand:
        """Return the submission as the command ``seq``, as if it began now."""
        if self.is_shown:
            return self.command
        return attrs.evolve(self.command, seq=seq, cwd=cwd, raw_start=cursor)


class CurrentCommand:
    """The current command, if any.

    ``shell`` names the shell that gets it. ``cursor`` is the end of the output as that shell began
    or as the last command ended. ``cwd`` is the directory of the last prompt, if it is known.

    The first record of a shell that is not the first one says so. The note names the shell of the
    newest command that has ended, for a front that crashes meanwhile.
    """

    def __init__(self, note: Note, next_seq: int, cwd: str | None, root: str = "") -> None:
        self._note = note
        self._next_seq = next_seq
        self._found: dict[int, UnrecordedCommand] = {}
        self._ended: dict[int, UnrecordedCommand] = {}
        self._shown = NO_NUMBERS
        self._displaced: Displaced | None = None
        self._owes_sync = False
        self._owes_write = False
        self.command: UnrecordedCommand | None = None
        self.call: Call | None = None
        self.shell = ""
        self.cursor = 0
        self.cwd = cwd
        self._root = root
        self._is_removed = False
        self._known_shell: str | None = None
        self._last_ended = -1

    @classmethod
    def open(
        cls,
        note: Note,
        last: CommandRecord | None,
        given: int,
        cwd: str | None = None,
        root: str = "",
        *,
        is_new: bool = False,
    ) -> CurrentCommand:
        """Restore the state from the note; ``last`` is the newest record.

        ``cwd`` is the directory where the shell starts, for the note of an older version: its path
        may be older than a move of ``root``. If the terminal ``is_new``, it is the directory that
        its settings name: a prompt there is not noted.

        Numbers up to ``given`` are in use. Those above the newest record may have been in damaged
        lines. The noted command of such a number is recorded again.
        """
        last_seq = -1 if last is None else last.seq
        fields = note.load() or {}
        noted = commands_in(fields)
        place = fields.get("place")
        if isinstance(place, str):
            cwd = path_of_stored(place, root)
        elif not (is_new or isinstance(fields.get("cwd"), str)):
            cwd = None
        highest = max([given, *(command.seq for command in noted)])
        before = given_before(fields)
        if before - given > sum(each.seq > given for each in noted):
            name = note.path.parent.name
            log.warning("ledger lost records", terminal=name, ends=given, given=before)
        highest = max(highest, before)
        current = cls(note, highest + 1, cwd, root)
        lacking = sorted((each for each in noted if each.seq > last_seq), key=lambda each: each.seq)
        current._found = {each.seq: each for each in lacking}
        current._shown = frozenset(current._found) or NO_NUMBERS
        current._last_ended = last_seq
        current._known_shell = _known_shell(fields, noted, last_seq)
        return current

    @property
    def is_free(self) -> bool:
        """Whether no command is submitted or runs."""
        return self.command is None and self._displaced is None

    @property
    def submitted(self) -> Call | None:
        """The call whose command is with the shell, perhaps behind a line that was typed ahead."""
        return self.call or (None if self._displaced is None else self._displaced.call)

    def unrecorded(self) -> list[UnrecordedCommand]:
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
        """Note the command of ``call`` before it is sent to the shell. Raises ``StorageError``."""
        command = self._submission(call, moment_s)
        self._write(command)
        self._next_seq = command.seq + 1
        self.command, self.call = command, call

    def take_back(self, number: int | None) -> Call | None:
        """Free the ``seq`` of the submission ``number``, which did not run; return its call.

        None if no caller waits for it. A line that was typed before it stays the current command.
        The note on disk may still contain the submission until it is synced: check ``owes_sync``
        before a caller learns that it did not run. Not for a submission whose number was shown
        (``has_shown``).
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
        """Note that the shell began a command: the submitted one, or (``call`` None) a typed one.

        The facts that a caller was shown, if its time was up before the start, stay true.
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
            since = self._new_shell_since(news.shell)
            self.command = attrs.evolve(begun_by(news, seq), new_shell_since=since)
        self.note_down()

    def end(
        self, raw_start: int, typed: str | None
    ) -> tuple[UnrecordedCommand, Call | None] | None:
        """Note the end of the command that began at ``raw_start``; None if it is known already.

        ``typed`` is the text of a command that was not submitted. The note contains the command
        until it is ``recorded``.
        """
        command = self.command
        if command is not None and command.began_at == raw_start:
            return self._end_current(typed)
        return self._end_found(lambda each: each.began_at == raw_start, typed)

    def end_submitted(self, number: int) -> tuple[UnrecordedCommand, Call | None] | None:
        """Note that the submission ``number`` began no command; None if it is known already."""
        self._readmit(number)
        command, displaced = self.command, self._displaced
        if command is not None and is_submission(command, number):
            return self._end_current(None)
        if displaced is not None and displaced.number == number:
            return self._end_displaced(displaced)
        return self._end_found(lambda each: is_submission(each, number))

    def take_unread(self, shell: str) -> Call | None:
        """Return the call whose submission this shell had not read when it ended.

        The shell ran a line typed ahead instead. None also if the caller was already answered that
        its command runs next: then the submission is recorded.
        """
        unread, command = self._displaced, self.command
        runs_another = command is not None and command.began_at is not None
        if unread is None or shell != unread.command.shell or not runs_another:
            return None
        if unread.call is None or unread.call.is_late:
            return None
        return self.take_back(unread.number)

    def end_all(self, shell: str) -> list[tuple[UnrecordedCommand, Call | None]]:
        """Note the end of the shell; return its commands, in the order of numbers."""
        ended = []
        while (found := self._end_found(lambda each: each.shell == shell)) is not None:
            ended.append(found)
        if self.command is not None and self.command.shell == shell:
            ended.append(self._end_current(None))
        if self._displaced is not None and self._displaced.command.shell == shell:
            ended.append(self._end_displaced(self._displaced))
        return sorted(ended, key=lambda each: each[0].seq)

    def end_idle(self, news: ShellEnded, notice: str) -> UnrecordedCommand:
        """Note the end of a shell between two commands, as one that is over; ``notice`` is why."""
        assert news.loss is not None
        ended = UnrecordedCommand(
            seq=self._claim(),
            cmd=None,
            writer=SHELL_WRITER,
            cwd=self.cwd,
            started_at=news.finished_at,
            moment_s=news.moment_s,
            raw_start=news.loss.raw_start,
            shell=news.shell,
            notice=notice,
        )
        ended = self._has_ended(ended, None)
        if news.loss.replaced is None:
            self._known_shell = news.shell  # else it has shown no prompt, so nothing is gone
        return ended

    def lost_with(self, shells: Collection[str]) -> list[tuple[UnrecordedCommand, Call | None]]:
        """Return the commands of other shells than ``shells``, oldest first: they are lost."""
        gone = {each.shell for each in self._found.values()}
        gone |= {self.command.shell} if self.command is not None else set()
        gone |= {self._displaced.command.shell} if self._displaced is not None else set()
        lost = [each for shell in gone.difference(shells) for each in self.end_all(shell)]
        return sorted(lost, key=lambda each: each[0].seq)

    def resume(self) -> None:
        """Take the newest noted command as the current one, until the shell reports otherwise.

        If the newest is a submission, and a command before it may still run, that one is current
        and the submission is displaced.
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

    def _resume_displaced(self, submission: UnrecordedCommand) -> None:
        self._displaced = Displaced(submission, None)
        if not submission.timed_out and submission.seq == self._next_seq - 1:
            self._next_seq = submission.seq  # provisional: the next typed line takes it

    def settle_found(self, submitted: int | None) -> list[UnrecordedCommand]:
        """Settle the noted commands once the shell has reported all; it still has ``submitted``.

        A submission that is unknown to the shell never reached it. Return it if its number was
        shown, because it needs a record; and the commands whose end is unknown. The latter is
        possible only if more commands ended than the shell's actor keeps.
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

    def mark_timed_out(self) -> UnrecordedCommand:
        """Remove the caller, whose time is up, from the command. Raises ``StorageError``."""
        assert self.command is not None
        self.command = attrs.evolve(self.command, timed_out=True)
        return self.leave_running()

    def leave_running(self) -> UnrecordedCommand:
        """Remove the caller, who is answered now, from the command. Raises ``StorageError``.

        The note is written: it must contain all that the caller is shown.
        """
        assert self.command is not None
        self.call = None
        self._shown |= {self.command.seq}
        self._write(self.command)
        return self.command

    def leave_displaced(self, cursor: int) -> UnrecordedCommand:
        """Remove the caller, whose time is up, from the displaced submission; fix its number.

        The output so far, up to ``cursor``, belongs to the lines that were typed ahead of it.
        Raises ``StorageError``.
        """
        assert self._displaced is not None
        command = attrs.evolve(self._numbered(self._displaced), timed_out=True, raw_start=cursor)
        self._next_seq = max(self._next_seq, command.seq + 1)
        self._displaced = Displaced(command, None)
        self._shown |= {command.seq}
        self._write(self.command)
        return command

    def finished(self, seq: int, outcome: Outcome) -> None:
        """Set the outcome of the command ``seq``; the next note has it."""
        self._ended[seq] = attrs.evolve(self._ended[seq], outcome=outcome)

    def recovered(self, record: CommandRecord) -> None:
        """Note the record of a lost command, which is not written yet."""
        # If it is never written, the raw log has grown for the next incarnation, which must know
        # where the output of this command ended.
        self.finished(record.seq, outcome_in(record))
        self.note_down()

    def recorded(self, seq: int) -> None:
        """Remove the command ``seq`` from the note: its record is in the ledger."""
        self._ended.pop(seq, None)
        if seq in self._shown:
            self._shown = self._shown - {seq} or NO_NUMBERS

    def is_shown(self, seq: int) -> bool:
        """Whether a caller may know the number of this command, which has no record yet."""
        return seq in self._shown

    def moved(self, cwd: str | None) -> None:
        """Note the directory of the prompt; None if it was removed."""
        self._is_removed = cwd is None
        if cwd is not None and cwd != self.cwd:
            self.cwd = cwd
            self.note_down()

    @property
    def owes_sync(self) -> bool:
        """Whether the note on disk may still contain a submission that was taken back."""
        return self._owes_sync

    async def sync(self) -> None:
        """Sync the note, before its content is shown. Raises ``StorageError``."""
        self._shown = self._shown.union(each.seq for each in self.unrecorded()) or NO_NUMBERS
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
        """Close the note."""
        self._note.close()

    def _claim(self) -> int:
        self._next_seq += 1
        return self._next_seq - 1

    def _make_way(self) -> None:
        """Displace the submission: a command that was typed ahead of it runs first.

        That command takes the submission's number, unless a caller was shown it.
        """
        command = self.command
        if command is not None and command.began_at is None:
            self._displaced = Displaced(command, self.call)
            if not command.timed_out:
                self._next_seq = command.seq
            self.command = self.call = None

    def _readmit(self, number: int, *, began: bool = False) -> None:
        """Make the displaced submission ``number`` the current command.

        ``began``: the caller of this method writes the note at once.
        """
        displaced = self._displaced
        if displaced is None or displaced.number != number or self.command is not None:
            return
        command = self._numbered(displaced)
        self._next_seq = max(self._next_seq, command.seq + 1)
        self._displaced = None
        self.command, self.call = command, displaced.call
        if not began:
            self.note_down()

    def _numbered(self, displaced: Displaced) -> UnrecordedCommand:
        cwd = None if self._is_removed else self.cwd
        return displaced.numbered(self._next_seq, cwd, self.cursor)

    def _open(self) -> list[UnrecordedCommand]:
        """Return the commands with a number of their own that have not ended."""
        displaced = self._displaced
        shown = [displaced.command] if displaced is not None and displaced.is_shown else []
        return shown if self.command is None else [*shown, self.command]

    def _submission(self, call: Call, moment_s: float) -> UnrecordedCommand:
        return UnrecordedCommand(
            seq=self._next_seq,
            cmd=call.cmd,
            writer=call.writer,
            cwd=None if self._is_removed else self.cwd,
            started_at=utc_now(),
            moment_s=moment_s,
            raw_start=self.cursor,
            shell=self.shell,
            call=call.number,
            new_shell_since=self._new_shell_since(self.shell),
        )

    def shell_replaced(self) -> None:
        """Note that another program runs in place of the shell, without its variables."""
        self._known_shell = ""

    def _new_shell_since(self, shell: str) -> int | None:
        """Return the newest number of the earlier shells, if ``shell`` has ended no command yet."""
        is_known = self._known_shell in (None, shell)
        return None if is_known or self._last_ended < 0 else self._last_ended

    def _is_known(self, news: CommandStarted) -> bool:
        """Whether this command is known already, so that the notification is a repeated one."""
        command = self.command
        if command is not None and command.began_at == news.raw_start:
            self.command = attrs.evolve(command, moment_s=news.moment_s)
            return True
        # A kill takes raw bytes: where one of an earlier shell began, another one may begin again.
        start = (news.shell, news.raw_start)
        for each in self._found.values():
            if (each.shell, each.began_at) == start:
                self._found[each.seq] = attrs.evolve(each, moment_s=news.moment_s)
                return True
        return any((each.shell, each.began_at) == start for each in self._ended.values())

    def _end_current(self, typed: str | None) -> tuple[UnrecordedCommand, Call | None]:
        assert self.command is not None
        command, call = self.command, self.call
        self.command = self.call = None
        return self._has_ended(command, typed), call

    def _end_displaced(self, displaced: Displaced) -> tuple[UnrecordedCommand, Call | None]:
        command = self._numbered(displaced)
        self._next_seq = max(self._next_seq, command.seq + 1)
        self._displaced = None
        return self._has_ended(command, None), displaced.call

    def _end_found(
        self, fits: Callable[[UnrecordedCommand], bool], typed: str | None = None
    ) -> tuple[UnrecordedCommand, Call | None] | None:
        for command in self._found.values():
            if fits(command):
                del self._found[command.seq]
                return self._has_ended(command, typed), None
        return None

    def _has_ended(self, command: UnrecordedCommand, typed: str | None) -> UnrecordedCommand:
        if command.cmd is None:
            command = attrs.evolve(command, cmd=typed)
        self._ended[command.seq] = command
        self._last_ended = max(self._last_ended, command.seq)
        if command.notice is None or self._known_shell is not None:
            self._known_shell = command.shell
        return command

    def note_down(self) -> None:
        """Write the note after an event that cannot be undone; log a refusal of the disk."""
        try:
            self._write(self.command)
        except StorageError as error:
            name = self._note.path.parent.name
            log.warning("note not written", terminal=name, error=str(error))

    def _write(self, command: UnrecordedCommand | None) -> None:
        commands = [*self._found.values(), *self._ended.values()]
        if command is not None:
            commands.append(command)
        if self._displaced is not None:
            commands.append(self._numbered(self._displaced))
        self._owes_write = True
        self._note.write(
            {
                "commands": [each.note() for each in commands],
                "place": None if self.cwd is None else stored_path(self.cwd, self._root),
                "next": self._next_seq,
                "shell": self._known_shell,
            }
        )
        self._owes_write = False


def _known_shell(
    fields: Mapping[str, object], noted: Iterable[UnrecordedCommand], last_seq: int
) -> str | None:
    """Return the shell of the newest recorded command by a note; empty if it is not named."""
    recorded = [each for each in noted if each.seq <= last_seq]
    if recorded:
        return max(recorded, key=lambda each: each.seq).shell
    named = fields.get("shell")
    return named if isinstance(named, str) else None if last_seq < 0 else ""


def last_begun(commands: Iterable[UnrecordedCommand]) -> UnrecordedCommand | None:
    """Return the command that began last; if none has begun, the one with the highest number."""
    return max(
        commands,
        key=lambda each: (-1 if each.began_at is None else each.began_at, each.seq),
        default=None,
    )


def is_submission(command: UnrecordedCommand, number: int | None) -> bool:
    """Whether the command is the submission ``number``, which has not begun."""
    return command.began_at is None and command.call == number

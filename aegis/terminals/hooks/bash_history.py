"""The text typed into a bash, from the new entries of its history. Pure.

Bash runs a pasted text of several lines command by command. Its history gets an entry per command,
or per line, and leaves some out (HISTCONTROL, HISTIGNORE, ``set +o history``, ``history -d``). The
hook writes the new entries with the number of lines that bash has read. The text is known when
these account for each other:

- Every line read is in an entry: there are as many lines in the entries as were read.
- Or one command ran, and the shell asked for each of its lines with a prompt. ``cmdhist`` joins
  these with ``;``, and has left out none if the first is there.
- Or the keys that were sent are known, have as many lines, and contain every entry. Then they are
  the text.
"""

from __future__ import annotations

import re

import attrs

from aegis.terminals.typed import NOT_IN_HISTORY, NOT_WHOLE, TypedLine, TypedText, UnknownText

_HEADER = re.compile(r"([0-9]+) ([0-9]+) (-?[0-9]+) (-?[0-9]+) ([01])\n")
_JOINTS = re.compile(r"[\s;\\]+")
"""Text that ``cmdhist`` inserts between two lines, or removes."""


@attrs.frozen(kw_only=True)
class NewEntries:
    """The hook's report: the new entries, and the numbers of lines read and commands begun."""

    entries: list[str]
    lines: int
    commands: int


def typed_text(written: str, line: TypedLine) -> TypedText:
    """Return the typed text, by the report that the hook has ``written``."""
    new = _parse(written)
    if new is None:
        return UnknownText(NOT_IN_HISTORY)
    if new.commands == line.commands <= len(new.entries) <= new.lines and (
        _line_count(new.entries) == new.lines or _is_one_command(new, line)
    ):
        return "\n".join(new.entries)
    if line.keyed is not None and _covers(line.keyed, new):
        return line.keyed
    return UnknownText(NOT_WHOLE)


def _parse(written: str) -> NewEntries | None:
    """Parse the hook's report; None if an entry is missing."""
    header = _HEADER.match(written)
    if header is None:
        return None
    first, last, lines, commands, posix = map(int, header.groups())
    rest, entries = written[header.end() :].removesuffix("\n"), []
    for number in range(last, first - 1, -1):
        mark = f"{number}\t"
        # A line of the text itself may look like this, but rarely with what follows the mark.
        start = -1 if rest.startswith(mark) and number == first else rest.rfind(f"\n{mark}")
        while start >= 0 and not (posix or rest.startswith((" ", "*"), start + len(mark) + 1)):
            start = rest.rfind(f"\n{mark}", 0, start + len(mark))
        start += 1
        if start == 0 and not rest.startswith(mark):
            return None
        text = rest[start + len(mark) :]
        entries.append(text if posix else text[1:])  # a blank or a `*` before the text
        rest = rest[: max(start - 1, 0)]
    entries.reverse()
    return NewEntries(entries=entries, lines=lines, commands=commands) if entries else None


def _line_count(entries: list[str]) -> int:
    # A here-document's entry ends with a newline, which is no line of its own.
    return sum(entry.rstrip("\n").count("\n") + 1 for entry in entries)


def _is_one_command(new: NewEntries, line: TypedLine) -> bool:
    return new.commands == 1 and new.lines <= line.continuations + 1


def _covers(keyed: str, new: NewEntries) -> bool:
    """Return whether ``keyed`` has as many lines as were read, and every entry in order."""
    if keyed.count("\n") + 1 != new.lines:
        return False
    text, position = _JOINTS.sub("", keyed), 0
    for entry in new.entries:
        wanted = _JOINTS.sub("", entry)
        found = text.find(wanted, position)
        if found < 0:
            return False
        position = found + len(wanted)
    return True

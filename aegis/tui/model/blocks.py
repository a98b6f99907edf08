"""Finished commands as blocks, laid out in lines of a width. Pure.

A block has a header, the wrapped output, a footer with the exit code, and an empty line. Lines are
numbered from the top of the oldest block that is loaded; the output is split only when it is shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Literal

import attrs

from aegis.protocol.terminals import CommandRecord
from aegis.shown_text import escape_line, escape_text
from aegis.tui.model.times import clock, duration

Part = Literal["header", "output", "footer", "space"]

MAX_TEXT_CHARS = 24 * 1024 * 1024
"""Characters of output that are kept in memory; of older blocks only the head is shown then."""

MAX_BLOCKS = 10_000
MAX_STYLED_BYTES = 256 * 1024
"""Longer output is shown without its colours."""

MAX_STYLED = 200
"""Blocks whose styles are kept: those that were shown last."""

TAB_COLUMNS = 8


Runs = list[tuple[int, int, Any]]
"""The parts of a line of output that have a style: begin, end, and the style."""


@attrs.frozen
class PastLine:
    """One line of the past: a part of the block ``block``; ``text`` is plain.

    Of output, ``row`` is the line of the program, and ``begin`` the character of it that is first.
    """

    block: CommandBlock
    part: Part
    text: str
    row: int = 0
    begin: int = 0

    def pieces(self) -> list[tuple[str, Any]]:
        """Return the text in pieces with a style each; None: it has none."""
        found = (self.block.runs or {}).get(self.row)
        if not found:
            return [(self.text, None)]
        pieces, at = [], 0
        for begin, end, style in found:
            first = max(at, begin - self.begin)
            last = min(len(self.text), end - self.begin)
            if first < last:
                pieces += [(self.text[at:first], None), (self.text[first:last], style)]
                at = last
        return [(text, style) for text, style in (*pieces, (self.text[at:], None)) if text]


@attrs.define(eq=False)
class CommandBlock:
    """A finished command; ``output`` is escaped text, empty if it was dropped to save memory.

    ``command`` is shown, ``source`` is its text, which is copied and run again; empty: not known.

    ``raw`` are the offsets of its output in the terminal's raw output. ``runs`` are the styles of
    its lines, by their row; None: they were not read yet.
    """

    seq: int
    command: str
    writer: str
    at: str
    exit: int | None
    chip: str
    output: str
    copied: str
    source: str = ""
    raw: tuple[int, int] = (0, 0)
    runs: dict[int, Runs] | None = attrs.field(factory=dict)
    is_dropped: bool = False

    @property
    def is_good(self) -> bool:
        """Whether the command ended with exit code 0."""
        return self.exit == 0


def block_of(record: CommandRecord) -> CommandBlock:
    """Return the block of a finished command."""
    text = record.stdout
    if record.stderr:
        text = f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{record.stderr}"
    command = record.cmd if record.cmd is not None else f"({record.cmd_reason or 'not known'})"
    return CommandBlock(
        seq=record.seq,
        command=escape_line(command.replace("\n", " ⏎ ")),
        writer=escape_line(record.writer),
        at=clock(record.started_at),
        exit=record.exit,
        chip=chip_of(record),
        output=escape_text(text).rstrip("\n").expandtabs(TAB_COLUMNS),
        copied=record.stdout + record.stderr,
        source=record.cmd or "",
        raw=_raw_of(record),
        runs=None if _may_have_styles(record) else {},
    )


def _raw_of(record: CommandRecord) -> tuple[int, int]:
    return record.raw_start or 0, record.raw_end or 0


def _may_have_styles(record: CommandRecord) -> bool:
    """Return whether the output has escape sequences: then it is longer than its text."""
    begin, end = _raw_of(record)
    size = end - begin
    text = len(record.stdout.encode(errors="replace")) + record.stdout.count("\n")
    return not record.truncated and text < size <= MAX_STYLED_BYTES


def chip_of(record: CommandRecord) -> str:
    """Return the text of the footer: ``↳ exit 0 · 4.20s``."""
    if record.exit is not None:
        ending = f"exit {record.exit}"
    else:
        ending = {
            "shell_exit": "the shell exited",
            "killed_by_restart": "killed by a restart",
            "closed": "the terminal was closed",
            "lost": "lost",
        }.get(record.end or "", "exit unknown")
    words = [ending]
    if record.duration_s is not None:
        words.append(duration(record.duration_s))
    if record.truncated:
        words.append(f"{record.output_bytes:,} bytes, shortened")
    return f"↳ {' · '.join(words)}"


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of ``text``, each of at most ``width`` columns if it is ASCII."""
    return [line for line, _, _ in _placed(text, width)]


def _placed(text: str, width: int) -> list[tuple[str, int, int]]:
    """Return the same with the line of ``text`` that each is of, and where it begins in that."""
    lines: list[tuple[str, int, int]] = []
    for row, line in enumerate(text.split("\n")):
        if len(line) <= width and line.isascii():
            lines.append((line, row, 0))
            continue
        begin = 0
        for part in _wrapped_line(line, width):
            lines.append((part, row, begin))
            begin += len(part)
    return lines


def _wrapped_line(line: str, width: int) -> list[str]:
    if line.isascii():
        return [line[at : at + width] for at in range(0, len(line), width)]
    # A character may take two columns: half of the width always fits.
    parts, begin, used = [], 0, 0
    for at, char in enumerate(line):
        size = columns_of(char)
        if used + size > width:
            parts.append(line[begin:at])
            begin, used = at, 0
        used += size
    return [*parts, line[begin:]]


def columns_of(char: str) -> int:
    """Return the most columns that a character may take."""
    if char.isascii():
        return 1
    from unicodedata import combining, east_asian_width

    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" or ord(char) >= 0x1F000 else 1


class BlockHistory:
    """The blocks of one terminal, oldest first, and the lines that they take."""

    def __init__(self, width: int = 80) -> None:
        self._width = max(width, 4)
        self.blocks: list[CommandBlock] = []
        self._ends: list[int] = []
        self._chars = 0
        self._split: dict[int, list[tuple[str, int, int]]] = {}
        self._styled: list[CommandBlock] = []
        self.has_older = True
        """Whether the ledger may have blocks before the first one."""

    def __len__(self) -> int:
        """Return the number of lines."""
        return self._ends[-1] if self._ends else 0

    @property
    def width(self) -> int:
        """Columns of a line."""
        return self._width

    def resize(self, width: int) -> None:
        """Divide all blocks into lines of another width."""
        width = max(width, 4)
        if width != self._width:
            self._width = width
            self._lay_out()

    def append(self, blocks: Iterable[CommandBlock]) -> None:
        """Add newer blocks; blocks that are not newer than the last one are left out."""
        for block in blocks:
            if self.blocks and block.seq <= self.blocks[-1].seq:
                continue
            self.blocks.append(block)
            self._chars += len(block.output)
            self._ends.append(len(self) + self._height(block))
        self._limit()

    def prepend(self, blocks: Iterable[CommandBlock]) -> int:
        """Add older blocks; return by how many lines the others moved down."""
        before = len(self)
        first = self.blocks[0].seq if self.blocks else None
        older = [each for each in blocks if first is None or each.seq < first]
        room = MAX_BLOCKS - len(self.blocks)
        older = older[-room:] if room > 0 else []
        self._chars += sum(len(each.output) for each in older)
        self.blocks[:0] = older
        self._lay_out()
        moved = len(self) - before
        self._limit()
        if not older or self._chars > MAX_TEXT_CHARS:
            self.has_older = False
        return moved

    def line(self, number: int) -> PastLine:
        """Return the line ``number``."""
        index = bisect_right(self._ends, number)
        block = self.blocks[index]
        begin = self._ends[index - 1] if index else 0
        row = number - begin
        height = self._ends[index] - begin
        if row == 0:
            return PastLine(block, "header", block.command)
        if row == height - 1:
            return PastLine(block, "space", "")
        if row == height - 2:
            return PastLine(block, "footer", block.chip)
        return PastLine(block, "output", *self._lines(block)[row - 1])

    def set_runs(self, block: CommandBlock, runs: dict[int, Runs]) -> None:
        """Take the styles of a block; those of blocks shown long ago are dropped."""
        block.runs = runs
        if runs:
            self._styled.append(block)
        for old in self._styled[:-MAX_STYLED]:
            old.runs = None
        del self._styled[:-MAX_STYLED]

    def _lines(self, block: CommandBlock) -> list[tuple[str, int, int]]:
        lines = self._split.get(block.seq)
        if lines is None:
            if len(self._split) > 64:  # blocks of about one screen
                self._split.clear()
            lines = self._split[block.seq] = _placed(block.output, self._width)
        return lines

    def _height(self, block: CommandBlock) -> int:
        text = block.output
        if not text:
            return 3
        if len(text) <= self._width and "\n" not in text and text.isascii():
            return 4
        return 3 + len(wrapped(text, self._width))

    def _lay_out(self) -> None:
        self._split.clear()
        self._ends = list(accumulate(map(self._height, self.blocks)))

    def _limit(self) -> None:
        """Drop the oldest blocks and outputs beyond the limits."""
        is_changed = len(self.blocks) > MAX_BLOCKS
        if is_changed:
            gone = self.blocks[:-MAX_BLOCKS]
            self._chars -= sum(len(each.output) for each in gone)
            del self.blocks[:-MAX_BLOCKS]
        for block in self.blocks:
            if self._chars <= MAX_TEXT_CHARS:
                break
            if block.output and not block.is_dropped:
                self._chars -= len(block.output)
                block.output = block.copied = ""
                block.is_dropped = is_changed = True
        if is_changed:
            self._lay_out()

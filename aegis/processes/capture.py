"""The output of one command: raw bytes in, the bounded clean text of its record out.

Of a text longer than the limit the first and the last half stay, with one line between them that
tells how many bytes were left out. Counts are bytes of the clean text in UTF-8.
"""

from __future__ import annotations

import attrs

from aegis.processes.text import TextCleaner

DEFAULT_LIMIT = 65_536
MIN_LIMIT = 256

_NOTICE = "… {} bytes left out …\n"
_NOTICE_ROOM = 64
"""Bytes kept free for the notice: its words, a number of 20 digits and two line feeds."""

_LINE_SEARCH = 512
"""How far from a cut a line's end is looked for, in bytes."""


@attrs.frozen
class CapturedOutput:
    """``text`` is at most the limit long; ``total_bytes`` is its length before it was cut.

    ``errors`` is the text of standard error where that came apart, bounded in the same way;
    ``truncated``: one of the two was cut.
    """

    text: str
    total_bytes: int
    truncated: bool
    errors: str = ""


class BoundedText:
    """The first and the last part of a text of any length; holds at most twice the limit.

    ``limit`` is in bytes of UTF-8, 256 or more; ``ValueError`` otherwise.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        if limit < MIN_LIMIT:
            raise ValueError(f"a limit must be {MIN_LIMIT} bytes or more, not {limit}")
        self._limit = limit
        self._head_size = limit // 2
        self._tail_size = limit - self._head_size
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def write(self, text: str) -> None:
        """Append ``text``."""
        data = text.encode()
        self._total += len(data)
        room = self._head_size - len(self._head)
        if room:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._tail_size :]
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: -self._tail_size]

    def count(self, size: int) -> None:
        """So many bytes more belong to it, of a part that is left out anyway."""
        self._total += size

    def result(self, pending: str = "") -> CapturedOutput:
        """What was written, and ``pending`` after it as if it had been; nothing changes."""
        ending = pending.encode()
        total = self._total + len(ending)
        room = self._head_size - len(self._head)
        head = bytes(self._head) + ending[:room]
        tail = (bytes(self._tail) + ending[room:])[-self._tail_size :]
        if total <= self._limit:
            rest = total - len(head)
            return CapturedOutput((head + tail[len(tail) - rest :]).decode(), total, False)
        half = (self._limit - _NOTICE_ROOM) // 2
        first = _end_at_line(head[:half])
        last = _begin_at_line(tail[-half:])
        notice = _NOTICE.format(total - len(first) - len(last))
        if not first.endswith(b"\n"):
            notice = "\n" + notice
        return CapturedOutput(first.decode() + notice + last.decode(), total, True)

    def last_line(self) -> str:
        """The last line that is not blank, as far as its last ``_LINE_SEARCH`` bytes are kept."""
        for part in (self._tail, self._head):
            lines = bytes(part[-_LINE_SEARCH:]).decode(errors="ignore").rstrip().splitlines()
            if lines:
                return lines[-1]
        return ""


def truncate(output: CapturedOutput, limit: int) -> CapturedOutput:
    """``output`` as it would be with a lower limit, 256 bytes or more."""
    text = BoundedText(limit)
    text.write(output.text)
    text.count(max(0, output.total_bytes - len(output.text.encode())))
    return text.result()


class OutputCapture:
    """The clean text of a stretch of PTY output, fed with raw bytes."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._text = BoundedText(limit)
        self._cleaner = TextCleaner(self._text.write)
        self._errors: OutputCapture | None = None

    def feed(self, raw: bytes) -> None:
        """Add ``raw``, a chunk cut anywhere."""
        self._cleaner.feed(raw)

    def feed_errors(self, raw: bytes) -> None:
        """Add ``raw`` to standard error, which comes apart."""
        if self._errors is None:
            self._errors = OutputCapture(self._limit)
        self._errors.feed(raw)

    def snapshot(self) -> CapturedOutput:
        """The output so far with the unfinished line as it looks now; the capture goes on."""
        output = self._text.result(self._cleaner.pending)
        return output if self._errors is None else _with_errors(output, self._errors.snapshot())

    def newest_line(self) -> str:
        """The unfinished line as it looks now or, if that is blank, the last one that is not."""
        pending = self._cleaner.pending.rstrip()
        return pending or self._text.last_line()

    def result(self) -> CapturedOutput:
        """The whole output; nothing may be fed afterwards."""
        self._cleaner.finish()
        output = self._text.result()
        return output if self._errors is None else _with_errors(output, self._errors.result())


def _with_errors(output: CapturedOutput, errors: CapturedOutput) -> CapturedOutput:
    truncated = output.truncated or errors.truncated
    return attrs.evolve(output, errors=errors.text, truncated=truncated)


def without_last_lines(output: CapturedOutput, count: int = 1) -> CapturedOutput:
    """``output`` without the last ``count`` lines: what is behind a line feed counts as one."""
    if not count:
        return output
    kept = "".join(f"{line}\n" for line in output.text.split("\n")[:-count])
    dropped = len(output.text.encode()) - len(kept.encode())
    return attrs.evolve(output, text=kept, total_bytes=output.total_bytes - dropped)


def without_first_line_feed(output: CapturedOutput) -> CapturedOutput:
    """``output`` behind the line feed that zsh's line editor ends a line with when it let go."""
    if not output.text.startswith("\n"):
        return output
    return attrs.evolve(output, text=output.text[1:], total_bytes=output.total_bytes - 1)


def _end_at_line(data: bytes) -> bytes:
    """``data`` up to its last line's end if that is near, else without a torn character."""
    line_end = data.rfind(b"\n", len(data) - _LINE_SEARCH) + 1
    if line_end:
        return data[:line_end]
    return data.decode(errors="ignore").encode()


def _begin_at_line(data: bytes) -> bytes:
    """``data`` from its first line's beginning if that is near, else without a torn character."""
    line_end = data.find(b"\n", 0, _LINE_SEARCH) + 1
    if line_end and line_end < len(data):
        return data[line_end:]
    return data.decode(errors="ignore").encode()

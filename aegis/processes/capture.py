"""The output of one command: raw bytes in, the bounded clean text of its record out.

A text longer than the limit is truncated to its first and last half, with a line between them that
gives the number of omitted bytes. Counts are bytes of the clean text in UTF-8.
"""

from __future__ import annotations

import attrs

from aegis.processes.text import TextCleaner

DEFAULT_LIMIT = 65_536
MIN_LIMIT = 256

_NOTICE = "… {} bytes left out …\n"
_NOTICE_ROOM = 64
"""Bytes reserved for the notice: its words, a number of 20 digits and two line feeds."""

_LINE_SEARCH = 512
"""The range, in bytes, in which a line's end is searched for near a cut."""


@attrs.frozen
class CapturedOutput:
    """The text of a command's output, within the limit; ``total_bytes`` is its whole length.

    ``errors`` is the text of standard error where it was split, bounded in the same way.
    ``truncated``: one of the two was truncated.
    """

    text: str
    total_bytes: int
    truncated: bool
    errors: str = ""


class BoundedText:
    """The first and the last part of a text of any length; stores at most twice the limit.

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
        """Count ``size`` bytes of a part that is omitted anyway."""
        self._total += size

    def result(self, pending: str = "") -> CapturedOutput:
        """Return the text with ``pending`` at its end, which is not stored."""
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
        """Return the end of the last line that is not blank: at most ``_LINE_SEARCH`` bytes."""
        for part in (self._tail, self._head):
            lines = bytes(part[-_LINE_SEARCH:]).decode(errors="ignore").rstrip().splitlines()
            if lines:
                return lines[-1]
        return ""


def truncate(output: CapturedOutput, limit: int) -> CapturedOutput:
    """Return ``output`` truncated to a lower limit, 256 bytes or more."""
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
        """Add a chunk of raw bytes."""
        self._cleaner.feed(raw)

    def feed_errors(self, raw: bytes) -> None:
        """Add raw bytes of a split standard error."""
        if self._errors is None:
            self._errors = OutputCapture(self._limit)
        self._errors.feed(raw)

    def snapshot(self) -> CapturedOutput:
        """Return the output so far, with the unfinished line as it looks now."""
        output = self._text.result(self._cleaner.pending)
        return output if self._errors is None else _with_errors(output, self._errors.snapshot())

    def newest_line(self) -> str:
        """Return the unfinished line, or the last line that is not blank."""
        pending = self._cleaner.pending.rstrip()
        return pending or self._text.last_line()

    @property
    def ends_within_line(self) -> bool:
        """Whether text was printed after the last line feed, as a prompt is."""
        return bool(self._cleaner.pending.strip())

    def result(self) -> CapturedOutput:
        """End the capture and return the whole output."""
        self._cleaner.finish()
        output = self._text.result()
        return output if self._errors is None else _with_errors(output, self._errors.result())


def _with_errors(output: CapturedOutput, errors: CapturedOutput) -> CapturedOutput:
    truncated = output.truncated or errors.truncated
    return attrs.evolve(output, errors=errors.text, truncated=truncated)


def without_last_lines(output: CapturedOutput, count: int = 1) -> CapturedOutput:
    """Return ``output`` without its last ``count`` lines; text after the last LF counts as one."""
    if not count:
        return output
    kept = "".join(f"{line}\n" for line in output.text.split("\n")[:-count])
    dropped = len(output.text.encode()) - len(kept.encode())
    return attrs.evolve(output, text=kept, total_bytes=output.total_bytes - dropped)


def without_first_line_feed(output: CapturedOutput) -> CapturedOutput:
    """Return ``output`` without the line feed that zsh's line editor prints after a line."""
    if not output.text.startswith("\n"):
        return output
    return attrs.evolve(output, text=output.text[1:], total_bytes=output.total_bytes - 1)


def _end_at_line(data: bytes) -> bytes:
    """Truncate ``data`` to its last line's end if that is near, else to a whole character."""
    line_end = data.rfind(b"\n", len(data) - _LINE_SEARCH) + 1
    if line_end:
        return data[:line_end]
    return data.decode(errors="ignore").encode()


def _begin_at_line(data: bytes) -> bytes:
    """Drop the beginning of ``data`` up to a line's begin if that is near, else to a character."""
    line_end = data.find(b"\n", 0, _LINE_SEARCH) + 1
    if line_end and line_end < len(data):
        return data[line_end:]
    return data.decode(errors="ignore").encode()

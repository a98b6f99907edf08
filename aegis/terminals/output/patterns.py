"""Searching with clients' regular expressions, in bounded time.

The engine is RE2: it never backtracks, so a search takes at most the length of the text times the
size of the pattern. Its syntax is Python's without look-around and back-references; ``\\d``,
``\\w`` and ``\\b`` know ASCII only, the end of the text is ``\\z``.

    pattern = Pattern("(?m)^FAILED .*")     # InvalidRequest if it is none, too long or too large
    pattern.search("1 passed\\nFAILED x")    # (9, 17), in characters; None where nothing matches

A search usually takes microseconds, but some patterns of the permitted size take seconds on a long
text. Actors call ``await search(pattern, text)``, which never blocks the event loop.
"""

from __future__ import annotations

from typing import Any

import attrs
import re2
import trio
from trio.lowlevel import RunVar

from aegis.errors import InvalidRequest
from aegis.limits import in_thread
from aegis.names import shorten
from aegis.protocol.terminals import MAX_PATTERN_CHARS

MAX_TEXT_CHARS = 65_536
"""Characters of a text that are searched; the rest is ignored."""

MAX_PROGRAM = 2_000
"""Instructions that a pattern may become. ``.{0,100}`` is about 900 of them."""

QUICK_STEPS = 250_000
"""Instructions times bytes that take a few milliseconds at most."""

MAX_MEMORY_BYTES = 1024 * 1024
"""The engine's memory for one pattern. Its cache holds 128 patterns."""


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.never_capture = True  # only whole matches are used, and groups cost time
    options.log_errors = False
    return options


_OPTIONS = _options()


@attrs.frozen
class Pattern:
    """The regular expression ``source``, checked; equal to another of the same source."""

    source: str

    def __attrs_post_init__(self) -> None:
        if len(self.source) > MAX_PATTERN_CHARS:
            raise InvalidRequest(
                f"pattern is {len(self.source)} characters long: use at most {MAX_PATTERN_CHARS}"
            )
        if _size(_compiled(self.source)) > MAX_PROGRAM:
            raise _too_large()

    def search(self, text: str) -> tuple[int, int] | None:
        """Return begin and end of the leftmost match, None without one.

        Only the first ``MAX_TEXT_CHARS`` of ``text`` are searched.
        """
        found = _compiled(self.source).search(_encodable(text[:MAX_TEXT_CHARS]))
        return None if found is None else found.span()

    def is_quick(self, text: str) -> bool:
        """Return whether a search of ``text`` takes at most a few milliseconds."""
        length = len(text) if text.isascii() else 4 * len(text)
        length = min(length, 4 * MAX_TEXT_CHARS)
        return length * _size(_compiled(self.source)) <= QUICK_STEPS


def _compiled(source: str) -> Any:
    """Return the compiled pattern, from the engine's cache. Raises ``InvalidRequest``."""
    try:
        return re2.compile(source, _OPTIONS)
    except re2.error as error:
        if b"too large" in error.args[0]:
            raise _too_large() from None
        reason = error.args[0].decode("utf-8", "replace")
        raise InvalidRequest(
            f"pattern is not a regular expression that RE2 reads: {shorten(reason)}"
        ) from None
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"pattern holds U+{ord(source[error.start]):04X}, half of a surrogate pair: send the "
            "whole character"
        ) from None


def _size(compiled: Any) -> int:
    return max(int(compiled.programsize), int(compiled.reverseprogramsize))


def _too_large() -> InvalidRequest:
    return InvalidRequest(
        "pattern is too large: use smaller counts in {n,m}, or fewer classes of Unicode characters"
    )


def _encodable(text: str) -> str:
    """Return ``text`` with ``?`` for each lone surrogate; its length stays."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


MAX_THREADS = 2
"""Limit of searches in threads. Further ones wait, so that threads are left for file reads."""

_threads = RunVar[trio.CapacityLimiter]("pattern-threads")


async def search(pattern: Pattern, text: str) -> tuple[int, int] | None:
    """Return ``pattern.search(text)``; a slow search runs in a thread. Always a checkpoint."""
    if pattern.is_quick(text):
        await trio.lowlevel.checkpoint()
        return pattern.search(text)
    # The engine releases the GIL. Cancelled, this does not wait for the thread.
    return await in_thread(pattern.search, text, limiter=_limiter(), abandon_on_cancel=True)


def _limiter() -> trio.CapacityLimiter:
    try:
        return _threads.get()
    except LookupError:
        limiter = trio.CapacityLimiter(MAX_THREADS)
        _threads.set(limiter)
        return limiter


KEPT_CHARS = MAX_TEXT_CHARS // 2
"""Characters kept from earlier pieces. A match that begins before them is missed."""

MAX_PIECE_CHARS = MAX_TEXT_CHARS - KEPT_CHARS

MAX_MATCH_CHARS = 4_096
"""A longer match is truncated to its beginning."""


@attrs.frozen
class PatternMatch:
    """A match: its ``text``, and its end as an offset in the newest piece."""

    text: str
    end: int


class TextSearch:
    """A search in text that comes in pieces; in ``source`` ^ and $ match at lines.

    Each piece costs its own length and ``KEPT_CHARS``. Raises ``InvalidRequest`` for a pattern that
    RE2 does not read, or that is too large.
    """

    def __init__(self, source: str) -> None:
        Pattern(source)  # so that an error quotes the pattern as the client wrote it
        self._pattern = Pattern(f"(?m:{source})")
        self._kept = ""

    async def find(self, piece: str) -> PatternMatch | None:
        """Return the first match that ends in ``piece``, which has at most ``MAX_PIECE_CHARS``.

        Cancelled, it may be called with the same piece again.
        """
        window = self._kept + piece
        span = await search(self._pattern, window)
        if span is None:
            self._kept = _whole_lines(window)
            return None
        begin, end = span
        return PatternMatch(window[begin:end][:MAX_MATCH_CHARS], max(0, end - len(self._kept)))

    def reset(self) -> None:
        """Forget the earlier pieces: the next one does not follow them."""
        self._kept = ""


def _whole_lines(text: str) -> str:
    """Return the last ``KEPT_CHARS`` of ``text``, from the beginning of a line if they hold one."""
    if len(text) <= KEPT_CHARS:
        return text
    kept = text[-KEPT_CHARS:]
    line_end = kept.find("\n") + 1
    return kept[line_end:] if line_end < len(kept) else kept

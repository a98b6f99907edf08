"""Regular expressions of clients, searched in bounded time. Pure.

The engine is RE2: it never goes back in the text, so its time grows with the length of the text
times the size of the pattern, and never beyond. Its syntax is that of Python without look-around
and back-references; ``\\d``, ``\\w`` and ``\\b`` know ASCII only, the end of the text is ``\\z``.

    pattern = Pattern("(?m)^FAILED .*")     # InvalidRequest if it is none, too long or too large
    pattern.search("1 passed\\nFAILED x")    # (9, 17), in characters; None where nothing matches

A search takes microseconds as a rule. Some patterns of the permitted size take seconds on a long
text: actors call ``await searching.search(pattern, text)``, which never holds up the event loop.
"""

from __future__ import annotations

from typing import Any

import attrs
import re2

from aegis.errors import InvalidRequest
from aegis.names import shorten
from aegis.protocol.terminals import MAX_PATTERN_CHARS

MAX_TEXT_CHARS = 65_536
"""Characters of a text that are searched; what lies behind them is not looked at."""

MAX_PROGRAM = 2_000
"""Instructions that a pattern may become. ``.{0,100}`` is about 900 of them."""

QUICK_STEPS = 250_000
"""Instructions times bytes that take a few milliseconds at most."""

MAX_MEMORY_BYTES = 1024 * 1024
"""What the engine may keep for one pattern. Its cache holds 128 patterns, ours or others'."""


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.never_capture = True  # only the whole match is asked for, and groups cost time
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
        """Where the leftmost match begins and ends; None if there is none.

        Only the first ``MAX_TEXT_CHARS`` of ``text`` are searched.
        """
        found = _compiled(self.source).search(_encodable(text[:MAX_TEXT_CHARS]))
        return None if found is None else found.span()

    def is_quick(self, text: str) -> bool:
        """Whether a search of ``text`` takes a few milliseconds at most, whatever is in it."""
        length = len(text) if text.isascii() else 4 * len(text)
        length = min(length, 4 * MAX_TEXT_CHARS)
        return length * _size(_compiled(self.source)) <= QUICK_STEPS


def _compiled(source: str) -> Any:
    """From the engine's cache. Raises ``InvalidRequest``."""
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
    """``text`` with ``?`` for each lone surrogate, so that it keeps its length."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

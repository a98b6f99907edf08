"""The text of a typed command, as its shell reports it, or the reason why it is not known."""

from __future__ import annotations

from typing import TypeAlias

import attrs

NOT_IN_HISTORY = (
    "the shell's history does not show what was typed (HISTCONTROL, HISTIGNORE, `set +o history`, "
    "HISTSIZE, or a change of the history itself)"
)
NOT_WHOLE = (
    "the shell read more lines than its history shows, and the lines that are missing may have run"
)
NOT_SAID = "the shell did not report what was typed"
NOT_ENDED = "the shell reports what was typed when the command ends"
SHELL_ENDED = "the shell ended before it reported what was typed"
LOST = "the shell did not report the end of the command, nor what was typed"


@attrs.frozen
class UnknownText:
    """The text is not known. ``reason`` is a clause for people."""

    reason: str


TypedText: TypeAlias = str | UnknownText


@attrs.frozen(kw_only=True)
class TypedLine:
    """The facts about a typed line before the shell is asked for its text.

    ``commands`` counts the starts that the shell reported, ``continuations`` the secondary prompts
    before the first of them. ``keyed`` is the text that was sent, if the line was empty before and
    only characters and pastes were sent.
    """

    commands: int = 1
    continuations: int = 0
    keyed: str | None = None


ONE_LINE = TypedLine()
"""A line without any known facts."""


def decoded(data: bytes | None) -> TypedText:
    """Return the text of a file that a hook wrote; ``data`` is None if the file is missing."""
    return UnknownText(NOT_SAID) if data is None else data.decode(errors="replace")

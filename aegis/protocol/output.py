"""Output of terminals by cursor, and waiting for events on a terminal."""

from __future__ import annotations

from typing import Literal

import attrs

from actors.messages import Request
from aegis.protocol.command import MAX_TIMEOUT_S, at_most_chars, between, described
from aegis.protocol.terminals import DEFAULT_RUN_TIMEOUT_S, CommandRecord, OnTerminal, limit_of_time

DEFAULT_OUTPUT_BYTES = 65_536
MIN_OUTPUT_BYTES = 256
MAX_OUTPUT_BYTES = 1024 * 1024
MAX_CURSOR = 2**53
MAX_IDLE_S = 3_600.0

WaitReason = Literal["ended", "matched", "idle", "needs_input", "timeout", "closed"]


@attrs.frozen(kw_only=True)
class OutputChunk:
    """A piece of output. ``text`` begins at ``cursor`` and ends at ``next_cursor``.

    Pass ``next_cursor`` as the next call's ``cursor``. ``dropped`` is the number of bytes after the
    requested cursor that are no longer kept. ``running``: a command is running (with ``seq``: that
    command).
    """

    text: str
    cursor: int
    next_cursor: int
    dropped: int
    running: bool


@attrs.frozen(kw_only=True)
class ReadOutput(OnTerminal[OutputChunk]):
    """Read a terminal's output from a cursor on, also while a command runs.

    A cursor is a byte offset; pass ``next_cursor`` to continue. With ``seq`` you get the output of
    that command; at its end the text is empty and ``running`` is false. A line that is redrawn
    appears once for each of its states; the final one is in the ``stdout`` of the command's record.
    """

    seq: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a seq)"),
        metadata=described(
            "Only the output of this command; a cursor must be within it.", minimum=0
        ),
    )
    cursor: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described(
            "Where to begin; default: the start of the command seq, else of the running command, "
            "else of the last one.",
            "Default: the start of the newest command.",
            minimum=0,
        ),
    )
    max_bytes: int = attrs.field(
        default=DEFAULT_OUTPUT_BYTES,
        validator=between(MIN_OUTPUT_BYTES, MAX_OUTPUT_BYTES, "bytes"),
        metadata=described(
            "Maximum bytes of output to read, 256 to 1048576; for plain text an escape sequence "
            "that begins within them is read to its end.",
            "The most to read.",
            minimum=MIN_OUTPUT_BYTES,
            maximum=MAX_OUTPUT_BYTES,
        ),
    )
    wait_s: float = attrs.field(
        default=0.0,
        validator=between(0, MAX_TIMEOUT_S, "seconds"),
        metadata=described(
            "Seconds to wait for output if there is none yet; after that the text is empty.",
            "Seconds to wait for output if there is none.",
            minimum=0,
            maximum=MAX_TIMEOUT_S,
        ),
    )
    plain: bool = attrs.field(
        default=True,
        metadata=described(
            "Remove escape sequences; false: return the bytes unchanged, as text.",
            "false: with escape sequences.",
        ),
    )


@attrs.frozen(kw_only=True)
class WaitOutcome:
    """The reason why a wait ended. ``match`` is the text that matched.

    Continue at ``cursor``: the end of the match, or of the output that was searched. ``record`` is
    the record of the awaited command if it has ended, its record so far with ``needs_input``, else
    null.
    """

    reason: WaitReason
    match: str | None
    cursor: int
    record: CommandRecord | None


@attrs.frozen(kw_only=True)
class WaitTerminal(OnTerminal[WaitOutcome]):
    """Wait until a command ends, waits for input, prints ``pattern``, or is quiet for ``idle_s``.

    Waits for the command ``seq``, else for the running one. If none is running: for the next one
    with ``pattern`` or ``idle_s``; else the last record is returned.
    """

    seq: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a seq)"),
        metadata=described(
            "The command to wait for; if it has ended, its record is returned.",
            "That command.",
            minimum=0,
        ),
    )
    pattern: str | None = attrs.field(
        default=None,
        validator=at_most_chars(1_000),
        metadata=described(
            "Regular expression (RE2) searched for in the plain text from cursor on; ^ and $ match "
            "at the ends of a line.",
            "Regular expression (RE2); ^ and $ match at the ends of lines.",
        ),
    )
    idle_s: float | None = attrs.field(
        default=None,
        validator=between(0.05, MAX_IDLE_S, "seconds"),
        metadata=described(
            "Also end after this many seconds without output, 0.05 to 3600.",
            "Seconds without output.",
            minimum=0.05,
            maximum=MAX_IDLE_S,
        ),
    )
    cursor: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described(
            "Where to begin the search for pattern; default: the start of the awaited command, or "
            "now if there is none.",
            "Where the search begins; default: the start of the command.",
            minimum=0,
        ),
    )
    timeout: float = attrs.field(
        default=DEFAULT_RUN_TIMEOUT_S,
        validator=between(0.01, MAX_TIMEOUT_S, "seconds"),
        metadata=limit_of_time("Seconds until the call returns in any case.", "Seconds."),
    )


@attrs.frozen(kw_only=True)
class Progress:
    """The progress of a command: its newest line of output, or the reason why it is still queued.

    ``line`` is None while there is neither. ``cursor`` is the end of the output at that moment.
    """

    line: str | None
    cursor: int


@attrs.frozen(kw_only=True)
class FollowCommand(Request[Progress]):
    """Return the progress of a caller's command, once it differs from ``seen``.

    ``cmd`` and ``writer`` (a handle; None: ``human``) identify the command; without a ``cmd`` it is
    any that is running. Used inside the daemon only.
    """

    name: str
    cmd: str | None
    writer: str | None
    seen: Progress | None = None

"""Output of terminals by cursor, and waiting for what happens on one."""

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
    """A stretch of output. ``cursor`` is where ``text`` begins, ``next_cursor`` where it ends.

    Read on from ``next_cursor``. ``dropped`` is how many bytes behind the cursor that was asked for
    are no longer kept. ``running``: a command runs now; of a call with ``seq``: that one.
    """

    text: str
    cursor: int
    next_cursor: int
    dropped: int
    running: bool


@attrs.frozen(kw_only=True)
class ReadOutput(OnTerminal[OutputChunk]):
    """Read what a terminal printed, also while a command runs, from a cursor on.

    A cursor is a byte offset since the terminal's first spawn; pass ``next_cursor`` to read on.
    With ``wait_s`` the call waits until there is something new. Texts of calls in a row can be put
    together. A line that is redrawn appears once for each of its states; a finished command's
    ``stdout`` has the final one, and ``aegis_term_screen`` shows full-screen programs. With ``seq``
    you get what that command printed and nothing behind it; at its end the text is empty, and
    ``running`` false. Works for a closed terminal too, as long as it was not purged.
    """

    seq: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a seq)"),
        metadata=described(
            "Only what this command printed; a cursor must lie within that.", minimum=0
        ),
    )
    cursor: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described(
            "Where to begin; default: where the command seq, or that which runs, or else the last "
            "one, began.",
            minimum=0,
        ),
    )
    max_bytes: int = attrs.field(
        default=DEFAULT_OUTPUT_BYTES,
        validator=between(MIN_OUTPUT_BYTES, MAX_OUTPUT_BYTES, "bytes"),
        metadata=described(
            "How many bytes of output to read at most, 256 to 1048576; for plain text an escape "
            "sequence that begins within them is read to its end.",
            minimum=MIN_OUTPUT_BYTES,
            maximum=MAX_OUTPUT_BYTES,
        ),
    )
    wait_s: float = attrs.field(
        default=0.0,
        validator=between(0, MAX_TIMEOUT_S, "seconds"),
        metadata=described(
            "Seconds to wait for output if there is none yet; then the text is empty.",
            minimum=0,
            maximum=MAX_TIMEOUT_S,
        ),
    )
    plain: bool = attrs.field(
        default=True,
        metadata=described("Without escape sequences; false: the bytes as they are, as text."),
    )


@attrs.frozen(kw_only=True)
class WaitOutcome:
    """Why a wait ended. ``match`` is the text that matched.

    ``cursor`` is where to read on: behind the match, or up to where the output was looked at.
    ``record`` is that of the command waited for once it has ended; with ``needs_input`` it is the
    record so far; else null.
    """

    reason: WaitReason
    match: str | None
    cursor: int
    record: CommandRecord | None


@attrs.frozen(kw_only=True)
class WaitTerminal(OnTerminal[WaitOutcome]):
    """Wait until something happens on a terminal: a command ends, text appears, output is quiet.

    Waits for the command ``seq``, else for the one that runs; if none runs and neither ``pattern``
    nor ``idle_s`` is given, the last record is the answer, else the next command that begins is
    waited for. Whatever happens first ends the wait: the command's end, ``pattern`` in the output,
    ``idle_s`` without output, a command that waits for input, the end of the terminal, the timeout.
    """

    seq: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a seq)"),
        metadata=described("The command to wait for; one that has ended answers.", minimum=0),
    )
    pattern: str | None = attrs.field(
        default=None,
        validator=at_most_chars(1_000),
        metadata=described(
            "Regular expression (RE2) looked for in the plain text from cursor on; ^ and $ are the "
            "bounds of a line."
        ),
    )
    idle_s: float | None = attrs.field(
        default=None,
        validator=between(0.05, MAX_IDLE_S, "seconds"),
        metadata=described(
            "Also end when nothing was printed for so many seconds, 0.05 to 3600.",
            "Also end when nothing was printed for so many seconds.",
            minimum=0.05,
            maximum=MAX_IDLE_S,
        ),
    )
    cursor: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described(
            "Where to begin to look for pattern; default: where the command waited for began, or "
            "now if there is none.",
            minimum=0,
        ),
    )
    timeout: float = attrs.field(
        default=DEFAULT_RUN_TIMEOUT_S,
        validator=between(0.01, MAX_TIMEOUT_S, "seconds"),
        metadata=limit_of_time("Seconds after which to answer in any case."),
    )


@attrs.frozen(kw_only=True)
class Progress:
    """How a command gets on: its newest line of output, or why it was not typed yet.

    ``line`` is None while there is nothing to say. ``cursor``: where output stood.
    """

    line: str | None
    cursor: int


@attrs.frozen(kw_only=True)
class FollowCommand(Request[Progress]):
    """Say how the command of a caller gets on, once there is more to say than ``seen``.

    ``cmd`` and ``writer`` (a handle; None: ``human``) tell its command from others'; without a
    ``cmd`` it is any that runs. Inside the daemon only: for whoever shows progress to the caller.
    """

    name: str
    cmd: str | None
    writer: str | None
    seen: Progress | None = None

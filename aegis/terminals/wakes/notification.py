"""The message that wakes a subscriber of a terminal when a command has finished on it.

Its header line (sender and time) is rendered by the inbox. No line holds control characters, line
separators or bidirectional overrides: a command's output must not rewrite the message around it.
"""

from __future__ import annotations

import re

import attrs

from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import name_key
from aegis.protocol.terminals import CommandRecord
from aegis.protocol.wakes import wake_id as wake_id
from aegis.terminals.output.patterns import MAX_TEXT_CHARS
from aegis.terminals.record import SHELL_WRITER, handle_of

STDOUT_LINES = 8
STDERR_LINES = 4
MAX_LINE_CHARS = 200
MAX_COMMAND_CHARS = 200
MAX_NOTICE_CHARS = 1000

_TAB_STOP = 8
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


@attrs.frozen(kw_only=True)
class RecordNotification:
    """The notification of the record ``seq`` by ``writer``, for all other subscribers.

    ``cmd`` and ``failed`` are for filters. ``cmd`` is None if it is unknown, or too long to be
    searched.
    """

    seq: int
    writer: str
    body: str
    timestamp: str
    cmd: str | None
    failed: bool

    def is_for(self, handle: str) -> bool:
        """Return whether ``handle`` gets the wake: its own commands do not wake it."""
        return name_key(handle) != name_key(self.writer)


def wake_of(record: CommandRecord) -> RecordNotification:
    """Return the wake of a finished command."""
    return RecordNotification(
        seq=record.seq,
        writer=handle_of(record.writer),
        body=wake_body(record),
        timestamp=record.finished_at or record.started_at,
        cmd=None if len(record.cmd or "") > MAX_TEXT_CHARS else record.cmd,
        failed=record.exit != 0 or record.writer == SHELL_WRITER,
    )


def wake_of_deleted(first: int, last: int, timestamp: str) -> RecordNotification:
    """Return the wake for records that were deleted before a subscriber was notified of them."""
    what = f"record {last} was" if first == last else f"records {first} to {last} were"
    return RecordNotification(
        seq=last,
        writer="",
        body=f"{what} deleted before this message: old records had no more space (archive_bytes)",
        timestamp=timestamp,
        cmd=None,  # they may have been of any kind: the wake passes all filters
        failed=True,
    )


def deliver_message(
    wake: RecordNotification,
    terminal: str,
    life: str,
    handle: str,
    after: int | None = None,
    *,
    defer_sync: bool = False,
) -> Deliver:
    """Return the message that delivers ``wake`` to the inbox of ``handle``; equal at each try.

    ``after`` is the number of the unconfirmed wake that was sent before it.
    """
    return Deliver(
        handle=handle,
        id=wake_id(terminal, life, wake.seq, handle),
        sender=wake_sender(terminal),
        body=wake.body,
        timestamp=wake.timestamp,
        after=None if after is None else wake_id(terminal, life, after, handle),
        defer_sync=defer_sync,
    )


def wake_sender(terminal: str) -> str:
    """Return the sender of a terminal's messages: ``term:<name>``."""
    return f"term:{terminal}"


def wake_body(record: CommandRecord) -> str:
    """Return the message's body: command, outcome, the last lines of the output."""
    if record.writer == SHELL_WRITER:
        first = _shown(record.cmd_reason or "the shell ended", MAX_NOTICE_CHARS)
    else:
        first = f"$ {_command(record)} · run by {record.writer}"
    lines = [first, _outcome(record)]
    if record.new_shell_since is not None:
        lines[-1] += f" · new shell since seq {record.new_shell_since}"
    if record.stdout.strip():
        lines += ["──", *_last_lines(record.stdout, STDOUT_LINES)]
    if record.stderr.strip():
        lines += ["── stderr ──", *_last_lines(record.stderr, STDERR_LINES)]
    return "\n".join(lines)


def _outcome(record: CommandRecord) -> str:
    parts = [f"exit {'?' if record.exit is None else record.exit}"]
    if record.duration_s is not None:
        parts.append(f"{record.duration_s:.2f}s")
    if record.killed_by_restart:
        parts.append("killed by restart")
    if record.timed_out:
        parts.append("timed out")
    return " · ".join(parts)


def _command(record: CommandRecord) -> str:
    """Return the command's first line, with the number of further lines."""
    if record.cmd is None:
        return "?" if record.cmd_reason is None else f"? ({record.cmd_reason})"
    first, *others = record.cmd.strip("\r\n").split("\n")
    more = f" …(+{len(others)} line{'s' if len(others) > 1 else ''})" if others else ""
    return _shown(first, MAX_COMMAND_CHARS - len(more)) + more


def _last_lines(text: str, count: int) -> list[str]:
    lines = text.removesuffix("\n").rsplit("\n", count)[-count:]
    return [_shown(line, MAX_LINE_CHARS) for line in lines]


def _shown(line: str, limit: int) -> str:
    """Return ``line`` as plain characters, truncated to ``limit`` with ``…`` as the last."""
    line = _UNSAFE.sub(" ", line.expandtabs(_TAB_STOP))
    return line if len(line) <= limit else line[: limit - 1] + "…"

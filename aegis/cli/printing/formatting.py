"""Text for people and for scripts: escaping, tables, records, JSON. Standard library only.

A program's output, a title or a name may contain escape sequences, so all of them are escaped
before they are printed.
"""

from __future__ import annotations

import json
import re
import sys

from aegis.program import PROGRAM, program_word
from aegis.shown_text import replaced

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

_SPACES = "\u00a0\u1680\u202f\u205f" + "".join(map(chr, range(0x2000, 0x200B)))


MIN_COLUMNS = 40
"""The narrowest window that lines are cut for."""

MIN_CELL = 6
"""The columns that are left of a cell that is cut."""

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"

_COLOURS = {
    **dict.fromkeys(("running", "up", "working", "completed", "held", "ok"), GREEN),
    **dict.fromkeys(("failed", "error", "lost", "down", "problem"), RED),
    **dict.fromkeys(("blocked", "pending", "waiting", "open", "warning"), YELLOW),
}
"""The colours of the states that tables show without a sign."""

_STATES = ("state", "status")
"""The heads of the columns with states."""


def escaped(text: str) -> str:
    """Escape ``text`` of several lines for printing.

    Characters that a window obeys, that change the direction of writing, or that nobody sees become
    ``\\x1b``, ``\\u202e`` and the like; tab and line feed stay.
    """
    return replaced(text, "\n\t", _escape)


def escaped_line(text: str) -> str:
    """Escape ``text`` for printing on one line: tab and line feed are escaped too."""
    return replaced(text, "", _escape)


def _escape(character: str) -> str:
    # A window shows the symbols of its own font, and spaces of any width.
    is_private = "\ue000" <= character <= "\uf8ff" or character >= "\U000f0000"
    if is_private or character in _SPACES:
        return character
    return character.encode("unicode_escape").decode("ascii")


def cell(value: object) -> str:
    """Return the cell of a table: ``-`` for None and for an empty value."""
    if value is None or value in ("", []):
        return "-"
    if isinstance(value, list):
        return escaped_line(", ".join(map(str, value)))
    return escaped_line(str(value))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, is_plain: bool = False) -> str:
    """Return ``rows`` in aligned columns under ``head``; no line ends in blanks.

    For a window, wide cells are cut until the lines fit, the first column last: it has the names.
    The head and states are coloured. ``is_plain``: neither is done.
    """
    shown = [list(head), *([cell(value) for value in row] for row in rows)]
    widths = [max(map(columns, column)) for column in zip(*shown, strict=True)]
    window = None if is_plain else _window_columns()
    if window is not None:
        _narrow(widths, window)
    has_colours = not is_plain and colours_of(sys.stdout)
    lines = []
    for at, row in enumerate(shown):
        line = ""
        for name, value, width in zip(head, row, widths, strict=True):
            text = _truncated(value, width)
            blanks = " " * (width - columns(text) + 2)
            if has_colours:
                states = _COLOURS if name in _STATES else {}
                text = paint(text, BOLD if at == 0 else states.get(value, ""))
            line += text + blanks
        lines.append(line.rstrip())
    return "\n".join(lines)


def _narrow(widths: list[int], window: int) -> None:
    """Make the widest columns narrower until their line fits into ``window``."""
    while sum(widths) + 2 * (len(widths) - 1) > window:
        at = max(range(len(widths)), key=lambda each: (each > 0, widths[each]))
        if widths[at] <= MIN_CELL:
            at = 0
        if widths[at] <= MIN_CELL:
            return
        widths[at] -= 1


def colours_of(stream: Any) -> bool:
    """Return whether to colour text on ``stream`` (no-color.org, bixense.com/clicolors)."""
    import os

    variables = os.environ
    if variables.get("NO_COLOR"):
        return False
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        if variables.get(name, "0") not in ("", "0"):
            return True
    if variables.get("CLICOLOR") == "0" or variables.get("TERM", "dumb") == "dumb":
        return False
    return bool(stream.isatty())


def paint(text: str, colour: str, *, stream: Any = None) -> str:
    """Return ``text``, in ``colour`` if ``stream`` (default: standard output) shows colours."""
    if not colour or not text or not colours_of(stream or sys.stdout):
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"


def columns(text: str) -> int:
    """Return the columns that a line takes in a terminal; a sign such as 🟢 takes two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        2 if east_asian_width(each) in "WF" else 0 if combining(each) else 1 for each in text
    )


def _window_columns() -> int | None:
    """Return the width of the window that standard output goes to; None if it is no window."""
    import os

    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, MIN_COLUMNS)
    except (OSError, ValueError):
        return None


def _truncated(text: str, width: int) -> str:
    """Cut ``text`` to ``width`` columns; of a path the end is kept."""
    if columns(text) <= width:
        return text
    is_path = text.startswith("/")
    while columns(text) >= width:
        text = text[1:] if is_path else text[:-1]
    return f"…{text}" if is_path else f"{text}…"


def print_lines(text: str) -> None:
    """Print escaped text with a line feed at its end; print nothing if it is empty."""
    if text:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def print_json(document: Mapping[str, Any]) -> None:
    """Print ``document`` as JSON in ASCII."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def print_json_line(document: Mapping[str, Any]) -> None:
    """Print ``document`` as one line of JSON in ASCII: one of many, as they come."""
    sys.stdout.write(json.dumps(document) + "\n")


def print_error(sentence: str, code: str) -> None:
    """Print a failure as one line of JSON; the shape is the same for every verb."""
    print_json_line({"error": {"code": code, "message": sentence}})


def print_notice(text: str) -> None:
    """Print one line for people on standard error; the commands in it work as they are printed."""
    try:  # noqa: SIM105 -- contextlib takes long to import
        sys.stdout.flush()  # where both go to one file, what was printed before comes first
    except RuntimeError:
        pass  # a signal came in the middle of a write, and its handler prints this
    line = escaped_line(as_typed(text))
    head = f"{PROGRAM}:"
    if line.startswith(head):
        line = paint(head, RED, stream=sys.stderr) + line.removeprefix(head)
    elif line.startswith("↳"):
        line = paint(line, _colour_of_end(line), stream=sys.stderr)
    sys.stderr.write(f"{line}\n")


def _colour_of_end(line: str) -> str:
    """Return the colour of the line with the end of a command, ``↳ exit 0 · 4.20s``."""
    if any(each in line for each in ("timed out", "waits for input", "may wait for input")):
        return YELLOW
    if not line.startswith("↳ exit "):
        return DIM
    return GREEN if line.startswith("↳ exit 0") else RED


def as_typed(text: str) -> str:
    """Replace ``aegis-actors`` in hints by this program's path, where it is not on the PATH.

    Text in quotes is a user's own and is kept.
    """
    if f"{PROGRAM} " not in text or (word := program_word()) == PROGRAM:
        return text
    return re.sub(rf"(?<![\w/.'\"-]){PROGRAM}(?= [a-z-])", lambda _: word, text)


def duration(seconds: float) -> str:
    """Return a length of time for people: ``4.20s``, ``2m 5s``, ``3h 0m``, ``12d 1h``."""
    if seconds < 60:
        return f"{seconds:.2f}s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes}m {int(seconds) % 60}s"
    hours = minutes // 60
    return f"{hours}h {minutes % 60}m" if hours < 24 else f"{hours // 24}d {hours % 24}h"


def shown_state(info: Mapping[str, Any]) -> str:
    """Return the state of a terminal: ``running``, or ``typing: human, 40 s``."""
    typing = info.get("typing")
    if info["state"] != "idle" or typing is None:
        return str(info["state"])
    from datetime import UTC, datetime

    begun = datetime.fromisoformat(typing["since"])
    seconds = max(0, round((datetime.now(UTC) - begun).total_seconds()))
    return f"typing: {typing['writer']}, {seconds} s"


EXIT_UNKNOWN = 125
"""Exit code of ``term run`` and its like when the command's exit code is not known."""


def exit_code_of(record: Mapping[str, Any]) -> int:
    """Return the exit code of a command, modulo 256; 125 if it is not known."""
    return EXIT_UNKNOWN if record["exit"] is None else int(record["exit"]) & 0xFF


def status_line(record: Mapping[str, Any]) -> str:
    """Return the last line of a record: ``↳ exit 0 · 4.20s``."""
    known = record["exit"] is not None
    parts = [f"exit {record['exit']}" if known else "exit ?"]
    if record["needs_input"] is not None:
        parts = ["waits for input"]
    elif record.get("may_need_input") is not None:
        parts = ["may wait for input"]
    if record["duration_s"] is not None:
        parts.append(f"{record['duration_s']:.2f}s")
    if record["killed_by_restart"]:
        parts.append("killed by restart")
    if record["timed_out"]:
        parts.append("timed out")
    if record.get("new_shell_since") is not None:
        parts.append(f"new shell since seq {record['new_shell_since']}")
    return f"↳ {' · '.join(parts)}"


def record_block(record: Mapping[str, Any]) -> str:
    """Return a whole record: its header, output and status line."""
    command = f"$ {'?' if record['cmd'] is None else record['cmd']}"
    if record["writer"] == "shell":
        command = record["cmd_reason"]
    header = f"#{record['seq']} {command} · {record['writer']} · {record['started_at']}"
    parts = [paint(escaped_line(header), BOLD)]
    parts += [escaped(text.removesuffix("\n")) for text in _outputs(record)]
    end = status_line(record)
    return "\n".join([*parts, paint(end, _colour_of_end(end))])


def _outputs(record: Mapping[str, Any]) -> list[str]:
    stderr = ["── stderr ──", record["stderr"]] if record["stderr"] else []
    return ([record["stdout"]] if record["stdout"] else []) + stderr


def tree_rows(node: Mapping[str, Any]) -> list[list[object]]:
    """Return the supervision tree as rows of a table; branches are drawn in the first column."""
    return _tree_rows(node, "", "")


def _tree_rows(node: Mapping[str, Any], branch: str, indent: str) -> list[list[object]]:
    rows: list[list[object]] = [
        [
            f"{branch}{node['name']}",
            node["kind"],
            node["state"],
            node["mailbox"],
            node["restarts"],
            duration(node["uptime_s"]),
        ]
    ]
    *firsts, last = node["children"] or [None]
    for child in firsts:
        rows += _tree_rows(child, f"{indent}├─ ", f"{indent}│  ")
    if last is not None:
        rows += _tree_rows(last, f"{indent}└─ ", f"{indent}   ")
    return rows

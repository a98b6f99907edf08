"""The screen of a terminal: ``term screen``."""

from __future__ import annotations

from aegis.cli.grammar.verb import Daemon, argument, verb
from aegis.cli.printing.show import escaped_line, print_lines, say

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@verb(argument("name"))
def screen(daemon: Daemon, name: str) -> None:
    """Show the screen of the terminal NAME.

    Its lines as a person in front of it would see them now; size and cursor on standard error.
    """
    reply = daemon.call("term_screen", name=name)
    daemon.show(reply, lambda: _show(reply))


def _show(reply: Mapping[str, Any]) -> None:
    print_lines("".join(f"{escaped_line(line)}\n" for line in reply["lines"]))
    say(screen_chip(reply))


def screen_chip(screen: Mapping[str, Any]) -> str:
    """What is to be said of a screen beside its lines: ``↳ 80x24 · cursor 3,1 · vim``.

    The cursor's row and column are from 1, as people count.
    """
    cursor = screen["cursor"]
    hidden = "" if cursor["visible"] else " (hidden)"
    parts = [
        f"{screen['cols']}x{screen['rows']}",
        f"cursor {cursor['row'] + 1},{cursor['col'] + 1}{hidden}",
        *([screen["title"]] if screen["title"] else []),
        *(["alternate screen"] if screen["alternate"] else []),
        *(["partial"] if screen["partial"] else []),
    ]
    return f"↳ {' · '.join(parts)}"

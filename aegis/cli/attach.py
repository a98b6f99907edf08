"""A terminal as if one sat in front of it: ``term attach``."""

from __future__ import annotations

import os
import sys

from aegis.cli.gc_pause import gc_paused
from aegis.cli.grammar.keys import DEFAULT_DETACH_KEYS, parse_detach_keys
from aegis.cli.grammar.verb import Daemon, argument, flag, live_verb, option
from aegis.cli.printing.failures import UsageError
from aegis.path_text import text_of_path

_COOKIE = "AEGIS_TERMINAL"


@live_verb(
    flag("--read-only", help="Only look: type nothing, leave its size alone."),
    flag("--no-resize", help="Do not give it the size of your window."),
    option(
        "--detach-keys",
        metavar="KEYS",
        default=DEFAULT_DETACH_KEYS,
        show_default=True,
        help="The keys that leave it, with commas between; the first like ctrl-a.",
    ),
    argument("name"),
)
def attach(daemon: Daemon, name: str, read_only: bool, no_resize: bool, detach_keys: str) -> int:
    r"""Sit in front of the terminal NAME.

    It shows in your window, and what you press is typed there. Leave with Ctrl-\ and then d: the
    terminal goes on. Others may be attached as well: everybody sees and may type the same, and it
    has the size of whoever came or resized last.
    """
    try:
        keys = parse_detach_keys(detach_keys)
    except ValueError as error:
        raise UsageError(f"Invalid value for --detach-keys: {error}") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "attach needs a terminal as its standard input and output; elsewhere use term output "
            "--follow and term keys"
        )
    if (
        os.environ.get(_COOKIE, "")
        .lower()
        .startswith(f"{text_of_path(daemon.root)}/{name}/".lower())
    ):
        raise UsageError(f"this is the terminal {name} already: it would show itself")
    # Imported last: it brings Trio and the WebSocket, which no one-shot verb needs.
    with gc_paused():
        from aegis.cli.live.attaching import run_attach

    return run_attach(daemon, name, keys, types=not read_only, resizes=not (read_only or no_resize))

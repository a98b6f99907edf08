"""The verb ``term attach``: a terminal shown in your own window."""

from __future__ import annotations

import os
import sys

from aegis.cli.gc_pause import gc_paused
from aegis.cli.grammar.keys import DEFAULT_DETACH_KEYS, parse_detach_keys
from aegis.cli.grammar.verb import TargetDaemon, argument, flag, live_verb, option
from aegis.cli.printing.failures import UsageError
from aegis.path_text import text_of_path

_COOKIE = "AEGIS_TERMINAL"


@live_verb(
    flag("--read-only", help="Only watch: type nothing, do not resize."),
    flag("--no-resize", help="Do not resize the terminal to your window."),
    option(
        "--detach-keys",
        metavar="KEYS",
        default=DEFAULT_DETACH_KEYS,
        show_default=True,
        help="Keys that detach, separated by commas; the first is like ctrl-a.",
    ),
    argument("name"),
)
def attach(
    daemon: TargetDaemon, name: str, read_only: bool, no_resize: bool, detach_keys: str
) -> int:
    r"""Show the terminal NAME in your window, and type into it.

    Every key goes to the terminal, Ctrl-C too. Press Ctrl-\ and then d to detach; the terminal
    keeps running. Several people can attach to one terminal: all see the same and all can type, and
    the terminal has the size of the window that attached or resized last.
    """
    try:
        keys = parse_detach_keys(detach_keys)
    except ValueError as error:
        raise UsageError(f"Invalid value for --detach-keys: {error}") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "standard input and output must be a terminal; without one, use term output --follow "
            "and term keys"
        )
    if (
        os.environ.get(_COOKIE, "")
        .lower()
        .startswith(f"{text_of_path(daemon.root)}/{name}/".lower())
    ):
        raise UsageError(f"this window is the terminal {name} itself: attach from another window")
    # Imported late: it loads Trio and the WebSocket, which no one-shot verb needs.
    with gc_paused():
        from aegis.cli.live.attaching import run_attach

    return run_attach(daemon, name, keys, types=not read_only, resizes=not (read_only or no_resize))

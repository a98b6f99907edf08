"""The verb ``tui``: the interface for people who live in a terminal."""

from __future__ import annotations

import sys

from aegis.cli.grammar.verb import TargetDaemon, live_verb
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import print_notice

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path


@live_verb()
def tui(daemon: TargetDaemon) -> int:
    """Open the terminal interface.

    It shows terminals, agents, their requests and queues in one window. It is a client of the
    daemon: closing it ends nothing. Press F1 there for its keys.
    """
    _check_possible()
    with daemon.connect():  # raises NoDaemon, whose sentence says how to start one
        pass
    # Imported late: it loads Textual, Trio and the client, which no one-shot verb needs.
    from aegis.tui.launch import run_tui

    return run_tui(daemon.root, daemon.handle)


def run_both(root: Path) -> int:
    """Start the daemon in the background unless it runs, and open the interface.

    The daemon continues when that is closed.
    """
    _check_possible()
    from aegis.cli.background import ensure_daemon

    started = ensure_daemon(root, {"--tui"})
    from aegis.tui.launch import run_tui

    code = run_tui(str(root), None)
    where = f" (log: {started.log})" if started is not None else ""
    print_notice(f"↳ the daemon runs: stop it with aegis-actors down{where}")
    return code


def _check_possible() -> None:
    """Raise ``UsageError`` without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("standard input and output must be a terminal")

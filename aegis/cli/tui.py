"""The verb ``tui``: the interface for people who live in a terminal."""

from __future__ import annotations

import sys

from aegis.cli.grammar.verb import Daemon, live_verb
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import escaped_line, print_notice
from aegis.client.line import ClientError, connect

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NEEDED = ("textual", "avt")
"""The modules of the extra ``tui``."""

POLL_S = 0.05


@live_verb()
def tui(daemon: Daemon) -> int:
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


def run_both(root: Path, words: Sequence[str]) -> int:
    """Start ``aegis-actors up`` in a process of its own unless it runs, and open the interface.

    ``words`` is the command line of this process. The daemon continues when that is closed.
    """
    _check_possible()
    log = _start_daemon(root, [each for each in words if each != "--tui"])
    from aegis.tui.launch import run_tui

    code = run_tui(str(root), None)
    print_notice(
        f"↳ the daemon runs: stop it with aegis-actors down {f' (log: {log})' * bool(log)}"
    )
    return code


def _start_daemon(root: Path, words: Sequence[str]) -> str:
    """Return when the daemon serves, with the path of its log; empty if it ran before.

    Raises ``UsageError`` if it ended instead.
    """
    import contextlib
    import os
    import subprocess
    import tempfile
    from pathlib import Path

    if _serves(root):
        return ""
    # Not in the root: a checkout may have anything there.
    descriptor, log = tempfile.mkstemp(prefix="aegis-up-", suffix=".log")
    try:
        # A session of its own: the keys of this window are no signals for it.
        started = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    while not _serves(root):
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(POLL_S)
            lines = Path(log).read_text(errors="replace").strip().splitlines()
            raise UsageError(
                f"the daemon did not start: {escaped_line(lines[-1] if lines else '')}"
            )
    return log


def _serves(root: Path) -> bool:
    try:
        with connect(root):
            return True
    except ClientError:
        return False


def _check_possible() -> None:
    """Raise ``UsageError`` without the extra, or without a terminal."""
    missing = _missing()
    if missing:
        raise UsageError(f"the interface needs {missing}, which is not installed: run {how()}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("standard input and output must be a terminal")


def how() -> str:
    """Return the command that installs the extra and opens the interface."""
    from pathlib import Path

    if (Path(__file__).resolve().parents[2] / "pyproject.toml").exists():
        return "`uv run --extra tui aegis-actors tui` in the checkout"
    return "`uvx --from 'aegis-actors[tui]' aegis-actors tui`"


def _missing() -> str:
    """Return the name of a module of the extra that is not there; empty if all are."""
    import importlib.util

    for name in NEEDED:
        try:
            found = importlib.util.find_spec(name)
        except ValueError:  # another module has its name
            found = None
        if found is None:
            return name
    return ""

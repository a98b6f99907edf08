"""The simulated daemon of a history: all of a daemon's tree but the servers."""

from __future__ import annotations

from pathlib import Path

from actors import SupervisorSpec
from aegis.app import daemon_tree
from aegis.journal.flusher import Flusher
from aegis.processes.process_host import ProcessHost
from aegis.state.root import State

STATE = State(Path("/proc"))
"""The state of a simulated daemon. Its files are on a simulated disk; its terminals begin in the
root, a directory that exists on each machine and that a simulation cannot write to by mistake."""

IMAGE: dict[str, bytes | None] = {
    str(path): None
    for path in (*reversed(STATE.directory.parents), STATE.directory)
    if path != Path("/")
}
"""The disk before the first incarnation: the empty directory of the state."""

SHELL_FILES = 1024
"""The limit of open files of a simulated shell."""


def simulated_tree(flusher: Flusher, host: ProcessHost) -> SupervisorSpec:
    """Return the daemon's tree on a simulated disk and machine."""
    return daemon_tree(STATE, flusher=flusher, host=host, shell_file_limit=SHELL_FILES)

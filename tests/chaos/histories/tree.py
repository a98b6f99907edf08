"""The part of a daemon that a history plays on: all of its tree but servers and connections."""

from __future__ import annotations

from pathlib import Path

from actors import ChildSpec, SupervisorSpec
from aegis.inboxes.router import InboxRouter
from aegis.journal.flusher import Flusher
from aegis.processes.process_host import ProcessHost
from aegis.terminals.directory.directory import TerminalDirectory
from aegis.workspaces.directory import WorkspaceDirectory

ROOT = Path("/proc")
"""The root of a simulated daemon. Its files are on a simulated disk; terminals begin in it, so it
is a directory that there is everywhere. Nobody can write here, should anything try to."""

STATE = ROOT / ".aegis" / "state"
TERMINALS = STATE / "terminals"
IMAGE: dict[str, bytes | None] = {
    str(path): None for path in (*reversed(STATE.parents), STATE) if path != Path("/")
}
"""What is on the disk before the first life: the empty directory of the state."""

SHELL_FILES = 1024


def daemon_tree(
    flusher: Flusher, host: ProcessHost, *, root: Path = ROOT, state: Path = STATE
) -> SupervisorSpec:
    """The tree, on this disk and this machine."""
    return SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec.of(
                "inbox-router",
                InboxRouter,
                directory=state / "inboxes",
                supervisor="root/inboxes",
                flusher=flusher,
            ),
            SupervisorSpec(name="terminals", dynamic=True),
            ChildSpec.of(
                "terminal-directory",
                TerminalDirectory,
                root=root,
                directory=state / "terminals",
                workspace=state / "workspace.json",
                restore=True,
                supervisor="root/terminals",
                inboxes="root/inbox-router",
                flusher=flusher,
                shell_file_limit=SHELL_FILES,
                host=host,
            ),
            ChildSpec.of(
                "workspaces",
                WorkspaceDirectory,
                root=root,
                path=state / "workspaces.json",
                flusher=flusher,
                host=host,
            ),
        ),
    )

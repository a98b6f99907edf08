"""The simulated daemon of a history: all of a daemon's tree but the servers."""

from __future__ import annotations

from pathlib import Path

import attrs

from actors import Actor, ChildSpec, SupervisorSpec
from aegis.agents.directory.programs import Programs
from aegis.app import agent_children, daemon_tree
from aegis.canvases.messages import WatchFile
from aegis.configuration.agents import AgentSection
from aegis.configuration.limits import LimitsSection
from aegis.configuration.queues import QueueSection
from aegis.configuration.sections import Configuration
from aegis.journal.flusher import Flusher
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.state.root import StatePaths
from aegis.workflows.desk import WorkflowSettings

STATE = StatePaths(Path("/proc"))
"""The state of a simulated daemon. Its files are on a simulated disk; its terminals begin in the
root, a directory that exists on each machine and that a simulation cannot write to by mistake."""

IMAGE: dict[str, bytes | None] = {
    str(path): None
    for path in (*reversed(STATE.directory.parents), STATE.directory)
    if path != Path("/")
}
"""The disk before the first incarnation: the empty directory of the state."""

WORKFLOWS = WorkflowSettings(root=str(STATE.root), host="here")

CONFIGURATION_DIRECTORY = "CLAUDE_CONFIG_DIR"
"""The variable with the directory of Claude Code's files."""

SHELL_FILES = 1024
"""The limit of open files of a simulated shell."""


CONFIGURATION = Configuration(
    agents={"asks": AgentSection(provider="claude", permission="ask")},
    limits=LimitsSection(sessions=64),
    queues={
        "once": QueueSection(agent="asks"),
        "twice": QueueSection(agent="asks", max_attempts=2, max_parallel=2),
    },
)
"""The configuration: one profile, whose sessions ask before they run a program, and its queues."""


@attrs.frozen
class SimulatedKeys:
    """Session URLs that nobody serves."""

    async def session_url(self, handle: str) -> str:
        """Return the URL of the handle."""
        return f"http://127.0.0.1:9/{handle}"

    def tools(self, handle: str) -> tuple[str, ...]:
        """Return the sets of tools of the handle."""
        return ("all",)

    async def revoke(self, handle: str) -> None:
        """Do nothing."""


class SimulatedWatcher(Actor[WatchFile]):
    """The watcher of canvases' files, which are on a simulated disk.

    The program that edits a file there notifies the canvas, as inotify would.
    """

    async def setup(self) -> None:
        """Register the watcher."""
        self.context.register("service", "canvas-watcher")

    async def receive(self, message: WatchFile) -> None:
        """Answer that the directory is watched."""
        self.reply(message, "")


def simulated_tree(flusher: Flusher, host: ProcessHost, scratch: Path) -> SupervisorSpec:
    """Return the daemon's tree on a simulated disk and machine.

    ``scratch`` is a real directory for the files of agents' programs.
    """
    programs = Programs(
        configuration=CONFIGURATION,
        keys=SimulatedKeys(),
        scan=ProcessScan(host),
        root=str(STATE.root),
        variables={CONFIGURATION_DIRECTORY: str(scratch / "claude")},
    )
    agents = agent_children(STATE, flusher=flusher, programs=programs, workflows=WORKFLOWS)
    watcher = ChildSpec.of("canvas-watcher", SimulatedWatcher)
    return daemon_tree(
        STATE,
        flusher=flusher,
        host=host,
        shell_file_limit=SHELL_FILES,
        agents=tuple(watcher if each.name == watcher.name else each for each in agents),
    )

"""``DriverPlan``: everything that a driver needs to start one process of an agent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from aegis.agents.drivers.harness import Beginning, Harness
from aegis.errors import Unavailable
from aegis.path_text import path_of_text
from aegis.processes.environment import process_environment
from aegis.processes.guarded.guarded_process import Launch
from aegis.processes.guarded.line_process import LineSettings


@attrs.frozen(kw_only=True)
class SecretFile:
    """A file of mode 0600, which exists until the agent has read it.

    ``is_kept``: until the agent's process has ended, because it starts others that read it.
    """

    path: Path
    text: str = attrs.field(repr=False)
    is_kept: bool = False

    def write(self) -> None:
        """Write the file, in place of an earlier one. Raises ``Unavailable``."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self.delete()
            with os.fdopen(os.open(self.path, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(self.text)
        except OSError as error:
            raise Unavailable(
                f"the file {str(self.path)!r} for the agent cannot be written: {error.strerror}"
            ) from error

    def delete(self) -> None:
        """Delete the file if it exists. Raises ``OSError``."""
        self.path.unlink(missing_ok=True)


MakeHarness = Callable[[Beginning], Harness]
"""Returns the machine of one protocol, for one process."""


@attrs.frozen(kw_only=True)
class DriverPlan:
    """One process of an agent.

    ``agent`` is its name in sentences. ``argv`` is the command: a program by path, or by name in
    ``PATH``. ``inherited`` is its part of the daemon's environment, and ``environment`` is merged
    over that. ``secret_file`` is written before the start and deleted once the agent is ready or
    has failed; one that is kept, when it has ended. ``older`` is the plan for an older version of
    the program: it is used at once if the program refuses its arguments with ``refusal`` in its
    standard error.
    ``launch`` is the number of the process within the session, and ``cookie`` marks its processes
    (``cookie_of_driver``). ``directory`` is the session's own: standard error is drained into its
    file ``stderr``; None keeps only the end of it, in memory. The agent must be ready within
    ``ready_within_s`` seconds, and its first turn waits ``mcp_within_s`` seconds at most for its
    connection to our MCP server. When it is closed it has ``eof_s`` seconds to end by itself, and
    then ``term_s`` seconds between TERM and KILL. It is ended when it reads nothing for
    ``write_within_s`` seconds. ``notices`` are reported once the agent is ready.
    """

    agent: str
    argv: Sequence[str]
    beginning: Beginning
    make_harness: MakeHarness
    inherited: Mapping[str, str] = attrs.field(repr=False)
    environment: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    secret_file: SecretFile | None = None
    older: DriverPlan | None = None
    refusal: str = ""
    launch: int
    cookie: str
    directory: Path | None
    ready_within_s: float = 180.0
    mcp_within_s: float = 20.0
    eof_s: float = 3.0
    term_s: float = 3.0
    write_within_s: float = 30.0
    open_files: int | None = None
    notices: tuple[str, ...] = ()

    def process(self) -> Launch:
        """Return how the program is started."""
        cwd = path_of_text(self.beginning.cwd)
        environment = process_environment(
            self.inherited, self.environment, cwd=cwd, cookie=self.cookie
        )
        return Launch(
            argv=self.argv,
            cwd=cwd,
            environment=environment,
            term_s=self.term_s,
            open_files=self.open_files,
        )

    def command_environment(self, secrets: frozenset[str]) -> dict[str, str]:
        """Return the agent's environment without the variables ``secrets``, for its commands."""
        merged = {**self.inherited, **self.environment}
        return {key: merged[key] for key in merged.keys() - secrets}

    def settings(self) -> LineSettings:
        """Return the options of the process."""
        return LineSettings(
            stderr=None if self.directory is None else self.directory / "stderr",
            secret_urls=[self.beginning.mcp_url],
            write_within_s=self.write_within_s,
        )

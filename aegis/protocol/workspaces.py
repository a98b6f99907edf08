"""Workspaces and their shells: a second vocabulary for terminals, and commands without one.

A shell is a terminal, and its ``shell_id`` is that terminal's name. ``workspace_exec`` runs a
command without a terminal and without state, with two separate streams.
"""

from __future__ import annotations

from typing import Literal

import attrs

from aegis.path_text import MAX_PATH_CHARS
from aegis.protocol.command import (
    MAX_TIMEOUT_S,
    Command,
    T,
    at_most_chars,
    between,
    configurable,
    described,
    matching,
)
from aegis.protocol.control import SIGNAL_BRIEF, SIGNAL_PATTERN, SIGNAL_RULE
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE
from aegis.protocol.output import (
    DEFAULT_OUTPUT_BYTES,
    MAX_CURSOR,
    MAX_OUTPUT_BYTES,
    MIN_OUTPUT_BYTES,
    OutputChunk,
)
from aegis.protocol.terminals import (
    DEFAULT_COLS,
    DEFAULT_ROWS,
    DEFAULT_RUN_TIMEOUT_S,
    MAX_CMD_CHARS,
    MAX_KEYS_CHARS,
    NEW_COLS,
    NEW_ROWS,
    Closed,
    Done,
    limit_of_time,
)

WORKSPACE_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}"
WORKSPACE_RULE = "1 to 32 letters, digits, '_' or '-', beginning with a letter or a digit"
SHELL_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}"
SHELL_RULE = "1 to 31 letters, digits, '_' or '-', beginning with a letter or a digit"

ShellState = Literal["running", "stopped"]


@attrs.frozen(kw_only=True)
class ShellInfo:
    """A shell of a workspace. ``stopped``: its terminal was closed or has failed."""

    workspace_id: str
    shell_id: str
    cols: int
    rows: int
    cwd: str | None
    state: ShellState


@attrs.frozen(kw_only=True)
class WorkspaceInfo:
    """A workspace: its ``directory``, and its shells in the order in which they were opened.

    ``agent`` is the handle of its terminal agent, and so the name of that one's terminal.
    """

    workspace_id: str
    directory: str
    shells: list[ShellInfo]
    agent: str | None = None


@attrs.frozen(kw_only=True)
class WorkspaceList:
    """``result`` lists the workspaces by name."""

    result: list[WorkspaceInfo]


@attrs.frozen(kw_only=True)
class WorkspaceDeleted:
    """The workspace was deleted, and its shells were ``closed``; its directory is unchanged.

    ``agents`` are the handles of its agent sessions, which were closed.

    ``leftover`` lists processes that could not be ended, each as ``name (pid 1234)``.
    """

    closed: list[str]
    leftover: list[str]
    agents: list[str] = attrs.field(factory=list)
    ok: Literal[True] = True


@attrs.frozen(kw_only=True)
class ExecResult:
    """The result of a command without a terminal.

    ``exit`` is 128+n for death by signal n, null after the timeout (``timed_out``). ``stdout`` and
    ``stderr`` are plain text of at most 64 KiB each; ``truncated``: at least one was truncated.
    """

    exit: int | None
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool
    duration_s: float


_WORKSPACE = described(
    f"The workspace's name: {WORKSPACE_RULE}.",
    "The workspace's name.",
    pattern=f"^{WORKSPACE_PATTERN}$",
)
_SHELL_ID = described(
    "The shell_id that shell_open returned: the name of its terminal.", pattern=f"^{NAME_PATTERN}$"
)


@attrs.frozen(kw_only=True)
class OnWorkspace(Command[T]):
    """A command about one workspace."""

    workspace: str = attrs.field(
        validator=matching(WORKSPACE_PATTERN, WORKSPACE_RULE), metadata=_WORKSPACE
    )


@attrs.frozen(kw_only=True)
class OnShell(Command[T]):
    """A command about one shell of a workspace."""

    shell: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_SHELL_ID)


@attrs.frozen(kw_only=True)
class CreateWorkspace(OnWorkspace[WorkspaceInfo]):
    """Make a directory a workspace, to open shells and run commands in it.

    Fails if a workspace has that name already, or if the directory does not exist.
    """

    directory: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=described("The directory, relative to the daemon's root; default: the root."),
    )


@attrs.frozen(kw_only=True)
class ListWorkspaces(Command[WorkspaceList]):
    """List the workspaces and their shells."""


@attrs.frozen(kw_only=True)
class DeleteWorkspace(OnWorkspace[WorkspaceDeleted]):
    """Delete a workspace: close its shells and agents, and end their processes.

    Its directory is not changed. The history of the shells stays readable unless purged.
    """

    purge: bool = attrs.field(
        default=False, metadata=described("Also delete the history and output of its shells.")
    )


@attrs.frozen(kw_only=True)
class ExecCommand(OnWorkspace[ExecResult]):
    """Run a command in a workspace without a terminal; return exit code, stdout and stderr.

    Each call is a process of its own without input: no state is kept, and processes that it leaves
    running are ended with it. For a shell that keeps its state, use shell_open.
    """

    command: str = attrs.field(
        validator=at_most_chars(MAX_CMD_CHARS),
        metadata=described("The command, for bash -c; several lines are allowed."),
    )
    timeout: float = attrs.field(
        default=DEFAULT_RUN_TIMEOUT_S,
        validator=between(0.01, MAX_TIMEOUT_S, "seconds"),
        metadata=limit_of_time("Seconds after which the command is ended."),
    )


@attrs.frozen(kw_only=True)
class OpenShell(OnWorkspace[ShellInfo]):
    """Open a shell in a workspace: a terminal that keeps its state between calls.

    Write to it with shell_write and read its output with shell_read. It is the terminal named
    `shell_id`: all terminal tools work on it too.
    """

    name: str | None = attrs.field(
        default=None,
        validator=matching(SHELL_PATTERN, SHELL_RULE),
        metadata=described(
            "Its name in the workspace; default: a new number. The name of a closed shell "
            "continues its history.",
            pattern=f"^{SHELL_PATTERN}$",
        ),
    )
    cols: int = attrs.field(
        default=DEFAULT_COLS, validator=between(2, 1000, "columns"), metadata=NEW_COLS
    )
    rows: int = attrs.field(
        default=DEFAULT_ROWS, validator=between(1, 1000, "rows"), metadata=NEW_ROWS
    )
    cwd: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=described("Start directory, relative to the workspace; default: its directory."),
    )
    shell: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=configurable(
            "Path or name of the shell program.", "terminals.shell", "as for aegis_term_spawn"
        ),
    )


@attrs.frozen(kw_only=True)
class ReadShell(OnShell[OutputChunk]):
    """Read a shell's output from a cursor on; the next read begins at `next_cursor`.

    Reading removes nothing: others may read the same. With `wait_s` the call waits for output.
    """

    cursor: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described(
            "A byte offset since the shell was first opened: 0, or a `next_cursor`. Default: the "
            "start of the current or last command.",
            minimum=0,
        ),
    )
    max_bytes: int = attrs.field(
        default=DEFAULT_OUTPUT_BYTES,
        validator=between(MIN_OUTPUT_BYTES, MAX_OUTPUT_BYTES, "bytes"),
        metadata=described(
            "Maximum bytes to return.", minimum=MIN_OUTPUT_BYTES, maximum=MAX_OUTPUT_BYTES
        ),
    )
    plain: bool = attrs.field(
        default=False,
        metadata=described("Remove escape sequences, for reading instead of showing."),
    )
    wait_s: float = attrs.field(
        default=0.0,
        validator=between(0, MAX_TIMEOUT_S, "seconds"),
        metadata=described(
            "Seconds to wait for output if there is none.", minimum=0, maximum=MAX_TIMEOUT_S
        ),
    )


@attrs.frozen(kw_only=True)
class SignalShell(OnShell[Done]):
    """Send a signal to the foreground program of a shell."""

    signal: str = attrs.field(
        validator=matching(SIGNAL_PATTERN, SIGNAL_RULE),
        metadata=described(
            f"The signal: {SIGNAL_RULE}.", SIGNAL_BRIEF, pattern=f"^{SIGNAL_PATTERN}$"
        ),
    )


@attrs.frozen(kw_only=True)
class WriteShell(OnShell[Done]):
    """Type text into a shell."""

    input: str = attrs.field(
        validator=at_most_chars(MAX_KEYS_CHARS - 1),
        metadata=described("The text; control characters are sent as they are."),
    )
    append_newline: bool = attrs.field(
        default=True, metadata=described("Press Enter after the text.")
    )


@attrs.frozen(kw_only=True)
class CloseShell(OnShell[Closed]):
    """Close a shell and end its processes; its output stays readable.

    ``leftover`` lists processes that could not be ended.
    """


def shell_id(workspace: str, name: str) -> str:
    """Return the name of the terminal of the shell ``name`` of a workspace."""
    return f"{workspace}.{name}"

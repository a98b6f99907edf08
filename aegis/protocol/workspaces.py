"""Workspaces and their shells: a second vocabulary for terminals, and commands without one.

A shell is a terminal: its ``shell_id`` is that terminal's name, and everything that is said of
terminals is true of it. ``workspace_exec`` is the other way: no terminal, no state, two streams.
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
    """A shell of a workspace. ``stopped``: its terminal was closed, or has failed."""

    workspace_id: str
    shell_id: str
    cols: int
    rows: int
    cwd: str | None
    state: ShellState


@attrs.frozen(kw_only=True)
class WorkspaceInfo:
    """A workspace: its ``directory``, and its shells in the order in which they were opened."""

    workspace_id: str
    directory: str
    shells: list[ShellInfo]


@attrs.frozen(kw_only=True)
class WorkspaceList:
    """``result`` lists the workspaces by name."""

    result: list[WorkspaceInfo]


@attrs.frozen(kw_only=True)
class WorkspaceDeleted:
    """The workspace is gone, and its shells are ``closed``; its directory was not touched.

    ``leftover`` names processes of them that could not be ended, each as ``name (pid 1234)``.
    """

    closed: list[str]
    leftover: list[str]
    ok: Literal[True] = True


@attrs.frozen(kw_only=True)
class ExecResult:
    """What a command without a terminal did.

    ``exit`` is 128+n for death by signal n, null if its time ran out (``timed_out``). ``stdout``
    and ``stderr`` are plain text of at most 64 KiB each; ``truncated``: at least one was cut.
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
    "The shell_id that shell_open gave: the name of its terminal.", pattern=f"^{NAME_PATTERN}$"
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
    """Name a directory as a workspace, to open shells and run commands in it.

    Fails if there is a workspace of that name, or no such directory.
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
    """Delete a workspace: its shells are closed and their processes ended.

    Its directory is left alone. What ran in the shells stays readable unless purged.
    """

    purge: bool = attrs.field(
        default=False, metadata=described("Also delete what its shells have printed and run.")
    )


@attrs.frozen(kw_only=True)
class ExecCommand(OnWorkspace[ExecResult]):
    """Run a command in a workspace without a terminal; get exit code, stdout and stderr.

    Each call is a process of its own with no input: no state stays, and what it leaves running is
    ended with it. For a shell that keeps its state, use shell_open.
    """

    command: str = attrs.field(
        validator=at_most_chars(MAX_CMD_CHARS),
        metadata=described("The command, for bash -c; several lines are allowed."),
    )
    timeout: float = attrs.field(
        default=DEFAULT_RUN_TIMEOUT_S,
        validator=between(0.01, MAX_TIMEOUT_S, "seconds"),
        metadata=limit_of_time("Seconds until the command is ended."),
    )


@attrs.frozen(kw_only=True)
class OpenShell(OnWorkspace[ShellInfo]):
    """Open a shell in a workspace: a terminal that keeps its state between calls.

    Write to it with shell_write, read what it prints with shell_read. It is the terminal named
    `shell_id`: all terminal tools work on it too.
    """

    name: str | None = attrs.field(
        default=None,
        validator=matching(SHELL_PATTERN, SHELL_RULE),
        metadata=described(
            "Its name in the workspace; default: a new number. The name of a closed one goes on "
            "with its history.",
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
        metadata=described("Where to start, relative to the workspace; default: its directory."),
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
    """Read what a shell printed, from a cursor on; `next_cursor` is where the next read begins.

    Nothing is taken away by reading: others may read the same. With `wait_s` the call waits until
    there is something.
    """

    cursor: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described(
            "A byte offset since the shell was first opened: 0, or a `next_cursor`. Default: where "
            "the current or last command began.",
            minimum=0,
        ),
    )
    max_bytes: int = attrs.field(
        default=DEFAULT_OUTPUT_BYTES,
        validator=between(MIN_OUTPUT_BYTES, MAX_OUTPUT_BYTES, "bytes"),
        metadata=described(
            "How many bytes at most.", minimum=MIN_OUTPUT_BYTES, maximum=MAX_OUTPUT_BYTES
        ),
    )
    plain: bool = attrs.field(
        default=False,
        metadata=described("Leave out escape sequences, for reading instead of showing."),
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
    """Send a signal to the program that is in front in a shell."""

    signal: str = attrs.field(
        validator=matching(SIGNAL_PATTERN, SIGNAL_RULE),
        metadata=described(
            f"The signal: {SIGNAL_RULE}.", SIGNAL_BRIEF, pattern=f"^{SIGNAL_PATTERN}$"
        ),
    )


@attrs.frozen(kw_only=True)
class WriteShell(OnShell[Done]):
    """Type text into a shell, as if at its keyboard."""

    input: str = attrs.field(
        validator=at_most_chars(MAX_KEYS_CHARS - 1),
        metadata=described("The text; control characters are sent as they are."),
    )
    append_newline: bool = attrs.field(default=True, metadata=described("Press Enter after it."))


@attrs.frozen(kw_only=True)
class CloseShell(OnShell[Closed]):
    """Close a shell and end its processes; what it printed stays readable.

    Processes that could not be ended are named in ``leftover``.
    """


def shell_id(workspace: str, name: str) -> str:
    """The name of the terminal that is the shell ``name`` of a workspace."""
    return f"{workspace}.{name}"

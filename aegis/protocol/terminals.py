"""Terminals: their commands and replies, and the record of a command."""

from __future__ import annotations

from typing import Any, Literal

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
from aegis.protocol.naming import LOCAL_NODE, NAME_PATTERN, NAME_RULE

MAX_CMD_CHARS = 1_000_000
MAX_KEYS_CHARS = 65_536
MAX_PATTERN_CHARS = 1_000
MAX_VARIABLE_BYTES = 131_070
"""Name, ``=`` and value of one variable: the longest string that execve(2) takes on Linux."""
MAX_ENV_BYTES = 1024 * 1024
"""All variables of one terminal. With the daemon's own they must fit Linux's total limit."""
DEFAULT_RUN_TIMEOUT_S = 50.0
MAX_HEADER_CMD_CHARS = 4096
"""Maximum length of a command's text in a header."""
DEFAULT_COLS = 80
DEFAULT_ROWS = 24

End = Literal["exited", "shell_exit", "killed_by_restart", "closed", "lost"]
State = Literal["starting", "idle", "running", "failed", "closed", "unreachable"]
Integration = Literal["osc133", "fallback"]
StandardError = Literal["merged", "separate"]
Until = Literal["ended", "started"]


@attrs.frozen(kw_only=True)
class NeedsInput:
    """The command waits for input: a line of ``input``, or a ``secret`` (echo is off)."""

    kind: Literal["input", "secret"]
    program: str


@attrs.frozen(kw_only=True)
class CommandRecord:
    """One command on a terminal, as stored in the ledger.

    Times are UTC, ISO 8601 with milliseconds and ``Z``; ``duration_s`` comes from the monotonic
    clock. ``exit`` is null when it is not known; a shell reports death by a signal as 128+n.
    ``stdout`` is plain text of at most 64 KiB; ``output_bytes`` is the length of the whole text in
    UTF-8, and ``truncated`` is true if ``stdout`` has only a part of it. ``raw_start`` and
    ``raw_end`` are byte offsets since the terminal's first spawn. ``needs_input`` is null unless
    the command waits for input, and ``may_need_input`` unless it may: a program reads the terminal,
    but another thread, or an earlier part of the pipe, works meanwhile. ``end`` is the reason why
    the record ended; null: not yet. ``cmd`` is null for a typed command whose text is not fully
    known; ``cmd_reason`` says why. A record by ``shell`` is of no command: the shell itself ended
    at its prompt, or was replaced, for the reason in ``cmd_reason``. ``new_shell_since`` is the seq
    behind which a fresh shell began, in its first record: what earlier commands had set is gone.
    """

    seq: int
    cmd: str | None
    writer: str
    started_at: str
    finished_at: str | None
    duration_s: float | None
    exit: int | None
    stdout: str
    stderr: str
    killed_by_restart: bool
    timed_out: bool
    cwd: str | None
    output_bytes: int
    truncated: bool
    raw_start: int
    raw_end: int | None
    needs_input: NeedsInput | None
    end: End | None
    cmd_reason: str | None = None
    may_need_input: NeedsInput | None = None
    new_shell_since: int | None = None


@attrs.frozen(kw_only=True)
class Typing:
    """An unfinished line at the prompt, typed by ``writer`` since ``since``. It delays runs."""

    writer: str
    since: str


@attrs.frozen(kw_only=True)
class CommandHeader:
    """The head of a record, without output; ``cmd`` is truncated to 4,096 characters.

    The fields are those of the record. ``exit``, ``duration_s`` (seconds), ``raw_end`` and ``end``
    are null while the command runs. The output of a command begins at the byte ``raw_start``.
    """

    name: str
    seq: int
    cmd: str | None
    writer: str
    exit: int | None
    duration_s: float | None
    started_at: str
    cwd: str | None
    raw_start: int
    raw_end: int | None = None
    end: End | None = None
    needs_input: NeedsInput | None = None
    may_need_input: NeedsInput | None = None


@attrs.frozen(kw_only=True)
class TerminalInfo:
    """A terminal as it is now. ``restarts`` counts the shells after the first one.

    ``typing`` is null when no line at the prompt is unfinished. ``stderr`` says whether standard
    error of commands is recorded separately. ``node`` is the name of the node it runs on;
    ``unreachable``: the connection to the node is lost, and the fields are the last known ones.
    ``running`` is the command that runs. ``notice`` says what a caller should know before the next
    command: for example that the last directory is gone, and the shell started in another one, or
    that the shell took the place of one that ended or was replaced, and why.
    """

    name: str
    pid: int | None
    shell: str
    cwd: str | None
    started_at: str
    cols: int
    rows: int
    integration: Integration
    state: State
    last_cmd_at: str | None
    last_exit: int | None
    subscribers: list[str]
    restarts: int
    node: str
    stderr: StandardError = "merged"
    typing: Typing | None = None
    running: CommandHeader | None = None
    notice: str | None = None


@attrs.frozen(kw_only=True)
class AgentCommand:
    """A command that the agent ``agent`` has its session run, in a terminal ``id`` of its own.

    Nobody types there; the agent's transcript has its output.
    """

    agent: str
    id: str
    command: str


@attrs.frozen(kw_only=True)
class TerminalList:
    """``result`` lists the open terminals by name, ``of_agents`` those of agents' commands."""

    result: list[TerminalInfo]
    of_agents: list[AgentCommand] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class RecordList:
    """``result`` has records, oldest first; ``more``: there were too many for one reply.

    ``damaged`` is the number of unreadable lines of the ledger that were skipped. ``running`` is
    the newest command without a record: it runs, or its record is being written. ``oldest_kept`` is
    the lowest seq that is kept, if older records were asked for and were deleted.
    """

    result: list[CommandRecord]
    more: bool = False
    damaged: int = 0
    running: CommandHeader | None = None
    oldest_kept: int = 0


@attrs.frozen(kw_only=True)
class Done:
    """The request was carried out."""

    ok: Literal[True] = True


@attrs.frozen(kw_only=True)
class Closed:
    """The terminal was closed. ``leftover`` lists its processes that could not be ended.

    Each as ``name (pid 1234)``; usually the list is empty.
    """

    leftover: list[str]
    ok: Literal[True] = True


@attrs.frozen(kw_only=True)
class Subscribed:
    """The subscription was made; ``subscribers`` are all handles that this terminal wakes."""

    subscribers: list[str]
    ok: Literal[True] = True


def _check_env(_: Any, attribute: attrs.Attribute[Any], env: dict[str, str]) -> None:
    for key, value in env.items():
        if not key or "=" in key or "\0" in key or "\0" in value:
            raise ValueError(
                f"{attribute.name} holds {key[:80]!r}: a variable's name must not be empty or hold "
                "'=', and neither name nor value may hold a NUL"
            )
    sizes = [len(f"{key}={value}".encode()) for key, value in env.items()]
    if max(sizes, default=0) > MAX_VARIABLE_BYTES or sum(sizes) > MAX_ENV_BYTES:
        raise ValueError(
            f"{attribute.name} is too long: a variable may take {MAX_VARIABLE_BYTES} bytes, name "
            f"and value, and all together {MAX_ENV_BYTES}"
        )


_TERMINAL_NAME = described(
    f"The terminal's name: {NAME_RULE}.", "The terminal's name.", pattern=f"^{NAME_PATTERN}$"
)
COLS = described("Width in columns, 2 to 1000.", "Columns.", minimum=2, maximum=1000)
ROWS = described("Height in rows, 1 to 1000.", "Rows.", minimum=1, maximum=1000)
NEW_COLS = configurable(
    COLS["doc"], "terminals.cols", f"{DEFAULT_COLS}", COLS["brief"], **COLS["schema"]
)
NEW_ROWS = configurable(
    ROWS["doc"], "terminals.rows", f"{DEFAULT_ROWS}", ROWS["brief"], **ROWS["schema"]
)


def limit_of_time(doc: str, brief: str | None = None) -> dict[str, Any]:
    """Return the metadata of a ``timeout`` field, whose default the configuration may set."""
    return configurable(
        doc,
        "terminals.timeout_s",
        f"{DEFAULT_RUN_TIMEOUT_S:g}",
        brief,
        minimum=0.01,
        maximum=MAX_TIMEOUT_S,
    )


@attrs.frozen(kw_only=True)
class OnTerminal(Command[T]):
    """A command about one terminal."""

    name: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_TERMINAL_NAME)


@attrs.frozen(kw_only=True)
class SpawnTerminal(OnTerminal[TerminalInfo]):
    """Start a shared terminal: a shell on a PTY that keeps its state between commands.

    All agents and people may use it. The name of a closed terminal continues its history.
    """

    shell: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=configurable(
            "Path or name of a shell. bash, zsh and fish have exact command boundaries; for any "
            "other program they are a best effort (integration: fallback).",
            "terminals.shell",
            "the daemon's $SHELL if it has exact boundaries, else bash",
            "Shell: bash, zsh or fish; other programs are supported less exactly.",
        ),
    )
    cwd: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=described(
            "Directory to start in; default: the daemon's root.", "Default: the daemon's root."
        ),
    )
    env: dict[str, str] = attrs.field(
        factory=dict,
        validator=_check_env,
        metadata=described("Variables merged over the daemon's environment.", "Variables to add."),
    )
    cols: int = attrs.field(
        default=DEFAULT_COLS, validator=between(2, 1000, "columns"), metadata=NEW_COLS
    )
    rows: int = attrs.field(
        default=DEFAULT_ROWS, validator=between(1, 1000, "rows"), metadata=NEW_ROWS
    )
    stderr: StandardError = attrs.field(
        default="merged",
        metadata=described(
            "merged: stdout of a record has both streams, interleaved; separate: standard error of "
            "commands of aegis_term_run is in stderr. Only bash and zsh can separate them.",
            "separate: records have stderr apart from stdout (bash and zsh only).",
        ),
    )
    node: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            f"Node to run on: {LOCAL_NODE!r}, a worker (w1, w2, …) or the name of a joined host. "
            "Default: a node of this machine that has room; a closed terminal of a host reopens "
            "on that host.",
            "local, a worker, or a joined host.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )


@attrs.frozen(kw_only=True)
class ListTerminals(Command[TerminalList]):
    """List the open terminals with their state, unfinished typing and subscribers."""


@attrs.frozen(kw_only=True)
class RunCommand(OnTerminal[CommandRecord]):
    """Run a command on a terminal and wait until it ends; return its exit code and output.

    Commands on one terminal run one at a time. If the command waits for input (``needs_input``:
    answer with aegis_term_keys), or ``timeout`` passes (``timed_out``), you get its record so far,
    and it keeps running. If another command runs until the timeout, or waits for input, the call
    fails and nothing was typed. For a server or watcher pass ``until: "started"``, then use
    aegis_term_output and aegis_term_wait. ``stdout`` has at most 64 KiB; read the rest of a
    ``truncated`` one with aegis_term_output. ``new_shell_since``: variables are gone.
    """

    cmd: str = attrs.field(
        validator=at_most_chars(MAX_CMD_CHARS),
        metadata=described(
            "The command, as you would type it; several lines are one command.",
            "As you would type it.",
        ),
    )
    timeout: float = attrs.field(
        default=DEFAULT_RUN_TIMEOUT_S,
        validator=between(0.01, MAX_TIMEOUT_S, "seconds"),
        metadata=limit_of_time(
            "Seconds for the whole call, time in the queue included.", "Seconds."
        ),
    )
    until: Until = attrs.field(
        default="ended",
        metadata=described(
            "ended: wait for the end. started: return the record so far once the command runs (end "
            "null; its seq is for aegis_term_wait, aegis_term_output and aegis_term_signal), or "
            "the final record if it has already ended.",
            "started: return as soon as it runs; its seq is for the other tools.",
        ),
    )


@attrs.frozen(kw_only=True)
class SendKeys(OnTerminal[Done]):
    """Type keys exactly as given: Enter is "\\r", Ctrl-C is U+0003.

    A command entered this way is recorded like any other.
    """

    keys: str = attrs.field(
        validator=at_most_chars(MAX_KEYS_CHARS),
        metadata=described(
            "The characters to send; control characters are sent as they are.", "The characters."
        ),
    )


@attrs.frozen(kw_only=True)
class ReadRecords(OnTerminal[RecordList]):
    """Read the records of finished commands, oldest first; also of a closed terminal."""

    last_n: int | None = attrs.field(
        default=None,
        validator=between(1, 1000, "records"),
        metadata=described(
            "Number of newest records, 1 to 1000; default 5.",
            "How many of the newest; default 5.",
            minimum=1,
            maximum=1000,
        ),
    )
    since_seq: int | None = attrs.field(
        default=None,
        validator=between(-1, 2**53, "(a seq)"),
        metadata=described(
            "Only records with a greater seq; -1 for all. Not together with last_n.",
            "Instead of last_n: those with a greater seq; -1: all.",
            minimum=-1,
        ),
    )
    before_seq: int | None = attrs.field(
        default=None,
        validator=between(0, 2**53, "(a seq)"),
        metadata=described(
            "The newest records with a lower seq: to read backwards. Not together with since_seq.",
            "Those with a lower seq.",
            minimum=0,
        ),
    )
    output: bool = attrs.field(
        default=True,
        metadata=described(
            "false: leave stdout and stderr empty.", "false: without stdout and stderr."
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.last_n is not None and self.since_seq is not None:
            raise ValueError("give last_n or since_seq, not both")
        if self.before_seq is not None and self.since_seq is not None:
            raise ValueError("give before_seq or since_seq, not both")


@attrs.frozen(kw_only=True)
class Subscribe(OnTerminal[Subscribed]):
    """Get a message whenever another handle's command ends on this terminal.

    Lasts until you unsubscribe. Subscribing again replaces the filters, which must all match.
    """

    pattern: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATTERN_CHARS),
        metadata=described(
            "A regular expression (RE2: Python's without look-around and back-references) that is "
            f"searched for in `cmd`; at most {MAX_PATTERN_CHARS} characters. A command whose `cmd` "
            "is null, or longer than 65,536 characters, matches. Default: all commands.",
            "Only commands whose text this regular expression (RE2) finds.",
        ),
    )
    only_failures: bool = attrs.field(
        default=False,
        metadata=described(
            "Only commands whose exit is not 0; an unknown exit counts as a failure.",
            "Only commands whose exit is not 0.",
        ),
    )


@attrs.frozen(kw_only=True)
class Unsubscribe(OnTerminal[Done]):
    """End your subscription to this terminal."""


@attrs.frozen(kw_only=True)
class CloseTerminal(OnTerminal[Closed]):
    """Close a terminal and end its processes; its history stays readable unless purged.

    ``leftover`` lists processes that could not be ended.
    """

    purge: bool = attrs.field(
        default=False,
        metadata=described(
            "Also delete its history; a new terminal of that name starts empty.",
            "Also delete its history.",
        ),
    )

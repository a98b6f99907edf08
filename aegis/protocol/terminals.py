"""Terminals: their commands, replies, and the record of a command."""

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
"""All variables of one terminal; with the daemon's own they must fit what Linux takes in all."""
DEFAULT_RUN_TIMEOUT_S = 50.0
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
    """One command on a terminal, as the ledger keeps it.

    Times are UTC, ISO 8601 with milliseconds and ``Z``; ``duration_s`` comes from the monotonic
    clock. ``exit`` is null when it is not known; a shell reports death by a signal as 128+n.
    ``stdout`` is plain text of at most 64 KiB; ``output_bytes`` is how long that text was (UTF-8)
    before it was cut, and ``truncated`` whether it was. ``raw_start`` and ``raw_end`` are byte
    offsets since the terminal's first spawn. ``needs_input`` is there only while the command waits.
    ``end`` says why the record ended; null: not yet. ``cmd`` is null for a typed command whose text
    is not known as a whole; then ``cmd_reason`` says why.
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


@attrs.frozen(kw_only=True)
class Typing:
    """An unfinished line at the prompt, typed by ``writer`` ``since`` then. It keeps runs away."""

    writer: str
    since: str


@attrs.frozen(kw_only=True)
class TerminalInfo:
    """A terminal as it is now. ``restarts`` counts fresh shells after the first.

    ``typing`` is null when no line at the prompt is unfinished. ``stderr`` says whether standard
    error of commands is told apart. ``node`` is the place where it runs; ``unreachable``: the
    connection to that is cut, and the rest is what was known last.
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


@attrs.frozen(kw_only=True)
class TerminalList:
    """``result`` lists the open terminals by name."""

    result: list[TerminalInfo]


@attrs.frozen(kw_only=True)
class RecordList:
    """``result`` holds records, oldest first; ``more`` that there were too many for a reply.

    ``damaged``: how many lines of the ledger were skipped on the way, because they cannot be read.
    """

    result: list[CommandRecord]
    more: bool = False
    damaged: int = 0


@attrs.frozen(kw_only=True)
class Done:
    """The request was carried out."""

    ok: Literal[True] = True


@attrs.frozen(kw_only=True)
class Closed:
    """The terminal is closed. ``leftover`` names processes of it that could not be ended.

    Each as ``name (pid 1234)``; usually there is none.
    """

    leftover: list[str]
    ok: Literal[True] = True


@attrs.frozen(kw_only=True)
class Subscribed:
    """The request was carried out; these handles are woken now."""

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
COLS = described("Width in columns, 2 to 1000.", "Width in columns.", minimum=2, maximum=1000)
ROWS = described("Height in rows, 1 to 1000.", "Height in rows.", minimum=1, maximum=1000)
NEW_COLS = configurable(
    COLS["doc"], "terminals.cols", f"{DEFAULT_COLS}", COLS["brief"], **COLS["schema"]
)
NEW_ROWS = configurable(
    ROWS["doc"], "terminals.rows", f"{DEFAULT_ROWS}", ROWS["brief"], **ROWS["schema"]
)


def limit_of_time(doc: str) -> dict[str, Any]:
    """Field metadata of a ``timeout`` that the daemon's owner may set."""
    return configurable(
        doc,
        "terminals.timeout_s",
        f"{DEFAULT_RUN_TIMEOUT_S:g}",
        minimum=0.01,
        maximum=MAX_TIMEOUT_S,
    )


@attrs.frozen(kw_only=True)
class OnTerminal(Command[T]):
    """A command about one terminal."""

    name: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_TERMINAL_NAME)


@attrs.frozen(kw_only=True)
class SpawnTerminal(OnTerminal[TerminalInfo]):
    """Start a shared terminal: a real shell on a real PTY that keeps its state between commands.

    Anybody may run commands on it, type into it, read its history and subscribe to it. A name
    that was closed before continues its history. Fails if the name is in use.
    """

    shell: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=configurable(
            "Path or name of a shell. bash, zsh and fish have exact boundaries; any other "
            "program is run as well as can be (integration: fallback).",
            "terminals.shell",
            "$SHELL of the daemon if it has exact boundaries, else bash",
        ),
    )
    cwd: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=described("Directory to start in; default: the daemon's root."),
    )
    env: dict[str, str] = attrs.field(
        factory=dict,
        validator=_check_env,
        metadata=described("Variables merged over the daemon's environment."),
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
            "merged: stdout of a record holds both, as they came; separate: standard error of "
            "commands given to term_run is in stderr. Only bash and zsh can separate them."
        ),
    )
    node: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            f"Where it is to run: {LOCAL_NODE!r}, a worker (w1, w2, …) or a host that has joined, "
            "by its name. Default: on this machine, wherever there is room; a closed terminal of a "
            "host goes on there.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )


@attrs.frozen(kw_only=True)
class ListTerminals(Command[TerminalList]):
    """List the open terminals: state, who types, who subscribes."""


@attrs.frozen(kw_only=True)
class RunCommand(OnTerminal[CommandRecord]):
    """Run a command on a terminal and wait until it ends; get its exit code and output.

    The shell gets exactly the text given; several lines are one command. Commands on one terminal
    run one at a time, first come first served. If the command waits for input you get the record so
    far at once, with ``needs_input``; answer with aegis_term_keys. If ``timeout`` passes while it
    runs you get it with ``timed_out``. Either way it keeps running, and its record is completed
    when it ends. If the timeout passes while somebody else's command holds the terminal, the call
    fails and nothing was typed. For what does not end by itself, a server or a watcher, say
    ``until: "started"``, then go on with aegis_term_output and aegis_term_wait. ``stdout`` is plain
    text of at most 64 KiB; if it is ``truncated``, read the rest with aegis_term_output.
    """

    cmd: str = attrs.field(
        validator=at_most_chars(MAX_CMD_CHARS),
        metadata=described(
            "The command, as you would type it; several lines are one command.",
            "The command, as you would type it.",
        ),
    )
    timeout: float = attrs.field(
        default=DEFAULT_RUN_TIMEOUT_S,
        validator=between(0.01, MAX_TIMEOUT_S, "seconds"),
        metadata=limit_of_time("Seconds for the whole call, waiting for the terminal included."),
    )
    until: Until = attrs.field(
        default="ended",
        metadata=described(
            "ended: wait for the end. started: get the record so far as soon as the command runs "
            "(end null; its seq is for aegis_term_wait, aegis_term_output and aegis_term_signal); "
            "one that is over by then has its final record."
        ),
    )


@attrs.frozen(kw_only=True)
class SendKeys(OnTerminal[Done]):
    """Send keys to the terminal exactly as given, as if typed.

    Enter is a carriage return (JSON "\\r"), Ctrl-C is the character U+0003. A command entered
    this way is recorded and wakes subscribers like any other.
    """

    keys: str = attrs.field(
        validator=at_most_chars(MAX_KEYS_CHARS),
        metadata=described("The characters to send; control characters are sent as they are."),
    )


@attrs.frozen(kw_only=True)
class ReadRecords(OnTerminal[RecordList]):
    """Read finished commands of a terminal, oldest first: the newest ones, or all since a seq.

    Works for a closed terminal too, as long as it was not purged.
    """

    last_n: int | None = attrs.field(
        default=None,
        validator=between(1, 1000, "records"),
        metadata=described(
            "How many of the newest records, 1 to 1000; default 5.",
            "How many of the newest records; default 5.",
            minimum=1,
            maximum=1000,
        ),
    )
    since_seq: int | None = attrs.field(
        default=None,
        validator=between(-1, 2**53, "(a seq)"),
        metadata=described(
            "Only records with a greater seq; -1 for all. Not together with last_n.", minimum=-1
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.last_n is not None and self.since_seq is not None:
            raise ValueError("give last_n or since_seq, not both")


@attrs.frozen(kw_only=True)
class Subscribe(OnTerminal[Subscribed]):
    """Be woken through your inbox whenever a command of somebody else finishes on this terminal.

    It lasts until you unsubscribe, also when the terminal is closed and spawned again. To be woken
    by some commands only, say which; where both are given, both must hold. Subscribing again
    replaces what you said before, for commands that finish from then on.
    """

    pattern: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATTERN_CHARS),
        metadata=described(
            "A regular expression (RE2: Python's without look-around and back-references) that is "
            f"searched for in `cmd`; at most {MAX_PATTERN_CHARS} characters. A command whose `cmd` "
            "is null, or longer than 65,536 characters, passes. Default: all commands."
        ),
    )
    only_failures: bool = attrs.field(
        default=False,
        metadata=described("Only commands whose exit is not 0; an unknown exit counts as failure."),
    )


@attrs.frozen(kw_only=True)
class Unsubscribe(OnTerminal[Done]):
    """Stop being woken by this terminal."""


@attrs.frozen(kw_only=True)
class CloseTerminal(OnTerminal[Closed]):
    """Close a terminal: its processes are ended, its history stays readable unless purged.

    Processes that could not be ended are named in ``leftover``.
    """

    purge: bool = attrs.field(
        default=False,
        metadata=described("Also delete its history; a new terminal of that name begins anew."),
    )

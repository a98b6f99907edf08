"""The verbs of terminals, except ``term attach|run|output|wait``, which have files of their own."""

from __future__ import annotations

from aegis.cli.grammar.keys import keys_of
from aegis.cli.grammar.numbers import whole_number
from aegis.cli.grammar.verb import (
    SECONDS,
    WHOLE,
    TargetDaemon,
    VerbGroup,
    argument,
    as_text,
    flag,
    from_here,
    option,
    verb,
)
from aegis.cli.grammar.words import command_text, in_verbs
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import (
    cell,
    escaped_line,
    print_lines,
    print_notice,
    record_block,
    shown_state,
    table,
)
from aegis.protocol.naming import LOCAL_NODE

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_COMMANDS_HEAD = ["agent", "terminal", "command, shown by: agent output AGENT TERMINAL"]

_LIST_HEAD = ["name", "state", "shell", "pid", "size", "last exit", "subscribers", "cwd"]


@verb(
    argument("name"),
    option("--shell", help="Shell, by path or name; default: $SHELL of the daemon."),
    option("--cwd", help="Directory to start in; default: the daemon's root."),
    option(
        "--env",
        "variables",
        many=True,
        metavar="K=V",
        help="Set a variable; repeatable.",
    ),
    option("--cols", kind=WHOLE, help="Width in columns."),
    option("--rows", kind=WHOLE, help="Height in rows."),
    option(
        "--stderr",
        kind=("merged", "separate"),
        help="Whether records keep standard error separate.",
    ),
    option("--node", help="Node to run on: local, a worker, or a joined host."),
)
def spawn(
    daemon: TargetDaemon,
    name: str,
    cwd: str | None,
    shell: str | None,
    variables: Sequence[str],
    **options: str | int | None,
) -> int:
    """Start the terminal NAME. Exits with 1 if it has failed."""
    env = dict(_variable(given) for given in variables) or None
    places = {"cwd": from_here(cwd), "shell": as_text(shell)}
    reply = daemon.call("term_spawn", name=name, env=env, **places, **options)
    daemon.show(reply, lambda: print_lines(_terminals([reply])))
    return 1 if reply["state"] == "failed" else 0


def _variable(given: str) -> tuple[str, str]:
    name, separator, value = given.partition("=")
    if not (name and separator):
        raise UsageError(f"--env must be NAME=VALUE, not {given!r}")
    return name, value


@verb()
def list_terminals(daemon: TargetDaemon) -> None:
    """List the open terminals."""
    reply = daemon.call("term_list")
    daemon.show(reply, lambda: print_lines(_list(reply)))


def _list(reply: Mapping[str, Any]) -> str:
    commands = [[each["agent"], each["id"], each["command"]] for each in reply.get("of_agents", ())]
    shown = _terminals(reply["result"])
    return f"{shown}\n\n{table(_COMMANDS_HEAD, commands)}" if commands else shown


def _terminals(infos: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of terminals; with their nodes if any runs on a node other than local."""
    shows_nodes = any(info["node"] != LOCAL_NODE for info in infos)
    head = [*_LIST_HEAD, "node"] if shows_nodes else _LIST_HEAD
    rows = [
        [
            info["name"],
            shown_state(info),
            info["shell"],
            info["pid"],
            f"{info['cols']}x{info['rows']}",
            info["last_exit"],
            info["subscribers"],
            info["cwd"],
            *([info["node"]] if shows_nodes else []),
        ]
        for info in infos
    ]
    notices = [f"{each['name']}: {each['notice']}" for each in infos if each.get("notice")]
    return "\n".join([table(head, rows), *notices])


@verb(
    flag("--literal", help="Type KEYS unchanged: do not replace escapes."),
    argument("name"),
    argument("keys"),
)
def keys(daemon: TargetDaemon, name: str, keys: str, literal: bool) -> None:
    r"""Type KEYS on the terminal NAME.

    Escapes in KEYS: \r is Enter, \e Escape, \x03 Ctrl-C; also \n \t \\ \xHH \uHHHH.
    """
    try:
        typed = keys if literal else keys_of(keys)
    except ValueError as error:
        raise UsageError(str(error)) from None
    reply = daemon.call("term_keys", name=name, keys=typed)
    daemon.show(reply, lambda: None)


@verb(argument("name"), argument("signal"))
def send_signal(daemon: TargetDaemon, name: str, signal: str) -> None:
    """Send SIGNAL to the foreground program of the terminal NAME.

    SIGNAL is INT, TERM, HUP, KILL, QUIT, TSTP, STOP, CONT, USR1, USR2 or WINCH, also with SIG
    before it, or its number as in kill(1): 15 is TERM.
    """
    reply = daemon.call("term_signal", name=name, signal=_signal_name(signal))
    daemon.show(reply, lambda: None)


def _signal_name(text: str) -> str:
    """Return the name of the signal ``text``, if that is a number; the daemon refuses the rest."""
    if text.isascii() and text.isdecimal():
        from signal import Signals

        try:
            return Signals(int(text)).name
        except ValueError:  # no signal of this number
            return text
    return text.upper()


@verb(argument("name"), argument("cols"), argument("rows", kind=WHOLE, required=False))
def resize(daemon: TargetDaemon, name: str, cols: str, rows: int | None) -> None:
    """Resize the terminal NAME to COLS columns and ROWS rows.

    The size may also be one word, as `term list` shows it: 100x30.
    """
    try:
        first, x, second = cols.lower().partition("x") if rows is None else (cols, "x", str(rows))
        size = whole_number(first), whole_number(second) if x else None
    except ValueError as error:
        raise UsageError(f"{error}: give the size as 100 30 or 100x30") from None
    if size[1] is None:
        raise UsageError("the number of rows is missing: give the size as 100 30 or 100x30")
    reply = daemon.call("term_resize", name=name, cols=size[0], rows=size[1])
    daemon.show(reply, lambda: print_lines(_terminals([reply])))


@verb(
    option("-n", "last_n", kind=WHOLE, metavar="N", help="Show the newest N records; default 5."),
    option(
        "--since", "since_seq", kind=WHOLE, metavar="SEQ", help="Show those after SEQ; -1: all."
    ),
    option("--before", "before_seq", kind=WHOLE, metavar="SEQ", help="Show the newest before SEQ."),
    flag("--brief", help="Leave out their output."),
    argument("name"),
)
def read(
    daemon: TargetDaemon,
    name: str,
    last_n: int | None,
    since_seq: int | None,
    before_seq: int | None,
    brief: bool,
) -> None:
    """Show the records of finished commands of NAME, oldest first."""
    if since_seq is not None and (last_n is not None or before_seq is not None):
        raise UsageError("give --since without -n and --before")
    reply = daemon.call(
        "term_read",
        name=name,
        last_n=last_n,
        since_seq=since_seq,
        before_seq=before_seq,
        output=False if brief else None,
    )
    daemon.show(reply, lambda: _show_records(name, reply, brief=brief))


def _show_records(name: str, reply: Mapping[str, Any], *, brief: bool) -> None:
    records = reply["result"]
    silent = {"stdout": "", "stderr": ""} if brief else {}
    print_lines("\n\n".join(record_block({**record, **silent}) for record in records))
    if reply.get("damaged"):
        print_notice(
            f"warning: {reply['damaged']} lines of the ledger of {name} cannot be read and were "
            "skipped; find them with: aegis-actors doctor"
        )
    if reply.get("oldest_kept"):
        print_notice(
            f"records before seq {reply['oldest_kept']} of {name} were deleted: all archives and "
            "old records together have reached keep.archive_bytes"
        )
    if reply.get("more") and records:
        print_notice(f"there is more: aegis-actors term read {name} --since {records[-1]['seq']}")


@verb(argument("name"))
def screen(daemon: TargetDaemon, name: str) -> None:
    """Print the screen of the terminal NAME.

    Prints the lines as a person would see them now, and size and cursor on standard error.
    """
    reply = daemon.call("term_screen", name=name)
    daemon.show(reply, lambda: _show_screen(reply))


def _show_screen(reply: Mapping[str, Any]) -> None:
    print_lines("".join(f"{escaped_line(line)}\n" for line in reply["lines"]))
    print_notice(screen_status(reply))


def screen_status(screen: Mapping[str, Any]) -> str:
    """Return the status line of a screen, ``↳ 80x24 · cursor 3,1 · vim``; the cursor is from 1."""
    cursor = screen["cursor"]
    hidden = "" if cursor["visible"] else " (hidden)"
    parts = [
        f"{screen['cols']}x{screen['rows']}",
        f"cursor {cursor['row'] + 1},{cursor['col'] + 1}{hidden}",
        *([screen["title"]] if screen["title"] else []),
        *(["alternate screen"] if screen["alternate"] else []),
        *(["partial"] if screen["partial"] else []),
    ]
    return f"↳ {' · '.join(parts)}"


@verb(
    option(
        "--timeout", kind=SECONDS, help="Seconds for each terminal; default 50, or as configured."
    ),
    argument("names", metavar="NAME...", many=True),
    behind_dashes="words",
)
def broadcast(
    daemon: TargetDaemon, names: Sequence[str], timeout: float | None, words: Sequence[str]
) -> int:
    """Run COMMAND on several terminals at once.

    Exits with 0 if COMMAND exited with 0 on every terminal, else with 1. One word after -- is text
    for the shell; several words are one command, each quoted.
    """
    if not words:
        raise UsageError("put the command after '--': term broadcast web api -- git pull")
    cmd = command_text(words)
    reply = daemon.call("term_broadcast", names=list(names), cmd=cmd, timeout=timeout)
    daemon.show(reply, lambda: _show_outcomes(reply))
    return 0 if all(_succeeded(outcome) for outcome in reply["result"]) else 1


def _succeeded(outcome: Mapping[str, Any]) -> bool:
    record = outcome["record"]
    return record is not None and record["exit"] == 0


def _show_outcomes(reply: Mapping[str, Any]) -> None:
    print_lines("\n\n".join(_block(outcome) for outcome in reply["result"]))
    if reply.get("more"):
        print_notice("long outputs were truncated; read them in full: aegis-actors term read NAME")


def _block(outcome: Mapping[str, Any]) -> str:
    head = escaped_line(f"── {outcome['name']} ──")
    record = outcome["record"]
    body = escaped_line(in_verbs(outcome["error"])) if record is None else record_block(record)
    return f"{head}\n{body}"


@verb(
    option("--pattern", metavar="RE", help="Only commands that match this regular expression."),
    flag("--only-failures", help="Only commands whose exit code is not 0."),
    argument("name"),
)
def subscribe(daemon: TargetDaemon, name: str, pattern: str | None, only_failures: bool) -> None:
    """Get a message when a command finishes on the terminal NAME.

    Messages go to the inbox of the handle given with --as. Subscribing again replaces the options
    of the earlier subscription.
    """
    reply = daemon.call("term_subscribe", name=name, pattern=pattern, only_failures=only_failures)
    daemon.show(reply, lambda: print_lines(f"subscribers: {cell(reply['subscribers'])}"))


@verb(argument("name"))
def unsubscribe(daemon: TargetDaemon, name: str) -> None:
    """End the subscription to the terminal NAME."""
    reply = daemon.call("term_unsubscribe", name=name)
    daemon.show(reply, lambda: None)


@verb(flag("--purge", help="Delete its history too."), argument("name"))
def close(daemon: TargetDaemon, name: str, purge: bool) -> None:
    """Close the terminal NAME.

    Ends its processes. Its history stays readable unless you pass --purge.
    """
    reply = daemon.call("term_close", name=name, purge=purge)
    daemon.show(reply, lambda: None)
    if reply["leftover"]:
        print_notice(
            f"warning: these processes of {name} could not be ended: {cell(reply['leftover'])}"
        )


term = VerbGroup(
    """Shared terminals of people and agents.""",
    {
        "attach": "aegis.cli.attach:attach",
        "broadcast": broadcast,
        "spawn": spawn,
        "list": list_terminals,
        "run": "aegis.cli.run:run",
        "keys": keys,
        "signal": send_signal,
        "resize": resize,
        "read": read,
        "screen": screen,
        "output": "aegis.cli.output:output",
        "wait": "aegis.cli.output:wait",
        "subscribe": subscribe,
        "unsubscribe": unsubscribe,
        "close": close,
    },
)

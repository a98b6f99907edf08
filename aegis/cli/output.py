"""The verbs ``term output`` and ``term wait``."""

from __future__ import annotations

import sys

from aegis.cli.grammar.verb import SECONDS, WHOLE, TargetDaemon, argument, flag, option, verb
from aegis.cli.printing.failures import UsageError, report_error
from aegis.cli.printing.formatting import (
    EXIT_UNKNOWN,
    escaped,
    escaped_line,
    exit_code_of,
    print_json,
    print_lines,
    print_notice,
    record_block,
)
from aegis.client.line import CommandFailed, LineClient

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FOLLOW_S = 50.0
"""Seconds that one call waits for output before the next call."""

READ_BYTES = 262_144


@verb(
    option(
        "--cursor",
        kind=WHOLE,
        metavar="N",
        help="Print from this byte offset; default: the last command.",
    ),
    flag("--follow", "-f", help="Print new output until Ctrl-C."),
    flag("--raw", help="Print the bytes unchanged, with escape sequences."),
    argument("name"),
)
def output(daemon: TargetDaemon, name: str, cursor: int | None, follow: bool, raw: bool) -> None:
    """Print the output of the terminal NAME.

    Prints the output of the current command or, if none is running, of the last one. With --raw
    your terminal obeys the escape sequences in it.
    """
    if daemon.as_json and follow:
        raise UsageError("--json prints one reply: leave out --follow")
    arguments: dict[str, object] = {
        "name": name,
        "cursor": cursor,
        "max_bytes": READ_BYTES,
        "plain": not raw,
    }
    if daemon.as_json:
        print_json(daemon.call("term_output", **arguments))
        return
    with daemon.connect() as client:
        text = ""
        for reply in _replies(daemon, client, arguments, follow=follow):
            _show(reply, raw=raw)
            text = reply["text"] or text
    if sys.stdout.isatty() and text[-1:] not in ("", "\n"):
        sys.stdout.write("\n")  # so that your prompt begins on a line of its own


def _replies(
    daemon: TargetDaemon, client: LineClient, arguments: dict[str, object], *, follow: bool
) -> Iterator[Mapping[str, Any]]:
    """Yield the replies: to the end of the output or, with ``follow``, of the terminal."""
    while True:
        try:
            reply = client.call("term_output", daemon.with_handle(arguments))
        except CommandFailed as error:
            if not follow or error.code != "unavailable" or "wait_s" not in arguments:
                raise
            report_error(error, as_json=False)
            return
        yield reply
        if follow:
            arguments["wait_s"] = FOLLOW_S
        elif reply["next_cursor"] == reply["cursor"]:
            return
        arguments["cursor"] = reply["next_cursor"]


def _show(reply: Mapping[str, Any], *, raw: bool) -> None:
    if reply["dropped"]:
        print_notice(f"… {reply['dropped']} bytes are no longer kept …")
    sys.stdout.write(reply["text"] if raw else escaped(reply["text"]))
    sys.stdout.flush()


@verb(
    option("--seq", kind=WHOLE, metavar="N", help="Wait for this command; default: the current."),
    option("--pattern", metavar="RE", help="Return also when the output matches."),
    option(
        "--idle",
        "idle_s",
        kind=SECONDS,
        metavar="S",
        help="Return also after S quiet seconds.",
    ),
    option("--cursor", kind=WHOLE, metavar="N", help="Search the pattern from this offset."),
    option(
        "--timeout",
        kind=SECONDS,
        metavar="S",
        help="Seconds to wait at most; default 50, or as configured.",
    ),
    argument("name"),
)
def wait(daemon: TargetDaemon, name: str, **conditions: int | float | str | None) -> int:
    """Wait until a command on the terminal NAME ends.

    Exits with the command's exit code when the command ended, with 0 when the pattern matched or
    the terminal was idle for S seconds, and with 125 otherwise: the time ran out, the terminal was
    closed, or the command waits for input.
    """
    reply = daemon.call("term_wait", name=name, **conditions)
    daemon.show(reply, lambda: _show_outcome(reply))
    return _exit_code(reply)


def _show_outcome(reply: Mapping[str, Any]) -> None:
    if reply["match"] is not None:
        print_lines(escaped(reply["match"]))
    elif reply["record"] is not None:
        print_lines(record_block(reply["record"]))
    print_notice(escaped_line(f"↳ {reply['reason'].replace('_', ' ')} · cursor {reply['cursor']}"))


def _exit_code(reply: Mapping[str, Any]) -> int:
    if reply["reason"] in ("matched", "idle"):
        return 0
    if reply["reason"] != "ended":
        return EXIT_UNKNOWN
    return 0 if reply["record"] is None else exit_code_of(reply["record"])

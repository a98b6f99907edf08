"""One command on several terminals: ``term broadcast``."""

from __future__ import annotations

from aegis.cli.grammar.verb import SECONDS, Daemon, argument, option, verb
from aegis.cli.grammar.words import command_text, in_verbs
from aegis.cli.printing.failing import UsageError
from aegis.cli.printing.show import escaped_line, print_lines, record_block, say

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


@verb(
    option(
        "--timeout", kind=SECONDS, help="Seconds for each terminal; default 50, or as configured."
    ),
    argument("names", metavar="NAME...", many=True),
    behind_dashes="words",
)
def broadcast(
    daemon: Daemon, names: Sequence[str], timeout: float | None, words: Sequence[str]
) -> int:
    """Run COMMAND on all the terminals NAME at once.

    Exits with 0 if it did everywhere, with 1 if somewhere it failed or its exit code is not known.
    One word behind -- is text for the shell; several are one command, each word kept whole.
    """
    if not words:
        raise UsageError("put the command behind '--': term broadcast web api -- git pull")
    cmd = command_text(words)
    reply = daemon.call("term_broadcast", names=list(names), cmd=cmd, timeout=timeout)
    daemon.show(reply, lambda: _show(reply))
    return 0 if all(_went_well(outcome) for outcome in reply["result"]) else 1


def _went_well(outcome: Mapping[str, Any]) -> bool:
    record = outcome["record"]
    return record is not None and record["exit"] == 0


def _show(reply: Mapping[str, Any]) -> None:
    print_lines("\n\n".join(_block(outcome) for outcome in reply["result"]))
    if reply.get("more"):
        say("long outputs were cut; whole: aegis-actors term read NAME")


def _block(outcome: Mapping[str, Any]) -> str:
    head = escaped_line(f"── {outcome['name']} ──")
    record = outcome["record"]
    body = escaped_line(in_verbs(outcome["error"])) if record is None else record_block(record)
    return f"{head}\n{body}"

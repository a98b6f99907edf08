"""``term run``: a command on a terminal, shown as it runs; exits as the command did."""

from __future__ import annotations

from aegis.cli.grammar.verb import SECONDS, Daemon, argument, option, verb
from aegis.cli.grammar.words import command_text
from aegis.cli.printing.failures import UsageError, report_error
from aegis.cli.printing.formatting import EXIT_UNKNOWN, print_json
from aegis.cli.printing.run import LONGEST_S, LiveRun, exit_code
from aegis.client.line import ClientError

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence


@verb(
    option("--timeout", kind=SECONDS, help="Seconds for the whole call; default: no limit."),
    argument("name"),
    argument("command", many=True),
    options_first=True,
)
def run(daemon: Daemon, name: str, command: Sequence[str], timeout: float | None) -> int:
    """Run COMMAND on the terminal NAME.

    Shows what it prints as it comes. Exits with the exit code of the command, and with 125 when
    that is not known: the call failed, or time ran out. Ctrl-C interrupts the command, or gives up
    waiting for the terminal; a second one leaves the command alone.

    One word is text for the shell (`run build 'cd /tmp && ls'`); several are one command, each word
    kept whole. Options stand before NAME: everything behind it is the command.
    """
    if command[0].startswith("-"):
        raise UsageError("options stand before the terminal's name")
    text = command_text(command)
    try:
        if not daemon.as_json:
            return LiveRun(daemon, name, text, timeout).run()
        seconds = LONGEST_S if timeout is None else timeout
        record = daemon.call("term_run", name=name, cmd=text, timeout=seconds)
    except ClientError as error:
        report_error(error, as_json=daemon.as_json)
        return EXIT_UNKNOWN
    print_json(record)
    return exit_code(name, record)

"""The verb ``term run``: run a command and exit with its exit code."""

from __future__ import annotations

from aegis.cli.grammar.verb import SECONDS, TargetDaemon, argument, option, text_or_input, verb
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
def run(daemon: TargetDaemon, name: str, command: Sequence[str], timeout: float | None) -> int:
    """Run COMMAND on the terminal NAME and print its output.

    Exits with the exit code of COMMAND, or with 125 if it is not known: the call failed, or the
    time ran out. The first Ctrl-C interrupts the command or, if the terminal is still busy with
    another one, stops waiting for it. The second Ctrl-C leaves the command running.

    One word is text for the shell (`run build 'cd /tmp && ls'`), and `-` reads that text from the
    standard input; several words are one command, each quoted. Options go before COMMAND, or after
    a COMMAND in quotes.
    """
    if command[0].startswith("-") and command[0] != "-":
        raise UsageError(f"{command[0]!r} is no option of term run, and no command begins so")
    text = text_or_input(command_text(command))
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

"""``term run``: a command on a terminal, shown as it runs; exits as the command did."""

from __future__ import annotations

from collections.abc import Sequence

import click

from aegis.cli.run_end import exit_code
from aegis.cli.run_shown import LONGEST_S, ShownRun
from aegis.cli.show import EXIT_UNKNOWN, print_json, say
from aegis.cli.verb import Daemon, verb
from aegis.cli.words import command_text
from aegis.client.line import ClientError

_OPTIONS_FIRST = {"allow_interspersed_args": False}


@click.command(context_settings=_OPTIONS_FIRST)
@click.option("--timeout", type=float, help="Seconds for the whole call; default: no limit.")
@click.argument("name")
@click.argument("command", nargs=-1, required=True)
@verb
def run(daemon: Daemon, name: str, command: Sequence[str], timeout: float | None) -> int:
    """Run COMMAND on the terminal NAME.

    Shows what it prints as it comes. Exits with the exit code of the command, and with 125 when
    that is not known: the call failed, or time ran out. Ctrl-C interrupts the command, or gives up
    waiting for the terminal; a second one leaves the command alone.

    One word is text for the shell (`run build 'cd /tmp && ls'`); several are one command, each word
    kept whole. Options stand before NAME: everything behind it is the command.
    """
    if command[0].startswith("-"):
        raise click.UsageError("options stand before the terminal's name")
    text = command_text(command)
    try:
        if not daemon.as_json:
            return ShownRun(daemon, name, text, timeout).run()
        seconds = LONGEST_S if timeout is None else timeout
        record = daemon.call("term_run", name=name, cmd=text, timeout=seconds)
    except ClientError as error:
        say(f"aegis-actors: {error}")
        return EXIT_UNKNOWN
    print_json(record)
    return exit_code(name, record)

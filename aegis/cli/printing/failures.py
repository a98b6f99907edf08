"""Failures of a verb: their messages and exit codes. Standard library only."""

from __future__ import annotations

import sys

from aegis.cli.grammar.words import in_verbs
from aegis.cli.printing import standard_streams
from aegis.cli.printing.formatting import print_error, print_notice
from aegis.cli.printing.standard_streams import OutputLost
from aegis.client.line import ClientError, CommandFailed, ConnectionLost, NoDaemon

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = "aegis-actors"
FAILED, USAGE, INTERRUPTED = 1, 2, 130


class UsageError(Exception):
    """Wrong usage of a verb; the text is one sentence."""


def report(sentence: str, code: str, *, as_json: bool) -> None:
    """Print a failure: a line on standard error and, with ``as_json``, JSON on standard output."""
    if as_json:
        print_error(sentence, code)
    print_notice(f"{PROGRAM}: {sentence}")


def print_notes(error: BaseException | None) -> None:
    """Print the notes of an error: what continues after a wait that was cut."""
    for note in getattr(error, "__notes__", ()):
        print_notice(note)


def report_error(error: ClientError, *, as_json: bool) -> None:
    """Print the sentence of a failed call."""
    report(in_verbs(str(error)), code_of(error), as_json=as_json)


def code_of(error: ClientError) -> str:
    """Return the stable code of ``error``: the daemon's, or the code of a connection failure."""
    if isinstance(error, CommandFailed):
        return error.code
    if isinstance(error, NoDaemon):
        return "no_daemon"
    return "connection_lost" if isinstance(error, ConnectionLost) else "failed"


def exit_code(run: Callable[[], int], path: str, *, as_json: bool) -> int:
    """Call ``run``, flush the output, and return the exit code; print the message of a failure.

    ``path`` is the verb with the program's name: ``aegis-actors term list``.
    """
    try:
        code = _reported(run, path, as_json=as_json)
        standard_streams.flush()
    except (OutputLost, BrokenPipeError) as error:
        standard_streams.discard()
        if why := standard_streams.reason(error):
            print_notice(f"{PROGRAM}: {why}")
        return FAILED
    return code


def _reported(run: Callable[[], int], path: str, *, as_json: bool) -> int:
    try:
        return run()
    except UsageError as error:
        report(f"{error}; see: {path} --help", "usage", as_json=as_json)
        return USAGE
    except ClientError as error:
        report_error(error, as_json=as_json)
        print_notes(error)
        return FAILED
    except (KeyboardInterrupt, EOFError) as error:
        sys.stderr.write("\n")  # end the line on which the tty has shown ^C
        report("interrupted", "interrupted", as_json=as_json)
        print_notes(error)
        return INTERRUPTED

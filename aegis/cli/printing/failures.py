"""How a verb fails: what is printed, and the exit code. Standard library only."""

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
    """A verb was used wrongly; the text is one sentence."""


def report(sentence: str, code: str, *, as_json: bool) -> None:
    """Print a failure: a line on standard error and, with ``as_json``, JSON on standard output."""
    if as_json:
        print_error(sentence, code)
    print_notice(f"{PROGRAM}: {sentence}")


def report_error(error: ClientError, *, as_json: bool) -> None:
    """Print why a call failed."""
    report(in_verbs(str(error)), code_of(error), as_json=as_json)


def code_of(error: ClientError) -> str:
    """The stable code of ``error``: the daemon's own, or that of a failure on the way to it."""
    if isinstance(error, CommandFailed):
        return error.code
    if isinstance(error, NoDaemon):
        return "no_daemon"
    return "connection_lost" if isinstance(error, ConnectionLost) else "failed"


def exit_code(run: Callable[[], int], path: str, *, as_json: bool) -> int:
    """Do ``run``, write what is buffered, and return the exit code; report what goes wrong.

    ``path`` is the verb with the program's name, as in ``aegis-actors term list``.
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
        return FAILED
    except (KeyboardInterrupt, EOFError):
        sys.stderr.write("\n")  # behind the ^C that the tty has shown
        report("interrupted", "interrupted", as_json=as_json)
        return INTERRUPTED

"""The entry point of ``aegis-actors``.

A correct command line of a frequent verb is parsed and run without click: to import click takes
longer than the verb's whole call of the daemon. Everything else (help, completion, wrong usage, the
other verbs) goes through ``aegis.cli.grammar.click_program``.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 130 interrupted; ``term run`` has its own.
"""

from __future__ import annotations

import os
import sys

from aegis.cli.grammar.parsing import read_line
from aegis.cli.printing import standard_streams
from aegis.cli.printing.failures import PROGRAM, exit_code

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn

COMPLETING = "_AEGIS_ACTORS_COMPLETE"
"""The variable that a shell sets when TAB is pressed."""


def main() -> NoReturn:
    """Run the installed program, and exit with the verb's exit code."""
    standard_streams.prepare()
    line = None if COMPLETING in os.environ else read_line(sys.argv[1:])
    if line is None:
        # Imported late: click takes longer to import than everything else.
        from aegis.cli.grammar.click_program import cli

        cli.main()
    path = " ".join((PROGRAM, *line.words))
    sys.exit(exit_code(line.run, path, as_json=bool(line.given.get("as_json"))))

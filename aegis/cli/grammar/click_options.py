"""Options and helpers shared by the verbs written as click commands, such as ``up``."""

from __future__ import annotations

from pathlib import Path

import click

from aegis.cli.grammar import verb
from aegis.cli.grammar.verb import Globals
from aegis.cli.printing.failures import UsageError

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)

root_option = click.option("--root", type=DIRECTORY, help=verb.ROOT.help)
json_option = click.option("--json", "as_json", is_flag=True, help=verb.JSON.help)


def root_before() -> Path | None:
    """Return the directory given by ``--root`` before the verb; None if not given."""
    before = click.get_current_context().find_object(Globals) or Globals()
    return None if before.root is None else Path(before.root)


def here() -> Path:
    """Return the current directory. Raises ``click.UsageError`` if it was deleted."""
    try:
        return Path(verb.here())
    except UsageError as error:
        raise click.UsageError(str(error)) from None

"""The verb ``config check``: validate ``.aegis.yaml``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from aegis.cli.grammar.click_options import DIRECTORY, here, json_option, root_before
from aegis.cli.printing.formatting import escaped_line, print_json, print_lines, print_notice, table
from aegis.state.root import CONFIG_NAME, find_root

BAD_CONFIGURATION = 2
"""Exit code of a verb that cannot use the configuration."""

MAX_SHOWN_CHARS = 60

_HEAD = ["key", "value", "from"]


@click.group()
def config() -> None:
    """Check the configuration file of a root, .aegis.yaml."""


@config.command()
@click.option("--root", type=DIRECTORY, help="Read the file of exactly this directory.")
@json_option
def check(root: Path | None, as_json: bool) -> int:
    """Validate .aegis.yaml and print the values in effect.

    Without --root it reads the nearest .aegis.yaml, from the current directory upwards. Exits with
    2 if the file has errors. Needs no daemon. A running daemon keeps the configuration that it
    read when it started.
    """
    # Imported late: it brings libraries that no other verb needs.
    from aegis.configuration.file import read_configuration
    from aegis.configuration.problems import BadConfiguration

    given = root or root_before()
    path = (given.resolve() if given else find_root(here())) / CONFIG_NAME
    try:
        parsed = read_configuration(path)
    except BadConfiguration as error:
        if not as_json:
            return print_errors(error.lines())
        print_json(_refusal(path, error))
        return BAD_CONFIGURATION
    _show(path, parsed, as_json=as_json)
    return 0


def print_errors(lines: Iterable[str]) -> int:
    """Print the errors of a configuration, one line each; return the exit code."""
    for line in lines:
        print_notice(f"aegis-actors: {line}")
    return BAD_CONFIGURATION


def _show(path: Path, parsed: Any, *, as_json: bool) -> None:
    from aegis.configuration.file import warnings_of
    from aegis.configuration.sections import effective_values

    values = effective_values(parsed.configuration)
    warnings = list(warnings_of(parsed.configuration))
    if as_json:
        given = list(parsed.given)
        found = {"file": str(path), "ok": True, "values": values, "given": given}
        print_json({**found, "warnings": warnings, "problems": [], "more_problems": 0})
        return
    sources = dict.fromkeys(parsed.given, "the file")
    is_there = os.path.lexists(path)
    print_lines(
        escaped_line(f"read {path}" if is_there else f"there is no {path}: all values are defaults")
    )
    rows = [[name, _plain(value), sources.get(name, "default")] for name, value in values.items()]
    print_lines(table(_HEAD, rows))
    for warning in warnings:
        print_notice(f"aegis-actors: warning: {path}: {warning}")


def _plain(value: object) -> object:
    """Return a value for the table; an empty list or mapping is no value."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.16g}"
        case list() | tuple():
            return " ".join(map(str, value)) or None
        case dict():
            return " ".join(f"{name}={each}" for name, each in value.items()) or None
        case str() if len(value) > MAX_SHOWN_CHARS:
            return value[: MAX_SHOWN_CHARS - 1] + "…"
    return value


def _refusal(path: Path, error: Any) -> dict[str, Any]:
    problems = [
        {
            "line": None if each.place is None else each.place.line,
            "column": None if each.place is None else each.place.column,
            "key": each.key or None,
            "sentence": each.sentence,
        }
        for each in error.problems
    ]
    found = {"file": str(path), "ok": False, "values": {}, "given": [], "warnings": []}
    return {**found, "problems": problems, "more_problems": error.more}

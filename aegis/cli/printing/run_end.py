"""How ``term run`` ends: the last lines on standard error, and the exit code."""

from __future__ import annotations

import sys

from aegis.cli.printing.show import chip, escaped, exit_code_of, say

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def show_end(name: str, record: Mapping[str, Any], *, errors: str, last: str) -> int:
    """Print the end of a run on standard error; gives the exit code.

    ``errors`` is what is still to be shown of the command's standard error, and ``last`` the last
    character that standard output has got.
    """
    sys.stderr.write(escaped(errors))
    if sys.stderr.isatty() and (errors or last)[-1:] not in ("", "\n"):
        sys.stderr.write("\n")
    say(chip(record))
    return exit_code(name, record)


def exit_code(name: str, record: Mapping[str, Any]) -> int:
    """The command's own exit code; if it is not known, the reason is said."""
    if record["exit"] is None:
        say(f"aegis-actors: {_why_unknown(record)}; {_what_to_do(name, record)}")
    return exit_code_of(record)


def _why_unknown(record: Mapping[str, Any]) -> str:
    command = f"the command (seq {record['seq']})"
    needs = record["needs_input"]
    if record["end"] is not None:
        return f"the exit code of {command} is not known: {record['end'].replace('_', ' ')}"
    if needs is not None:
        what = "a secret" if needs["kind"] == "secret" else "input"
        return f"{command} goes on: {needs['program']} waits for {what}"
    return f"{command} goes on: the time for the call ran out"


def _what_to_do(name: str, record: Mapping[str, Any]) -> str:
    if record["needs_input"] is not None:
        return (
            f"answer with: aegis-actors term keys {name} 'TEXT\\r'; "
            f"see: aegis-actors term screen {name}"
        )
    return f"see: aegis-actors term read {name}"

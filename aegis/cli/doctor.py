"""The verb ``doctor``: check the machine, the state of a root and the shells; repair the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from aegis.cli.grammar.click_options import here, json_option, root_before, root_option
from aegis.cli.printing.formatting import escaped_line, print_json, print_lines, print_notice
from aegis.state.root import StatePaths, find_root


@click.command()
@root_option
@click.option("--repair", is_flag=True, help="Repair the state first; nothing is deleted.")
@json_option
def doctor(root: Path | None, repair: bool, as_json: bool) -> int:
    """Check that everything works, and print what to do.

    Exits with 1 if there is a problem. Needs no daemon; with --repair, no daemon may be running.
    """
    from aegis.doctor import finding

    state = StatePaths(find_root(root or root_before() or here()))
    found = []
    for each in _findings(state, repair=repair):
        found.append(each)
        if not as_json:
            print_lines(_line(each))
    if not as_json:
        print_notice(f"↳ {summary(found)}")
    else:
        print_json({"root": str(state.root), "findings": [_plain(each) for each in found]})
    return 1 if finding.has_problem(found) else 0


def summary(found: Sequence[Any]) -> str:
    """Return the number of problems and warnings, as a sentence."""
    counts = Counter(each.level.value for each in found)
    shown = [
        f"{count} {level}{'s' if count > 1 else ''}"
        for level in ("problem", "warning")
        if (count := counts[level])
    ]
    return ", ".join(shown) or "all is well"


def _findings(state: StatePaths, *, repair: bool) -> Iterator[Any]:
    from aegis.doctor import examination

    if repair:
        yield from examination.repair(state)
    yield from examination.examine(state)


def _line(found: Any) -> str:
    text = f"{found.level.value:<8} {found.subject}: {found.sentence}"
    return escaped_line(f"{text} → {found.remedy}" if found.remedy else text)


def _plain(found: Any) -> dict[str, str]:
    return {
        "subject": found.subject,
        "level": found.level.value,
        "sentence": found.sentence,
        "remedy": found.remedy,
    }

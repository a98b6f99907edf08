"""The observations of each CLI, kept for a table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.agents_real.model_server.script import Json

RESULTS = Path(__file__).resolve().parents[2] / ".agents"
"""A directory of the checkout that git ignores; a file for each CLI, and ``table.md``."""


def keep(name: str, seen: Json) -> None:
    """Keep the results of a CLI, in place of older ones."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"agent": name, **seen}))


def table(results: Iterable[Json]) -> str:
    """Return a table in Markdown with a line for each CLI."""
    rows = list(results)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[str(row.get(column, "-")) for column in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)

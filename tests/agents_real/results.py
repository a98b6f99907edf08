"""The observations of each CLI, kept for the tables of a page.

The part ``driver`` is a session with the driver alone, the part ``daemon`` one of a daemon.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from tests.agents_real.model_server.script import Json

RESULTS = Path(__file__).resolve().parents[2] / ".agents"
"""A directory of the checkout that git ignores, with a file for each part of each CLI."""

Part = Literal["driver", "daemon", "commands", "plan", "images", "mentions"]
PARTS: tuple[Part, ...] = ("driver", "daemon", "commands", "images", "mentions")


def keep(name: str, part: Part, seen: Json) -> None:
    """Keep the results of a CLI, in place of older ones."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.{part}.json").write_text(json.dumps(seen))


def kept(part: Part, since: float = 0.0) -> dict[str, Json]:
    """Return the results of CLIs by their names, as far as they are newer than a Unix time."""
    files = sorted(RESULTS.glob(f"*.{part}.json"))
    new = [path for path in files if path.stat().st_mtime > since]
    return {path.name.partition(".")[0]: json.loads(path.read_text()) for path in new}


def table(results: Iterable[Json]) -> str:
    """Return a table in Markdown with a line for each row; their keys are the columns."""
    rows = list(results)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[str(row.get(column, "-")) for column in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)

"""The check of the archive: its size, its oldest rows, and files that cannot be read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator

from aegis.configuration.file import read_configuration
from aegis.configuration.problems import BadConfiguration
from aegis.configuration.sections import Parsed
from aegis.doctor.files import every_file
from aegis.doctor.finding import Finding, ok, warning
from aegis.journal.archive import ROWS
from aegis.state.root import CONFIG_NAME, State

NEARLY = 0.9
"""The part of the limit from which on the next rows delete the oldest ones soon."""


def examine_archive(state: State) -> Iterator[Finding]:
    """Yield a finding for each file that cannot be read, and the size. Raises ``OSError``."""
    files = sorted(
        (each for each in every_file(state.archive) if each.name.endswith(ROWS)),
        key=lambda each: each.name,
    )
    if not files:
        yield ok("archive", "empty")
        return
    for path in files:
        try:
            gzip.decompress(path.read_bytes())
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            name = path.relative_to(state.directory)
            yield warning("archive", f"{name} is damaged: {error}", "replace it by a good copy")
    size = sum(each.stat().st_size for each in files)
    limit = _limit(state)
    oldest = files[0].name[: len("2026-11-27")]
    sentence = f"{len(files)} files since {oldest}, {size} of {limit} bytes"
    if size >= NEARLY * limit:
        yield warning(
            "archive",
            f"{sentence}: the oldest are deleted",
            f"copy {state.archive} away, or raise keep.archive_bytes in {CONFIG_NAME}",
        )
    else:
        yield ok("archive", sentence)


def _limit(state: State) -> int:
    try:
        parsed = read_configuration(state.root / CONFIG_NAME)
    except BadConfiguration:
        parsed = Parsed()  # its own check reports it
    return parsed.configuration.keep.archive_bytes

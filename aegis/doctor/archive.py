"""The check of the archive and of old records: their size, and files that cannot be read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator

from aegis.configuration.file import read_configuration
from aegis.configuration.problems import BadConfiguration
from aegis.configuration.sections import Parsed
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.errors import StorageError
from aegis.journal.disk import OsDisk
from aegis.journal.old_files import old_files
from aegis.state.root import CONFIG_NAME, StatePaths

NEARLY = 0.9
"""The part of the limit from which on the next rows delete the oldest ones soon."""


def examine_archive(state: StatePaths) -> Iterator[Finding]:
    """Yield a finding for each file that cannot be read, and the size. Raises ``OSError``."""
    try:
        found = old_files(OsDisk(), state.directory)
    except StorageError as error:
        yield problem("archive", str(error), "give this user the right to read it")
        return
    if not found:
        yield ok("archive", "empty")
        return
    size = 0
    for path in (each.path for each in found):
        try:
            size += path.stat().st_size
            if path.suffix == ".gz":
                gzip.decompress(path.read_bytes())
        except FileNotFoundError:
            continue  # a daemon has replaced or deleted it meanwhile
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            name = path.relative_to(state.directory)
            yield warning("archive", f"{name} is damaged: {error}", "replace it by a good copy")
    limit = _limit(state)
    oldest = found[0].written_at[: len("2026-11-27")]
    sentence = f"{len(found)} files since {oldest}, {size} of {limit} bytes"
    if size >= NEARLY * limit:
        yield warning(
            "archive",
            f"{sentence}: the oldest are deleted",
            f"copy {state.directory} away, or raise keep.archive_bytes in {CONFIG_NAME}",
        )
    else:
        yield ok("archive", sentence)


def _limit(state: StatePaths) -> int:
    try:
        parsed = read_configuration(state.root / CONFIG_NAME)
    except BadConfiguration:
        parsed = Parsed()  # its own check reports it
    return parsed.configuration.keep.archive_bytes

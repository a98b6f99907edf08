"""Checks and repair of the state directory: modes, owners, leftovers, keys, version."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from aegis.daemon_process import STATE_VERSION
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.servers.access.auth import decode
from aegis.state.root import StatePaths
from aegis.state.state_files import read_safely

ASIDE = "aside"
"""The directory below the state that ``--repair`` moves files to."""

MAX_SHOWN = 5
MAX_KEYS_BYTES = 16 * 1024 * 1024
REPAIR = "with no daemon running: aegis-actors doctor --repair"

_MODES = {stat.S_IFDIR: 0o700, stat.S_IFREG: 0o600, stat.S_IFSOCK: 0o600}


def examine_modes(state: StatePaths) -> Iterator[Finding]:
    """Check that no other user owns the files or may access them. Raises ``OSError``."""
    open_to_others, foreign = [], []
    for path, found in _present(every_file(state.directory)):
        if found.st_uid != os.geteuid():
            foreign.append(path)
        elif _is_open_to_others(path, found):
            open_to_others.append(path)
    if foreign:
        sentence = f"{_some(state, foreign)} belong to another user"
        yield problem("owner", sentence, "start the daemon always as the same user")
    if open_to_others:
        yield problem("modes", f"other users may access {_some(state, open_to_others)}", REPAIR)
    if not foreign and not open_to_others:
        yield ok("modes", "no other user may read or write the state")


def repair_modes(state: StatePaths) -> Iterator[Finding]:
    """Remove the permissions of other users."""
    for path, found in _present(every_file(state.directory)):
        if found.st_uid == os.geteuid() and _is_open_to_others(path, found):
            mode = _MODES[stat.S_IFMT(found.st_mode)]
            path.chmod(mode)
            yield ok("modes", f"{path.relative_to(state.directory)} has mode {mode:04o} again")


def examine_leftovers(state: StatePaths, *, is_in_use: bool) -> Iterator[Finding]:
    """Check for files of unfinished writes and purges, and an endpoint without a daemon."""
    left = [] if is_in_use else leftovers(state)
    if left:
        yield warning("leftovers", f"{_some(state, left)} were left by a crash", REPAIR)
    else:
        yield ok("leftovers", "none")


def leftovers(state: StatePaths) -> list[Path]:
    """Return the leftovers of a crash; only valid if no daemon runs."""
    found = [each for each in every_file(state.directory) if each.name.endswith(".new")]
    if state.terminals.is_dir():
        found += [each for each in state.terminals.iterdir() if each.name.startswith(".purged-")]
    if os.path.lexists(state.endpoint):
        found.append(state.endpoint)
    return sorted(each for each in found if not any(above in found for above in each.parents))


def examine_keys(state: StatePaths) -> Iterator[Finding]:
    """Check that the keys can be read: without them a daemon does not start."""
    try:
        data = read_safely(str(state.keys), MAX_KEYS_BYTES)
        held = None if data is None else decode(data)
    except (OSError, ValueError) as error:
        remedy = f"{REPAIR}; every session URL changes"
        yield problem("keys", f"{state.keys.name} cannot be used: {error}", remedy)
    else:
        yield ok("keys", "none yet" if held is None else f"{len(held.sessions)} sessions")


def examine_version(state: StatePaths) -> Iterator[Finding]:
    """Check that this program supports the version of the state."""
    path = state.directory / "version"
    text = (read_safely(str(path), 4096) or b"").decode("ascii", "replace").strip("\0\n ")
    if text and (not text.isdecimal() or int(text) > STATE_VERSION):
        sentence = f"the state is of version {text[:20]!r}, made by a newer aegis-actors"
        yield problem("version", sentence, "upgrade aegis-actors")
    else:
        yield ok("version", f"the state has {text or 'none yet'}, {STATE_VERSION} is supported")


def repair_files(state: StatePaths) -> Iterator[Finding]:
    """Move leftovers and unreadable keys to the directory ``ASIDE``. Nothing is deleted."""
    taken = leftovers(state)
    if any(each.remedy for each in examine_keys(state)):
        taken.append(state.keys)
    for path in taken:
        kept = quarantine(state, path)
        shown = path.relative_to(state.directory)
        yield ok("aside", f"{shown} was moved to {kept.relative_to(state.directory)}")


def quarantine(state: StatePaths, path: Path) -> Path:
    """Move ``path`` to a new name in the directory ``ASIDE``; return the new path."""
    aside = state.directory / ASIDE
    aside.mkdir(mode=0o700, exist_ok=True)
    plain = "-".join(path.relative_to(state.directory).parts)
    number = 0
    while (kept := aside / f"{plain}.{number}").exists():
        number += 1
    return path.rename(kept)


def every_file(directory: Path) -> Iterator[Path]:
    """Yield a directory and all files below it except ``ASIDE``; no link is followed."""
    if not directory.is_dir():
        return
    yield directory
    for above, names, files in os.walk(directory, onerror=_raise):
        if Path(above) == directory and ASIDE in names:
            names.remove(ASIDE)
        yield from (Path(above, name) for name in (*names, *files))


def _present(paths: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the paths with their stat; without those that a daemon has renamed meanwhile."""
    for path in paths:
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        yield path, found


def _is_open_to_others(path: Path, found: os.stat_result) -> bool:
    if stat.S_IFMT(found.st_mode) not in _MODES or path.name.startswith("typed."):
        return False  # shells make the typed.* files, in a directory that is private
    return bool(stat.S_IMODE(found.st_mode) & 0o077)


def _some(state: StatePaths, paths: list[Path]) -> str:
    shown = [str(each.relative_to(state.root)) for each in paths[:MAX_SHOWN]]
    more = f" and {len(paths) - MAX_SHOWN} more" if len(paths) > MAX_SHOWN else ""
    return ", ".join(shown) + more


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a daemon has removed the directory meanwhile
        raise error

"""The files of a state directory: modes, owners, what was left over, what cannot be read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from aegis.daemon_process import STATE_VERSION
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.servers.access.auth import decode
from aegis.state.root import State
from aegis.state.state_files import read_safely

ASIDE = "aside"
"""Where ``--repair`` puts what it takes away, below the state's directory."""

MAX_SHOWN = 5
MAX_KEYS_BYTES = 16 * 1024 * 1024
REPAIR = "aegis-actors doctor --repair"

_MODES = {stat.S_IFDIR: 0o700, stat.S_IFREG: 0o600, stat.S_IFSOCK: 0o600}


def examine_modes(state: State) -> Iterator[Finding]:
    """Whether others may read or write what is ours, or own it. Raises ``OSError``."""
    open_to_others, foreign = [], []
    for path in every_file(state.directory):
        found = path.lstat()
        if found.st_uid != os.geteuid():
            foreign.append(path)
        elif _is_open_to_others(path, found):
            open_to_others.append(path)
    if foreign:
        sentence = f"{_some(state, foreign)} belong to another user"
        yield problem("owner", sentence, "start the daemon as one user, always the same")
    if open_to_others:
        yield problem("modes", f"others may use {_some(state, open_to_others)}", REPAIR)
    if not foreign and not open_to_others:
        yield ok("modes", "nobody else may read or write the state")


def repair_modes(state: State) -> Iterator[Finding]:
    """Take away from others what they may do."""
    for path in every_file(state.directory):
        found = path.lstat()
        if found.st_uid == os.geteuid() and _is_open_to_others(path, found):
            mode = _MODES[stat.S_IFMT(found.st_mode)]
            path.chmod(mode)
            yield ok("modes", f"{path.relative_to(state.directory)} has mode {mode:04o} again")


def examine_leftovers(state: State, *, is_in_use: bool) -> Iterator[Finding]:
    """Files of writes and purges that were cut short, an endpoint without a daemon."""
    left = [] if is_in_use else leftovers(state)
    if left:
        yield warning("leftovers", f"{_some(state, left)} were left by a crash", REPAIR)
    else:
        yield ok("leftovers", "none")


def leftovers(state: State) -> list[Path]:
    """What no daemon is at work on, where none runs."""
    found = [each for each in every_file(state.directory) if each.name.endswith(".new")]
    if state.terminals.is_dir():
        found += [each for each in state.terminals.iterdir() if each.name.startswith(".purged-")]
    if os.path.lexists(state.endpoint):
        found.append(state.endpoint)
    return sorted(each for each in found if not any(above in found for above in each.parents))


def examine_keys(state: State) -> Iterator[Finding]:
    """Whether the keys can be read: a daemon does not start without."""
    try:
        data = read_safely(str(state.keys), MAX_KEYS_BYTES)
        held = None if data is None else decode(data)
    except (OSError, ValueError) as error:
        remedy = f"{REPAIR}; then every session URL is a new one"
        yield problem("keys", f"{state.keys.name} cannot be used: {error}", remedy)
    else:
        yield ok("keys", "none yet" if held is None else f"{len(held.sessions)} sessions")


def examine_version(state: State) -> Iterator[Finding]:
    """Whether this program understands the layout of the state."""
    path = state.directory / "version"
    text = (read_safely(str(path), 4096) or b"").decode("ascii", "replace").strip("\0\n ")
    if text and (not text.isdecimal() or int(text) > STATE_VERSION):
        sentence = f"the state is of version {text[:20]!r}, made by a newer aegis-actors"
        yield problem("version", sentence, "upgrade this one")
    else:
        yield ok("version", f"{text or 'none yet'} of the state, {STATE_VERSION} is understood")


def repair_files(state: State) -> Iterator[Finding]:
    """Put aside what was left over, and keys that cannot be read. Nothing is deleted."""
    taken = leftovers(state)
    if any(each.remedy for each in examine_keys(state)):
        taken.append(state.keys)
    for path in taken:
        kept = put_aside(state, path)
        shown = path.relative_to(state.directory)
        yield ok("aside", f"{shown} was moved to {kept.relative_to(state.directory)}")


def put_aside(state: State, path: Path) -> Path:
    """Move it to a name of its own in a directory that nothing else uses."""
    aside = state.directory / ASIDE
    aside.mkdir(mode=0o700, exist_ok=True)
    plain = "-".join(path.relative_to(state.directory).parts)
    number = 0
    while (kept := aside / f"{plain}.{number}").exists():
        number += 1
    return path.rename(kept)


def every_file(directory: Path) -> Iterator[Path]:
    """The directory and all below it, but what was put aside; no link is followed."""
    if not directory.is_dir():
        return
    yield directory
    for above, names, files in os.walk(directory, onerror=_raise):
        if Path(above) == directory and ASIDE in names:
            names.remove(ASIDE)
        yield from (Path(above, name) for name in (*names, *files))


def _is_open_to_others(path: Path, found: os.stat_result) -> bool:
    if stat.S_IFMT(found.st_mode) not in _MODES or path.name.startswith("typed."):
        return False  # a shell makes the latter, in a directory that is closed to others
    return bool(stat.S_IMODE(found.st_mode) & 0o077)


def _some(state: State, paths: list[Path]) -> str:
    shown = [str(each.relative_to(state.root)) for each in paths[:MAX_SHOWN]]
    more = f" and {len(paths) - MAX_SHOWN} more" if len(paths) > MAX_SHOWN else ""
    return ", ".join(shown) + more


def _raise(error: OSError) -> None:
    raise error

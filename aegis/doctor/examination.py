"""All checks in their order, and the repair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from aegis import __version__
from aegis.daemon_process import hold_root
from aegis.doctor.agents import examine_agents
from aegis.doctor.archive import examine_archive
from aegis.doctor.configuration import examine_configuration
from aegis.doctor.daemon import examine_daemon, is_held
from aegis.doctor.damage import examine_damage
from aegis.doctor.files import (
    examine_keys,
    examine_leftovers,
    examine_modes,
    examine_version,
    repair_files,
    repair_modes,
)
from aegis.doctor.finding import Finding, problem
from aegis.doctor.ledgers import examine_ledgers, repair_ledgers
from aegis.doctor.machine import examine_machine
from aegis.doctor.shells import examine_shells
from aegis.doctor.telegram import examine_telegram
from aegis.doctor.trust import examine_trust
from aegis.errors import StartupError
from aegis.state.root import StatePaths

Checks = tuple[tuple[str, Callable[[], Iterable[Finding]]], ...]


def examine(state: StatePaths) -> Iterator[Finding]:
    """Run all checks; yield each finding at once. Nothing is changed."""
    checks: Checks = (
        ("machine", partial(examine_machine, state)),
        ("configuration", partial(examine_configuration, state)),
        ("trust", partial(examine_trust, state)),
        *_checks_of_state(state),
        ("daemon", partial(examine_daemon, state, __version__)),
        ("shells", examine_shells),
        ("agents", partial(examine_agents, state)),
        ("telegram", partial(examine_telegram, state)),
    )
    for subject, check in checks:
        yield from _guarded(subject, check)


def examine_state(state: StatePaths) -> Iterator[Finding]:
    """Run the checks of what the daemon has written; yield each finding at once."""
    for subject, check in _checks_of_state(state):
        yield from _guarded(subject, check)


def _checks_of_state(state: StatePaths) -> Checks:
    is_in_use = is_held(state)
    return (
        ("modes", partial(examine_modes, state)),
        ("version", partial(examine_version, state)),
        ("keys", partial(examine_keys, state)),
        ("ledgers", partial(examine_ledgers, state, is_in_use=is_in_use)),
        ("archive", partial(examine_archive, state)),
        ("damage", partial(examine_damage, state, is_in_use=is_in_use)),
        ("leftovers", partial(examine_leftovers, state, is_in_use=is_in_use)),
    )


def repair(state: StatePaths) -> Iterator[Finding]:
    """Repair the state without losing a byte; yield a finding for each repair.

    Yields a problem and repairs nothing if a daemon runs or the state is of a newer version. The
    root is held meanwhile, so that no daemon can start.
    """
    if not state.directory.is_dir():
        return
    try:
        with hold_root(state):
            for subject, mend in (
                ("modes", repair_modes),
                ("ledgers", repair_ledgers),
                ("leftovers", repair_files),
            ):
                yield from _guarded(subject, partial(mend, state))
    except StartupError as error:
        yield problem("repair", f"nothing was repaired: {error}", "then try again")


def _guarded(subject: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of a check; an ``OSError`` becomes a problem."""
    try:
        yield from check()
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        sentence = f"cannot be examined:{where} {error.strerror or error}"
        yield problem(subject, sentence, "check the disk and the owner of the file")

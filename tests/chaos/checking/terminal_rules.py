"""Rules for terminals: the open ones are listed, a purge leaves nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from aegis.protocol.naming import TAKEOVER_PREFIX
from tests.chaos.checking.case import Case
from tests.chaos.checking.observations import NEVER, Change, Span
from tests.chaos.checking.rule import TERMINALS, Rule


def _listed(case: Case) -> Iterator[str]:
    """Find lists without a surely open terminal, or with a surely closed one.

    Those of take-overs are opened and closed by the daemon.
    """
    if not case.evidence.changes:
        return
    names = {change.terminal for change in case.evidence.changes}
    for listing in case.evidence.listings:
        for name in sorted(names | set(listing.terminals)):
            if name.startswith(TAKEOVER_PREFIX):
                continue
            states = case.may_be_open(name, listing.span)
            is_listed = name in listing.terminals
            if is_listed not in states:
                wrong = "is listed and was closed" if is_listed else "is open and not listed"
                yield f"{name} {wrong}, at {listing.span.asked}"


def _purged_and_there(case: Case) -> Iterator[str]:
    """Find records that were shown after the purge of their terminal."""
    for seen in case.seen:
        token = case.matching.token_of(seen.terminal, seen.record)
        command = None if token is None else case.evidence.by_token[token]
        for purge in case.purges(seen.terminal):
            over = purge.done is True and purge.span.is_before(seen.span)
            if over and command is not None and command.span.is_before(purge.span):
                yield f"{token} was purged at {purge.span.answered} and shown afterwards"


def _purged_and_kept(case: Case) -> Iterator[str]:
    """Find records of a terminal that was purged and not spawned again."""
    for terminal, records in case.evidence.ledgers.items():
        last = max(case.purges(terminal), key=lambda purge: purge.span.asked, default=None)
        if last is None or last.done is not True or not records:
            continue
        spawned = (
            change
            for change in case.evidence.changes
            if change.terminal == terminal
            and change.kind == "spawn"
            and change.done is not False
            and not case.settled(change.span).is_before(last.span)
        )
        if not any(spawned):
            yield f"{terminal} was purged and has {len(records)} records"


def _life_ids(case: Case) -> Iterator[str]:
    """Find life ids that changed without a purge, or survived one."""
    for terminal in sorted({change.terminal for change in case.evidence.changes}):
        known = [
            change
            for change in case.evidence.changes
            if change.terminal == terminal and change.kind == "spawn" and change.id is not None
        ]
        known += _in_the_end(case, terminal)
        known.sort(key=lambda change: change.span.asked)
        for index, (earlier, later) in enumerate(pairwise(known)):
            if earlier.id == later.id and _surely_purged(case, earlier, later):
                yield f"{terminal} still has the id {later.id} after its purge"
            elif earlier.id != later.id and not _maybe_purged(case, earlier, later):
                yield f"{terminal} was {earlier.id} and is {later.id} without a purge"
            elif later.id in {each.id for each in known[:index]} and earlier.id != later.id:
                yield f"{terminal} has the id {later.id} once more"


def _in_the_end(case: Case, terminal: str) -> list[Change]:
    """Return the final id as a spawn at the end of the run."""
    name = case.evidence.ids.get(terminal)
    if name is None:
        return []
    span = Span(NEVER, NEVER)
    return [Change(kind="spawn", terminal=terminal, span=span, done=True, id=name)]


def _surely_purged(case: Case, earlier: Change, later: Change) -> bool:
    return any(
        purge.done is True
        and earlier.span.is_before(purge.span)
        and purge.span.is_before(later.span)
        for purge in case.purges(later.terminal)
    )


def _maybe_purged(case: Case, earlier: Change, later: Change) -> bool:
    return any(
        not purge.span.is_before(earlier.span) and not later.span.is_before(purge.span)
        for purge in case.purges(later.terminal)
    )


TERMINAL_RULES: dict[str, Rule] = {
    "wrongly listed": Rule("G1", _listed),
    "purged and there": Rule(TERMINALS, _purged_and_there),
    "purged and kept": Rule(TERMINALS, _purged_and_kept),
    "life id": Rule(TERMINALS, _life_ids),
}

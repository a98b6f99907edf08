"""The configuration of a root: whether the daemon can use it."""

from __future__ import annotations

from collections.abc import Iterator

from aegis.configuration.file import read_configuration, warnings_of
from aegis.configuration.problems import BadConfiguration
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.state.root import CONFIG_NAME, State

SUBJECT = "configuration"
REMEDY = "mend it, then: aegis-actors config check"


def examine_configuration(state: State) -> Iterator[Finding]:
    """One finding for each thing that is wrong with it; else what it sets."""
    path = state.root / CONFIG_NAME
    try:
        parsed = read_configuration(path)
    except BadConfiguration as error:
        for line in error.lines():
            yield problem(SUBJECT, line, REMEDY)
        return
    warnings = list(warnings_of(parsed.configuration))
    for sentence in warnings:
        yield warning(SUBJECT, sentence, f"install it, or name another one in {path}")
    if not warnings:
        yield ok(SUBJECT, _told(parsed.given))


def _told(given: tuple[str, ...]) -> str:
    return f"{CONFIG_NAME} sets {', '.join(given)}" if given else "all defaults"

"""The check of the configuration file."""

from __future__ import annotations

from collections.abc import Iterator

from aegis.configuration.file import read_configuration, warnings_of
from aegis.configuration.problems import BadConfiguration
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.state.root import CONFIG_NAME, StatePaths

SUBJECT = "configuration"
REMEDY = "correct it, then: aegis-actors config check"


def examine_configuration(state: StatePaths) -> Iterator[Finding]:
    """Yield a finding for each error or warning; else one that lists the keys that are set."""
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
        yield ok(SUBJECT, _keys_set(parsed.given))


def _keys_set(given: tuple[str, ...]) -> str:
    return f"{CONFIG_NAME} sets {', '.join(given)}" if given else "all defaults"

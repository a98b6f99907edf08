"""The shortest script that still breaks a promise, and its listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from tests.chaos.histories.playing import Outcome, play
from tests.chaos.histories.script import Script, ScriptFault, Step
from tests.chaos.running.shrinking import ddmin

TRIES = 400
"""Scripts that are tried at most: some minutes."""


@attrs.frozen
class Reduced:
    """A script, what comes of it, and after how many tries; ``is_minimal``: all of it is needed."""

    script: Script
    outcome: Outcome
    tries: int
    is_minimal: bool


def reduce_script(
    script: Script,
    rule: str,
    *,
    tries: int = TRIES,
    on_try: Callable[[int, int], None] = lambda tried, left: None,
    player: Callable[[Script], Outcome] = play,
) -> Reduced:
    """The fewest steps and faults of ``script`` that still break ``rule``.

    ``on_try`` is told before each try how many there were, and how many parts are tried now; what
    it raises ends the search.
    """
    tried = 0

    def fails(parts: tuple[Step | ScriptFault, ...]) -> bool:
        nonlocal tried
        on_try(tried, len(parts))
        tried += 1
        return breaks(part_of(script, parts), rule, player)

    parts: tuple[Step | ScriptFault, ...] = (*script.faults, *script.steps)
    shrunk = ddmin(parts, fails, tries=tries)
    shortest = part_of(script, shrunk.items)
    return Reduced(shortest, player(shortest), shrunk.tries, shrunk.is_minimal)


def part_of(script: Script, parts: tuple[Step | ScriptFault, ...]) -> Script:
    """The script with these steps and faults alone."""
    return attrs.evolve(
        script,
        steps=tuple(part for part in parts if isinstance(part, Step)),
        faults=tuple(part for part in parts if isinstance(part, ScriptFault)),
    )


def breaks(script: Script, rule: str, player: Callable[[Script], Outcome] = play) -> bool:
    """Whether it breaks this rule; a script that cannot be played to its end does not."""
    try:
        return any(each.rule == rule for each in player(script).violations)
    except Exception:
        return False


def script_lines(script: Script) -> Iterator[str]:
    """Each step and each fault as a line: what it is, and what of it is not as usual."""
    for step in script.steps:
        yield f"step {step.number:>3}  client {step.client}  {_words(step, 'Step', {'client'})}"
    for fault in script.faults:
        yield f"from step {fault.step:>3} on  {_words(fault, 'Fault', {'step'})}"


def _words(part: Step | ScriptFault, suffix: str, shown: set[str]) -> str:
    name = type(part).__name__.removesuffix(suffix).removeprefix("Script")
    fields = [
        f"{field.name}={getattr(part, field.name)!r}"
        for field in attrs.fields(type(part))
        if field.name not in {*shown, "number"} and getattr(part, field.name) != field.default
    ]
    return " ".join([name, *fields])

"""The shortest script that still breaks a promise, and its listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from tests.chaos.histories.playing import Outcome, play
from tests.chaos.histories.script import Script, ScriptFault, Step
from tests.chaos.running.shrinking import ddmin

TRIES = 400
"""The most scripts that are tried: some minutes."""


@attrs.frozen
class Reduced:
    """A shorter script, its outcome, and the number of tries; ``is_minimal``: no part can go."""

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
    """Return the fewest steps and faults of ``script`` that still break ``rule``.

    ``on_try`` is called before each try with the number of tries so far and the number of parts; an
    exception that it raises ends the search.
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
    """Return the script with only these steps and faults."""
    return attrs.evolve(
        script,
        steps=tuple(part for part in parts if isinstance(part, Step)),
        faults=tuple(part for part in parts if isinstance(part, ScriptFault)),
    )


def breaks(script: Script, rule: str, player: Callable[[Script], Outcome] = play) -> bool:
    """Return whether the script breaks this rule; one that cannot be played to its end does not."""
    try:
        return any(each.rule == rule for each in player(script).violations)
    except Exception:
        return False


def script_lines(script: Script) -> Iterator[str]:
    """Return a line for each step and fault: its class, and its fields other than the defaults."""
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

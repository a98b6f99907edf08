"""Whether what the system promises held: from the evidence of a load to its violations. Pure.

Each rule is a function that tells, one plain sentence each, where it was broken; ``RULES`` names
them. What is allowed is only what is promised: a reply that never came allows both outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import attrs

from aegis.chaos.checking.evidence import Command, Evidence, Life, Told
from aegis.chaos.checking.happenings import Record
from aegis.chaos.checking.matching import Matching, tokens_in
from aegis.chaos.checking.wake_rules import WAKE_RULES

KNOWN_EARLY = ("seq", "cmd", "writer", "started_at", "cwd", "raw_start", "timed_out")
"""Fields of an unfinished record that its final one must share."""


PROMPT = "$ "
"""Of the shells under load."""


@attrs.frozen
class Violation:
    """A promise that was broken: by its rule, and what happened."""

    rule: str
    what: str


def violations(evidence: Evidence) -> list[Violation]:
    """Everything in ``evidence`` that no rule allows."""
    return [Violation(name, what) for name, rule in RULES.items() for what in rule(evidence)]


def _told_and_gone(evidence: Evidence) -> Iterator[str]:
    """A record that a client was told is in the ledger, equal in every field that was told."""
    kept_by_seq = {(terminal, record["seq"]): record for terminal, record in evidence.records()}
    for told in evidence.told:
        kept = kept_by_seq.get((told.terminal, told.record["seq"]))
        if kept is None:
            yield f"seq {told.record['seq']} of {told.terminal} was told and is in no ledger"
        elif told.record["end"] is not None:
            yield from _differences(told, kept, tuple(told.record))
        else:
            yield from _differences(told, kept, KNOWN_EARLY)
            if not kept["stdout"].startswith(told.record["stdout"]):
                yield f"seq {kept['seq']} of {told.terminal} lost output that was told: {kept}"


def _differences(told: Told, kept: Record, fields: tuple[str, ...]) -> Iterator[str]:
    for field in fields:
        if told.record[field] != kept[field]:
            yield (
                f"{field} of seq {kept['seq']} of {told.terminal} was told as "
                f"{told.record[field]!r} and is {kept[field]!r}"
            )


def _numbers(evidence: Evidence) -> Iterator[str]:
    """``seq`` is 0, 1, 2, … without gap or repeat."""
    for terminal, records in evidence.ledgers.items():
        found = [record["seq"] for record in records]
        if found != list(range(len(found))):
            wrong = next(index for index, seq in enumerate(found) if index != seq)
            yield f"seq of {terminal} goes {found[max(0, wrong - 2) : wrong + 2]} at {wrong}"


def _unrecorded(evidence: Evidence) -> Iterator[str]:
    """A command that began has a record.

    Except a typed one that was killed before its start mark was read: nobody knew of it yet. It is
    the last that began on its terminal in a life that was killed.
    """
    recorded, commands = set(Matching(evidence).tokens), evidence.by_token
    killed = {life.number for life in evidence.lives if life.killed}
    last = {(commands[token].terminal, commands[token].life): token for token in evidence.begun}
    for token in dict.fromkeys(evidence.begun):
        command = commands[token]
        is_last = last[command.terminal, command.life] == token
        if token not in recorded and not (command.typed and is_last and command.life in killed):
            yield f"{token} began and has no record"


def _repeated(evidence: Evidence) -> Iterator[str]:
    """A command runs once and is recorded once."""
    for token, times in Counter(Matching(evidence).tokens).items():
        if times > 1:
            yield f"{token} has {times} records"
    for token, times in Counter(evidence.begun).items():
        if times > 1:
            yield f"{token} ran {times} times"


def _strangers(evidence: Evidence) -> Iterator[str]:
    """Every record is that of a command that somebody sent, by who sent it, as it was sent."""
    for terminal, record, command in _matched(evidence):
        if command is None:
            yield f"nobody sent what seq {record['seq']} of {terminal} tells of: {dict(record)}"
            continue
        if record["writer"] != command.writer:
            yield f"{command.token} was written by {command.writer}, not by {record['writer']}"
        nameless = command.typed and record["cmd"] is None and record["killed_by_restart"]
        if record["cmd"] != command.text and not nameless:
            yield f"the text of {command.token} was recorded as {record['cmd']!r}"


def _mixed(evidence: Evidence) -> Iterator[str]:
    """No record holds anything of another command."""
    for terminal, record, command in _matched(evidence):
        own = [] if command is None else [command.token]
        others = [token for token in tokens_in(record["stdout"]) if token not in own]
        if others:
            yield f"the output of seq {record['seq']} of {terminal} ({own}) holds {others}"


def _outcomes(evidence: Evidence) -> Iterator[str]:
    """What ended by itself has its end, exit and output; what was killed a beginning of it."""
    ended = set(evidence.ended)
    stopped = {death.life for death in evidence.deaths if death.kind == "stop"}
    for _, record, command in _matched(evidence):
        if command is None:
            continue
        token, got = command.token, (record["end"], record["exit"], record["killed_by_restart"])
        if record["end"] != "killed_by_restart":
            if got != (command.end, command.exit, False):
                yield f"{token} should be {(command.end, command.exit, False)} and is {got}"
            elif record["stdout"] != command.stdout:
                yield f"{token} printed {command.stdout!r}, recorded is {record['stdout']!r}"
            if token not in ended:
                yield f"{token} is recorded as {record['end']} and did not come to its end"
            continue
        lasted = record["duration_s"] is not None and command.life not in stopped
        if got != ("killed_by_restart", None, True) or lasted:
            yield f"{token} was killed and is recorded with {got}, {record['duration_s']}"
        # Killed after its end, and before that was written: the prompt is in the log as well.
        if not f"{command.stdout}{PROMPT}".startswith(record["stdout"]):
            yield f"{token} was killed and its output is {record['stdout']!r}"


def _killed_too_early(evidence: Evidence) -> Iterator[str]:
    """Only what was in flight when a life ended is killed: the last of its life."""
    for terminal, commands in Matching(evidence).of.items():
        rows = list(zip(evidence.ledgers[terminal], commands, strict=True))
        for (record, command), (later, next_one) in pairwise(rows):
            same_life = command and next_one and command.life == next_one.life
            if same_life and record["killed_by_restart"] and not later["killed_by_restart"]:
                yield f"seq {record['seq']} of {terminal} was killed, and {later['seq']} was not"


def _refused(evidence: Evidence) -> Iterator[str]:
    """A command that its caller was told was never typed did not run."""
    known = {*evidence.begun, *Matching(evidence).tokens}
    for token in evidence.refused:
        if token in known:
            yield f"{token} was refused and ran, or is recorded"


def _order_of_lives(evidence: Evidence) -> Iterator[str]:
    """Records follow one another as the lives did in which their commands were sent."""
    for terminal, commands in Matching(evidence).of.items():
        lives = [command.life for command in commands if command is not None]
        if lives != sorted(lives):
            yield f"the records of {terminal} are not in the order of their lives: {lives}"


def _matched(evidence: Evidence) -> Iterator[tuple[str, Record, Command | None]]:
    for terminal, commands in Matching(evidence).of.items():
        for record, command in zip(evidence.ledgers[terminal], commands, strict=True):
            yield terminal, record, command


def _of_lives(attribute: str, sentence: str) -> Callable[[Evidence], Iterator[str]]:
    def rule(evidence: Evidence) -> Iterator[str]:
        for life in evidence.lives:
            for name in _names(life, attribute):
                yield sentence.format(name=name, life=life.number)

    return rule


def _names(life: Life, attribute: str) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(life, attribute)
    return names


def _errors(evidence: Evidence) -> Iterator[str]:
    """No client gets an answer that nothing explains."""
    yield from evidence.errors


RULES: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "told and gone": _told_and_gone,
    "numbers": _numbers,
    "unrecorded": _unrecorded,
    "repeated": _repeated,
    "stranger": _strangers,
    "mixed output": _mixed,
    "outcome": _outcomes,
    "killed too early": _killed_too_early,
    "refused and run": _refused,
    "order of lives": _order_of_lives,
    "process left": _of_lives("left", "{name} of an earlier life was there in life {life}"),
    "not restored": _of_lives("missing", "{name} was not there again in life {life}"),
    "error": _errors,
    **WAKE_RULES,
}

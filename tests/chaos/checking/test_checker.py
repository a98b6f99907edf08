"""Tests of the checker: a sound run has no violation, and each broken one is found.

A checker that finds nothing proves only as much as this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from tests.chaos.checking.checker import violations
from tests.chaos.checking.evidence import Answer, Evidence, Handoff, Life, SeenRecord
from tests.chaos.checking.matching import tokens_in
from tests.chaos.checking.observations import Death, Record, RecordsRead, Span
from tests.chaos.checking.parts import KILLED, command, record_of, wake

LIFE_ID = "abc"
PM, REVIEWER = "pm", "reviewer"


FIRST = command(0, 1)
BY_PM = command(1, 1, "agent:pm", exit=7)
SLOW = command(2, 1, stdout="@t0.1.2@\n@t0.1.2@ late\n")
IN_FLIGHT = command(3, 1, stdout="@t0.1.3@\n@t0.1.3@ late\n")
TYPED = command(4, 2, typed=True)
TYPED_UNSEEN = command(5, 2, typed=True)
REFUSED = command(6, 3)
LAST = command(7, 3)

RECORDS = (
    record_of(FIRST, 0),
    record_of(BY_PM, 1),
    record_of(SLOW, 2, timed_out=True),
    record_of(IN_FLIGHT, 3, **KILLED, stdout="@t0.1.3@\n"),
    record_of(TYPED, 4, **KILLED, cmd=None, stdout=""),
    record_of(LAST, 5),
)
SLOW_SO_FAR = {**RECORDS[2], "stdout": "@t0.1.2@\n", "end": None, "exit": None, "duration_s": None}


HANDED = {"id": "h1", "body": "news @news.1.9@"}
FOR_PM = [wake(record, PM) for record in RECORDS if record["writer"] != "agent:pm"]
FOR_REVIEWER = [*(wake(record, REVIEWER) for record in RECORDS), HANDED]

SOUND = Evidence(
    commands=(FIRST, BY_PM, SLOW, IN_FLIGHT, TYPED, TYPED_UNSEEN, REFUSED, LAST),
    begun=tuple(each.token for each in (FIRST, BY_PM, SLOW, IN_FLIGHT, TYPED, TYPED_UNSEEN, LAST)),
    ended=tuple(each.token for each in (FIRST, BY_PM, SLOW, TYPED, LAST)),
    seen=(
        SeenRecord("t0", RECORDS[0]),
        SeenRecord("t0", SLOW_SO_FAR),
        SeenRecord("t0", RECORDS[5]),
    ),
    refused=(REFUSED.token,),
    ledgers={"t0": RECORDS},
    ids={"t0": LIFE_ID},
    answers={
        PM: (Answer(tuple(FOR_PM)),),
        REVIEWER: (
            Answer(tuple(FOR_REVIEWER[:2])),
            Answer(tuple(FOR_REVIEWER[:3])),  # its acknowledgement was lost
            Answer(tuple(FOR_REVIEWER[3:]), acknowledged=FOR_REVIEWER[2]["id"]),
        ),
    },
    kept={PM: tuple(FOR_PM), REVIEWER: tuple(FOR_REVIEWER)},
    handoffs=(Handoff(REVIEWER, HANDED["body"], "h1"), Handoff(REVIEWER, "news @news.1.8@", None)),
    lives=(Life(number=1, killed=True), Life(number=2, killed=True), Life(number=3, killed=False)),
)

POWER_LOSS = Death(life=1, kind="power loss", moment=1)


def with_record(seq: int, /, **fields: Any) -> Evidence:
    """Return the sound run with these fields changed in one record."""
    records = [{**each, **fields} if each["seq"] == seq else each for each in RECORDS]
    return with_records(*records)


def with_records(*records: Record) -> Evidence:
    return attrs.evolve(SOUND, ledgers={"t0": records})


def with_answers(handle: str, *answers: Answer) -> Evidence:
    return attrs.evolve(SOUND, answers={**SOUND.answers, handle: answers})


def with_seen(seq: int, **fields: Any) -> Evidence:
    return attrs.evolve(SOUND, seen=(SeenRecord("t0", {**RECORDS[seq], **fields}),))


def renumbered(*records: Record) -> Evidence:
    return with_records(*({**each, "seq": seq} for seq, each in enumerate(records)))


def pm_got(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Evidence:
    return with_answers(PM, Answer(tuple(change(list(FOR_PM)))))


STRANGER: Mapping[str, Any] = {**RECORDS[5], "seq": 6, "cmd": "rm -rf /", "stdout": ""}

BROKEN: dict[str, tuple[str, Evidence]] = {
    "a record that was shown is missing": ("told and gone", with_records(*RECORDS[:5])),
    "a record changed after it was shown": ("told and gone", with_seen(0, cwd="/tmp")),
    "output that was shown is gone": ("told and gone", with_record(2, stdout="")),
    "a field shown early changed": (
        "told and gone",
        attrs.evolve(SOUND, seen=(SeenRecord("t0", {**SLOW_SO_FAR, "started_at": "11:00"}),)),
    ),
    "a timeout was shown and is not recorded": ("told and gone", with_record(2, timed_out=False)),
    "a number is left out": ("numbers", with_record(5, seq=6)),
    "more numbers are left out than a damaged line may hold": (
        "numbers",
        attrs.evolve(with_record(5, seq=7), damaged={"t0": {5: 1}}, deaths=(POWER_LOSS,)),
    ),
    "a number comes twice": ("numbers", with_record(5, seq=4)),
    "the first number is not 0": ("numbers", with_records(*RECORDS[1:])),
    "a command that began has no record": ("unrecorded", renumbered(RECORDS[0], *RECORDS[2:])),
    "the one in flight has no record": (
        "unrecorded",
        renumbered(*RECORDS[:3], *RECORDS[4:]),
    ),
    "a typed command that was not the last has no record": (
        "unrecorded",
        attrs.evolve(
            renumbered(*RECORDS[:4], RECORDS[5]),
            commands=(*SOUND.commands, command(8, 2)),
            begun=(*SOUND.begun, "@t0.2.8@"),
        ),
    ),
    "a command has two records": ("repeated", with_records(*RECORDS, {**RECORDS[5], "seq": 6})),
    "a command ran twice": (
        "repeated",
        attrs.evolve(SOUND, begun=(*SOUND.begun, FIRST.token)),
    ),
    "a record of nobody's command": ("stranger", with_records(*RECORDS, STRANGER)),
    "a record by another writer": ("stranger", with_record(0, writer="agent:eve")),
    "a record with another text": ("stranger", with_record(0, cmd=f"{FIRST.text} ")),
    "a record that lost its text": ("stranger", with_record(0, cmd=None)),
    "output of another command": (
        "mixed output",
        with_record(3, stdout=f"{SLOW.token} late\n{IN_FLIGHT.token}\n"),
    ),
    "another exit": ("outcome", with_record(1, exit=0)),
    "another end": ("outcome", with_record(0, end="lost")),
    "less output": ("outcome", with_record(1, stdout="")),
    "more output than it printed": ("outcome", with_record(1, stdout=f"{BY_PM.stdout}$ ")),
    "an end that never was": (
        "outcome",
        attrs.evolve(SOUND, ended=tuple(t for t in SOUND.ended if t != LAST.token)),
    ),
    "killed, with an exit": ("outcome", with_record(3, exit=0)),
    "killed, with a duration": ("outcome", with_record(3, duration_s=0.5)),
    "killed, with what it did not print": ("outcome", with_record(3, stdout="$ @t0.1.3@\n")),
    "killed while its successor was not": (
        "killed too early",
        with_record(1, **KILLED),
    ),
    "refused, and ran": (
        "refused and run",
        attrs.evolve(SOUND, begun=(*SOUND.begun, REFUSED.token)),
    ),
    "refused, and is recorded": (
        "refused and run",
        with_records(*RECORDS, record_of(REFUSED, 6)),
    ),
    "a record of an earlier life comes later": (
        "order of lives",
        renumbered(*RECORDS[:2], *RECORDS[3:], RECORDS[2]),
    ),
    "a process is left": (
        "process left",
        attrs.evolve(SOUND, lives=(Life(number=2, killed=True, left=("sleep (pid 9)",)),)),
    ),
    "a terminal was not restored": (
        "not restored",
        attrs.evolve(SOUND, lives=(Life(number=2, killed=True, missing=("t0",)),)),
    ),
    "an error": ("error", attrs.evolve(SOUND, errors=("bang",))),
    "a wake is lost": ("wake lost", pm_got(lambda messages: messages[:-1])),
    "a wake for the writer": (
        "wake needless",
        pm_got(lambda messages: [*messages[:1], wake(RECORDS[1], PM), *messages[1:]]),
    ),
    "a wake of no record": (
        "wake needless",
        pm_got(lambda messages: [*messages, {**messages[0], "id": "term:t0/abc/99/pm"}]),
    ),
    "a wake of another life id": (
        "wake needless",
        pm_got(lambda messages: [*messages, {**messages[0], "id": "term:t0/xyz/9/pm"}]),
    ),
    "a wake with another exit": (
        "wake wrong",
        pm_got(lambda ms: [{**ms[0], "body": ms[0]["body"].replace("exit 0", "exit 1")}, *ms[1:]]),
    ),
    "a wake with another command": (
        "wake wrong",
        pm_got(lambda ms: [{**ms[1], "id": ms[0]["id"]}, *ms[1:]]),
    ),
    "a wake that does not mention the kill": (
        "wake wrong",
        pm_got(
            lambda ms: [{**m, "body": m["body"].replace(" · killed by restart", "")} for m in ms]
        ),
    ),
    "a wake that changed": (
        "wake wrong",
        pm_got(lambda messages: [*messages, {**messages[0], "body": "other\nexit 0"}]),
    ),
    "shown again after it was acknowledged": (
        "shown again",
        with_answers(
            PM, Answer(tuple(FOR_PM)), Answer(tuple(FOR_PM[:1]), acknowledged=FOR_PM[0]["id"])
        ),
    ),
    "wakes out of order": (
        "out of order",
        pm_got(lambda messages: [messages[1], messages[0], *messages[2:]]),
    ),
    "a message kept twice": (
        "kept twice",
        attrs.evolve(SOUND, kept={PM: (*FOR_PM, FOR_PM[0])}),
    ),
    "a handoff taken twice": (
        "kept twice",
        with_answers(
            REVIEWER, Answer((*FOR_REVIEWER, {**HANDED, "id": "h2"})), *SOUND.answers[REVIEWER]
        ),
    ),
    "a handoff that was accepted is lost": (
        "handoff lost",
        with_answers(REVIEWER, Answer(tuple(FOR_REVIEWER[:-1]))),
    ),
}


def test_a_sound_run_breaks_no_rule() -> None:
    assert violations(SOUND) == []


def test_a_damaged_line_may_have_held_a_number() -> None:
    later = [{**each, "seq": each["seq"] + 1} for each in RECORDS[5:]]
    whole = RecordsRead(
        terminal="t0", span=Span(90, 91), since_seq=-1, records=(*RECORDS[:5], *later)
    )
    gap = attrs.evolve(with_records(*RECORDS[:5], *later), reads=(whole,))
    wrong = {"numbers", "catch up"}
    assert wrong <= {each.rule for each in violations(gap)}
    damaged = attrs.evolve(gap, damaged={"t0": {5: 1}})
    assert wrong <= {each.rule for each in violations(damaged)}, "what has damaged it?"
    explained = attrs.evolve(damaged, deaths=(POWER_LOSS,))
    assert not wrong & {each.rule for each in violations(explained)}


def test_a_typed_command_may_be_killed_before_its_first_word() -> None:
    """Its start mark was read: it has a record, although it printed nothing."""
    begun = tuple(token for token in SOUND.begun if token not in (TYPED.token, TYPED_UNSEEN.token))
    ended = tuple(token for token in SOUND.ended if token != TYPED.token)
    assert violations(attrs.evolve(SOUND, begun=begun, ended=ended)) == []


def test_a_record_without_a_text_is_no_proof_for_another_writer() -> None:
    found = violations(with_record(4, writer="agent:eve"))
    assert "stranger" in {each.rule for each in found}


def test_output_that_a_loss_of_power_may_have_brought_back_is_no_proof_of_a_command() -> None:
    strange = with_record(4, stdout=f"{FIRST.token}\n")
    assert "repeated" in {each.rule for each in violations(strange)}
    lost = attrs.evolve(strange, deaths=(POWER_LOSS,))
    assert not {"repeated", "stranger"} & {each.rule for each in violations(lost)}


def test_who_was_killed_while_it_stopped_may_know_how_long_a_command_ran() -> None:
    lives = tuple(attrs.evolve(each, stopping=True) for each in SOUND.lives)
    assert violations(attrs.evolve(with_record(3, duration_s=0.5), lives=lives)) == []


@pytest.mark.parametrize(("rule", "evidence"), BROKEN.values(), ids=BROKEN)
def test_a_violation_is_found(rule: str, evidence: Evidence) -> None:
    assert rule in {each.rule for each in violations(evidence)}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (None, []),
        ("", []),
        ("me@example", []),
        ("@t0.1.2@", ["@t0.1.2@"]),
        ("@t0.1.2@ late\n@t1.1.3@\n@t0.1.2@", ["@t0.1.2@", "@t1.1.3@"]),
    ],
)
def test_tokens_are_found_in_any_text(text: str | None, tokens: list[str]) -> None:
    assert tokens_in(text) == tokens

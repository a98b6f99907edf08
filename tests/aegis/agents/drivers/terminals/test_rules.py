"""The rules of one terminal: a table, and at random against a model."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from aegis.agents.drivers.terminals.rules import (
    KILL_S,
    KILLED,
    MAX_WAITS,
    RELEASE_S,
    SHOW_S,
    Alarm,
    AlarmDue,
    AnswerQuestion,
    EndProcesses,
    ExitStatus,
    Finish,
    Input,
    Output,
    Printed,
    ProcessesGone,
    ProgramEnded,
    Question,
    QuestionAsked,
    RefuseQuestion,
    ShowOutput,
    Tail,
    TerminalRules,
    Withdrawn,
)
from aegis.agents.drivers.terminals.terminal import status_of

DONE = ExitStatus(exit_code=0)
ENDED = DONE.fields()


def played(*steps: Input | tuple[float, Input], limit: int | None = None) -> list[list[Output]]:
    """Return the outputs of each step; a step without a time is at the one of the step before."""
    rules, now, outputs = TerminalRules(limit), 0.0, []
    for each in steps:
        now, step = each if isinstance(each, tuple) else (now, each)
        outputs.append(rules.handle(step, now))
    return outputs


def shown(
    text: str, *, truncated: bool = False, status: ExitStatus | None = None
) -> dict[str, Any]:
    fields = {} if status is None else {"exitStatus": status.fields()}
    return {"output": text, "truncated": truncated, **fields}


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        ([QuestionAsked(1, "output")], [AnswerQuestion(1, shown(""))]),
        ([Printed(b"a\r\n"), QuestionAsked(1, "output")], [AnswerQuestion(1, shown("a\n"))]),
        ([Printed(b"a"), QuestionAsked(1, "output")], [AnswerQuestion(1, shown("a"))]),
        (
            [Printed(b"\xc3"), Printed(b"\xa9"), QuestionAsked(1, "output")],
            [AnswerQuestion(1, shown("é"))],
        ),
        (
            [ProgramEnded(DONE), QuestionAsked(1, "output")],
            [AnswerQuestion(1, shown("", status=DONE))],
        ),
        ([QuestionAsked(1, "wait")], []),
        ([QuestionAsked(1, "wait"), ProgramEnded(DONE)], [AnswerQuestion(1, ENDED)]),
        (
            [QuestionAsked(1, "wait"), QuestionAsked(2, "wait"), ProgramEnded(DONE)],
            [AnswerQuestion(1, ENDED), AnswerQuestion(2, ENDED)],
        ),
        ([ProgramEnded(DONE), QuestionAsked(1, "wait")], [AnswerQuestion(1, ENDED)]),
        (
            [ProgramEnded(DONE), ProgramEnded(KILLED), QuestionAsked(1, "wait")],
            [AnswerQuestion(1, ENDED)],
        ),
        ([QuestionAsked(1, "kill")], [EndProcesses(at_once=False), Alarm(KILL_S)]),
        ([QuestionAsked(1, "kill"), QuestionAsked(2, "kill")], [Alarm(KILL_S)]),
        ([QuestionAsked(1, "kill"), ProgramEnded(DONE)], [AnswerQuestion(1, {})]),
        ([QuestionAsked(1, "kill"), (1.9, AlarmDue())], []),
        ([QuestionAsked(1, "kill"), (KILL_S, AlarmDue())], [AnswerQuestion(1, {})]),
        ([QuestionAsked(1, "kill"), (KILL_S, AlarmDue()), ProgramEnded(KILLED)], []),
        (
            [QuestionAsked(1, "wait"), QuestionAsked(2, "kill"), (KILL_S, AlarmDue())],
            [AnswerQuestion(2, {})],
        ),
        ([ProgramEnded(DONE), QuestionAsked(1, "kill")], [AnswerQuestion(1, {})]),
        (
            [QuestionAsked(1, "wait"), QuestionAsked(2, "kill"), QuestionAsked(3, "release")],
            [
                AnswerQuestion(1, KILLED.fields()),
                AnswerQuestion(2, {}),
                EndProcesses(at_once=True),
                Alarm(RELEASE_S),
            ],
        ),
        (
            [ProgramEnded(DONE), QuestionAsked(1, "release")],
            [EndProcesses(at_once=True), Alarm(RELEASE_S)],
        ),
        ([QuestionAsked(1, "release"), ProcessesGone()], [AnswerQuestion(1, {}), Finish()]),
        ([QuestionAsked(1, "release"), (RELEASE_S, AlarmDue())], [AnswerQuestion(1, {}), Finish()]),
        ([QuestionAsked(1, "release"), (RELEASE_S, AlarmDue()), ProcessesGone()], []),
        ([QuestionAsked(1, "release"), ProgramEnded(DONE)], []),
        (
            [QuestionAsked(1, "release"), QuestionAsked(2, "output")],
            [RefuseQuestion(2, "the terminal was released")],
        ),
        (
            [QuestionAsked(1, "release"), QuestionAsked(2, "release")],
            [RefuseQuestion(2, "the terminal was released")],
        ),
        ([QuestionAsked(1, "wait"), Withdrawn(1), ProgramEnded(DONE)], []),
        ([QuestionAsked(1, "kill"), Withdrawn(1), (KILL_S, AlarmDue())], []),
        (
            [QuestionAsked(1, "wait"), QuestionAsked(2, "wait"), Withdrawn(1), ProgramEnded(DONE)],
            [AnswerQuestion(2, ENDED)],
        ),
        ([Withdrawn(1)], []),
        ([Printed(b"a")], [Alarm(SHOW_S)]),
        ([Printed(b"a"), Printed(b"b")], []),
        ([Printed(b"a"), (SHOW_S, AlarmDue())], [ShowOutput()]),
        ([Printed(b"a"), (SHOW_S, AlarmDue()), AlarmDue()], []),
        ([Printed(b"a"), (SHOW_S, AlarmDue()), Printed(b"b")], [Alarm(2 * SHOW_S)]),
        ([Printed(b"a"), ProgramEnded(DONE), (SHOW_S, AlarmDue())], []),
        ([ProgramEnded(DONE), Printed(b"a")], []),
        ([AlarmDue()], []),
        ([ProcessesGone()], []),
    ],
)
def test_an_input_has_the_outputs_of_the_table(
    steps: list[Input | tuple[float, Input]], last: list[Output]
) -> None:
    assert played(*steps)[-1] == last


def test_the_questions_that_wait_are_limited_and_an_output_is_always_answered() -> None:
    asked: list[Input] = [QuestionAsked(i, "wait" if i % 2 else "kill") for i in range(MAX_WAITS)]
    outputs = played(
        *asked, QuestionAsked(50, "wait"), QuestionAsked(51, "kill"), QuestionAsked(52, "output")
    )
    for each in outputs[-3:-1]:
        assert isinstance(each[0], RefuseQuestion)
    assert outputs[-1] == [AnswerQuestion(52, shown(""))]


def test_questions_that_are_withdrawn_leave_room_for_others() -> None:
    rounds = [
        each
        for key in range(3 * MAX_WAITS)
        for each in (QuestionAsked(key, "wait"), Withdrawn(key))
    ]
    assert played(*rounds, QuestionAsked(99, "wait"), ProgramEnded(DONE))[-1] == [
        AnswerQuestion(99, ENDED)
    ]


def test_a_command_that_prints_for_an_hour_is_shown_less_and_less_often() -> None:
    rules, shows, alarm = TerminalRules(0), 0, math.inf
    for tenth in range(36_000):
        now = tenth / 10
        outputs = rules.handle(Printed(b"x"), now)
        outputs += rules.handle(AlarmDue(), now) if alarm <= now else []
        for each in outputs:
            alarm = now + each.after_s if isinstance(each, Alarm) else alarm
            shows += isinstance(each, ShowOutput)
    assert 120 <= shows <= 130


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, ExitStatus(exit_code=0)),
        (255, ExitStatus(exit_code=255)),
        (-15, ExitStatus(signal="SIGTERM")),
        (-9, KILLED),
        (-40, ExitStatus(signal="SIG40")),
        (None, KILLED),
    ],
)
def test_a_signal_is_never_an_exit_code(code: int | None, status: ExitStatus) -> None:
    assert status_of(code) == status


@pytest.mark.parametrize(
    ("limit", "texts", "kept", "truncated"),
    [
        (0, [], "", False),
        (0, ["a"], "", True),
        (3, ["abc"], "abc", False),
        (3, ["ab", "cd"], "bcd", True),
        (3, ["aéé"], "é", True),
        (2, ["😀"], "", True),
        (4, ["a😀"], "😀", True),
        (5, ["a", "", "😀"], "a😀", False),
    ],
)
def test_the_end_of_a_text_is_kept_from_a_whole_character(
    limit: int, texts: list[str], kept: str, truncated: bool
) -> None:
    tail = Tail(limit)
    for text in texts:
        tail.write(text)
    assert tail.shown() == (kept, truncated)
    other = Tail(limit)
    for text in texts[:-1]:
        other.write(text)
    assert other.shown("".join(texts[-1:])) == (kept, truncated)


@pytest.mark.parametrize("seed", range(50))
def test_a_tail_is_the_end_of_the_text_at_random(seed: int) -> None:
    chance = random.Random(seed)
    limit = chance.choice([0, 1, 7, 1000, 100_000])
    tail, whole = Tail(limit), ""
    for _ in range(chance.randrange(1, 30)):
        text = chance.choice(["é", "a", "😀", "\n"]) * chance.randrange(0, 10_000)
        tail.write(text)
        whole += text
        pending = chance.choice(["", "é", "x" * 2000])
        kept, truncated = tail.shown(pending)
        assert (whole + pending).endswith(kept)
        assert truncated == (len((whole + pending).encode()) > limit)
        size = len(kept.encode())
        assert size <= limit
        if truncated:  # one character more would be too much
            before = (whole + pending)[: -len(kept) or None][-1]
            assert size + len(before.encode()) > limit


@pytest.mark.parametrize("seed", range(50))
def test_the_pieces_of_a_tail_are_the_text_unless_some_is_dropped(seed: int) -> None:
    chance = random.Random(seed)
    tail, whole, read, cursor, dropped = Tail(chance.choice([0, 7, 1000, 10**6])), "", "", 0, 0
    for _ in range(chance.randrange(1, 40)):
        text = chance.choice(["é", "a", "😀", "\n"]) * chance.randrange(0, 2000)
        tail.write(text)
        whole += text
        begin, piece = tail.since(cursor, chance.choice([5, 1000]))
        assert begin >= cursor
        assert whole.encode()[begin:].startswith(piece.encode())
        dropped += begin - cursor
        cursor, read = begin + len(piece.encode()), read + piece
    while cursor < len(whole.encode()):
        begin, piece = tail.since(cursor, 1000)
        dropped += begin - cursor
        cursor, read = begin + len(piece.encode()), read + piece
    assert len(read.encode()) + dropped == len(whole.encode())
    assert dropped or read == whole


class Model:
    """What an agent and the processes may see: each question is answered once, and in time."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rules = TerminalRules(self.chance.choice([None, 0, 10]))
        self.now = 0.0
        self.open: dict[int, tuple[Question, float]] = {}
        self.alarms: list[float] = []
        self.text = ""
        self.status: ExitStatus | None = None
        self.is_released = self.is_finished = False
        self.is_stopped: bool | None = None
        self.keys = 0

    def step(self) -> None:
        self.now += self.chance.random() * 0.3
        while self.alarms and min(self.alarms) <= self.now:
            self.alarms.remove(min(self.alarms))
            self.check(AlarmDue())
        do = self.chance.choice(["print", "ask", "ask", "ask", "withdraw", "end", "nothing"])
        if do == "print":
            self.text += "line\n" if not self.is_released else ""
            self.check(Printed(b"line\r\n"))
        elif do == "ask":
            self.keys += 1
            names: list[Question] = ["output", "wait", "wait", "kill"]
            question = self.chance.choice([*names, *names, *names, "release"])
            self.open[self.keys] = question, self.now
            self.check(QuestionAsked(self.keys, question))
        elif do == "withdraw" and (waiting := self.waiting()):
            key = self.chance.choice(waiting)
            del self.open[key]
            self.check(Withdrawn(key))
        elif do == "end" and self.chance.random() < 0.1:
            self.end(status_of(self.chance.choice([0, 3, -9])))
        elif self.is_stopped is False and self.chance.random() < 0.1:
            self.end(status_of(-15))
        elif self.is_stopped and self.chance.random() < 0.3:
            self.check(ProcessesGone())

    def waiting(self) -> list[int]:
        return [key for key, (question, _) in self.open.items() if question in ("wait", "kill")]

    def end(self, status: ExitStatus) -> None:
        if self.status is None:
            self.status = status
        self.check(ProgramEnded(status))

    def check(self, step: Input) -> None:
        was_released = self.is_released
        if isinstance(step, QuestionAsked) and step.question == "release" and not was_released:
            self.is_released = True
            self.status = self.status or KILLED
        outputs = self.rules.handle(step, self.now)
        assert not (
            self.is_finished and any(not isinstance(each, RefuseQuestion) for each in outputs)
        )
        for each in outputs:
            self.take(each, was_released=was_released)
        assert self.rules.status == self.status
        waiting = [question for question, _ in self.open.values() if question != "release"]
        assert not (self.status is not None and waiting)
        assert all(
            self.now - at <= KILL_S + 0.31 for name, at in self.open.values() if name == "kill"
        )

    def take(self, output: Output, *, was_released: bool) -> None:
        match output:
            case AnswerQuestion(key, result):
                self.answered(self.open.pop(key)[0], result)
            case RefuseQuestion(key):
                del self.open[key]
                assert was_released or len(self.open) >= MAX_WAITS
            case EndProcesses(at_once):
                assert self.is_stopped is None or (at_once and not self.is_stopped)
                self.is_stopped = at_once
            case Alarm(after_s):
                self.alarms.append(self.now + after_s)
            case ShowOutput():
                assert self.status is None
            case Finish():
                assert not self.is_finished
                assert not self.open
                self.is_finished = True

    def answered(self, question: Question, result: dict[str, Any]) -> None:
        match question:
            case "output":
                assert self.text.endswith(result["output"])
                found = result.get("exitStatus")
                assert found == (None if self.status is None else self.status.fields())
            case "wait":
                assert self.status is not None
                assert result == self.status.fields()
            case _:
                assert result == {}


@pytest.mark.parametrize("seed", range(200))
def test_every_question_has_one_answer_in_time_at_random(seed: int) -> None:
    model = Model(seed)
    for _ in range(model.chance.randrange(5, 200)):
        model.step()
    if not model.is_released:
        model.open[10_000] = "release", model.now
        model.check(QuestionAsked(10_000, "release"))
    model.now += RELEASE_S
    model.check(AlarmDue())
    assert (model.is_finished, model.open) == (True, {})

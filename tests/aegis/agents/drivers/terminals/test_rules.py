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
    ExitStatus,
    Question,
    Tail,
)
from aegis.agents.drivers.terminals.terminal import status_of
from tests.aegis.agents.drivers.terminals.stage import Effect, Stage, Step, played

DONE = ExitStatus(exit_code=0)
ENDED = DONE.fields()


def shown(
    text: str, *, truncated: bool = False, status: ExitStatus | None = None
) -> dict[str, Any]:
    fields = {} if status is None else {"exitStatus": status.fields()}
    return {"output": text, "truncated": truncated, **fields}


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        ([("ask", 1, "output")], [("answer", 1, shown(""))]),
        ([("print", b"a\r\n"), ("ask", 1, "output")], [("answer", 1, shown("a\n"))]),
        ([("print", b"a"), ("ask", 1, "output")], [("answer", 1, shown("a"))]),
        (
            [("print", b"\xc3"), ("print", b"\xa9"), ("ask", 1, "output")],
            [("answer", 1, shown("é"))],
        ),
        (
            [("exit", DONE), ("ask", 1, "output")],
            [("answer", 1, shown("", status=DONE))],
        ),
        ([("ask", 1, "wait")], []),
        ([("ask", 1, "wait"), ("exit", DONE)], [("answer", 1, ENDED)]),
        (
            [("ask", 1, "wait"), ("ask", 2, "wait"), ("exit", DONE)],
            [("answer", 1, ENDED), ("answer", 2, ENDED)],
        ),
        ([("exit", DONE), ("ask", 1, "wait")], [("answer", 1, ENDED)]),
        (
            [("exit", DONE), ("exit", KILLED), ("ask", 1, "wait")],
            [("answer", 1, ENDED)],
        ),
        ([("ask", 1, "kill")], [("end", False), ("alarm", KILL_S)]),
        ([("ask", 1, "kill"), ("ask", 2, "kill")], [("alarm", KILL_S)]),
        ([("ask", 1, "kill"), ("exit", DONE)], [("answer", 1, {})]),
        ([("ask", 1, "kill"), (1.9, "due")], []),
        ([("ask", 1, "kill"), (KILL_S, "due")], [("answer", 1, {})]),
        ([("ask", 1, "kill"), (KILL_S, "due"), ("exit", KILLED)], []),
        (
            [("ask", 1, "wait"), ("ask", 2, "kill"), (KILL_S, "due")],
            [("answer", 2, {})],
        ),
        ([("exit", DONE), ("ask", 1, "kill")], [("answer", 1, {})]),
        (
            [("ask", 1, "wait"), ("ask", 2, "kill"), ("ask", 3, "release")],
            [
                ("answer", 1, KILLED.fields()),
                ("answer", 2, {}),
                ("end", True),
                ("alarm", RELEASE_S),
            ],
        ),
        (
            [("exit", DONE), ("ask", 1, "release")],
            [("end", True), ("alarm", RELEASE_S)],
        ),
        ([("ask", 1, "release"), ("gone",)], [("answer", 1, {}), ("finish",)]),
        ([("ask", 1, "release"), (RELEASE_S, "due")], [("answer", 1, {}), ("finish",)]),
        ([("ask", 1, "release"), (RELEASE_S, "due"), ("gone",)], []),
        ([("ask", 1, "release"), ("exit", DONE)], []),
        (
            [("ask", 1, "release"), ("ask", 2, "output")],
            [("refuse", 2, "the terminal was released")],
        ),
        (
            [("ask", 1, "release"), ("ask", 2, "release")],
            [("refuse", 2, "the terminal was released")],
        ),
        ([("ask", 1, "wait"), ("give up", 1), ("exit", DONE)], []),
        ([("ask", 1, "kill"), ("give up", 1), (KILL_S, "due")], []),
        (
            [("ask", 1, "wait"), ("ask", 2, "wait"), ("give up", 1), ("exit", DONE)],
            [("answer", 2, ENDED)],
        ),
        ([("print", b"a")], [("alarm", SHOW_S)]),
        ([("print", b"a"), ("print", b"b")], []),
        ([("print", b"a"), (SHOW_S, "due")], [("show",)]),
        ([("print", b"a"), (SHOW_S, "due"), ("due",)], []),
        ([("print", b"a"), (SHOW_S, "due"), ("print", b"b")], [("alarm", 2 * SHOW_S)]),
        ([("print", b"a"), ("exit", DONE), (SHOW_S, "due")], []),
        ([("exit", DONE), ("print", b"a")], []),
        ([("due",)], []),
        ([("gone",)], []),
    ],
)
def test_a_step_has_the_effects_of_the_table(steps: list[Step], last: list[Effect]) -> None:
    assert played(*steps)[-1] == last


def test_the_questions_that_wait_are_limited_and_an_output_is_always_answered() -> None:
    asked = [("ask", key, "wait" if key % 2 else "kill") for key in range(MAX_WAITS)]
    late = [("ask", 50, "wait"), ("ask", 51, "kill"), ("ask", 52, "output")]
    effects = played(*asked, *late)
    assert [each[0][:2] for each in effects[-3:-1]] == [("refuse", 50), ("refuse", 51)]
    assert effects[-1] == [("answer", 52, shown(""))]


def test_questions_that_are_given_up_leave_room_for_others() -> None:
    rounds: list[Step] = [
        each
        for key in range(3 * MAX_WAITS)
        for each in (("ask", key, "kill" if key % 3 else "wait"), ("give up", key))
    ]
    assert played(*rounds, ("ask", 99, "wait"), ("exit", DONE))[-1] == [("answer", 99, ENDED)]


def test_a_release_that_is_given_up_is_carried_out() -> None:
    effects = played(("ask", 1, "release"), ("give up", 1), ("gone",), (RELEASE_S, "due"))
    assert effects[2:] == [[("finish",)], []]


def test_a_command_that_prints_for_an_hour_is_shown_less_and_less_often() -> None:
    stage, shows, alarm = Stage(0), 0, math.inf
    for tenth in range(36_000):
        now = tenth / 10
        effects = stage.play(now, "print", b"x")
        effects += stage.play("due") if alarm <= now else []
        for each in effects:
            alarm = now + each[1] if each[0] == "alarm" else alarm
            shows += each == ("show",)
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
        self.stage = Stage(self.chance.choice([None, 0, 10]))
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
            self.check("due")
        do = self.chance.choice(["print", "ask", "ask", "ask", "give up", "end", "nothing"])
        if do == "print":
            self.text += "line\n" if not self.is_released else ""
            self.check("print", b"line\r\n")
        elif do == "ask":
            self.keys += 1
            names: list[Question] = ["output", "wait", "wait", "kill"]
            question = self.chance.choice([*names, *names, *names, "release"])
            self.open[self.keys] = question, self.now
            self.check("ask", self.keys, question)
        elif do == "give up" and (waiting := self.waiting()):
            key = self.chance.choice(waiting)
            del self.open[key]
            self.check("give up", key)
        elif do == "end" and self.chance.random() < 0.1:
            self.end(status_of(self.chance.choice([0, 3, -9])))
        elif self.is_stopped is False and self.chance.random() < 0.1:
            self.end(status_of(-15))
        elif self.is_stopped and self.chance.random() < 0.3:
            self.check("gone")

    def waiting(self) -> list[int]:
        return [key for key, (question, _) in self.open.items() if question in ("wait", "kill")]

    def end(self, status: ExitStatus) -> None:
        if self.status is None:
            self.status = status
        self.check("exit", status)

    def check(self, *step: Any) -> None:
        was_released = self.is_released
        if step[0] == "ask" and step[2] == "release" and not was_released:
            self.is_released = True
            self.status = self.status or KILLED
        effects = self.stage.play(self.now, *step)
        assert not (self.is_finished and any(each[0] != "refuse" for each in effects))
        for each in effects:
            self.take(each, was_released=was_released)
        assert self.stage.rules.status == self.status
        waiting = [question for question, _ in self.open.values() if question != "release"]
        assert not (self.status is not None and waiting)
        assert all(
            self.now - at <= KILL_S + 0.31 for name, at in self.open.values() if name == "kill"
        )

    def take(self, effect: Effect, *, was_released: bool) -> None:
        match effect:
            case ["answer", key, result]:
                self.answered(self.open.pop(key)[0], result)
            case ["refuse", key, _]:
                del self.open[key]
                assert was_released or len(self.open) >= MAX_WAITS
            case ["end", at_once]:
                assert self.is_stopped is None or (at_once and not self.is_stopped)
                self.is_stopped = at_once
            case ["alarm", after_s]:
                self.alarms.append(self.now + after_s)
            case ["show"]:
                assert self.status is None
            case ["finish"]:
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
        model.check("ask", 10_000, "release")
    model.now += RELEASE_S
    model.check("due")
    assert (model.is_finished, model.open) == (True, {})

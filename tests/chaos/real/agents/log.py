"""The log of stand-ins, read as evidence. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs

from tests.chaos.agent_notes import AgentNotes
from tests.chaos.checking.agent_evidence import (
    Began,
    Effect,
    Process,
    Question,
    Reported,
    Said,
    UserFrame,
)


def read_log(lines: Iterable[str], notes: AgentNotes) -> None:
    """Add the log of all stand-ins to ``notes``. A last line may be torn."""
    reader = _Reader(notes)
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        reader.take(entry)
    notes.processes = list(reader.processes.values())


class _Reader:
    """The log so far; a process is known by its pid until another one begins with it."""

    def __init__(self, notes: AgentNotes) -> None:
        self._notes = notes
        self._numbers: dict[int, int] = {}
        self._questions: dict[tuple[int, str], str] = {}
        self.processes: dict[int, Process] = {}

    def take(self, entry: dict[str, Any]) -> None:
        """Take one line."""
        if entry["kind"] == "begun":
            self._begun(entry)
        number = self._numbers[entry["pid"]]
        where = {"process": number, "session": entry["session"], "moment": entry["moment"]}
        match entry["kind"]:
            case "ready":
                self.processes[number] = attrs.evolve(
                    self.processes[number],
                    is_ready=True,
                    is_primed=entry["primed"],
                    conversation=entry["conversation"],
                )
            case "frame":
                frame = UserFrame(**where, uuid=entry["uuid"], tokens=_orders(entry["tokens"]))
                self._notes.frames.append(frame)
            case "reported":
                reported = Reported(**where, uuid=entry["uuid"], outcome=entry["outcome"])
                self._notes.reported.append(reported)
            case "began":
                conversation, by_person = entry["conversation"], entry["person"]
                self._notes.begun.append(
                    Began(
                        process=number,
                        session=entry["session"],
                        conversation=conversation,
                        by_person=by_person,
                        moment=entry["moment"],
                    )
                )
            case "said":
                source, text = entry["source"], entry["text"]
                said = Said(session=entry["session"], process=number, source=source, text=text)
                self._notes.said.append(said)
            case "asked":
                [token] = entry["tokens"]
                self._questions[number, entry["key"]] = token
                self._notes.questions.append(Question(**where, key=entry["key"], token=token))
            case "effect":
                self._notes.effects.append(
                    Effect(
                        process=number,
                        key=entry["key"],
                        token=self._questions[number, entry["key"]],
                        is_allowed=entry["allowed"],
                        moment=entry["moment"],
                    )
                )

    def _begun(self, entry: dict[str, Any]) -> None:
        number = self._numbers[entry["pid"]] = len(self.processes) + 1
        self.processes[number] = Process(
            number=number,
            session=entry["session"],
            begun=entry["moment"],
            resumes=entry["resumes"],
            is_person=entry["person"],
            beside=tuple(entry["beside"]),
        )


def _orders(tokens: list[str]) -> tuple[str, ...]:
    return tuple(each for each in tokens if each.startswith("@work."))

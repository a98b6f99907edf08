"""A simulated Claude Code in a terminal, with the person who uses it there.

Both are one process: it starts on a conversation of an agent, and says something, begins another
conversation, becomes deaf to signals, or leaves a child behind, at random. It ends by itself, or
stays until it is ended. Like the real program it keeps what was said in files, writes the start of
each conversation where its hook says, and has no file of a conversation before its first message.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import trio

from aegis.agents.drivers.conversations.claude import STARTS
from aegis.agents.drivers.tui import SCRIPT
from aegis.processes.process_table import COOKIE_VARIABLE
from tests.chaos.checking.agent_evidence import Process, Said
from tests.chaos.machine.simulated_agent import (
    SLOW_S,
    TOUGH,
    AgentWorld,
    agents_on,
    session_of,
    sleep_forever,
)
from tests.chaos.machine.simulated_processes import Program, SimulatedProcess
from tests.chaos.reproducible import BEGIN

CONFIGURATION = "CLAUDE_CONFIG_DIR"
"""The variable with the directory of the program's files."""

MOST_ACTS = 4
"""The most things that a person does in one take-over."""

STAYS = 0.5
"""The share of people who leave only when they are made to."""


def takeover_program(world: AgentWorld, scratch: Path) -> Program:
    """Return the program ``sh SESSION``, whose script in ``scratch`` becomes Claude Code."""

    async def run(process: SimulatedProcess, words: Sequence[str]) -> int:
        script = scratch / words[0] / SCRIPT
        given = _take(script)
        variables = dict(each.split("=", 1) for each in _after(given, "export"))
        argv = given[given.index("exec") + 1 :]
        [resumes] = [each.removeprefix("--resume=") for each in argv if each.startswith("--resume")]
        process.cookie = variables[COOKIE_VARIABLE]
        return await _Tui(
            world=world,
            process=process,
            number=len(world.processes) + 1,
            starts=script.parent / STARTS,
            files=Path(variables[CONFIGURATION], "projects", "simulated"),
            conversation=resumes,
        ).main()

    return run


def _take(script: Path) -> list[str]:
    words = shlex.split(script.read_text())
    script.unlink()
    return words


def _after(words: Sequence[str], word: str) -> list[str]:
    return [next_ for each, next_ in pairwise(words) if each == word]


@attrs.define
class _Tui:
    world: AgentWorld
    process: SimulatedProcess
    number: int
    starts: Path
    files: Path
    conversation: str

    @property
    def session(self) -> str:
        assert self.process.cookie is not None
        return session_of(self.process.cookie)

    async def main(self) -> int:
        process, chance = self.process, self.process.machine.chance
        others = [each for each in agents_on(process.machine, self.session) if each is not process]
        self.world.processes[self.number] = Process(
            number=self.number,
            session=self.session,
            begun=self.world.moment(),
            resumes=self.conversation,
            conversation=self.conversation,
            is_ready=self.conversation in self.world.conversations,
            is_person=True,
            beside=tuple(str(each.info) for each in others),
        )
        await process.write(f"resumed {self.conversation}\n".encode())
        if self.conversation not in self.world.conversations:
            await process.write(b"No conversation found\n")
            return 1
        self._start()
        for _ in range(chance.randint(0, MOST_ACTS)):
            await process.sleep(chance.uniform(0, SLOW_S))
            [act] = chance.choices((self._say, self._clear, self._harden, self._fork), (8, 2, 1, 1))
            act()
        if chance.random() < STAYS and not self.world.is_calm:
            await trio.sleep_forever()
        await process.write(f"claude --resume {self.conversation}\n".encode())
        return 0

    def _start(self) -> None:
        line = {"session_id": self.conversation, "hook_event_name": "SessionStart"}
        _append(self.starts, line)

    def _say(self) -> None:
        if self.conversation not in self.world.conversations:
            self.world.conversations[self.conversation] = []
            self.world.begins(self.number, self.conversation, by_person=True)
        for role in ("user", "assistant"):
            uuid = self.world.new_id(self.process.machine)
            text = f"{role} says {uuid}"
            _append(
                self.files / f"{self.conversation}.jsonl",
                {
                    "type": role,
                    "message": {"role": role, "content": [{"type": "text", "text": text}]},
                    "uuid": uuid,
                    "timestamp": (BEGIN + timedelta(seconds=trio.current_time())).isoformat(),
                    "sessionId": self.conversation,
                },
            )
            self.world.said.append(
                Said(session=self.session, process=self.number, source=f"{uuid}/0", text=text)
            )
        self.world.conversations[self.conversation].append(uuid)

    def _clear(self) -> None:
        self.conversation = self.world.new_id(self.process.machine)
        self._start()

    def _harden(self) -> None:
        self.process.ignore(*TOUGH)

    def _fork(self) -> None:
        machine = self.process.machine
        machine.fork(self.process, sleep_forever, ["child"], in_new_session=True, ignored=TOUGH)


def _append(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")

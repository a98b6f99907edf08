"""A simulated Claude Code: a process that speaks stream-json, ordered about by its prompts.

A message with ``@work.7.slow@`` is an order of the kind ``slow``:

    quick   a text               fail    a turn that ends in an error
    slow    a text, later        cancel  a turn that the program itself cancels
    ask     a permission         limit   a turn that a usage limit refuses
    retract a permission that is withdrawn by the program
    own     a turn of the program's own, and a repeated old result, before the result
    hang    nothing until it is interrupted
    child   a process that outlives its parent and ignores signals
    die     the end of the process

A message ``/clear`` begins another conversation. Like the real program it keeps conversations on
its own, reports the id of a new one with its first turn, finishes its turn at the end of its input,
and does not know a conversation without a turn.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import trio

from tests.chaos.checking.agent_evidence import (
    WORK,
    Began,
    Effect,
    Process,
    Question,
    Reported,
    Said,
    UserFrame,
)
from tests.chaos.machine.simulated_processes import Machine, SimulatedProcess
from tests.chaos.machine.simulated_tty import Bell
from tests.chaos.reproducible import BEGIN

KINDS = (
    *("quick", "slow", "ask", "retract", "own", "hang", "child", "die", "fail", "cancel", "limit"),
)

CLEAR = "clear"
"""The name of the command that begins another conversation."""

LOST = "could not be resumed"
"""Words of the primer of a conversation that follows a lost one."""

HOP_S = 0.003
"""The longest time, in seconds, that a frame takes."""

SLOW_S = 0.3
LIMIT_S = 1.0
TOUGH = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)

Frame = dict[str, Any]


class AgentWorld:
    """The state of agents' programs outside of any process, and their log.

    ``moment`` returns a new moment. ``is_calm``: every order is like ``quick``. ``has_commands``:
    agents announce theirs. So many processes as ``unstartable`` end before they are ready;
    ``on_failed_start`` is called for each.
    """

    def __init__(self, moment: Callable[[], int]) -> None:
        self.moment = moment
        self.is_calm = False
        self.has_commands = False
        self.unstartable = 0
        self.on_failed_start: Callable[[], None] = lambda: None
        self.conversations: dict[str, list[str]] = {}
        self.processes: dict[int, Process] = {}
        self.frames: list[UserFrame] = []
        self.reported: list[Reported] = []
        self.questions: list[Question] = []
        self.effects: list[Effect] = []
        self.waiting: dict[str, SimulatedProcess] = {}
        self.begun: list[Began] = []
        self.said: list[Said] = []

    def new_id(self, machine: Machine) -> str:
        """Return the id of a new conversation, or of what is said in one."""
        drawn = f"{machine.chance.getrandbits(64):016x}"
        return f"{drawn[:8]}-{drawn[8:12]}-{drawn[12:]}-0000-000000000000"

    def begins(self, process: int, conversation: str, *, by_person: bool = False) -> None:
        """Log that the conversation of a process's session is this one from now on."""
        self.begun.append(
            Began(
                process=process,
                session=self.processes[process].session,
                conversation=conversation,
                by_person=by_person,
                moment=self.moment(),
            )
        )

    def forget(self, draw: int) -> bool:
        """Forget a conversation; return False if there is none."""
        known = sorted(self.conversations)
        if known:
            del self.conversations[known[draw % len(known)]]
        return bool(known)

    def open_questions(self, machine: Machine) -> frozenset[str]:
        """Return the tokens of the questions that live processes of a machine wait for."""
        alive = machine.alive
        return frozenset(token for token, each in self.waiting.items() if each in alive)


def agents_on(machine: Machine, session: str | None = None) -> list[SimulatedProcess]:
    """Return the live processes of agents, of one session or of all."""
    return [
        each
        for each in machine.alive
        if each.cookie is not None
        and "//" in each.cookie
        and "//w/" not in each.cookie  # a process of a workflow
        and (session is None or session_of(each.cookie) == session)
    ]


def session_of(cookie: str) -> str:
    """Return the session of an agent's cookie."""
    return cookie.rsplit("/", 2)[1]


class SimulatedClaude:
    """The program of one process. ``resumes`` is its argument ``--resume``.

    ``is_fork``: it has the argument ``--fork-session``, and continues in a copy.
    """

    def __init__(
        self, world: AgentWorld, session: str, resumes: str | None, *, is_fork: bool = False
    ) -> None:
        self.output: deque[Frame] = deque()
        self.has_output = Bell()
        self._world = world
        self._session = session
        self._resumes = resumes
        self._is_fork = is_fork
        self._conversation = resumes or ""
        self._copied: list[str] = []
        self._input: deque[Frame] = deque()
        self._has_input = Bell()
        self._at_end = False
        self._turns: deque[Frame] = deque()
        self._is_interrupted = False
        self._answers: dict[str, bool] = {}
        self._asked = 0
        self._uuid = ""
        self.number = len(world.processes) + 1

    def starts(self, beside: tuple[str, ...]) -> None:
        """Log the start of the process."""
        self._world.processes[self.number] = Process(
            number=self.number,
            session=self._session,
            begun=self._world.moment(),
            resumes=self._resumes,
            is_fork=self._is_fork,
            beside=beside,
        )

    # The client's side.

    def take(self, frame: Frame) -> None:
        """Take a frame into the pipe, and log it: from now on the program may act on it."""
        self._log_input(frame)
        self._input.append(frame)
        self._has_input.ring()

    def end_input(self) -> None:
        """Close the input."""
        self._at_end = True
        self._has_input.ring()

    def _log_input(self, frame: Frame) -> None:
        if frame["type"] == "user":
            text = frame["message"]["content"][0]["text"]
            self._world.frames.append(
                UserFrame(
                    process=self.number,
                    session=self._session,
                    uuid=frame["uuid"],
                    tokens=tuple(WORK.findall(text)),
                    moment=self._world.moment(),
                )
            )
        elif frame["type"] == "control_response":
            answer = frame["response"]
            key = answer["request_id"]
            [asked] = [each for each in self._world.questions if self._is_own(each, key)]
            self._world.effects.append(
                Effect(
                    process=self.number,
                    key=key,
                    token=asked.token,
                    is_allowed=answer["response"].get("behavior") == "allow",
                    moment=self._world.moment(),
                )
            )

    def _is_own(self, question: Question, key: str) -> bool:
        return question.process == self.number and question.key == key

    # The program.

    async def main(self, process: SimulatedProcess) -> int:
        """Serve until the end of the input; return the exit code."""
        self._process = process
        if self._world.unstartable > 0:
            self._world.unstartable -= 1
            self._world.on_failed_start()
            return 1
        while True:
            while self._turns:
                code = await self._turn(self._turns.popleft())
                if code is not None:
                    return code
            if not await self._wait(None):
                return 0
            if self._is_refused:
                return 1

    @property
    def _is_refused(self) -> bool:
        return self._resumes is not None and self._resumes not in self._world.conversations

    async def _wait(self, seconds: float | None) -> bool:
        """Take the next frame; return False at the end of the input, or when time is up."""
        with trio.move_on_after(float("inf") if seconds is None else seconds):
            while not self._input and not self._at_end:
                await self._has_input.wait()
        if not self._input:
            return False
        await self._process.sleep(self._process.machine.chance.uniform(0, HOP_S))
        self._handle(self._input.popleft())
        return True

    def _handle(self, frame: Frame) -> None:
        match frame:
            case {"type": "user"}:
                self._turns.append(frame)
            case {"type": "control_request", "request": {"subtype": "initialize"} as fields}:
                self._initialize(frame, fields)
            case {"type": "control_request", "request": {"subtype": subtype}}:
                self._is_interrupted |= subtype == "interrupt" and bool(self._uuid)
                self._respond(frame, {})
            case {"type": "control_response", "response": {"request_id": key, "response": body}}:
                self._answers[key] = body.get("behavior") == "allow"

    def _initialize(self, frame: Frame, fields: Frame) -> None:
        known = self._world.processes[self.number]
        is_primed = LOST in fields.get("appendSystemPrompt", "")
        if self._is_refused:
            self._out("result", subtype="error_during_execution", is_error=True, errors=["gone"])
            self._world.processes[self.number] = attrs.evolve(known, is_primed=is_primed)
            return
        if self._resumes is None or self._is_fork:
            self._conversation = self._world.new_id(self._process.machine)
        if self._is_fork:
            self._copied = [*self._world.conversations[self._resumes or ""]]
        self._world.processes[self.number] = attrs.evolve(
            known, is_primed=is_primed, is_ready=True, conversation=self._conversation
        )
        announced = {"commands": [{"name": CLEAR}]} if self._world.has_commands else {}
        self._respond(frame, {"mcp_servers_applied": True, "session_state": "idle", **announced})

    def _respond(self, frame: Frame, body: Frame) -> None:
        answer = {"subtype": "success", "request_id": frame["request_id"], "response": body}
        self._send({"type": "control_response", "response": answer})

    def _out(self, kind: str, **fields: Any) -> None:
        self._send({"type": kind, **fields, "session_id": self._conversation})

    def _send(self, frame: Frame) -> None:
        self.output.append(frame)
        self.has_output.ring()

    # Turns.

    async def _turn(self, frame: Frame) -> int | None:
        """Do what a user frame orders; return the exit code if the process ends in it."""
        self._uuid, self._is_interrupted = frame["uuid"], False
        text = frame["message"]["content"][0]["text"]
        if self._conversation not in self._world.conversations:
            self._world.begins(self.number, self._conversation)
        turns = self._world.conversations.setdefault(self._conversation, self._copied)
        turns.append(self._uuid)
        self._out("command_lifecycle", command_uuid=self._uuid, state="started")
        servers = [{"name": "aegis", "status": "connected"}]
        self._out("system", subtype="init", model="simulated", mcp_servers=servers)
        outcome = "ok"
        if text == f"/{CLEAR}":
            self._clear()
        for token, kind in self._orders(text):
            if kind == "die":
                return 1
            outcome = await self._order(kind, token)
            if outcome != "ok":
                break
        self._end_turn(outcome)
        return None

    def _clear(self) -> None:
        self._out("conversation_reset", trigger="clear")
        self._conversation = self._world.new_id(self._process.machine)
        self._world.conversations[self._conversation] = []
        self._world.begins(self.number, self._conversation)

    def _orders(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the token and the kind of each order."""
        for token in WORK.findall(text):
            kind = token.strip("@").rpartition(".")[2]
            yield token, "quick" if self._world.is_calm else kind

    async def _order(self, kind: str, token: str) -> str:
        """Carry out one order; return the outcome of the turn if it ended with it."""
        match kind:
            case "slow":
                await self._sleep(self._process.machine.chance.uniform(0, SLOW_S))
            case "ask" | "retract":
                await self._ask(is_retracted=kind == "retract")
            case "own":
                self._own_turn()
            case "hang":
                while not self._is_interrupted and not self._at_end:
                    await self._wait(None)
                return "cancelled"
            case "child":
                machine = self._process.machine
                words, main = ["child"], sleep_forever
                machine.fork(self._process, main, words, in_new_session=True, ignored=TOUGH)
            case "limit":
                resets_at = BEGIN.timestamp() + trio.current_time() + LIMIT_S
                info = {"status": "rejected", "resetsAt": resets_at}
                self._out("rate_limit_event", rate_limit_info=info)
                return "failed"
            case "fail":
                return "failed"
            case "cancel":
                return "dropped"
        block = {"type": "text", "text": f"did {token.strip('@')}"}
        self._out("assistant", message={"role": "assistant", "content": [block]})
        return "cancelled" if self._is_interrupted else "ok"

    async def _sleep(self, seconds: float) -> None:
        end = trio.current_time() + seconds
        while trio.current_time() < end and not self._is_interrupted and not self._at_end:
            await self._wait(end - trio.current_time())
        if self._at_end:
            await self._process.sleep(max(0.0, end - trio.current_time()))

    def _own_turn(self) -> None:
        """Report a turn that nobody ordered, and an old result once more."""
        self._result([], origin={"kind": "task-notification"})
        # A fault of the script may have taken the conversation.
        earlier = self._world.conversations.get(self._conversation, [])[:-1]
        if earlier:
            self._result(earlier[-1:])

    def _end_turn(self, outcome: str) -> None:
        uuid, self._uuid = self._uuid, ""
        shown: Any = "cancelled" if outcome in ("dropped", "cancelled") else outcome
        self._world.reported.append(
            Reported(
                process=self.number,
                session=self._session,
                uuid=uuid,
                outcome=shown,
                moment=self._world.moment(),
            )
        )
        if outcome == "dropped":
            self._out("command_lifecycle", command_uuid=uuid, state="cancelled")
        else:
            self._result([uuid], ok=outcome == "ok")
            state = "completed" if outcome == "ok" else "cancelled"
            self._out("command_lifecycle", command_uuid=uuid, state=state)

    def _result(self, uuids: list[str], *, ok: bool = True, **fields: Any) -> None:
        self._out(
            "result",
            subtype="success" if ok else "error_during_execution",
            is_error=not ok,
            terminal_reason="completed" if ok else "aborted_streaming",
            result="",
            user_message_uuids=uuids,
            **fields,
        )

    # Requests.

    async def _ask(self, *, is_retracted: bool) -> None:
        # Ids repeat in each process, as those of agents that number their requests do.
        self._asked += 1
        key, token = f"req_{self._asked}", f"@ask.{self.number}.{self._asked}@"
        self._world.questions.append(
            Question(
                process=self.number,
                session=self._session,
                key=key,
                token=token,
                moment=self._world.moment(),
            )
        )
        self._world.waiting[token] = self._process
        asked = {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "input": {"command": f"echo {token}"},
            "tool_use_id": f"toolu_{self._asked}",
        }
        self._send({"type": "control_request", "request_id": key, "request": asked})
        if is_retracted:
            await self._sleep(self._process.machine.chance.uniform(0, SLOW_S))
        else:
            while not self._is_decided(key):
                await self._wait(None)
        del self._world.waiting[token]
        if key not in self._answers:
            self._send({"type": "control_cancel_request", "request_id": key})

    def _is_decided(self, key: str) -> bool:
        return key in self._answers or self._is_interrupted or self._at_end


async def sleep_forever(process: SimulatedProcess) -> int:
    """Do nothing until a signal."""
    while True:
        await process.sleep(1000)

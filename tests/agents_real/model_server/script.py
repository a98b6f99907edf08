"""The lines that a test writes into a prompt and that the scripted model plays. Pure.

A line begins with one of these words; every other line is ignored:

    SAY text           text of the answer; consecutive lines are joined by newlines
    THINK text         reasoning, where the wire has it
    CALL tool {json}   a tool call; the request that brings its result continues with the next line
    ALSO tool {json}   one more tool call in the same answer as the preceding CALL or BASH
    BASH command       a call of the CLI's own shell tool
    WAIT seconds       a pause in the middle of the answer
    ERROR status [n]   an HTTP error, or a broken stream after SAY; only the first n times if given
    LIMIT [seconds]    the usage limit is reached, before any other line of its answer; it is lifted
                       after so many seconds (3600)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import attrs

Json: TypeAlias = dict[str, Any]

LIMIT_S = 3600


@attrs.frozen
class Say:
    """Text of the answer."""

    text: str


@attrs.frozen
class Think:
    """Reasoning."""

    text: str


@attrs.frozen
class Call:
    """A tool call; ``joins`` when it belongs to the answer of the preceding call."""

    tool: str
    arguments: Json
    joins: bool = False


@attrs.frozen
class Bash:
    """A call of whichever offered tool runs shell commands."""

    command: str


@attrs.frozen
class Wait:
    """A pause, in seconds."""

    seconds: float


@attrs.frozen
class Fail:
    """An HTTP error; ``times`` limits how often it is played, ``None`` is always."""

    status: int
    times: int | None = None


@attrs.frozen
class Limit:
    """The usage limit is reached, for so many seconds."""

    seconds: int


Step: TypeAlias = Say | Think | Call | Bash | Wait | Fail | Limit


def parse(text: str) -> tuple[Step, ...]:
    """Return the steps of a prompt; a malformed line becomes a ``Say`` that quotes it."""
    return tuple(step for line in text.splitlines() if (step := _step(line.strip())) is not None)


def _step(line: str) -> Step | None:
    word, _, rest = line.partition(" ")
    read = READERS.get(word)
    if read is None:
        return None
    try:
        return read(rest.strip())
    except ValueError as error:
        return Say(f"malformed script line {line!r}: {error}")


def _call(rest: str, *, joins: bool = False) -> Call:
    tool, _, text = rest.partition(" ")
    arguments = json.loads(text or "{}")
    if not tool or not isinstance(arguments, dict):
        raise ValueError("a tool's name and a JSON object are needed")
    return Call(tool, arguments, joins)


def _fail(rest: str) -> Fail:
    status, _, times = rest.partition(" ")
    return Fail(int(status), int(times) if times else None)


READERS: dict[str, Callable[[str], Step]] = {
    "SAY": Say,
    "THINK": Think,
    "CALL": _call,
    "ALSO": lambda rest: _call(rest, joins=True),
    "BASH": Bash,
    "WAIT": lambda rest: Wait(float(rest)),
    "ERROR": _fail,
    "LIMIT": lambda rest: Limit(int(rest or LIMIT_S)),
}


def steps_after(steps: Sequence[Step], calls: int) -> list[Step]:
    """Return the steps of the next answer, when so many calls of the script were made already.

    An answer ends with its calls, since the model then needs their results.
    """
    at = _index_after_calls(steps, calls)
    answer: list[Step] = []
    for step in steps[at:]:
        if answer and _is_call(answer[-1]) and not (isinstance(step, Call) and step.joins):
            break
        answer.append(step)
    return answer


def _index_after_calls(steps: Sequence[Step], calls: int) -> int:
    made = 0
    for at, step in enumerate(steps):
        if made == calls:
            return at
        made += _is_call(step)
    return len(steps)


def _is_call(step: Step) -> bool:
    return isinstance(step, (Call, Bash))


@attrs.frozen
class Tool:
    """A tool that the CLI offers; ``space`` is its namespace on wires that have them."""

    name: str
    schema: Json = attrs.field(factory=dict)
    space: str | None = None


SHELL_TOOLS = (
    "Bash",
    "bash",
    "run_shell_command",
    "Shell",
    "exec_command",
    "shell_command",
    "shell",
)


def find_tool(tools: Iterable[Tool], name: str) -> Tool:
    """Return the offered tool with this name, or the one whose qualified name ends with it.

    CLIs prefix the names of MCP tools: ``mcp__aegis__term_run``, ``aegis_term_run``. A name that is
    not offered is called as it was written, as a model would that remembers it.
    """
    offered = tuple(tools)
    exact = [tool for tool in offered if tool.name == name]
    suffixed = [tool for tool in offered if tool.name.endswith(f"_{name}")]
    return next(iter(exact or suffixed), Tool(name))


def shell_call(tools: Iterable[Tool], command: str) -> Call:
    """Return the call of the offered shell tool that runs ``command``."""
    offered = {tool.name: tool for tool in tools}
    name = next((each for each in SHELL_TOOLS if each in offered), "Bash")
    properties = offered[name].schema.get("properties", {}) if name in offered else {}
    key = "cmd" if "cmd" in properties else "command"
    value = ["bash", "-c", command] if _is_array(properties.get(key)) else command
    described = {"description": "Run a command"} if "description" in properties else {}
    return Call(name, {key: value, **described})


def _is_array(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "array"

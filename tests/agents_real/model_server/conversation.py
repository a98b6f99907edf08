"""A request to the model, in one form for all wires, and the steps to play next. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from tests.agents_real.model_server.script import (
    Bash,
    Call,
    Json,
    Say,
    Step,
    Tool,
    find_tool,
    parse,
    shell_call,
    steps_after,
)

HEARD_CHARS = 200

Book: TypeAlias = Mapping[str, str]
"""Scripts by a phrase of the prompt that plays them, for prompts in plain language."""


@attrs.frozen(kw_only=True)
class Message:
    """One message: its texts, how many tool calls it makes, the results that it brings."""

    role: str
    texts: tuple[str, ...] = ()
    calls: int = 0
    results: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Request:
    """A request for one answer of the model."""

    model: str
    system: str
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    is_streamed: bool
    wants_json: bool = False

    @property
    def is_aside(self) -> bool:
        """Whether the CLI asks for itself, a title for example: then it offers no tools."""
        return not self.tools

    def record(self) -> Json:
        """Return what a test may ask about."""
        return {
            "model": self.model,
            "system": self.system,
            "tools": [tool.name for tool in self.tools],
            "messages": [attrs.asdict(message) for message in self.messages],
            "is_aside": self.is_aside,
        }


@attrs.frozen
class Prompt:
    """The newest message with words for the model, its script, and the number of calls since."""

    text: str
    script: tuple[Step, ...]
    calls: int


def newest_prompt(request: Request, book: Book) -> Prompt:
    """Return the newest prompt: of several texts in one message, the last one with a script.

    CLIs add notes of their own, within tags, to messages and to results: those are no prompts.
    kimi sends a cancelled prompt and the next one as one message.
    """
    calls = 0
    for message in reversed(request.messages):
        calls += message.calls
        if message.role != "user":
            continue
        texts = [each for each in message.texts if not each.lstrip().startswith("<")]
        scripts = [(each, script) for each in texts if (script := script_of(each, book))]
        if scripts:
            return Prompt(*scripts[-1], calls)
        if any(each.strip() for each in texts) and not message.results:
            return Prompt("\n".join(texts), (), calls)
    return Prompt("", (), calls)


def script_of(text: str, book: Book) -> tuple[Step, ...]:
    """Return the script in a text, or else the one of the longest phrase of the book in it."""
    script = parse(text)
    phrases = [phrase for phrase in book if phrase in text]
    return script or parse(book[max(phrases, key=len)] if phrases else "")


def play(request: Request, book: Book) -> list[Step]:
    """Return the steps of the answer; calls have the names and arguments of offered tools."""
    if request.is_aside:
        return [Say("{}" if request.wants_json else "ok")]
    prompt = newest_prompt(request, book)
    if not prompt.script:
        return [Say(f"heard: {prompt.text.strip()[:HEARD_CHARS]}")]
    steps = steps_after(prompt.script, prompt.calls)
    return [_resolved(step, request.tools) for step in steps] or [Say("done")]


def _resolved(step: Step, tools: tuple[Tool, ...]) -> Step:
    match step:
        case Bash(command):
            return shell_call(tools, command)
        case Call(name, arguments, joins):
            return Call(find_tool(tools, name).name, arguments, joins)
        case _:
            return step

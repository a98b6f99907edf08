"""The texts of the chat: plain text, escaped, in messages that Telegram takes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aegis.protocol.agent_states import STALLED_S
from aegis.protocol.agents import AgentInfo
from aegis.protocol.inboxes import Message
from aegis.protocol.queues import QueueInfo, TaskInfo
from aegis.protocol.requests import RequestInfo
from aegis.protocol.terminals import CommandRecord, TerminalInfo
from aegis.shown_text import escape_line, escape_text
from aegis.telegram.forms import value_text
from aegis.telegram.updates import MAX_TEXT_CHARS

MAX_PARTS = 4
"""Messages that one text may take; the middle of a longer one is left out."""

MAX_INPUT_CHARS = 2_500
OUTPUT_CHARS = 3_000
BUTTON_CHARS = 40
ANSWERS_CHARS = 400
OWN_PREFIX = "mcp__aegis__"

DOTS = {
    "working": "🟢",
    "starting": "🟢",
    "running": "🟢",
    "blocked": "🟡",
    "limited": "🟡",
    "needs_input": "🟡",
    "stale": "🟠",
    "stalled": "🟠",
    "unreachable": "🟠",
    "error": "🔴",
    "failed": "🔴",
    "closed": "✅",
}


def parts_of(text: str) -> list[str]:
    """Return a text as messages, each of a length that Telegram takes."""
    text = escape_text(text).strip() or "(nothing)"
    limit = MAX_PARTS * MAX_TEXT_CHARS
    if _units(text) > limit:
        half = limit // 4
        text = f"{text[:half]}\n[… left out …]\n{text[-half:]}"
    parts = []
    while text:
        size = _fitting(text)
        cut = text.rfind("\n", size // 2, size) if size < len(text) else size
        cut = size if cut <= 0 else cut
        parts.append(text[:cut])
        text = text[cut:].lstrip("\n")
    return parts


def _units(text: str) -> int:
    """Return the length as Telegram counts it: in UTF-16 code units."""
    return len(text) + sum(1 for each in text if ord(each) > 0xFFFF)


def _fitting(text: str) -> int:
    """Return how many characters fit one message."""
    if _units(text) <= MAX_TEXT_CHARS:
        return len(text)
    used = 0
    for index, char in enumerate(text):
        used += 2 if ord(char) > 0xFFFF else 1
        if used > MAX_TEXT_CHARS:
            return index
    return len(text)


def request_text(request: RequestInfo) -> str:
    """Return a request with its input, as far as one message takes it."""
    tool = request.tool.removeprefix(OWN_PREFIX) or request.tool_kind
    lines = [f"🟡 {request.handle} · {request.kind}: {tool}"]
    lines += [each for each in (request.title, request.reason) if each]
    if request.kind == "question" and is_whole(request):
        lines += _questions(request.input or {})
    elif request.input is None:
        lines.append(f"({request.input_bytes:,} bytes, it can only be denied) {request.excerpt}")
    else:
        lines.append(_shown_input(request))
    text = escape_text("\n".join(lines))
    if is_whole(request):
        return text
    return f"{text[:MAX_INPUT_CHARS]}\n[… too long to be allowed here: use the page or the TUI]"


def _questions(document: Mapping[str, Any]) -> list[str]:
    """Return the questions of an agent with their options; everything else as it is."""
    lines, asked = [], document.get("questions")
    for each in asked if isinstance(asked, list) else []:
        question = each if isinstance(each, dict) else {"question": each}
        lines.append(str(question.get("question")))
        options = question.get("options")
        for option in options if isinstance(options, list) else []:
            words = option.values() if isinstance(option, dict) else [option]
            lines.append(f"• {' - '.join(str(word) for word in words)}")
    return lines


def is_whole(request: RequestInfo) -> bool:
    """Return whether one message shows all of the input, so that it may be allowed here."""
    if request.input is None:
        return False
    return len(_shown_input(request)) <= MAX_INPUT_CHARS


def _shown_input(request: RequestInfo) -> str:
    return request.plan or json.dumps(request.input, ensure_ascii=False, indent=1)


def settled_text(request: RequestInfo) -> str:
    """Return the text of a request that can no longer be answered."""
    if request.state == "withdrawn":
        ending = f"⚪ withdrawn: {request.withdrawn}"
    else:
        kind = _answer_text(request.answer or {})
        sign = "🔴" if kind.startswith(("deny", "decline", "cancel")) else "✅"
        ending = f"{sign} {kind} by {request.by}"
    return f"{request_text(request)}\n\n{escape_line(ending)}"


def _answer_text(answer: Mapping[str, Any]) -> str:
    """Return an answer in a few words, with the values of a form."""
    if "kind" in answer:
        return str(answer["kind"]).replace("_", " ")
    if "answers" in answer and answer["answers"] is None:
        return "declined"
    given = answer.get("answers") or answer.get("content")
    word = str(answer.get("action", "answered"))
    if not isinstance(given, Mapping) or not given:
        return word
    answers = ", ".join(f"{key}: {value_text(each)}" for key, each in given.items())
    return f"{word} ({answers if len(answers) <= ANSWERS_CHARS else f'{answers[:ANSWERS_CHARS]}…'})"


def wake_text(message: Message) -> str:
    """Return a message of the person's inbox."""
    return f"✉ from {message.sender}\n{message.body}"


def record_text(record: CommandRecord, terminal: str) -> str:
    """Return a command and what came of it."""
    output = (record.stdout + record.stderr).rstrip()
    shown = output if len(output) <= OUTPUT_CHARS else f"…{output[-OUTPUT_CHARS:]}"
    if record.end is None:
        needs = " and waits for input" if record.needs_input is not None else ""
        ending = f"⏳ it runs{needs}: seq {record.seq}"
    else:
        code = "unknown" if record.exit is None else str(record.exit)
        took = "" if record.duration_s is None else f" · {record.duration_s:.2f}s"
        ending = f"{'✅' if record.exit == 0 else '🔴'} exit {code}{took}"
    lines = [f"{terminal} $ {escape_line(record.cmd or '')}", shown, ending]
    return "\n".join(each for each in lines if each)


def list_text(agents: Sequence[AgentInfo], terminals: Sequence[TerminalInfo]) -> str:
    """Return the sessions and terminals."""
    lines = []
    for each in agents:
        state = _agent_state(each)
        asked = "" if each.blocked is None else f": {each.blocked.title}"
        lines.append(f"{DOTS.get(state, '⚪')} {each.handle} - {state}{escape_line(asked)}")
    lines += [
        f"{DOTS.get(each.state, '⚪')} term:{each.name} - {_terminal_state(each)}"
        for each in terminals
    ]
    return "\n".join(lines) or "nothing is open"


def _agent_state(info: AgentInfo) -> str:
    if info.taken_over is not None:
        return f"taken over in terminal {info.taken_over.terminal}"
    is_stalled = info.state == "working" and info.quiet_s >= STALLED_S
    return "stalled" if is_stalled else info.state


def _terminal_state(info: TerminalInfo) -> str:
    if info.state == "idle" and info.last_exit is not None:
        return f"exit {info.last_exit}"
    return info.state


MAX_TASKS = 10
"""The waiting tasks that are shown."""


def queues_text(queues: Iterable[QueueInfo], tasks: Iterable[TaskInfo] = ()) -> str:
    """Return the queues, and of ``tasks`` those that wait for others or for a time."""
    lines = [
        f"▣ {each.queue}: {each.running}/{each.max_parallel} running, {each.pending} pending"
        f"{', paused' if each.paused else ''}{f' - {each.problem}' if each.problem else ''}"
        for each in queues
    ]
    waiting = [each for each in tasks if each.waits]
    lines += [
        f"⚪ {each.task_id} of {each.queue} waits {each.waits}" for each in waiting[:MAX_TASKS]
    ]
    lines += [f"{len(waiting) - MAX_TASKS} more wait"] * (len(waiting) > MAX_TASKS)
    return "\n".join(lines) or "there is no queue"

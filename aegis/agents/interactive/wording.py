"""The message to people that a terminal agent needs input. Pure."""

from __future__ import annotations

from aegis.lifecycle.states import Evidence, Need

_LEADS = {
    "permission": "asks for a permission",
    "question": "asks a question",
    "auth": "asks for a secret",
    "input": "waits for input",
    "ready": "is ready for its next order",
    "failed": "ended its work with an error",
}


def need_text(need: Need, source: Evidence) -> str:
    """Return the need as one line: what the agent does, and its own text."""
    if source is Evidence.SILENCE:
        return "is silent, and may wait for input"
    lead = _LEADS[need.kind]
    return f"{lead}: {need.text}" if need.text else lead


def wake_body(need: Need, source: Evidence, terminal: str) -> str:
    """Return the body of the message: the need, the tool's input, and the remedy."""
    lines = [need_text(need, source)]
    if need.tool_input:
        lines += ["──", f"{need.tool} {need.tool_input}".strip()]
    return "\n".join([*lines, "──", f"answer with: aegis-actors term attach {terminal}"])

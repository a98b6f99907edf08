"""Scripts of the model, written in Python."""

from __future__ import annotations

import json


def script(*lines: str) -> str:
    """Return the lines as one script."""
    return "\n".join(lines)


def call(tool: str, /, **arguments: object) -> str:
    """Return the line that calls a tool."""
    return f"CALL {tool} {json.dumps(arguments)}"

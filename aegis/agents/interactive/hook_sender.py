"""The hook command of Claude Code: sends the event on standard input to the daemon.

    python -I -S hook_sender.py DIRECTORY

It runs outside the daemon's environment, so it uses the standard library only. It never delays or
fails the agent: an event that the daemon does not take at once is dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from typing import Any

SOCKET = "hooks"
MAX_INPUT_BYTES = 16 * 1024 * 1024
MAX_TEXT_CHARS = 2048
MAX_MEMBERS = 32
MAX_DEPTH = 4

FIELDS = (
    *("hook_event_name", "session_id", "source", "tool_name", "tool_input", "message"),
    *("notification_type", "last_assistant_message", "error"),
)
"""The fields that the daemon reads."""


def main() -> None:
    """Send one event."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        fields = json.loads(sys.stdin.buffer.read(MAX_INPUT_BYTES))
        if not isinstance(fields, dict):
            return
        kept = {name: shortened(fields[name]) for name in FIELDS if name in fields}
        send(sys.argv[1], json.dumps(kept).encode())


def shortened(value: Any, depth: int = 0) -> Any:
    """Return a JSON value with its long texts cut, so that it fits one datagram."""
    if isinstance(value, str):
        return value[:MAX_TEXT_CHARS]
    if depth == MAX_DEPTH:
        return None
    if isinstance(value, dict):
        members = list(value.items())[:MAX_MEMBERS]
        return {name[:MAX_TEXT_CHARS]: shortened(each, depth + 1) for name, each in members}
    if isinstance(value, list):
        return [shortened(each, depth + 1) for each in value[:MAX_MEMBERS]]
    return value


def send(directory: str, data: bytes) -> None:
    """Send a datagram to the socket in ``directory``. Raises ``OSError``."""
    # The path through the descriptor is short: a socket's own may be at most 107 bytes long.
    opened = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(data, f"/proc/self/fd/{opened}/{SOCKET}")
    finally:
        os.close(opened)


if __name__ == "__main__":
    main()

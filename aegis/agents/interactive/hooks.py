"""Hooks of Claude Code in its own terminal interface: its settings, and the socket they send to.

Hooks add the tool and its input to the evidence for the agent's state. Claude Code merges the
settings of ``--settings`` with those of the user, so the user's own hooks run as before.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from aegis.agents.interactive import hook_sender
from aegis.lifecycle.hooks import MAX_HOOK_BYTES, Hook, read_hook

SETTINGS = "hooks.json"

HOOK_S = 5
"""Seconds after which Claude Code gives up the hook command."""

EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
    *("PermissionRequest", "Notification", "Stop", "StopFailure", "SessionEnd"),
)

_CLAUDE = re.compile(r"(?:[\w./~+@%-]*/)?claude(?=\s|\Z)")


def takes_hooks(cmd: str, directory: Path) -> bool:
    """Return whether ``cmd`` starts Claude Code, without settings of its own."""
    # A path that is not UTF-8 cannot be in a command's text, nor in the JSON of the settings.
    is_text = str(directory).isprintable()
    return is_text and _CLAUDE.match(cmd.lstrip()) is not None and "--settings" not in cmd


def with_hooks(cmd: str, directory: Path) -> str:
    """Return ``cmd`` with the settings in ``directory``; the command as it is if it takes none."""
    if not takes_hooks(cmd, directory):
        return cmd
    cmd = cmd.lstrip()
    program = _CLAUDE.match(cmd)
    assert program is not None
    settings = shlex.quote(str(directory / SETTINGS))
    return f"{program[0]} --settings {settings}{cmd[program.end() :]}"


def write_settings(directory: Path) -> None:
    """Write the settings with hooks that send to the socket in ``directory``. Raises ``OSError``.

    Blocking.
    """
    words = [sys.executable, "-I", "-S", str(hook_sender.__file__), str(directory)]
    hook = {"type": "command", "command": shlex.join(words), "timeout": HOOK_S}
    settings = {"hooks": {event: [{"matcher": "", "hooks": [hook]}] for event in EVENTS}}
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = directory / f"{SETTINGS}.new"
    new.write_text(json.dumps(settings), encoding="utf-8")
    new.chmod(0o600)
    new.replace(directory / SETTINGS)


@contextmanager
def hook_socket(directory: Path) -> Iterator[trio.socket.SocketType]:
    """Open the socket in ``directory``, which exists; its file goes with it. Raises ``OSError``."""
    opened = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    path = Path(f"/proc/self/fd/{opened}/{hook_sender.SOCKET}")
    try:
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            # The inode takes its mode from the unbound socket, so it is never open to others.
            os.fchmod(receiver.fileno(), 0o600)
            receiver.bind(str(path))
            yield trio.socket.from_stdlib_socket(receiver)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(opened)


async def next_hook(receiver: trio.socket.SocketType) -> Hook:
    """Return the next valid hook event."""
    while True:
        data = await receiver.recv(MAX_HOOK_BYTES)
        hook = read_hook(data)
        if hook is not None:
            return hook

"""The commands and skills that a project has for Claude Code, offered as texts. Blocking.

An untrusted project is no source of commands for the agent's program, which would run the shell
commands in them. Their texts run nothing, and a person who chooses one sends its text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import PurePath

from aegis.agents.directory.project_files import UnusableFile, leads_out, read_inside
from aegis.agents.drivers.commands import MAX_SHOWN_CHARS, ProjectCommand
from aegis.names import shorten
from aegis.protocol.agent_events import SlashCommand
from aegis.protocol.inboxes import command_name

COMMANDS = ".claude/commands"
SKILLS = ".claude/skills"

MAX_FOUND = 100
"""Commands and skills of a project that are offered."""

MAX_LOOKED_AT = 2_000
"""Entries of directories that are looked at."""

MAX_TEXT_BYTES = 32 * 1024
"""A longer text is not offered: its end would be missed."""

_FRONT = re.compile(r"\A---\n(.*?)^---\n", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^(description|argument-hint): *(.*)$", re.MULTILINE)


def project_commands(cwd: str) -> tuple[ProjectCommand, ...]:
    """Return the commands and skills of the project in ``cwd``.

    Files behind a link that leads out of the project are left out, and so are names that a command
    cannot have.
    """
    found: dict[str, ProjectCommand] = {}
    for name, path in _files(cwd):
        if name in found or command_name(f"/{name}") != name:
            continue
        try:
            read = read_inside(cwd, path, MAX_TEXT_BYTES)
        except UnusableFile:
            continue
        if read is not None and read.size == len(read.data):
            found[name] = _command(name, path, read.data.decode("utf-8", "replace"))
        if len(found) == MAX_FOUND:
            break
    return tuple(found.values())


def _files(cwd: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the paths of commands and skills."""
    looked_at = 0
    for top in (COMMANDS, SKILLS):
        root = os.path.join(cwd, top)  # noqa: PTH118
        try:
            if not os.path.isdir(root) or leads_out(cwd, root):  # noqa: PTH112
                continue
        except OSError:
            continue
        for directory, names, files in os.walk(root):  # follows no link
            names.sort()
            parts = list(PurePath(directory).relative_to(root).parts)
            looked_at += len(names) + len(files)
            if looked_at > MAX_LOOKED_AT:
                return
            for each in sorted(files):
                path = "/".join([top, *parts, each])
                if top == COMMANDS and each.endswith(".md"):
                    yield ":".join([*parts, each.removesuffix(".md")]), path
                elif top == SKILLS and each == "SKILL.md" and len(parts) == 1:
                    yield parts[0], path


def _command(name: str, path: str, text: str) -> ProjectCommand:
    front = _FRONT.match(text)
    fields = dict(_FIELD.findall(front[1])) if front else {}
    about = fields.get("description", "").strip("\"' ")
    return ProjectCommand(
        command=SlashCommand(
            name=name,
            description=shorten(f"text of the project: {about or path}", MAX_SHOWN_CHARS),
            hint=shorten(fields.get("argument-hint", "").strip("\"' "), MAX_SHOWN_CHARS),
        ),
        path=path,
        text=text[front.end() :] if front else text,
    )

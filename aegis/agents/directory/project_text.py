"""The instructions, commands and skills that a project has for agents: texts, which run nothing.

No file is read through a link that leads out of the project. An untrusted project is no source of
commands for the program of an agent, which would run the shell commands in them; a person who
chooses one sends its text. Blocking.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import attrs

from aegis.agents.drivers.commands import MAX_SHOWN_CHARS, ProjectCommand
from aegis.names import shorten
from aegis.path_text import text_of_path
from aegis.protocol.agent_events import SlashCommand
from aegis.protocol.inboxes import command_name

BLOCK_BYTES = 1 << 20


class UnusableFile(Exception):
    """The error for a file that is not read; the sentence continues its name."""


@attrs.frozen
class FileRead:
    """The first bytes of a file; ``size`` is that of the whole file."""

    data: bytes = attrs.field(repr=False)
    size: int


def leads_out(top: str, path: str) -> bool:
    """Return whether ``path`` (absolute, below ``top``) is outside ``top`` once links are followed.

    Raises ``OSError``.
    """
    real, inside = os.path.realpath(path), os.path.realpath(top)
    return real != inside and not real.startswith(inside.rstrip("/") + "/")


def read_inside(top: str, name: str, most: int) -> FileRead | None:
    """Return at most ``most`` bytes of the file ``name`` of the directory ``top``.

    None: there is none. Raises ``UnusableFile``.
    """
    path = os.path.join(top, name)  # noqa: PTH118
    try:
        if not os.path.lexists(path):
            return None
        if leads_out(top, path):
            raise UnusableFile("is a link that leads out of the project")
        real = os.path.realpath(path)
        # A FIFO must not block, and a link that was put here meanwhile is not followed.
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnusableFile(f"cannot be read: {why}") from None
    try:
        return _read(fd, top, most)
    finally:
        os.close(fd)


def _read(fd: int, top: str, most: int) -> FileRead:
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise UnusableFile("is no regular file")
        # A directory of its path may have become a link since.
        if leads_out(top, f"/proc/self/fd/{fd}"):
            raise UnusableFile("is a link that leads out of the project")
        blocks: list[bytes] = []
        left = most
        while left > 0 and (block := os.read(fd, min(left, BLOCK_BYTES))):
            blocks.append(block)
            left -= len(block)
    except OSError as error:
        raise UnusableFile(f"cannot be read: {error.strerror}") from None
    return FileRead(b"".join(blocks), found.st_size)


def json_of_user(path: str, most: int) -> Any:
    """Return the JSON in a file of the user's own; None without any, or beyond ``most`` bytes."""
    try:
        with open(path, "rb", opener=_open) as file:
            data = file.read(most + 1) or b""
        return json.loads(data) if len(data) <= most else None
    except (OSError, ValueError, RecursionError):
        return None


def _open(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)  # a FIFO must not block


COMMANDS = ".claude/commands"
SKILLS = ".claude/skills"

MAX_FOUND = 100
"""Commands and skills of a project that are offered."""

MAX_LOOKED_AT = 2_000
"""Entries of directories that are looked at."""

MAX_COMMAND_BYTES = 32 * 1024
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
            read = read_inside(cwd, path, MAX_COMMAND_BYTES)
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


MAX_TEXT_BYTES = 32 * 1024
"""The most of one file that is added to the agent's system prompt."""

MEMORY = "CLAUDE.md"

READ_BY_CLAUDE = (MEMORY, ".claude", f".claude/{MEMORY}", ".claude/rules")
"""The names in a directory below which Claude Code reads memory and rules."""

OTHER_MEMORY = ("AGENTS.md", "CLAUDE.local.md")


@attrs.frozen(kw_only=True)
class ProjectText:
    """The instructions of a project for one agent.

    ``parts`` are added to the primer. ``is_read``: Claude Code may read the memory of the directory
    itself. ``notices`` are sentences about files that were left out.
    """

    parts: tuple[str, ...] = ()
    is_read: bool = False
    notices: tuple[str, ...] = ()


def claude_text(cwd: str) -> ProjectText:
    """Return the text of ``cwd`` for a Claude Code that uses only its user's settings.

    It reads memory and rules of a directory that is added to it, and follows no import and no rule
    out of that; but it follows a link in place of the memory itself.
    """
    outside = [name for name in READ_BY_CLAUDE if _leads_out(cwd, name)]
    names = [name for name in OTHER_MEMORY if name != "AGENTS.md" or not _exists(cwd, MEMORY)]
    notices = tuple(
        f"the agent reads neither CLAUDE.md nor rules of {text_of_path(cwd)}: {name} leads out of "
        "the project"
        for name in outside[:1]
    )
    text = text_of(cwd, names)
    return attrs.evolve(text, is_read=not outside, notices=(*notices, *text.notices))


def text_of(cwd: str, names: list[str]) -> ProjectText:
    """Return the texts of the files with these names in ``cwd``."""
    parts: list[str] = []
    notices: list[str] = []
    for name in names:
        try:
            found = read_inside(cwd, name, MAX_TEXT_BYTES)
        except UnusableFile as error:
            notices.append(f"the agent does not get {name} of {text_of_path(cwd)}: it {error}")
            continue
        if found is None or not found.data.strip():
            continue
        text = found.data.decode("utf-8", "replace")
        if found.size > len(found.data):
            notices.append(
                f"the agent gets the first {len(found.data)} of {found.size} bytes of {name}"
            )
            text += "\n[The rest of the file is left out.]"
        parts.append(f"The file {name} of the project:\n\n{text}")
    return ProjectText(parts=tuple(parts), notices=tuple(notices))


def _exists(cwd: str, name: str) -> bool:
    return os.path.lexists(os.path.join(cwd, name))  # noqa: PTH118


def _leads_out(cwd: str, name: str) -> bool:
    try:
        return _exists(cwd, name) and leads_out(cwd, os.path.join(cwd, name))  # noqa: PTH118
    except OSError:
        return True

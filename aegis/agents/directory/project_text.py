"""The instructions that a project has for agents: texts, which run nothing. Blocking."""

from __future__ import annotations

import os

import attrs

from aegis.agents.directory.project_files import UnusableFile, leads_out, read_inside
from aegis.path_text import text_of_path

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

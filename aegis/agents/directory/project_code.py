"""The files of a project that run programs, or move keys, once an agent uses its settings.

They are trusted by their content, one directory at a time: a git worktree with the same files needs
no other trust. Blocking.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Collection, Iterator
from typing import Any

import attrs

from aegis.agents.directory.project_text import UnusableFile, leads_out, read_inside
from aegis.path_text import text_of_path

MAX_FILES = 2_000
MAX_BYTES = 32 * 1024 * 1024
"""The most files, and bytes of them, that are trusted together."""

MAX_DEPTH = 16
MAX_PARENTS = 64

MAX_SHOWN = 200
MAX_SHOWN_CHARS = 400
"""The most lines that are shown of what the files say, and characters of a line."""

CODE = {
    "claude": (".claude", ".mcp.json"),
    "claude-agent-acp": (".claude", ".mcp.json"),
    "codex": (".codex",),
    "gemini": (".gemini", ".env"),
    "opencode": ("opencode.json", "opencode.jsonc", ".opencode"),
}
"""The names in a directory, by provider, that can hold programs. Others have no such files."""

TEXTS = (".claude/CLAUDE.md", ".claude/rules", ".claude/worktrees", ".claude/plans")
"""Names below those that hold texts only, or other checkouts."""

_SETTINGS = (".json", ".jsonc", ".toml")

# A word is looked for at its first character only: from each of them on it would be quadratic.
_WORD = re.compile(
    r"(?<![A-Za-z0-9_.@+-])[A-Za-z0-9_.@+-]*/[A-Za-z0-9_./@+-]+"
    r"|(?<![A-Za-z0-9_@+-])[A-Za-z0-9_@+-]+\.[A-Za-z0-9]{1,5}"
)
"""A word in settings that can be the path of a program."""

MAX_WORDS = 5_000


class Untrustable(Exception):
    """The error for files whose content cannot be trusted; the sentence says why."""


@attrs.frozen(kw_only=True)
class ProjectCode:
    """The files with programs for an agent in a directory, and in those above it.

    ``digests`` are those of the directories that have such files, ``files`` the paths relative to
    the agent's directory, ``shown`` lines of what the files say. ``problem`` is a sentence if the
    content cannot be trusted.
    """

    digests: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    problem: str = ""

    @property
    def digest(self) -> str:
        """The digest of all directories together; empty: there is nothing to trust."""
        together = "\n".join(self.digests).encode()
        return hashlib.sha256(together).hexdigest() if self.digests else ""

    def is_within(self, trusted: Collection[str]) -> bool:
        """Return whether each directory that has such files is trusted."""
        return not self.problem and all(each in trusted for each in self.digests)


def project_code(provider: str, cwd: str, home: str | None) -> ProjectCode:
    """Return the files for the agent of ``provider`` in ``cwd``.

    Agents look in the directories above too. In ``home`` itself they are the user's own.
    """
    names = CODE.get(provider, ())
    count = _Count()
    digests: list[str] = []
    files: list[str] = []
    shown: list[str] = []
    try:
        for label, directory in _directories(cwd, home) if names else ():
            found = _DirectoryCode(directory, count)
            for name in names:
                found.add(name)
            found.add_programs()
            if found.contents:
                digests.append(found.digest(names))
                files += [label + text_of_path(name) for name in found.contents]
                shown += [label + line for line in found.lines()]
    except Untrustable as error:
        return ProjectCode(files=tuple(files), problem=str(error))
    more = len(shown) - MAX_SHOWN
    end = [f"and {more} more lines"] if more > 0 else []
    return ProjectCode(digests=tuple(digests), files=tuple(files), shown=(*shown[:MAX_SHOWN], *end))


def _directories(cwd: str, home: str | None) -> Iterator[tuple[str, str]]:
    """Yield ``cwd`` and the directories above it, each with the path that leads to it."""
    own = None if not home else os.path.realpath(home)
    directory, label = os.path.realpath(cwd), ""
    for _ in range(MAX_PARENTS):
        if directory != own:
            yield label, directory
        above = os.path.dirname(directory)  # noqa: PTH120
        if above == directory:
            return
        directory, label = above, f"../{label}"


@attrs.define
class _Count:
    """The files and bytes that were read for one agent."""

    files: int = 0
    size: int = 0

    def add(self, size: int) -> None:
        self.files += 1
        self.size += size
        if self.files > MAX_FILES or self.size > MAX_BYTES:
            raise Untrustable(
                f"it has more than {MAX_FILES} files or {MAX_BYTES // 2**20} MiB of settings, too "
                "many to be trusted by their content"
            )


@attrs.define
class _DirectoryCode:
    """The files of one directory, by their names in it, with the SHA-256 of each."""

    top: str
    count: _Count
    contents: dict[str, str] = attrs.field(factory=dict)
    _texts: dict[str, bytes] = attrs.field(factory=dict)

    def add(self, name: str, depth: int = 0) -> None:
        """Add a file, or all files below a directory, and those that settings name."""
        if name in TEXTS:
            return
        path = os.path.join(self.top, name)  # noqa: PTH118
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise Untrustable(f"{text_of_path(name)} cannot be read: {error.strerror}") from None
        if stat.S_ISLNK(found.st_mode):
            found = self._followed(name, path)
        if stat.S_ISDIR(found.st_mode):
            self._add_directory(name, path, depth)
        else:
            self._add_file(name)

    def _followed(self, name: str, path: str) -> os.stat_result:
        try:
            if leads_out(self.top, path):
                raise Untrustable(
                    f"{text_of_path(name)} is a link that leads out of {text_of_path(self.top)}"
                )
            self._note(f"{name} ->", os.fsencode(os.readlink(path)))  # noqa: PTH115
            return os.stat(path)  # noqa: PTH116
        except OSError as error:
            raise Untrustable(f"{text_of_path(name)} cannot be read: {error.strerror}") from None

    def _add_directory(self, name: str, path: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise Untrustable(f"{text_of_path(name)} has too many directories in each other")
        try:
            below = sorted(os.listdir(path))  # noqa: PTH208
        except OSError as error:
            raise Untrustable(f"{text_of_path(name)} cannot be read: {error.strerror}") from None
        if len(below) > MAX_FILES:
            raise Untrustable(f"{text_of_path(name)} has more than {MAX_FILES} files")
        for each in below:
            self.add(f"{name}/{each}", depth + 1)

    def _add_file(self, name: str) -> None:
        if name in self.contents:
            return
        try:
            read = read_inside(self.top, name, MAX_BYTES + 1)
        except UnusableFile as error:
            raise Untrustable(f"{text_of_path(name)} {error}") from None
        if read is None:
            return
        self._note(name, read.data)
        if name.endswith(_SETTINGS):
            self._texts[name] = read.data

    def _note(self, name: str, data: bytes) -> None:
        self.count.add(len(data))
        self.contents[name] = hashlib.sha256(data).hexdigest()

    def add_programs(self) -> None:
        """Add the files of the directory whose paths are words of settings: programs of hooks."""
        texts = [data.decode("utf-8", "replace") for data in self._texts.values()]
        words = {word for text in texts for word in _WORD.findall(text)}
        if len(words) > MAX_WORDS:
            raise Untrustable(f"its settings have more than {MAX_WORDS} words that can be programs")
        for word in sorted(words):
            # A word can begin with a variable for the directory: $CLAUDE_PROJECT_DIR/run.sh
            for name in {word, word.partition("/")[2]}:
                inside = os.path.normpath(name.lstrip("/")) if name.strip("/.") else ""
                path = os.path.join(self.top, inside)  # noqa: PTH118
                if inside and not inside.startswith("..") and os.path.isfile(path):  # noqa: PTH113
                    self._add_program(inside, path)

    def _add_program(self, name: str, path: str) -> None:
        # A program outside of the project is not the project's.
        if not leads_out(self.top, path):
            self._add_file(name)

    def digest(self, names: tuple[str, ...]) -> str:
        """Return the digest of all files, for agents that use these names."""
        lines = json.dumps([names, sorted(self.contents.items())])
        return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()

    def lines(self) -> Iterator[str]:
        """Yield what the settings say, and the names of other files."""
        for name in self.contents:
            shown = text_of_path(name)
            document = _parsed(name, self._texts[name]) if name in self._texts else None
            if document is None:
                yield shown
                continue
            for key, value in _flat(document, ""):
                line = f"{shown}: {key} = {value}"
                yield line if len(line) <= MAX_SHOWN_CHARS else f"{line[:MAX_SHOWN_CHARS]}…"


def _parsed(name: str, data: bytes) -> Any:
    """Return the settings in a file; None if they cannot be shown one by one."""
    try:
        text = data.decode()
        return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _flat(value: Any, key: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each value of settings with the path of its key."""
    if isinstance(value, dict) and value and depth < MAX_DEPTH:
        for name, each in value.items():
            yield from _flat(each, f"{key}.{name}" if key else str(name), depth + 1)
    elif isinstance(value, list) and value and depth < MAX_DEPTH:
        for number, each in enumerate(value):
            yield from _flat(each, f"{key}[{number}]", depth + 1)
    else:
        yield key, _shown(value)


def _shown(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)[: MAX_SHOWN_CHARS + 1]
    except (ValueError, RecursionError):
        return "…"

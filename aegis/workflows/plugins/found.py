"""The plugin files of a root: their paths and digests, and which of them are trusted.

A plugin is code that came with the project, so it runs only in the form that the user has trusted:
as it was at a start with ``--trust``, or when ``aegis-actors workflow trust`` was called.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

MAX_PLUGINS = 200
MAX_PLUGIN_BYTES = 1024 * 1024
"""The limits of plugin files: their number, and the size of each."""


class PluginFile(NamedTuple):
    """One plugin file; ``shown`` is its path below the root.

    ``problem`` says why it cannot be used; then the digest is empty.
    """

    stem: str
    path: str
    shown: str
    digest: str = ""
    problem: str = ""


def find_plugins(root: Path, directories: Sequence[str]) -> tuple[PluginFile, ...]:
    """Return the plugin files in ``directories``, which are relative to the root. Blocking."""
    found: dict[str, PluginFile] = {}
    others: list[PluginFile] = []
    for each in _files(root, directories):
        if each.stem not in found:
            found[each.stem] = each
        else:
            problem = f"{found[each.stem].shown} has the same name: rename one of them"
            others.append(each._replace(problem=problem, digest=""))
    return (*found.values(), *others)


def sentences_of(plugins: Sequence[PluginFile]) -> tuple[str, ...]:
    """Return what these files are, for a user who is to trust them, one sentence each."""
    return tuple(f"the plugin {each.shown}" for each in plugins if each.digest)


def digest_of_all(configuration: str, plugins: Sequence[PluginFile]) -> str:
    """Return the digest of a configuration's content and of these plugins."""
    usable = sorted(each for each in plugins if each.digest)
    if not usable:
        return configuration
    texts = (configuration, *(f"{each.shown} {each.digest}" for each in usable))
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogateescape")).hexdigest()


def _files(root: Path, directories: Sequence[str]) -> Iterator[PluginFile]:
    count = 0
    for directory in directories:
        try:
            names = sorted(each.name for each in (root / directory).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield PluginFile("", str(root / directory), directory, problem=_unreadable(error))
            continue
        for name in names:
            if name.endswith(".py") and not name.startswith((".", "_")):
                count += 1
                if count > MAX_PLUGINS:
                    problem = f"there are more than {MAX_PLUGINS} plugins: remove some"
                    yield PluginFile(name[:-3], str(root / directory / name), name, problem=problem)
                    return
                yield _file(root, directory, name)


def _file(root: Path, directory: str, name: str) -> PluginFile:
    stem, path, shown = name[:-3], str(root / directory / name), f"{directory.rstrip('/')}/{name}"
    file = PluginFile(stem, path, shown.encode("utf-8", "backslashreplace").decode())
    if not stem.isidentifier() or not stem.isascii():
        return file._replace(problem="its name is no Python identifier: rename it")
    try:
        # O_NONBLOCK: opening a FIFO without a writer would block for ever.
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        return file._replace(problem=_unreadable(error))
    try:
        problem = _refusal(os.fstat(opened))  # before it is a stream: a directory is none
        if problem:
            return file._replace(problem=problem)
        with os.fdopen(opened, "rb", closefd=False) as stream:
            content = stream.read(MAX_PLUGIN_BYTES + 1)
    except OSError as error:
        return file._replace(problem=_unreadable(error))
    finally:
        os.close(opened)
    if len(content) > MAX_PLUGIN_BYTES:
        return file._replace(problem=f"it is longer than {MAX_PLUGIN_BYTES} bytes, the maximum")
    return file._replace(digest=hashlib.sha256(content).hexdigest())


def _refusal(found: os.stat_result) -> str:
    """Return why a file is not read, as ``configuration.file`` does; empty if it is."""
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file: replace it by one"
    if found.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {found.st_uid}, who could choose what it runs: chown it"
    if found.st_mode & stat.S_IWOTH:
        return "it is writable by everybody, who could choose what it runs: chmod o-w"
    return ""


def _unreadable(error: OSError) -> str:
    return f"it cannot be read: {error.strerror or error}"

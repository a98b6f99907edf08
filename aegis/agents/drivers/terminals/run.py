"""The command that ``terminal/create`` asks for, checked, and its stored output. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import attrs

from aegis.errors import InvalidRequest

MAX_TEXT_BYTES = 100_000
"""The longest command, argument or variable. The kernel takes 131,071 bytes."""

MAX_ARGS = 10_000
MAX_VARIABLES = 1_000
MAX_TOTAL_BYTES = 1_000_000
"""Limits of one command: arguments, variables, and the bytes of all of them."""

METHOD = "terminal/create"


@attrs.frozen(kw_only=True)
class CommandToRun:
    """A command. ``limit`` is the number of bytes of output to keep; None: the default.

    ``cwd`` is an absolute path; None: the directory of the session.
    """

    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = attrs.field(factory=dict)
    cwd: str | None = None
    limit: int | None = None

    @property
    def title(self) -> str:
        """The command and its arguments, for people."""
        return " ".join((self.command, *self.args))


def read_run(params: Mapping[str, Any]) -> CommandToRun:
    """Return the command in the parameters of ``terminal/create``. Raises ``InvalidRequest``."""
    run = CommandToRun(
        command=_text(params.get("command"), "command"),
        args=tuple(_args(params.get("args"))),
        environment=dict(_variables(params.get("env"))),
        cwd=_cwd(params.get("cwd")),
        limit=_limit(params.get("outputByteLimit")),
    )
    if not run.command.strip():
        raise InvalidRequest(f"{METHOD}: command must not be empty")
    total = sum(map(_size, (run.command, *run.args, *run.environment, *run.environment.values())))
    if total > MAX_TOTAL_BYTES:
        raise InvalidRequest(
            f"{METHOD}: command, args and env have {total} bytes, more than {MAX_TOTAL_BYTES}: "
            "pass long texts in a file"
        )
    return run


def _size(text: str) -> int:
    return len(text.encode())


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{METHOD}: {name} must be a text")
    if "\0" in value:
        raise InvalidRequest(f"{METHOD}: {name} has a NUL character")
    try:
        size = _size(value)
    except UnicodeEncodeError:
        raise InvalidRequest(f"{METHOD}: {name} has half of a surrogate pair") from None
    if size > MAX_TEXT_BYTES:
        raise InvalidRequest(
            f"{METHOD}: {name} has {size} bytes, more than {MAX_TEXT_BYTES}: pass a long text in a "
            "file"
        )
    return value


def _args(value: object) -> Iterator[str]:
    for each in _list(value, "args", MAX_ARGS):
        yield _text(each, "an item of args")


def _variables(value: object) -> Iterator[tuple[str, str]]:
    for each in _list(value, "env", MAX_VARIABLES):
        if not isinstance(each, dict):
            raise InvalidRequest(f"{METHOD}: an item of env must be an object of name and value")
        name = _text(each.get("name"), "the name of a variable in env")
        if not name or "=" in name:
            raise InvalidRequest(f"{METHOD}: {name[:100]!r} cannot be the name of a variable")
        yield name, _text(each.get("value"), "the value of a variable in env")


def _list(value: object, name: str, limit: int) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidRequest(f"{METHOD}: {name} must be a list")
    if len(value) > limit:
        raise InvalidRequest(f"{METHOD}: {name} has {len(value)} items, more than {limit}")
    return value


def _cwd(value: object) -> str | None:
    if value is None:
        return None
    path = _text(value, "cwd")
    if not path.startswith("/"):
        raise InvalidRequest(f"{METHOD}: cwd must be an absolute path, not {path[:200]!r}")
    return path


def _limit(value: object) -> int | None:
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise InvalidRequest(f"{METHOD}: outputByteLimit must be a whole number from 0")
    return value


@attrs.frozen(kw_only=True)
class StoredOutput:
    """The whole output of a released command; its first ``begin`` bytes were dropped."""

    command: str
    output: str
    begin: int
    exit_code: int | None
    signal: str | None

    def since(self, cursor: int) -> tuple[int, str]:
        """Return the text from the byte ``cursor`` on, and the offset of its begin."""
        data = self.output.encode()
        skipped = min(max(0, cursor - self.begin), len(data))
        left = data[skipped:].decode(errors="ignore")  # ignores half of a character
        return self.begin + len(data) - len(left.encode()), left


class OutputStore(Protocol):
    """Keeps the output of released commands of one session."""

    async def keep(self, id_: str, output: StoredOutput) -> None:
        """Store the output of the command ``id_``, or log why that is impossible."""
        ...

"""Between a method of a client and the wire: typed arguments in, typed replies out. Pure."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from actors.codec import resolved_fields, structure
from actors.errors import CodecError
from aegis.client.errors import CommandFailed, ProtocolMismatch
from aegis.errors import InvalidRequest
from aegis.protocol.command import Command
from aegis.protocol.derived.wire import command_from
from aegis.protocol.table import BY_COMMAND, Entry

T = TypeVar("T")

Arguments = dict[str, object]


def entry_of(command: type[Command[Any]]) -> Entry:
    """The entry of the one command set that ``command`` is the class of."""
    return BY_COMMAND[command]


def arguments_of(
    command: type[Command[Any]], given: dict[str, object], handle: str | None
) -> Arguments:
    """``given`` as it is sent: what differs from the default, and under which handle.

    Where the daemon's configuration sets the default, None stands for it, and a value is sent.

    It is checked here as the daemon will check it, so that a mistake costs no way. Raises
    ``CommandFailed`` with the code ``invalid_request``.
    """
    defaults = {
        field.name: None if "setting" in field.metadata else field.default
        for field in resolved_fields(command)
    }
    sent = {name: value for name, value in given.items() if not _is(value, defaults.get(name))}
    if handle is not None:
        sent["from_handle"] = handle
    entry = entry_of(command)
    try:
        command_from(entry, sent)
    except InvalidRequest as error:
        raise refusal(entry, error.code, str(error)) from None
    return sent


def refusal(entry: Entry, code: str, sentence: str) -> CommandFailed:
    """The daemon's error; its sentence opens with the tool's name, which is known here."""
    return CommandFailed(code, sentence.removeprefix(f"{entry.tool}: "))


def reply_of(command: type[Command[T]], result: object) -> T:
    """What was answered, as the command's reply class. Raises ``ProtocolMismatch``."""
    entry = entry_of(command)
    try:
        return cast("T", structure(entry.reply, result))
    except CodecError as error:
        raise ProtocolMismatch(
            f"the answer to {entry.name} does not fit ({error}): the daemon is of another version"
        ) from None


def _is(value: object, default: object) -> bool:
    """Whether an argument is the default; a default that is made anew is given as None."""
    made = getattr(default, "factory", None)
    return value is None if made is not None else type(value) is type(default) and value == default

"""Calls of a client: arguments, replies, and repetition after a lost connection. Pure.

A command that only reads is repeated without a message. Any other command is not: it may have been
executed, so the caller must decide. A request that was not sent goes with the next connection.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from actors.codec import resolved_fields, structure
from actors.errors import CodecError
from aegis.client.errors import CommandFailed, ConnectionLost, ProtocolMismatch
from aegis.errors import InvalidRequest
from aegis.protocol.command import Command
from aegis.protocol.derived.wire import command_from
from aegis.protocol.entry import Entry
from aegis.protocol.table import BY_COMMAND

T = TypeVar("T")

Arguments = dict[str, object]


def entry_of(command: type[Command[Any]]) -> Entry:
    """Return the entry of ``command`` in the command table."""
    return BY_COMMAND[command]


def arguments_of(
    command: type[Command[Any]], given: dict[str, object], handle: str | None
) -> Arguments:
    """Return the arguments to send: those that differ from the default, and the handle.

    Where the daemon's configuration sets the default, only None is left out. The arguments are
    validated by the daemon's rules before they are sent. Raises ``CommandFailed`` with the code
    ``invalid_request``.
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
    """Return the daemon's error, without the tool's name that opens its sentence."""
    return CommandFailed(code, sentence.removeprefix(f"{entry.tool}: "))


def reply_of(command: type[Command[T]], result: object) -> T:
    """Convert a result to the command's reply class. Raises ``ProtocolMismatch``."""
    entry = entry_of(command)
    try:
        return cast("T", structure(entry.reply, result))
    except CodecError as error:
        raise ProtocolMismatch(
            f"the answer to {entry.name} does not fit ({error}): the daemon is of another version"
        ) from None


def _is(value: object, default: object) -> bool:
    """Return whether an argument is the default; None represents a default with a factory."""
    made = getattr(default, "factory", None)
    return value is None if made is not None else type(value) is type(default) and value == default


FIRST_DELAY_S = 0.05
MAX_DELAY_S = 2.0

SETTLED_S = 5.0
"""A connection that lasted this long resets the delay."""

MAX_TRIES = 3
"""Most times that a call is sent: one that crashes the daemon must not do so for ever."""


def checked_patience(patience_s: float) -> float:
    """Return ``patience_s`` if it is 0 or more seconds, or infinite; else raise ``ValueError``."""
    if not patience_s >= 0:  # false for nan too, with which a wait would never end
        raise ValueError(f"patience_s must be 0 or more seconds, or math.inf, not {patience_s!r}")
    return patience_s


def delay_s(failures: int, chance: float) -> float:
    """Return the seconds to wait after ``failures`` (1 or more) failures in a row.

    The delay doubles up to ``MAX_DELAY_S``. Its upper half is random (``chance`` from 0 to 1), so
    that the clients of a restarted daemon do not all reconnect at the same moment.
    """
    whole = min(MAX_DELAY_S, FIRST_DELAY_S * 2.0 ** min(failures - 1, 16))
    return whole * (0.5 + 0.5 * chance)


def failures_after(failures: int, lasted_s: float) -> int:
    """Return the new number of failures in a row after a connection of ``lasted_s`` seconds."""
    return 1 if lasted_s >= SETTLED_S else failures + 1


def is_repeated(entry: Entry, tries: int, *, was_sent: bool) -> bool:
    """Return whether a call that lost its connection in its ``tries``-th try is repeated."""
    return not was_sent or (entry.read_only and tries < MAX_TRIES)


def lost(entry: Entry, reason: str) -> ConnectionLost:
    """Return the error of a call that was sent and not answered."""
    may_repeat = entry.read_only or entry.idempotent
    advice = (
        "calling again does no harm" if may_repeat else "check its effect before you call again"
    )
    return ConnectionLost(
        f"the connection was lost during {entry.name} ({reason}): it may have been carried out; "
        f"{advice}",
        command=entry.name,
        may_repeat=may_repeat,
    )

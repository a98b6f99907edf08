"""Between a method of a client and the wire: typed arguments in, typed replies out. Pure."""

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


FIRST_DELAY_S = 0.05
MAX_DELAY_S = 2.0

SETTLED_S = 5.0
"""A connection that lasted so long was a good one: the delays begin anew."""

MAX_TRIES = 3
"""Times that a call is sent at most: one that brings the daemon down must not do so for ever."""


def checked_patience(patience_s: float) -> float:
    """Return ``patience_s`` if it is 0 or more seconds, or infinite; else raise ``ValueError``."""
    if not patience_s >= 0:  # false for nan too, with which a wait would never end
        raise ValueError(f"patience_s must be 0 or more seconds, or math.inf, not {patience_s!r}")
    return patience_s


def delay_s(failures: int, chance: float) -> float:
    """Seconds to wait after so many failures in a row, 1 or more; ``chance`` is from 0 to 1.

    The delay doubles up to ``MAX_DELAY_S``; its upper half is left to chance, so that many clients
    of a daemon that went away do not come back at the same moment.
    """
    whole = min(MAX_DELAY_S, FIRST_DELAY_S * 2.0 ** min(failures - 1, 16))
    return whole * (0.5 + 0.5 * chance)


def failures_after(failures: int, lasted_s: float) -> int:
    """How many connections failed in a row, now that one has ended after ``lasted_s`` seconds."""
    return 1 if lasted_s >= SETTLED_S else failures + 1


def is_repeated(entry: Entry, tries: int, *, was_sent: bool) -> bool:
    """Whether a call that lost its connection at its ``tries``-th try is made again by itself."""
    return not was_sent or (entry.read_only and tries < MAX_TRIES)


def lost(entry: Entry, reason: str) -> ConnectionLost:
    """What a caller is told of a call that was sent and got no answer."""
    may_repeat = entry.read_only or entry.idempotent
    advice = (
        "calling again does no harm" if may_repeat else "look at what became of it before you call"
    )
    return ConnectionLost(
        f"the connection was lost during {entry.name} ({reason}): it may have been carried out; "
        f"{advice}" + ("" if may_repeat else " again"),
        command=entry.name,
        may_repeat=may_repeat,
    )

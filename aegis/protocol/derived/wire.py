"""Between a command's arguments on the wire and its object; between a reply and its document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.errors import InvalidRequest
from aegis.protocol.command import Command
from aegis.protocol.derived.schema import optional_flags
from aegis.protocol.entry import Entry
from aegis.protocol.streams import StreamEntry

MAX_SENTENCE_CHARS = 300
"""What a refusal of bad arguments may take in a model's context, whatever was sent."""


def command_from(entry: Entry, arguments: Mapping[str, object]) -> Command[Any]:
    """The command that ``arguments`` (what JSON gives) make for ``entry``.

    Raises ``InvalidRequest``: the tool's name and one sentence that names the argument and what
    is allowed, at most ``MAX_SENTENCE_CHARS`` characters.
    """
    return _structured(entry.command, arguments, entry.tool)


def arguments_from(entry: StreamEntry, arguments: Mapping[str, object]) -> Command[Any]:
    """Likewise the arguments of a stream."""
    return _structured(entry.arguments, arguments, entry.name)


def _structured(
    form: type[Command[Any]], arguments: Mapping[str, object], subject: str
) -> Command[Any]:
    try:
        return structure(form, arguments)
    except CodecError as error:
        sentence = f"{subject}: {error}"
    if len(sentence) > MAX_SENTENCE_CHARS:
        sentence = f"{sentence[: MAX_SENTENCE_CHARS - 1]}…"
    raise InvalidRequest(sentence)


def to_plain(reply: object) -> dict[str, object]:
    """A reply as it travels: an object that JSON can hold, as its output schema says.

    A flag that is false by default travels only when true: ``more`` of a list. Likewise a count
    whose default is 0: ``damaged`` of records.
    """
    document = cast("dict[str, object]", unstructure(reply))
    form: Any = type(reply)
    for flag in optional_flags(form):
        if not document[flag]:
            del document[flag]
    return document

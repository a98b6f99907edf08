"""Conversion of arguments to commands, and of replies to documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.errors import InvalidRequest
from aegis.protocol.command import Command
from aegis.protocol.derived.schema import optional_flags
from aegis.protocol.entry import Entry
from aegis.protocol.stream_table import StreamEntry

MAX_SENTENCE_CHARS = 300
"""Maximum length of a refusal of bad arguments, to save a model's context."""


def command_from(entry: Entry, arguments: Mapping[str, object]) -> Command[Any]:
    """Return the command of ``entry`` with ``arguments`` as parsed from JSON.

    Raises ``InvalidRequest``: the tool's name and one sentence with the argument and its allowed
    values, at most ``MAX_SENTENCE_CHARS`` characters.
    """
    return _structured(entry.command, arguments, entry.tool)


def arguments_from(entry: StreamEntry, arguments: Mapping[str, object]) -> Command[Any]:
    """Return the arguments of a stream as an object. Raises as ``command_from`` does."""
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
    """Return a reply as a JSON object that fits its output schema.

    A flag that is false by default is sent only when true, such as ``more`` of a list, and a count
    that is 0 by default only when it is not, such as ``damaged`` of records.
    """
    document = cast("dict[str, object]", unstructure(reply))
    form: Any = type(reply)
    for flag in optional_flags(form):
        if not document[flag]:
            del document[flag]
    return document

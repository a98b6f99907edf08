"""Conversion of arguments to commands, and of replies to documents."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, cast, get_args, get_origin

import attrs

from actors.codec import is_attrs_class, resolved_fields, structure, unstructure
from actors.errors import CodecError
from aegis.errors import InvalidRequest
from aegis.json_bounds import has_too_many_keys, read_json
from aegis.protocol.command import Command
from aegis.protocol.derived.schema import optional_flags
from aegis.protocol.entry import Entry
from aegis.protocol.stream_table import StreamEntry

MAX_SENTENCE_CHARS = 300
"""Maximum length of a refusal of bad arguments, to save a model's context."""


def without_absent(command: type, arguments: Mapping[str, object]) -> Mapping[str, object]:
    """Return ``arguments`` without the optional ones that are null: null means absent."""
    if not isinstance(arguments, Mapping) or None not in arguments.values():
        return arguments
    required = {each.name for each in resolved_fields(command) if each.default is attrs.NOTHING}
    return {
        name: value for name, value in arguments.items() if value is not None or name in required
    }


def model_arguments(command: type, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a model with values in the types that ``command`` declares.

    Models and their clients send ``"5"``, ``"true"`` or ``"[1]"`` for a number, a boolean or a
    list, and ``5.0`` for a whole number. Such a value is converted where the type of the argument
    leaves one reading; what may be text stays text, and a value that fits no type is returned as it
    is, for ``command_from`` to refuse.
    """
    forms = {each.name: each.type for each in resolved_fields(command)}
    return {
        name: _as_declared(forms[name], value) if name in forms else value
        for name, value in arguments.items()
    }


def _as_declared(form: Any, value: Any) -> Any:
    members = get_args(form) if get_origin(form) in (Union, types.UnionType) else (form,)
    if isinstance(value, str):
        if any(map(_takes_text, members)):
            return value
        document = _document_in(value)
        if isinstance(document, str):
            return value
        read = _as_declared(form, document)
        return read if _fits(form, read) else value
    for member in members:
        converted = _converted(member, value)
        if _fits(member, converted):
            return converted
    return value


def _takes_text(form: Any) -> bool:
    if get_origin(form) is Literal:
        return any(isinstance(each, str) for each in get_args(form))
    return form in (str, Any, object)


def _converted(form: Any, value: Any) -> Any:
    """Return ``value``, which is no text, with its parts and whole numbers as ``form`` has them."""
    origin, inner = get_origin(form), get_args(form)
    if form is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list) and origin is list:
        return [_as_declared(inner[0], each) for each in value]
    if isinstance(value, dict) and origin in (dict, Mapping):
        return {key: _as_declared(inner[1], each) for key, each in value.items()}
    if isinstance(value, dict) and is_attrs_class(form):
        return without_absent(form, model_arguments(form, value))
    return value


def _fits(form: Any, value: Any) -> bool:
    try:
        structure(form, value)
    except CodecError:
        return False
    return True


_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
"""The words of JSON, and of Python, which models write too."""


def _document_in(text: str) -> Any:
    """Return the document that ``text`` is in JSON; a text that is no JSON, or too deep, itself."""
    try:
        return _WORDS[text.strip()]
    except KeyError:
        pass
    try:
        # Within a text the keys were not counted: they are escaped in the message.
        return text if has_too_many_keys(text.encode(errors="replace")) else read_json(text)
    except (ValueError, RecursionError):
        return text


def command_from(entry: Entry, arguments: Mapping[str, object]) -> Command[Any]:
    """Return the command of ``entry`` with ``arguments`` as parsed from JSON.

    An optional argument that is null counts as absent.
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
        return structure(form, without_absent(form, arguments))
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

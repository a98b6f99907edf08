"""Every message of the command set: through the codec and back, and against its schema."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import attrs
import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.codec import MAX_INT, resolved_fields, structure, unstructure
from actors.errors import CodecError
from aegis.protocol.derived.schema import input_schema, output_schema
from aegis.protocol.derived.tool_schema import tool_input_schema, tool_output_schema
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.entry import Entry
from aegis.protocol.table import COMMANDS

pytestmark = pytest.mark.one_python

T = TypeVar("T", bound=Callable[..., Any])


def once(make: T) -> T:
    """``cache``, also for classes: mypy does not believe that those of attrs can be hashed."""
    return cast("T", cache(make))


each_command = pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)

# Python's ``$`` also matches before a last line break, where JSON Schema's does not; and the
# names of variables hold neither '=' nor NUL, which the schema does not say.
SAFE_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\0="), max_size=20)
KEYS = SAFE_TEXT.filter(bool)


def values_of(form: Any, keywords: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """What a field of type ``form`` may hold; ``keywords`` are those of its schema."""
    origin, members = get_origin(form), get_args(form)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(member, keywords) for member in members])
    if origin is Literal:
        return st.sampled_from(members)
    if origin is list:
        items = values_of(members[0], keywords.get("items", {}))
        different = str.lower if keywords.get("uniqueItems") else None
        return st.lists(
            items, min_size=keywords.get("minItems", 0), max_size=3, unique_by=different
        )
    if origin is dict:
        is_form = attrs.has(members[1]) or get_origin(members[1]) is Literal
        items = values_of(members[1], {}) if is_form else SAFE_TEXT
        return st.dictionaries(KEYS, items, max_size=3)
    return messages_of(form) if attrs.has(form) else scalars_of(form, keywords)


def scalars_of(form: Any, keywords: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if form is str and "pattern" in keywords:
        return st.from_regex(keywords["pattern"].strip("^$"), fullmatch=True)
    low, high = keywords.get("minimum"), keywords.get("maximum")
    if form is int:
        return st.integers(-MAX_INT if low is None else low, MAX_INT if high is None else high)
    if form is float:
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    return {str: SAFE_TEXT, bool: st.booleans(), type(None): st.none()}[form]


@once
def fields_of(cls: type) -> dict[str, st.SearchStrategy[Any]]:
    """What each field of ``cls`` may hold; asked for when one is made, for some hold themselves."""
    return {
        field.name: values_of(field.type, field.metadata.get("schema", {}))
        for field in resolved_fields(cls)
    }


@once
def messages_of(cls: type) -> st.SearchStrategy[Any]:
    """Messages of ``cls`` that its validators let pass."""

    @st.composite
    def build(draw: st.DrawFn) -> Any:
        fields = {name: draw(value) for name, value in fields_of(cls).items()}
        try:
            return cls(**fields)
        except ValueError:
            # A rule over two fields.
            assume(condition=False)

    return build()


@once
def validator(make_schema: Callable[[type], dict[str, object]], cls: type) -> Any:
    """Of the schema of ``cls``, which is a good one itself."""
    schema = make_schema(cls)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@each_command
@settings(deadline=None, max_examples=12)
@given(data=st.data())
def test_a_command_goes_through_json_and_back(entry: Entry, data: st.DataObject) -> None:
    command = data.draw(messages_of(entry.command))
    document = json.loads(json.dumps(unstructure(command)))
    assert structure(entry.command, document) == command
    validator(input_schema, entry.command).validate(document)
    given = {name: each for name, each in document.items() if each is not None}
    for is_bound in (True, False):
        tool_schema = tool_input_schema(entry, is_bound=is_bound)
        jsonschema.Draft202012Validator(tool_schema).validate(given)


@each_command
@settings(deadline=None, max_examples=12)
@given(data=st.data())
def test_a_reply_goes_through_json_and_back_and_fits_its_schema(
    entry: Entry, data: st.DataObject
) -> None:
    reply = data.draw(messages_of(entry.reply))
    document = json.loads(json.dumps(to_plain(reply)))
    assert structure(entry.reply, document) == reply
    validator(output_schema, entry.reply).validate(document)
    jsonschema.Draft202012Validator(tool_output_schema(entry)).validate(document)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INT, MAX_INT)
    | st.sampled_from([0, 1, 2, 1000, 1001, 86_400, 86_401, 0.01, 0.009])
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())
    | SAFE_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
"""Any JSON but what the schema is known to judge otherwise: ``5.0`` as an int, huge ints."""


@each_command
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_schema_and_codec_agree_about_any_arguments(entry: Entry, data: st.DataObject) -> None:
    document = data.draw(bent_arguments(entry))
    # The schema does not express these rules over two arguments, nor the case of names.
    assume(None in (document.get("last_n"), document.get("since_seq")))
    assume(document.get("message") is not None or not document.get("unless_begun"))
    assume(not differ_by_case_alone(document.get("names")))
    fits = validator(input_schema, entry.command).is_valid(document)
    assert accepts(entry, document) is fits


def differ_by_case_alone(names: object) -> bool:
    texts = {each for each in names if isinstance(each, str)} if isinstance(names, list) else set()
    return len({each.lower() for each in texts}) < len(texts)


@st.composite
def bent_arguments(draw: st.DrawFn, entry: Entry) -> dict[str, Any]:
    """Good arguments of a command, some left out, some replaced, some added."""
    document: dict[str, Any] = unstructure(draw(messages_of(entry.command)))
    names = st.sampled_from(sorted(document))
    for name in draw(st.sets(names, max_size=2)):
        del document[name]
    return document | draw(st.dictionaries(names | KEYS, JSON, max_size=2))


def accepts(entry: Entry, document: dict[str, Any]) -> bool:
    try:
        structure(entry.command, document)
    except CodecError:
        return False
    return True

"""The schemas: valid JSON Schema, in the shape that MCP wants, saying what the fields say."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs
import jsonschema  # type: ignore[import-untyped]
import pytest

from actors.errors import MisuseError
from aegis.protocol.command import described
from aegis.protocol.daemon import TreeNode
from aegis.protocol.derived.schema import input_schema, output_schema
from aegis.protocol.entry import Entry
from aegis.protocol.inboxes import MessageList
from aegis.protocol.table import BY_NAME, COMMANDS
from aegis.protocol.terminals import Done, RecordList, RunCommand, SpawnTerminal

each_command = pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)


@each_command
def test_every_schema_is_valid_and_an_object_at_its_top(entry: Entry) -> None:
    for schema in (input_schema(entry.command), output_schema(entry.reply)):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False


@each_command
def test_every_argument_is_explained(entry: Entry) -> None:
    properties = input_schema(entry.command)["properties"]
    assert [name for name, schema in properties.items() if not schema.get("description")] == []


@each_command
def test_from_handle_may_always_be_left_out(entry: Entry) -> None:
    schema = input_schema(entry.command)
    assert "from_handle" in schema["properties"]
    assert "from_handle" not in schema["required"]


def test_arguments_carry_types_bounds_defaults_and_words() -> None:
    schema = input_schema(RunCommand)
    assert schema["required"] == ["name", "cmd"]
    assert schema["properties"]["timeout"] == {
        "type": "number",
        "minimum": 0.01,
        "maximum": 86_400,
        "description": (
            "Seconds for the whole call, time in the queue included. Default: "
            "terminals.timeout_s of the daemon's .aegis.yaml, else 50."
        ),
    }
    spawn = input_schema(SpawnTerminal)["properties"]
    assert spawn["env"]["additionalProperties"] == {"type": "string"}
    assert spawn["env"]["default"] == {}
    assert "default" not in spawn["cols"], "the daemon's owner may have set another"
    assert spawn["shell"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


def test_bounds_narrow_an_optional_number_where_it_is_not_null() -> None:
    last_n = input_schema(BY_NAME["term_read"].command)["properties"]["last_n"]
    assert last_n["anyOf"] == [
        {"type": "integer", "minimum": 1, "maximum": 1000},
        {"type": "null"},
    ]


def test_a_class_that_contains_itself_goes_to_the_definitions() -> None:
    schema = output_schema(TreeNode)
    reference = {"$ref": "#/$defs/TreeNode"}
    assert schema["properties"]["children"]["items"] == reference
    assert schema["$defs"]["TreeNode"]["properties"]["children"]["items"] == reference
    node: dict[str, Any] = {
        "path": "/a",
        "name": "a",
        "kind": "Actor",
        "state": "running",
        "mailbox": 0,
        "restarts": 0,
        "uptime_s": 0.5,
        "children": [],
    }
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(node | {"children": [node | {"children": [node]}]})
    assert not validator.is_valid(node | {"children": [node | {"children": [{"path": "/b"}]}]})


def test_a_reply_says_that_every_field_is_there_except_a_false_flag() -> None:
    assert output_schema(RecordList)["required"] == ["result", "running"]
    assert output_schema(Done)["required"] == ["ok"]
    message = output_schema(MessageList)["properties"]["messages"]["items"]
    assert set(message["required"]) == set(message["properties"])


def test_a_literal_says_its_type_and_its_values() -> None:
    @attrs.frozen
    class Choice:
        one: Literal["a"]
        few: Literal["a", "b"]
        odd: Literal["a", 1]

    assert input_schema(Choice)["properties"] == {
        "one": {"type": "string", "const": "a"},
        "few": {"type": "string", "enum": ["a", "b"]},
        "odd": {"enum": ["a", 1]},
    }


def test_tuples_tags_and_untyped_parts_have_schemas() -> None:
    @attrs.frozen
    class Point:
        tag: ClassVar[str] = "point"
        at: tuple[int, float]
        names: tuple[str, ...] = attrs.field(default=(), metadata=described("Its names."))
        more: Any = None

    schema = input_schema(Point)
    assert schema["required"] == ["type", "at"]
    assert schema["properties"]["type"] == {"const": "point"}
    assert schema["properties"]["names"]["description"] == "Its names."
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"type": "point", "at": [1, 2.5], "names": ["a"], "more": {"x": 1}})
    assert not validator.is_valid({"type": "point", "at": [1]})
    assert not validator.is_valid({"type": "point", "at": [1, 2, 3]})
    assert not validator.is_valid({"type": "line", "at": [1, 2]})


def test_a_type_without_a_schema_is_a_misuse() -> None:
    @attrs.frozen
    class Raw:
        data: bytes

    with pytest.raises(MisuseError):
        input_schema(Raw)


def test_a_schema_is_made_once() -> None:
    assert input_schema(RunCommand) is input_schema(RunCommand)
    assert output_schema(Done) is output_schema(Done)

"""The schemas that MCP clients get: complete JSON Schema, without what costs bytes for nothing."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from aegis.protocol.derived.tool_schema import tool_input_schema, tool_output_schema
from aegis.protocol.entry import Entry
from aegis.protocol.table import BY_NAME, BY_TOOL, TOOLS

each_command = pytest.mark.parametrize("entry", TOOLS, ids=lambda entry: entry.name)


def described(tool: str) -> dict[str, Any]:
    """What a schema has in the place of a class that ``tool`` describes."""
    return {"type": "object", "description": f"As {tool} returns it."}


@each_command
def test_each_schema_is_valid_alone_in_the_drafts_that_clients_use(entry: Entry) -> None:
    schemas = [tool_input_schema(entry, is_bound=bound) for bound in (True, False)]
    for schema in (*schemas, tool_output_schema(entry)):
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft7Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert "properties" in schema


@each_command
def test_every_argument_is_explained_briefly(entry: Entry) -> None:
    for bound in (True, False):
        for argument in tool_input_schema(entry, is_bound=bound)["properties"].values():
            assert argument["description"]
            assert '"null"' not in json.dumps(argument)


OF_EACH = {"type", "description", "default"}
OF_TYPE = {
    "string": {"enum"},
    "number": {"minimum", "maximum"},
    "integer": {"minimum", "maximum"},
    "boolean": set(),
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "additionalProperties"},
}
"""The keywords that Moonshot's and Gemini's subsets of JSON Schema have in common, by type."""


def strict_faults(schema: Any, place: str) -> list[str]:
    """What a provider that takes only the strict subset would refuse in a schema."""
    kind = str(schema.get("type")) if isinstance(schema, dict) else ""
    if kind not in OF_TYPE:
        return [f"{place} has no type of its own: {schema}"]
    faults = [f"{place} has {each}" for each in schema.keys() - OF_EACH - OF_TYPE[kind]]
    if not all(isinstance(each, str) for each in schema.get("enum", [])):
        faults.append(f"{place} has an enum of other things than text")
    properties = schema.get("properties", {})
    faults += [f"{place} requires {each}" for each in {*schema.get("required", ())} - {*properties}]
    parts = {f"{place}.{name}": part for name, part in properties.items()}
    if kind == "array":
        parts[f"{place}[]"] = schema.get("items")
    if "additionalProperties" in schema:
        parts[f"{place}.*"] = schema["additionalProperties"]
    return [*faults, *(each for at, part in parts.items() for each in strict_faults(part, at))]


@each_command
def test_every_part_of_an_input_schema_is_in_the_strict_subset(entry: Entry) -> None:
    for bound in (True, False):
        assert strict_faults(tool_input_schema(entry, is_bound=bound), entry.tool) == []


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"anyOf": [{"type": "string"}]},
        {"type": ["string", "null"]},
        {"type": "string", "const": "a"},
        {"type": "integer", "enum": [1]},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {}, "required": ["a"]},
        {"type": "object", "additionalProperties": {}},
    ],
)
def test_the_check_of_the_subset_finds(schema: dict[str, Any]) -> None:
    assert strict_faults(schema, "it")


@each_command
def test_from_handle_is_shown_where_it_can_be_chosen(entry: Entry) -> None:
    assert "from_handle" not in tool_input_schema(entry, is_bound=True)["properties"]
    shown = "from_handle" in tool_input_schema(entry, is_bound=False)["properties"]
    assert shown is not entry.operator


@each_command
def test_a_class_described_elsewhere_is_described_by_a_tool_that_the_client_sees(
    entry: Entry,
) -> None:
    text = json.dumps(tool_output_schema(entry))
    named = [other for tool, other in BY_TOOL.items() if f'"As {tool} returns it."' in text]
    assert text.count("returns it.") >= len(named)
    assert text.count("returns it.") == 0 or named
    for other in named:
        assert other.operator <= entry.operator
        assert other is not entry


def test_a_record_is_described_in_full_by_the_tool_that_returns_one() -> None:
    run = tool_output_schema(BY_NAME["term_run"])
    assert run["properties"]["exit"] == {"type": ["integer", "null"]}
    assert run["properties"]["needs_input"]["type"] == ["object", "null"]
    assert None in run["properties"]["end"]["enum"]
    assert set(run["required"]) == set(run["properties"])
    record = described("aegis_term_run")
    wait = tool_output_schema(BY_NAME["term_wait"])
    assert wait["properties"]["record"] == record | {"type": ["object", "null"]}
    assert tool_output_schema(BY_NAME["term_read"])["properties"]["result"]["items"] == record


def test_what_a_schema_does_not_say_of_an_argument_is_its_default() -> None:
    schema = tool_input_schema(BY_NAME["term_spawn"], is_bound=True)
    assert schema["required"] == ["name"]
    assert schema["properties"]["name"]["description"] == "The terminal's name."
    assert schema["properties"]["cwd"]["type"] == "string"
    assert "default" not in schema["properties"]["cwd"]
    assert schema["properties"]["stderr"]["default"] == "merged"
    assert "required" not in tool_input_schema(BY_NAME["term_list"], is_bound=True)

"""The whole configuration: the one list of its sections. Pure.

A part that gets a section writes it as a class in a file of its own, and adds one field here.
"""

from __future__ import annotations

import attrs

from actors.codec import resolved_fields
from aegis.configuration.nodes import NodesSection
from aegis.configuration.setting import Key, keys_of
from aegis.configuration.terminals import TerminalsSection

MAX_BYTES = 256 * 1024
"""How long the file may be."""


@attrs.frozen(kw_only=True)
class Configuration:
    """What ``.aegis.yaml`` says, and the defaults of all that it does not say."""

    terminals: TerminalsSection = attrs.field(factory=TerminalsSection)
    nodes: NodesSection = attrs.field(factory=NodesSection)


@attrs.frozen
class Parsed:
    """A configuration, the whole names of the keys that its file gives, its content's digest."""

    configuration: Configuration = attrs.field(factory=Configuration)
    given: tuple[str, ...] = ()
    digest: str = ""


def sections() -> dict[str, type]:
    """The sections by their names, in their order."""
    return {field.name: field.type for field in resolved_fields(Configuration) if field.type}


def every_key() -> list[Key]:
    """Every key of every section, in their order."""
    return [key for name, form in sections().items() for key in keys_of(name, form)]


def effective_values(configuration: Configuration) -> dict[str, object]:
    """The value of each key, by its whole name."""
    values: dict[str, object] = {}
    for key in every_key():
        section, _, name = key.name.partition(".")
        values[key.name] = getattr(getattr(configuration, section), name)
    return values

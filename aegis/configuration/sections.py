"""The list of all sections of the configuration. Pure.

To add a section, declare it as a class in its own module and add one field to ``Configuration``.
"""

from __future__ import annotations

import attrs

from actors.codec import resolved_fields
from aegis.configuration.nodes import NodesSection
from aegis.configuration.setting import Key, keys_of
from aegis.configuration.terminals import TerminalsSection

MAX_BYTES = 256 * 1024
"""Maximum length of the file."""


@attrs.frozen(kw_only=True)
class Configuration:
    """The values of ``.aegis.yaml``, and defaults for the other keys."""

    terminals: TerminalsSection = attrs.field(factory=TerminalsSection)
    nodes: NodesSection = attrs.field(factory=NodesSection)


@attrs.frozen
class Parsed:
    """A configuration, the full names of the keys in its file, and the digest of the file."""

    configuration: Configuration = attrs.field(factory=Configuration)
    given: tuple[str, ...] = ()
    digest: str = ""


def sections() -> dict[str, type]:
    """Return the sections by name, in order."""
    return {field.name: field.type for field in resolved_fields(Configuration) if field.type}


def every_key() -> list[Key]:
    """Return every key of every section, in order."""
    return [key for name, form in sections().items() for key in keys_of(name, form)]


def effective_values(configuration: Configuration) -> dict[str, object]:
    """Return the value of each key, by its full name."""
    values: dict[str, object] = {}
    for key in every_key():
        section, _, name = key.name.partition(".")
        values[key.name] = getattr(getattr(configuration, section), name)
    return values

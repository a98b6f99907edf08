"""The declaration of the keys of a section. Pure.

A section is a frozen attrs class; each of its fields is a ``setting``. The parser, its messages,
``config check`` and the reference page are derived from the declaration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from actors.codec import resolved_fields
from aegis.configuration.values import Kind


def setting(kind: Kind, *, default: object, doc: str, otherwise: str = "") -> Any:
    """Declare the field of one key.

    ``doc`` describes the key in one sentence; ``otherwise`` describes a ``default`` of None.
    """

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not kind.fits(value):
            raise ValueError(f"{attribute.name} must be {kind.expected}, not {value!r}")

    metadata = {"kind": kind, "doc": doc, "otherwise": otherwise}
    return attrs.field(default=default, validator=check, metadata=metadata)


@attrs.frozen
class Key:
    """One key of the configuration; ``name`` is ``section.key``."""

    name: str
    kind: Kind
    default: Any
    doc: str
    otherwise: str


def keys_of(section: str, form: type) -> Iterator[Key]:
    """Yield the keys of a section, in order."""
    for field in resolved_fields(form):
        about = field.metadata
        yield Key(
            name=f"{section}.{field.name}",
            kind=about["kind"],
            default=field.default,
            doc=about["doc"],
            otherwise=about["otherwise"],
        )

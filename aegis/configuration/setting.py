"""How a section declares its keys. Pure.

A section is a frozen attrs class; each of its fields is a ``setting``. All else follows: how it is
read, what is told of a bad value, what ``config check`` shows, the page of the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from actors.codec import resolved_fields
from aegis.configuration.values import Kind


def setting(kind: Kind, *, default: object, doc: str, otherwise: str = "") -> Any:
    """The field of one key.

    ``doc`` says what it does, in a sentence; ``otherwise`` what holds where ``default`` is None.
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
    """The keys of a section, in their order."""
    for field in resolved_fields(form):
        about = field.metadata
        yield Key(
            name=f"{section}.{field.name}",
            kind=about["kind"],
            default=field.default,
            doc=about["doc"],
            otherwise=about["otherwise"],
        )

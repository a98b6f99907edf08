"""The declaration of the keys of a section. Pure.

A section is a frozen attrs class; each of its fields is a ``setting``. The parser, its messages,
``config check`` and the reference page are derived from the declaration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from actors.codec import resolved_fields
from aegis.configuration.values import AnyKind


def setting(kind: AnyKind, *, default: object, doc: str, otherwise: str = "") -> Any:
    """Declare the field of one key.

    ``doc`` describes the key in one sentence; ``otherwise`` describes a ``default`` of None.
    """

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not kind.fits(value) and not (value is None and default is None):
            raise ValueError(f"{attribute.name} must be {kind.expected}, not {value!r}")

    metadata = {"kind": kind, "default": default, "doc": doc, "otherwise": otherwise}
    made = attrs.Factory(default.copy) if isinstance(default, dict) else default
    return attrs.field(default=made, validator=check, metadata=metadata)


@attrs.frozen
class Key:
    """One key of the configuration; ``name`` is its full name, such as ``section.key``."""

    name: str
    kind: AnyKind
    default: Any
    doc: str
    otherwise: str


def keys_of(section: str, form: type) -> Iterator[Key]:
    """Yield the keys of a section, in order."""
    for field in resolved_fields(form):
        yield key_of(f"{section}.{field.name}", field)


def key_of(name: str, field: attrs.Attribute[Any]) -> Key:
    """Return the key that is declared by a field."""
    about = field.metadata
    return Key(
        name=name,
        kind=about["kind"],
        default=about["default"],
        doc=about["doc"],
        otherwise=about["otherwise"],
    )

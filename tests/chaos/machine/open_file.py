"""The flags of ``open`` by their meaning, and open files of a simulated disk. Pure."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class OpenMode:
    """The flags of ``open``, by their meaning."""

    read: bool = True
    write: bool = False
    append: bool = False
    create: bool = False
    exclusive: bool = False
    truncate: bool = False
    directory: bool = False


@attrs.define(eq=False)
class OpenFile:
    """An open file description: descriptors made by ``dup`` share it, and its position."""

    number: int
    mode: OpenMode
    position: int = 0
    is_outside: bool = False
    """Whether another program than the process under test has it open."""
